//! One look at a text: of which kinds its bytes are, so that what is plain needs no second one.

/// Beyond ASCII, or a control character other than a newline.
const ODD: u8 = 1;
const NEWLINE: u8 = 2;
const SPACE: u8 = 4;
/// `:` and `#`, which mean something at some places.
const INDICATOR: u8 = 8;
const QUOTE: u8 = 16;

static KINDS: [u8; 256] = kinds();

const fn kinds() -> [u8; 256] {
    let mut kinds = [0; 256];
    let mut byte = 0;
    while byte < kinds.len() {
        kinds[byte] = match byte {
            0x0a => NEWLINE,
            0x20 => SPACE,
            0x23 | 0x3a => INDICATOR,
            0x27 => QUOTE,
            0x21..=0x7e => 0,
            _ => ODD,
        };
        byte += 1;
    }
    kinds
}

/// Which kinds of bytes a text has.
#[derive(Debug, Clone, Copy)]
pub(super) struct Look(u8);

impl Look {
    pub fn at(text: &str) -> Self {
        let kind = |byte: u8| KINDS.get(usize::from(byte)).copied().unwrap_or(ODD);
        Self(text.bytes().fold(0, |all, byte| all | kind(byte)))
    }

    /// Printable ASCII and newlines alone.
    pub fn is_plain(self) -> bool {
        self.0 & ODD == 0
    }

    /// Printable ASCII alone.
    pub fn is_plain_line(self) -> bool {
        self.0 & (ODD | NEWLINE) == 0
    }

    pub fn has_newlines(self) -> bool {
        self.0 & NEWLINE != 0
    }

    pub fn has_spaces(self) -> bool {
        self.0 & SPACE != 0
    }

    pub fn has_indicators(self) -> bool {
        self.0 & INDICATOR != 0
    }

    pub fn has_quotes(self) -> bool {
        self.0 & QUOTE != 0
    }
}
