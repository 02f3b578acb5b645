//! values.yaml.

use catamaran_yaml::Numbers;
use serde_json::{Map, Value};

use super::RawFile;
use crate::{Chart, LoadError, gojson};

/// Reads values.yaml. The first document is what Helm 3 sees; Helm 4 merges all
/// of them, so the others are kept beside it, errors in them included.
pub(super) fn values_into(chart: &mut Chart, file: RawFile) -> Result<(), LoadError> {
    let fault = |message| LoadError::File { file: "values.yaml".to_owned(), message };
    chart.values = read(&file.data).map_err(fault)?;
    if let Ok(text) = std::str::from_utf8(&file.data) {
        chart.more_values = documents(text).iter().skip(1).map(|d| read(d.as_bytes())).collect();
    }
    chart.values_text = Some(file.data);
    Ok(())
}

/// One document, as a table; numbers are floats.
pub(crate) fn read(data: &[u8]) -> Result<Map<String, Value>, String> {
    gojson::object(gojson::parse(data, Numbers::Float64)?, "map[string]interface {}")
}

/// Splits at lines that hold nothing but `---` and a comment, as Kubernetes'
/// YAML reader does. A marker before any content belongs to what follows it.
pub(crate) fn documents(text: &str) -> Vec<String> {
    let mut all = Vec::new();
    let mut current = String::new();
    for line in text.split_inclusive('\n') {
        if is_separator(line) && !current.is_empty() {
            all.push(std::mem::take(&mut current));
        } else {
            current.push_str(line);
        }
    }
    if !current.is_empty() {
        all.push(current);
    }
    all
}

fn is_separator(line: &str) -> bool {
    line.strip_prefix("---").is_some_and(|rest| {
        let rest = rest.trim();
        rest.is_empty() || rest.starts_with('#')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_split_at_their_markers() {
        assert_eq!(documents("---\na: 1\n--- # x\nb: 2\n---\n"), ["---\na: 1\n", "b: 2\n"]);
        assert_eq!(documents("a: |\n  ---\n---x\n"), ["a: |\n  ---\n---x\n"]);
        assert!(documents("").is_empty());
    }
}
