//! The globs of `.Files.Glob`: `*` inside one level, `**` across levels, `?`,
//! `[a-c]`, `[!a]`, `{a,b}`.

/// A pattern, ready to be matched.
pub(super) struct Glob(Option<Vec<Vec<Token>>>);

impl Glob {
    /// A pattern that is no glob matches every name, as in Helm.
    pub(super) fn new(pattern: &str) -> Self {
        Self(parse(pattern))
    }

    /// Whether a name matches.
    pub(super) fn matches(&self, name: &str) -> bool {
        let Some(alternatives) = &self.0 else { return true };
        let name: Vec<char> = name.chars().collect();
        alternatives.iter().any(|tokens| run(tokens, &name))
    }

    /// How much there is to match a name with.
    pub(super) fn size(&self) -> usize {
        self.0.iter().flatten().map(Vec::len).sum()
    }
}

/// What [`Glob::new`] may take for a pattern, in bytes.
pub(super) fn cost(pattern: &str) -> usize {
    let alternatives = if pattern.contains('{') { MAX_ALTERNATIVES } else { 1 };
    pattern.len().saturating_mul(alternatives * size_of::<Token>())
}

#[derive(Clone, Debug)]
enum Token {
    Literal(char),
    /// `?`: any but a slash.
    One,
    /// `*`
    Star,
    /// `**`
    DoubleStar,
    Class {
        negated: bool,
        ranges: Vec<(char, char)>,
    },
}

/// How many patterns the braces of one may stand for.
const MAX_ALTERNATIVES: usize = 1000;

fn parse(pattern: &str) -> Option<Vec<Vec<Token>>> {
    let mut chars = pattern.chars().peekable();
    let (found, closed) = sequence(&mut chars, 0)?;
    (closed.is_none()).then_some(found).filter(|found| found.len() <= MAX_ALTERNATIVES)
}

type Chars<'a> = std::iter::Peekable<std::str::Chars<'a>>;

/// Reads up to the end, or inside braces up to `,` or `}`, which is returned.
fn sequence(chars: &mut Chars<'_>, depth: usize) -> Option<(Vec<Vec<Token>>, Option<char>)> {
    let mut found = vec![Vec::new()];
    while let Some(c) = chars.next() {
        let token = match c {
            ',' | '}' if depth > 0 => return Some((found, Some(c))),
            '{' if depth < 32 => {
                found = product(&found, &braces(chars, depth + 1)?)?;
                continue;
            }
            '{' => return None,
            '\\' => Token::Literal(chars.next()?),
            '?' => Token::One,
            '*' if chars.next_if_eq(&'*').is_some() => Token::DoubleStar,
            '*' => Token::Star,
            '[' => class(chars)?,
            c => Token::Literal(c),
        };
        for tokens in &mut found {
            tokens.push(token.clone());
        }
    }
    Some((found, None))
}

fn braces(chars: &mut Chars<'_>, depth: usize) -> Option<Vec<Vec<Token>>> {
    let mut all = Vec::new();
    loop {
        let (found, end) = sequence(chars, depth)?;
        all.extend(found);
        if all.len() > MAX_ALTERNATIVES {
            return None;
        }
        // A brace that is never closed ends with the pattern.
        if end != Some(',') {
            return Some(all);
        }
    }
}

fn product(heads: &[Vec<Token>], tails: &[Vec<Token>]) -> Option<Vec<Vec<Token>>> {
    if heads.len().saturating_mul(tails.len()) > MAX_ALTERNATIVES {
        return None;
    }
    let join = |head: &Vec<Token>, tail: &Vec<Token>| head.iter().chain(tail).cloned().collect();
    Some(heads.iter().flat_map(|head| tails.iter().map(move |tail| join(head, tail))).collect())
}

/// One range, or a list of characters; a list knows no ranges.
fn class(chars: &mut Chars<'_>) -> Option<Token> {
    let negated = chars.next_if_eq(&'!').is_some();
    let low = chars.next().filter(|c| *c != ']')?;
    if low != '\\' && chars.next_if_eq(&'-').is_some() {
        let high = chars.next()?;
        let ranges = vec![(low, high)];
        return (chars.next()? == ']').then_some(Token::Class { negated, ranges });
    }
    let mut ranges = Vec::new();
    let mut next = low;
    loop {
        match next {
            ']' => return Some(Token::Class { negated, ranges }),
            '\\' => ranges.push(chars.next().map(|c| (c, c))?),
            c => ranges.push((c, c)),
        }
        next = chars.next()?;
    }
}

/// Set of reachable positions, token by token: linear in pattern times name.
fn run(tokens: &[Token], name: &[char]) -> bool {
    let mut reached = vec![false; name.len() + 1];
    if let Some(first) = reached.first_mut() {
        *first = true;
    }
    for token in tokens {
        reached = advance(token, name, &reached);
    }
    reached.last().copied().unwrap_or(false)
}

fn advance(token: &Token, name: &[char], reached: &[bool]) -> Vec<bool> {
    let mut next = vec![false; reached.len()];
    let mut carried = false;
    for (at, &here) in reached.iter().enumerate() {
        let c = name.get(at).copied();
        let step = match token {
            Token::Star | Token::DoubleStar => {
                carried |= here;
                set(&mut next, at, carried);
                carried &= matches!(token, Token::DoubleStar) || c != Some('/');
                continue;
            }
            Token::Literal(l) => c == Some(*l),
            Token::One => c.is_some_and(|c| c != '/'),
            Token::Class { negated, ranges } => c.is_some_and(|c| {
                ranges.iter().any(|&(low, high)| low <= c && c <= high) != *negated
            }),
        };
        if here && step {
            set(&mut next, at + 1, true);
        }
    }
    next
}

fn set(flags: &mut [bool], at: usize, value: bool) {
    if let Some(flag) = flags.get_mut(at) {
        *flag |= value;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_match_as_in_helm() {
        let cases = [
            ("*", "a.txt", true),
            ("*", "conf/a.txt", false),
            ("**", "conf/a.txt", true),
            ("conf/*", "conf/a.txt", true),
            ("conf/*", "conf/b/a.txt", false),
            ("conf/**", "conf/b/a.txt", true),
            ("**.txt", "conf/b/a.txt", true),
            ("conf/{a,b}.txt", "conf/b.txt", true),
            ("conf/{a,b}.txt", "conf/c.txt", false),
            ("{*.txt,conf/**}", "conf/c/d", true),
            ("[a-c].txt", "b.txt", true),
            ("[!a-c].txt", "b.txt", false),
            ("?.txt", "é.txt", true),
            ("a\\*", "a*", true),
            ("[", "anything/at/all", true),
            ("[]", "anything/at/all", true),
            ("{a", "a", true),
            ("{a", "anything", false),
            ("", "x", false),
        ];
        for (pattern, name, expected) in cases {
            assert_eq!(Glob::new(pattern).matches(name), expected, "{pattern} {name}");
        }
    }
}
