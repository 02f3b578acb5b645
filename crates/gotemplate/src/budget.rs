//! Limits of one rendering.

use std::time::{Duration, Instant};

use crate::error::{ErrorKind, FuncError};

/// How much a rendering may use. The defaults are far above what real charts need.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    /// Steps of the machine, and what functions charge for their loops.
    pub steps: u64,
    /// Bytes of output, captured output of `include` and `tpl` counted each time.
    pub output: usize,
    /// Bytes of values made while rendering (rough).
    pub memory: usize,
    /// Templates within templates, whether by `template`, `include` or `tpl`.
    pub depth: usize,
    /// Wall time, counted from [`crate::Ctx::new`].
    pub time: Duration,
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            steps: 200_000_000,
            output: 128 << 20,
            memory: 512 << 20,
            depth: 110_000,
            time: Duration::from_mins(1),
        }
    }
}

/// What has been used of a [`Budget`].
#[derive(Debug)]
pub struct Meter {
    budget: Budget,
    steps: u64,
    output: usize,
    memory: usize,
    started: Instant,
    next_look: u64,
}

/// Steps between two looks at the clock: rare enough to cost nothing.
const LOOK_EVERY: u64 = 4096;

impl Meter {
    pub(crate) fn new(budget: Budget) -> Self {
        let started = Instant::now();
        let next_look = LOOK_EVERY.min(budget.steps);
        Self { budget, steps: 0, output: 0, memory: 0, started, next_look }
    }

    /// The limits.
    pub fn budget(&self) -> &Budget {
        &self.budget
    }

    /// Steps used so far.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Charges work: one step is about one instruction of the machine. The clock is looked at now
    /// and then.
    pub fn charge_steps(&mut self, steps: u64) -> Result<(), FuncError> {
        self.steps = self.steps.saturating_add(steps);
        if self.steps < self.next_look {
            return Ok(());
        }
        self.look()
    }

    fn look(&mut self) -> Result<(), FuncError> {
        self.next_look = (self.steps.saturating_add(LOOK_EVERY)).min(self.budget.steps);
        if self.steps >= self.budget.steps {
            let text = format!("exceeded the limit of {} steps", self.budget.steps);
            return Err(FuncError::budget(ErrorKind::Steps, text));
        }
        self.check_deadline()
    }

    /// Looks at the clock now; for functions before and within long work.
    pub fn check_deadline(&self) -> Result<(), FuncError> {
        if self.started.elapsed() > self.budget.time {
            let text = format!("exceeded the time limit of {:?}", self.budget.time);
            return Err(FuncError::budget(ErrorKind::Deadline, text));
        }
        Ok(())
    }

    /// Charges bytes of a string, list or map about to be made. Charge before allocating.
    pub fn charge_bytes(&mut self, bytes: usize) -> Result<(), FuncError> {
        self.memory = self.memory.saturating_add(bytes);
        self.check_memory(0)
    }

    pub(crate) fn check_memory(&self, heap: usize) -> Result<(), FuncError> {
        if self.memory.saturating_add(heap) > self.budget.memory {
            let text = format!("exceeded the memory limit of {} bytes", self.budget.memory);
            return Err(FuncError::budget(ErrorKind::Memory, text));
        }
        Ok(())
    }

    /// Bytes that may still be charged: a bound for functions that grow a string.
    pub fn bytes_left(&self) -> usize {
        self.budget.memory.saturating_sub(self.memory)
    }

    /// Charges bytes about to be written.
    pub fn charge_output(&mut self, bytes: usize) -> Result<(), FuncError> {
        self.output = self.output.saturating_add(bytes);
        if self.output > self.budget.output {
            let text = format!("exceeded the output limit of {} bytes", self.budget.output);
            return Err(FuncError::budget(ErrorKind::Output, text));
        }
        Ok(())
    }
}
