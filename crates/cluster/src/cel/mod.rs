//! The Common Expression Language, as far as rules about objects need it.
//!
//! Anybody who may annotate an object may write such a rule, so it can neither hang nor end the process:
//! length, nesting and steps are bounded, the latter as in the API server by what an expression really
//! costs, and for all expressions about one object together ([`Budget`]). (The crate `cel` has no bound on steps and brings a generated parser of 10,000 lines.)
//!
//! There are: literals but bytes, lists, maps, all operators, `has` `all` `exists` `exists_one` `map`
//! `filter`, optional fields (`a.?b.orValue(c)`, `a[?0]`) and the [functions](functions). There are not:
//! times, durations, messages, quantities.

mod eval;
mod functions;
mod lex;
mod parse;
mod value;

use serde_json::{Map, Value};

use crate::budget::Budget;
use eval::Scope;
use parse::Expr;

/// A longer expression is none.
const LONGEST: usize = 2048;

/// Why an expression has no answer. No value of an object is in it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CelError {
    /// It is no expression.
    #[error("at character {at}: {message}")]
    Syntax {
        /// Counted from 1.
        at: usize,
        /// What was found or missed.
        message: String,
    },
    /// Longer than 2048 bytes.
    #[error("longer than {LONGEST} bytes")]
    TooLong,
    /// It was given up.
    #[error("it costs too much")]
    TooCostly,
    /// A field or item is not there.
    #[error("{0}")]
    Absent(String),
    /// An operator or function met what it is not for.
    #[error("{0}")]
    Unfit(String),
}

/// An expression, read.
#[derive(Clone, Debug)]
pub struct Program {
    text: String,
    root: Expr,
}

impl Program {
    /// Reads an expression.
    ///
    /// # Errors
    ///
    /// [`CelError::Syntax`], also for functions that do not exist, and [`CelError::TooLong`].
    pub fn read(text: &str) -> Result<Self, CelError> {
        if text.len() > LONGEST {
            return Err(CelError::TooLong);
        }
        Ok(Self { text: text.to_owned(), root: parse::read(text)? })
    }

    /// As it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether the expression is true of these variables. What it costs is taken from the budget.
    ///
    /// # Errors
    ///
    /// Where it is neither true nor false, or has no answer.
    pub fn holds(
        &self,
        variables: &[(&str, &Value)],
        budget: &mut Budget,
    ) -> Result<bool, CelError> {
        self.truth(variables, None, budget)
    }

    /// The same of an object, which is the variable `object`; its fields are variables, too.
    ///
    /// # Errors
    ///
    /// As [`Program::holds`].
    pub fn holds_of(&self, object: &Value, budget: &mut Budget) -> Result<bool, CelError> {
        self.truth(&[("object", object)], object.as_object(), budget)
    }

    fn truth(
        &self,
        variables: &[(&str, &Value)],
        fields: Option<&Map<String, Value>>,
        budget: &mut Budget,
    ) -> Result<bool, CelError> {
        let mut scope = Scope::new(variables, fields, std::mem::take(budget));
        let value = scope.eval(&self.root);
        let answer = match value {
            Ok(value::Val::Bool(answer)) => Ok(answer),
            Ok(other) => {
                Err(CelError::Unfit(format!("it is {} and not true or false", other.kind())))
            }
            Err(error) => Err(error),
        };
        *budget = scope.budget;
        answer
    }

    /// What the expression is, as JSON.
    ///
    /// # Errors
    ///
    /// Where it has no answer.
    pub fn evaluate(
        &self,
        variables: &[(&str, &Value)],
        budget: Budget,
    ) -> Result<Value, CelError> {
        let scope = &mut Scope::new(variables, None, budget);
        let value = scope.eval(&self.root)?;
        value.json(scope)
    }
}

#[cfg(test)]
mod tests;
