//! Shell globs as Go's `filepath.Match` has them, for `.helmignore`.

/// A pattern that is no glob.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BadPattern;

/// A pattern, ready to be held against any number of names.
#[derive(Debug)]
pub(super) struct Glob(Vec<Token>);

impl Glob {
    pub(super) fn parse(pattern: &str) -> Result<Self, BadPattern> {
        parse(pattern).map(Self)
    }

    /// Whether the whole name matches. `*` and `?` never match a slash.
    pub(super) fn matches(&self, name: &str) -> bool {
        run(&self.0, name)
    }
}

#[derive(Debug)]
enum Token {
    Star,
    Any,
    Literal(char),
    Class { negated: bool, ranges: Vec<(char, char)> },
}

fn parse(pattern: &str) -> Result<Vec<Token>, BadPattern> {
    let mut chars = pattern.chars().peekable();
    let mut tokens = Vec::new();
    while let Some(c) = chars.next() {
        tokens.push(match c {
            '*' => Token::Star,
            '?' => Token::Any,
            '\\' => Token::Literal(chars.next().ok_or(BadPattern)?),
            '[' => class(&mut chars)?,
            c => Token::Literal(c),
        });
    }
    Ok(tokens)
}

fn class(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Result<Token, BadPattern> {
    let negated = chars.next_if_eq(&'^').is_some();
    let mut ranges = Vec::new();
    loop {
        if !ranges.is_empty() && chars.next_if_eq(&']').is_some() {
            return Ok(Token::Class { negated, ranges });
        }
        let low = class_char(chars)?;
        let high = if chars.next_if_eq(&'-').is_some() { class_char(chars)? } else { low };
        ranges.push((low, high));
    }
}

fn class_char(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Result<char, BadPattern> {
    match chars.next().ok_or(BadPattern)? {
        '-' | ']' => Err(BadPattern),
        '\\' => chars.next().ok_or(BadPattern),
        c => Ok(c),
    }
}

/// Greedy with one point to come back to: the last star. Since a star stops at
/// slashes, coming back never needs an earlier one.
fn run(mut tokens: &[Token], mut name: &str) -> bool {
    // What comes behind the star, and the name from where the star ends.
    let mut star: Option<(&[Token], &str)> = None;
    loop {
        match (tokens.split_first(), split_first(name)) {
            (None, None) => return true,
            (Some((Token::Star, behind)), _) => {
                star = Some((behind, name));
                tokens = behind;
            }
            (Some((token, others)), Some((c, rest))) if accepts(token, c) => {
                (tokens, name) = (others, rest);
            }
            _ => match star.and_then(|(behind, from)| Some((behind, split_first(from)?))) {
                Some((behind, (c, rest))) if c != '/' => {
                    star = Some((behind, rest));
                    (tokens, name) = (behind, rest);
                }
                _ => return false,
            },
        }
    }
}

fn split_first(name: &str) -> Option<(char, &str)> {
    let mut chars = name.chars();
    chars.next().map(|first| (first, chars.as_str()))
}

fn accepts(token: &Token, c: char) -> bool {
    match token {
        Token::Star => false,
        Token::Any => c != '/',
        Token::Literal(l) => *l == c,
        Token::Class { negated, ranges } => {
            ranges.iter().any(|&(low, high)| low <= c && c <= high) != *negated
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_match_as_in_go() {
        let cases = [
            ("abc", "abc", true),
            ("*", "abc", true),
            ("*c", "abc", true),
            ("a*", "ab/c", false),
            ("a*/b", "abc/b", true),
            ("a*/b", "a/c/b", false),
            ("a*b*c*d*e*/f", "axbxcxdxexxx/f", true),
            ("a*b*c*d*e*/f", "axbxcxdxexxx/fff", false),
            ("ab[c]", "abc", true),
            ("ab[b-d]", "abc", true),
            ("ab[^c]", "abc", false),
            ("ab[^e-g]", "abc", true),
            ("a\\*b", "a*b", true),
            ("a\\*b", "ab", false),
            ("a?b", "a/b", false),
            ("*x", "xxx", true),
            ("templates/.?*", "templates/.dotfile", true),
            ("templates/.?*", "templates/x.yaml", false),
        ];
        for (pattern, name, expected) in cases {
            let glob = Glob::parse(pattern).unwrap();
            assert_eq!(glob.matches(name), expected, "{pattern} {name}");
        }
        for bad in ["[]a]", "[-]", "[x-]", "[", "[^", "a[", "\\"] {
            assert_eq!(Glob::parse(bad).unwrap_err(), BadPattern, "{bad}");
        }
    }
}
