//! Seeds that nobody can guess.

use std::hash::{BuildHasher as _, RandomState};

use super::RandomSeed;

/// A new seed from the operating system's generator. Passwords that charts make are as good as it.
pub fn fresh_seed() -> RandomSeed {
    let mut seed = [0; 32];
    if getrandom::fill(&mut seed).is_err() {
        // No known system comes here. The standard library's own way to the system's randomness has
        // fewer bits, but ends the process rather than give none.
        for part in seed.chunks_exact_mut(8) {
            part.copy_from_slice(
                &RandomState::new().hash_one(std::time::SystemTime::now()).to_be_bytes(),
            );
        }
    }
    seed.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_seeds_are_alike_and_none_is_printed() {
        let (a, b) = (fresh_seed(), fresh_seed());
        assert_ne!(a, b);
        assert!(a.as_bytes().chunks_exact(8).all(|part| part != [0; 8]));
        assert_eq!(format!("{a:?}"), "RandomSeed(..)");
    }
}
