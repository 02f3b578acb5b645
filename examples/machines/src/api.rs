//! `useless.container.training/v1alpha1`.

#![allow(clippy::duplicated_attributes)] // columns have the same arguments, each its own

use catamaran_operator::native::Status;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, MicroTime};
use kube::{CustomResource, CustomResourceExt, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The definitions of both kinds; `make manifests-examples` writes them to config/crd.
pub fn definitions() -> Vec<CustomResourceDefinition> {
    vec![Machine::crd(), Switch::crd()]
}

/// The status of a [`Machine`].
pub type MachineStatus = Status<MachineFields>;

/// A useless machine: it moves its switches back down.
#[derive(CustomResource, KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "useless.container.training",
    version = "v1alpha1",
    kind = "Machine",
    doc = "A useless machine: whatever is switched up, it moves down again.",
    namespaced,
    status = "MachineStatus",
    // kubectl scale machine machine-1 --replicas=5
    scale(spec_replicas_path = ".spec.switches", status_replicas_path = ".status.switches"),
    printcolumn(name = "Switches", type_ = "integer", json_path = ".spec.switches"),
    printcolumn(name = "Positions", type_ = "string", json_path = ".status.positions"),
    // Of the first stage; shown by `-o wide`.
    printcolumn(name = "Position", type_ = "string", json_path = ".spec.switchPosition", priority = 1),
    printcolumn(name = "Seen", type_ = "date", json_path = ".status.seenAt", priority = 1)
)]
#[x_kube(validation = Rule::new("has(self.switches) != has(self.switchPosition)")
    .message("a machine has either switches, or a switchPosition"))]
#[serde(rename_all = "camelCase")]
pub struct MachineSpec {
    /// First stage: the position of the machine's only switch, for instance up or down.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub switch_position: Option<String>,

    /// Second stage: how many switches the machine shall have, each an object of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub switches: Option<i32>,

    /// Which switches are the machine's. By default those whose label `machine` is its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selector: Option<LabelSelector>,
}

/// What the status of a [`Machine`] tells besides its conditions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct MachineFields {
    /// First stage: when the controller noticed that the switch is up. Second stage: when it last moved
    /// a switch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seen_at: Option<MicroTime>,

    /// The first letter of the position of each switch, in the order of their names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub positions: Option<String>,

    /// How many switches there are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub switches: Option<i32>,
}

/// One switch of a machine.
#[derive(CustomResource, KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "useless.container.training",
    version = "v1alpha1",
    kind = "Switch",
    plural = "switches",
    doc = "A switch of the machine that its label `machine` names.",
    namespaced,
    derive = "PartialEq",
    status = "SwitchStatus",
    printcolumn(name = "Position", type_ = "string", json_path = ".spec.position"),
    printcolumn(name = "Seen", type_ = "date", json_path = ".status.seenAt")
)]
pub struct SwitchSpec {
    /// Where the switch is.
    #[serde(default)]
    pub position: Position,
}

/// Where a switch is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Position {
    /// Somebody has switched it on.
    Up,
    /// As the machine wants it.
    #[default]
    Down,
}

/// The status of a [`Switch`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SwitchStatus {
    /// When the controller noticed that the switch is up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen_at: Option<MicroTime>,
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    #[test]
    fn the_crds_are_up_to_date() {
        let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/config/crd"));
        catamaran_testkit::check_crds(folder, &super::definitions());
    }
}
