//! What a rendering is made of, beside the chart.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use serde_json::{Map, Value};

use super::{Budget, Capabilities, RandomSeed};
use crate::{Profile, RandomOverrides};

/// What a chart sees as `.Release`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReleaseFacts {
    /// The release's name; for an operator, the resource's.
    pub name: String,
    /// The namespace of objects that name none.
    pub namespace: String,
    /// From 1; 0 is neither an install nor an upgrade (`helm lint`).
    pub revision: u32,
    /// `.Release.IsInstall`; `.Release.IsUpgrade` is the opposite.
    pub is_install: bool,
}

/// Everything that decides what a rendering yields.
#[derive(Clone, Copy, Debug)]
pub struct RenderInput<'a> {
    /// The user's values (for an operator: spec, then overrides). Not merged
    /// with the chart's defaults yet. Integers stay integers in templates.
    pub values: &'a Map<String, Value>,
    /// `.Release`.
    pub release: &'a ReleaseFacts,
    /// `.Capabilities`.
    pub capabilities: &'a Capabilities,
    /// Which Helm to follow.
    pub profile: Profile,
    /// What `lookup` finds.
    pub lookups: &'a Lookups,
    /// The time `now` tells, for the whole rendering.
    pub clock: SystemTime,
    /// Where random values, passwords among them, come from: the same seed, the same values.
    pub seed: RandomSeed,
    /// What calls of random functions give instead of what the seed makes.
    pub random_overrides: Option<&'a RandomOverrides>,
    /// How far the rendering may go. A chart that goes beyond fails with
    /// [`crate::RenderError::Budget`]; it cannot hang or kill the process.
    pub budget: Budget,
}

/// One `lookup` call: its four arguments.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LookupKey {
    /// `v1`, `apps/v1`.
    pub api_version: String,
    /// `Secret`.
    pub kind: String,
    /// Empty for cluster-scoped kinds, or for all namespaces.
    pub namespace: String,
    /// Empty asks for the list.
    pub name: String,
}

/// The kind of a [`LookupKey`] that asks for the address of a host.
const HOST: &str = "getHostByName";

impl LookupKey {
    /// Asks for the address of a host (`getHostByName`): a text, empty if there is none.
    pub fn host(name: impl Into<String>) -> Self {
        let (api_version, namespace) = (String::new(), String::new());
        Self { api_version, kind: HOST.to_owned(), namespace, name: name.into() }
    }

    /// The host whose address is asked for, if it is not an object.
    pub fn as_host(&self) -> Option<&str> {
        (self.kind == HOST && self.api_version.is_empty()).then_some(self.name.as_str())
    }
}

impl fmt::Display for LookupKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { api_version, kind, namespace, name } = self;
        write!(f, "{api_version} {kind} {namespace}/{name}")
    }
}

/// What `lookup` finds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lookups {
    /// Shared: every rendering takes a copy.
    known: Arc<BTreeMap<LookupKey, Value>>,
    online: bool,
    hosts: bool,
}

impl Lookups {
    /// No cluster: every lookup finds nothing, as in `helm template`.
    pub fn offline() -> Self {
        Self::default()
    }

    /// A cluster of which nothing is known yet: an unknown lookup ends the
    /// rendering with [`crate::RenderError::Needs`].
    pub fn online() -> Self {
        Self { online: true, ..Self::default() }
    }

    /// `getHostByName` asks for addresses too (`--enable-dns`); without, it is always empty.
    #[must_use]
    pub fn with_hosts(self) -> Self {
        Self { hosts: true, ..self }
    }

    /// Tells what a lookup finds: the object, the list (`items` and all), or
    /// `{}` where the API server answered 404.
    pub fn insert(&mut self, key: LookupKey, found: Value) {
        Arc::make_mut(&mut self.known).insert(key, found);
    }

    /// All that lookups have found.
    pub fn found(&self) -> impl Iterator<Item = &Value> {
        self.known.values()
    }

    /// What is known of a lookup; `None` means it must be fetched.
    pub fn get(&self, key: &LookupKey) -> Option<&Value> {
        static NOTHING: Value = Value::Null;
        let asked = if key.as_host().is_some() { self.hosts } else { self.online };
        self.known.get(key).or(if asked { None } else { Some(&NOTHING) })
    }
}
