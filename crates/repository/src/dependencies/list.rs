//! `helm dependency list`: what Chart.yaml asks for, and what is there.

use std::fs;
use std::path::{Path, PathBuf};

use catamaran_chart::{Chart, Dependency, gopath};
use catamaran_sprig::semver::{Constraint, Version};

use crate::RepositoryError;

/// The table of a chart's dependencies, as Helm prints it. No column is wider than `widest`; 0 is no
/// limit.
///
/// # Errors
///
/// The chart cannot be loaded.
pub fn list(path: &Path, widest: usize) -> Result<String, RepositoryError> {
    let path = PathBuf::from(gopath::clean(&path.to_string_lossy()));
    fs::metadata(&path).map_err(|error| RepositoryError::io("stat", &path, &error))?;
    let chart = Chart::load(&path)?;
    let charts = PathBuf::from(gopath::join(&path.to_string_lossy(), "charts"));
    let Some(wanted) = &chart.metadata.dependencies else {
        return Ok(format!("WARNING: no dependencies at {}\n", charts.display()));
    };
    let mut rows = vec![["NAME", "VERSION", "REPOSITORY", "STATUS"].map(str::to_owned)];
    for dependency in wanted {
        let Dependency { name, version, repository, .. } = dependency;
        let status = status(&charts, dependency, &chart).to_owned();
        rows.push([name.clone(), version.clone(), repository.clone(), status]);
    }
    let mut lines = vec![table(&rows, widest), "\n".to_owned()];
    for path in sorted(&charts) {
        if !path.is_dir() && path.extension().is_none_or(|extension| extension != "tgz") {
            continue;
        }
        let shown = path.display().to_string();
        match Chart::load(&path) {
            Err(_) => lines.push(format!("WARNING: {shown:?} is not a chart.\n")),
            Ok(chart) if wanted.iter().any(|dependency| dependency.name == chart.name()) => {}
            Ok(_) => lines.push(format!("WARNING: {shown:?} is not in Chart.yaml.\n")),
        }
    }
    Ok(lines.concat())
}

fn sorted(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> =
        fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

fn table(rows: &[[String; 4]], widest: usize) -> String {
    let cut = |cell: &str| {
        let mut chars: Vec<char> = cell.chars().collect();
        if chars.len() > widest && widest > 0 {
            chars.truncate(widest.saturating_sub(3));
            chars.extend("...".chars());
        }
        chars.into_iter().collect::<String>()
    };
    let rows: Vec<Vec<String>> =
        rows.iter().map(|row| row.iter().map(|cell| cut(cell)).collect()).collect();
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max()
    };
    let mut text = String::new();
    for row in &rows {
        let padded = row.iter().enumerate().map(|(column, cell)| {
            let width = width(column).unwrap_or(0);
            format!("{cell:width$}")
        });
        text += &padded.collect::<Vec<_>>().join("\t");
        text.push('\n');
    }
    text
}

/// One word or two on a dependency.
fn status(charts: &Path, dependency: &Dependency, parent: &Chart) -> &'static str {
    let prefix = format!("{}-", dependency.name);
    let version_of = |path: &PathBuf| {
        let name = path.file_name()?.to_str()?.strip_prefix(&prefix)?.strip_suffix(".tgz")?;
        Some(name.to_owned())
    };
    let archives: Vec<PathBuf> =
        sorted(charts).into_iter().filter(|path| version_of(path).is_some()).collect();
    let of_version = |path: &&PathBuf| {
        version_of(path).is_some_and(|version| {
            version.split(['-', '+']).next().is_some_and(|v| v.split('.').count() == 3)
                && Version::parse(&version).is_ok()
        })
    };
    match archives.as_slice() {
        [] => {}
        [archive] => return of_archive(archive, dependency),
        several => match several.iter().filter(of_version).collect::<Vec<_>>().as_slice() {
            [] => {}
            [archive] => return of_archive(archive, dependency),
            _ => return "too many matches",
        },
    }
    let mut children = parent.dependencies.iter();
    match children.rfind(|child| child.name() == dependency.name) {
        None => "missing",
        Some(child) => mismatch(&child.metadata.version, dependency).unwrap_or("unpacked"),
    }
}

fn of_archive(path: &Path, dependency: &Dependency) -> &'static str {
    match Chart::load(path) {
        Err(_) => "corrupt",
        Ok(chart) if chart.name() != dependency.name => "misnamed",
        Ok(chart) => mismatch(&chart.metadata.version, dependency).unwrap_or("ok"),
    }
}

fn mismatch(found: &str, dependency: &Dependency) -> Option<&'static str> {
    if found == dependency.version {
        return None;
    }
    let constraint = Constraint::parse(&dependency.version);
    match (constraint, Version::parse(found)) {
        (Ok(constraint), Ok(version)) if constraint.check(&version) => None,
        (Ok(_), Ok(_)) => Some("wrong version"),
        _ => Some("invalid version"),
    }
}
