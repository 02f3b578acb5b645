//! The helpers that a lowered template is made of. None of their names is one that a chart can
//! write: lowering leaves none of a chart's.

use handlebars::RenderContext;

use super::give::Giver;
use super::run::Runner;
use super::session::Shared;

/// What the crate takes to call a helper, in steps of the budget: measured.
pub(super) const HELPER_STEPS: u64 = 50;

/// Helpers that give a value, or the text of a tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HandlebarsHelper {
    /// `print VALUE`: the text of a tag.
    Print,
    /// `path BASE [FIELDS] STRICT`
    Path,
    /// `call NAME PARENTHESES ARGS...`, within how many parentheses; a body that it may have is the last argument.
    Call,
    /// `method NAME RECEIVER ARGS...`
    Method,
    /// `and VALUE`, the other one as its body; what follows is evaluated if need be.
    And,
    /// `or VALUE`, the other one as its body.
    Or,
    /// `find NAME CHART`: the name under which the crate knows a partial.
    Find,
    /// `scope VALUE KEY VALUE...`: the context of a partial.
    Scope,
}

/// Helpers that run a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Run {
    /// `if VALUE ZERO`: whether 0 counts as true.
    If,
    /// `unless VALUE ZERO`
    Unless,
    /// `each VALUE`
    Each,
    /// `with VALUE`
    With,
    /// `late VALUE`: the body of `and` and `or`.
    Late,
    /// Around a partial.
    Partial,
    /// Around what the crate writes into a text of its own.
    Charge,
}

impl HandlebarsHelper {
    pub(super) const ALL: [Self; 8] = [
        Self::Print,
        Self::Path,
        Self::Call,
        Self::Method,
        Self::And,
        Self::Or,
        Self::Find,
        Self::Scope,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Print => "print",
            Self::Path => "path",
            Self::Call => "call",
            Self::Method => "method",
            Self::And => "and",
            Self::Or => "or",
            Self::Find => "find",
            Self::Scope => "scope",
        }
    }
}

impl Run {
    /// What it takes of the native stack, in KiB.
    pub(super) fn stack(self) -> usize {
        match self {
            Self::Partial => 16,
            _ => 9,
        }
    }

    pub(super) const ALL: [Self; 7] =
        [Self::If, Self::Unless, Self::Each, Self::With, Self::Late, Self::Partial, Self::Charge];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::If => "if",
            Self::Unless => "unless",
            Self::Each => "each",
            Self::With => "with",
            Self::Late => "late",
            Self::Partial => "partial",
            Self::Charge => "charge",
        }
    }
}

/// Gives the crate the helpers of a session.
pub(super) fn register<'reg: 'rc, 'rc, 's: 'rc, 'a: 's>(
    context: &mut RenderContext<'reg, 'rc>,
    shared: &'s Shared<'a>,
) {
    for kind in HandlebarsHelper::ALL {
        context.register_local_helper(kind.name(), Box::new(Giver { kind, shared }));
    }
    for kind in Run::ALL {
        context.register_local_helper(kind.name(), Box::new(Runner { kind, shared }));
    }
}
