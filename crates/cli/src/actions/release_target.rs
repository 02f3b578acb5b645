//! The cluster that an action works on.

use std::cell::RefCell;
use std::env;
use std::io::{self, IsTerminal as _, Write as _};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Error, Result, anyhow, bail};
use catamaran_cluster::apply::{ApplyError, FailureKind, Target};
use catamaran_release::{ActionOptions, Driver, Error as ReleaseError, History, Output, Owner};
use jiff::Timestamp;
use kube::api::ApiResource;
use kube::core::GroupVersionKind;
use serde_json::json;

use crate::charts::cluster::{Cluster, Unreachable};
use crate::charts::flags::{ClusterArgs, GlobalArgs};

use super::progress::Progress;
use super::run_to_completion::{Interruption, Interrupts, Within};

/// A cluster, a namespace of it, and who is told of what is waited for.
pub(crate) struct ReleaseTarget {
    pub(crate) cluster: Cluster,
    pub(crate) namespace: String,
    progress: Progress,
    interrupts: RefCell<Interrupts>,
}

impl ReleaseTarget {
    pub(crate) fn new(args: &GlobalArgs) -> Result<Self> {
        match env::var("HELM_DRIVER").as_deref() {
            Err(_) | Ok("" | "secret" | "secrets") => {}
            Ok(other) => {
                bail!("HELM_DRIVER={other} is not supported: releases are kept in Secrets")
            }
        }
        Self::with(&args.cluster, args.is_debug())
    }

    fn with(args: &ClusterArgs, lines: bool) -> Result<Self> {
        let namespace = args.namespace();
        let cluster = Cluster::connect(args)?;
        let interrupts = cluster.wait(async { Interrupts::new() }).into();
        Ok(Self { cluster, namespace, progress: Progress::new(lines), interrupts })
    }

    /// The release's records.
    pub(crate) fn history(&self, name: &str) -> Result<History> {
        let driver = self.cluster.driver();
        match self.cluster.wait(driver.history(&self.namespace, name)) {
            Err(ReleaseError::Request(error)) if error.kind == FailureKind::Unavailable => {
                Err(self.unreachable(&error))
            }
            history => Ok(history?),
        }
    }

    /// Why the cluster cannot be reached, as far down as that is known; or, if it can, what it said.
    fn unreachable(&self, otherwise: &ApplyError) -> Error {
        let Err(error) = self.cluster.wait(self.cluster.client().apiserver_version()) else {
            return anyhow!(otherwise.to_string());
        };
        let causes =
            std::iter::successors(Some(&error as &dyn std::error::Error), |error| error.source());
        let cause = causes.last().map(ToString::to_string).unwrap_or_default();
        Unreachable(cause).into()
    }

    /// Creates the namespace, if there is none.
    pub(crate) fn create_namespace(&self) -> Result<()> {
        let gvk = GroupVersionKind::gvk("", "v1", "Namespace");
        let resource = ApiResource::from_gvk_with_plural(&gvk, "namespaces");
        let name = self.namespace.clone();
        // Helm's label.
        let object = json!({
            "apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": name, "labels": {"name": name}},
        });
        let target = Target { resource, namespace: None, name };
        let driver = self.cluster.driver();
        match self.cluster.wait(driver.applier().create(&target, &object)) {
            Err(error) if error.kind != FailureKind::AlreadyExists => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// Carries an action out, to its end: calls it again whenever what it waits for has changed.
    pub(crate) fn run_to_completion<T>(
        &self,
        driver: &Driver,
        until: Timestamp,
        call: impl AsyncFnMut() -> Result<T, Interruption>,
    ) -> Result<T, Interruption> {
        let within = Within { driver, until, progress: &self.progress };
        let mut interrupts = self.interrupts.borrow_mut();
        let result = self.cluster.wait(within.run_to_completion(&mut interrupts, call));
        self.progress.end();
        result
    }

    /// A driver for one action that may take this long from now, and when that will be over.
    pub(crate) fn driver(
        &self,
        action_options: ActionOptions,
        timeout: Duration,
    ) -> (Driver, Timestamp) {
        let now = Timestamp::now();
        let until = now.checked_add(timeout).unwrap_or(Timestamp::MAX);
        let action_options = ActionOptions { until: Some(until), ..action_options };
        let tell = Arc::new(|output: Output<'_>| tell_output(output));
        let driver = self.cluster.driver().hook_timeout(timeout).telling_output(tell);
        (driver.options(action_options), until)
    }

    /// The resource that the release belongs to, so that its objects keep their owner; says so.
    pub(crate) fn owner(&self, history: &History) -> Result<Option<Owner>, ReleaseError> {
        let owner = self.cluster.wait(self.cluster.driver().owner(history))?;
        if let Some(Owner { reference, .. }) = &owner {
            eprintln!(
                "warning: this release belongs to {} {:?}: its operator changes back what is changed by hand",
                reference.kind, reference.name
            );
        }
        Ok(owner)
    }
}

/// What hooks have printed, on standard error, where the line of progress may stand.
fn tell_output(output: Output<'_>) {
    let mut stderr = io::stderr().lock();
    let clear = if stderr.is_terminal() { "\r\x1b[K" } else { "" };
    // Who does not read it may still want the action.
    drop(match output {
        Output::Text(text) => write!(stderr, "{clear}{text}"),
        Output::Unread(why) => writeln!(stderr, "{clear}error outputting logs of a hook: {why}"),
    });
}
