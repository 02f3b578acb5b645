//! Passwords.

use catamaran_gotemplate::{Ctx, FuncError, Value};
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

use crate::args::{any, bytes, chars, string};
use crate::random::{begin, fill};

/// Go's default cost, and so Helm's.
const COST: u32 = 10;
/// What a hashed and a derived password cost, in hundredths of an RSA key of 2048 bits: both are slow on
/// purpose.
const HASHED: u32 = 200;
const DERIVED: u32 = 400;
/// What deriving one needs for a moment, in bytes: 128 * r * N of scrypt.
const DERIVING_BYTES: usize = (128 * 8) << 15;

items! {
    /// A password as bcrypt stores it.
    sprig "PASSWORD -> string", r#"{{ bcrypt "secret" | trunc 7 }}"# => "$2a$10$";
    "bcrypt"(String) => |ctx, args| {
        let stored = stored_password(ctx, bytes(args, 0))?;
        string(ctx, stored)
    };
    /// A line of an `.htpasswd` file: a user and a password.
    sprig "USER PASSWORD -> string",
        r#"{{ htpasswd "admin" "secret" | trunc 13 }}"# => "admin:$2a$10$";
    "htpasswd"(String, String) => |ctx, args| {
        let user = bytes(args, 0);
        if user.contains(&b':') {
            return string(ctx, [b"invalid username: ", user].concat());
        }
        let stored = stored_password(ctx, bytes(args, 1))?;
        string(ctx, [user, b":", stored.as_bytes()].concat())
    };
    /// A password for a site, always the same for the same counter, kind, master password, user and
    /// site (the algorithm of Master Password). Kinds: maximum, long, medium, short, basic, pin.
    sprig "COUNTER KIND PASSWORD USER SITE -> string",
        r#"{{ derivePassword 1 "long" "password" "user" "example.com" }}"# => "ZedaFaxcZaso9*";
    "derivePassword"(Uint64, String, String, String, String) => |ctx, args| {
        let kind = chars(args, 1);
        let Some((_, patterns)) = PATTERNS.iter().find(|(name, _)| *name == kind) else {
            return string(ctx, format!("cannot find password template {kind}"));
        };
        ctx.meter.charge_keys(DERIVED)?;
        // It must fit even where hardly more is allowed; then nothing else may be held.
        ctx.meter.check_room(DERIVING_BYTES.min(ctx.meter.budget().memory / 2))?;
        let seed = site_seed(any(args, 0), bytes(args, 2), bytes(args, 3), bytes(args, 4))?;
        string(ctx, spelled(patterns, &seed))
    };
}

/// What the algorithm starts every text with that it hashes.
const SCOPE: &[u8] = b"com.lyndir.masterpassword";

/// The kinds of passwords, and the forms that each may take; letters stand for [`alphabet`]s.
const PATTERNS: [(&str, &[&str]); 6] = [
    ("maximum", &["anoxxxxxxxxxxxxxxxxx", "axxxxxxxxxxxxxxxxxno"]),
    (
        "long",
        &[
            "CvcvnoCvcvCvcv",
            "CvcvCvcvnoCvcv",
            "CvcvCvcvCvcvno",
            "CvccnoCvcvCvcv",
            "CvccCvcvnoCvcv",
            "CvccCvcvCvcvno",
            "CvcvnoCvccCvcv",
            "CvcvCvccnoCvcv",
            "CvcvCvccCvcvno",
            "CvcvnoCvcvCvcc",
            "CvcvCvcvnoCvcc",
            "CvcvCvcvCvccno",
            "CvccnoCvccCvcv",
            "CvccCvccnoCvcv",
            "CvccCvccCvcvno",
            "CvcvnoCvccCvcc",
            "CvcvCvccnoCvcc",
            "CvcvCvccCvccno",
            "CvccnoCvcvCvcc",
            "CvccCvcvnoCvcc",
            "CvccCvcvCvccno",
        ],
    ),
    ("medium", &["CvcnoCvc", "CvcCvcno"]),
    ("short", &["Cvcn"]),
    ("basic", &["aaanaaan", "aannaaan", "aaannaaa"]),
    ("pin", &["nnnn"]),
];

/// The characters that a letter of a pattern stands for, in the order the algorithm counts them.
fn alphabet(class: u8) -> &'static [u8] {
    match class {
        b'V' => b"AEIOU",
        b'C' => b"BCDFGHJKLMNPQRSTVWXYZ",
        b'v' => b"aeiou",
        b'c' => b"bcdfghjklmnpqrstvwxyz",
        b'a' => b"AEIOUaeiouBCDFGHJKLMNPQRSTVWXYZbcdfghjklmnpqrstvwxyz",
        b'n' => b"0123456789",
        b'o' => b"@&%?,=[]_:-+*$#!'^~;()/.",
        _ => b"AEIOUaeiouBCDFGHJKLMNPQRSTVWXYZbcdfghjklmnpqrstvwxyz0123456789!@#$%^&*()",
    }
}

/// The bytes that decide form and characters of a site's password.
fn site_seed(
    counter: &Value,
    password: &[u8],
    user: &[u8],
    site: &[u8],
) -> Result<Vec<u8>, FuncError> {
    // Go's parameter has 32 bits, and cuts a literal to them.
    #[allow(clippy::cast_possible_truncation)]
    let [counter, user_length, site_length] =
        [counter.as_uint().unwrap_or(0), user.len() as u64, site.len() as u64]
            .map(|number| (number as u32).to_be_bytes());
    let failed = |error: &dyn std::fmt::Display| {
        FuncError::new(format!("failed to derive password: {error}"))
    };
    let salt = [SCOPE, &user_length, user].concat();
    let mut key = [0; 64];
    let params = scrypt::Params::new(15, 8, 2).map_err(|error| failed(&error))?;
    scrypt::scrypt(password, &salt, &params, &mut key).map_err(|error| failed(&error))?;
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).map_err(|error| failed(&error))?;
    mac.update(&[SCOPE, &site_length, site, &counter].concat());
    Ok(mac.finalize().into_bytes().to_vec())
}

/// The password: the first byte picks the form, each further one a character.
fn spelled(patterns: &[&str], seed: &[u8]) -> Vec<u8> {
    let pick = |at: usize, count: usize| {
        seed.get(at).map_or(0, |byte| usize::from(*byte)).checked_rem(count).unwrap_or(0)
    };
    let pattern = patterns.get(pick(0, patterns.len())).copied().unwrap_or_default();
    let chosen = pattern.bytes().enumerate().filter_map(|(at, class)| {
        let characters = alphabet(class);
        characters.get(pick(at + 1, characters.len())).copied()
    });
    chosen.collect()
}

fn stored_password(ctx: &mut Ctx, password: &[u8]) -> Result<String, FuncError> {
    if password.len() > 72 {
        return Ok(
            "failed to encrypt string with bcrypt: bcrypt: password length exceeds 72 bytes"
                .to_owned(),
        );
    }
    ctx.meter.charge_keys(HASHED)?;
    begin(ctx, "bcrypt", &[Value::from(catamaran_gotemplate::Str::from(password.to_vec()))])?;
    let mut salt = [0; 16];
    fill(ctx, &mut salt);
    let stored = bcrypt::hash_with_salt(password, COST, salt).map_err(|error| {
        FuncError::new(format!("failed to encrypt string with bcrypt: {error}"))
    })?;
    Ok(stored.format_for_version(bcrypt::Version::TwoA))
}
