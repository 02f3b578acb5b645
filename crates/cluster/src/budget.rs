//! What rules about one object may cost together.
//!
//! Rules and objects come from whoever may write in a namespace. The work of a rule grows with the
//! object, and their number with the text, so each rule takes its steps from one budget.

/// Steps that are left. A step is a node of an expression, an item or field that is looked at, or 16
/// bytes of a text.
#[derive(Debug, Default)]
pub struct Budget {
    left: usize,
}

/// The budget is spent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it costs too much")]
pub struct Spent;

impl Budget {
    /// A budget of so many steps.
    pub fn new(steps: usize) -> Self {
        Self { left: steps }
    }

    /// Takes steps from it. Once it is spent, nothing more is to be had.
    ///
    /// # Errors
    ///
    /// [`Spent`] where fewer are left.
    pub fn spend(&mut self, steps: usize) -> Result<(), Spent> {
        let left = self.left.checked_sub(steps);
        self.left = left.unwrap_or(0);
        left.map(drop).ok_or(Spent)
    }

    /// Whether nothing is left.
    pub fn is_spent(&self) -> bool {
        self.left == 0
    }
}
