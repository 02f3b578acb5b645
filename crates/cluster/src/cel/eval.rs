//! What an expression is worth.

use std::cmp::Ordering;
use std::rc::Rc;

use serde_json::{Map, Value};

use super::CelError;
use super::functions;
use super::parse::{Each, Expr};
use super::value::{Val, exact};
use crate::budget::Budget;

/// The variables of one evaluation, and what it may still cost.
pub(super) struct Scope<'a> {
    variables: Vec<(&'a str, Val<'a>)>,
    /// Variables besides those, by their names.
    fields: Option<&'a Map<String, Value>>,
    pub budget: Budget,
}

type Answer<'a> = Result<Val<'a>, CelError>;

impl<'a> Scope<'a> {
    pub fn new(
        variables: &[(&'a str, &'a Value)],
        fields: Option<&'a Map<String, Value>>,
        budget: Budget,
    ) -> Self {
        let variables = variables.iter().map(|(name, value)| (*name, Val::of(value))).collect();
        Self { variables, fields, budget }
    }

    pub fn spend(&mut self, steps: usize) -> Result<(), CelError> {
        self.budget.spend(steps).map_err(|_| CelError::TooCostly)
    }

    pub fn eval(&mut self, expr: &'a Expr) -> Answer<'a> {
        self.spend(1)?;
        match expr {
            Expr::Null => Ok(Val::Null),
            Expr::Bool(value) => Ok(Val::Bool(*value)),
            Expr::Int(number) => Ok(Val::Int(*number)),
            Expr::Uint(number) => Ok(Val::Uint(*number)),
            Expr::Double(number) => Ok(Val::Double(*number)),
            Expr::Text(text) => Ok(Val::borrowed(text)),
            Expr::Name(name) => self.variable(name),
            Expr::Select { of, field, optional } => {
                let of = self.eval(of)?;
                let found = self.member(of, &Val::borrowed(field), *optional)?;
                found.ok_or_else(|| CelError::Absent(format!("there is no {field}")))
            }
            Expr::Has { of, field } => self.has(of, field),
            Expr::Index { of, at, optional } => {
                let (of, at) = (self.eval(of)?, self.eval(at)?);
                // Which one may be data, and those are not told.
                let absent = || CelError::Absent("there is no such key or item".to_owned());
                self.member(of, &at, *optional)?.ok_or_else(absent)
            }
            Expr::Call { function, args } => {
                let args = args.iter().map(|arg| self.eval(arg)).collect::<Result<Vec<_>, _>>()?;
                functions::call(self, function, &args)
            }
            Expr::Method { of, function, args } => {
                let of = self.eval(of)?;
                let args = args.iter().map(|arg| self.eval(arg)).collect::<Result<Vec<_>, _>>()?;
                functions::method(self, &of, function, &args)
            }
            Expr::Not(of) => match self.eval(of)? {
                Val::Bool(value) => Ok(Val::Bool(!value)),
                other => Err(unfit("!", &other)),
            },
            Expr::Negative(of) => match self.eval(of)? {
                Val::Int(number) => number.checked_neg().map(Val::Int).ok_or_else(overflow),
                Val::Double(number) => Ok(Val::Double(-number)),
                other => Err(unfit("-", &other)),
            },
            Expr::Binary { sign, sides } => self.binary(sign, sides),
            Expr::Choice(parts) => {
                let [condition, then, otherwise] = parts.as_ref();
                match self.eval(condition)? {
                    Val::Bool(true) => self.eval(then),
                    Val::Bool(false) => self.eval(otherwise),
                    other => Err(unfit("? :", &other)),
                }
            }
            Expr::List(items) => {
                let items = items.iter().map(|item| self.eval(item)).collect::<Result<_, _>>()?;
                Ok(Val::list(items))
            }
            Expr::Map(entries) => {
                let entries =
                    entries.iter().map(|(key, value)| Ok((self.eval(key)?, self.eval(value)?)));
                Ok(Val::Map(Rc::from(entries.collect::<Result<Vec<_>, _>>()?)))
            }
            Expr::Each { what, of, variable, body } => self.each(*what, of, variable, body),
        }
    }

    fn variable(&mut self, name: &str) -> Answer<'a> {
        let found = self.variables.iter().rev().find(|(known, _)| *known == name);
        let field = || self.fields?.get(name).map(Val::of);
        let absent = || CelError::Absent(format!("there is no {name}"));
        found.map(|(_, value)| value.clone()).or_else(field).ok_or_else(absent)
    }

    /// A field or an item, if it is there. What is optional stays so.
    fn member(
        &mut self,
        of: Val<'a>,
        at: &Val<'a>,
        optional: bool,
    ) -> Result<Option<Val<'a>>, CelError> {
        let (of, optional) = match of {
            Val::Optional(None) => return Ok(Some(Val::Optional(None))),
            Val::Optional(Some(inside)) => ((*inside).clone(), true),
            of => (of, optional),
        };
        let found = match &of {
            Val::Array(_) | Val::List(_) => of.item(at)?,
            _ => of.get(at, self)?,
        };
        Ok(if optional { Some(Val::Optional(found.map(Rc::new))) } else { found })
    }

    fn has(&mut self, of: &'a Expr, field: &'a str) -> Answer<'a> {
        let of = match self.eval(of)? {
            Val::Optional(None) => return Ok(Val::Bool(false)),
            Val::Optional(Some(inside)) => (*inside).clone(),
            of => of,
        };
        let found = of.get(&Val::borrowed(field), self)?;
        Ok(Val::Bool(found.is_some()))
    }

    fn binary(&mut self, sign: &str, sides: &'a [Expr; 2]) -> Answer<'a> {
        let [left, right] = sides;
        if let "&&" | "||" = sign {
            return self.either(sign == "||", left, right);
        }
        let (left, right) = (self.eval(left)?, self.eval(right)?);
        match sign {
            "==" => left.equals(&right, self).map(Val::Bool),
            "!=" => left.equals(&right, self).map(|equal| Val::Bool(!equal)),
            "in" => self.contains(&right, &left).map(Val::Bool),
            "<" | "<=" | ">" | ">=" => {
                let order = left.order(&right, self)?;
                Ok(Val::Bool(order.is_some_and(|order| match sign {
                    "<" => order == Ordering::Less,
                    "<=" => order != Ordering::Greater,
                    ">" => order == Ordering::Greater,
                    _ => order != Ordering::Less,
                })))
            }
            sign => self.calculate(sign, left, right),
        }
    }

    /// `||` and `&&`: one side that decides is enough, whatever is wrong with the other.
    fn either(&mut self, decisive: bool, left: &'a Expr, right: &'a Expr) -> Answer<'a> {
        let left = self.eval(left).and_then(truth);
        if left == Ok(decisive) {
            return Ok(Val::Bool(decisive));
        }
        let right = self.eval(right).and_then(truth);
        if right == Ok(decisive) {
            return Ok(Val::Bool(decisive));
        }
        left.and(right).map(Val::Bool)
    }

    fn contains(&mut self, of: &Val<'a>, wanted: &Val<'a>) -> Result<bool, CelError> {
        let Some(items) = of.items(self)? else {
            return Ok(of.get(wanted, self)?.is_some());
        };
        for item in &items {
            if item.equals(wanted, self)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn calculate(&mut self, sign: &str, left: Val<'a>, right: Val<'a>) -> Answer<'a> {
        macro_rules! checked {
            ($left:ident, $right:ident, $val:path) => {
                match sign {
                    "+" => $left.checked_add($right),
                    "-" => $left.checked_sub($right),
                    "*" => $left.checked_mul($right),
                    "/" => $left.checked_div($right),
                    _ => $left.checked_rem($right),
                }
                .map($val)
                .ok_or_else(overflow)
            };
        }
        match (left, right) {
            (Val::Int(left), Val::Int(right)) => checked!(left, right, Val::Int),
            (Val::Uint(left), Val::Uint(right)) => checked!(left, right, Val::Uint),
            (Val::Double(left), Val::Double(right)) if sign != "%" => Ok(Val::Double(match sign {
                "+" => left + right,
                "-" => left - right,
                "*" => left * right,
                _ => left / right,
            })),
            (Val::Text(left), Val::Text(right)) if sign == "+" => {
                self.spend((left.len() + right.len()) / 16)?;
                Ok(Val::text([&*left, &*right].concat()))
            }
            (left, right) if sign == "+" => match (left.items(self)?, right.items(self)?) {
                (Some(mut left), Some(right)) => {
                    left.extend(right);
                    Ok(Val::list(left))
                }
                _ => Err(unfit2(sign, &left, &right)),
            },
            (left, right) => Err(unfit2(sign, &left, &right)),
        }
    }

    fn each(
        &mut self,
        what: Each,
        of: &'a Expr,
        variable: &'a str,
        body: &'a [Expr],
    ) -> Answer<'a> {
        let of = self.eval(of)?;
        let items = match of.items(self)? {
            Some(items) => items,
            None => of.keys(self)?.ok_or_else(|| unfit("a macro", &of))?,
        };
        let mut kept = Vec::new();
        let mut count = 0_usize;
        let mut wrong = None;
        for item in items {
            let answer = self.with(variable, &item, |scope| scope.one(what, &item, body));
            match (what, answer) {
                (Each::All, Ok(None)) => return Ok(Val::Bool(false)),
                (Each::Exists, Ok(Some(_))) => return Ok(Val::Bool(true)),
                (_, Err(CelError::TooCostly)) => return Err(CelError::TooCostly),
                // Another item may decide.
                (Each::All | Each::Exists, Err(error)) => wrong = Some(error),
                (_, Err(error)) => return Err(error),
                (_, Ok(Some(value))) => {
                    count += 1;
                    kept.push(value);
                }
                (_, Ok(None)) => {}
            }
        }
        match (what, wrong) {
            (_, Some(error)) => Err(error),
            (Each::All, None) => Ok(Val::Bool(true)),
            (Each::Exists, None) => Ok(Val::Bool(false)),
            (Each::One, None) => Ok(Val::Bool(count == 1)),
            (Each::Filter | Each::Map, None) => Ok(Val::list(kept)),
        }
    }

    /// What an item gives; `None` where the condition is false.
    fn one(
        &mut self,
        what: Each,
        item: &Val<'a>,
        body: &'a [Expr],
    ) -> Result<Option<Val<'a>>, CelError> {
        match (what, body) {
            (Each::Map, [transform]) => self.eval(transform).map(Some),
            (Each::Map, [condition, transform]) => {
                let holds = self.eval(condition).and_then(truth)?;
                if holds { self.eval(transform).map(Some) } else { Ok(None) }
            }
            (_, [condition, ..]) => {
                let holds = self.eval(condition).and_then(truth)?;
                Ok(holds.then(|| item.clone()))
            }
            (_, []) => Ok(None),
        }
    }

    fn with<T>(&mut self, name: &'a str, value: &Val<'a>, work: impl FnOnce(&mut Self) -> T) -> T {
        self.variables.push((name, value.clone()));
        let done = work(self);
        self.variables.pop();
        done
    }
}

fn truth(value: Val<'_>) -> Result<bool, CelError> {
    match value {
        Val::Bool(value) => Ok(value),
        other => Err(CelError::Unfit(format!("{} is not true or false", other.kind()))),
    }
}

pub(super) fn unfit(what: &str, value: &Val<'_>) -> CelError {
    CelError::Unfit(format!("{what} is not for {}", value.kind()))
}

fn unfit2(what: &str, left: &Val<'_>, right: &Val<'_>) -> CelError {
    CelError::Unfit(format!("{what} is not for {} and {}", left.kind(), right.kind()))
}

fn overflow() -> CelError {
    CelError::Unfit("the result is no integer of 64 bits".to_owned())
}

/// A number without its fraction.
pub(super) fn integer(number: f64) -> Option<i64> {
    exact(number).and_then(|number| i64::try_from(number).ok())
}
