//! values.yaml.

use catamaran_yaml::Numbers;
use serde_json::{Map, Value};

use super::RawFile;
use crate::{Chart, LoadError, gojson};

/// What is in a values.yaml. The first document is what Helm 3 sees; Helm 4 merges all of them, so
/// the others are kept beside it, errors in them included.
#[derive(Clone, Debug)]
pub(super) struct Values {
    first: Map<String, Value>,
    more: Vec<Result<Map<String, Value>, String>>,
    /// What it takes of the room for YAML, in bytes.
    size: usize,
}

impl Values {
    pub(super) fn read(data: &[u8], room: usize) -> Result<Self, String> {
        let mut left = room;
        let first = read_within(data, &mut left)?;
        let mut more = Vec::new();
        if let Ok(text) = std::str::from_utf8(data) {
            let documents = documents(text);
            if documents.len() > MAX_DOCUMENTS {
                return Err(format!("more than {MAX_DOCUMENTS} documents"));
            }
            let others = documents.iter().skip(1);
            more = others.map(|d| read_within(d.as_bytes(), &mut left)).collect();
        }
        Ok(Self { first, more, size: room - left })
    }
}

/// Puts values.yaml in its place.
pub(super) fn values_into(
    chart: &mut Chart,
    file: RawFile,
    room: &mut usize,
) -> Result<(), LoadError> {
    let fault = |message| LoadError::File { file: "values.yaml".to_owned(), message };
    let values = match file.values {
        Some(values) if values.size <= *room => values,
        _ => Values::read(&file.data, *room).map_err(fault)?,
    };
    *room -= values.size;
    chart.values = values.first;
    chart.more_values = values.more;
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
