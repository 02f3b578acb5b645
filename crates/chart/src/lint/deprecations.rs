//! API versions that Kubernetes has deprecated.

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::{KubeVersion, Profile};

const TABLE: &str = include_str!("deprecated-apis.txt");

/// Major and minor version.
type Release = (u64, u64);

#[derive(Debug)]
struct Deprecation {
    since: Release,
    /// Gone from there on.
    until: Option<Release>,
    instead: &'static str,
}

type Table = HashMap<(&'static str, &'static str), Deprecation>;

/// Whether a kind is deprecated in a version of Kubernetes; Kubernetes' warning.
pub(super) fn check(
    api_version: &str,
    kind: &str,
    kube_version: &KubeVersion,
    profile: Profile,
) -> Result<(), String> {
    let Some(found) = table(profile).get(&(api_version, kind)) else { return Ok(()) };
    let number = |text: &str| {
        let fault = format!("strconv.Atoi: parsing {text:?}: invalid syntax");
        text.parse::<u64>().map_err(|_| fault)
    };
    let now = (number(&kube_version.major)?, number(&kube_version.minor)?);
    if found.since > now && now != (0, 0) {
        return Ok(());
    }
    let until = found.until.map(|until| format!(", unavailable in v{}+", shown(until)));
    let instead = match found.instead {
        "" => String::new(),
        instead => format!("; use {instead}"),
    };
    let since = shown(found.since);
    let until = until.unwrap_or_default();
    Err(format!("{api_version} {kind} is deprecated in v{since}+{until}{instead}"))
}

fn shown((major, minor): Release) -> String {
    format!("{major}.{minor}")
}

fn table(profile: Profile) -> &'static Table {
    static OLD: LazyLock<Table> = LazyLock::new(|| read("3.18"));
    static NEW: LazyLock<Table> = LazyLock::new(|| read("4.3"));
    match profile {
        Profile::Helm318 => &OLD,
        Profile::Helm43 => &NEW,
    }
}

fn read(helm: &str) -> Table {
    let lines = TABLE.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| entry(line, helm)).collect()
}

fn entry(line: &'static str, helm: &str) -> Option<((&'static str, &'static str), Deprecation)> {
    let mut columns = line.splitn(6, ' ');
    let whose = columns.next()?;
    if whose != "both" && whose != helm {
        return None;
    }
    let (api_version, kind) = (columns.next()?, columns.next()?);
    let since = release(columns.next()?)?;
    let until = release(columns.next()?);
    let instead = columns.next().unwrap_or_default();
    Some(((api_version, kind), Deprecation { since, until, instead }))
}

fn release(text: &str) -> Option<Release> {
    let (major, minor) = text.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_table_is_read() {
        let of = |helm: &str| {
            let is_of = |line: &&str| line.starts_with("both ") || line.starts_with(helm);
            TABLE.lines().filter(is_of).count()
        };
        assert_eq!(table(Profile::Helm318).len(), of("3.18 "));
        assert_eq!(table(Profile::Helm43).len(), of("4.3 "));
    }

    #[test]
    fn what_is_deprecated_depends_on_the_version() {
        let check = |minor: &str| {
            let version = KubeVersion::of_cluster("", "1", minor);
            check("batch/v1beta1", "CronJob", &version, Profile::Helm43)
        };
        assert_eq!(check("20"), Ok(()));
        assert_eq!(
            check("21"),
            Err("batch/v1beta1 CronJob is deprecated in v1.21+, unavailable in v1.25+; use batch/v1 CronJob".into())
        );
    }
}
