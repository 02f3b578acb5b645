//! What is waited for, told to a person.

use std::cell::RefCell;
use std::env;
use std::io::{self, IsTerminal as _, Write as _};
use std::time::Instant;

/// Forces lines on standard error on (`always`) or off (`never`), whatever that is.
const VARIABLE: &str = "CATAMARAN_PROGRESS";
/// Erases the line, and has a terminal cut what does not fit, which would else fill its screen.
const AGAIN: &str = "\r\x1b[K\x1b[?7l";
/// Has it wrap lines again.
const WRAP: &str = "\x1b[?7h";

/// How people are told.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Manner {
    /// Not at all.
    Silent,
    /// In a line that is written again and again.
    Terminal,
    /// Each change in a line of its own.
    Lines,
}

/// Tells of progress on standard error.
pub(crate) struct Progress {
    manner: Manner,
    begun: Instant,
    last: RefCell<String>,
}

impl Progress {
    pub(crate) fn new(lines: bool) -> Self {
        let manner = match env::var(VARIABLE).as_deref() {
            Ok("always") => Manner::Lines,
            Ok("never") => Manner::Silent,
            _ if lines => Manner::Lines,
            _ if io::stderr().is_terminal() => Manner::Terminal,
            _ => Manner::Silent,
        };
        Self { manner, begun: Instant::now(), last: RefCell::default() }
    }

    /// Tells what is waited for; cheap to call again and again.
    pub(crate) fn print(&self, what: &str) {
        let mut last = self.last.borrow_mut();
        let is_new = *last != what;
        what.clone_into(&mut last);
        let seconds = self.begun.elapsed().as_secs();
        // Who does not see it may still wait: what cannot be written is no fault of the action.
        let written = match self.manner {
            Manner::Terminal => {
                let mut stderr = io::stderr().lock();
                write!(stderr, "{AGAIN}{seconds:>4} s  {what}{WRAP}").and_then(|()| stderr.flush())
            }
            Manner::Lines if is_new => writeln!(io::stderr(), "{seconds:>4} s  {what}"),
            Manner::Lines | Manner::Silent => Ok(()),
        };
        drop(written);
    }

    /// Leaves the terminal as it was.
    pub(crate) fn end(&self) {
        let told = !self.last.take().is_empty();
        if told && self.manner == Manner::Terminal {
            drop(write!(io::stderr(), "{AGAIN}{WRAP}"));
        }
    }
}
