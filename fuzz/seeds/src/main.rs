//! Writes inputs to start fuzzing from, and dictionaries, made of the project's own fixtures:
//! `seeds OUT` makes `OUT/<target>/` and `OUT/<target>.dict`.

mod signed;

use std::collections::BTreeSet;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use catamaran_fixtures::{Answer, Case, Helm};
use flate2::{Compression, write::GzEncoder};
use serde_json::Value;

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<()> {
    let out = PathBuf::from(std::env::args_os().nth(1).ok_or("usage: seeds OUT")?);
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let seeds = Seeds { root, out };
    let cases = Case::all()?;
    let charts = seeds.charts(&cases)?;
    let templates = seeds.templates(&charts)?;
    seeds.write("template_parse", &templates)?;
    seeds.write("render_text", &templates)?;
    seeds.write("render_handlebars", &texts(&charts, "hbs")?)?;
    seeds.write("yaml_read", &seeds.yaml(&charts)?)?;
    seeds.write("manifest", &goldens(&cases))?;
    seeds.write("yaml_outline", &documents(&cases))?;
    seeds.write("chart", &charts.iter().map(|chart| flat(chart)).collect::<Outcome<Vec<_>>>()?)?;
    seeds.write(
        "archive",
        &charts.iter().map(|chart| packed(chart)).collect::<Outcome<Vec<_>>>()?,
    )?;
    seeds.write("strvals", &lines(&cases)?)?;
    seeds.write("render_generated", &noise())?;
    seeds.write("provenance", &signed::inputs(&seeds.root.join(SIGNED))?)?;
    seeds.dictionaries()
}

/// Where the fixtures of signed charts are.
const SIGNED: &str = "crates/repository/tests/provenance";

/// Larger inputs only slow the search down.
const MAX_SEED: usize = 8 << 10;

/// Bytes of which the generator makes templates: always the same, of all lengths.
fn noise() -> Vec<Vec<u8>> {
    let mut state = 1_u64;
    let mut byte = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        state.to_be_bytes()[0]
    };
    (1..=400).map(|length| (0..length * 4).map(|_| byte()).collect()).collect()
}

/// What helm prints of the cases.
fn goldens(cases: &[Case]) -> Vec<Vec<u8>> {
    let answers = cases.iter().filter_map(|case| case.golden(Helm::V4));
    let output = |answer| match answer {
        Answer::Output(text) => Some(text.into_bytes()),
        Answer::Error(_) => None,
    };
    answers.filter_map(output).collect()
}

/// The documents of what helm prints.
fn documents(cases: &[Case]) -> Vec<Vec<u8>> {
    let split = |text: Vec<u8>| {
        let text = String::from_utf8_lossy(&text).into_owned();
        text.split("---\n").map(|document| document.as_bytes().to_vec()).collect::<Vec<_>>()
    };
    goldens(cases).into_iter().flat_map(split).collect()
}

/// What the cases set on the command line, and lines of all that the grammar has.
fn lines(cases: &[Case]) -> Outcome<Vec<Vec<u8>>> {
    let mut found: Vec<Vec<u8>> = LINES.iter().map(|line| line.as_bytes().to_vec()).collect();
    for case in cases {
        let arguments = case.arguments()?;
        let pairs = arguments.windows(2).filter(|pair| pair[0].starts_with("--set"));
        found.extend(pairs.map(|pair| pair[1].clone().into_bytes()));
    }
    Ok(found)
}

/// The files of charts whose names end so.
fn texts(charts: &[PathBuf], extension: &str) -> Outcome<Vec<Vec<u8>>> {
    let mut found = Vec::new();
    for chart in charts {
        walk(chart, &mut |path| {
            if path.extension().is_some_and(|end| end == extension) {
                found.extend(fs::read(path));
            }
        })?;
    }
    Ok(found)
}

/// What the grammar of `--set` has.
const LINES: [&str; 12] = [
    "a.b[0].c=1,l[2]=x",
    "list={a,b,{c}},empty={}",
    "k=null,e=,t=true,big=9223372036854775808",
    "a\\.b=c\\,d,x[1][2]=y",
    "json={\"a\":[1,{\"b\":null}]},next=[1,2]",
    "a.b={\"x\":1},l[0]=\"text\"",
    "s={{ .Values.x }}",
    "a[65536]=x",
    "a[-1]=x",
    "a.b.c.d.e.f.g.h=1",
    "file=a/b.txt,other={c.txt,d.txt}",
    "n=01,f=1.5,o=0x1F,u=1_000",
];

struct Seeds {
    root: PathBuf,
    out: PathBuf,
}

impl Seeds {
    fn write(&self, target: &str, inputs: &[Vec<u8>]) -> Outcome<()> {
        let folder = self.out.join(target);
        fs::create_dir_all(&folder)?;
        let inputs = inputs.iter().filter(|input| input.len() <= MAX_SEED).collect::<BTreeSet<_>>();
        for (index, input) in inputs.into_iter().enumerate() {
            fs::write(folder.join(format!("seed-{index:04}")), input)?;
        }
        Ok(())
    }

    /// The charts of the cases, and the samples.
    fn charts(&self, cases: &[Case]) -> Outcome<Vec<PathBuf>> {
        let unpacked = self.out.join("cases");
        for case in cases {
            let folder = unpacked.join(&case.name);
            if !folder.exists() {
                fs::create_dir_all(&folder)?;
                case.unpack(&folder)?;
            }
        }
        let mut found = Vec::new();
        for place in [unpacked, self.root.join("helm-charts"), self.root.join("examples")] {
            walk(&place, &mut |path| {
                if path.file_name().is_some_and(|name| name == "Chart.yaml")
                    && !path.to_string_lossy().contains("/charts/")
                {
                    found.extend(path.parent().map(Path::to_owned));
                }
            })?;
        }
        found.sort();
        Ok(found)
    }

    fn templates(&self, charts: &[PathBuf]) -> Outcome<Vec<Vec<u8>>> {
        let mut found = Vec::new();
        for chart in charts {
            walk(&chart.join("templates"), &mut |path| found.extend(fs::read(path)))?;
        }
        for file in fs::read_dir(self.root.join("crates/gotemplate/tests/cases"))? {
            for case in fs::read_to_string(file?.path())?.split("\n=== ").skip(1) {
                let body = case.split_once('\n').map_or("", |(_, body)| body);
                found.push(body.split("\n--- ").next().unwrap_or_default().into());
            }
        }
        found.extend(self.lines_of("crates/sprig/tests/fixtures/cases.jsonl", "t")?);
        let page = fs::read_to_string(self.root.join("docs/functions.md"))?;
        let examples = page.lines().filter(|line| line.starts_with('`') && line.contains("{{"));
        found.extend(examples.filter_map(|line| Some(line.get(1..)?.split('`').next()?.into())));
        Ok(found)
    }

    fn yaml(&self, charts: &[PathBuf]) -> Outcome<Vec<Vec<u8>>> {
        let mut found = texts(charts, "yaml")?;
        found.extend(texts(charts, "json")?);
        let cases = "crates/yaml/tests/fixtures/cases.jsonl";
        for key in ["read", "v2", "v3"] {
            found.extend(self.lines_of(cases, key)?);
        }
        Ok(found)
    }

    /// The texts that the objects in a file of JSON lines have under a key.
    fn lines_of(&self, file: &str, key: &str) -> Outcome<Vec<Vec<u8>>> {
        let text = fs::read_to_string(self.root.join(file))?;
        let objects = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        Ok(objects.filter_map(|object| Some(object.get(key)?.as_str()?.into())).collect())
    }

    /// The words of each language; of templates, all functions besides.
    fn dictionaries(&self) -> Outcome<()> {
        let words = |name: &str| fs::read_to_string(self.root.join("fuzz/dictionaries").join(name));
        let page = fs::read_to_string(self.root.join("docs/functions.md"))?;
        let names = page.lines().filter_map(|line| line.strip_prefix("### "));
        let calls: String = names.map(|name| format!("\"{name} \"\n")).collect();
        let (template, yaml) = (words("template.dict")? + &calls, words("yaml.dict")?);
        for (target, text) in [
            ("template_parse", &template),
            ("render_text", &template),
            ("render_handlebars", &(words("handlebars.dict")? + &calls)),
            ("chart", &(template.clone() + &yaml + &words("chart.dict")?)),
            ("yaml_read", &yaml),
            ("yaml_outline", &yaml),
            ("manifest", &(yaml.clone() + &words("chart.dict")?)),
            ("strvals", &words("strvals.dict")?),
        ] {
            fs::write(self.out.join(format!("{target}.dict")), text)?;
        }
        Ok(())
    }
}

/// All files below a folder.
fn walk(folder: &Path, visit: &mut dyn FnMut(&Path)) -> Outcome<()> {
    let Ok(entries) = fs::read_dir(folder) else { return Ok(()) };
    for entry in entries {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            walk(&entry.path(), visit)?;
        } else {
            visit(&entry.path());
        }
    }
    Ok(())
}

fn chart_files(chart: &Path) -> Outcome<Vec<(String, Vec<u8>)>> {
    let mut files = Vec::new();
    walk(chart, &mut |path| {
        let name = path.strip_prefix(chart).map(|name| name.to_string_lossy().into_owned());
        if let (Ok(name), Ok(data)) = (name, fs::read(path)) {
            files.push((name, data));
        }
    })?;
    files.sort();
    Ok(files)
}

/// A chart as the target `chart` takes it.
fn flat(chart: &Path) -> Outcome<Vec<u8>> {
    let mut out = Vec::new();
    for (name, data) in chart_files(chart)? {
        out.extend(format!("=== {name}\n").into_bytes());
        out.extend(data);
    }
    Ok(out)
}

fn packed(chart: &Path) -> Outcome<Vec<u8>> {
    let mut archive = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::best()));
    for (name, data) in chart_files(chart)? {
        let mut header = tar::Header::new_gnu();
        header.set_size(data.len() as u64);
        archive.append_data(&mut header, format!("c/{name}"), &data[..])?;
    }
    Ok(archive.into_inner()?.finish()?)
}
