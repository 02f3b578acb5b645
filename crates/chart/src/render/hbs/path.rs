//! Paths of Handlebars: `Values.image.tag`, `../name`, `@root.Release.Name`, `@index`.

use handlebars::{Path, PathSeg};

/// A path, taken apart: what the crate finds by its scopes, and the fields behind it.
#[derive(Debug)]
pub(super) struct Split {
    /// A path of the crate that leads to a scope's value, a block parameter or a local variable.
    pub(super) base: String,
    /// What is looked up in it.
    pub(super) fields: Vec<String>,
}

/// Takes a path apart; `is_param` tells the block parameters in scope.
pub(super) fn split(path: &Path, is_param: impl Fn(&str) -> bool) -> Split {
    match path {
        Path::Local((level, name, raw)) => {
            let ups = "../".repeat(*level);
            let fields = raw.split(['.', '/']).skip_while(|part| !part.ends_with(name.as_str()));
            Split {
                base: format!("@{ups}{name}"),
                fields: fields.skip(1).map(ToOwned::to_owned).collect(),
            }
        }
        Path::Relative((segments, raw)) => relative(segments, raw, is_param),
    }
}

fn relative(segments: &[PathSeg], raw: &str, is_param: impl Fn(&str) -> bool) -> Split {
    let mut fields: Vec<String> = segments
        .iter()
        .filter_map(|segment| match segment {
            PathSeg::Named(name) => Some(name.clone()),
            _ => None,
        })
        .collect();
    let explicit = ["this.", "this/", "./"].iter().find_map(|prefix| raw.strip_prefix(prefix));
    let rest = explicit.unwrap_or(raw);
    if rest.strip_prefix("@root").is_some_and(|rest| rest.starts_with(['.', '/'])) {
        return Split { base: "@root/this".to_owned(), fields };
    }
    let mut ups = 0;
    let mut rest = rest;
    while let Some(behind) = rest.strip_prefix("../").or_else(|| rest.strip_prefix("...")) {
        ups += 1;
        rest = behind;
    }
    if ups == 0 && explicit.is_none() && fields.first().is_some_and(|name| is_param(name)) {
        return Split { base: fields.remove(0), fields };
    }
    Split { base: format!("{}this", "../".repeat(ups)), fields }
}
