//! A kind that uses all of the surface, each part as its spec asks.

#![allow(dead_code)] // each test file uses its own part

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use catamaran_operator::native::{
    Action, ComponentProgress, Context, Error, ObjectKey, Only, ReconcileTrigger, Reconciler,
    SecretOnce, Status, Watches,
};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::api::rbac::v1::ClusterRole;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::core::ObjectMeta;
use kube::{CustomResource, CustomResourceExt, KubeSchema, ResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How often a widget is looked at.
pub const PERIOD: Duration = Duration::from_hours(1);

/// The operator's name.
pub const OPERATOR: &str = "widgets";

/// The status of a [`Widget`].
pub type WidgetStatus = Status<WidgetFields>;

/// What a test asks for.
#[derive(CustomResource, KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "test.catamaran.dev",
    version = "v1",
    kind = "Widget",
    namespaced,
    status = "WidgetStatus"
)]
#[serde(rename_all = "camelCase")]
pub struct WidgetSpec {
    /// ConfigMaps in its namespace.
    #[serde(default)]
    pub maps: Vec<String>,
    /// Whether a component fails.
    #[serde(default)]
    pub fail: bool,
    /// Whether cleanup waits.
    #[serde(default)]
    pub hold: bool,
    /// Whether cleanup panics.
    #[serde(default)]
    pub burst: bool,
    /// Something to carry along; who fails quotes it.
    #[serde(default)]
    pub note: Option<String>,
    /// The namespace of a ConfigMap elsewhere.
    #[serde(default)]
    pub elsewhere: Option<String>,
    /// A ClusterRole.
    #[serde(default)]
    pub role: Option<String>,
    /// Another widget.
    #[serde(default)]
    pub refers: Option<Refers>,
    /// An object of a kind that is not there yet.
    #[serde(default)]
    pub gadget: Option<String>,
    /// A Secret.
    #[serde(default)]
    pub secret: Option<String>,
    /// By what the Secret is rotated.
    #[serde(default)]
    pub rotate: Option<String>,
    /// Anything, says the schema.
    #[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
    #[serde(default)]
    pub loose: Option<Loose>,
}

/// A kind whose definition comes late.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(group = "late.catamaran.dev", version = "v1", kind = "Gadget", namespaced)]
pub struct GadgetSpec {}

/// Where another widget is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Refers {
    namespace: String,
    name: String,
}

/// A number, says the type.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Loose {
    pub size: i32,
}

impl JsonSchema for Loose {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Loose".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })
    }
}

/// What a widget tells.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct WidgetFields {
    /// Always 1; anybody can write anything there.
    #[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
    pub told: Loose,
}

/// The definition of the kind.
pub fn definitions() -> Vec<CustomResourceDefinition> {
    vec![Widget::crd(), Realm::crd()]
}

/// Status and reason of a condition.
pub fn condition<'a>(widget: &'a Widget, of: &str) -> (&'a str, &'a str) {
    let conditions = widget.status.iter().flat_map(|status| &status.conditions);
    let found = conditions.clone().find(|condition| condition.type_ == of);
    found.map(|found| (found.status.as_str(), found.reason.as_str())).unwrap_or_default()
}

/// Reconciles [`Widget`], and keeps count.
#[derive(Clone, Debug, Default)]
pub struct Widgets {
    counts: Arc<Mutex<HashMap<String, usize>>>,
    cleanups: Arc<Mutex<HashMap<String, usize>>>,
    cleaned: Arc<Mutex<Vec<String>>>,
    beyond: Arc<Mutex<Option<String>>>,
    wake: ReconcileTrigger,
}

impl Widgets {
    /// How often a widget was reconciled.
    pub fn count(&self, name: &str) -> usize {
        self.counts.lock().unwrap().get(name).copied().unwrap_or_default()
    }

    /// How often a widget was cleaned up, or tried to be.
    pub fn cleanups(&self, name: &str) -> usize {
        self.cleanups.lock().unwrap().get(name).copied().unwrap_or_default()
    }

    /// Whose cleanup ended.
    pub fn cleaned(&self) -> Vec<String> {
        self.cleaned.lock().unwrap().clone()
    }

    /// Declares a namespace elsewhere.
    pub fn beyond(&self, namespace: &str) {
        *self.beyond.lock().unwrap() = Some(namespace.to_owned());
    }

    /// The channel that wakes.
    pub fn wake(&self) -> &ReconcileTrigger {
        &self.wake
    }
}

impl Reconciler for Widgets {
    type Object = Widget;

    fn watches(&self, watches: &mut Watches) {
        watches.owns::<ConfigMap>().owns::<ClusterRole>().triggered_by(&self.wake);
        // Secrets wake the widget that their label names, when their data change.
        let labelled = Only::all().labels("widget").when(|before: Option<&Secret>, now| {
            before.is_none_or(|before| before.data != now.data)
        });
        watches.maps(labelled, |secret| {
            let name = secret.labels().get("widget").cloned().unwrap_or_default();
            assert_ne!(name, "panics", "as it was told");
            vec![ObjectKey { namespace: secret.namespace(), name }]
        });
        watches.polls(PERIOD);
        if let Some(namespace) = &*self.beyond.lock().unwrap() {
            watches.owns_in::<ConfigMap>(namespace);
        }
    }

    async fn reconcile(&self, ctx: &Context<'_, Widget>) -> Result<Action, Error> {
        *self.counts.lock().unwrap().entry(ctx.name_any()).or_default() += 1;
        ctx.status(|fields| fields.told.size = 1);
        if ctx.spec.fail {
            let why = format!("as asked: {}", ctx.spec.note.as_deref().unwrap_or_default());
            ctx.component("Failing", async { Err(Error::Permanent(why)) }).await;
        } else {
            ctx.component("Failing", async { Ok(ComponentProgress::Ready) }).await;
        }
        ctx.component("Maps", maps(ctx)).await;
        if let Some(kind) = &ctx.spec.gadget {
            ctx.event("Gadget", &format!("a {kind} is wanted"));
            ctx.component("Gadget", ctx.apply(Gadget::new(kind, GadgetSpec {}))).await;
        }
        if let Some(name) = &ctx.spec.secret {
            let once = SecretOnce::new().random("password", 24).given("user", "admin");
            let secret = ctx.secret_once(name, once.rotated_by(ctx.spec.rotate.as_deref()));
            ctx.component("Secret", async { secret.await.map(|_| ComponentProgress::Ready) }).await;
        }
        if let Some(Refers { namespace, name }) = &ctx.spec.refers {
            let other = ctx.reference::<Widget>(namespace.as_str(), name);
            ctx.component("Reference", async {
                other.await?.ready().map(|_| ComponentProgress::Ready)
            })
            .await;
        }
        if let Some(name) = &ctx.spec.role {
            let metadata = ObjectMeta { name: Some(name.clone()), ..ObjectMeta::default() };
            let role = ClusterRole { metadata, ..ClusterRole::default() };
            ctx.component("Role", ctx.apply(role)).await;
        }
        ctx.component("Prune", ctx.prune::<ConfigMap>()).await;
        ctx.finish()
    }

    async fn cleanup(&self, ctx: &Context<'_, Widget>) -> Result<ComponentProgress, Error> {
        *self.cleanups.lock().unwrap().entry(ctx.name_any()).or_default() += 1;
        assert!(!ctx.spec.burst, "as it was told");
        if ctx.spec.hold {
            return Ok(ComponentProgress::pending("Draining", "the test holds it"));
        }
        self.cleaned.lock().unwrap().push(ctx.name_any());
        Ok(ComponentProgress::Ready)
    }
}

async fn maps(ctx: &Context<'_, Widget>) -> Result<ComponentProgress, Error> {
    let mut first = Ok(ComponentProgress::Ready);
    for name in &ctx.spec.maps {
        let applied = ctx.apply(map(name, None)).await;
        if first.is_ok() {
            first = applied;
        }
    }
    if let Some(namespace) = &ctx.spec.elsewhere {
        ctx.apply(map(&ctx.name_any(), Some(namespace))).await?;
    }
    first
}

fn map(name: &str, namespace: Option<&String>) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            namespace: namespace.cloned(),
            ..ObjectMeta::default()
        },
        data: Some([("a".to_owned(), "b".to_owned())].into()),
        ..ConfigMap::default()
    }
}

/// A kind without namespaces.
#[derive(CustomResource, KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(group = "test.catamaran.dev", version = "v1", kind = "Realm", status = "WidgetStatus")]
pub struct RealmSpec {
    /// The namespace of its ConfigMap.
    pub namespace: String,
}

/// Reconciles [`Realm`].
#[derive(Debug)]
pub struct Realms;

impl Reconciler for Realms {
    type Object = Realm;

    fn watches(&self, watches: &mut Watches) {
        watches.owns::<ConfigMap>().owns::<ClusterRole>();
    }

    async fn reconcile(&self, ctx: &Context<'_, Realm>) -> Result<Action, Error> {
        let metadata = ObjectMeta { name: Some(ctx.name_any()), ..ObjectMeta::default() };
        let role = ClusterRole { metadata, ..ClusterRole::default() };
        ctx.component("Role", ctx.apply(role)).await;
        let map = map(&ctx.name_any(), Some(&ctx.spec.namespace));
        ctx.component("Map", ctx.apply(map)).await;
        ctx.finish()
    }
}
