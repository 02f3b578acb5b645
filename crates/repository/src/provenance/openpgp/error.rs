//! What is wrong with keys and signatures, in the words of the OpenPGP library that Helm uses.

/// Why a key or a signature is not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OpenPgpError {
    /// Not shaped as OpenPGP has it.
    #[error("openpgp: invalid data: {0}")]
    Shape(String),
    /// Well-shaped, and nothing that is read here.
    #[error("openpgp: unsupported feature: {0}")]
    Unsupported(String),
    /// A key that cannot have made such a signature.
    #[error("openpgp: invalid argument: {0}")]
    OtherAlgorithm(&'static str),
    /// The key did not sign this.
    #[error("openpgp: invalid signature: {0}")]
    Signature(String),
    /// The signature, or one that the key rests on, is over, or has not begun.
    #[error("openpgp: signature expired")]
    SignatureExpired,
    /// The key is over, or has not begun.
    #[error("openpgp: key expired")]
    KeyExpired,
    /// The owner took the key back.
    #[error("openpgp: signature made by revoked key")]
    Revoked,
    /// No key of the keyring made any of the signatures.
    #[error("openpgp: signature made by unknown entity")]
    UnknownSigner,
    /// A packet that must not be passed over, and that nobody knows.
    #[error("openpgp: unknown critical packet type: {0}")]
    CriticalPacket(u8),
    /// The data ends too early.
    #[error("unexpected EOF")]
    Truncated,
    /// A public key that is no point of its curve.
    #[error("{0}: failed to parse EC point")]
    Point(&'static str),
    /// Base64 that is none.
    #[error("illegal base64 data at input byte {0}")]
    Base64(usize),
    /// A line of an armor that is too long.
    #[error("openpgp: invalid data: armor invalid")]
    Armor,
}

impl OpenPgpError {
    pub(super) fn shape<T>(text: impl Into<String>) -> Result<T, Self> {
        Err(Self::Shape(text.into()))
    }

    pub(super) fn unsupported<T>(text: impl Into<String>) -> Result<T, Self> {
        Err(Self::Unsupported(text.into()))
    }
}
