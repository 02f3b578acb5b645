//! Chance that can be repeated.

use std::time::{SystemTime, UNIX_EPOCH};

/// Dice by which a test does things at random: the same seed throws the same again.
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    /// By the seed in `$CHAOS_SEED`, or another one each time; it is printed.
    pub fn new() -> Self {
        let set = std::env::var("CHAOS_SEED").ok().and_then(|seed| seed.parse().ok());
        let seed = set.unwrap_or_else(|| {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            u64::from(now.subsec_nanos())
        });
        println!("repeat with CHAOS_SEED={seed}");
        Self::seeded(seed)
    }

    /// By a seed.
    pub fn seeded(seed: u64) -> Self {
        Self(seed)
    }

    /// A number below `sides`, which is at least 1 (splitmix64).
    pub fn throw(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % sides.max(1)
    }
}

impl Default for Dice {
    fn default() -> Self {
        Self::new()
    }
}
