//! Renders the chart of a resource.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use catamaran_chart::{
    Capabilities, Chart, KubeVersion, Lookups, Profile, RandomOverrides, RandomSeed, ReleaseFacts,
    RenderError, RenderInput, Rendered, fresh_seed,
};
use catamaran_cluster::mapper::{MapperError, ServerCapabilities};
use catamaran_cluster::redact::Sensitive;
use catamaran_release::Scope;
use catamaran_release::plan::another_time;
use kube::core::DynamicObject;
use serde_json::{Map, Value};

use super::ChartController;
use super::lookup::{self, LookupError, Reader};
use super::render_seed::RenderSeed;
use crate::record_key::without_keys;

/// The limit for rounds of lookups: in each round, a chart may look up what the last one found.
const LOOKUP_ROUNDS: usize = 32;

/// The maximum age of the API list for a chart that reads it.
const RECENT: Duration = Duration::from_secs(10);

/// Why a rendering failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum RenderFailure {
    /// The chart or its values are wrong.
    #[error("{0}")]
    Chart(#[from] RenderError),
    /// The chart failed after it read the cluster.
    #[error("{0}")]
    AfterLookup(RenderError),
    /// The same. The message quotes a looked-up Secret, which is removed.
    #[error("{0}")]
    Redacted(String),
    /// Discovery failed.
    #[error("{0}")]
    Discovery(#[from] MapperError),
    /// A lookup failed.
    #[error("{0}")]
    Lookup(#[from] LookupError),
    /// The chart does not stop looking up objects.
    #[error("the chart still looks up new objects after {LOOKUP_ROUNDS} rounds")]
    EndlessLookups,
    /// The engine failed.
    #[error("the engine failed: {0}")]
    Engine(String),
}

impl RenderFailure {
    /// Whether a retry with the same resource may help.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Chart(_) | Self::EndlessLookups | Self::Engine(_) => false,
            Self::Discovery(_) | Self::AfterLookup(_) | Self::Redacted(_) => true,
            Self::Lookup(error) => error.transient,
        }
    }
}

/// The values of the user: the spec.
///
/// # Errors
/// A message if the spec is not a map.
pub(super) fn values(resource: &DynamicObject) -> Result<Map<String, Value>, String> {
    match resource.data.get("spec") {
        None | Some(Value::Null) => Ok(Map::new()),
        Some(Value::Object(spec)) => Ok(spec.clone()),
        Some(other) => Err(format!(
            "failed to get spec: a chart's values are a map, this spec is {}",
            match other {
                Value::Array(_) => "a list",
                Value::String(_) => "a string",
                Value::Bool(_) => "a boolean",
                _ => "a number",
            }
        )),
    }
}

impl ChartController {
    /// Renders the chart, and requests what it looks up.
    pub(super) async fn render(
        &self,
        config: &Arc<Map<String, Value>>,
        facts: &ReleaseFacts,
        draw: RenderEntropy,
    ) -> Result<Rendered, RenderFailure> {
        let told = if self.asks_for_apis {
            self.mapper.capabilities_within(RECENT).await?
        } else {
            self.mapper.capabilities().await?
        };
        let capabilities = Arc::new(capabilities(&told));
        let RenderEntropy { clock, seed, overrides } = draw;
        let mut lookups = Lookups::online();
        let mut looked = false;
        for _ in 0..LOOKUP_ROUNDS {
            let (chart, config, release) = (self.chart.clone(), config.clone(), facts.clone());
            let (capabilities, known) = (capabilities.clone(), lookups.clone());
            let overrides = overrides.clone();
            let budget = self.render_limits;
            // Rendering is pure computation, and must not block the tasks that use the network.
            let rendering = tokio::task::spawn_blocking(move || {
                chart.render(&RenderInput {
                    values: &config,
                    release: &release,
                    capabilities: &capabilities,
                    profile: Profile::Helm318,
                    lookups: &known,
                    clock,
                    seed,
                    random_overrides: Some(&overrides),
                    budget,
                })
            });
            match rendering.await.map_err(|panic| RenderFailure::Engine(panic.to_string()))? {
                Err(RenderError::Needs(keys)) => {
                    looked = true;
                    let access = self.requester.of(&facts.namespace);
                    let reader = Reader {
                        applier: &access.reader,
                        mapper: &self.mapper,
                        within: (self.scope == Scope::Namespace).then_some(&*facts.namespace),
                    };
                    for key in keys {
                        let found = lookup::fetch(&reader, &key).await?;
                        lookups.insert(key, without_keys(found));
                    }
                }
                // The objects that it read may change, and no watch reports that.
                Err(error) if looked || self.asks_for_apis => {
                    let told = error.to_string();
                    let hidden = sensitive(&lookups).hide(&told);
                    return Err(if hidden == told {
                        RenderFailure::AfterLookup(error)
                    } else {
                        RenderFailure::Redacted(hidden)
                    });
                }
                rendered => {
                    let mut rendered = rendered?;
                    // Readers of the notes in a condition need not have the right to read Secrets.
                    rendered.notes = sensitive(&lookups).hide(&rendered.notes);
                    return Ok(rendered);
                }
            }
        }
        Err(RenderFailure::EndlessLookups)
    }
}

/// The values of the Secrets that a chart looked up, alone or in lists.
fn sensitive(lookups: &Lookups) -> Sensitive {
    let lists = lookups.found().filter_map(|found| found.get("items")?.as_array());
    Sensitive::of(lookups.found().chain(lists.flatten()))
}

/// Whether the rendering of a chart depends on the APIs of the cluster.
pub(super) fn asks_for_apis(chart: &Chart) -> bool {
    let words = b"APIVersions";
    let asks = |data: &[u8]| data.windows(words.len()).any(|window| window == words);
    chart.templates.iter().any(|template| asks(&template.data))
        || chart.dependencies.iter().any(asks_for_apis)
}

fn capabilities(server: &ServerCapabilities) -> Capabilities {
    let version = KubeVersion::of_cluster(&server.git_version, &server.major, &server.minor);
    Capabilities::of_cluster(version, server.api_versions.iter().cloned())
}

/// The inputs of a rendering that are not deterministic: the time, and the source of random values.
#[derive(Clone, Debug)]
pub(super) struct RenderEntropy {
    clock: SystemTime,
    /// Unpredictable, because charts generate passwords from it.
    seed: RandomSeed,
    overrides: RandomOverrides,
}

impl RenderEntropy {
    /// The current time, and this seed.
    pub fn of(seed: &RenderSeed) -> Self {
        Self { clock: SystemTime::now(), seed: seed.bits, overrides: RandomOverrides::default() }
    }

    /// The same, with random texts that stay.
    pub fn with_overrides(self, overrides: RandomOverrides) -> Self {
        Self { overrides, ..self }
    }

    /// The same at another time. Certificates are not renewed because of it.
    pub fn at_another_time(&self) -> Self {
        let (clock, seed) = (another_time(self.clock), self.seed.renewed_as_of(self.clock));
        Self { clock, seed, overrides: self.overrides.clone() }
    }

    /// The same at another time, and with another seed.
    pub fn of_another_seed(&self) -> Self {
        Self { seed: fresh_seed(), ..self.at_another_time() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn told(spec: &Value) -> Result<Map<String, Value>, String> {
        let resource = json!({ "apiVersion": "g.io/v1", "kind": "A", "metadata": { "name": "a" }, "spec": spec });
        values(&serde_json::from_value(resource).unwrap())
    }

    #[test]
    fn the_values_are_the_spec_and_integers_stay_integers() {
        assert_eq!(Value::Object(told(&json!({ "a": 1_000_000 })).unwrap())["a"], json!(1_000_000));
        assert_eq!(told(&Value::Null), Ok(Map::new()));
    }

    #[test]
    fn a_spec_of_the_wrong_type_is_told() {
        for (spec, what) in
            [(json!([1]), "a list"), (json!("x"), "a string"), (json!(1), "a number")]
        {
            assert!(told(&spec).unwrap_err().ends_with(what));
        }
    }
}
