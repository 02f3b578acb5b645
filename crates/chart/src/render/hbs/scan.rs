//! A look at a Handlebars text before the crate's parser sees it.
//!
//! The parser recurses natively and looks for line numbers from the start of the text, so nesting
//! and size are bounded here. And its grammar has no name with dots where arguments follow
//! (`Files.Get "a"`): such names are written in characters that it takes for a name's, one for
//! one, so that places stay what they are.

/// Blocks within blocks, branches of an `else` chain included.
const MAX_BLOCKS: usize = 50;
/// Parentheses, brackets and braces within one tag.
const MAX_BRACKETS: usize = 30;
/// Bytes that the parser may look at for line numbers: it looks from the start of the text for
/// every tag.
const MAX_LOOKS: usize = 1 << 27;

/// A text that must not be parsed: why, and the byte where it is seen.
#[derive(Debug)]
pub(super) struct Refused {
    pub(super) message: String,
    pub(super) at: usize,
}

/// Where the characters `.`, `/`, `@`, `[` and `]` of a dotted name go: into a private use area.
const PRIVATE: u32 = 0xE000;

fn hide(c: char) -> char {
    match c {
        '.' | '/' | '@' | '[' | ']' => char::from_u32(PRIVATE + u32::from(c)).unwrap_or(c),
        other => other,
    }
}

/// Undoes what [`prepare`] did to names.
pub(super) fn reveal(text: &str) -> String {
    let back = |c: char| match u32::from(c).checked_sub(PRIVATE).and_then(char::from_u32) {
        Some(hidden @ ('.' | '/' | '@' | '[' | ']')) => hidden,
        _ => c,
    };
    text.chars().map(back).collect()
}

/// The text as the parser may have it.
pub(super) fn prepare(text: &str) -> Result<String, Refused> {
    let mut scanner =
        Scanner { text, at: 0, copied: 0, out: String::new(), blocks: Vec::new(), tags: 0 };
    // What was there before could not be told apart later.
    let plain = !text.chars().any(|c| (PRIVATE..PRIVATE + 0x80).contains(&u32::from(c)));
    while let Some(found) = scanner.rest().find("{{") {
        scanner.at += found;
        if scanner.skip_escaped() {
            continue;
        }
        scanner.tag(plain)?;
    }
    scanner.out.push_str(text.get(scanner.copied..).unwrap_or_default());
    Ok(scanner.out)
}

struct Scanner<'t> {
    text: &'t str,
    at: usize,
    /// How far the text is in `out`.
    copied: usize,
    out: String,
    /// For each open block, the branches of its `else` chain.
    blocks: Vec<usize>,
    tags: usize,
}

impl<'t> Scanner<'t> {
    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn refuse<T>(&self, message: impl Into<String>) -> Result<T, Refused> {
        Err(Refused { message: message.into(), at: self.at })
    }

    fn skip(&mut self, prefix: &str) -> bool {
        let is_there = self.rest().starts_with(prefix);
        if is_there {
            self.at += prefix.len();
        }
        is_there
    }

    /// Goes behind the next `end`, or to the end of the text.
    fn skip_behind(&mut self, end: &str) {
        self.at =
            self.rest().find(end).map_or(self.text.len(), |found| self.at + found + end.len());
    }

    /// `\{{` is text; `\\{{` is a backslash and a tag.
    fn skip_escaped(&mut self) -> bool {
        let before = self.text.get(..self.at).unwrap_or_default();
        let escaped = before.ends_with('\\') && !before.ends_with("\\\\");
        if escaped && !self.skip("{{{{") {
            self.skip("{{");
        }
        escaped
    }

    fn tag(&mut self, plain: bool) -> Result<(), Refused> {
        self.tags += 1;
        if self.tags.saturating_mul(self.text.len()) > MAX_LOOKS {
            return self.refuse("the template is too large: divide it into partials");
        }
        if self.skip("{{{{") {
            self.inside("}}}}", plain, true)?;
            self.skip_behind("{{{{/");
            self.skip_behind("}}}}");
            return Ok(());
        }
        if self.skip("{{!--") {
            self.skip_behind("--}}");
            return Ok(());
        }
        if self.skip("{{!") {
            self.skip_behind("}}");
            return Ok(());
        }
        self.skip("{{");
        self.skip("~");
        self.structure()?;
        self.inside("}}", plain, !self.rest().starts_with(['>', '/']))
    }

    /// Counts blocks.
    fn structure(&mut self) -> Result<(), Refused> {
        let start = self.at;
        self.skip_space();
        let rest = self.rest();
        let chained = |rest: &str| {
            let rest = rest.trim_start();
            !rest.starts_with('}') && !rest.starts_with('~')
        };
        if rest.starts_with('#') {
            self.blocks.push(1);
        } else if rest.starts_with('/') {
            self.blocks.pop();
        } else if let Some(rest) = rest.strip_prefix('^').or_else(|| rest.strip_prefix("else"))
            && chained(rest)
            && let Some(branches) = self.blocks.last_mut()
        {
            *branches += 1;
        }
        if self.blocks.iter().sum::<usize>() > MAX_BLOCKS {
            return self.refuse(format!("blocks nest deeper than {MAX_BLOCKS}"));
        }
        self.at = start;
        Ok(())
    }

    fn skip_space(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }

    /// The inside of a tag up to its end.
    fn inside(&mut self, end: &str, plain: bool, has_name: bool) -> Result<(), Refused> {
        let (mut open, mut brace) = (0_usize, 0_usize);
        let mut name_next = has_name;
        loop {
            if brace == 0 && self.skip(end) {
                return Ok(());
            }
            let rest = self.rest();
            let Some(c) = rest.chars().next() else { return Ok(()) };
            match c {
                '#' | '&' | '~' | '*' | '^' | '>' => self.at += 1,
                // `{{{`: one more brace at the end too.
                '{' if name_next && open == 0 => self.at += 1,
                '(' | '[' | '{' => {
                    open += 1;
                    brace += usize::from(c == '{');
                    name_next = c == '(';
                    self.at += 1;
                    if open > MAX_BRACKETS {
                        return self.refuse(format!("brackets nest deeper than {MAX_BRACKETS}"));
                    }
                }
                ')' | ']' | '}' => {
                    open = open.saturating_sub(1);
                    brace = brace.saturating_sub(usize::from(c == '}'));
                    name_next = false;
                    self.at += 1;
                }
                '"' | '\'' => {
                    self.string(c);
                    name_next = false;
                }
                c if c.is_whitespace() => self.at += c.len_utf8(),
                _ => {
                    let is_name = name_next;
                    name_next = is_name && matches!(word(rest), "else");
                    self.word(is_name && plain);
                }
            }
        }
    }

    fn string(&mut self, quote: char) {
        self.at += 1;
        let mut escaped = false;
        for (i, c) in self.rest().char_indices() {
            if c == quote && !escaped {
                self.at += i + 1;
                return;
            }
            escaped = c == '\\' && !escaped;
        }
        self.at = self.text.len();
    }

    /// A name, a path, a number. A dotted name with arguments is hidden from the parser.
    fn word(&mut self, may_hide: bool) {
        let word = word(self.rest());
        let start = self.at;
        self.at += word.len().max(1);
        while !self.text.is_char_boundary(self.at) {
            self.at += 1;
        }
        let rest = self.rest();
        let behind = rest.trim_start();
        let has_arguments =
            behind.len() < rest.len() && !behind.is_empty() && !behind.starts_with(['}', ')', '~']);
        if may_hide && has_arguments && word.contains(['.', '/']) {
            self.out.push_str(self.text.get(self.copied..start).unwrap_or_default());
            self.out.extend(word.chars().map(hide));
            self.copied = self.at;
        }
    }
}

fn word(text: &str) -> &str {
    let ends = |c: char| c.is_whitespace() || "(){}\"'=|~".contains(c);
    let mut bracket = false;
    let end = text.find(|c: char| {
        bracket = (bracket || c == '[') && c != ']';
        !bracket && ends(c) || c == '\n'
    });
    text.get(..end.unwrap_or(text.len())).unwrap_or_default()
}
