//! The arena of one rendering: every map and list of it, addressed by index.

use std::sync::atomic::{AtomicBool, Ordering};

use super::{Entries, Kind, Str, Type, Value};

/// A reference to a map in a [`Heap`]. Copies refer to the same map.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Map(u32);

/// A reference to a list in a [`Heap`]. Copies refer to the same list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct List(u32);

/// A map: its Go type and its entries in byte order of the keys.
#[derive(Clone, Debug)]
pub struct MapData {
    /// [`Type::MAP`] unless made otherwise.
    pub ty: Type,
    /// The entries.
    pub entries: Entries,
    /// Whether Go would have a nil map here: reading is fine, setting panics there (`assignment to
    /// entry in nil map`) and does nothing here.
    pub nil: bool,
    /// Whether it is noticed if somebody looks at the entries.
    guarded: bool,
}

/// A list: its Go type and its elements.
#[derive(Clone, Debug)]
pub struct ListData {
    /// [`Type::LIST`] unless made otherwise.
    pub ty: Type,
    /// The elements. Elements of a `[]T` with T other than `interface {}` are never nil.
    pub items: Vec<Value>,
    /// Whether Go would have a nil slice here (plain data: null).
    pub nil: bool,
}

/// All maps and lists of one rendering, freed together.
///
/// Values refer into the heap that made them; with another heap they show empty maps and lists.
#[derive(Clone, Debug, Default)]
pub struct Heap {
    pub(super) maps: Vec<MapData>,
    pub(super) lists: Vec<ListData>,
    pub(super) bytes: usize,
    /// How many maps and lists were there when the heap was sealed.
    pub(super) sealed: (usize, usize),
    pub(super) is_sealed: bool,
    /// Places that may be used again.
    pub(super) free_maps: Vec<usize>,
    pub(super) free_lists: Vec<usize>,
    touched: Touched,
}

/// Whether somebody has looked at the entries of a guarded map.
#[derive(Debug, Default)]
struct Touched(AtomicBool);

impl Clone for Touched {
    fn clone(&self) -> Self {
        Self(AtomicBool::new(self.0.load(Ordering::Relaxed)))
    }
}

static NO_MAP: MapData =
    MapData { ty: Type::MAP, entries: Entries::new(), nil: true, guarded: false };
static NO_LIST: ListData = ListData { ty: Type::LIST, items: Vec::new(), nil: true };

/// What a map or list costs besides its entries, in bytes.
const CONTAINER_COST: usize = 64;
/// What one node of a map's tree costs: it has room for eleven entries, however few there are. The
/// list of a small map takes no more.
const NODE_COST: usize = 11 * (size_of::<Str>() + size_of::<Value>()) + 24;
/// How many entries such a node has, but for the last one.
const NODE_ENTRIES: usize = 7;
/// What a key's text costs besides its bytes, which whoever made it has charged.
const KEY_COST: usize = 16;

/// What a map costs without the texts of its keys.
pub(super) fn map_cost(map: &MapData) -> usize {
    CONTAINER_COST + map.entries.len().div_ceil(NODE_ENTRIES) * NODE_COST
}

/// What a list costs.
pub(super) fn list_cost(list: &ListData) -> usize {
    CONTAINER_COST + list.items.capacity() * size_of::<Value>()
}

impl Map {
    pub(super) fn at(index: usize) -> Self {
        Self(u32::try_from(index).unwrap_or(u32::MAX))
    }

    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

impl List {
    pub(super) fn at(index: usize) -> Self {
        Self(u32::try_from(index).unwrap_or(u32::MAX))
    }

    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

impl Heap {
    /// An empty heap.
    pub fn new() -> Self {
        Self::default()
    }

    /// A new empty `map[string]interface {}`.
    pub fn new_map(&mut self) -> Map {
        self.new_map_of(Type::MAP)
    }

    /// A new empty map of a given type, named ones included.
    pub fn new_map_of(&mut self, ty: Type) -> Map {
        self.bytes += CONTAINER_COST;
        let data = MapData { ty, entries: Entries::new(), nil: false, guarded: false };
        if let Some(at) = self.free_maps.pop()
            && let Some(place) = self.maps.get_mut(at)
        {
            *place = data;
            return Map(u32::try_from(at).unwrap_or(u32::MAX));
        }
        let map = Map(u32::try_from(self.maps.len()).unwrap_or(u32::MAX));
        self.maps.push(data);
        map
    }

    /// A new map of a given type, of entries whose keys are shared with another map.
    pub fn new_map_with(&mut self, ty: Type, entries: Entries) -> Map {
        let map = self.new_map_of(ty);
        if let Some(data) = self.maps.get_mut(map.0 as usize) {
            data.entries = entries;
            self.bytes += map_cost(data) - CONTAINER_COST;
        }
        map
    }

    /// A new nil map of a given type.
    pub fn new_nil_map(&mut self, ty: Type) -> Map {
        let map = self.new_map_of(ty);
        if let Some(data) = self.maps.get_mut(map.0 as usize) {
            data.nil = true;
        }
        map
    }

    /// A new `[]interface {}`.
    pub fn new_list(&mut self, items: Vec<Value>) -> List {
        self.new_list_of(Type::LIST, items)
    }

    /// A new `[]string`.
    pub fn new_strings(&mut self, items: impl IntoIterator<Item = impl Into<Str>>) -> List {
        let items = items.into_iter().map(|item| Value::String(item.into())).collect();
        self.new_list_of(Type::STRINGS, items)
    }

    /// A new list of a given type ([`Type::INTS`], a named list type); the caller sees to it that
    /// the elements are of the element type.
    pub fn new_list_of(&mut self, ty: Type, items: Vec<Value>) -> List {
        self.push_list(ListData { ty, items, nil: false })
    }

    /// A new nil slice of a given type: prints as an empty list, plain data is null.
    pub fn new_nil_list(&mut self, ty: Type) -> List {
        self.push_list(ListData { ty, items: Vec::new(), nil: true })
    }

    fn push_list(&mut self, data: ListData) -> List {
        self.bytes += list_cost(&data);
        if let Some(at) = self.free_lists.pop()
            && let Some(place) = self.lists.get_mut(at)
        {
            *place = data;
            return List(u32::try_from(at).unwrap_or(u32::MAX));
        }
        let list = List(u32::try_from(self.lists.len()).unwrap_or(u32::MAX));
        self.lists.push(data);
        list
    }

    /// The map behind a reference.
    pub fn map(&self, map: Map) -> &MapData {
        let data = self.peek(map);
        if data.guarded {
            self.touch();
        }
        data
    }

    /// The map behind a reference, unnoticed if it is a guarded one: for its type, and for who calls
    /// [`Heap::touch`] himself.
    pub fn peek(&self, map: Map) -> &MapData {
        self.maps.get(map.0 as usize).unwrap_or(&NO_MAP)
    }

    /// From now on it is noticed if somebody looks at the entries of this map, in whatever way: it
    /// holds what only stands for the real thing.
    pub fn guard(&mut self, map: Map) {
        if let Some(data) = self.maps.get_mut(map.0 as usize) {
            data.guarded = true;
        }
    }

    /// Notes that somebody has looked at what a guarded map holds.
    pub fn touch(&self) {
        self.touched.0.store(true, Ordering::Relaxed);
    }

    /// Whether somebody has looked at what a guarded map holds.
    pub fn is_touched(&self) -> bool {
        self.touched.0.load(Ordering::Relaxed)
    }

    /// The list behind a reference.
    pub fn list(&self, list: List) -> &ListData {
        self.lists.get(list.0 as usize).unwrap_or(&NO_LIST)
    }

    /// The elements of a list.
    pub fn items(&self, list: List) -> &[Value] {
        &self.list(list).items
    }

    /// The entries of a map that [`Heap::peek`] gave, as [`Heap::map`] would give them.
    pub(crate) fn entries<'h>(&'h self, data: &'h MapData) -> &'h Entries {
        if data.guarded {
            self.touch();
        }
        &data.entries
    }

    /// The value of a key.
    pub fn get(&self, map: Map, key: impl AsRef<[u8]>) -> Option<&Value> {
        self.map(map).entries.get(key.as_ref())
    }

    /// Sets a key; everyone who holds the map sees it.
    pub fn set(&mut self, map: Map, key: impl Into<Str>, value: impl Into<Value>) {
        if let Some(data) = self.maps.get_mut(map.0 as usize).filter(|data| !data.nil)
            && data.entries.insert(key.into(), value.into()).is_none()
        {
            let opens_node = data.entries.len() % NODE_ENTRIES == 1;
            self.bytes += KEY_COST + if opens_node { NODE_COST } else { 0 };
        }
    }

    /// Makes room for entries of an empty map, if they are few.
    pub(super) fn expect(&mut self, map: Map, entries: usize) {
        if let Some(data) = self.maps.get_mut(map.0 as usize) {
            data.entries.expect(entries);
        }
    }

    /// Sets a key that is there already; otherwise nothing happens.
    pub fn replace(&mut self, map: Map, key: impl AsRef<[u8]>, value: impl Into<Value>) {
        let data = self.maps.get_mut(map.0 as usize);
        if let Some(known) = data.and_then(|data| data.entries.get_mut(key.as_ref())) {
            *known = value.into();
        }
    }

    /// Removes a key; everyone who holds the map sees it.
    pub fn remove(&mut self, map: Map, key: impl AsRef<[u8]>) -> Option<Value> {
        let data = self.maps.get_mut(map.0 as usize)?;
        let removed = data.entries.remove(key.as_ref());
        if data.guarded {
            self.touch();
        }
        removed
    }

    /// A new map of the same type with the same entries (nested ones are shared).
    pub fn copy_map(&mut self, map: Map) -> Map {
        let data = self.map(map);
        let (ty, entries) = (data.ty, data.entries.clone());
        let copy = self.new_map_of(ty);
        if let Some(data) = self.maps.get_mut(copy.0 as usize) {
            data.entries = entries;
            self.bytes += map_cost(data) - CONTAINER_COST;
        }
        copy
    }

    /// The same, of which copies are made quickly: maps are shared until they are changed.
    #[must_use]
    pub fn shared(mut self) -> Self {
        for map in &mut self.maps {
            map.entries = std::mem::take(&mut map.entries).shared();
        }
        self
    }

    /// Bytes that maps and lists take, by an estimate; strings are not in it.
    pub fn allocated(&self) -> usize {
        self.bytes
    }

    pub(crate) fn is_sealed(&self) -> bool {
        self.is_sealed
    }

    /// How many maps and lists there are.
    pub(crate) fn containers(&self) -> usize {
        self.maps.len() + self.lists.len()
    }

    /// The Go type of a value; `None` for nil.
    pub fn type_of(&self, value: &Value) -> Option<Type> {
        Some(match value {
            Value::Nil => return None,
            Value::Bool(_) => Type::Bool,
            Value::Int(_) => Type::Int,
            Value::Int64(_) => Type::Int64,
            Value::Uint8(_) => Type::Uint8,
            Value::Uint64(_) => Type::Uint64,
            Value::Float64(_) => Type::Float64,
            Value::String(_) => Type::String,
            Value::Bytes(_) => Type::BYTES,
            Value::List(list) => self.list(*list).ty,
            Value::Map(map) => self.peek(*map).ty,
            Value::Object(object) => Type::Named(object.go_type()),
            Value::Func(_) => Type::Func,
        })
    }

    /// The Go type's name as `%T` and `typeOf` print it; `<nil>` for nil.
    pub fn type_name(&self, value: &Value) -> String {
        self.type_of(value).map_or_else(|| "<nil>".to_owned(), |ty| ty.to_string())
    }

    /// Go's kind of a value; `Invalid` for nil.
    pub fn kind_of(&self, value: &Value) -> Kind {
        self.type_of(value).map_or(Kind::Invalid, Type::kind)
    }

    /// Truth as `if`, `and`, `or` and `not` see it: false, 0, nil and what is empty are false.
    pub fn truth(&self, value: &Value) -> bool {
        match value {
            Value::Nil => false,
            Value::Bool(value) => *value,
            Value::Int(n) | Value::Int64(n) => *n != 0,
            Value::Uint8(n) => *n != 0,
            Value::Uint64(n) => *n != 0,
            Value::Float64(n) => *n != 0.0,
            Value::String(text) => !text.is_empty(),
            Value::Bytes(bytes) => !bytes.is_empty(),
            Value::List(list) => !self.list(*list).items.is_empty(),
            Value::Map(map) => !self.map(*map).entries.is_empty(),
            Value::Object(object) => match object.go_type().underlying.kind() {
                Kind::Struct => true,
                Kind::Int | Kind::Int64 => object.int() != Some(0),
                _ => !object.is_nil() && !object.is_zero(),
            },
            Value::Func(_) => true,
        }
    }
}
