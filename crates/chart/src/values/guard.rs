//! Keeps merging finite.
//!
//! Imported values are shared, not copied, so a chart can make a table contain
//! itself (Helm loops until its memory is used up).

/// How deep tables may nest; what values files may hold is less.
const MAX_DEPTH: usize = catamaran_gotemplate::MAX_VALUE_DEPTH;
/// Tables and values that may be looked at in all merging of one rendering.
const MAX_STEPS: u64 = 5_000_000;

/// Counts depth and steps.
#[derive(Debug)]
pub(crate) struct Guard {
    depth: usize,
    steps: u64,
    /// Bytes that all values may take.
    room: usize,
    fault: Option<&'static str>,
}

impl Guard {
    pub(crate) fn new(room: usize) -> Self {
        Self { depth: 0, steps: 0, room, fault: None }
    }

    /// Looks at what all values take.
    pub(crate) fn hold(&mut self, bytes: usize) {
        if bytes > self.room {
            self.fault = Some("there is too much in the values to merge");
        }
    }

    /// Goes one table deeper; false if merging has to stop.
    pub(crate) fn enter(&mut self) -> bool {
        self.spend();
        if self.depth >= MAX_DEPTH {
            self.fault = Some("values nest too deep, or a table contains itself");
        }
        if self.fault.is_none() {
            self.depth += 1;
        }
        self.fault.is_none()
    }

    /// Comes back from where [`Guard::enter`] went.
    pub(crate) fn leave(&mut self) {
        self.depth = self.depth.saturating_sub(1);
    }

    /// Counts one value.
    pub(crate) fn spend(&mut self) {
        self.steps += 1;
        if self.steps > MAX_STEPS {
            self.fault = Some("there is too much in the values to merge");
        }
    }

    pub(crate) fn fault(&self) -> Option<&'static str> {
        self.fault
    }
}
