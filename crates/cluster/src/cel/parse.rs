//! Tokens to a tree.

use super::CelError;
use super::functions;
use super::lex::{Token, syntax, tokens};

/// Deeper nesting is refused: reading and answering are recursive.
const DEEPEST: usize = 24;
/// Nor may there be more operators, fields and calls in one expression: they nest, too.
const MOST_LINKS: usize = 200;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Expr {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    Text(String),
    Name(String),
    Select {
        of: Box<Expr>,
        field: String,
        optional: bool,
    },
    Has {
        of: Box<Expr>,
        field: String,
    },
    Index {
        of: Box<Expr>,
        at: Box<Expr>,
        optional: bool,
    },
    Call {
        function: String,
        args: Vec<Expr>,
    },
    Method {
        of: Box<Expr>,
        function: String,
        args: Vec<Expr>,
    },
    Not(Box<Expr>),
    Negative(Box<Expr>),
    Binary {
        sign: &'static str,
        sides: Box<[Expr; 2]>,
    },
    /// Condition, then, else.
    Choice(Box<[Expr; 3]>),
    List(Vec<Expr>),
    Map(Vec<(Expr, Expr)>),
    Each {
        what: Each,
        of: Box<Expr>,
        variable: String,
        body: Vec<Expr>,
    },
}

/// What is asked of all items of a list, or of all keys of a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Each {
    All,
    Exists,
    One,
    Filter,
    Map,
}

pub(super) fn read(text: &str) -> Result<Expr, CelError> {
    let mut parser = Parser { tokens: tokens(text)?, next: 0, depth: 0, links: 0 };
    let root = parser.expression()?;
    match parser.peek() {
        Token::End => Ok(root),
        _ => Err(parser.unexpected()),
    }
}

struct Parser {
    tokens: Vec<(usize, Token)>,
    next: usize,
    depth: usize,
    links: usize,
}

/// How closely an operator binds.
fn binds(token: &Token) -> Option<(&'static str, u8)> {
    match token {
        Token::Name(name) if name == "in" => Some(("in", 3)),
        Token::Sign(sign) => Some((
            sign,
            match *sign {
                "||" => 1,
                "&&" => 2,
                "==" | "!=" | "<" | "<=" | ">" | ">=" => 3,
                "+" | "-" => 4,
                "*" | "/" | "%" => 5,
                _ => return None,
            },
        )),
        _ => None,
    }
}

impl Parser {
    fn peek(&self) -> &Token {
        self.tokens.get(self.next).map_or(&Token::End, |(_, token)| token)
    }

    fn at(&self) -> usize {
        self.tokens.get(self.next).or(self.tokens.last()).map_or(0, |(at, _)| *at)
    }

    fn unexpected(&self) -> CelError {
        let message = match self.peek() {
            Token::End => "the expression ends here".to_owned(),
            Token::Name(name) => format!("unexpected {name:?}"),
            Token::Sign(sign) => format!("unexpected {sign:?}"),
            _ => "unexpected value".to_owned(),
        };
        syntax(self.at(), &message)
    }

    fn is(&mut self, sign: &str) -> bool {
        let found = matches!(self.peek(), Token::Sign(next) if *next == sign);
        self.next += usize::from(found);
        found
    }

    fn expect(&mut self, sign: &str) -> Result<(), CelError> {
        if self.is(sign) { Ok(()) } else { Err(self.unexpected()) }
    }

    fn name(&mut self) -> Result<String, CelError> {
        let Token::Name(name) = self.peek() else { return Err(self.unexpected()) };
        let name = name.clone();
        self.next += 1;
        Ok(name)
    }

    fn deeper<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, CelError>,
    ) -> Result<T, CelError> {
        if self.depth >= DEEPEST {
            return Err(syntax(self.at(), "nested too deeply"));
        }
        self.depth += 1;
        let read = read(self);
        self.depth -= 1;
        read
    }

    fn link(&mut self) -> Result<(), CelError> {
        self.links += 1;
        if self.links > MOST_LINKS { Err(syntax(self.at(), "too many parts")) } else { Ok(()) }
    }

    fn expression(&mut self) -> Result<Expr, CelError> {
        self.deeper(|parser| {
            let condition = parser.binary(1)?;
            if !parser.is("?") {
                return Ok(condition);
            }
            let then = parser.binary(1)?;
            parser.expect(":")?;
            Ok(Expr::Choice(Box::new([condition, then, parser.expression()?])))
        })
    }

    fn binary(&mut self, least: u8) -> Result<Expr, CelError> {
        let mut left = self.unary()?;
        while let Some((sign, binding)) =
            binds(self.peek()).filter(|(_, binding)| *binding >= least)
        {
            self.next += 1;
            self.link()?;
            let right = self.binary(binding + 1)?;
            left = Expr::Binary { sign, sides: Box::new([left, right]) };
        }
        Ok(left)
    }

    fn unary(&mut self) -> Result<Expr, CelError> {
        if self.is("!") {
            return self.deeper(|parser| Ok(Expr::Not(Box::new(parser.unary()?))));
        }
        if !self.is("-") {
            return self.member();
        }
        // The least integer is one more than the greatest.
        if let Token::Int(number) = self.peek() {
            let number = 0_i64.checked_sub_unsigned(*number);
            let number = number.ok_or_else(|| syntax(self.at(), "not an integer of 64 bits"))?;
            self.next += 1;
            return self.suffixes(Expr::Int(number));
        }
        self.deeper(|parser| Ok(Expr::Negative(Box::new(parser.unary()?))))
    }

    fn member(&mut self) -> Result<Expr, CelError> {
        let primary = self.primary()?;
        self.suffixes(primary)
    }

    fn suffixes(&mut self, mut of: Expr) -> Result<Expr, CelError> {
        loop {
            of = if self.is(".") {
                let at = self.at();
                let field = self.name()?;
                if self.is("(") { self.method(of, field, at)? } else { select(of, field, false) }
            } else if self.is(".?") {
                let field = self.name()?;
                select(of, field, true)
            } else if self.is("[") {
                self.index(of, false)?
            } else if self.is("[?") {
                self.index(of, true)?
            } else {
                return Ok(of);
            };
            self.link()?;
        }
    }

    fn index(&mut self, of: Expr, optional: bool) -> Result<Expr, CelError> {
        let at = Box::new(self.expression()?);
        self.expect("]")?;
        Ok(Expr::Index { of: Box::new(of), at, optional })
    }

    fn method(&mut self, of: Expr, function: String, at: usize) -> Result<Expr, CelError> {
        let mut args = self.list(")")?;
        let what = match (function.as_str(), args.len()) {
            ("all", 2) => Some(Each::All),
            ("exists", 2) => Some(Each::Exists),
            ("exists_one" | "existsOne", 2) => Some(Each::One),
            ("filter", 2) => Some(Each::Filter),
            ("map", 2 | 3) => Some(Each::Map),
            _ => None,
        };
        let of = Box::new(of);
        if let Some(what) = what {
            return match args.remove(0) {
                Expr::Name(variable) => Ok(Expr::Each { what, of, variable, body: args }),
                _ => Err(syntax(at, &format!("{function} needs the name of a variable first"))),
            };
        }
        if !functions::is_method(&function, args.len()) {
            return Err(syntax(at, &format!("no function {function} of {} arguments", args.len())));
        }
        Ok(Expr::Method { of, function, args })
    }

    fn call(&mut self, function: String, at: usize) -> Result<Expr, CelError> {
        let mut args = self.list(")")?;
        match (function.as_str(), args.len()) {
            ("has", 1) => match args.remove(0) {
                Expr::Select { of, field, optional: false } => Ok(Expr::Has { of, field }),
                _ => Err(syntax(at, "has needs a field, such as has(object.spec)")),
            },
            (name, count) if functions::is_function(name, count) => {
                Ok(Expr::Call { function, args })
            }
            (name, count) => Err(syntax(at, &format!("no function {name} of {count} arguments"))),
        }
    }

    /// Expressions up to a closing sign; a comma may stand before it.
    fn list(&mut self, close: &str) -> Result<Vec<Expr>, CelError> {
        let mut items = Vec::new();
        while !self.is(close) {
            items.push(self.expression()?);
            if !self.is(",") {
                self.expect(close)?;
                break;
            }
        }
        Ok(items)
    }

    fn map(&mut self) -> Result<Expr, CelError> {
        let mut entries = Vec::new();
        while !self.is("}") {
            let key = self.expression()?;
            self.expect(":")?;
            entries.push((key, self.expression()?));
            if !self.is(",") {
                self.expect("}")?;
                break;
            }
        }
        Ok(Expr::Map(entries))
    }

    fn primary(&mut self) -> Result<Expr, CelError> {
        let at = self.at();
        let token = self.peek().clone();
        self.next += 1;
        Ok(match token {
            Token::Int(number) => {
                let number = i64::try_from(number);
                Expr::Int(number.map_err(|_| syntax(at, "not an integer of 64 bits"))?)
            }
            Token::Uint(number) => Expr::Uint(number),
            Token::Double(number) => Expr::Double(number),
            Token::Text(text) => Expr::Text(text),
            Token::Name(name) => match name.as_str() {
                "true" => Expr::Bool(true),
                "false" => Expr::Bool(false),
                "null" => Expr::Null,
                _ if self.is("(") => return self.call(name, at),
                _ => Expr::Name(name),
            },
            Token::Sign("(") => {
                let inside = self.expression()?;
                self.expect(")")?;
                inside
            }
            Token::Sign("[") => Expr::List(self.list("]")?),
            Token::Sign("{") => return self.map(),
            _ => {
                self.next = self.next.saturating_sub(1);
                return Err(self.unexpected());
            }
        })
    }
}

fn select(of: Expr, field: String, optional: bool) -> Expr {
    Expr::Select { of: Box::new(of), field, optional }
}
