//! values.yaml.

use catamaran_yaml::Numbers;
use serde_json::{Map, Value};

use super::RawFile;
use crate::{Chart, LoadError, gojson};

/// Reads values.yaml. The first document is what Helm 3 sees; Helm 4 merges all
/// of them, so the others are kept beside it, errors in them included.
pub(super) fn values_into(
    chart: &mut Chart,
    file: RawFile,
    room: &mut usize,
) -> Result<(), LoadError> {
    let fault = |message| LoadError::File { file: "values.yaml".to_owned(), message };
    chart.values = read_within(&file.data, room).map_err(fault)?;
    if let Ok(text) = std::str::from_utf8(&file.data) {
        let documents = documents(text);
        if documents.len() > MAX_DOCUMENTS {
            return Err(fault(format!("more than {MAX_DOCUMENTS} documents")));
        }
        let more = documents.iter().skip(1).map(|d| read_within(d.as_bytes(), room));
        chart.more_values = more.collect();
    }
    chart.values_text = Some(file.data);
    Ok(())
}

/// How many documents a values.yaml may have.
const MAX_DOCUMENTS: usize = 1000;

/// One document, as a table; numbers are floats.
pub(crate) fn read(data: &[u8]) -> Result<Map<String, Value>, String> {
    let mut room = catamaran_yaml::MAX_SIZE;
    read_within(data, &mut room)
}

fn read_within(data: &[u8], room: &mut usize) -> Result<Map<String, Value>, String> {
    let value = gojson::parse_within(data, Numbers::Float64, room)?;
    gojson::object(value, "map[string]interface {}")
}

/// Splits at lines that hold nothing but `---` and a comment, as Kubernetes'
/// YAML reader does. A marker before any content belongs to what follows it.
pub(crate) fn documents(text: &str) -> Vec<&str> {
    let mut all = Vec::new();
    let (mut start, mut at) = (0, 0);
    for line in text.split_inclusive('\n') {
        let end = at;
        at += line.len();
        if end > start && is_separator(line) {
            all.extend(text.get(start..end));
            start = at;
        }
    }
    all.extend(text.get(start..).filter(|rest| !rest.is_empty()));
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
