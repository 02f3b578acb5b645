//! The few lines of memcached's protocol that a backup needs (its doc/protocol.txt, meta commands).

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;

use super::Error;
use super::file::Item;

/// How long the server may take for an answer.
const PATIENCE: Duration = Duration::from_secs(30);
/// Longer lines are none of memcached's: a key has at most 250 bytes, each written as three.
const LONGEST_LINE: u64 = 4096;
/// Longer names are no keys. In base64 those of more than 187 bytes are: nobody can ask for them.
const LONGEST_KEY: usize = 250;
/// The largest item that memcached can be told to take.
const LARGEST: usize = 1 << 30;
/// A longer time is taken for a date.
const MONTH: i64 = 60 * 60 * 24 * 30;
/// Only one crawler runs at a time: so often, a second apart, the server is asked again.
const TRIES: u32 = 30;

/// A connection to a server.
pub(super) struct Client {
    stream: BufReader<TcpStream>,
}

/// What became of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stored {
    Yes,
    /// Expired, there already, or refused as too large.
    No,
}

impl Client {
    pub fn connect(host: &str, port: u16) -> Result<Self, Error> {
        let to = format!("memcached at {host}:{port}");
        let addresses = (host, port).to_socket_addrs().map_err(Error::io(&to))?;
        let mut last = std::io::Error::from(std::io::ErrorKind::NotFound);
        for address in addresses {
            match TcpStream::connect_timeout(&address, PATIENCE) {
                Ok(stream) => {
                    stream.set_read_timeout(Some(PATIENCE)).map_err(Error::io(&to))?;
                    stream.set_write_timeout(Some(PATIENCE)).map_err(Error::io(&to))?;
                    stream.set_nodelay(true).map_err(Error::io(&to))?;
                    return Ok(Self { stream: BufReader::new(stream) });
                }
                Err(error) => last = error,
            }
        }
        Err(Error::Io { what: to, source: last })
    }

    /// All keys, as bytes.
    pub fn keys(&mut self) -> Result<Vec<Vec<u8>>, Error> {
        for _ in 0..TRIES {
            self.send(b"lru_crawler metadump all\r\n")?;
            let mut keys = Vec::new();
            loop {
                let line = self.line()?;
                if line == "END" {
                    return Ok(keys);
                }
                if line.starts_with("BUSY") {
                    break;
                }
                let key = line.strip_prefix("key=").and_then(|rest| rest.split(' ').next());
                keys.push(key.and_then(unescape).ok_or_else(|| Error::Protocol(line.clone()))?);
            }
            std::thread::sleep(Duration::from_secs(1));
        }
        Err(Error::Protocol("BUSY currently processing crawler request".to_owned()))
    }

    /// An item, unless it is gone.
    pub fn get(&mut self, key: &[u8], now: Timestamp) -> Result<Option<Item>, Error> {
        let (name, binary) = spell(key);
        if name.len() > LONGEST_KEY {
            return Ok(None);
        }
        self.send(format!("mg {name} t f v{binary}\r\n").as_bytes())?;
        let line = self.line()?;
        let mut words = line.split(' ');
        match words.next() {
            Some("EN") => return Ok(None),
            Some("VA") => {}
            _ => return Err(Error::Protocol(line)),
        }
        let wrong = || Error::Protocol(line.clone());
        let size: usize = words.next().and_then(|size| size.parse().ok()).ok_or_else(wrong)?;
        if size > LARGEST {
            return Err(wrong());
        }
        let mut item = Item { key: key.to_vec(), ..Item::default() };
        for word in words {
            match word.split_at_checked(1) {
                Some(("f", flags)) => item.flags = flags.parse().map_err(|_| wrong())?,
                Some(("t", "-1")) => item.expires = None,
                Some(("t", left)) => {
                    let left: i64 = left.parse().map_err(|_| wrong())?;
                    item.expires = Some(now.as_second().saturating_add(left));
                }
                _ => {}
            }
        }
        item.value = vec![0; size];
        self.stream.read_exact(&mut item.value).map_err(Error::io("memcached's answer"))?;
        if !self.line()?.is_empty() {
            return Err(Error::Protocol(
                "a value that is longer than it was said to be".to_owned(),
            ));
        }
        Ok(Some(item))
    }

    /// Stores an item.
    pub fn set(&mut self, item: &Item, now: Timestamp, overwrite: bool) -> Result<Stored, Error> {
        let left = item.expires.map(|expires| expires.saturating_sub(now.as_second()));
        let time = match (left, item.expires) {
            (Some(left), _) if left <= 0 => return Ok(Stored::No),
            (Some(left), _) if left <= MONTH => left,
            (Some(_), Some(date)) => date,
            _ => 0,
        };
        let (name, binary) = spell(&item.key);
        let mode = if overwrite { "S" } else { "E" };
        let size = item.value.len();
        let mut request =
            format!("ms {name} {size} T{time} F{} M{mode}{binary}\r\n", item.flags).into_bytes();
        request.extend_from_slice(&item.value);
        request.extend_from_slice(b"\r\n");
        self.send(&request)?;
        let line = self.line()?;
        match line.split(' ').next() {
            Some("HD") => Ok(Stored::Yes),
            Some("NS") => Ok(Stored::No),
            _ if line.starts_with("SERVER_ERROR object too large") => Ok(Stored::No),
            _ => Err(Error::Protocol(line)),
        }
    }

    fn send(&mut self, request: &[u8]) -> Result<(), Error> {
        self.stream.get_mut().write_all(request).map_err(Error::io("a request to memcached"))
    }

    /// A line without its end.
    fn line(&mut self) -> Result<String, Error> {
        let mut line = Vec::new();
        let mut limited = (&mut self.stream).take(LONGEST_LINE);
        limited.read_until(b'\n', &mut line).map_err(Error::io("memcached's answer"))?;
        // The crawler ends its lines without \r.
        let text = line.strip_suffix(b"\n").map(|line| line.strip_suffix(b"\r").unwrap_or(line));
        match text.map(|text| String::from_utf8(text.to_vec())) {
            Some(Ok(line)) => Ok(line),
            _ => Err(Error::Protocol(String::from_utf8_lossy(&line).into_owned())),
        }
    }
}

/// A key as a request names it: as it is where it is plain text, in base64 otherwise.
fn spell(key: &[u8]) -> (String, &'static str) {
    match std::str::from_utf8(key) {
        Ok(text) if key.iter().all(|byte| *byte > b' ' && *byte != 0x7f) => (text.to_owned(), ""),
        _ => (STANDARD.encode(key), " b"),
    }
}

/// A key as the crawler writes it, in the manner of URLs.
fn unescape(text: &str) -> Option<Vec<u8>> {
    let mut bytes = text.bytes();
    let mut key = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            key.push(byte);
            continue;
        }
        let digits = [bytes.next()?, bytes.next()?];
        key.push(u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?);
    }
    (!key.is_empty()).then_some(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_spelled_as_the_protocol_has_them() {
        assert_eq!(spell(b"plain:key"), ("plain:key".to_owned(), ""));
        assert_eq!(spell("schlüssel".as_bytes()), ("schlüssel".to_owned(), ""));
        assert_eq!(spell(b"a b"), ("YSBi".to_owned(), " b"));
        assert_eq!(spell(&[0, 255]), ("AP8=".to_owned(), " b"));
        assert_eq!(unescape("a%20b%FF%00").unwrap(), b"a b\xff\0");
        for wrong in ["", "%", "%2", "%zz", "%+1"] {
            assert!(unescape(wrong).is_none_or(|key| key.len() == 1), "{wrong}");
        }
    }
}
