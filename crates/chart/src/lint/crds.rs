//! The files of `crds/`.

use super::decoder::Decoder;
use super::folder::{Folder, Kind};
use super::{Report, Severity};
use crate::{Chart, LoadError, Profile};

const FOLDER: &str = "crds/";

/// Helm 4 alone looks at them.
pub(super) fn check(report: &mut Report, folder: &Folder, chart: &Result<Chart, LoadError>) {
    match folder.kind("crds") {
        None => return,
        Some(Kind::File) => {
            report.check(Severity::Error, FOLDER, Err("not a directory".into()));
            return;
        }
        Some(Kind::Folder) => {}
    }
    let chart = match chart {
        Ok(chart) => chart,
        Err(error) => {
            report.check(Severity::Error, FOLDER, Err(error.text(Profile::Helm43)));
            return;
        }
    };
    for crd in chart.crds() {
        for head in Decoder::new(&crd.data, Profile::Helm43) {
            let head = match head {
                Ok(head) => head,
                Err(text) => {
                    let text = format!("unable to parse YAML: {text}");
                    report.check(Severity::Error, &crd.name, Err(text));
                    return;
                }
            };
            let Some(head) = head else { continue };
            if !head.api_version.starts_with("apiextensions.k8s.io") {
                let text = "apiVersion is not in 'apiextensions.k8s.io'".to_owned();
                report.check(Severity::Error, &crd.name, Err(text));
            }
            if head.kind != "CustomResourceDefinition" {
                let text = "object kind is not 'CustomResourceDefinition'".to_owned();
                report.check(Severity::Error, &crd.name, Err(text));
            }
        }
    }
}
