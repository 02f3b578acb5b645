//! Conditions: their names and reasons, and how they are set without disturbing others'.
//!
//! The names and reasons of chart kinds are those of the Helm operators (operator-sdk and
//! helm-operator-plugins), so that what people wait for and alert on keeps working.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Condition types.
pub mod types {
    /// The operator has read the resource and its chart.
    pub const INITIALIZED: &str = "Initialized";
    /// A release is installed.
    pub const DEPLOYED: &str = "Deployed";
    /// The last action on the release failed.
    pub const RELEASE_FAILED: &str = "ReleaseFailed";
    /// The resource cannot be brought to its desired state as it is.
    pub const IRRECONCILABLE: &str = "Irreconcilable";
    /// Everything that belongs to the resource is there and works.
    pub const READY: &str = "Ready";
    /// Reconciling is suspended by an annotation.
    pub const PAUSED: &str = "Paused";
    /// An annotation asks for more, or less, than anybody may ask for; the bound is used instead.
    pub const ANNOTATION_OUT_OF_RANGE: &str = "AnnotationOutOfRange";
}

/// Reasons of conditions.
pub mod reasons {
    /// The release was installed.
    pub const INSTALL_SUCCESSFUL: &str = "InstallSuccessful";
    /// The release was upgraded.
    pub const UPGRADE_SUCCESSFUL: &str = "UpgradeSuccessful";
    /// The release was uninstalled.
    pub const UNINSTALL_SUCCESSFUL: &str = "UninstallSuccessful";
    /// Installing failed.
    pub const INSTALL_ERROR: &str = "InstallError";
    /// Upgrading failed.
    pub const UPGRADE_ERROR: &str = "UpgradeError";
    /// Comparing or repairing failed.
    pub const RECONCILE_ERROR: &str = "ReconcileError";
    /// Uninstalling failed.
    pub const UNINSTALL_ERROR: &str = "UninstallError";
    /// No client could be made.
    pub const ERROR_GETTING_CLIENT: &str = "ErrorGettingClient";
    /// The resource's spec gives no usable values.
    pub const ERROR_GETTING_VALUES: &str = "ErrorGettingValues";
    /// The release's history could not be read or understood.
    pub const ERROR_GETTING_RELEASE_STATE: &str = "ErrorGettingReleaseState";
    /// An annotation asks to leave the resource alone.
    pub const PAUSE_RECONCILE_ANNOTATION_TRUE: &str = "PauseReconcileAnnotationTrue";
    /// The resource is over a bound, which the message names: it is not decoded.
    pub const SPEC_TOO_LARGE: &str = "SpecTooLarge";
    /// The resource is not what the kind's objects have to be: it cannot be decoded.
    pub const UNDECODABLE: &str = "Undecodable";
    /// Another operation on the release has to end first.
    pub const PENDING_ERROR: &str = "PendingError";
}

/// The three answers of a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ConditionStatus {
    /// It is so.
    True,
    /// It is not so.
    False,
    /// Nobody can tell at the moment.
    Unknown,
}

impl From<bool> for ConditionStatus {
    fn from(value: bool) -> Self {
        if value { Self::True } else { Self::False }
    }
}

/// One condition, in the form of `metav1.Condition`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// What the condition is about, see [`types`].
    #[serde(rename = "type")]
    pub type_: String,
    /// Whether it is so.
    pub status: ConditionStatus,
    /// One word for machines, see [`reasons`].
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// A sentence for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// When `status` last changed, RFC 3339 in seconds; filled by [`set`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<String>,
    /// The generation of the resource that this is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
}

impl Condition {
    /// A condition that has not been set on anything yet.
    pub fn new(
        type_: impl Into<String>,
        status: impl Into<ConditionStatus>,
        reason: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        Self {
            type_: type_.into(),
            status: status.into(),
            reason: reason.into(),
            message: message.into(),
            last_transition_time: None,
            observed_generation: None,
        }
    }

    /// The same, about this generation of the resource.
    #[must_use]
    pub fn observed(mut self, generation: Option<i64>) -> Self {
        self.observed_generation = generation;
        self
    }
}

/// Sets `condition` in a resource's list of conditions and says whether the list changed.
///
/// The time of the last transition is kept while the status is the same. Conditions of other
/// types, and fields that are not ours to know, stay as they are.
pub fn set(conditions: &mut Vec<Value>, mut condition: Condition, now: Timestamp) -> bool {
    let before = conditions.iter_mut().find(|old| type_of(old) == Some(&condition.type_));
    let same_since = before.as_ref().and_then(|old| {
        let same = old.get("status").and_then(Value::as_str) == Some(word(condition.status));
        old.get("lastTransitionTime").and_then(Value::as_str).filter(|_| same).map(str::to_owned)
    });
    condition.last_transition_time =
        Some(same_since.unwrap_or_else(|| now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()));
    let new = as_value(&condition);
    match before {
        Some(old) if *old == new => false,
        Some(old) => {
            *old = new;
            true
        }
        None => {
            conditions.push(new);
            true
        }
    }
}

/// Takes the condition of this type away and says whether it was there.
pub fn remove(conditions: &mut Vec<Value>, type_: &str) -> bool {
    let before = conditions.len();
    conditions.retain(|condition| type_of(condition) != Some(type_));
    conditions.len() != before
}

/// The condition of this type, if it is there and has the form of a condition.
pub fn find(conditions: &[Value], type_: &str) -> Option<Condition> {
    let found = conditions.iter().find(|condition| type_of(condition) == Some(type_))?;
    serde_json::from_value(found.clone()).ok()
}

fn type_of(condition: &Value) -> Option<&str> {
    condition.get("type").and_then(Value::as_str)
}

fn word(status: ConditionStatus) -> &'static str {
    match status {
        ConditionStatus::True => "True",
        ConditionStatus::False => "False",
        ConditionStatus::Unknown => "Unknown",
    }
}

fn as_value(condition: &Condition) -> Value {
    // Only strings and an integer: this cannot fail.
    serde_json::to_value(condition).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).expect("a time")
    }

    #[test]
    fn the_transition_time_moves_only_with_the_status() {
        let mut list = vec![];
        assert!(set(&mut list, Condition::new("Ready", false, "Waiting", "a"), at(10)));
        assert!(set(&mut list, Condition::new("Ready", false, "Waiting", "b"), at(20)));
        assert_eq!(list[0]["lastTransitionTime"], "1970-01-01T00:00:10Z");
        assert!(!set(&mut list, Condition::new("Ready", false, "Waiting", "b"), at(30)));
        assert!(set(&mut list, Condition::new("Ready", true, "Ready", ""), at(40)));
        assert_eq!(list[0]["lastTransitionTime"], "1970-01-01T00:00:40Z");
    }

    #[test]
    fn foreign_conditions_are_not_touched() {
        let foreign = json!({"type": "Theirs", "status": "Maybe", "extra": {"a": 1}});
        let mut list = vec![foreign.clone(), json!("not even a condition")];
        set(&mut list, Condition::new("Ready", true, "", ""), at(0));
        assert!(remove(&mut list, "Ready"));
        assert!(!remove(&mut list, "Ready"));
        assert_eq!(list, [foreign, json!("not even a condition")]);
    }

    #[test]
    fn a_condition_is_found_by_its_type() {
        let mut list = vec![];
        set(
            &mut list,
            Condition::new("Paused", ConditionStatus::Unknown, "R", "m").observed(Some(3)),
            at(0),
        );
        let found = find(&list, "Paused").expect("found");
        assert_eq!((found.status, found.observed_generation), (ConditionStatus::Unknown, Some(3)));
        assert_eq!(find(&list, "Ready"), None);
    }
}
