//! How much work a values.schema.json would be.
//!
//! The validator knows no limits: schemas that refer to one another twice at every level take time
//! without end, chains of references overflow the native stack, and each of its regular expressions
//! may take megabytes. So all of that is counted before it is asked.

use std::collections::HashMap;

use regex::RegexBuilder;
use serde_json::Value;

/// How often a value may be held against a schema.
const MAX_VISITS: u64 = 300_000;
/// How deep schemas may lead into one another for one value and the values inside it.
const MAX_DEPTH: usize = 200;
/// How many objects and how many items a schema file may have; each schema takes a kilobyte.
const MAX_OBJECTS: usize = 20_000;
const MAX_ITEMS: usize = 200_000;
/// What one compiled expression may take, from small to large, and all together, in bytes.
const PATTERN_SIZES: [usize; 4] = [8 << 10, 32 << 10, 128 << 10, 512 << 10];
const MAX_PATTERNS: usize = 16 << 20;
/// The longest expression.
const MAX_PATTERN: usize = 16 << 10;

/// So many keys or items that are remembered take as long as a visit.
const TRACKED: u64 = 16;

/// Why a schema is not asked.
pub(super) type Refusal = &'static str;

const TOO_LARGE: Refusal = "the schema is too large";
const TOO_DEEP: Refusal = "the schema leads too deep";
const TOO_MUCH: Refusal = "checking the values takes too many steps";
const PATTERNS: Refusal = "the regular expressions of the schema are too large";

/// Whether a schema's text may be read at all.
pub(super) fn check_text(text: &[u8]) -> Result<(), Refusal> {
    let count = |wanted: u8| memchr::memchr_iter(wanted, text).count();
    if count(b'{') > MAX_OBJECTS || count(b',') + count(b'[') > MAX_ITEMS {
        return Err(TOO_LARGE);
    }
    Ok(())
}

/// Whether values may be held against a schema.
pub(super) fn check(schema: &Value, values: &Value) -> Result<(), Refusal> {
    let mut names = Names {
        root: schema,
        resources: Vec::new(),
        anchors: HashMap::new(),
        patterns: 0,
        tracks: false,
    };
    names.collect(schema)?;
    let mut walk = Walk { names, seen: HashMap::new() };
    if walk.visits(schema, values, 0)? > MAX_VISITS { Err(TOO_MUCH) } else { Ok(()) }
}

/// What references may name.
struct Names<'s> {
    root: &'s Value,
    /// Schemas with an `$id` of their own.
    resources: Vec<(&'s str, &'s Value)>,
    anchors: HashMap<&'s str, &'s Value>,
    /// Bytes of compiled expressions.
    patterns: usize,
    /// Whether the validator has to remember which keys and items were looked at.
    tracks: bool,
}

impl<'s> Names<'s> {
    fn collect(&mut self, schema: &'s Value) -> Result<(), Refusal> {
        match schema {
            Value::Array(items) => items.iter().try_for_each(|item| self.collect(item)),
            Value::Object(object) => {
                for (key, value) in object {
                    match (key.as_str(), value) {
                        ("$id" | "id", Value::String(id)) => self.resources.push((id, schema)),
                        ("$anchor" | "$dynamicAnchor", Value::String(name)) => {
                            self.anchors.insert(name, schema);
                        }
                        ("unevaluatedProperties" | "unevaluatedItems", _) => self.tracks = true,
                        ("pattern", Value::String(pattern)) => self.pattern(pattern)?,
                        ("patternProperties", Value::Object(patterns)) => {
                            patterns.keys().try_for_each(|pattern| self.pattern(pattern))?;
                        }
                        _ => {}
                    }
                    self.collect(value)?;
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Counts an expression. One that does not compile is the validator's to refuse.
    fn pattern(&mut self, pattern: &str) -> Result<(), Refusal> {
        if pattern.len() > MAX_PATTERN {
            return Err(PATTERNS);
        }
        let fits = |size: &&usize| {
            let built = RegexBuilder::new(pattern).size_limit(**size).build();
            !matches!(built, Err(regex::Error::CompiledTooBig(_)))
        };
        self.patterns += PATTERN_SIZES.iter().find(fits).ok_or(PATTERNS)?;
        if self.patterns > MAX_PATTERNS { Err(PATTERNS) } else { Ok(()) }
    }

    /// Every schema that a reference may mean. Rather one too many: this only counts.
    fn resolve(&self, reference: &str) -> Vec<&'s Value> {
        let (base, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let last = |id: &'_ str| id.trim_end_matches('#').rsplit('/').next().map(str::to_owned);
        let named =
            self.resources.iter().filter(|(id, _)| base.is_empty() || last(id) == last(base));
        let mut found: Vec<&Value> = named.map(|(_, schema)| *schema).collect();
        if base.is_empty() || found.is_empty() {
            found.push(self.root);
        }
        if fragment.is_empty() || fragment.starts_with('/') {
            let pointer = decoded(fragment);
            found = found.into_iter().filter_map(|schema| schema.pointer(&pointer)).collect();
        } else {
            found = self.anchors.get(fragment).copied().into_iter().collect();
        }
        found.sort_by_key(|schema| std::ptr::from_ref(*schema).addr());
        found.dedup_by_key(|schema| std::ptr::from_ref(*schema).addr());
        found
    }
}

/// Keys, or items.
fn size(value: &Value) -> u64 {
    match value {
        Value::Object(object) => object.len() as u64,
        Value::Array(items) => items.len() as u64,
        _ => 0,
    }
}

/// `%25` as what it stands for.
fn decoded(text: &str) -> String {
    let mut out = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        let digits = after.get(..2).filter(|_| *byte == b'%');
        let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        let code = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        out.push(code.unwrap_or(*byte));
        rest = if code.is_some() { after.get(2..).unwrap_or_default() } else { after };
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// Counts visits; what is held against the same schema twice counts twice, but is looked at once.
struct Walk<'s> {
    names: Names<'s>,
    seen: HashMap<(usize, usize), u64>,
}

impl<'s> Walk<'s> {
    fn visits(&mut self, schema: &'s Value, value: &Value, depth: usize) -> Result<u64, Refusal> {
        let Value::Object(keywords) = schema else { return Ok(1) };
        if depth > MAX_DEPTH {
            return Err(TOO_DEEP);
        }
        let key = (std::ptr::from_ref(schema).addr(), std::ptr::from_ref(value).addr());
        if let Some(known) = self.seen.get(&key) {
            return Ok(*known);
        }
        if self.seen.len() as u64 > MAX_VISITS {
            return Err(TOO_MUCH);
        }
        // The validator notices when a schema leads back to itself for the same value.
        self.seen.insert(key, 1);
        let mut count = 1 + if self.names.tracks { size(value) / TRACKED } else { 0 };
        for (keyword, inner) in keywords {
            count += self.keyword(keyword, inner, value, depth + 1)?;
            if count > MAX_VISITS {
                return Err(TOO_MUCH);
            }
        }
        self.seen.insert(key, count);
        Ok(count)
    }

    fn keyword(
        &mut self,
        keyword: &str,
        inner: &'s Value,
        value: &Value,
        depth: usize,
    ) -> Result<u64, Refusal> {
        let mut count = 0;
        match keyword {
            "$ref" | "$dynamicRef" | "$recursiveRef" => {
                for schema in self.names.resolve(inner.as_str().unwrap_or_default()) {
                    count += self.visits(schema, value, depth)?;
                }
            }
            "allOf" | "anyOf" | "oneOf" => {
                for schema in inner.as_array().into_iter().flatten() {
                    count += self.visits(schema, value, depth)?;
                }
            }
            "not" | "if" | "then" | "else" => count += self.visits(inner, value, depth)?,
            "dependentSchemas" | "dependencies" => {
                for schema in inner.as_object().into_iter().flat_map(|all| all.values()) {
                    count += self.visits(schema, value, depth)?;
                }
            }
            "enum" | "required" => count += inner.as_array().map_or(0, Vec::len) as u64,
            "uniqueItems" => count += value.as_array().map_or(0, Vec::len) as u64 * 20,
            "pattern" => count += value.as_str().map_or(0, str::len) as u64 / 16,
            _ => count += self.inside(keyword, inner, value, depth)?,
        }
        Ok(count)
    }

    /// Keywords about the values inside a value.
    fn inside(
        &mut self,
        keyword: &str,
        inner: &'s Value,
        value: &Value,
        depth: usize,
    ) -> Result<u64, Refusal> {
        let mut count = 0;
        match (keyword, value) {
            ("properties", Value::Object(object)) => {
                for (name, schema) in inner.as_object().into_iter().flatten() {
                    if let Some(value) = object.get(name) {
                        count += self.visits(schema, value, depth)?;
                    }
                }
            }
            ("patternProperties", Value::Object(object)) => {
                for schema in inner.as_object().into_iter().flat_map(|all| all.values()) {
                    for value in object.values() {
                        count += self.visits(schema, value, depth)?;
                    }
                }
            }
            (
                "additionalProperties" | "unevaluatedProperties" | "propertyNames",
                Value::Object(object),
            ) => {
                for value in object.values() {
                    count += self.visits(inner, value, depth)?;
                }
            }
            ("items" | "prefixItems", Value::Array(values)) if inner.is_array() => {
                for (schema, value) in inner.as_array().into_iter().flatten().zip(values) {
                    count += self.visits(schema, value, depth)?;
                }
            }
            (
                "items" | "additionalItems" | "unevaluatedItems" | "contains",
                Value::Array(values),
            ) => {
                for value in values {
                    count += self.visits(inner, value, depth)?;
                }
            }
            _ => {}
        }
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_grows_without_end_is_refused() {
        let twice = |to: &str| json!({"allOf": [{"$ref": to}, {"$ref": to}]});
        let mut schema = json!({"$ref": "#/$defs/0", "$defs": {"40": {"type": "object"}}});
        for level in 0..40 {
            schema["$defs"][level.to_string()] = twice(&format!("#/$defs/{}", level + 1));
        }
        assert_eq!(check(&schema, &json!({})), Err(TOO_MUCH));

        let mut chain = json!({"$ref": "#/$defs/0", "$defs": {"5000": {}}});
        for level in 0..5000 {
            chain["$defs"][level.to_string()] = json!({"$ref": format!("#/$defs/{}", level + 1)});
        }
        assert_eq!(check(&chain, &json!({})), Err(TOO_DEEP));

        let tree = json!({"$id": "https://x/tree", "properties": {"a": {"$ref": "#"}, "b": {"$ref": "tree"}}});
        assert_eq!(check(&tree, &json!({"a": {"b": {"a": {}}}})), Ok(()));
        assert_eq!(check(&json!({"$ref": "#"}), &json!({})), Ok(()));
        assert_eq!(
            check(&json!({"pattern": "(((a{99}){99}){99}){99}"}), &json!("a")),
            Err(PATTERNS)
        );
        assert_eq!(
            check(&json!({"pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"}), &json!("a")),
            Ok(())
        );
        let choices: Vec<usize> = (0..1000).collect();
        let items = json!({"items": {"enum": choices}});
        assert_eq!(check(&items, &json!(vec![1; 10])), Ok(()));
        assert_eq!(check(&items, &json!(vec![1; 1000])), Err(TOO_MUCH));
        let keys = |count: usize| -> serde_json::Map<_, _> {
            (0..count).map(|n| (format!("k{n}"), json!(1))).collect()
        };
        let all: Vec<_> =
            (0..2000).map(|n| json!({"properties": {format!("k{n}"): true}})).collect();
        let tracked = json!({"allOf": all, "unevaluatedProperties": false});
        assert_eq!(check(&tracked, &keys(50).into()), Ok(()));
        assert_eq!(check(&tracked, &keys(20_000).into()), Err(TOO_MUCH));
        assert_eq!(check_text("{".repeat(30_000).as_bytes()), Err(TOO_LARGE));
    }

    #[test]
    fn references_are_found_by_pointer_anchor_and_name() {
        let schema = json!({"$defs": {"a%b/c": {"$anchor": "x"}, "d": {"$id": "sub/e.json"}}});
        let mut names = Names {
            root: &schema,
            resources: Vec::new(),
            anchors: HashMap::new(),
            patterns: 0,
            tracks: false,
        };
        names.collect(&schema).unwrap();
        for reference in ["#/$defs/a%25b~1c", "#x", "e.json", "#", ""] {
            assert!(!names.resolve(reference).is_empty(), "{reference}");
        }
        assert!(names.resolve("#/nowhere").is_empty());
    }
}
