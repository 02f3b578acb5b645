//! Which objects of a namespace may fit a selector, and whom a changed object may concern, without a look
//! at all of them: by the value that a selector asks of one label.
//!
//! Thousands of owners with thousands of children in one namespace are found one by one; a look at all of
//! them for each would take as long as their square.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use catamaran_cluster::watch::ObjectKey;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::{Expression, Selector, SelectorExt};

use crate::manager::queue::Key;

type Namespace = Option<String>;
/// A value of a label in a namespace.
type Place = (Namespace, String);

/// A label of which a selector asks one of some values.
type Asked = (String, BTreeSet<String>);

/// The first label of which a selector asks a value, if it does.
fn lookup_keys(selector: &Selector) -> Option<Asked> {
    selector.clone().into_iter().find_map(|expression| match expression {
        Expression::Equal(label, value) => Some((label, [value].into())),
        Expression::In(label, values) => Some((label, values)),
        _ => None,
    })
}

/// Whether an object's labels fit.
pub(super) fn fits(selector: &Selector, meta: &ObjectMeta) -> bool {
    static NONE: BTreeMap<String, String> = BTreeMap::new();
    selector.matches(meta.labels.as_ref().unwrap_or(&NONE))
}

fn label<'a>(meta: &'a ObjectMeta, label: &str) -> Option<&'a String> {
    meta.labels.as_ref()?.get(label)
}

/// Objects by namespace, and by the labels that selectors ask for: nothing is kept for others.
#[derive(Default)]
pub(super) struct ByLabel {
    namespaces: HashMap<Namespace, BTreeSet<ObjectKey>>,
    labels: HashMap<String, HashMap<Place, BTreeSet<ObjectKey>>>,
}

impl ByLabel {
    /// An object came, changed, or went.
    pub fn change(
        &mut self,
        key: &ObjectKey,
        before: Option<&ObjectMeta>,
        now: Option<&ObjectMeta>,
    ) {
        match now {
            Some(_) => insert(&mut self.namespaces, key.namespace.clone(), key),
            None => remove(&mut self.namespaces, &key.namespace, key),
        }
        for (of, places) in &mut self.labels {
            let place = |value: &String| (key.namespace.clone(), value.clone());
            if let Some(value) = before.and_then(|meta| label(meta, of)) {
                remove(places, &place(value), key);
            }
            if let Some(value) = now.and_then(|meta| label(meta, of)) {
                insert(places, place(value), key);
            }
        }
    }

    /// Makes ready for a selector; `all` is asked for the objects if no other has asked for its label.
    pub fn prepare<'a, I>(&mut self, selector: &Selector, all: impl FnOnce() -> I)
    where
        I: IntoIterator<Item = (&'a ObjectKey, &'a ObjectMeta)>,
    {
        let Some((of, _)) = lookup_keys(selector) else { return };
        if self.labels.contains_key(&of) {
            return;
        }
        let mut places = HashMap::new();
        for (key, meta) in all() {
            if let Some(value) = label(meta, &of) {
                insert(&mut places, (key.namespace.clone(), value.clone()), key);
            }
        }
        self.labels.insert(of, places);
    }

    /// The objects of a namespace that may fit.
    pub fn candidates<'a>(
        &'a self,
        namespace: &Namespace,
        selector: &Selector,
    ) -> Box<dyn Iterator<Item = &'a ObjectKey> + 'a> {
        let known =
            lookup_keys(selector).and_then(|(of, values)| Some((self.labels.get(&of)?, values)));
        let Some((places, values)) = known else {
            return Box::new(self.namespaces.get(namespace).into_iter().flatten());
        };
        let namespace = namespace.clone();
        let found = values.into_iter().filter_map(move |value| {
            let place = (namespace.clone(), value);
            places.get(&place)
        });
        Box::new(found.flatten())
    }
}

/// Who listed with which selectors, each with the reconcile that last did.
#[derive(Default)]
pub(super) struct Holders {
    held: HashMap<Key, Vec<(Selector, u64)>>,
    /// Those whose selectors ask for a value of a label.
    by_value: HashMap<(Namespace, String, String), HashSet<Key>>,
    /// Those whose selectors do not.
    others: HashMap<Namespace, HashSet<Key>>,
}

impl Holders {
    /// A resource lists the objects of its namespace with a selector.
    pub fn hold(&mut self, holder: &Key, selector: &Selector, epoch: u64) {
        let selectors = self.held.entry(holder.clone()).or_default();
        if let Some((_, held_in)) = selectors.iter_mut().find(|(known, _)| known == selector) {
            *held_in = epoch;
            return;
        }
        selectors.push((selector.clone(), epoch));
        self.note(holder, selector);
    }

    /// Forgets the selectors of a resource whose reconcile `keep` does not like.
    pub fn release(&mut self, holder: &Key, keep: impl Fn(u64) -> bool) {
        let Some(selectors) = self.held.get_mut(holder) else { return };
        if selectors.iter().all(|(_, epoch)| keep(*epoch)) {
            return;
        }
        let mut selectors = std::mem::take(selectors);
        for (selector, _) in &selectors {
            self.remove_holder(holder, selector);
        }
        selectors.retain(|(_, epoch)| keep(*epoch));
        for (selector, _) in &selectors {
            self.note(holder, selector);
        }
        if selectors.is_empty() {
            self.held.remove(holder);
        } else {
            self.held.insert(holder.clone(), selectors);
        }
    }

    /// Whom an object concerns that was and is like this.
    pub fn concerned(&self, namespace: &Namespace, metas: &[&ObjectMeta]) -> BTreeSet<Key> {
        let fit = |key: &Key| {
            let mut selectors = self.held.get(key).into_iter().flatten();
            selectors.any(|(selector, _)| metas.iter().any(|meta| fits(selector, meta)))
        };
        self.candidates(namespace, metas).into_iter().filter(|key| fit(key)).cloned().collect()
    }

    fn candidates(&self, namespace: &Namespace, metas: &[&ObjectMeta]) -> HashSet<&Key> {
        let labels = metas.iter().flat_map(|meta| meta.labels.iter().flatten());
        let by_value = labels.filter_map(|(label, value)| {
            self.by_value.get(&(namespace.clone(), label.clone(), value.clone()))
        });
        by_value.chain(self.others.get(namespace)).flatten().collect()
    }

    fn note(&mut self, holder: &Key, selector: &Selector) {
        let namespace = holder.object.namespace.clone();
        match lookup_keys(selector) {
            None => _ = self.others.entry(namespace).or_default().insert(holder.clone()),
            Some((label, values)) => {
                for value in values {
                    let place = (namespace.clone(), label.clone(), value);
                    self.by_value.entry(place).or_default().insert(holder.clone());
                }
            }
        }
    }

    fn remove_holder(&mut self, holder: &Key, selector: &Selector) {
        let namespace = holder.object.namespace.clone();
        match lookup_keys(selector) {
            None => remove_from(&mut self.others, &namespace, holder),
            Some((label, values)) => {
                for value in values {
                    let place = (namespace.clone(), label.clone(), value);
                    remove_from(&mut self.by_value, &place, holder);
                }
            }
        }
    }
}

fn remove_from<P: std::hash::Hash + Eq>(
    places: &mut HashMap<P, HashSet<Key>>,
    place: &P,
    holder: &Key,
) {
    if let Some(holders) = places.get_mut(place) {
        holders.remove(holder);
        if holders.is_empty() {
            places.remove(place);
        }
    }
}

fn insert<P: std::hash::Hash + Eq>(
    places: &mut HashMap<P, BTreeSet<ObjectKey>>,
    place: P,
    key: &ObjectKey,
) {
    places.entry(place).or_default().insert(key.clone());
}

fn remove<P: std::hash::Hash + Eq>(
    places: &mut HashMap<P, BTreeSet<ObjectKey>>,
    place: &P,
    key: &ObjectKey,
) {
    if let Some(keys) = places.get_mut(place) {
        keys.remove(key);
        if keys.is_empty() {
            places.remove(place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> ObjectKey {
        ObjectKey { namespace: Some("n".to_owned()), name: name.to_owned() }
    }

    fn holder(name: &str) -> Key {
        Key { kind: 0, object: key(name) }
    }

    fn labelled(labels: &[(&str, &str)]) -> ObjectMeta {
        let labels = labels.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        ObjectMeta { labels: Some(labels.collect()), ..ObjectMeta::default() }
    }

    fn equal(label: &str, value: &str) -> Selector {
        Expression::Equal(label.to_owned(), value.to_owned()).into()
    }

    fn names(index: &ByLabel, selector: &Selector) -> Vec<String> {
        let found = index.candidates(&Some("n".to_owned()), selector);
        found.map(|key| key.name.clone()).collect()
    }

    #[test]
    fn of_thousands_of_children_and_owners_in_a_namespace_those_are_looked_at_that_fit() {
        let (mut index, mut holders) = (ByLabel::default(), Holders::default());
        let namespace = Some("n".to_owned());
        for number in 0..2000 {
            let (machine, selector) = (number.to_string(), equal("machine", &number.to_string()));
            index.prepare(&selector, || []);
            holders.hold(&holder(&machine), &selector, 1);
            for switch in 0..3 {
                let meta = labelled(&[("machine", &machine), ("a", "b")]);
                index.change(&key(&format!("{machine}-{switch}")), None, Some(&meta));
            }
        }
        assert_eq!(names(&index, &equal("machine", "7")), ["7-0", "7-1", "7-2"]);
        let changed = labelled(&[("machine", "7"), ("a", "b")]);
        assert_eq!(holders.candidates(&namespace, &[&changed]), HashSet::from([&holder("7")]));
        let moved = labelled(&[("machine", "8")]);
        let both = holders.concerned(&namespace, &[&changed, &moved]);
        assert_eq!(both, BTreeSet::from([holder("7"), holder("8")]), "who lost it and who got it");
    }

    #[test]
    fn an_index_that_comes_late_has_what_was_there_and_follows_what_changes() {
        let (one, two) = (labelled(&[("x", "1")]), labelled(&[("x", "2")]));
        let mut index = ByLabel::default();
        index.change(&key("a"), None, Some(&one));
        index.change(&key("b"), None, Some(&two));
        let any = Selector::default();
        assert_eq!(names(&index, &any), ["a", "b"], "without a value to ask for: all");
        assert_eq!(names(&index, &equal("x", "1")), ["a", "b"], "not prepared for");
        let (a, b) = (key("a"), key("b"));
        index.prepare(&equal("x", "1"), || [(&a, &one), (&b, &two)]);
        assert_eq!(names(&index, &equal("x", "1")), ["a"]);
        index.change(&b, Some(&two), Some(&one));
        index.change(&a, Some(&one), None);
        assert_eq!(names(&index, &equal("x", "1")), ["b"]);
        let either = Expression::In("x".to_owned(), ["1".to_owned(), "2".to_owned()].into());
        assert_eq!(names(&index, &either.into()), ["b"]);
        assert_eq!(names(&index, &any), ["b"]);
        let elsewhere = Some("other".to_owned());
        assert_eq!(index.candidates(&elsewhere, &any).count(), 0);
    }

    #[test]
    fn a_selector_is_held_as_long_as_its_reconciles_use_it() {
        let mut holders = Holders::default();
        let (namespace, meta) = (Some("n".to_owned()), labelled(&[("x", "1")]));
        let exists: Selector = Expression::Exists("x".to_owned()).into();
        let concerned = |holders: &Holders| holders.concerned(&namespace, &[&meta]).len();
        holders.hold(&holder("h"), &equal("x", "1"), 1);
        holders.hold(&holder("h"), &exists, 1);
        holders.hold(&holder("h"), &exists, 2);
        holders.release(&holder("h"), |epoch| epoch == 2);
        assert_eq!(concerned(&holders), 1, "by the other selector");
        assert!(holders.by_value.is_empty());
        holders.release(&holder("h"), |_| false);
        assert_eq!(concerned(&holders), 0);
        assert!(holders.held.is_empty() && holders.others.is_empty());
    }
}
