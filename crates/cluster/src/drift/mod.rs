//! Whether a live object is still what was applied, and what it takes to make it so again.
//!
//! The walk of [`crate::fields`] finds what differs. What is left to others is taken out: replicas
//! that an autoscaler sets, and what rules ignore. Where that leaves doubt, one dry run decides; no
//! write is made to find out.

mod ignore;
mod report;

use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use kube::Resource;
use kube::api::ApiResource;
use serde_json::Value;

use crate::apply::{Applier, ApplyError, FailureKind, Target, metadata_str};
use crate::budget::Budget;
use crate::fields::{Difference, Kind, Path, Trail, compare, is_autoscaled, managed_fields};

pub use ignore::{IgnoreRule, is_left_alone};
pub use report::FieldDrift;
use report::field_drifts;

/// What the expressions of all rules may cost for one object: each is asked for each field that
/// differs.
const MOST_STEPS: usize = 500_000;
/// Where the number of replicas stands in every kind that an autoscaler scales.
const REPLICAS: &str = "/spec/replicas";

/// What looking at a live object found.
#[derive(Clone)]
pub enum Inspection {
    /// An apply would change nothing that is not left to others.
    Same,
    /// An apply is due.
    Changed(Drift),
}

/// How a live object differs from what is wanted.
#[derive(Clone)]
pub struct Drift {
    /// The fields, to be shown: no value of a Secret is in them.
    pub fields: Vec<FieldDrift>,
    /// What to apply: what is wanted, without the fields that are left to others.
    pub body: Value,
}

/// The differences that an apply is due for, and what to apply: without the fields that are left to
/// others, which are those of `rules`, and `spec.replicas` where an autoscaler sets it.
///
/// A field that nobody took from us stays in what is applied, or the apply would remove it.
pub fn due(
    desired: &Value,
    live: &Value,
    manager: &str,
    rules: &[IgnoreRule],
    autoscaled: bool,
) -> (Vec<Difference>, Value) {
    let rules: Vec<&IgnoreRule> = rules.iter().filter(|rule| rule.is_about(live)).collect();
    let mut budget = Budget::new(MOST_STEPS);
    let (left, due): (Vec<_>, Vec<_>) =
        compare(desired, live, manager).into_iter().partition(|difference| {
            let pointer = difference.path.pointer().unwrap_or_default();
            let replicas = autoscaled && pointer == REPLICAS;
            let mut is_covered =
                |rule: &&IgnoreRule| rule.covers(&pointer, (desired, live), &mut budget);
            let ignored = replicas || rules.iter().any(&mut is_covered);
            ignored && matches!(difference.kind, Kind::NotOurs | Kind::Doubtful)
        });
    if budget.is_spent() {
        let (kind, name) = (&desired["kind"], metadata_str(live, "name"));
        tracing::warn!(%kind, name, "rules of drift cost too much for this object: not all are heeded");
    }
    let taken = left.iter().filter(|difference| difference.kind == Kind::NotOurs);
    let pointers: Vec<String> = taken.filter_map(|difference| difference.path.pointer()).collect();
    let mut body = desired.clone();
    ignore::take_out(&mut body, &pointers);
    (due, body)
}

impl Applier {
    /// Looks whether an apply of `desired` would change anything of `live`, in no request if the
    /// object tells, else in one dry run; and in one list if an autoscaler seems to be at work.
    pub async fn inspect(
        &self,
        target: &Target,
        desired: &Value,
        live: &Value,
        rules: &[IgnoreRule],
    ) -> Result<Inspection, ApplyError> {
        let held = self.as_taken_over(live);
        let (mut due, body) =
            self.due(target, desired, held.as_ref().unwrap_or(live), rules).await?;
        if held.is_some() {
            // What else is in it was set by who had the object before: an upgrade looks after that.
            due.retain(|difference| difference.kind != Kind::Surplus);
        }
        if due.iter().any(|difference| difference.kind != Kind::Doubtful) {
            return Ok(Inspection::Changed(Drift {
                fields: field_drifts(&due, desired, live),
                body,
            }));
        }
        if due.is_empty() {
            return Ok(Inspection::Same);
        }
        self.try_out(target, due, body, live).await
    }

    /// What to apply where something else is wanted than before: without the fields that are left to
    /// others.
    pub async fn without_others(
        &self,
        target: &Target,
        desired: &Value,
        live: &Value,
        rules: &[IgnoreRule],
    ) -> Result<Value, ApplyError> {
        self.due(target, desired, live, rules).await.map(|(_, body)| body)
    }

    async fn due(
        &self,
        target: &Target,
        desired: &Value,
        live: &Value,
        rules: &[IgnoreRule],
    ) -> Result<(Vec<Difference>, Value), ApplyError> {
        let autoscaled = desired.pointer(REPLICAS).is_some_and(|wanted| !wanted.is_null())
            && is_autoscaled(live)
            && self.has_autoscaler(target).await?;
        Ok(due(desired, live, self.manager(), rules, autoscaled))
    }

    /// Asks the API server itself what an apply would change.
    async fn try_out(
        &self,
        target: &Target,
        doubtful: Vec<Difference>,
        body: Value,
        live: &Value,
    ) -> Result<Inspection, ApplyError> {
        let fields = match self.dry_run(target, &body).await {
            Ok(after) => {
                let changed = changed(live, &after);
                if changed.is_empty() {
                    return Ok(Inspection::Same);
                }
                changed.iter().map(FieldDrift::of).collect()
            }
            Err(error) if error.kind.is_transient() => return Err(error),
            // Webhooks may refuse dry runs; and what is wrong with an apply, the apply says best.
            Err(_) => field_drifts(&doubtful, &body, live),
        };
        Ok(Inspection::Changed(Drift { fields, body }))
    }

    /// Whether an autoscaler is there for an object. Without the right to look it is taken to be, as
    /// two that set replicas against each other are worse than a number that stays.
    ///
    /// # Errors
    ///
    /// As those of any request.
    pub async fn has_autoscaler(&self, target: &Target) -> Result<bool, ApplyError> {
        let Some(namespace) = &target.namespace else { return Ok(false) };
        let resource = ApiResource {
            group: HorizontalPodAutoscaler::group(&()).into_owned(),
            version: HorizontalPodAutoscaler::version(&()).into_owned(),
            api_version: HorizontalPodAutoscaler::api_version(&()).into_owned(),
            kind: HorizontalPodAutoscaler::kind(&()).into_owned(),
            plural: HorizontalPodAutoscaler::plural(&()).into_owned(),
        };
        match self.list(&resource, namespace, "").await {
            Ok(found) => {
                let target = ScaleTarget::of(target);
                Ok(found.iter().any(|it| ScaleTarget::of_autoscaler(it) == target))
            }
            Err(error) if error.kind.is_forbidden() => Ok(true),
            Err(error) if error.kind == FailureKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// What an autoscaler scales, whatever the namespace and the version.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ScaleTarget {
    group: String,
    kind: String,
    name: String,
}

impl ScaleTarget {
    /// What an autoscaler refers to.
    pub fn of_autoscaler(autoscaler: &Value) -> Self {
        let reference = &autoscaler["spec"]["scaleTargetRef"];
        let of = |field: &str| reference[field].as_str().unwrap_or_default();
        let group = of("apiVersion").rsplit_once('/').map_or("", |(group, _)| group);
        Self { group: group.to_owned(), kind: of("kind").to_owned(), name: of("name").to_owned() }
    }

    /// What refers to an object.
    pub fn of(target: &Target) -> Self {
        let Target { resource, name, .. } = target;
        Self { group: resource.group.clone(), kind: resource.kind.clone(), name: name.clone() }
    }
}

/// The fields in which an object differs from what it would be after an apply, but for what the API
/// server counts, and for times.
pub fn changed(before: &Value, after: &Value) -> Vec<Path> {
    let mut changes = Changes::default();
    for name in names(before, after) {
        let (before, after) = (&before[name], &after[name]);
        match name {
            "status" => {}
            "metadata" => changes.field(name, |changes| {
                let counted = ["managedFields", "resourceVersion", "generation"];
                for field in names(before, after) {
                    if !counted.contains(&field) {
                        changes.field(field, |it| it.look(&before[field], &after[field]));
                    }
                }
            }),
            _ => changes.field(name, |changes| changes.look(before, after)),
        }
    }
    let timeless =
        |object| managed_fields(object).iter().cloned().map(timeless).collect::<Vec<_>>();
    if changes.found.is_empty() && timeless(before) != timeless(after) {
        changes.field("metadata", |it| it.field("managedFields", Changes::found));
    }
    changes.found
}

fn timeless(mut entry: Value) -> Value {
    if let Some(entry) = entry.as_object_mut() {
        entry.remove("time");
    }
    entry
}

/// Finds the fields in which two objects differ; as many as may be told.
#[derive(Default)]
struct Changes {
    trail: Trail,
    found: Vec<Path>,
}

impl Changes {
    fn found(&mut self) {
        self.found.extend(self.trail.here());
    }

    fn field(&mut self, name: &str, look: impl FnOnce(&mut Self)) {
        self.trail.push_field(name);
        look(self);
        self.trail.pop();
    }

    fn look(&mut self, before: &Value, after: &Value) {
        match (before, after) {
            (Value::Object(_), Value::Object(_)) => {
                for name in names(before, after) {
                    self.field(name, |changes| changes.look(&before[name], &after[name]));
                }
            }
            (Value::Array(old), Value::Array(new)) if old.len() == new.len() => {
                for (at, (old, new)) in old.iter().zip(new).enumerate() {
                    self.trail.push_index(at, new);
                    self.look(old, new);
                    self.trail.pop();
                }
            }
            _ if before == after => {}
            _ => self.found(),
        }
    }
}

/// The fields that two objects have between them.
fn names<'a>(one: &'a Value, other: &'a Value) -> Vec<&'a str> {
    let of = |value: &'a Value| value.as_object().into_iter().flat_map(|fields| fields.keys());
    let mut all: Vec<&str> = of(one).chain(of(other)).map(String::as_str).collect();
    all.sort_unstable();
    all.dedup();
    all
}

#[cfg(test)]
mod tests;
