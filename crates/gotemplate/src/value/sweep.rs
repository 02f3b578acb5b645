//! Finding the maps and lists that nobody refers to any more, and emptying them.
//!
//! The arena of a rendering frees nothing by itself, and most charts need no more. But one that
//! makes large values again and again (printing `.` by mistake, merging in a loop) would run into
//! its budget with what Go's garbage collector has long forgotten.

use super::heap::{Heap, list_cost, map_cost};
use super::{Object, Value};

/// How deep objects may hold objects.
const MAX_OBJECTS: usize = 16;

/// A walk over everything that can be reached.
pub(crate) struct Sweep<'h> {
    heap: &'h Heap,
    maps: Vec<bool>,
    lists: Vec<bool>,
    waiting: Vec<Container>,
    /// Bytes of strings, each counted once however often it is shared.
    strings: usize,
}

#[derive(Clone, Copy)]
enum Container {
    Map(usize),
    List(usize),
}

/// What can be reached, apart from the heap itself.
pub(crate) struct Reached {
    maps: Vec<bool>,
    lists: Vec<bool>,
    /// Bytes of strings.
    pub strings: usize,
}

impl<'h> Sweep<'h> {
    /// Starts with what was there when the heap was sealed.
    pub fn new(heap: &'h Heap) -> Self {
        let mut sweep = Self {
            heap,
            maps: vec![false; heap.maps.len()],
            lists: vec![false; heap.lists.len()],
            waiting: Vec::new(),
            strings: 0,
        };
        let (maps, lists) = heap.sealed;
        (0..maps).for_each(|at| sweep.reach(Container::Map(at)));
        (0..lists).for_each(|at| sweep.reach(Container::List(at)));
        sweep
    }

    fn reach(&mut self, container: Container) {
        let mark = match container {
            Container::Map(at) => self.maps.get_mut(at),
            Container::List(at) => self.lists.get_mut(at),
        };
        if let Some(mark @ false) = mark {
            *mark = true;
            self.waiting.push(container);
        }
    }

    /// A value that somebody holds.
    pub fn root(&mut self, value: &Value) {
        self.value(value, 0);
    }

    fn text(&mut self, length: usize, holders: usize) {
        self.strings += length / holders.max(1);
    }

    fn value(&mut self, value: &Value, objects: usize) {
        match value {
            Value::String(text) => self.text(text.len(), text.holders()),
            Value::Bytes(bytes) => self.text(bytes.len(), std::sync::Arc::strong_count(bytes)),
            Value::Map(map) => self.reach(Container::Map(map.index())),
            Value::List(list) => self.reach(Container::List(list.index())),
            Value::Object(object) if objects < MAX_OBJECTS => self.object(object.as_ref(), objects),
            _ => {}
        }
    }

    fn object(&mut self, object: &dyn Object, objects: usize) {
        for (_, value) in &object.fields() {
            self.value(value, objects + 1);
        }
        if let Some(value) = object.plain() {
            self.value(&value, objects + 1);
        }
    }

    /// Follows everything to its end.
    pub fn finish(mut self) -> Reached {
        while let Some(container) = self.waiting.pop() {
            let heap = self.heap;
            match container {
                Container::Map(at) => {
                    for (key, value) in heap.maps.get(at).into_iter().flat_map(|map| &map.entries) {
                        self.text(key.len(), key.holders());
                        self.value(value, 0);
                    }
                }
                Container::List(at) => {
                    for value in heap.lists.get(at).into_iter().flat_map(|list| &list.items) {
                        self.value(value, 0);
                    }
                }
            }
        }
        Reached { maps: self.maps, lists: self.lists, strings: self.strings }
    }
}

impl Heap {
    /// Says that everything made so far stays: only what is made from now on may be emptied once
    /// nobody refers to it. Without a seal nothing ever is.
    pub fn seal(&mut self) {
        self.sealed = (self.maps.len(), self.lists.len());
        self.is_sealed = true;
    }

    /// Empties what was not reached, to be used again.
    pub(crate) fn keep(&mut self, reached: &Reached) {
        self.free_maps.clear();
        self.free_lists.clear();
        self.bytes = 0;
        for (at, map) in self.maps.iter_mut().enumerate() {
            if reached.maps.get(at) == Some(&true) {
                self.bytes += map_cost(map);
            } else {
                map.entries = std::collections::BTreeMap::new();
                self.free_maps.push(at);
            }
        }
        for (at, list) in self.lists.iter_mut().enumerate() {
            if reached.lists.get(at) == Some(&true) {
                self.bytes += list_cost(list);
            } else {
                list.items = Vec::new();
                self.free_lists.push(at);
            }
        }
        // An empty place is not free of charge.
        self.bytes += (self.free_maps.len() + self.free_lists.len()) * size_of::<super::MapData>();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_nobody_holds_is_emptied() {
        let mut heap = Heap::new();
        let old = heap.new_map();
        heap.seal();
        let (kept, held, lost) = (heap.new_map(), heap.new_list(vec![1.5.into()]), heap.new_map());
        heap.set(old, "kept", kept);
        heap.set(kept, "text", "0123456789");
        heap.set(lost, "itself", lost);
        let before = heap.allocated();
        let mut sweep = Sweep::new(&heap);
        sweep.root(&held.into());
        let reached = sweep.finish();
        assert_eq!(reached.strings, "kept".len() + "text".len() + 10);
        heap.keep(&reached);
        assert!(heap.allocated() < before);
        assert_eq!(heap.get(kept, "text").and_then(Value::as_str).unwrap(), &"0123456789");
        assert_eq!(heap.items(held).len(), 1);
        assert!(heap.map(lost).entries.is_empty());
        let reused = heap.new_map();
        assert_eq!(reused, lost);
    }
}
