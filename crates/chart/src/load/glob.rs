//! Shell globs as Go's `filepath.Match` has them, for `.helmignore`.

/// A pattern that is no glob.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BadPattern;

/// Whether the whole name matches. `*` and `?` never match a slash.
pub(super) fn matches(pattern: &str, name: &str) -> Result<bool, BadPattern> {
    let tokens = parse(pattern)?;
    let name: Vec<char> = name.chars().collect();
    Ok(run(&tokens, &name))
}

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
fn run(tokens: &[Token], name: &[char]) -> bool {
    let (mut t, mut n) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    loop {
        let step = match (tokens.get(t), name.get(n)) {
            (None, None) => return true,
            (Some(Token::Star), _) => {
                star = Some((t, n));
                t += 1;
                continue;
            }
            (Some(token), Some(&c)) => accepts(token, c),
            _ => false,
        };
        if step {
            t += 1;
            n += 1;
            continue;
        }
        match star {
            Some((at, from)) if name.get(from).is_some_and(|&c| c != '/') => {
                star = Some((at, from + 1));
                t = at + 1;
                n = from + 1;
            }
            _ => return false,
        }
    }
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
            assert_eq!(matches(pattern, name), Ok(expected), "{pattern} {name}");
        }
        for bad in ["[]a]", "[-]", "[x-]", "[", "[^", "a[", "\\"] {
            assert_eq!(matches(bad, "a"), Err(BadPattern), "{bad}");
        }
    }
}
