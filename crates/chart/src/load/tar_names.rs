//! A guard in front of the reader of archives, which takes names of any length into memory.

use std::io::{Error, Read, Result};

/// The longest header that carries a name, or other facts of a file.
const LONGEST: u64 = 64 << 10;
const BLOCK: usize = 512;

/// Reads an archive through, and ends it at a header that is too long.
pub(super) struct ShortNames<R> {
    archive: R,
    /// Bytes until the next header.
    skip: u64,
    header: [u8; BLOCK],
    filled: usize,
    /// The blocks that follow belong to a sparse file's header.
    sparse: bool,
    /// What the sparse file holds besides its header.
    content: u64,
}

impl<R> ShortNames<R> {
    pub(super) fn new(archive: R) -> Self {
        Self { archive, skip: 0, header: [0; BLOCK], filled: 0, sparse: false, content: 0 }
    }

    fn watch(&mut self, mut data: &[u8]) -> Result<()> {
        while !data.is_empty() {
            let skipped = usize::try_from(self.skip).unwrap_or(usize::MAX).min(data.len());
            self.skip -= skipped as u64;
            data = data.get(skipped..).unwrap_or_default();
            let missing = self.header.get_mut(self.filled..).unwrap_or_default();
            let taken = missing.len().min(data.len());
            for (to, from) in missing.iter_mut().zip(data) {
                *to = *from;
            }
            self.filled += taken;
            data = data.get(taken..).unwrap_or_default();
            if self.filled == BLOCK {
                self.filled = 0;
                self.block()?;
            }
        }
        Ok(())
    }

    /// A header is complete.
    fn block(&mut self) -> Result<()> {
        let byte = |at: usize| self.header.get(at).copied().unwrap_or(0);
        if self.sparse {
            self.sparse = byte(504) != 0;
            self.skip = if self.sparse { 0 } else { self.content };
            return Ok(());
        }
        let size = size(self.header.get(124..136).unwrap_or_default());
        if matches!(byte(156), b'L' | b'K' | b'x' | b'g' | b'X') && size > LONGEST {
            return Err(Error::other("archive/tar: header field too long"));
        }
        let padded = size.div_ceil(BLOCK as u64).saturating_mul(BLOCK as u64);
        self.sparse = byte(156) == b'S' && byte(482) != 0;
        self.content = padded;
        self.skip = if self.sparse { 0 } else { padded };
        Ok(())
    }
}

/// The size in a header: octal digits, or for large ones a number of 95 bits.
fn size(field: &[u8]) -> u64 {
    if field.first().is_some_and(|first| first & 0x80 != 0) {
        return field.iter().skip(4).fold(0, |size, byte| size << 8 | u64::from(*byte));
    }
    let digits = field.iter().filter(|byte| (b'0'..=b'7').contains(byte));
    digits.fold(0_u64, |size, byte| size.wrapping_shl(3) | u64::from(byte - b'0'))
}

impl<R: Read> Read for ShortNames<R> {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        let count = self.archive.read(buffer)?;
        self.watch(buffer.get(..count).unwrap_or_default())?;
        Ok(count)
    }
}
