//! Limits of one rendering.

use std::str::FromStr;
use std::time::{Duration, Instant};

use crate::error::{ErrorKind, FuncError};

/// How much a rendering may use.
///
/// The defaults are several times what the largest of some 1,000 public charts use (keys aside, which
/// are slow to make for everybody), and small enough that a hostile chart ends within two seconds and
/// 64 MiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Steps of the machine, and what functions charge for their loops: about 10 ns each.
    pub steps: u64,
    /// Bytes of output, captured output of `include` and `tpl` counted each time.
    pub output: usize,
    /// Bytes of values that are held at one time: strings, lists, maps (by an estimate).
    pub memory: usize,
    /// Templates within templates, whether by `template`, `include` or `tpl`.
    pub depth: usize,
    /// Keys and hashed passwords: what takes as long as so many RSA keys of 2048 bits (some 35 ms
    /// each). One of 4096 bits counts as 13, one of DSA as 7, a bcrypt hash as 2, `derivePassword` as 4.
    pub keys: u32,
    /// Wall time, counted from [`crate::Ctx::new`].
    pub time: Duration,
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            steps: 60_000_000,
            output: 16 << 20,
            memory: 32 << 20,
            depth: 110_000,
            keys: 60,
            time: Duration::from_mins(1),
        }
    }
}

/// Reads limits such as `memory=64Mi,time=1m`; those not named keep their defaults, and an empty text
/// is the defaults. Bytes may end in `Ki`, `Mi`, `Gi`, numbers in `k`, `M`, `G`, and times must end in
/// `ms`, `s` or `m`.
///
/// ```
/// use catamaran_gotemplate::Budget;
/// let budget: Budget = "memory=64Mi,steps=2M,time=500ms".parse()?;
/// assert_eq!((budget.memory, budget.steps, budget.time.as_millis()), (64 << 20, 2_000_000, 500));
/// assert_eq!(budget.output, Budget::default().output);
/// # Ok::<(), String>(())
/// ```
impl FromStr for Budget {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut budget = Self::default();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let (name, value) =
                part.split_once('=').ok_or_else(|| format!("{part:?} is not NAME=LIMIT"))?;
            let wrong = || format!("{value:?} is no limit of {name}");
            match name {
                "steps" => budget.steps = amount(value, COUNTS).ok_or_else(wrong)?,
                "keys" => {
                    let keys = amount(value, COUNTS).and_then(|keys| u32::try_from(keys).ok());
                    budget.keys = keys.ok_or_else(wrong)?;
                }
                "time" => {
                    let time = amount(value, TIMES).filter(|_| !value.ends_with(char::is_numeric));
                    budget.time = Duration::from_millis(time.ok_or_else(wrong)?);
                }
                "output" | "memory" | "depth" => {
                    let units = if name == "depth" { COUNTS } else { BYTES };
                    let limit = amount(value, units).and_then(|limit| usize::try_from(limit).ok());
                    let limit = limit.ok_or_else(wrong)?;
                    match name {
                        "output" => budget.output = limit,
                        "memory" => budget.memory = limit,
                        _ => budget.depth = limit,
                    }
                }
                _ => return Err(format!("there is no limit {name:?}")),
            }
        }
        Ok(budget)
    }
}

/// Suffixes and what they multiply by.
type Units = &'static [(&'static str, u64)];
const COUNTS: Units = &[("k", 1_000), ("M", 1_000_000), ("G", 1_000_000_000)];
const BYTES: Units = &[("Ki", 1 << 10), ("Mi", 1 << 20), ("Gi", 1 << 30)];
const TIMES: Units = &[("ms", 1), ("s", 1_000), ("m", 60_000)];

fn amount(text: &str, units: Units) -> Option<u64> {
    let unit = units.iter().find_map(|(name, by)| Some((text.strip_suffix(name)?, *by)));
    let (number, by) = unit.unwrap_or((text, 1));
    number.parse::<u64>().ok()?.checked_mul(by)
}

/// What has been used of a [`Budget`].
#[derive(Debug)]
pub struct Meter {
    budget: Budget,
    steps: u64,
    output: usize,
    /// Strings that may be held: those found at the last look, and all made since.
    strings: usize,
    /// What stays until the rendering ends: compiled texts and expressions.
    kept: usize,
    /// Hundredths of a key.
    keys: u64,
    started: Instant,
    next_look: u64,
    /// Bytes of strings, lists and maps at which it is worth looking for those nobody holds.
    next_sweep: usize,
}

/// Steps between two looks at the clock: rare enough to cost nothing.
const LOOK_EVERY: u64 = 4096;

impl Meter {
    pub(crate) fn new(budget: Budget) -> Self {
        let started = Instant::now();
        let next_look = LOOK_EVERY.min(budget.steps);
        let next_sweep = budget.memory / 2;
        Self {
            budget,
            steps: 0,
            output: 0,
            strings: 0,
            kept: 0,
            keys: 0,
            started,
            next_look,
            next_sweep,
        }
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
    #[inline]
    pub fn charge_steps(&mut self, steps: u64) -> Result<(), FuncError> {
        self.steps = self.steps.saturating_add(steps);
        if self.steps < self.next_look {
            return Ok(());
        }
        self.look()
    }

    /// Charges work on so many bytes that goes through them once: copying, searching, hashing.
    pub fn charge_scan(&mut self, bytes: usize) -> Result<(), FuncError> {
        self.charge_steps(bytes as u64 / BYTES_PER_STEP)
    }

    #[cold]
    #[inline(never)]
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

    /// Charges the making of keys, in hundredths of what an RSA key of 2048 bits takes. Charge
    /// before making them.
    pub fn charge_keys(&mut self, hundredths: u32) -> Result<(), FuncError> {
        self.keys = self.keys.saturating_add(u64::from(hundredths));
        if self.keys > u64::from(self.budget.keys) * 100 {
            let text = format!("exceeded the limit of {} keys", self.budget.keys);
            return Err(FuncError::budget(ErrorKind::Keys, text));
        }
        self.check_deadline()
    }

    /// Charges bytes of a string, list or map about to be made, and the work of writing them. Charge
    /// before allocating.
    pub fn charge_bytes(&mut self, bytes: usize) -> Result<(), FuncError> {
        self.strings = self.strings.saturating_add(bytes);
        self.check_memory(0)?;
        self.charge_scan(bytes)
    }

    /// Charges bytes that stay until the rendering ends.
    pub fn charge_kept(&mut self, bytes: usize) -> Result<(), FuncError> {
        self.kept = self.kept.saturating_add(bytes);
        self.check_memory(0)
    }

    /// Whether so many bytes more may be used; for what is only needed for a moment.
    pub fn check_room(&self, bytes: usize) -> Result<(), FuncError> {
        self.check_memory(bytes)
    }

    pub(crate) fn check_memory(&self, more: usize) -> Result<(), FuncError> {
        if self.held().saturating_add(more) > self.budget.memory {
            return self.exhausted();
        }
        Ok(())
    }

    /// The error of a memory budget that is used up, for what would not fit into [`Meter::bytes_left`].
    pub fn exhausted<T>(&self) -> Result<T, FuncError> {
        let text = format!("exceeded the memory limit of {} bytes", self.budget.memory);
        Err(FuncError::budget(ErrorKind::Memory, text))
    }

    /// Uses up what is left of the memory, so that whoever looks next ends the rendering; for where no
    /// error of the budget's can be returned.
    pub fn overdraw(&mut self) {
        self.kept = usize::MAX;
    }

    fn held(&self) -> usize {
        self.strings.saturating_add(self.kept)
    }

    /// Bytes that may still be charged: a bound for functions that grow a string.
    pub fn bytes_left(&self) -> usize {
        self.budget.memory.saturating_sub(self.held())
    }

    /// Whether so much is held, `heap` bytes of lists and maps among it, that it is worth looking
    /// for what nobody refers to any more.
    pub(crate) fn wants_sweep(&self, heap: usize) -> bool {
        let held = self.held().saturating_add(heap);
        held > self.next_sweep
    }

    /// Takes over what a sweep found: `strings` bytes of strings, `heap` of lists and maps.
    pub(crate) fn swept(&mut self, strings: usize, heap: usize) {
        self.strings = strings;
        // Sweeping costs as much as there is: never again before as much has been made.
        let held = self.held().saturating_add(heap);
        self.next_sweep = held.saturating_add(self.budget.memory / 8).max(self.budget.memory / 2);
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

/// What [`Meter::charge_scan`] counts as one step: a plain loop over bytes runs at some GB/s, and
/// loops that look at every byte at some hundred MB/s.
const BYTES_PER_STEP: u64 = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_read_from_text() {
        assert_eq!("".parse(), Ok(Budget::default()));
        let all: Budget = "steps=3k, output=1Ki,memory=2Gi,depth=7,keys=0,time=2m".parse().unwrap();
        assert_eq!((all.steps, all.output, all.memory), (3000, 1024, 2 << 30));
        assert_eq!((all.depth, all.keys, all.time), (7, 0, Duration::from_mins(2)));
        for wrong in ["steps", "steps=", "steps=x", "time=5", "memory=1M", "depth=-1", "colour=1"] {
            assert!(wrong.parse::<Budget>().is_err(), "{wrong}");
        }
        assert!("memory=99999999999Gi".parse::<Budget>().is_err());
    }
}
