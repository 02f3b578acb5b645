//! Paths and errors of the system as Go tells them.

use std::io;

/// Go's `filepath.Join` of a path and a name: cleaned, `./a/` and `b` make `a/b`.
pub fn join(path: &str, name: &str) -> String {
    if path.is_empty() { clean(name) } else { clean(&format!("{path}/{name}")) }
}

/// Go's `filepath.Clean`, without touching the file system.
pub fn clean(path: &str) -> String {
    let rooted = path.starts_with('/');
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            ".." if rooted => {}
            part => parts.push(part),
        }
    }
    match (rooted, parts.join("/")) {
        (true, rest) => format!("/{rest}"),
        (false, rest) if rest.is_empty() => ".".to_owned(),
        (false, rest) => rest,
    }
}

/// `open values.yaml: no such file or directory`, as Go tells errors of the system.
pub fn go_io_error(verb: &str, path: &str, error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split_once(" (os error").map_or(text.as_str(), |(text, _)| text);
    let mut chars = text.chars();
    let first = chars.next().map(|c| c.to_ascii_lowercase());
    format!("{verb} {path}: {}{}", first.map(String::from).unwrap_or_default(), chars.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_cleaned_as_in_go() {
        for (path, name, joined) in [
            ("a", "b", "a/b"),
            ("./a/", "b", "a/b"),
            (".", "b", "b"),
            ("../a/../..", "b", "../../b"),
            ("/..//a", ".", "/a"),
        ] {
            assert_eq!(join(path, name), joined);
        }
        assert_eq!(clean("a/.."), ".");
    }
}
