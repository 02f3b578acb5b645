//! What the machine and the values of a rendering hold.

use std::sync::Arc;

use super::{Frame, Machine};
use crate::error::FuncError;
use crate::set::Overlay;
use crate::value::{Sweep, Value};

impl Machine<'_> {
    /// Bytes of the machine's own stacks.
    fn own_bytes(&self) -> usize {
        self.frames.len() * size_of::<Frame>()
            + self.vars.len() * size_of::<(Value, bool)>()
            + self.stack.len() * size_of::<Value>()
            + self.ranged * 2 * size_of::<Value>()
    }

    pub(super) fn check_memory(&self) -> Result<(), FuncError> {
        self.ctx.meter.check_memory(self.ctx.heap.allocated() + self.own_bytes())
    }

    /// Checks what is held, and forgets what nobody refers to if that is much. Only where all
    /// values at work are on the machine's stacks.
    pub(super) fn account(&mut self) -> Result<(), FuncError> {
        let heap = self.ctx.heap.allocated() + self.own_bytes();
        if self.ctx.meter.wants_sweep(heap) && self.alone && self.ctx.heap.is_sealed() {
            self.sweep()?;
            return self.check_memory();
        }
        self.ctx.meter.check_memory(heap)
    }

    fn sweep(&mut self) -> Result<(), FuncError> {
        let mut sweep = Sweep::new(&self.ctx.heap);
        self.stack.iter().for_each(|value| sweep.root(value));
        self.vars.iter().for_each(|(value, _)| sweep.root(value));
        self.methods.iter().for_each(|(_, receiver)| sweep.root(receiver));
        self.iters.iter().for_each(|iter| iter.each(|value| sweep.root(value)));
        let reached = sweep.finish();
        self.ctx.heap.keep(&reached);
        let strings = reached.strings + self.overlay_bytes();
        self.ctx.meter.swept(strings, self.ctx.heap.allocated() + self.own_bytes());
        // Looking through all that takes its time.
        self.ctx.meter.charge_steps(self.ctx.heap.containers() as u64)
    }

    /// Definitions of the `tpl` calls that are running.
    fn overlay_bytes(&self) -> usize {
        let mut last: Option<&Arc<Overlay>> = None;
        let mut bytes = 0;
        for overlay in self.frames.iter().filter_map(|frame| frame.overlay.as_ref()) {
            if last.is_none_or(|last| !Arc::ptr_eq(last, overlay)) {
                bytes += overlay.size();
            }
            last = Some(overlay);
        }
        bytes
    }
}
