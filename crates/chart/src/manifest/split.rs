//! A rendered file, taken apart into documents.
//!
//! Helm does it with one regular expression, another one in each generation;
//! both are scanners here. Neither knows YAML: a `---` in a block scalar at the
//! start of a line splits, as it does in Helm.

use std::sync::LazyLock;

use memchr::memmem::Finder;

use crate::Profile;

/// The documents of a rendered file, white space trimmed as that Helm trims it.
pub fn split(text: &str, profile: Profile) -> Vec<&str> {
    match profile {
        Profile::Helm318 => split_318(text),
        Profile::Helm43 => split_43(text),
    }
}

/// `(?m)^---[ \t]*`; the start of each document is trimmed, its end is kept.
fn split_43(text: &str) -> Vec<&str> {
    let text = text.trim_start();
    let mut documents = Vec::new();
    let mut start = 0;
    let mut at = 0;
    while let Some(marker) = next_marker(text, at) {
        documents.extend(text.get(start..marker));
        let rest = text.get(marker + 3..).unwrap_or_default();
        start = text.len() - rest.trim_start_matches([' ', '\t']).len();
        at = start;
    }
    documents.extend(text.get(start..));
    documents.into_iter().map(str::trim_start).filter(|d| !d.is_empty()).collect()
}

/// The first `---` at the start of a line, not before `from`.
fn next_marker(text: &str, from: usize) -> Option<usize> {
    if from == 0 && text.starts_with("---") {
        return Some(0);
    }
    // A line starts after its newline even where the search starts there.
    let search = from.saturating_sub(1);
    find_marker(text.get(search..)?).map(|found| search + found + 1)
}

/// `(?:^|\s*\n)---\s*`; both ends of each document are trimmed.
fn split_318(text: &str) -> Vec<&str> {
    let text = text.trim();
    let mut documents = Vec::new();
    let mut start = 0;
    if text.starts_with("---") {
        documents.push("");
        start = after_white(text, 3);
    }
    while let Some(found) = text.get(start..).and_then(find_marker) {
        let newline = start + found;
        let document = text.get(start..newline).unwrap_or_default();
        documents.push(document.trim_end_matches(is_white));
        start = after_white(text, newline + 4);
    }
    documents.extend(text.get(start..));
    documents.into_iter().filter(|d| !d.is_empty()).map(str::trim).collect()
}

fn find_marker(text: &str) -> Option<usize> {
    static MARKER: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\n---"));
    MARKER.find(text.as_bytes())
}

fn after_white(text: &str, from: usize) -> usize {
    let rest = text.get(from..).unwrap_or_default();
    text.len() - rest.trim_start_matches(is_white).len()
}

/// RE2's `\s`.
fn is_white(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r' | '\u{c}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_split_as_in_each_helm() {
        // text, 3.18, 4.3
        let cases: &[(&str, &[&str], &[&str])] = &[
            ("", &[], &[]),
            ("\n \n", &[], &[]),
            ("a: 1\n", &["a: 1"], &["a: 1\n"]),
            ("---\na: 1\n---\nb: 2\n", &["a: 1", "b: 2"], &["a: 1\n", "b: 2\n"]),
            ("\n\n--- \t\na: 1\n\n\n---\n\nb: 2", &["a: 1", "b: 2"], &["a: 1\n\n\n", "b: 2"]),
            ("a: 1\n---b: 2\n", &["a: 1", "b: 2"], &["a: 1\n", "b: 2\n"]),
            ("a: 1\n  ---\nb: 2\n", &["a: 1\n  ---\nb: 2"], &["a: 1\n  ---\nb: 2\n"]),
            ("---\n---\na: 1", &["---\na: 1"], &["a: 1"]),
            ("a: 1\n---\n---\nb: 2", &["a: 1", "---\nb: 2"], &["a: 1\n", "b: 2"]),
            ("a\r\n---\r\nb\r\n", &["a", "b"], &["a\r\n", "b\r\n"]),
            ("---- a", &["- a"], &["- a"]),
            ("--- # x\na: 1", &["# x\na: 1"], &["# x\na: 1"]),
            ("a: |+\n  b\n\n---\nc", &["a: |+\n  b", "c"], &["a: |+\n  b\n\n", "c"]),
            ("a\n---", &["a"], &["a\n"]),
            ("a\n---\u{a0}b", &["a", "b"], &["a\n", "b"]),
        ];
        for (text, old, new) in cases {
            assert_eq!(split(text, Profile::Helm318), *old, "3.18 {text:?}");
            assert_eq!(split(text, Profile::Helm43), *new, "4.3 {text:?}");
        }
    }
}
