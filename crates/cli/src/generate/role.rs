//! The role, put together and printed.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use kube::core::GroupVersionKind;
use serde_json::Value;

use super::kinds::{self, Served};
use super::probe::Found;

/// What is done with the objects of a chart.
const OBJECTS: [&str; 6] = ["get", "list", "watch", "create", "patch", "delete"];

/// A role under way.
pub(super) struct Role {
    name: String,
    namespace: Option<String>,
    /// Verbs by group and resource.
    verbs: BTreeMap<(String, String), BTreeSet<&'static str>>,
    /// Rules as they stand in the charts' own roles.
    given: BTreeSet<String>,
    unknown: BTreeSet<String>,
    guessed: BTreeSet<String>,
}

impl Role {
    pub fn new(name: &str, namespace: Option<&str>) -> Self {
        let mut role = Self {
            name: name.to_owned(),
            namespace: namespace.map(str::to_owned),
            verbs: BTreeMap::new(),
            given: BTreeSet::new(),
            unknown: BTreeSet::new(),
            guessed: BTreeSet::new(),
        };
        // Records, and the seeds of what charts draw.
        role.allow("", "secrets", &["get", "list", "watch", "create", "update", "patch", "delete"]);
        // Why a release is not ready, and what has happened.
        role.allow("", "pods", &["list", "watch"]);
        role.allow("", "events", &["list", "watch", "create", "patch"]);
        role.allow("events.k8s.io", "events", &["create", "patch"]);
        role
    }

    fn allow(&mut self, group: &str, resource: &str, verbs: &[&'static str]) {
        let rule = self.verbs.entry((group.to_owned(), resource.to_owned())).or_default();
        rule.extend(verbs);
    }

    /// A kind that the operator carries.
    pub fn carries(&mut self, gvk: &GroupVersionKind) {
        let resource = kinds::plural(&gvk.kind);
        self.allow(&gvk.group, &resource, &["get", "list", "watch", "patch"]);
        self.allow(&gvk.group, &format!("{resource}/status"), &["patch"]);
        // For clusters that ask for it where an owner's deletion is blocked.
        self.allow(&gvk.group, &format!("{resource}/finalizers"), &["update"]);
        self.guessed.insert(format!("{resource}.{}", gvk.group));
    }

    /// What is said of what this role may lack.
    pub fn unknown(&mut self, what: String) {
        self.unknown.insert(what);
    }

    /// What a chart makes and asks for.
    pub fn takes_in(&mut self, kind: &str, found: Found) {
        for (group, object) in &found.kinds {
            if object != "List" {
                self.object(group, object, &found, &OBJECTS);
            }
        }
        for object in &found.groupless {
            match kinds::group_of(object) {
                Some(group) => self.object(group, object, &found, &OBJECTS),
                None if found.kinds.iter().any(|(_, known)| known == object) => {}
                None => self.unknown(format!("the API group of {object} ({kind})")),
            }
        }
        for (version, object, named) in &found.lookups {
            let group = version.rsplit_once('/').map_or("", |(group, _)| group);
            self.object(group, object, &found, if *named { &["get"] } else { &["list"] });
        }
        if found.definitions {
            let verbs = ["get", "create", "patch"];
            self.allow("apiextensions.k8s.io", "customresourcedefinitions", &verbs);
        }
        if found.roles {
            self.given.extend(found.rules);
            self.unknown(format!(
                "the rules of roles of {kind} that other values make: who gives rights must have them"
            ));
        }
        for what in found.unknown {
            self.unknown(format!("{what} ({kind})"));
        }
    }

    fn object(&mut self, group: &str, kind: &str, found: &Found, verbs: &[&'static str]) {
        let defined =
            found.resources.iter().find(|it| (it.0.as_str(), it.1.as_str()) == (group, kind));
        let served = match defined {
            Some((group, _, resource)) => {
                Served { group: group.clone(), resource: resource.clone(), namespaced: None }
            }
            None => kinds::of(group, kind),
        };
        if defined.is_none() && served.namespaced.is_none() {
            self.guessed.insert(format!("{}.{group}", served.resource));
        }
        if self.namespace.is_some() && served.namespaced == Some(false) {
            self.unknown(format!("{kind}: it lies in no namespace, and needs a ClusterRole"));
            return;
        }
        self.allow(&served.group, &served.resource, verbs);
    }

    /// The role as YAML; rules with the same group and verbs are one.
    pub fn print(self) -> String {
        let mut rules: BTreeMap<(String, Vec<&str>), Vec<String>> = BTreeMap::new();
        for ((group, resource), verbs) in self.verbs {
            let order = ["get", "list", "watch", "create", "update", "patch", "delete"];
            let verbs: Vec<&str> = order.into_iter().filter(|verb| verbs.contains(verb)).collect();
            rules.entry((group, verbs)).or_default().push(resource);
        }
        let mut text = String::from("# Generated by `catamaran generate rbac`.\n");
        let mut list = |title: &str, items: &BTreeSet<String>| {
            if !items.is_empty() {
                let _ = writeln!(text, "# {title}");
                for item in items {
                    let _ = writeln!(text, "#   {item}");
                }
            }
        };
        list("Cannot be known, look after it yourself:", &self.unknown);
        list("Names of resources that were guessed of their kinds:", &self.guessed);
        let kind = if self.namespace.is_some() { "Role" } else { "ClusterRole" };
        let _ = writeln!(text, "apiVersion: rbac.authorization.k8s.io/v1\nkind: {kind}");
        let _ = writeln!(text, "metadata:\n  name: {}", self.name);
        if let Some(namespace) = &self.namespace {
            let _ = writeln!(text, "  namespace: {namespace}");
        }
        text.push_str("rules:\n");
        for ((group, verbs), resources) in rules {
            let group = if group.is_empty() { "\"\"" } else { &group };
            let (resources, verbs) = (resources.join(", "), verbs.join(", "));
            let _ = writeln!(
                text,
                "- apiGroups: [{group}]\n  resources: [{resources}]\n  verbs: [{verbs}]"
            );
        }
        if !self.given.is_empty() {
            text.push_str("# Given on by roles of the charts.\n");
        }
        for rule in self.given {
            let rule: Value = serde_json::from_str(&rule).unwrap_or_default();
            let _ = writeln!(text, "- {rule}");
        }
        text.push_str("#+kubebuilder:scaffold:rules\n");
        text
    }
}
