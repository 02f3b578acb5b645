//! The words of a command line of helm's, as clap is to read them.

use std::ffi::{OsStr, OsString};

use super::flags::go_bool;

/// Switches of all commands, which take no word behind them.
const SWITCHES: [&str; 5] = ["--debug", "--kube-insecure-skip-tls-verify", "--help", "-h", "-V"];

/// The commands that helm has too.
const COMMANDS: [&str; 18] = [
    "template",
    "lint",
    "show",
    "inspect",
    "install",
    "upgrade",
    "rollback",
    "uninstall",
    "del",
    "delete",
    "un",
    "test",
    "status",
    "history",
    "hist",
    "dependency",
    "dep",
    "dependencies",
];

/// Those that are made of others.
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

/// Whether a word is a command that helm has, too.
pub(crate) fn is_helms(word: &OsStr) -> bool {
    COMMANDS.iter().any(|command| word == OsStr::new(command))
}

/// Whether a word is a command of helm's that is made of others.
fn is_group(word: &OsStr) -> bool {
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

/// The same words as clap is to have them: `--help` alone where it is to be shown, since helm takes
/// `--help=false` too, and every value written out.
///
/// # Errors
///
/// A value of `--help` that is no boolean, in helm's words.
pub(crate) fn in_helms_manner(words: Vec<OsString>) -> Result<Vec<OsString>, String> {
    let mut flags = true;
    let mut read = Vec::with_capacity(words.len());
    for word in words {
        flags &= word != "--";
        match word.to_str().and_then(help).filter(|_| flags) {
            Some(asked) => read.extend(asked?.then(|| OsString::from("--help"))),
            None if flags => read.push(with_value(word)),
            None => read.push(word),
        }
    }
    Ok(read)
}

/// Whether a word with a value asks for help; `None` if it is not about help.
fn help(word: &str) -> Option<Result<bool, String>> {
    let short = word.strip_prefix("-h=").filter(|value| !value.is_empty());
    let value = word.strip_prefix("--help=").or(short)?;
    Some(
        go_bool(value).map_err(|why| {
            format!("Error: invalid argument {value:?} for \"-h, --help\" flag: {why}")
        }),
    )
}

/// Of a flag of one letter with nothing behind its `=`, pflag takes the `=` for the value.
fn with_value(mut word: OsString) -> OsString {
    if let [b'-', letter, b'='] = word.as_encoded_bytes()
        && letter.is_ascii_alphabetic()
    {
        word.push("=");
    }
    word
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
