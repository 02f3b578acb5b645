//! Words in a name: `CamelCase`, `snake_case`, `kebab-case`, with the rules (and oddities) of the Go
//! library behind Sprig.

use crate::strings::is_space;
use crate::texts::{lower, upper};

fn is_connector(c: char) -> bool {
    c == '-' || c == '_' || is_space(c)
}

/// Letters of which words are made; characters that are words themselves are none.
fn is_letter(c: char) -> bool {
    c.is_alphabetic()
        && !matches!(c, '\u{4e00}'..='\u{9fcc}' | '\u{3400}'..='\u{4d85}' | '\u{20000}'..='\u{2b81d}')
}

/// `CamelCase`: connectors go, what follows them is big. Leading connectors stay.
pub(crate) fn pascal(text: &str) -> String {
    let body = text.trim_start_matches(is_connector);
    let mut out = text.get(..text.len() - body.len()).unwrap_or_default().to_owned();
    let mut chars = body.chars();
    let Some(first) = chars.next() else {
        // Nothing but connectors: the last one comes twice.
        out.extend(text.chars().next_back());
        return out;
    };
    let mut upper_run = first.is_uppercase();
    let mut before = upper(first);
    for c in chars {
        let mut c = c;
        match (is_connector(before), is_connector(c)) {
            (true, true) => {
                out.push(before);
                before = c;
                continue;
            }
            (true, false) => {
                upper_run = c.is_uppercase();
                c = upper(c);
            }
            _ => {
                if upper_run {
                    if c.is_uppercase() {
                        c = lower(c);
                    } else {
                        upper_run = false;
                    }
                }
                out.push(before);
            }
        }
        before = c;
    }
    out.push(before);
    out
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    End,
    Number,
    Upper,
    Letters,
    Connector,
    Punctuation,
    Other,
}

/// The words of a text, one after the other.
struct Words<'t>(&'t str);

impl<'t> Words<'t> {
    fn next(&mut self) -> (Kind, &'t str) {
        let Some(first) = self.0.chars().next() else { return (Kind::End, "") };
        let (kind, length) = if is_connector(first) {
            (Kind::Connector, self.run(is_connector))
        } else if is_punctuation(first) {
            (Kind::Punctuation, self.run(is_punctuation))
        } else if first.is_uppercase() {
            (Kind::Upper, self.upper_word())
        } else if is_letter(first) {
            (Kind::Letters, self.run(|c| is_letter(c) && !c.is_uppercase()))
        } else if first.is_numeric() {
            (Kind::Number, self.run(char::is_numeric))
        } else {
            let plain =
                |c: char| !(is_connector(c) || is_letter(c) || c.is_numeric() || is_punctuation(c));
            (Kind::Other, self.run(plain))
        };
        let (word, rest) = self.0.split_at(length);
        self.0 = rest;
        (kind, word)
    }

    fn run(&self, belongs: impl Fn(char) -> bool) -> usize {
        self.0.find(|c| !belongs(c)).unwrap_or(self.0.len())
    }

    /// `HTTPStatus` is `HTTP` and `Status`; `Status` is one word.
    fn upper_word(&self) -> usize {
        let big = self.run(char::is_uppercase);
        let after = self.0.get(big..).unwrap_or_default();
        let small_follows = after.starts_with(is_letter);
        let count = self.0.get(..big).unwrap_or_default().chars().count();
        if count == 1 {
            let small = after.find(|c: char| !is_letter(c) || c.is_uppercase());
            return big + small.unwrap_or(after.len());
        }
        if !small_follows {
            return big;
        }
        self.0.char_indices().nth(count - 1).map_or(big, |(at, _)| at)
    }
}

/// Lower case, with a connector between words. A number belongs to the word in front of it, unless
/// small letters follow it.
pub(crate) fn separate(text: &str, connector: char) -> String {
    let mut out = String::with_capacity(text.len() + 4);
    let mut words = Words(text);
    let (mut kind, mut word) = words.next();
    while !words.0.is_empty() {
        if kind != Kind::Connector {
            write_lower(&mut out, kind, word, connector);
        }
        let (before, last) = (kind, word);
        (kind, word) = words.next();
        match before {
            Kind::Number => {
                (kind, word) = write_run(&mut out, &mut words, kind, word, connector);
                if !matches!(kind, Kind::End | Kind::Punctuation | Kind::Connector) {
                    out.push(connector);
                }
            }
            Kind::Connector => write_lower(&mut out, before, last, connector),
            Kind::Punctuation => {}
            _ if kind != Kind::Number => {
                if kind != Kind::Connector && kind != Kind::Punctuation {
                    out.push(connector);
                }
            }
            _ if words.0.is_empty() => {}
            _ => {
                let number = word;
                (kind, word) = words.next();
                if kind == Kind::Letters {
                    out.push(connector);
                    write_lower(&mut out, Kind::Number, number, connector);
                    (kind, word) = write_run(&mut out, &mut words, kind, word, connector);
                    if !matches!(kind, Kind::End | Kind::Punctuation | Kind::Connector) {
                        out.push(connector);
                    }
                } else {
                    write_lower(&mut out, Kind::Number, number, connector);
                    if kind != Kind::Connector && kind != Kind::Punctuation {
                        out.push(connector);
                    }
                }
            }
        }
    }
    write_lower(&mut out, kind, word, connector);
    out
}

/// Writes words of small letters and numbers as they come; returns the first other one.
fn write_run<'t>(
    out: &mut String,
    words: &mut Words<'t>,
    mut kind: Kind,
    mut word: &'t str,
    connector: char,
) -> (Kind, &'t str) {
    while matches!(kind, Kind::Letters | Kind::Number) {
        write_lower(out, kind, word, connector);
        (kind, word) = words.next();
    }
    (kind, word)
}

fn write_lower(out: &mut String, kind: Kind, word: &str, connector: char) {
    match kind {
        Kind::Connector => out.extend(word.chars().map(|_| connector)),
        Kind::Upper => out.extend(word.chars().map(lower)),
        _ => out.push_str(word),
    }
}

/// Unicode's punctuation, as far as names have it; symbols (`$ + < = > ^ | ~ \``) are none.
fn is_punctuation(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_punctuation()
            && !matches!(c, '$' | '+' | '<' | '=' | '>' | '^' | '`' | '|' | '~');
    }
    matches!(c, '\u{a1}' | '\u{a7}' | '\u{ab}' | '\u{b6}' | '\u{b7}' | '\u{bb}' | '\u{bf}'
        | '\u{2010}'..='\u{2027}' | '\u{2030}'..='\u{205e}' | '\u{3001}'..='\u{3003}')
}
