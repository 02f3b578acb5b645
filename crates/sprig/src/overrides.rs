//! Random texts that stay: what random functions gave, and what they shall give instead.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use catamaran_gotemplate::RandomSeed;

/// Shorter texts may stand in a manifest by chance.
const SHORTEST: usize = 5;
/// How many bytes of random texts a rendering notes.
const MOST_BYTES: usize = 64 << 10;
/// How many random texts a rendering notes.
const MOST_TEXTS: usize = 2000;

/// A call of a random function: the template file, the function, its arguments, and how often it was
/// called so before. The seed has no part in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RandomCall([u8; 32]);

impl RandomCall {
    pub(crate) fn from_hash(hash: [u8; 32]) -> Self {
        Self(hash)
    }

    /// The hash that identifies it.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

/// The characters of a random text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Alphabet {
    Alphanumeric,
    Letters,
    Digits,
    /// All printable ASCII characters.
    Printable,
    Base64,
    /// Hexadecimal digits, and hyphens.
    Uuid,
}

impl Alphabet {
    pub fn contains(self, byte: u8) -> bool {
        match self {
            Self::Alphanumeric => byte.is_ascii_alphanumeric(),
            Self::Letters => byte.is_ascii_alphabetic(),
            Self::Digits => byte.is_ascii_digit(),
            Self::Printable => matches!(byte, b' '..=b'~'),
            Self::Base64 => byte.is_ascii_alphanumeric() || b"+/=".contains(&byte),
            Self::Uuid => matches!(byte, b'0'..=b'9' | b'a'..=b'f' | b'-'),
        }
    }
}

/// What a call of a random function gave.
#[derive(Clone, PartialEq, Eq)]
pub struct RandomText {
    /// The call.
    pub call: RandomCall,
    /// The text. Passwords are made so.
    pub text: String,
    pub(crate) alphabet: Alphabet,
}

impl RandomText {
    /// Whether the call could have given this text: as long, and of the same characters.
    pub fn could_be(&self, text: &str) -> bool {
        // The hyphens of a UUID and the end of a Base64 text have their places.
        let is_fixed = |byte: u8| b"-=".contains(&byte);
        text.len() == self.text.len()
            && text
                .bytes()
                .zip(self.text.bytes())
                .all(|(byte, own)| self.alphabet.contains(byte) && is_fixed(byte) == is_fixed(own))
    }
}

/// Without the text, which may be a password.
impl fmt::Debug for RandomText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RandomText").field("call", &self.call).finish_non_exhaustive()
    }
}

/// The random texts of a rendering, at most 2000 of 64 KiB in all.
#[derive(Debug, Default)]
pub(crate) struct RandomTexts {
    texts: Vec<RandomText>,
    bytes: usize,
}

impl RandomTexts {
    /// Notes a text that can be recognized in a manifest. Not those of all printable characters: a
    /// manifest may hold them escaped.
    pub fn note(&mut self, random: &RandomText) {
        let bytes = self.bytes.saturating_add(random.text.len());
        let is_noted = random.text.len() >= SHORTEST
            && random.alphabet != Alphabet::Printable
            && bytes <= MOST_BYTES
            && self.texts.len() < MOST_TEXTS;
        if is_noted {
            self.bytes = bytes;
            self.texts.push(random.clone());
        }
    }

    pub fn into_vec(self) -> Vec<RandomText> {
        self.texts
    }
}

/// What a call of a random function gives instead of what the rendering's seed makes.
#[derive(Clone, PartialEq, Eq)]
pub enum RandomOverride {
    /// This text, if the call could have given it.
    Text(String),
    /// What this seed makes.
    Seed(RandomSeed),
}

/// Overrides of random functions, by call.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct RandomOverrides(Arc<BTreeMap<RandomCall, RandomOverride>>);

impl RandomOverrides {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn text_of(&self, call: RandomCall) -> Option<&str> {
        match self.0.get(&call)? {
            RandomOverride::Text(text) => Some(text),
            RandomOverride::Seed(_) => None,
        }
    }

    pub(crate) fn seed_of(&self, call: RandomCall) -> Option<RandomSeed> {
        match self.0.get(&call)? {
            RandomOverride::Seed(seed) => Some(*seed),
            RandomOverride::Text(_) => None,
        }
    }
}

impl FromIterator<(RandomCall, RandomOverride)> for RandomOverrides {
    fn from_iter<T: IntoIterator<Item = (RandomCall, RandomOverride)>>(overrides: T) -> Self {
        Self(Arc::new(overrides.into_iter().collect()))
    }
}

/// Without the texts, which may be passwords.
impl fmt::Debug for RandomOverrides {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RandomOverrides").field(&self.0.len()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(alphabet: Alphabet, text: &str) -> RandomText {
        RandomText { call: RandomCall::from_hash([0; 32]), text: text.to_owned(), alphabet }
    }

    #[test]
    fn a_call_could_give_a_text_of_its_length_and_characters_only() {
        let rows = [
            (Alphabet::Alphanumeric, "aB3dE", "zZ9yX", true),
            (Alphabet::Alphanumeric, "aB3dE", "zZ9y", false),
            (Alphabet::Alphanumeric, "aB3dE", "zZ9y'", false),
            (Alphabet::Letters, "abcde", "abcd1", false),
            (Alphabet::Digits, "12345", "54321", true),
            (Alphabet::Base64, "ab+/cQ==", "zz/+xA==", true),
            (Alphabet::Base64, "ab+/cQ==", "zz/+xAxx", false),
            (Alphabet::Uuid, "0-af", "1-bc", true),
            (Alphabet::Uuid, "0-af", "11bc", false),
        ];
        for (alphabet, own, other, expected) in rows {
            assert_eq!(text(alphabet, own).could_be(other), expected, "{own} {other}");
        }
    }

    #[test]
    fn texts_that_cannot_be_recognized_are_not_noted_nor_more_than_the_bound() {
        let mut texts = RandomTexts::default();
        texts.note(&text(Alphabet::Alphanumeric, "abcd"));
        texts.note(&text(Alphabet::Printable, "abcdef"));
        assert!(texts.texts.is_empty());
        for _ in 0..3000 {
            texts.note(&text(Alphabet::Alphanumeric, &"a".repeat(1000)));
        }
        assert_eq!(texts.into_vec().len(), MOST_BYTES / 1000);
    }
}
