//! Whether resources that never succeed hold up those that do: five charts, a tenth broken for good.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Result;
use catamaran_localcluster::LocalCluster;
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use kube::api::PostParams;
use serde_json::json;

use crate::load::{GROUP, api, chart, define, resource, when_deployed};
use crate::operator::Operator;
use crate::table::Table;

const KINDS: [&str; 5] = ["Alpha", "Beta", "Gamma", "Delta", "Epsilon"];
/// One resource of so many is broken.
const ONE_OF: usize = 10;

/// The 95th percentile of the time from creation to Deployed of the healthy ones, without broken ones
/// beside them and with.
pub async fn measure(
    operator: &Path,
    helm: &Path,
    cluster: &LocalCluster,
    count: usize,
    table: &mut Table,
) -> Result<()> {
    let project = tempfile::tempdir()?;
    let mut watches = Vec::new();
    for kind in KINDS {
        let name = kind.to_lowercase();
        chart(helm, project.path(), &name)?;
        define(&cluster.client(), kind).await?;
        let entry =
            format!("- {{group: {GROUP}, version: v1, kind: {kind}, chart: helm-charts/{name}}}\n");
        watches.push(entry);
    }
    std::fs::write(project.path().join("watches.yaml"), watches.concat())?;
    let _operator = Operator::start(operator, cluster, project.path()).await?;
    // The first run warms up: discovery, connections, charts.
    run(cluster, "warm", count, Beside::Healthy).await?;
    let mut times = Vec::new();
    for (name, beside) in [("healthy", Beside::Healthy), ("mixed", Beside::Broken)] {
        let p95 = run(cluster, name, count, beside).await?;
        table.row(
            &format!("{count} of five charts, {name}: p95 of the healthy"),
            format!("{:.0} ms", p95.as_secs_f64() * 1000.0),
        );
        times.push(p95.as_secs_f64());
    }
    if let [alone, beside] = times[..] {
        table.row("with a tenth broken, against without", format!("{:.2}x", beside / alone));
    }
    Ok(())
}

/// What the tenth of the resources is.
#[derive(Clone, Copy, PartialEq)]
enum Beside {
    Healthy,
    /// Its chart never renders, or its objects are never taken.
    Broken,
}

async fn run(cluster: &LocalCluster, name: &str, count: usize, beside: Beside) -> Result<Duration> {
    let (client, namespace) = (cluster.client(), cluster.namespace(name).await?);
    let of = |kind: &str| api(&client, GROUP, kind, Some(namespace.name()));
    let is_broken = |number: usize| beside == Beside::Broken && number % ONE_OF == 3;
    let healthy =
        |kind: usize| (0..count).filter(|it| it % KINDS.len() == kind && !is_broken(*it)).count();
    let watching = futures::future::try_join_all(KINDS.iter().enumerate().map(|(at, kind)| {
        let (resources, count) = (of(kind), healthy(at));
        async move { when_deployed(&resources, count).await }
    }));
    let creating = async {
        let all = stream::iter(0..count).map(|number| {
            let kind = KINDS[number % KINDS.len()];
            // Neither can ever be: the one at the API server, the other in the template.
            let spec = match (is_broken(number), number % 2) {
                (false, _) => json!({ "replicaCount": 0 }),
                (true, 0) => json!({ "replicaCount": 0, "service": { "port": 123_456 } }),
                (true, _) => json!({ "replicaCount": 0, "service": 1 }),
            };
            let resources = of(kind);
            async move {
                let (name, begun) = (format!("it-{number:04}"), Instant::now());
                resources.create(&PostParams::default(), &resource(kind, &name, &spec)?).await?;
                anyhow::Ok((format!("{kind}/{name}"), begun))
            }
        });
        all.buffer_unordered(4).try_collect::<Vec<_>>().await
    };
    let (created, deployed) = futures::try_join!(creating, watching)?;
    let created: std::collections::HashMap<_, _> = created.into_iter().collect();
    let mut took: Vec<Duration> = KINDS
        .iter()
        .zip(deployed)
        .flat_map(|(kind, at)| at.into_iter().map(move |(name, at)| (format!("{kind}/{name}"), at)))
        .filter_map(|(name, at)| Some(at.saturating_duration_since(*created.get(&name)?)))
        .collect();
    took.sort_unstable();
    let at = (took.len() * 95).div_ceil(100).saturating_sub(1);
    Ok(took.get(at).copied().unwrap_or_default())
}
