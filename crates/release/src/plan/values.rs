//! The values of an upgrade: which of those that the release has are kept. Helm's rules.

use catamaran_chart::{Chart, Metadata, Profile, coalesce};
use serde_json::{Map, Number, Value};

use super::History;
use crate::record::{Release, Status};

/// What becomes of the values that the release has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Reuse {
    /// They are kept if no others are given.
    #[default]
    Unless,
    /// They are dropped.
    Reset,
    /// They are kept below those that are given, and so are the defaults of the old chart.
    Reuse,
    /// They are kept below those that are given; the defaults are the new chart's.
    ResetThenReuse,
}

/// The values of the next revision.
#[derive(Clone, Default, PartialEq)]
pub struct Chosen {
    /// The user's, as the record will have them.
    pub config: Map<String, Value>,
    /// What stands in the place of the chart's own defaults, if anything does.
    pub defaults: Option<Map<String, Value>>,
}

/// Without the values, in which there may be secrets.
impl std::fmt::Debug for Chosen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Chosen").field("config", &self.config.len()).finish_non_exhaustive()
    }
}

impl History {
    /// The revision whose values an upgrade starts from: the deployed one, or else the newest of those
    /// that came to an end.
    pub fn base(&self) -> Option<&Release> {
        let ended = |status: &Status| matches!(status, Status::Failed | Status::Superseded);
        let newest = || self.releases().rev().find(|release| ended(&release.info.status));
        self.deployed().or_else(newest).map(AsRef::as_ref)
    }
}

/// Chooses, given the values of this call. `base` is [`History::base`].
///
/// # Errors
///
/// A message for people if the old values do not fit the old chart.
pub fn choose(
    how: Reuse,
    base: Option<&Release>,
    given: Map<String, Value>,
    profile: Profile,
) -> Result<Chosen, String> {
    let Some(base) = base else { return Ok(Chosen { config: given, defaults: None }) };
    let old = || floats(base.config.clone());
    Ok(match how {
        Reuse::Unless if given.is_empty() => Chosen { config: old(), defaults: None },
        Reuse::Unless | Reuse::Reset => Chosen { config: given, defaults: None },
        Reuse::ResetThenReuse => {
            Chosen { config: laid_under(given, old(), profile), defaults: None }
        }
        Reuse::Reuse => {
            let defaults = old_defaults(base, &old(), profile)
                .map_err(|why| format!("failed to rebuild old values: {why}"))?;
            Chosen { config: laid_under(given, old(), profile), defaults: Some(defaults) }
        }
    })
}

/// What the old chart's templates saw. Records hold no subcharts, Helm's neither.
fn old_defaults(
    base: &Release,
    config: &Map<String, Value>,
    profile: Profile,
) -> Result<Map<String, Value>, String> {
    let metadata = Metadata { name: base.chart_name().to_owned(), ..Metadata::default() };
    let values = base.chart.get("values").and_then(Value::as_object).cloned().unwrap_or_default();
    let chart = Chart { metadata, values: floats(values), ..Chart::default() };
    coalesce(&chart, config, profile).map_err(|error| error.text(profile))
}

/// Lays old values under new ones: tables are merged, anything else that is new stands. A new null
/// takes an old value away; where there is none, it stays, to do so with the chart's default. (In Helm
/// 3 an old null is such a value, too.)
fn laid_under(
    mut new: Map<String, Value>,
    old: Map<String, Value>,
    profile: Profile,
) -> Map<String, Value> {
    for (key, below) in old {
        match new.remove(&key) {
            None => drop(new.insert(key, below)),
            Some(Value::Null) if !below.is_null() || profile == Profile::Helm318 => {}
            Some(Value::Object(above)) => {
                let value = match below {
                    Value::Object(below) => laid_under(above, below, profile),
                    _ => above,
                };
                new.insert(key, Value::Object(value));
            }
            Some(above) => drop(new.insert(key, above)),
        }
    }
    new
}

/// Values read from a record: Helm reads all their numbers as floats.
fn floats(values: Map<String, Value>) -> Map<String, Value> {
    values.into_iter().map(|(key, value)| (key, float(value))).collect()
}

fn float(value: Value) -> Value {
    match value {
        Value::Number(number) => {
            let float = number.as_f64().and_then(Number::from_f64);
            Value::Number(float.unwrap_or(number))
        }
        Value::Array(items) => Value::Array(items.into_iter().map(float).collect()),
        Value::Object(map) => Value::Object(floats(map)),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn map(value: &Value) -> Map<String, Value> {
        value.as_object().cloned().unwrap_or_default()
    }

    /// What comes of old values `{a: 1, t: {x: 1, y: 2}, n: null}` of a chart with the defaults
    /// `{a: 0, d: 5, t: {z: 3}}`.
    fn chosen(how: Reuse, given: &Value, profile: Profile) -> (Value, Value) {
        let base = Release {
            chart: json!({"metadata": {"name": "demo"}, "values": {"a": 0, "d": 5, "t": {"z": 3}}}),
            config: map(&json!({"a": 1, "t": {"x": 1, "y": 2}})),
            ..Release::default()
        };
        let Chosen { config, defaults } =
            choose(how, Some(&base), map(given), profile).expect("values");
        (config.into(), defaults.map_or(Value::Null, Value::Object))
    }

    #[test]
    fn old_values_are_kept_as_helm_keeps_them() {
        let old = json!({"a": 1.0, "t": {"x": 1.0, "y": 2.0}});
        let seen = json!({"a": 1.0, "d": 5.0, "t": {"x": 1.0, "y": 2.0, "z": 3.0}});
        let given = json!({"t": {"x": 9, "y": null}, "q": null});
        let over = json!({"a": 1.0, "t": {"x": 9}, "q": null});
        for (how, given, config, defaults) in [
            (Reuse::Unless, &json!({}), &old, &Value::Null),
            (Reuse::Unless, &given, &given, &Value::Null),
            (Reuse::Reset, &json!({}), &json!({}), &Value::Null),
            (Reuse::Reset, &given, &given, &Value::Null),
            (Reuse::ResetThenReuse, &json!({}), &old, &Value::Null),
            (Reuse::ResetThenReuse, &given, &over, &Value::Null),
            (Reuse::Reuse, &json!({}), &old, &seen),
            (Reuse::Reuse, &given, &over, &seen),
        ] {
            let found = chosen(how, given, Profile::Helm43);
            assert_eq!(found, (config.clone(), defaults.clone()), "{how:?} {given}");
        }
    }

    #[test]
    fn a_table_stands_over_what_is_none_and_the_other_way_round() {
        let table = chosen(Reuse::ResetThenReuse, &json!({"a": {"b": 1}, "t": 2}), Profile::Helm43);
        assert_eq!(table.0, json!({"a": {"b": 1}, "t": 2}));
    }

    #[test]
    fn without_a_release_there_is_nothing_to_keep() {
        let found = choose(Reuse::Reuse, None, map(&json!({"a": 1})), Profile::Helm43);
        assert_eq!(found.expect("values").config, map(&json!({"a": 1})));
    }
}
