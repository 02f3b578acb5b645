//! A template that belongs to no chart, such as `--name-template` or a value in watches.yaml.

use std::sync::Arc;
use std::time::SystemTime;

use catamaran_gotemplate::{Budget, Ctx, Error, MissingKey, RandomSeed, TemplateSet, Value};

/// Runs a template without data, with all functions but those that need a chart.
///
/// # Errors
/// Go's text, with `name` as the template's name.
pub fn standalone(
    name: &str,
    text: &str,
    clock: SystemTime,
    seed: RandomSeed,
) -> Result<String, Error> {
    let mut ctx = Ctx::new(Budget::default(), clock, seed);
    let mut set = TemplateSet::new(Arc::new(catamaran_sprig::registry()), MissingKey::Invalid);
    set.parse(name, text)?;
    Ok(set.execute(&mut ctx, name, &Value::Nil)?.to_str_lossy().into_owned())
}
