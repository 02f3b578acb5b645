//! What the text of templates tells of kinds and lookups, whether or not a rendering comes there.

/// What a template tells.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Told {
    /// Kinds with their groups; `None` where the group is worked out by the template.
    pub kinds: Vec<(Option<String>, String)>,
    /// Lookups: apiVersion, kind, and whether a name is given.
    pub lookups: Vec<(String, String, bool)>,
    /// Lines that work out what cannot be told, counted from 1, with what.
    pub unknown: Vec<(usize, &'static str)>,
}

/// Reads the text of a template.
pub(super) fn scan(text: &str) -> Told {
    let mut told = Told::default();
    let mut document = Document::default();
    for (number, line) in (1..).zip(text.lines()) {
        if line.starts_with("---") {
            std::mem::take(&mut document).flush(&mut told);
        } else if let Some(value) = line.strip_prefix("apiVersion:") {
            document.api_versions.push(literal(value));
        } else if let Some(value) = line.strip_prefix("kind:") {
            match literal(value) {
                Some(kind) => document.kinds.push(kind),
                None => told.unknown.push((number, "a kind")),
            }
        }
        document.is_test |= is_test(line);
        lookups(line, number, &mut told);
    }
    document.flush(&mut told);
    told
}

/// What one document says of itself: more than once, where it depends.
#[derive(Default)]
struct Document {
    api_versions: Vec<Option<String>>,
    kinds: Vec<String>,
    /// Whether it is a hook that `helm test` runs, and nobody else.
    is_test: bool,
}

impl Document {
    fn flush(self, told: &mut Told) {
        if self.is_test {
            return;
        }
        for kind in self.kinds {
            let groups = self.api_versions.iter().map(|version| {
                let version = version.as_deref()?;
                Some(version.rsplit_once('/').map_or("", |(group, _)| group).to_owned())
            });
            for group in groups {
                told.kinds.push((group, kind.clone()));
            }
            if self.api_versions.is_empty() {
                told.kinds.push((None, kind));
            }
        }
    }
}

/// A value that no template works out.
fn literal(value: &str) -> Option<String> {
    let value = value.split(" #").next().unwrap_or_default().trim();
    let value = value.trim_matches(['"', '\'']);
    Some(value.to_owned()).filter(|value| !value.is_empty() && !value.contains("{{"))
}

/// Whether a line is the annotation of a test.
fn is_test(line: &str) -> bool {
    let Some((_, value)) = line.split_once("helm.sh/hook") else { return false };
    let value = value.trim_start_matches(['"', '\'', ':', ' ']);
    value.starts_with("test")
}

/// The calls of `lookup` in a line.
fn lookups(line: &str, number: usize, told: &mut Told) {
    for (at, found) in line.match_indices("lookup") {
        let before = line.get(..at).and_then(|text| text.chars().next_back());
        if before.is_some_and(|c| c.is_alphanumeric() || "._-\"$".contains(c)) {
            continue;
        }
        let Some(rest) = line.get(at + found.len()..).filter(|rest| rest.starts_with([' ', '\t']))
        else {
            continue;
        };
        let words = arguments(rest);
        match words.as_slice() {
            [Some(version), Some(kind), _, name, ..] => {
                let named = name.as_deref() != Some("");
                told.lookups.push((version.clone(), kind.clone(), named));
            }
            [Some(version), Some(kind), ..] => {
                told.lookups.push((version.clone(), kind.clone(), true));
            }
            _ => told.unknown.push((number, "what a lookup is for")),
        }
    }
}

/// The first four arguments of a call; `None` for those that are no literals.
fn arguments(text: &str) -> Vec<Option<String>> {
    let mut words = Vec::new();
    let mut rest = text.trim_start();
    while words.len() < 4 && !rest.is_empty() && !rest.starts_with([')', '}', '|']) {
        if let Some(quoted) = rest.strip_prefix('"') {
            let (word, tail) = quoted.split_once('"').unwrap_or((quoted, ""));
            words.push(Some(word.to_owned()));
            rest = tail.trim_start();
        } else {
            let depth = |depth: usize, c: char| match c {
                '(' => depth + 1,
                ')' => depth.saturating_sub(1),
                _ => depth,
            };
            let mut open = 0;
            let end = rest.find(|c: char| {
                let ends = open == 0 && (c.is_whitespace() || c == ')');
                open = depth(open, c);
                ends
            });
            rest = rest.get(end.unwrap_or(rest.len())..).unwrap_or_default().trim_start();
            words.push(None);
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_read_wherever_they_stand() {
        let text = "\
{{- if .Values.never }}
apiVersion: batch/v1
kind: Job # one
{{- end }}
---
{{- if .Capabilities.APIVersions.Has \"policy/v1\" }}
apiVersion: policy/v1
{{- else }}
apiVersion: policy/v1beta1
{{- end }}
kind: \"PodDisruptionBudget\"
---
apiVersion: {{ include \"x.apiVersion\" . }}
kind: Ingress
spec:
  kind: NotThis
---
apiVersion: v1
kind: {{ .Values.kind }}
---
apiVersion: v1
kind: Pod
metadata:
  annotations:
    \"helm.sh/hook\": test
";
        let told = scan(text);
        let kind = |group: Option<&str>, kind: &str| (group.map(str::to_owned), kind.to_owned());
        assert_eq!(
            told.kinds,
            [
                kind(Some("batch"), "Job"),
                kind(Some("policy"), "PodDisruptionBudget"),
                kind(Some("policy"), "PodDisruptionBudget"),
                kind(None, "Ingress"),
            ]
        );
        assert_eq!(told.unknown, [(19, "a kind")]);
    }

    #[test]
    fn lookups_are_read_with_what_is_literal_of_them() {
        let table = [
            (
                "{{ lookup \"v1\" \"Secret\" .Release.Namespace \"a\" }}",
                vec![("v1", "Secret", true)],
            ),
            (
                "{{- $s := (lookup \"v1\" \"Secret\" (printf \"%s\" .ns) \"\").items }}",
                vec![("v1", "Secret", false)],
            ),
            (
                "{{ range (lookup \"apps/v1\" \"Deployment\" \"ns\" .name) }}",
                vec![("apps/v1", "Deployment", true)],
            ),
            ("{{ .Values.lookup }} {{ $lookup }} looked up", vec![]),
        ];
        for (line, expected) in table {
            let told = scan(line);
            let found: Vec<_> =
                told.lookups.iter().map(|(v, k, named)| (v.as_str(), k.as_str(), *named)).collect();
            assert_eq!((found, told.unknown.len()), (expected, 0), "{line}");
        }
        assert_eq!(scan("{{ lookup .v .k \"\" \"\" }}").unknown, [(1, "what a lookup is for")]);
    }
}
