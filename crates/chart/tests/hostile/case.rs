//! One hostile chart and how it has to end.

use std::path::Path;

/// Bytes of a file and its path in the chart.
pub type File = (String, Vec<u8>);

/// What a chart is given as.
pub enum Input {
    Folder(Vec<File>),
    /// A packed chart.
    Archive(Vec<u8>),
    /// A folder that is finished by something other than writing files.
    Made(Vec<File>, fn(&Path)),
}

/// How a chart has to end.
pub enum End {
    /// With an error that says this.
    Error(&'static str),
    /// With a limit that is named like this, in this file and line.
    Limit(&'static str, &'static str),
    /// With a document that contains this.
    Prints(&'static str),
    /// With an error or without: what matters is that it ends.
    Somehow,
}

pub struct Case {
    pub name: String,
    pub input: Input,
    pub end: End,
}

pub fn file(path: &str, content: impl Into<Vec<u8>>) -> File {
    (path.to_owned(), content.into())
}

/// A sound Chart.yaml.
pub fn chart_yaml() -> File {
    file("Chart.yaml", "apiVersion: v2\nname: c\nversion: 1.0.0\n")
}

/// A chart of one template. What is printed stands under a key, so that it is YAML.
pub fn template(name: &str, text: impl AsRef<str>, end: End) -> Case {
    let files = vec![chart_yaml(), file("templates/a.yaml", text.as_ref())];
    Case { name: name.to_owned(), input: Input::Folder(files), end }
}

/// A chart with some files besides Chart.yaml.
pub fn folder(name: &str, mut files: Vec<File>, end: End) -> Case {
    files.insert(0, chart_yaml());
    Case { name: name.to_owned(), input: Input::Folder(files), end }
}

/// A limit that is hit in the first line of the only template.
pub fn limit(text: &'static str) -> End {
    End::Limit(text, "c/templates/a.yaml:1")
}
