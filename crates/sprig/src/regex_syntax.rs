//! From RE2's syntax to that of the `regex` crate.
//!
//! The two are close. What differs is written out here: Perl's classes and word boundaries are ASCII,
//! `\Q...\E` and octal escapes exist, a brace that counts nothing is a brace, repetitions end at
//! 1000 and cannot be stacked, and inside a class `[`, `&`, `-` and `~` have no further meaning.

use std::iter::Peekable;
use std::str::Chars;

/// The largest count of a repetition.
const MAX_REPEAT: u32 = 1000;

/// The classes that `[[:name:]]` knows.
const POSIX: [&str; 14] = [
    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct",
    "space", "upper", "word", "xdigit",
];

const DIGIT: &str = "0-9";
const SPACE: &str = r"\t\n\x0C\r ";
const WORD: &str = "0-9A-Za-z_";

/// The same expression for the `regex` crate; the error is Go's text.
pub(crate) fn translate(pattern: &str) -> Result<String, String> {
    Translator {
        pattern,
        chars: pattern.chars().peekable(),
        out: String::new(),
        names: Vec::new(),
        repeated: None,
    }
    .run()
}

struct Translator<'p> {
    pattern: &'p str,
    chars: Peekable<Chars<'p>>,
    out: String,
    /// Names of groups so far.
    names: Vec<String>,
    /// The repetition that was just read, if one was.
    repeated: Option<String>,
}

fn error<T>(kind: &str, what: &str) -> Result<T, String> {
    Err(format!("error parsing regexp: {kind}: `{what}`"))
}

impl Translator<'_> {
    fn put(&mut self, text: impl AsRef<str>) {
        self.out.push_str(text.as_ref());
    }

    fn rest(&self) -> String {
        self.chars.clone().collect()
    }

    fn run(mut self) -> Result<String, String> {
        let mut can_repeat = false;
        let mut open = 0_usize;
        while let Some(c) = self.chars.next() {
            let was_repeated = self.repeated.take();
            match c {
                '*' | '+' | '?' => {
                    self.repetition(c.to_string(), can_repeat, was_repeated)?;
                    continue;
                }
                '{' => match self.braces() {
                    Some(text) => {
                        check_counts(&text)?;
                        self.repetition(text, can_repeat, was_repeated)?;
                        continue;
                    }
                    None => self.out.push_str(r"\{"),
                },
                '\\' => self.escape()?,
                '[' => self.class()?,
                '(' => {
                    open += 1;
                    let keeps_group = self.group()?;
                    if !keeps_group {
                        open -= 1;
                    }
                    can_repeat = false;
                    continue;
                }
                ')' => {
                    if open == 0 {
                        return error("unexpected )", self.pattern);
                    }
                    open -= 1;
                    self.out.push(')');
                }
                '|' => {
                    self.out.push('|');
                    can_repeat = false;
                    continue;
                }
                '}' => self.out.push_str(r"\}"),
                ']' => self.out.push_str(r"\]"),
                c => self.out.push(c),
            }
            can_repeat = true;
        }
        if open > 0 {
            return error("missing closing )", self.pattern);
        }
        Ok(self.out)
    }

    fn repetition(
        &mut self,
        mut text: String,
        allowed: bool,
        before: Option<String>,
    ) -> Result<(), String> {
        let lazy = self.chars.next_if_eq(&'?').is_some();
        if !allowed {
            return error("missing argument to repetition operator", &text);
        }
        if lazy {
            text.push('?');
        }
        if let Some(before) = before {
            return error("invalid nested repetition operator", &format!("{before}{text}"));
        }
        self.out.push_str(&text);
        self.repeated = Some(text);
        Ok(())
    }

    /// `{n}`, `{n,}` or `{n,m}` if that is what follows a brace; then it is consumed.
    fn braces(&mut self) -> Option<String> {
        let body: String =
            self.chars.clone().take_while(|c| c.is_ascii_digit() || *c == ',').collect();
        let closed = self.chars.clone().nth(body.len()) == Some('}');
        let (low, high) = body.split_once(',').unwrap_or((&body, ""));
        let plain =
            |digits: &str| !(digits.contains(',') || digits.len() > 1 && digits.starts_with('0'));
        if !closed || low.is_empty() || !plain(low) || !plain(high) {
            return None;
        }
        self.chars.nth(body.len());
        Some(format!("{{{body}}}"))
    }

    /// Behind `(`. False if it was only flags, `(?i)`, without a group.
    fn group(&mut self) -> Result<bool, String> {
        if self.chars.next_if_eq(&'?').is_none() {
            self.out.push('(');
            return Ok(true);
        }
        let rest = self.rest();
        let named = rest.strip_prefix("P<").or_else(|| rest.strip_prefix('<'));
        if let Some(named) = named.filter(|named| !named.starts_with(['=', '!'])) {
            let Some((name, _)) = named.split_once('>') else {
                return error("invalid named capture", &format!("(?{rest}"));
            };
            if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
                let shown = rest.split_inclusive('>').next().unwrap_or_default();
                return error("invalid named capture", &format!("(?{shown}"));
            }
            // A name may begin with a digit here; the crate wants another first character.
            let safe = if name.starts_with(|c: char| c.is_ascii_digit()) { "_" } else { "" };
            // Nor does it want a name twice, as Go does: then it has its number behind two dots.
            let mut unique = format!("{safe}{name}");
            if self.names.contains(&unique) {
                unique = format!("{unique}..{}", self.names.len());
            }
            self.put(format!("(?P<{unique}>"));
            self.names.push(unique);
            let used = rest.len() - named.len() + name.len() + 1;
            self.skip(used);
            return Ok(true);
        }
        let flags: String =
            rest.chars().take_while(|c| matches!(c, 'i' | 'm' | 's' | 'U' | '-')).collect();
        let next = rest.chars().nth(flags.len());
        let sound = !flags.ends_with('-') && flags.matches('-').count() <= 1;
        match next {
            Some(end @ (':' | ')')) if sound => {
                self.skip(flags.len() + 1);
                if flags.is_empty() && end == ')' {
                    return error("missing argument to repetition operator", "?");
                }
                self.put(format!("(?{flags}{end}"));
                Ok(end == ':')
            }
            None => error("missing closing )", self.pattern),
            _ => {
                let shown: String = rest.chars().take(flags.len() + 1).collect();
                error("invalid or unsupported Perl syntax", &format!("(?{shown}"))
            }
        }
    }

    fn skip(&mut self, bytes: usize) {
        let mut left = bytes;
        while left > 0 {
            let Some(c) = self.chars.next() else { return };
            left = left.saturating_sub(c.len_utf8());
        }
    }

    fn escape(&mut self) -> Result<(), String> {
        let Some(c) = self.chars.next() else {
            return error("trailing backslash at end of expression", "");
        };
        match c {
            'd' => self.put(format!("[{DIGIT}]")),
            'D' => self.put(format!("[^{DIGIT}]")),
            's' => self.put(format!("[{SPACE}]")),
            'S' => self.put(format!("[^{SPACE}]")),
            'w' => self.put(format!("[{WORD}]")),
            'W' => self.put(format!("[^{WORD}]")),
            'b' => self.out.push_str(r"(?-u:\b)"),
            'B' => self.out.push_str(r"(?-u:\B)"),
            'A' | 'z' => self.out.extend(['\\', c]),
            'Q' => self.quoted(),
            'C' => return error("invalid escape sequence", r"\C"),
            'p' | 'P' => self.property(c)?,
            c => {
                let c = self.character(c)?;
                self.put(format!("\\x{{{:x}}}", u32::from(c)));
            }
        }
        Ok(())
    }

    /// `\Q...\E`, or to the end.
    fn quoted(&mut self) {
        while let Some(c) = self.chars.next() {
            if c == '\\' && self.chars.next_if_eq(&'E').is_some() {
                return;
            }
            self.literal(c);
        }
    }

    fn literal(&mut self, c: char) {
        if c.is_ascii_punctuation() {
            self.out.push('\\');
            // `\<` and `\>` would be word boundaries.
            if matches!(c, '<' | '>') {
                self.out.pop();
            }
        }
        self.out.push(c);
    }

    fn property(&mut self, c: char) -> Result<(), String> {
        let mut name = String::new();
        match self.chars.next() {
            Some('{') => {
                name.push('{');
                for next in self.chars.by_ref() {
                    name.push(next);
                    if next == '}' {
                        break;
                    }
                }
                if !name.ends_with('}') {
                    return error("invalid character class range", &format!("\\{c}{name}"));
                }
            }
            Some(letter) => name.push(letter),
            None => return error("invalid character class range", &format!("\\{c}")),
        }
        self.put(format!("\\{c}{name}"));
        Ok(())
    }

    /// The character that an escape stands for, in a class or outside.
    fn character(&mut self, c: char) -> Result<char, String> {
        Ok(match c {
            'a' => '\x07',
            'f' => '\x0c',
            'v' => '\x0b',
            't' => '\t',
            'n' => '\n',
            'r' => '\r',
            'x' => return self.hexadecimal(),
            '0'..='7' => return self.octal(c),
            c if c.is_ascii() && !c.is_ascii_alphanumeric() => c,
            c => return error("invalid escape sequence", &format!("\\{c}")),
        })
    }

    /// `\0`, `\012`, `\123`; a single digit other than 0 would be a back reference.
    fn octal(&mut self, first: char) -> Result<char, String> {
        let is_octal = |c: &char| ('0'..='7').contains(c);
        if first != '0' && !self.chars.peek().is_some_and(is_octal) {
            return error("invalid escape sequence", &format!("\\{first}"));
        }
        let mut code = first.to_digit(8).unwrap_or(0);
        for _ in 0..2 {
            match self.chars.next_if(is_octal) {
                Some(c) => code = code * 8 + c.to_digit(8).unwrap_or(0),
                None => break,
            }
        }
        Ok(char::from_u32(code).unwrap_or_default())
    }

    fn hexadecimal(&mut self) -> Result<char, String> {
        let rest = self.rest();
        let (digits, used) = match rest.strip_prefix('{') {
            Some(body) => match body.split_once('}') {
                Some((digits, _)) => (digits, digits.len() + 2),
                None => return error("invalid escape sequence", &format!("\\x{rest}")),
            },
            None => (rest.get(..2).unwrap_or_default(), 2),
        };
        let code = u32::from_str_radix(digits, 16).ok().filter(|_| !digits.starts_with('+'));
        let Some(c) = code.and_then(char::from_u32) else {
            let shown: String = rest.chars().take(used).collect();
            return error("invalid escape sequence", &format!("\\x{shown}"));
        };
        self.skip(used);
        Ok(c)
    }

    fn class(&mut self) -> Result<(), String> {
        let start = format!("[{}", self.rest());
        self.out.push('[');
        if self.chars.next_if_eq(&'^').is_some() {
            self.out.push('^');
        }
        let mut first = true;
        loop {
            let rest = self.rest();
            let Some(c) = self.chars.next() else { return error("missing closing ]", &start) };
            match c {
                ']' if !first => break,
                '[' if rest.starts_with("[:") && rest.contains(":]") => {
                    let name = rest.split_once(":]").map_or("", |(name, _)| name);
                    if !POSIX.contains(&name.trim_start_matches("[:").trim_start_matches('^')) {
                        return error("invalid character class range", &format!("{name}:]"));
                    }
                    self.out.push_str(name);
                    self.out.push_str(":]");
                    self.skip(name.len() + 1);
                }
                '\\' if self.class_of_classes()? => {}
                c => self.range(c, &rest, &start)?,
            }
            first = false;
        }
        self.out.push(']');
        Ok(())
    }

    /// A class within a class, behind a backslash; nothing is consumed if it is none.
    fn class_of_classes(&mut self) -> Result<bool, String> {
        let Some(c) =
            self.chars.next_if(|c| matches!(c, 'd' | 's' | 'w' | 'D' | 'S' | 'W' | 'p' | 'P'))
        else {
            return Ok(false);
        };
        match c {
            'd' => self.out.push_str(DIGIT),
            's' => self.out.push_str(SPACE),
            'w' => self.out.push_str(WORD),
            'D' => self.put(format!("[^{DIGIT}]")),
            'S' => self.put(format!("[^{SPACE}]")),
            'W' => self.put(format!("[^{WORD}]")),
            c => self.property(c)?,
        }
        Ok(true)
    }

    /// One character of a class, or a range of them; `first` is consumed already.
    fn range(&mut self, first: char, rest: &str, class: &str) -> Result<(), String> {
        let low = self.class_character(first)?;
        let mut ahead = self.chars.clone();
        let high = if ahead.next() == Some('-') && ahead.next().is_none_or(|c| c != ']') {
            self.chars.next();
            let Some(c) = self.chars.next() else { return error("missing closing ]", class) };
            self.class_character(c)?
        } else {
            low
        };
        if high < low {
            let used = rest.len() - self.rest().len();
            return error("invalid character class range", rest.get(..used).unwrap_or_default());
        }
        let written = if high == low {
            format!("\\x{{{:x}}}", u32::from(low))
        } else {
            format!("\\x{{{:x}}}-\\x{{{:x}}}", u32::from(low), u32::from(high))
        };
        self.out.push_str(&written);
        Ok(())
    }

    fn class_character(&mut self, c: char) -> Result<char, String> {
        if c != '\\' {
            return Ok(c);
        }
        match self.chars.next() {
            Some(c) => self.character(c),
            None => error("trailing backslash at end of expression", ""),
        }
    }
}

fn check_counts(text: &str) -> Result<(), String> {
    let body = text.trim_matches(['{', '}']);
    let (low, high) = body.split_once(',').map_or((body, None), |(low, high)| (low, Some(high)));
    let number = |digits: &str| digits.parse::<u32>().unwrap_or(u32::MAX);
    let upper = high.filter(|high| !high.is_empty()).map(number);
    let wrong = number(low) > MAX_REPEAT
        || upper.is_some_and(|upper| upper > MAX_REPEAT || upper < number(low));
    if wrong { error("invalid repeat count", text) } else { Ok(()) }
}
