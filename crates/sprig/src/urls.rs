//! URLs, in parts and whole.

use catamaran_gotemplate::{Ctx, FuncError, Map, Type, Value};

use crate::args::{Outcome, chars, map, string};

items! {
    /// The parts of a URL: scheme, userinfo, host, hostname, path, query, opaque, fragment.
    sprig "URL -> map",
        r#"{{ (urlParse "https://example.com:8443/a?b=c").host }}"# => "example.com:8443";
    "urlParse"(String) => |ctx, args| parse(ctx, &chars(args, 0));
    /// A URL of its parts.
    sprig "MAP -> string",
        r#"{{ urlJoin (dict "scheme" "https" "host" "example.com" "path" "/a") }}"#
            => "https://example.com/a";
    "urlJoin"(Map) => |ctx, args| join(ctx, map(args, 0));
    /// An address of a host, as the resolver tells it: only with `--enable-dns`, otherwise always
    /// `""`.
    sprig "NAME -> string", r#"{{ getHostByName "example.com" | quote }}"# => r#""""#;
    "getHostByName"(String) => |_, _| Ok("".into());
}

/// What Go's `url.Parse` finds, before it is decoded.
struct Parts<'u> {
    scheme: String,
    userinfo: Option<&'u str>,
    host: &'u str,
    path: &'u str,
    query: &'u str,
    opaque: &'u str,
    fragment: &'u str,
}

/// The same, decoded.
struct Decoded {
    host: Vec<u8>,
    /// User and password.
    userinfo: Option<(Vec<u8>, Option<Vec<u8>>)>,
    path: Vec<u8>,
    fragment: Vec<u8>,
}

/// Whether a text is a URL, and what Go has against it.
///
/// # Errors
/// It is none; Go's text.
pub fn check_url(text: &str) -> Result<(), String> {
    read(text).map(drop)
}

/// What Go's `url.Parse` finds, in the order in which it looks.
fn read(whole: &str) -> Result<(Parts<'_>, Decoded), String> {
    let parts = split(whole)?;
    // But for what is wrong with the fragment itself, Go shows none.
    let body = whole.split_once('#').map_or(whole, |(body, _)| body);
    let decoded = |text: &str| decode(text).map_err(|reason| format!("parse {body:?}: {reason}"));
    let host = decoded(parts.host)?;
    let userinfo = match parts.userinfo.map(|text| text.split_once(':').ok_or(text)) {
        None => None,
        Some(Err(user)) => Some((decoded(user)?, None)),
        Some(Ok((user, password))) => Some((decoded(user)?, Some(decoded(password)?))),
    };
    let path = decoded(parts.path)?;
    let fragment = decode(parts.fragment).map_err(|reason| format!("parse {whole:?}: {reason}"))?;
    Ok((parts, Decoded { host, userinfo, path, fragment }))
}

fn split(whole: &str) -> Result<Parts<'_>, String> {
    let (body, fragment) = whole.split_once('#').unwrap_or((whole, ""));
    let fail = |reason: &str| Err(format!("parse {body:?}: {reason}"));
    if body.chars().any(|c| c.is_ascii_control()) {
        return fail("net/url: invalid control character in URL");
    }
    let mut parts = Parts {
        scheme: String::new(),
        userinfo: None,
        host: "",
        path: "",
        query: "",
        opaque: "",
        fragment,
    };
    let mut rest = body;
    match scheme_end(body) {
        Some(0) => return fail("missing protocol scheme"),
        Some(end) => {
            parts.scheme = body.get(..end).unwrap_or_default().to_ascii_lowercase();
            rest = body.get(end + 1..).unwrap_or_default();
        }
        None => {}
    }
    if let Some((before, query)) = rest.split_once('?') {
        (rest, parts.query) = (before, query);
    }
    if !rest.starts_with('/') {
        if !parts.scheme.is_empty() {
            parts.opaque = rest;
            return Ok(parts);
        }
        if rest.split('/').next().is_some_and(|first| first.contains(':')) {
            return fail("first path segment in URL cannot contain colon");
        }
    }
    let authority =
        rest.strip_prefix("//").filter(|_| !parts.scheme.is_empty() || !rest.starts_with("///"));
    if let Some(authority) = authority {
        let end = authority.find('/').unwrap_or(authority.len());
        let (authority, path) = authority.split_at(end);
        rest = path;
        let (userinfo, host) = match authority.rsplit_once('@') {
            Some((userinfo, host)) => (Some(userinfo), host),
            None => (None, authority),
        };
        if let Err(reason) = check_host(&parts.scheme, host) {
            return fail(&reason);
        }
        let allowed = |b: u8| b.is_ascii_alphanumeric() || b"-._:~!$&'()*+,;=%@".contains(&b);
        if !userinfo.is_none_or(|userinfo| userinfo.bytes().all(allowed)) {
            return fail("net/url: invalid userinfo");
        }
        (parts.userinfo, parts.host) = (userinfo, host);
    }
    parts.path = rest;
    Ok(parts)
}

/// Scheme, host and path of a URL as Go's `url.Parse` finds them; none where Go refuses the URL.
pub fn scheme_host_path(whole: &str) -> Option<(String, &str, &str)> {
    let (parts, _) = read(whole).ok()?;
    let in_host = |byte: u8| {
        byte.is_ascii_alphanumeric() || byte >= 0x80 || b"-_.~%!$&'()*+,;=:[]<>\"".contains(&byte)
    };
    parts.host.bytes().all(in_host).then_some((parts.scheme, parts.host, parts.path))
}

/// Where the scheme's colon stands; none if there is no scheme.
fn scheme_end(text: &str) -> Option<usize> {
    for (at, c) in text.char_indices() {
        match c {
            'a'..='z' | 'A'..='Z' => {}
            '0'..='9' | '+' | '-' | '.' if at > 0 => {}
            ':' => return Some(at),
            _ => return None,
        }
    }
    None
}

/// Whether Go takes it for a host; the error is Go's text.
fn check_host(scheme: &str, host: &str) -> Result<(), String> {
    match host.rfind('[') {
        Some(0) => {
            let Some((inside, port)) = host[1..].rsplit_once(']') else {
                return Err("missing ']' in host".into());
            };
            check_port(port)?;
            // What follows is the name of a network interface.
            let (address, zone) = match inside.split_once("%25") {
                Some((address, zone)) => (address, Some(zone)),
                None => (inside, None),
            };
            check_characters(address)?;
            if address.parse::<std::net::Ipv4Addr>().is_ok() {
                return Err("invalid IP-literal".into());
            }
            if address.parse::<std::net::Ipv6Addr>().is_err() {
                let whole =
                    zone.map_or_else(|| address.to_owned(), |zone| format!("{address}%{zone}"));
                return Err(format!("invalid host: ParseAddr({whole:?}): unable to parse IP"));
            }
            return Ok(());
        }
        Some(_) => return Err("invalid IP-literal".into()),
        None => {}
    }
    let strict = matches!(scheme, "http" | "https");
    let colon = if strict { host.find(':') } else { host.rfind(':') };
    if let Some(at) = colon {
        check_port(host.get(at..).unwrap_or_default())?;
    }
    check_characters(host)
}

fn check_port(port: &str) -> Result<(), String> {
    let digits = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
    if port.is_empty() || port.strip_prefix(':').is_some_and(digits) {
        return Ok(());
    }
    Err(format!("invalid port {port:?} after host"))
}

/// In a host only what is not ASCII may be escaped.
fn check_characters(host: &str) -> Result<(), String> {
    for (at, byte) in host.bytes().enumerate() {
        match byte {
            b'%' => {
                let escape = host.get(at..at + 3).unwrap_or_default();
                let high =
                    escape.as_bytes().get(1).is_some_and(|digit| matches!(digit, b'0'..=b'7'));
                if high && escape != "%25" && u8::from_str_radix(&escape[1..], 16).is_ok() {
                    return Err(format!("invalid URL escape {escape:?}"));
                }
            }
            byte if byte.is_ascii()
                && !byte.is_ascii_alphanumeric()
                && !b"-_.~!$&'()*+,;=:[]<>\"".contains(&byte) =>
            {
                let character = char::from(byte).to_string();
                return Err(format!("invalid character {character:?} in host name"));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Replaces `%41` by its character; the error is Go's text.
fn decode(text: &str) -> Result<Vec<u8>, String> {
    let mut out = Vec::with_capacity(text.len());
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        if *byte != b'%' {
            out.push(*byte);
            at += 1;
            continue;
        }
        let digits = text.get(at + 1..at + 3).filter(|digits| !digits.starts_with('+'));
        let Some(code) = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) else {
            let shown: String = text.get(at..).unwrap_or_default().chars().take(3).collect();
            return Err(format!("invalid URL escape {shown:?}"));
        };
        out.push(code);
        at += 3;
    }
    Ok(out)
}

/// What may stand unescaped in that part of a URL, besides letters and digits.
fn encode(text: &[u8], allowed: &[u8]) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(byte) || allowed.contains(byte) {
            out.push(char::from(*byte));
        } else {
            out.extend(format!("%{byte:02X}").chars());
        }
    }
    out
}

const PATH: &[u8] = b"$&+,/:;=@";
const FRAGMENT: &[u8] = b"$&+,/:;=?@!()*";
const USER: &[u8] = b"$&+,;=";

fn parse(ctx: &mut Ctx, whole: &str) -> Outcome {
    ctx.meter.charge_bytes(whole.len().saturating_mul(4).saturating_add(1024))?;
    let failed = |reason: String| FuncError::new(format!("unable to parse url: {reason}"));
    let (parts, Decoded { host, userinfo, path, fragment }) = read(whole).map_err(failed)?;
    let userinfo = match userinfo {
        Some((user, None)) => encode(&user, USER),
        Some((user, Some(password))) => {
            format!("{}:{}", encode(&user, USER), encode(&password, USER))
        }
        None => String::new(),
    };
    let hostname = Value::string(without_port(&host));
    let made = ctx.heap.new_map();
    ctx.heap.set(made, "scheme", parts.scheme);
    ctx.heap.set(made, "host", Value::string(host));
    ctx.heap.set(made, "hostname", hostname);
    ctx.heap.set(made, "path", Value::string(path));
    ctx.heap.set(made, "query", parts.query);
    ctx.heap.set(made, "opaque", parts.opaque);
    ctx.heap.set(made, "fragment", Value::string(fragment));
    ctx.heap.set(made, "userinfo", userinfo);
    Ok(made.into())
}

/// Go's `URL.Hostname`: without the port, and without the brackets of an IPv6 address.
fn without_port(host: &[u8]) -> &[u8] {
    let colon = host.iter().rposition(|byte| *byte == b':');
    let name = match colon.map(|at| host.split_at(at)) {
        Some((name, port)) if port.iter().skip(1).all(u8::is_ascii_digit) => name,
        _ => host,
    };
    name.strip_prefix(b"[").and_then(|inside| inside.strip_suffix(b"]")).unwrap_or(name)
}

fn part(ctx: &Ctx, of: Option<Map>, key: &str) -> Result<Vec<u8>, FuncError> {
    match of.and_then(|of| ctx.heap.get(of, key)) {
        None => Ok(Vec::new()),
        Some(Value::String(text)) => Ok(text.as_bytes().to_vec()),
        Some(Value::Nil) => Err(FuncError::new(crate::args::NIL_DEREFERENCE)),
        Some(other) => {
            let kind =
                ctx.heap.type_of(other).map_or_else(String::new, |ty: Type| ty.kind().to_string());
            Err(FuncError::new(format!(
                "unable to parse {key} key, must be of type string, but {kind} found"
            )))
        }
    }
}

fn join(ctx: &mut Ctx, of: Option<Map>) -> Outcome {
    // Each part is taken out, encoded and added to the rest.
    let texts = of.map_or(0, |of| {
        let values = ctx.heap.map(of).entries.values();
        values.filter_map(Value::as_str).map(|text| text.as_bytes().len()).sum()
    });
    ctx.meter.check_room(usize::saturating_mul(texts, 5))?;
    let mut out: Vec<u8> = part(ctx, of, "scheme")?;
    let (host, path) = (part(ctx, of, "host")?, part(ctx, of, "path")?);
    let (query, opaque) = (part(ctx, of, "query")?, part(ctx, of, "opaque")?);
    let (fragment, userinfo) = (part(ctx, of, "fragment")?, part(ctx, of, "userinfo")?);
    let has_scheme = !out.is_empty();
    if has_scheme {
        out.push(b':');
    }
    if opaque.is_empty() {
        if has_scheme || !host.is_empty() || !userinfo.is_empty() {
            if !(host.is_empty() && path.is_empty() && userinfo.is_empty()) {
                out.extend_from_slice(b"//");
            }
            if !userinfo.is_empty() {
                let whole = format!("proto://{}@host", String::from_utf8_lossy(&userinfo));
                let failed = |error: String| {
                    FuncError::new(format!("unable to parse userinfo in dict: {error}"))
                };
                let parsed = split(&whole).map_err(failed)?;
                let in_whole = |error: String| failed(format!("parse {whole:?}: {error}"));
                let mut pieces = Vec::new();
                for piece in parsed.userinfo.unwrap_or_default().splitn(2, ':') {
                    pieces.push(encode(&decode(piece).map_err(in_whole)?, USER));
                }
                out.extend_from_slice(pieces.join(":").as_bytes());
                out.push(b'@');
            }
            out.extend_from_slice(encode(&host, b"!$&'()*+,;=:[]<>\"").as_bytes());
        }
        let path = encode(&path, PATH);
        if !path.is_empty() && !path.starts_with('/') && !host.is_empty() {
            out.push(b'/');
        }
        if out.is_empty() && path.split('/').next().is_some_and(|first| first.contains(':')) {
            out.extend_from_slice(b"./");
        }
        out.extend_from_slice(path.as_bytes());
    } else {
        out.extend_from_slice(&opaque);
    }
    if !query.is_empty() {
        out.push(b'?');
        out.extend_from_slice(&query);
    }
    if !fragment.is_empty() {
        out.push(b'#');
        out.extend_from_slice(encode(&fragment, FRAGMENT).as_bytes());
    }
    string(ctx, out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_fault_is_told_as_by_go() {
        for (url, fault) in [
            ("1:b#x", r#"parse "1:b": first path segment in URL cannot contain colon"#),
            ("http://a/%zz#q", r#"parse "http://a/%zz": invalid URL escape "%zz""#),
            ("http://a/x#%zz", r#"parse "http://a/x#%zz": invalid URL escape "%zz""#),
            ("http://[::1#x", r#"parse "http://[::1": missing ']' in host"#),
            ("http://u%zz@%zx/%zy", r#"parse "http://u%zz@%zx/%zy": invalid URL escape "%zx""#),
            ("a\tb", r#"parse "a\tb": net/url: invalid control character in URL"#),
        ] {
            assert_eq!(check_url(url), Err(fault.to_owned()));
        }
        assert_eq!(check_url("http://h/%41#a\tb"), Ok(()));
    }
}
