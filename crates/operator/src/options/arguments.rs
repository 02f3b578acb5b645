//! Command lines as Go programs take them.

use std::ffi::OsString;

/// The program's arguments, with long flags behind one dash (`-leader-elect`, as hybrid projects have
/// them) written with two.
pub fn arguments() -> Vec<OsString> {
    normalised(std::env::args_os())
}

/// The same of other arguments: one dash becomes two where more than one letter follows, up to `--`.
pub fn normalised(words: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut flags = true;
    let words = words.into_iter().map(move |word| {
        flags = flags && word != "--";
        match word.to_str().and_then(|text| text.strip_prefix('-')) {
            Some(name) if flags && is_long(name) => OsString::from(format!("--{name}")),
            _ => word,
        }
    });
    words.collect()
}

fn is_long(name: &str) -> bool {
    let end = name.find('=').unwrap_or(name.len());
    end > 1 && name.starts_with(|first: char| first.is_ascii_alphabetic())
}

/// A boolean in the spellings of Go's `strconv.ParseBool`.
pub(crate) fn boolean(text: &str) -> Result<bool, String> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
        _ => Err("it is neither true nor false".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_dash_is_as_good_as_two() {
        let line = "p -a=1 --b -long -long=x - -h -5m -- -after";
        let words = line.split(' ').map(OsString::from);
        let found: Vec<_> =
            normalised(words).into_iter().map(|word| word.into_string().unwrap()).collect();
        assert_eq!(found.join(" "), "p -a=1 --b --long --long=x - -h -5m -- -after");
    }
}
