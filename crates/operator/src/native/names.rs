//! Names that follow from what they are for.

use sha2::{Digest, Sha256};

/// The characters of generated names of Kubernetes: none that are taken for another, and no vowels.
const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

/// `prefix` and five characters that follow from the owner's uid and a running number.
pub(super) fn numbered(prefix: &str, uid: &str, number: u64) -> String {
    let digest = Sha256::digest(format!("{uid}/{number}"));
    let suffix = digest.iter().take(5).filter_map(|byte| ALPHABET.get(usize::from(*byte) % 27));
    prefix.chars().chain(suffix.map(|byte| char::from(*byte))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn names_are_the_same_every_time_and_differ_by_owner_and_number() {
        assert_eq!(numbered("switch-", "u", 3), numbered("switch-", "u", 3));
        let names: HashSet<String> = (0..200).map(|n| numbered("switch-", "u", n)).collect();
        assert_eq!(names.len(), 200);
        assert_ne!(numbered("switch-", "u", 0), numbered("switch-", "v", 0));
        assert!(names.iter().all(|name| name.len() == "switch-".len() + 5));
    }
}
