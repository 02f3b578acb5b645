//! What a chart generates anew in each rendering: passwords, certificates, times.
//!
//! A rendering is compared with a record as if it had generated what the record holds. Random texts are
//! found again in the record by their place ([`kept_random_texts`]), and the chart is rendered once more
//! with them, so that all that is made of them, such as checksums, fits. What cannot be found again,
//! such as certificates, may differ ([`is_same_but_generated`]).

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::{Duration, SystemTime};

use aho_corasick::{AhoCorasick, MatchKind};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use catamaran_chart::manifest::parse_objects;
use catamaran_chart::{
    RandomCall, RandomOverride, RandomOverrides, RandomSeed, RandomText, Rendered,
};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::objects::{ObjectId, id_of, normalised, parse_manifest};
use crate::record::Release;

/// A year, a month, a day, an hour, a minute and a second, and more than a whole number of weeks.
const ANOTHER_TIME: Duration = Duration::from_secs((366 + 35) * 24 * 3600 + 3661);

/// A time of which nothing that a chart may print is as of this one: year, month, weekday, hour and so on.
pub fn another_time(clock: SystemTime) -> SystemTime {
    clock.checked_add(ANOTHER_TIME).unwrap_or(clock)
}

/// What random functions have to give so that a rendering has the random texts of a record where the
/// record has some in the same place: passwords stay when a template changes, and when the record was
/// made of another seed, or by another program.
///
/// A place is a field of an object, as it is or in Base64. A text is taken from the record only if the
/// call could have given it: of the same length and characters. A call that is new, and whose text
/// belongs to another place of the record, gives what `fresh` makes. Calls that give the right text
/// already have no override.
pub fn kept_random_texts(
    record: &Release,
    rendered: &Rendered,
    fresh: RandomSeed,
) -> RandomOverrides {
    let (old, new) = (record_texts(record), rendered_texts(rendered));
    if rendered.random_texts.is_empty() || old == new {
        return RandomOverrides::default();
    }
    let finder = Finder::new(&rendered.random_texts);
    let (old, new) = (objects_of(&record.namespace, &old), objects_of(&record.namespace, &new));
    let mut kept: BTreeMap<RandomCall, String> = BTreeMap::new();
    for (who, new) in &new {
        let Some(old) = old.get(who) else { continue };
        for_each_leaf(new, old, &mut |new, old| {
            if let Compared::Fits(texts) = finder.compare(new, old) {
                for (call, text) in texts {
                    kept.entry(call).or_insert(text);
                }
            }
        });
    }
    let taken: HashSet<&str> = kept.values().map(String::as_str).collect();
    let overrides = rendered.random_texts.iter().filter_map(|random| {
        let value = match kept.get(&random.call) {
            Some(text) if *text == random.text => return None,
            Some(text) => RandomOverride::Text(text.clone()),
            None if taken.contains(random.text.as_str()) => {
                RandomOverride::Seed(seed_for(fresh, random.call))
            }
            None => return None,
        };
        Some((random.call, value))
    });
    overrides.collect()
}

fn seed_for(fresh: RandomSeed, call: RandomCall) -> RandomSeed {
    let mut hash = Sha256::new_with_prefix(fresh.as_bytes());
    hash.update(call.as_bytes());
    let bits: [u8; 32] = hash.finalize().into();
    RandomSeed::from(bits)
}

/// Whether a record is what `one` is, but for what the chart generates: it differs from `one` at most
/// where `other`, a rendering of the same with another clock, or another seed, does. A field that holds
/// a random text has to fit besides that text.
///
/// False where `one` and `other` are the same, or where something cannot be read.
pub fn is_same_but_generated(record: &Release, one: &Rendered, other: &Rendered) -> bool {
    let finder = Finder::new(&one.random_texts);
    let old = record_texts(record);
    let (one, other) = (rendered_texts(one), rendered_texts(other));
    if one == other || old.len() != one.len() || old.len() != other.len() {
        return false;
    }
    let read = |text: &str| {
        let objects = parse_objects(text).ok()?.into_iter();
        Some(Value::Array(objects.map(|it| normalised(it, &record.namespace)).collect()))
    };
    old.iter().zip(one.iter().zip(&other)).all(|(old, (one, other))| {
        match (read(old), read(one), read(other)) {
            (Some(old), Some(one), Some(other)) => finder.agrees(&old, &one, &other),
            _ => false,
        }
    })
}

/// The texts of a record's manifest and hooks, in an order that both generations of Helm have.
fn record_texts(record: &Release) -> Vec<Cow<'_, str>> {
    let hooks = record.hooks.iter().map(|hook| ((&*hook.path, &*hook.kind), &*hook.manifest));
    texts(Cow::Borrowed(&record.manifest), hooks.collect())
}

/// The same of a rendering.
fn rendered_texts(rendered: &Rendered) -> Vec<Cow<'_, str>> {
    let hooks = rendered.hooks.iter().map(|hook| ((&*hook.path, &*hook.kind), &*hook.manifest));
    texts(Cow::Owned(rendered.manifest_text()), hooks.collect())
}

fn texts<'a>(manifest: Cow<'a, str>, mut hooks: Vec<((&str, &str), &'a str)>) -> Vec<Cow<'a, str>> {
    hooks.sort_by_key(|(order, _)| *order);
    let hooks = hooks.into_iter().map(|(_, manifest)| Cow::Borrowed(manifest));
    [manifest].into_iter().chain(hooks).collect()
}

/// The objects of a manifest and of hooks, and whether each is a hook's. Texts that cannot be read have
/// none.
fn objects_of(namespace: &str, texts: &[Cow<'_, str>]) -> BTreeMap<(bool, ObjectId), Value> {
    let objects = texts.iter().enumerate().flat_map(|(index, text)| {
        let objects = parse_manifest(text).unwrap_or_default().into_iter();
        objects.map(move |raw| {
            // The scope of the kind is the same on both sides, whichever it is.
            let id = id_of(&raw.object, &raw.gvk, true, namespace);
            ((index > 0, id), raw.object)
        })
    });
    objects.collect()
}

/// Visits the texts and numbers that are at the same place of both. Items of lists are the same if they
/// have the same `name`, or else the same index.
fn for_each_leaf(new: &Value, old: &Value, visit: &mut impl FnMut(&str, &str)) {
    match (new, old) {
        (Value::Object(new), Value::Object(old)) => {
            for (key, new) in new {
                if let Some(old) = old.get(key) {
                    for_each_leaf(new, old, visit);
                }
            }
        }
        (Value::Array(new), Value::Array(old)) => {
            let name = |item: &Value| item.get("name")?.as_str().map(str::to_owned);
            let names: HashMap<String, &Value> =
                old.iter().filter_map(|item| Some((name(item)?, item))).collect();
            for (index, new) in new.iter().enumerate() {
                let found = match name(new) {
                    Some(name) => names.get(&name).copied(),
                    None => old.get(index),
                };
                if let Some(old) = found {
                    for_each_leaf(new, old, visit);
                }
            }
        }
        (new, old) => {
            if let (Some(new), Some(old)) = (leaf(new), leaf(old)) {
                visit(&new, &old);
            }
        }
    }
}

fn leaf(value: &Value) -> Option<Cow<'_, str>> {
    match value {
        Value::String(text) => Some(Cow::Borrowed(text)),
        Value::Number(number) => Some(Cow::Owned(number.to_string())),
        _ => None,
    }
}

/// How a field of a rendering compares with the same field of a record.
enum Compared {
    /// The rendering's holds no random text.
    NotRandom,
    /// They are the same but for random texts; these are the record's.
    Fits(Vec<(RandomCall, String)>),
    /// They differ in more than random texts.
    Differs,
}

/// Finds the random texts of a rendering in its fields.
struct Finder<'a> {
    texts: &'a [RandomText],
    /// `None` if there is nothing to be found.
    automaton: Option<AhoCorasick>,
}

impl<'a> Finder<'a> {
    fn new(texts: &'a [RandomText]) -> Self {
        let automaton = (!texts.is_empty()).then(|| {
            let patterns = texts.iter().map(|random| random.text.as_str());
            AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(patterns).ok()
        });
        Self { texts, automaton: automaton.flatten() }
    }

    /// Compares a field, as it is or in Base64.
    fn compare(&self, new: &str, old: &str) -> Compared {
        match self.compare_plain(new, old) {
            Compared::NotRandom => match (decoded(new), decoded(old)) {
                (Some(new), Some(old)) => self.compare_plain(&new, &old),
                _ => Compared::NotRandom,
            },
            compared => compared,
        }
    }

    fn compare_plain(&self, new: &str, old: &str) -> Compared {
        let Some(automaton) = &self.automaton else { return Compared::NotRandom };
        let (mut found, mut end, mut rest) = (Vec::new(), 0, old);
        for hit in automaton.find_iter(new) {
            let Some(random) = self.texts.get(hit.pattern().as_usize()) else { continue };
            let literal = new.get(end..hit.start()).unwrap_or_default();
            let Some(after) = rest.strip_prefix(literal) else { return Compared::Differs };
            let split = after.split_at_checked(random.text.len());
            let Some((text, after)) = split.filter(|(text, _)| random.could_be(text)) else {
                return Compared::Differs;
            };
            found.push((random.call, text.to_owned()));
            (end, rest) = (hit.end(), after);
        }
        match new.get(end..) {
            _ if end == 0 => Compared::NotRandom,
            Some(literal) if literal == rest => Compared::Fits(found),
            _ => Compared::Differs,
        }
    }

    /// Whether a value is `one` wherever that is the same as `other`.
    fn agrees(&self, old: &Value, one: &Value, other: &Value) -> bool {
        if one == other {
            return old == one;
        }
        match (old, one, other) {
            (Value::Array(old), Value::Array(one), Value::Array(other))
                if one.len() == other.len() =>
            {
                let pairs = one.iter().zip(other);
                old.len() == one.len()
                    && old.iter().zip(pairs).all(|(old, (one, other))| self.agrees(old, one, other))
            }
            (Value::Object(old), Value::Object(one), Value::Object(other)) => {
                let generated = |key: &String| one.contains_key(key) != other.contains_key(key);
                let both = |key: &String| one.get(key).zip(other.get(key));
                one.keys().filter(|key| !generated(key)).all(|key| {
                    let agreed =
                        |old| both(key).is_some_and(|(one, other)| self.agrees(old, one, other));
                    old.get(key).is_some_and(agreed)
                }) && old.keys().all(|key| one.contains_key(key) || other.contains_key(key))
            }
            // Generated, as a whole or in part.
            (old, one, _) => match (leaf(old), leaf(one)) {
                (Some(old), Some(one)) => !matches!(self.compare(&one, &old), Compared::Differs),
                _ => true,
            },
        }
    }
}

/// The text that a field holds in Base64, as those of Secrets do.
fn decoded(text: &str) -> Option<String> {
    String::from_utf8(STANDARD.decode(text.trim_end()).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;
    use catamaran_chart::{
        Budget, Capabilities, Chart, File, Lookups, Profile, ReleaseFacts, RenderInput,
    };
    use serde_json::Map;
    use std::time::UNIX_EPOCH;

    /// A Secret of these fields.
    fn template(fields: &str) -> String {
        format!("apiVersion: v1\nkind: Secret\nmetadata: {{name: a}}\ndata:\n{fields}")
    }

    /// What a chart of one template renders to.
    fn render(fields: &str, seed: u64, overrides: &RandomOverrides) -> Rendered {
        let data = template(fields).into_bytes().into();
        let templates = vec![File { name: "templates/a.yaml".into(), data }];
        let chart = Chart { templates, ..fixtures::chart() }.compile().expect("a chart");
        let input = RenderInput {
            values: &Map::new(),
            release: &ReleaseFacts { ..fixtures::facts(1, true) },
            capabilities: &Capabilities::offline(Profile::Helm318),
            profile: Profile::Helm318,
            lookups: &Lookups::offline(),
            clock: UNIX_EPOCH + Duration::from_secs(seed),
            seed: seed.into(),
            random_overrides: Some(overrides),
            budget: Budget::default(),
        };
        chart.render(&input).expect("a rendering")
    }

    fn record(rendered: &Rendered) -> Release {
        Release { manifest: rendered.manifest_text(), namespace: "ns".into(), ..Release::default() }
    }

    fn data(rendered: &Rendered) -> Value {
        let objects = parse_objects(&rendered.manifest_text()).expect("objects");
        objects[0]["data"].clone()
    }

    /// A record of one template by one seed, and a rendering of another template by another seed that
    /// keeps the record's texts.
    fn changed(before: &str, after: &str, seed: u64) -> (Value, Value, bool) {
        let none = RandomOverrides::default();
        let old = render(before, 1, &none);
        let one = render(after, seed, &none);
        let kept = kept_random_texts(&record(&old), &one, RandomSeed::from(99));
        let (one, other) = (render(after, seed, &kept), render(after, seed + 1, &kept));
        let again = kept_random_texts(&record(&one), &render(after, seed, &none), 98.into());
        assert_eq!(
            data(&render(after, seed, &again)),
            data(&one),
            "the next rendering has it, too"
        );
        let is_same =
            data(&old) == data(&one) || is_same_but_generated(&record(&old), &one, &other);
        (data(&old), data(&one), is_same)
    }

    const A: &str = "  a: {{ randAlphaNum 20 }}\n";
    const B: &str = "  b: {{ randAlphaNum 20 | b64enc }}\n";
    const C: &str = "  c: 'x-{{ randAlphaNum 20 }}-{{ uuidv4 }}'\n";

    #[test]
    fn random_texts_stay_where_they_are_whatever_comes_and_goes_beside_them() {
        let all = [A, B, C].concat();
        let rows = [
            (all.clone(), all.clone(), true),
            (all.clone(), [C, B, A].concat(), true),
            (all.clone(), [A, C].concat(), false),
            ([A, C].concat(), all.clone(), false),
            (B.to_owned(), [A, B].concat(), false),
            (all.clone(), [&all, "  d: added\n"].concat(), false),
        ];
        for seed in [1, 7] {
            for (before, after, expected) in &rows {
                let (old, new, is_same) = changed(before, after, seed);
                assert_eq!(is_same, *expected, "{before} {after}");
                for (key, value) in new.as_object().expect("fields") {
                    let is_other = |(name, other): (&String, &Value)| name == key || other != value;
                    assert!(old.as_object().expect("fields").iter().all(is_other), "{key} is new");
                    if let Some(old) = old.get(key) {
                        assert_eq!(value, old, "{key} of {after}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_change_beside_a_random_text_or_of_its_shape_is_a_change() {
        let rows = [
            ("  a: 'x-{{ randAlphaNum 20 }}'\n", "  a: 'y-{{ randAlphaNum 20 }}'\n"),
            ("  a: '{{ randAlphaNum 20 }}'\n", "  a: '{{ randAlphaNum 20 }}-z'\n"),
            ("  a: '{{ randAlphaNum 20 }}'\n", "  a: '{{ randAlphaNum 24 }}'\n"),
            ("  a: '{{ randNumeric 20 }}'\n", "  a: '{{ randAlpha 20 }}'\n"),
            ("  a: '{{ randAlpha 20 | b64enc }}'\n", "  a: '{{ randAlpha 20 }}'\n"),
            ("  a: '{{ randAlpha 20 }}'\n  b: one\n", "  a: '{{ randAlpha 20 }}'\n  b: two\n"),
        ];
        for (before, after) in rows {
            for seed in [1, 7] {
                assert!(!changed(before, after, seed).2, "{before} {after}");
            }
        }
    }

    #[test]
    fn what_is_made_of_a_kept_text_fits_it() {
        let made = "{{- $p := randAlphaNum 20 }}\n  a: {{ $p }}\n  sum: {{ $p | sha256sum }}\n";
        let (old, new, is_same) = changed(made, &[made, "  more: x\n"].concat(), 7);
        assert_eq!((&new["a"], &new["sum"], is_same), (&old["a"], &old["sum"], false));
        assert!(changed(made, made, 7).2);
    }

    #[test]
    fn what_cannot_be_found_again_may_differ_and_nothing_else() {
        let rows = [
            ("  a: {{ randAlphaNum 20 | lower }}\n  b: one\n", "b: one", "b: two"),
            ("  a: {{ now | unixEpoch }}\n  b: one\n", "b: one", "b: two"),
            ("  a: {{ randAlphaNum 3 }}\n  b: one\n", "b: one", "c: one"),
            ("  a: {{ bcrypt \"x\" }}\n  b: one\n", "b: one", "b: one\n  c: 1"),
        ];
        for (fields, from, to) in rows {
            assert!(changed(fields, fields, 7).2, "{fields}");
            assert!(!changed(fields, &fields.replace(from, to), 7).2, "{fields}");
        }
    }

    /// What a tenant writes into a record cannot become anything but a random text.
    #[test]
    fn a_record_gives_no_text_that_the_call_could_not_have_given() {
        let old = render(A, 1, &RandomOverrides::default());
        let one = render(A, 7, &RandomOverrides::default());
        let drawn = data(&old)["a"].as_str().expect("a text").to_owned();
        for forged in ["x'\n  b: injected #", "short", "twenty characters, no"] {
            let manifest = old.manifest_text().replace(&drawn, forged);
            let record = Release { manifest, ..record(&old) };
            assert!(kept_random_texts(&record, &one, RandomSeed::from(99)).is_empty(), "{forged}");
        }
    }

    #[test]
    fn items_of_lists_are_found_by_their_names() {
        let list = |items: &str| format!("  env:\n{items}");
        let env =
            |name: &str| format!("  - {{name: {name}, value: '{{{{ randAlphaNum 20 }}}}'}}\n");
        let before = list(&[env("a"), env("b")].concat());
        let after = list(&[env("new"), env("a"), env("b")].concat());
        let (old, new, _) = changed(&before, &after, 7);
        assert_eq!((&new["env"][1], &new["env"][2]), (&old["env"][0], &old["env"][1]));
        assert_ne!(new["env"][0]["value"], old["env"][0]["value"]);
    }
}
