//! One chart, and what `helm template` would be told with it.

use std::fs;
use std::path::Path;

use anyhow::Result;
use catamaran_chart::Profile;
use serde::Serialize;

/// A file of a chart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Its path inside the chart.
    pub name: String,
    /// Its content; need not be text.
    pub data: Vec<u8>,
}

impl File {
    /// A file of text.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        Self { name: name.into(), data: text.into().into_bytes() }
    }
}

/// A line for a flag that sets values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SetLine {
    /// `--set`
    Typed(String),
    /// `--set-string`
    Text(String),
    /// `--set-json`
    Json(String),
    /// `--set-literal`
    Literal(String),
}

/// A chart in memory with its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// Which Helm is asked.
    pub profile: Profile,
    /// The chart's files, in any order.
    pub files: Vec<File>,
    /// Texts of files for `-f`.
    pub values: Vec<String>,
    /// Lines for `--set` and its kin.
    pub set: Vec<SetLine>,
    /// The release's name.
    pub name: String,
    /// The release's namespace.
    pub namespace: String,
    /// `--is-upgrade`
    pub is_upgrade: bool,
    /// `--kube-version`; empty means the default.
    pub kube_version: String,
    /// `--api-versions`
    pub api_versions: Vec<String>,
    /// `--include-crds`
    pub include_crds: bool,
}

impl Case {
    /// An empty chart of a profile.
    pub fn new(profile: Profile) -> Self {
        Self {
            profile,
            files: Vec::new(),
            values: Vec::new(),
            set: Vec::new(),
            name: "demo".into(),
            namespace: "default".into(),
            is_upgrade: false,
            kube_version: String::new(),
            api_versions: Vec::new(),
            include_crds: false,
        }
    }

    /// Adds a file.
    pub fn file(&mut self, name: impl Into<String>, text: impl Into<String>) {
        self.files.push(File::new(name, text));
    }

    /// Puts the files in the order in which Helm walks a folder: names of one folder by their
    /// bytes, what is in a folder in the place of its name.
    pub fn sort(&mut self) {
        self.files.sort_by(|a, b| a.name.split('/').cmp(b.name.split('/')));
    }

    /// The line of JSON that `hack/oracle` reads.
    pub fn to_line(&self, id: u64) -> String {
        let lines = |wanted: fn(&SetLine) -> Option<&str>| -> Vec<&str> {
            self.set.iter().filter_map(wanted).collect()
        };
        let files = self.files.iter().map(|file| match std::str::from_utf8(&file.data) {
            Ok(text) => WireFile { name: &file.name, text: Some(text), data: None },
            Err(_) => WireFile { name: &file.name, text: None, data: Some(base64(&file.data)) },
        });
        let wire = Wire {
            id,
            files: files.collect(),
            values: &self.values,
            set: lines(|line| if let SetLine::Typed(text) = line { Some(text) } else { None }),
            set_string: lines(
                |line| if let SetLine::Text(text) = line { Some(text) } else { None },
            ),
            set_json: lines(|line| if let SetLine::Json(text) = line { Some(text) } else { None }),
            set_literal: lines(
                |line| if let SetLine::Literal(text) = line { Some(text) } else { None },
            ),
            name: &self.name,
            namespace: &self.namespace,
            is_upgrade: self.is_upgrade,
            kube_version: &self.kube_version,
            api_versions: &self.api_versions,
            include_crds: self.include_crds,
        };
        serde_json::to_string(&wire).unwrap_or_default()
    }

    /// The arguments of `helm template` behind the chart, values files in `folder`.
    pub fn arguments(&self, folder: &str) -> Vec<String> {
        let mut words = Vec::new();
        let mut flag = |name: &str, value: &str| words.extend([name.to_owned(), value.to_owned()]);
        for at in 0..self.values.len() {
            flag("-f", &format!("{folder}values{at}.yaml"));
        }
        for line in &self.set {
            match line {
                SetLine::Typed(text) => flag("--set", text),
                SetLine::Text(text) => flag("--set-string", text),
                SetLine::Json(text) => flag("--set-json", text),
                SetLine::Literal(text) => flag("--set-literal", text),
            }
        }
        if self.namespace != "default" {
            flag("--namespace", &self.namespace);
        }
        if !self.kube_version.is_empty() {
            flag("--kube-version", &self.kube_version);
        }
        for version in &self.api_versions {
            flag("--api-versions", version);
        }
        if self.is_upgrade {
            words.push("--is-upgrade".into());
        }
        if self.include_crds {
            words.push("--include-crds".into());
        }
        words
    }

    /// Writes the case as a folder: the chart, its values files, and the arguments. One values file
    /// is called as those of the fixtures of `crates/chart` are.
    pub fn save(&self, folder: &Path) -> Result<()> {
        for file in &self.files {
            let path = folder.join("chart").join(&file.name);
            if let Some(parent) = path.parent() {
                fs::create_dir_all(parent)?;
            }
            fs::write(path, &file.data)?;
        }
        if let [text] = self.values.as_slice() {
            fs::write(folder.join("values.yaml"), text)?;
        } else {
            for (at, text) in self.values.iter().enumerate() {
                fs::write(folder.join(format!("values{at}.yaml")), text)?;
            }
        }
        let mut plain = self.clone();
        plain.values.clear();
        let mut words = vec![self.name.clone()];
        words.extend(plain.arguments(""));
        if words.len() > 1 || self.name != "demo" {
            fs::write(folder.join("args"), words.join(" ") + "\n")?;
        }
        Ok(())
    }
}

fn base64(data: &[u8]) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(data)
}

#[derive(Serialize)]
struct WireFile<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Wire<'a> {
    id: u64,
    files: Vec<WireFile<'a>>,
    values: &'a [String],
    set: Vec<&'a str>,
    set_string: Vec<&'a str>,
    set_json: Vec<&'a str>,
    set_literal: Vec<&'a str>,
    name: &'a str,
    namespace: &'a str,
    is_upgrade: bool,
    kube_version: &'a str,
    api_versions: &'a [String],
    include_crds: bool,
}
