//! From a resource to manifests.

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
use crate::manager::queue::Key;
use crate::record_key::without_keys;

/// A chart asks for what it looks up one after the other; more rounds than this are a loop.
const LOOKUP_ROUNDS: usize = 32;

/// How old the list of the cluster's APIs may be for a chart that asks for it.
const RECENT: Duration = Duration::from_secs(10);

/// Why there are no manifests.
#[derive(Debug, thiserror::Error)]
pub(super) enum RenderFailure {
    /// The chart, or the values it was given.
    #[error("{0}")]
    Chart(#[from] RenderError),
    /// The chart, given what it was told of the cluster.
    #[error("{0}")]
    AfterLookup(RenderError),
    /// The same, where its message quotes a Secret that the chart looked up; it is left out.
    #[error("{0}")]
    Redacted(String),
    /// The cluster could not be asked what it can do.
    #[error("{0}")]
    Discovery(#[from] MapperError),
    /// The cluster could not be asked for what the chart looks up.
    #[error("{0}")]
    Lookup(#[from] LookupError),
    /// The chart never stops looking up.
    #[error("the chart still looks up new objects after {LOOKUP_ROUNDS} rounds")]
    EndlessLookups,
    /// The engine broke.
    #[error("the engine failed: {0}")]
    Engine(String),
}

impl RenderFailure {
    /// Whether trying again with the same resource may help.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Chart(_) | Self::EndlessLookups | Self::Engine(_) => false,
            Self::Discovery(_) | Self::AfterLookup(_) | Self::Redacted(_) => true,
            Self::Lookup(error) => error.transient,
        }
    }
}

/// The user's values: the spec as it is.
///
/// # Errors
/// A message for people if the spec is not a map.
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
    /// Renders the chart, fetching what it looks up.
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
            // Rendering is pure computing: it must not hold up the tasks that talk to the network.
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
                // What it was told may become another thing, of which no watch tells.
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
                    // Who reads the notes in a condition need not be allowed to read Secrets.
                    rendered.notes = sensitive(&lookups).hide(&rendered.notes);
                    return Ok(rendered);
                }
            }
        }
        Err(RenderFailure::EndlessLookups)
    }
}

/// What the Secrets hold that a chart has looked up, by themselves or in lists.
fn sensitive(lookups: &Lookups) -> Sensitive {
    let lists = lookups.found().filter_map(|found| found.get("items")?.as_array());
    Sensitive::of(lookups.found().chain(lists.flatten()))
}

/// Whether what a chart makes depends on the APIs of the cluster.
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

/// What a rendering takes from outside besides its inputs: the time, and where random values come from.
#[derive(Clone, Debug)]
pub(super) struct RenderEntropy {
    clock: SystemTime,
    /// Not to be guessed: random values of charts are passwords.
    seed: RandomSeed,
    overrides: RandomOverrides,
}

impl RenderEntropy {
    /// The same, with random texts that are to stay.
    pub fn with_overrides(self, overrides: RandomOverrides) -> Self {
        Self { overrides, ..self }
    }

    /// The same at another time. Certificates are not renewed because of it.
    pub fn at_another_time(&self) -> Self {
        let (clock, seed) = (another_time(self.clock), self.seed.renewed_as_of(self.clock));
        Self { clock, seed, overrides: self.overrides.clone() }
    }

    /// The same at another time, and of another seed.
    pub fn of_another_seed(&self) -> Self {
        Self { seed: fresh_seed(), ..self.at_another_time() }
    }
}

impl ChartController {
    /// What renderings for this resource draw.
    pub(super) fn entropy(&self, key: &Key, rotation: &str) -> RenderEntropy {
        RenderEntropy {
            clock: SystemTime::now(),
            seed: self.release_cache().seed(key, rotation).bits,
            overrides: RandomOverrides::default(),
        }
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
