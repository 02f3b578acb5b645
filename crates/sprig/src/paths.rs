//! Paths with `/`. The functions with `os` in their name are those of Linux: the same.

use crate::args::{chars, string};

items! {
    /// The last element of a path.
    sprig "PATH -> string", r#"{{ base "etc/nginx/nginx.conf" }}"# => "nginx.conf";
    "base" | "osBase"(String) => |ctx, args| string(ctx, base(&chars(args, 0)));
    /// All but the last element of a path.
    sprig "PATH -> string", r#"{{ dir "etc/nginx/nginx.conf" }}"# => "etc/nginx";
    "dir" | "osDir"(String) => |ctx, args| {
        let path = chars(args, 0);
        let end = path.rfind('/').map_or(0, |at| at + 1);
        string(ctx, clean(path.get(..end).unwrap_or_default()))
    };
    /// The shortest path that means the same.
    sprig "PATH -> string", r#"{{ clean "/etc/../var//log/" }}"# => "/var/log";
    "clean" | "osClean"(String) => |ctx, args| string(ctx, clean(&chars(args, 0)));
    /// The ending of a file's name, with its dot.
    sprig "PATH -> string", r#"{{ ext "nginx.conf" }}"# => ".conf";
    "ext" | "osExt"(String) => |ctx, args| {
        let path = chars(args, 0);
        let name = path.rsplit('/').next().unwrap_or_default();
        string(ctx, name.rfind('.').and_then(|at| name.get(at..)).unwrap_or_default())
    };
    /// Whether a path starts at the root.
    sprig "PATH -> bool", r#"{{ isAbs "/etc" }}"# => "true";
    "isAbs" | "osIsAbs"(String) => |_, args| Ok(chars(args, 0).starts_with('/').into());
}

fn base(path: &str) -> &str {
    if path.is_empty() {
        return ".";
    }
    let path = path.trim_end_matches('/');
    if path.is_empty() { "/" } else { path.rsplit('/').next().unwrap_or_default() }
}

fn clean(path: &str) -> String {
    let rooted = path.starts_with('/');
    let mut kept: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if kept.last().is_some_and(|last| *last != "..") => {
                kept.pop();
            }
            ".." if rooted => {}
            part => kept.push(part),
        }
    }
    let joined = kept.join("/");
    match (rooted, joined.is_empty()) {
        (true, _) => format!("/{joined}"),
        (false, true) => ".".to_owned(),
        (false, false) => joined,
    }
}
