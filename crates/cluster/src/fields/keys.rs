//! Items of lists found by their keys, in time that grows with the lists and not with their product.
//!
//! Who may write an object chooses how long its lists are, so nothing here compares each item with
//! each other one.

use std::collections::{HashMap, VecDeque};

use serde_json::{Map, Value};

/// Fields that tell an item from others, such as `containerPort` and `protocol`.
pub(super) type ItemKey = Map<String, Value>;

/// No list of Kubernetes has keys of more fields.
const MOST_FIELDS: usize = 4;
/// The keys of one list have the same fields, unless its type changed between two versions.
const MOST_SHAPES: usize = 4;

/// The keys of a list's items, grouped by the fields they are made of.
pub(super) struct Keys<'a> {
    keys: &'a [ItemKey],
    shapes: Vec<Shape<'a>>,
}

/// Keys that are made of the same fields.
struct Shape<'a> {
    fields: Vec<&'a str>,
    /// Places in the list of keys, ascending.
    members: Vec<usize>,
}

/// Places of free keys by the values of some fields.
type Free<'a> = HashMap<Vec<&'a Value>, VecDeque<usize>>;

impl<'a> Keys<'a> {
    /// `None` for keys that no list of Kubernetes has: too many fields, or too many sets of fields.
    pub fn new(keys: &'a [ItemKey]) -> Option<Self> {
        let mut shapes: Vec<Shape<'a>> = Vec::new();
        for (index, key) in keys.iter().enumerate() {
            let has_room = key.len() <= MOST_FIELDS && shapes.len() < MOST_SHAPES;
            match shapes.iter_mut().find(|shape| shape.is_of(key)) {
                Some(shape) => shape.members.push(index),
                None if has_room => {
                    let fields = key.keys().map(String::as_str).collect();
                    shapes.push(Shape { fields, members: vec![index] });
                }
                None => return None,
            }
        }
        Some(Self { keys, shapes })
    }

    /// Which key belongs to each wanted item. A field of the key that an item does not have is one
    /// that the API server fills in (`protocol: TCP`), so items that have all of them choose first.
    pub fn assign(&self, desired: &'a [Value]) -> Vec<Option<usize>> {
        let mut assigned = vec![None; desired.len()];
        let mut taken = vec![false; self.keys.len()];
        let mut free: HashMap<(usize, u8), Free<'a>> = HashMap::new();
        for complete in [true, false] {
            for (item, slot) in desired.iter().zip(&mut assigned) {
                if slot.is_some() {
                    continue;
                }
                *slot = self.first_free(item, complete, &mut free, &taken);
                if let Some(taken) = slot.and_then(|index| taken.get_mut(index)) {
                    *taken = true;
                }
            }
        }
        assigned
    }

    /// The first free key that has the values of an item's fields.
    fn first_free(
        &self,
        item: &'a Value,
        complete: bool,
        free: &mut HashMap<(usize, u8), Free<'a>>,
        taken: &[bool],
    ) -> Option<usize> {
        let mut first: Option<usize> = None;
        for (number, shape) in self.shapes.iter().enumerate() {
            let (given, values) = shape.given(item);
            if complete && values.len() < shape.fields.len() {
                continue;
            }
            let by_values =
                free.entry((number, given)).or_insert_with(|| shape.by_values(given, self.keys));
            let Some(places) = by_values.get_mut(&values) else { continue };
            while places.front().is_some_and(|place| taken.get(*place) == Some(&true)) {
                places.pop_front();
            }
            let place = places.front().copied();
            first = first.into_iter().chain(place).min();
        }
        first
    }

    /// For each key the last item that has all of its values.
    pub fn find(&self, items: &'a [Value]) -> Vec<Option<&'a Value>> {
        let mut found = vec![None; self.keys.len()];
        for shape in &self.shapes {
            let of = |item: &'a Value| -> Option<Vec<&'a Value>> {
                shape.fields.iter().map(|field| item.get(*field)).collect()
            };
            let by_values: HashMap<Vec<&Value>, &'a Value> =
                items.iter().filter_map(|item| Some((of(item)?, item))).collect();
            for place in &shape.members {
                let values: Option<Vec<&Value>> = self
                    .keys
                    .get(*place)
                    .and_then(|key| shape.fields.iter().map(|field| key.get(*field)).collect());
                if let (Some(values), Some(slot)) = (values, found.get_mut(*place)) {
                    *slot = by_values.get(&values).copied();
                }
            }
        }
        found
    }
}

impl<'a> Shape<'a> {
    fn is_of(&self, key: &ItemKey) -> bool {
        self.fields.len() == key.len() && self.fields.iter().all(|field| key.contains_key(*field))
    }

    /// Which fields of the key an item has, one bit for each, and their values.
    fn given(&self, item: &'a Value) -> (u8, Vec<&'a Value>) {
        let mut given = 0;
        let mut values = Vec::with_capacity(self.fields.len());
        for (bit, field) in self.fields.iter().enumerate() {
            if let Some(value) = item.get(*field).filter(|value| !value.is_null()) {
                given |= 1 << bit;
                values.push(value);
            }
        }
        (given, values)
    }

    /// The places of all keys by the values of these fields.
    fn by_values(&self, given: u8, keys: &'a [ItemKey]) -> Free<'a> {
        let mut places = Free::new();
        for place in &self.members {
            let Some(key) = keys.get(*place) else { continue };
            let fields = self.fields.iter().enumerate().filter(|(bit, _)| given & (1 << bit) != 0);
            let values = fields.filter_map(|(_, field)| key.get(*field)).collect();
            places.entry(values).or_default().push_back(*place);
        }
        places
    }
}
