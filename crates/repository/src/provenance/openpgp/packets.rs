//! Packets, one after another: RFC 9580 section 4.
//!
//! As Helm's library reads them: what is unsupported is passed over, a packet that is read with
//! something left in it goes on with what is left, and a broken one is passed over as a whole.

use super::OpenPgpError;
use super::key::PublicKey;
use super::signature::Signature;

/// A keyring or a message with more packets is none.
const MAX_PACKETS: usize = 1_000_000;

/// A packet, as far as keys and signatures need it.
pub(super) enum Packet {
    Key(Box<PublicKey>),
    Name(Vec<u8>),
    Signature(Box<Signature>),
    /// Something that is neither.
    Other,
}

/// A place in some bytes.
#[derive(Clone, Copy)]
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    pub fn left(&self) -> usize {
        self.bytes.len()
    }

    pub fn take(&mut self, count: usize) -> Result<&'a [u8], OpenPgpError> {
        let (taken, rest) = self.bytes.split_at_checked(count).ok_or(OpenPgpError::Truncated)?;
        self.bytes = rest;
        Ok(taken)
    }

    /// The next bytes as a number; of eight at most.
    pub fn number(&mut self, count: usize) -> Result<u64, OpenPgpError> {
        Ok(self.take(count)?.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    pub fn byte(&mut self) -> Result<u8, OpenPgpError> {
        match self.take(1)? {
            [byte] => Ok(*byte),
            _ => Err(OpenPgpError::Truncated),
        }
    }

    pub fn short(&mut self) -> Result<usize, OpenPgpError> {
        Ok(usize::from(self.byte()?) << 8 | usize::from(self.byte()?))
    }

    pub fn word(&mut self) -> Result<u32, OpenPgpError> {
        self.take(4).map(|bytes| bytes.iter().fold(0, |word, byte| word << 8 | u32::from(*byte)))
    }

    /// A number of any length: its bits are counted before it.
    pub fn integer(&mut self) -> Result<&'a [u8], OpenPgpError> {
        let bits = self.short()?;
        self.take(bits.div_ceil(8))
    }
}

/// Reads packets.
pub(super) struct Packets<'a> {
    bytes: &'a [u8],
    at: usize,
    unread: Option<Packet>,
    count: usize,
}

impl<'a> Packets<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, unread: None, count: 0 }
    }

    /// Puts a packet back; the next call gives it again.
    pub fn unread(&mut self, packet: Packet) {
        self.unread = Some(packet);
    }

    /// The next packet that is supported; `None` at the end.
    pub fn next(&mut self) -> Result<Option<Packet>, OpenPgpError> {
        if let Some(packet) = self.unread.take() {
            return Ok(Some(packet));
        }
        while self.at < self.bytes.len() {
            self.count += 1;
            if self.count > MAX_PACKETS {
                return OpenPgpError::shape(format!("more than {MAX_PACKETS} packets"));
            }
            match self.read() {
                Ok(None) | Err(OpenPgpError::Unsupported(_)) => {}
                packet => return packet,
            }
        }
        Ok(None)
    }

    /// Reads one packet; `None` for one that says nothing.
    fn read(&mut self) -> Result<Option<Packet>, OpenPgpError> {
        let Head { kind, body, is_cut } = self.head()?;
        let mut inside = Reader::new(body);
        match kind {
            2 => {
                let signature = Signature::read(&mut inside)?;
                self.at -= inside.left();
                Ok(Some(Packet::Signature(Box::new(signature))))
            }
            6 | 14 => {
                let key = PublicKey::read(&mut inside, kind == 14)?;
                self.at -= inside.left();
                Ok(Some(Packet::Key(Box::new(key))))
            }
            // Secret keys: what is secret in them is not looked at.
            5 | 7 => Ok(Some(Packet::Key(Box::new(PublicKey::read(&mut inside, kind == 7)?)))),
            13 if is_cut => Err(OpenPgpError::Truncated),
            13 => Ok(Some(Packet::Name(body.to_owned()))),
            // A marker, what GnuPG trusts, padding, and what may be passed over.
            10 | 12 | 21 | 40.. => Ok(None),
            // Of messages and of photographs.
            1 | 3 | 4 | 8 | 9 | 11 | 17 | 18 | 20 => Ok(Some(Packet::Other)),
            kind => Err(OpenPgpError::CriticalPacket(kind)),
        }
    }

    /// Reads the head of a packet, and goes on to where the packet ends.
    fn head(&mut self) -> Result<Head<'a>, OpenPgpError> {
        let mut rest = Reader::new(self.bytes.get(self.at..).unwrap_or_default());
        let head = head_of(&mut rest);
        let length = match &head {
            Ok((_, Some(length))) => *length,
            Ok((_, None)) => rest.left(),
            Err(_) => 0,
        };
        let start = self.bytes.len() - rest.left();
        let end = start.saturating_add(length).min(self.bytes.len());
        self.at = end;
        let body = self.bytes.get(start..end).unwrap_or_default();
        head.map(|(kind, _)| Head { kind, body, is_cut: body.len() < length })
    }
}

/// The head of a packet, and what belongs to it.
struct Head<'a> {
    kind: u8,
    body: &'a [u8],
    /// Whether the bytes end before the packet does.
    is_cut: bool,
}

/// The kind of a packet and its length; without one, it goes on to the end.
fn head_of(rest: &mut Reader<'_>) -> Result<(u8, Option<usize>), OpenPgpError> {
    let tag = rest.byte()?;
    if tag & 0x80 == 0 {
        return OpenPgpError::shape("tag byte does not have MSB set");
    }
    if tag & 0x40 == 0 {
        let length = match tag & 3 {
            0 => Some(usize::from(rest.byte()?)),
            1 => Some(rest.short()?),
            2 => Some(rest.word()? as usize),
            _ => None,
        };
        return Ok(((tag & 0x3f) >> 2, length));
    }
    let length = match rest.byte()? {
        first @ 0..192 => usize::from(first),
        first @ 192..224 => (usize::from(first - 192) << 8) + usize::from(rest.byte()?) + 192,
        // Lengths in parts are for messages alone; the standard forbids them elsewhere.
        224..255 => return OpenPgpError::shape("a key or a signature in parts"),
        255 => rest.word()? as usize,
    };
    Ok((tag & 0x3f, Some(length)))
}
