//! The objects of a release as they are, for `status`.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anyhow::Result;
use catamaran_cluster::mapper::{Mapper, Mapping};
use catamaran_release::Release;
use catamaran_release::objects::{RawObject, parse_manifest};
use kube::Client;
use kube::api::{DynamicObject, GetParams, ListParams};
use kube::core::{ApiResource, GroupVersionKind, Request, Resource};
use serde_json::{Map, Value};

use super::release_target::ReleaseTarget;

/// The columns that kubectl prints, computed by the API server.
const AS_TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
const AS_OBJECT: &str = "application/json";
/// The space between two columns of kubectl's.
const GAP: usize = 3;

/// Kinds whose pods are shown beside them.
const WITH_PODS: [&str; 6] =
    ["Deployment", "ReplicaSet", "ReplicationController", "StatefulSet", "DaemonSet", "Job"];

/// Tables of the objects, one for each kind.
pub(super) fn tables(site: &ReleaseTarget, release: &Release) -> Result<String> {
    let found = gather(site, release, AS_TABLE)?;
    let mut text = String::new();
    for (heading, answers) in found {
        // Only a String is written to, which cannot fail.
        let _ = writeln!(text, "==> {heading}");
        text.push_str(&aligned(&answers));
        text.push('\n');
    }
    Ok(text)
}

/// The objects under the same headings.
pub(super) fn objects(site: &ReleaseTarget, release: &Release) -> Result<Value> {
    let found = gather(site, release, AS_OBJECT)?;
    let found = found.into_iter().map(|(heading, answers)| (heading, Value::Array(answers)));
    Ok(Value::Object(found.collect::<Map<_, _>>()))
}

type Found = BTreeMap<String, Vec<Value>>;

/// What is there of a release's objects; what is not, is left out.
fn gather(site: &ReleaseTarget, release: &Release, accept: &str) -> Result<Found> {
    let mut found = Found::new();
    let objects = parse_manifest(&release.manifest)?;
    let (client, mapper) = (site.cluster.client(), site.cluster.mapper());
    site.cluster.wait(async {
        for RawObject { gvk, object } in objects {
            let Ok(mapping) = mapper.resolve(&gvk).await else { continue };
            let namespace = namespace_of(&object, &mapping, &release.namespace);
            let name = object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
            let Some(answer) =
                get(client, &mapping.resource, namespace.as_deref(), name, accept).await?
            else {
                continue;
            };
            found.entry(format!("{}/{}", gvk.version, gvk.kind)).or_default().push(answer);
            if let Some(pods) =
                pods(client, mapper, &gvk, &object, namespace.as_deref(), accept).await?
            {
                found.entry("v1/Pod(related)".to_owned()).or_default().push(pods);
            }
        }
        Ok(found)
    })
}

fn namespace_of(object: &Value, mapping: &Mapping, of_release: &str) -> Option<String> {
    let own = object.pointer("/metadata/namespace").and_then(Value::as_str);
    mapping.namespaced.then(|| own.unwrap_or(of_release).to_owned())
}

async fn get(
    client: &Client,
    resource: &ApiResource,
    namespace: Option<&str>,
    name: &str,
    accept: &str,
) -> Result<Option<Value>> {
    let request = Request::new(DynamicObject::url_path(resource, namespace));
    let mut request = request.get(name, &GetParams::default())?;
    request.headers_mut().insert("Accept", accept.parse()?);
    match client.request::<Value>(request).await {
        Ok(answer) => Ok(Some(answer)),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The pods that an object selects, if it is of a kind that makes some and there are any.
async fn pods(
    client: &Client,
    mapper: &Mapper,
    gvk: &GroupVersionKind,
    object: &Value,
    namespace: Option<&str>,
    accept: &str,
) -> Result<Option<Value>> {
    if !WITH_PODS.contains(&gvk.kind.as_str())
        || !matches!(gvk.group.as_str(), "" | "apps" | "batch")
    {
        return Ok(None);
    }
    let selected = match gvk.kind.as_str() {
        "Job" => {
            let name = object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
            format!("batch.kubernetes.io/job-name={name}")
        }
        "ReplicationController" => labels(object.pointer("/spec/selector")),
        _ => labels(object.pointer("/spec/selector/matchLabels")),
    };
    if selected.is_empty() {
        return Ok(None);
    }
    let pod = mapper.resolve(&GroupVersionKind::gvk("", "v1", "Pod")).await?;
    let request = Request::new(DynamicObject::url_path(&pod.resource, namespace));
    let mut request = request.list(&ListParams::default().labels(&selected))?;
    request.headers_mut().insert("Accept", accept.parse()?);
    let list: Value = client.request(request).await?;
    let rows = list.get("rows").or_else(|| list.get("items")).and_then(Value::as_array);
    Ok(Some(list.clone()).filter(|_| rows.is_some_and(|rows| !rows.is_empty())))
}

fn labels(selector: Option<&Value>) -> String {
    let pairs = selector.and_then(Value::as_object).into_iter().flatten();
    let pairs = pairs.filter_map(|(key, value)| Some(format!("{key}={}", value.as_str()?)));
    pairs.collect::<Vec<_>>().join(",")
}

/// Answers in the form of tables as one: the columns that are always shown, as wide as they must be.
fn aligned(tables: &[Value]) -> String {
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let mut rows: Vec<Vec<String>> = Vec::new();
    for table in tables {
        let columns = table.get("columnDefinitions").and_then(Value::as_array);
        let shown: Vec<usize> = columns
            .into_iter()
            .flatten()
            .enumerate()
            .filter(|(_, column)| column.get("priority").and_then(Value::as_i64).unwrap_or(0) == 0)
            .map(|(index, _)| index)
            .collect();
        let pick = |cells: &[Value], name: fn(&Value) -> Value| -> Vec<String> {
            shown
                .iter()
                .filter_map(|index| cells.get(*index))
                .map(|cell| text(&name(cell)))
                .collect()
        };
        if let (true, Some(columns)) = (rows.is_empty(), columns) {
            let header = pick(columns, |column| column.get("name").cloned().unwrap_or_default());
            rows.push(header.iter().map(|name| name.to_uppercase()).collect());
        }
        for row in table.get("rows").and_then(Value::as_array).into_iter().flatten() {
            if let Some(cells) = row.get("cells").and_then(Value::as_array) {
                rows.push(pick(cells, Value::clone));
            }
        }
    }
    let widths: Vec<usize> = (0..rows.first().map_or(0, Vec::len))
        .map(|column| {
            let cells = rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or_default() + GAP
        })
        .collect();
    let mut lines = String::new();
    for row in &rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            let _ = write!(line, "{cell:<width$}");
        }
        lines.push_str(line.trim_end());
        lines.push('\n');
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn tables_of_one_kind_are_one() {
        let table = |name: &str, data: u32| {
            json!({
                "columnDefinitions": [
                    {"name": "Name", "priority": 0}, {"name": "Data"}, {"name": "Owner", "priority": 1},
                ],
                "rows": [{"cells": [name, data, "x"]}],
            })
        };
        assert_eq!(
            aligned(&[table("a", 1), table("longer", 10)]),
            "NAME     DATA\na        1\nlonger   10\n"
        );
    }
}
