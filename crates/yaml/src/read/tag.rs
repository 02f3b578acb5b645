//! The tags that Helm's reader knows.

/// What stands for `!!`.
pub(super) const PREFIX: &str = "tag:yaml.org,2002:";

/// The short name of a tag (`!!str`), as messages show it.
pub(super) fn short(tag: &str) -> String {
    match tag.strip_prefix(PREFIX) {
        Some(name) => format!("!!{name}"),
        None => tag.to_owned(),
    }
}
