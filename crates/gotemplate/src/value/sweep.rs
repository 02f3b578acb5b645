//! Finding the maps and lists that nobody refers to any more, and emptying them.
//!
//! The arena of a rendering frees nothing by itself, and most charts need no more. But one that
//! makes large values again and again (printing `.` by mistake, merging in a loop) would run into
//! its budget with what Go's garbage collector has long forgotten.

use std::collections::HashSet;

use foldhash::fast::RandomState;

use super::heap::{Heap, list_cost, map_cost};
use super::{List, Map, Object, Value};

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
    /// Where the shared ones are that are counted. How many share one tells nothing: other renderings
    /// of the chart may, too.
    shared: HashSet<usize, RandomState>,
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
            shared: HashSet::default(),
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

    fn text(&mut self, text: &[u8], holders: usize) {
        if holders <= 1 || self.shared.insert(text.as_ptr().addr()) {
            self.strings += text.len();
        }
    }

    fn value(&mut self, value: &Value, objects: usize) {
        match value {
            Value::String(text) => self.text(text.as_bytes(), text.holders()),
            Value::Bytes(bytes) => self.text(bytes, std::sync::Arc::strong_count(bytes)),
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
                        self.text(key.as_bytes(), key.holders());
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

/// Where maps and lists have come to in another heap.
struct Moved {
    maps: Vec<Option<usize>>,
    lists: Vec<Option<usize>>,
    waiting: Vec<Container>,
    /// How many maps and lists there are by now.
    counts: (usize, usize),
}

impl Moved {
    fn map(&mut self, map: Map) -> Map {
        let Some(place) = self.maps.get_mut(map.index()) else { return map };
        let to = *place.get_or_insert_with(|| {
            self.waiting.push(Container::Map(map.index()));
            self.counts.0 += 1;
            self.counts.0 - 1
        });
        Map::at(to)
    }

    fn list(&mut self, list: List) -> List {
        let Some(place) = self.lists.get_mut(list.index()) else { return list };
        let to = *place.get_or_insert_with(|| {
            self.waiting.push(Container::List(list.index()));
            self.counts.1 += 1;
            self.counts.1 - 1
        });
        List::at(to)
    }

    fn value(&mut self, value: &mut Value) {
        match value {
            Value::Map(map) => *map = self.map(*map),
            Value::List(list) => *list = self.list(*list),
            _ => {}
        }
    }
}

impl Heap {
    /// Says that everything made so far stays: only what is made from now on may be emptied once
    /// nobody refers to it. Without a seal nothing ever is.
    pub fn seal(&mut self) {
        self.sealed = (self.maps.len(), self.lists.len());
        self.is_sealed = true;
    }

    /// A heap of only what can be reached from a map, and that map in it. What is shared stays shared.
    /// Only for plain data: what objects hold is not followed.
    #[must_use]
    pub fn only(mut self, root: Map) -> (Self, Map) {
        let mut moved = Moved {
            maps: vec![None; self.maps.len()],
            lists: vec![None; self.lists.len()],
            waiting: Vec::new(),
            counts: (0, 0),
        };
        let mut kept = Self::new();
        let root = moved.map(root);
        while let Some(container) = moved.waiting.pop() {
            match container {
                Container::Map(at) => {
                    let Some(map) = self.maps.get_mut(at) else { continue };
                    let mut entries = std::mem::take(&mut map.entries);
                    entries.values_mut().for_each(|value| moved.value(value));
                    let to = moved.maps.get(at).copied().flatten().unwrap_or_default();
                    while kept.maps.len() <= to {
                        kept.new_map();
                    }
                    if let Some(place) = kept.maps.get_mut(to) {
                        (place.ty, place.nil, place.entries) = (map.ty, map.nil, entries);
                    }
                }
                Container::List(at) => {
                    let Some(list) = self.lists.get_mut(at) else { continue };
                    let mut items = std::mem::take(&mut list.items);
                    for value in &mut items {
                        moved.value(value);
                    }
                    let to = moved.lists.get(at).copied().flatten().unwrap_or_default();
                    while kept.lists.len() <= to {
                        kept.new_list(Vec::new());
                    }
                    if let Some(place) = kept.lists.get_mut(to) {
                        (place.ty, place.nil, place.items) = (list.ty, list.nil, items);
                    }
                }
            }
        }
        kept.bytes = kept.maps.iter().map(map_cost).sum::<usize>();
        kept.bytes += kept.lists.iter().map(list_cost).sum::<usize>();
        (kept, root)
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
                map.entries = super::Entries::new();
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
    use crate::Str;

    #[test]
    fn a_heap_of_its_own_has_what_can_be_reached_and_shares_what_was_shared() {
        let mut heap = Heap::new();
        heap.new_map();
        let (root, shared) = (heap.new_map(), heap.new_map());
        heap.new_list(vec![1.5.into()]);
        let list = heap.new_list(vec![shared.into(), root.into()]);
        heap.set(shared, "text", "x");
        heap.set(root, "list", list);
        heap.set(root, "shared", shared);
        let (mut kept, root) = heap.only(root);
        assert_eq!(kept.containers(), 3);
        let shared = kept.get(root, "shared").and_then(Value::as_map).unwrap();
        let list = kept.get(root, "list").and_then(Value::as_list).unwrap();
        let items: Vec<_> = kept.items(list).iter().map(Value::as_map).collect();
        assert_eq!(items, [Some(shared), Some(root)]);
        let before = kept.allocated();
        kept.set(shared, "more", 1.5);
        assert_eq!(kept.map(shared).entries.len(), 2);
        assert!(before > 0 && kept.allocated() > before);
    }

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

    #[test]
    fn a_string_counts_once_whoever_else_holds_it() {
        let text: Str = "0123456789".into();
        let mut heap = Heap::new();
        let list = heap.new_list(vec![Value::String(text.clone()), Value::String(text)]);
        let strings = |heap: &Heap| {
            let mut sweep = Sweep::new(heap);
            sweep.root(&list.into());
            sweep.finish().strings
        };
        assert_eq!(strings(&heap), 10);
        // As values of a chart are that are kept for later renderings.
        let other = heap.clone();
        assert_eq!(strings(&heap), 10);
        assert_eq!(strings(&other), 10);
    }
}
