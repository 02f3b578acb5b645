//! Passwords.

use catamaran_gotemplate::{Ctx, FuncError};

use crate::args::{bytes, chars, string};
use crate::random::fill;

/// Go's default cost, and so Helm's.
const COST: u32 = 10;
/// What one password costs, in steps: it is slow on purpose.
const STEPS: u64 = 2_000_000;

items! {
    /// A password as bcrypt stores it.
    "bcrypt"(String) => |ctx, args| {
        let stored = stored_password(ctx, bytes(args, 0))?;
        string(ctx, stored)
    };
    /// A line of an `.htpasswd` file: a user and a password.
    "htpasswd"(String, String) => |ctx, args| {
        let user = chars(args, 0);
        if user.contains(':') {
            return string(ctx, format!("invalid username: {user}"));
        }
        let stored = stored_password(ctx, bytes(args, 1))?;
        string(ctx, format!("{user}:{stored}"))
    };
}

fn stored_password(ctx: &mut Ctx, password: &[u8]) -> Result<String, FuncError> {
    if password.len() > 72 {
        return Ok(
            "failed to encrypt string with bcrypt: bcrypt: password length exceeds 72 bytes"
                .to_owned(),
        );
    }
    ctx.meter.charge_steps(STEPS)?;
    ctx.meter.check_deadline()?;
    let mut salt = [0; 16];
    fill(ctx, &mut salt);
    let stored = bcrypt::hash_with_salt(password, COST, salt).map_err(|error| {
        FuncError::new(format!("failed to encrypt string with bcrypt: {error}"))
    })?;
    Ok(stored.format_for_version(bcrypt::Version::TwoA))
}
