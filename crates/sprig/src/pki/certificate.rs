//! X.509 certificates, field by field as Go's `x509.CreateCertificate` writes them.

use std::net::IpAddr;

use catamaran_gotemplate::{Ctx, FuncError, Str, Value};
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use sha2::{Digest, Sha256};

use super::der::{self, Reader, read_pem};
use super::keys::PrivateKey;

const COMMON_NAME: &[u8] = &[0x55, 4, 3];
const SUBJECT_KEY_ID: &[u8] = &[0x55, 0x1d, 14];
const KEY_USAGE: &[u8] = &[0x55, 0x1d, 15];
const SUBJECT_ALT_NAME: &[u8] = &[0x55, 0x1d, 17];
const BASIC_CONSTRAINTS: &[u8] = &[0x55, 0x1d, 19];
const AUTHORITY_KEY_ID: &[u8] = &[0x55, 0x1d, 35];
const EXTENDED_KEY_USAGE: &[u8] = &[0x55, 0x1d, 37];
const SERVER_AUTH: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 3, 1];
const CLIENT_AUTH: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 3, 2];

/// Digital signature and key encipherment, behind the number of bits that do not count.
const USAGE: [u8; 2] = [5, 0b1010_0000];
/// The same and signing certificates.
const AUTHORITY_USAGE: [u8; 2] = [2, 0b1010_0100];

/// The names besides the common name.
#[derive(Debug, Default)]
pub(super) struct Names {
    addresses: Vec<IpAddr>,
    dns: Vec<Str>,
}

impl Names {
    /// Reads two lists of strings.
    pub fn read(ctx: &mut Ctx, addresses: &Value, dns: &Value) -> Result<Self, FuncError> {
        let mut names = Self::default();
        let length = |ctx: &Ctx, list: &Value| {
            let items = list.as_list().map_or(&[][..], |list| ctx.heap.items(list));
            items.iter().filter_map(Value::as_str).map(|name| name.len() + 64).sum::<usize>()
        };
        let total = length(ctx, addresses).saturating_add(length(ctx, dns));
        // Each layer of a certificate copies them once more.
        ctx.meter.check_room(total.saturating_mul(8))?;
        ctx.meter.charge_scan(total.saturating_mul(16))?;
        for item in crate::args::try_items(ctx, addresses)?.unwrap_or_default() {
            let text = text_of(ctx, &item, "error parsing ip")?;
            let address = text.as_str().and_then(|text| text.parse::<IpAddr>().ok());
            let unknown = || FuncError::new(format!("error parsing ip: {text}"));
            // Go writes an IPv4 address in IPv6's clothes as what it is.
            names.addresses.push(address.ok_or_else(unknown)?.to_canonical());
        }
        for item in crate::args::try_items(ctx, dns)?.unwrap_or_default() {
            names.dns.push(text_of(ctx, &item, "error processing alternate dns name")?);
        }
        Ok(names)
    }

    /// The content of the extension.
    fn to_der(&self) -> Result<Vec<u8>, String> {
        let mut parts = Vec::new();
        for name in &self.dns {
            if !name.as_bytes().is_ascii() {
                let quoted = catamaran_gotemplate::fmt::quote(name);
                return Err(format!("x509: {quoted} cannot be encoded as an IA5String"));
            }
            parts.push(der::element(0x82, name.as_bytes()));
        }
        parts.extend(self.addresses.iter().map(|address| match address {
            IpAddr::V4(address) => der::element(0x87, &address.octets()),
            IpAddr::V6(address) => der::element(0x87, &address.octets()),
        }));
        Ok(der::sequence(&parts))
    }
}

fn text_of(ctx: &mut Ctx, value: &Value, what: &str) -> Result<Str, FuncError> {
    if let Some(text) = value.as_str() {
        return Ok(text.clone());
    }
    let printed = ctx.print(value)?;
    Err(FuncError::new(format!("{what}: {printed} is not a string")))
}

/// What is to be certified of a key.
#[derive(Debug)]
pub(super) struct Request {
    serial: [u8; 16],
    common_name: Vec<u8>,
    names: Names,
    from: Timestamp,
    to: Timestamp,
    authority: bool,
}

/// When a certificate that is good for so many nanoseconds begins, and how often it was made anew: at
/// two thirds of its life, counted from when the seed was drawn. Without such a time it begins now.
fn beginning(ctx: &mut Ctx, span: i64) -> (Timestamp, u64) {
    let at = |time| Timestamp::try_from(time).unwrap_or(Timestamp::UNIX_EPOCH);
    let now = at(ctx.clock);
    let Some(since) = ctx.seed().since().map(at) else { return (now, 0) };
    let now = ctx.seed().as_of().map_or(now, at);
    let period = i128::from(span) / 3 * 2;
    let age = now.as_nanosecond() - since.as_nanosecond();
    if period <= 0 || age < 0 {
        return (since, 0);
    }
    let renewals = age / period;
    let from = since.as_nanosecond() + renewals * period;
    let moment = |nanoseconds| Timestamp::from_nanosecond(nanoseconds).ok();
    let renewals = u64::try_from(renewals).unwrap_or(u64::MAX);
    crate::random::note_certificate(ctx, moment(from + period).map(Into::into), renewals);
    (moment(from).unwrap_or(now), renewals)
}

impl Request {
    /// Valid from the rendering's clock on, with a serial number of 128 random bits.
    pub fn new(
        ctx: &mut Ctx,
        common_name: &[u8],
        names: Names,
        days: i64,
        authority: bool,
    ) -> Self {
        let mut serial = [0; 16];
        crate::random::fill(ctx, &mut serial);
        // Go counts a duration in 64 bits of nanoseconds: beyond 106751 days it wraps.
        let span = days.wrapping_mul(24 * 3600 * 1_000_000_000);
        let (from, renewals) = beginning(ctx, span);
        // No two certificates of an issuer may have one number.
        for (to, from) in serial.iter_mut().zip(renewals.to_le_bytes()) {
            *to ^= from;
        }
        let to = Timestamp::from_nanosecond(from.as_nanosecond() + i128::from(span));
        let to = to.unwrap_or(from);
        Self { serial, common_name: common_name.to_vec(), names, from, to, authority }
    }

    /// The certificate of a key, signed by an issuer or by the key itself.
    pub fn certificate(
        &self,
        key: &PrivateKey,
        issuer: Option<(&Issuer, &PrivateKey)>,
    ) -> Result<Vec<u8>, String> {
        let signer = issuer.map_or(key, |(_, key)| key);
        let algorithm = signer.signature_algorithm()?;
        let public = key.public()?;
        let subject = self.subject()?;
        let spki = der::sequence(&[public.algorithm, der::bit_string(&public.key)]);
        let mut authority_key_id = None;
        let mut issuer_name = subject.as_slice();
        if let Some((issuer, issuer_key)) = issuer {
            let own = issuer_key.public()?;
            if issuer.spki != der::sequence(&[own.algorithm, der::bit_string(&own.key)]) {
                return Err("x509: provided PrivateKey doesn't match parent's PublicKey".to_owned());
            }
            issuer_name = &issuer.subject;
            authority_key_id =
                issuer.subject_key_id.as_deref().filter(|_| issuer.subject != subject);
        }
        let extensions = self.extensions(&public.key, &subject, authority_key_id)?;
        let body = der::sequence(&[
            der::element(der::context(0), &der::integer(&[2])),
            der::integer(&self.serial),
            algorithm.clone(),
            issuer_name.to_vec(),
            der::sequence(&[date(self.from), date(self.to)]),
            subject.clone(),
            spki,
            der::element(der::context(3), &der::sequence(&extensions)),
        ]);
        let signature = signer.sign(&body)?;
        Ok(der::sequence(&[body, algorithm, der::bit_string(&signature)]))
    }

    /// The subject's name: the common name, or nothing.
    fn subject(&self) -> Result<Vec<u8>, String> {
        if self.common_name.is_empty() {
            return Ok(der::sequence::<Vec<u8>>(&[]));
        }
        if std::str::from_utf8(&self.common_name).is_err() {
            return Err("asn1: string not valid UTF-8".to_owned());
        }
        let printable = |byte: &u8| byte.is_ascii_alphanumeric() || b" '()+,-./:=?".contains(byte);
        let plain = self.common_name.iter().all(printable);
        let tag = if plain { der::PRINTABLE_STRING } else { der::UTF8_STRING };
        let attribute =
            der::sequence(&[der::oid(COMMON_NAME), der::element(tag, &self.common_name)]);
        Ok(der::sequence(&[der::element(der::SET, &attribute)]))
    }

    fn extensions(
        &self,
        public_key: &[u8],
        subject: &[u8],
        authority_key_id: Option<&[u8]>,
    ) -> Result<Vec<Vec<u8>>, String> {
        let usage = if self.authority { AUTHORITY_USAGE } else { USAGE };
        let purposes = der::sequence(&[der::oid(SERVER_AUTH), der::oid(CLIENT_AUTH)]);
        let is_authority = self.authority.then(|| der::element(der::BOOLEAN, &[0xff]));
        let constraints = der::sequence(is_authority.as_slice());
        let mut all = vec![
            extension(KEY_USAGE, true, &der::element(der::BIT_STRING, &usage)),
            extension(EXTENDED_KEY_USAGE, false, &purposes),
            extension(BASIC_CONSTRAINTS, true, &constraints),
        ];
        if self.authority {
            // RFC 7093, as Go since 1.25.
            let digest = Sha256::digest(public_key);
            let id = digest.get(..20).unwrap_or_default();
            all.push(extension(SUBJECT_KEY_ID, false, &der::element(der::OCTET_STRING, id)));
        }
        if let Some(id) = authority_key_id {
            all.push(extension(AUTHORITY_KEY_ID, false, &der::sequence(&[der::element(0x80, id)])));
        }
        if !(self.names.dns.is_empty() && self.names.addresses.is_empty()) {
            let critical = subject == der::sequence::<Vec<u8>>(&[]);
            all.push(extension(SUBJECT_ALT_NAME, critical, &self.names.to_der()?));
        }
        Ok(all)
    }
}

fn extension(id: &[u8], critical: bool, value: &[u8]) -> Vec<u8> {
    let mut parts = vec![der::oid(id)];
    if critical {
        parts.push(der::element(der::BOOLEAN, &[0xff]));
    }
    parts.push(der::element(der::OCTET_STRING, value));
    der::sequence(&parts)
}

/// A date, with two digits for the year where the standard wants it.
fn date(time: Timestamp) -> Vec<u8> {
    let at: DateTime = TimeZone::UTC.to_datetime(time);
    let year = at.year();
    let rest = format!(
        "{:02}{:02}{:02}{:02}{:02}Z",
        at.month(),
        at.day(),
        at.hour(),
        at.minute(),
        at.second()
    );
    if (1950..2050).contains(&year) {
        der::element(der::UTC_TIME, format!("{:02}{rest}", year.rem_euclid(100)).as_bytes())
    } else {
        der::element(der::GENERALIZED_TIME, format!("{year:04}{rest}").as_bytes())
    }
}

/// What a certificate tells of who may sign in its name.
#[derive(Debug)]
pub(super) struct Issuer {
    subject: Vec<u8>,
    spki: Vec<u8>,
    subject_key_id: Option<Vec<u8>>,
}

impl Issuer {
    /// Reads the first certificate of a PEM text; `what` is how the error calls it.
    pub fn from_pem(text: &[u8], what: &str) -> Result<Self, FuncError> {
        let Some(pem) = read_pem(text) else {
            return Err(FuncError::new("unable to decode certificate"));
        };
        Self::from_der(&pem.data)
            .map_err(|error| FuncError::new(format!("error parsing certificate: {what}: {error}")))
    }

    fn from_der(data: &[u8]) -> Result<Self, &'static str> {
        let mut outer = Reader::new(data);
        let mut certificate = outer.enter(der::SEQUENCE).ok_or("x509: malformed certificate")?;
        if !outer.is_empty() {
            return Err("x509: trailing data");
        }
        let body = certificate.enter(der::SEQUENCE).ok_or("x509: malformed tbs certificate")?;
        let issuer = Self::from_body(body).ok_or("x509: malformed tbs certificate")?;
        let signed = certificate.enter(der::SEQUENCE).and(certificate.expect(der::BIT_STRING));
        signed.map(|_| issuer).ok_or("x509: malformed signature")
    }

    fn from_body(mut body: Reader<'_>) -> Option<Self> {
        let _version = body.optional(der::context(0));
        body.expect(der::INTEGER)?;
        for _algorithm_issuer_validity in 0..3 {
            body.expect(der::SEQUENCE)?;
        }
        let subject = body.read().filter(|name| name.tag == der::SEQUENCE)?.whole.to_vec();
        let spki = body.read().filter(|spki| spki.tag == der::SEQUENCE)?.whole.to_vec();
        let mut subject_key_id = None;
        while !body.is_empty() {
            let part = body.read()?;
            if part.tag != der::context(3) {
                continue;
            }
            let mut extensions = Reader::new(part.content).enter(der::SEQUENCE)?;
            while !extensions.is_empty() {
                let mut extension = extensions.enter(der::SEQUENCE)?;
                let id = extension.expect(der::OBJECT_IDENTIFIER)?;
                let _critical = extension.optional(der::BOOLEAN);
                let value = extension.expect(der::OCTET_STRING)?;
                if id == SUBJECT_KEY_ID {
                    subject_key_id =
                        Reader::new(value).expect(der::OCTET_STRING).map(<[u8]>::to_vec);
                }
            }
        }
        Some(Self { subject, spki, subject_key_id })
    }
}
