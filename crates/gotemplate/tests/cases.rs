//! Every case under `tests/cases` against what Go's own text/template answered (the files' expected
//! parts are written by a Go program, never by hand).

mod support;

use catamaran_gotemplate::MissingKey;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

#[test]
fn every_case_answers_as_go_does() {
    let ours = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let data = fs::read_to_string(ours.join("data.json")).unwrap();
    // Another folder of answered cases, such as a generator makes.
    let folder = std::env::var_os("GOTEMPLATE_CASES").map_or(ours, PathBuf::from);
    let mut report = String::new();
    let (mut count, mut failed) = (0, 0);
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "txt") {
            continue;
        }
        let bytes = fs::read(&path).unwrap();
        let text = String::from_utf8_lossy(&bytes);
        let file = path.file_name().unwrap().to_string_lossy();
        for part in text.split("\n=== ").skip(1) {
            count += 1;
            let (name, body) = part.split_once('\n').unwrap();
            let (template, expected) = body.rsplit_once("\n--- ").unwrap();
            let expected = expected.strip_suffix('\n').unwrap();
            let missing_key = match name.split_once("missingkey=") {
                Some((_, "zero")) => MissingKey::Zero,
                Some((_, "error")) => MissingKey::Error,
                _ => MissingKey::Invalid,
            };
            let got = match support::render(template, missing_key, &data) {
                Ok(out) => format!("ok\n{out}"),
                Err(error) => format!("err\n{error}"),
            };
            if got.trim_end_matches('\n') != expected.trim_end_matches('\n') {
                failed += 1;
                let _ = writeln!(
                    report,
                    "{file}: {name}\n{template}\n-- go   {expected}\n-- ours {got}\n"
                );
            }
        }
    }
    assert!(count > 500, "only {count} cases found");
    assert!(failed == 0, "{failed} of {count} differ:\n\n{report}");
}
