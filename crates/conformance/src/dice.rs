//! Chance that can be repeated.

/// Random choices decided by a seed (SplitMix64).
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    /// Of a run's seed and the number of a case.
    pub fn new(seed: u64, case: u64) -> Self {
        let mut dice = Self(seed ^ 0x5DEE_CE66_D1CE_4E5B);
        dice.0 = dice.bits() ^ case.wrapping_mul(0x2545_F491_4F6C_DD1D);
        dice.bits();
        dice
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below a bound (0 for 0).
    pub fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.bits() % (bound.max(1) as u64)).unwrap_or(0)
    }

    /// True in so many of a hundred cases.
    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// One of several; there must be one.
    pub fn pick<'a, T: ?Sized>(&mut self, from: &[&'a T]) -> &'a T {
        from[self.below(from.len())]
    }

    /// One of several.
    pub fn choose<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }
}
