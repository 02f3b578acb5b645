//! The words of a command line of helm's, as clap is to read them.

use std::ffi::{OsStr, OsString};

/// Switches of all commands, which take no word behind them.
const SWITCHES: [&str; 5] = ["--debug", "--kube-insecure-skip-tls-verify", "--help", "-h", "-V"];

/// Commands of helm's that are made of others.
const GROUPS: [&str; 5] = ["show", "inspect", "dependency", "dep", "dependencies"];

/// The same words with the command before its flags: helm takes `-n x template demo c` too. Any flag
/// there but a switch takes the word behind it, unless it has an `=`.
pub(crate) fn command_first(mut words: Vec<OsString>) -> Vec<OsString> {
    bring(&mut words, 1);
    if words.get(1).is_some_and(|word| is_group(word)) {
        bring(&mut words, 2);
    }
    words
}

/// Whether a word is a command of helm's that is made of others.
pub(crate) fn is_group(word: &OsStr) -> bool {
    GROUPS.iter().any(|group| word == OsStr::new(group))
}

/// Brings the first word from a place on that is no flag, and no flag's, to that place.
fn bring(words: &mut [OsString], to: usize) {
    let Some(rest) = words.get_mut(to..) else { return };
    let mut at = 0;
    while let Some(word) = rest.get(at).map(|word| word.as_encoded_bytes()) {
        match word {
            b"--" => return,
            [b'-', ..] if word.contains(&b'=') => at += 1,
            [b'-', b'-', ..] | [b'-', _] => {
                at += if SWITCHES.iter().any(|switch| switch.as_bytes() == word) { 1 } else { 2 };
            }
            [b'-', _, ..] => at += 1,
            _ => {
                if let Some(before) = rest.get_mut(..=at) {
                    before.rotate_right(1);
                }
                return;
            }
        }
    }
}

/// The same words with every value written out: of a flag of one letter with nothing behind its `=`,
/// pflag takes the `=` for the value.
pub(crate) fn in_helms_manner(words: Vec<OsString>) -> Vec<OsString> {
    let mut flags = true;
    let in_manner = |mut word: OsString| {
        flags &= word != "--";
        if let [b'-', letter, b'='] = word.as_encoded_bytes()
            && letter.is_ascii_alphabetic()
            && flags
        {
            word.push("=");
        }
        word
    };
    words.into_iter().map(in_manner).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_may_come_before_the_command() {
        for (line, expected) in [
            ("c template demo x -n y", "c template demo x -n y"),
            ("c -n y template demo x", "c template -n y demo x"),
            ("c --debug --namespace=y template demo", "c template --debug --namespace=y demo"),
            ("c --namespace template demo", "c demo --namespace template"),
            ("c -ny template", "c template -ny"),
            ("c show --version 1 chart x", "c show chart --version 1 x"),
            ("c -- template demo", "c -- template demo"),
            ("c --help", "c --help"),
            ("c -n", "c -n"),
            ("c", "c"),
        ] {
            let words = command_first(line.split(' ').map(OsString::from).collect());
            assert_eq!(words.join(OsStr::new(" ")), expected);
        }
    }
}
