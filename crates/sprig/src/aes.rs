//! Texts under a password: AES-256 in CBC mode, as Sprig has it.
//!
//! There is no check of integrity and no derivation of the key; charts use it because Helm has it.

use aes::Aes256;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use catamaran_gotemplate::FuncError;
use cbc::cipher::block_padding::{NoPadding, Pkcs7};
use cbc::cipher::{BlockModeDecrypt as _, BlockModeEncrypt as _, KeyIvInit as _};

use crate::args::{bytes, slice_bounds, string};
use crate::encoding::from_base64;

const BLOCK: usize = 16;
/// What the key and a block take, in steps.
const SHORT: u64 = 150;

items! {
    /// A text encrypted under a password, in base 64.
    sprig "PASSWORD TEXT -> string",
        r#"{{ encryptAES "secret" "hello" | decryptAES "secret" }}"# => "hello";
    "encryptAES"(String, String) => |ctx, args| {
        let text = bytes(args, 1);
        if text.is_empty() {
            return Ok("".into());
        }
        ctx.meter.charge_bytes(text.len().saturating_mul(3))?;
        ctx.meter.charge_steps(SHORT + text.len() as u64)?;
        crate::random::begin(ctx, "encryptAES", args)?;
        let mut start = [0; BLOCK];
        crate::random::fill(ctx, &mut start);
        let cipher = cbc::Encryptor::<Aes256>::new(&key(bytes(args, 0)).into(), &start.into());
        let mut out = start.to_vec();
        out.extend(cipher.encrypt_padded_vec::<Pkcs7>(text));
        string(ctx, STANDARD.encode(out))
    };
    /// What `encryptAES` has encrypted under the same password.
    sprig "PASSWORD TEXT -> string",
        r#"{{ decryptAES "secret" "AAECAwQFBgcICQoLDA0OD/zYDgky5Vq7TY3y/MAnTrM=" }}"# => "hello";
    "decryptAES"(String, String) => |ctx, args| {
        let text = bytes(args, 1);
        if text.is_empty() {
            return Ok("".into());
        }
        ctx.meter.charge_bytes(text.len().saturating_mul(2))?;
        ctx.meter.charge_steps(SHORT + text.len() as u64)?;
        let plain = decrypt(bytes(args, 0), text)?;
        string(ctx, plain)
    };
}

/// A key of a password: filled up with zeros, or cut.
fn key(password: &[u8]) -> [u8; 32] {
    let mut key = [0; 32];
    for (to, from) in key.iter_mut().zip(password) {
        *to = *from;
    }
    key
}

fn decrypt(password: &[u8], text: &[u8]) -> Result<Vec<u8>, FuncError> {
    let data = from_base64(text)?;
    let Some((start, body)) = data.split_first_chunk::<BLOCK>() else {
        return Err(slice_bounds(0, 16, text.len() / 4 * 3, false));
    };
    let cipher = cbc::Decryptor::<Aes256>::new(&key(password).into(), &(*start).into());
    let Ok(mut plain) = cipher.decrypt_padded_vec::<NoPadding>(body) else {
        return Err(FuncError::new("crypto/cipher: input not full blocks"));
    };
    let Some(padding) = plain.last().copied().map(usize::from) else {
        return Err(FuncError::new("runtime error: index out of range [-1]"));
    };
    // Nothing tells a wrong password from a right one, but for the length of the padding.
    if let Some(excess) = padding.checked_sub(plain.len()).filter(|excess| *excess > 0) {
        let end = i64::try_from(excess).unwrap_or(i64::MAX).wrapping_neg();
        return Err(slice_bounds(0, end, plain.len(), false));
    }
    plain.truncate(plain.len() - padding);
    Ok(plain)
}
