//! The few fields of a document that Helm itself looks at.

use std::collections::BTreeMap;

use catamaran_yaml::{Numbers, Outlined, outline};

use crate::gojson::{self, Fields};
use crate::{ManifestError, Profile};

/// What Helm reads of a document before it decides what to do with it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// `apps/v1`
    pub api_version: String,
    /// `Deployment`
    pub kind: String,
    /// metadata.name
    pub name: String,
    /// metadata.annotations; numbers and booleans turned into text, as Helm does.
    pub annotations: BTreeMap<String, String>,
}

const METADATA_TYPE: &str = r#"struct { Name string "json:\"name\""; Annotations map[string]string "json:\"annotations\"" }"#;

impl Head {
    /// Reads the head of a document; the whole document must be YAML.
    ///
    /// # Errors
    ///
    /// The document is no YAML, or one of the fields is of the wrong type.
    pub fn parse(file: &str, document: &str, profile: Profile) -> Result<Self, ManifestError> {
        match Self::of_plain(document) {
            Some(head) => Ok(head),
            None => Self::of_any(file, document, profile),
        }
    }

    /// As [`Head::parse`] of a document that is not plain.
    pub(super) fn of_any(
        file: &str,
        document: &str,
        profile: Profile,
    ) -> Result<Self, ManifestError> {
        Self::read(document, profile).map_err(|message| super::fault(file, document, message))
    }

    fn read(document: &str, profile: Profile) -> Result<Self, String> {
        let go_type = match profile {
            Profile::Helm318 => "releaseutil.SimpleHead",
            Profile::Helm43 => "util.SimpleHead",
        };
        let value = gojson::parse(document.as_bytes(), Numbers::Exact)?;
        let object = gojson::object(value, go_type)?;
        let fields = Fields::new(&object, "SimpleHead", "");
        let mut head = Self {
            api_version: fields.text("apiVersion")?.unwrap_or_default(),
            kind: fields.text("kind")?.unwrap_or_default(),
            ..Self::default()
        };
        if let Some(metadata) = fields.object("metadata", METADATA_TYPE)? {
            let fields = Fields::new(metadata, "", "metadata.");
            head.name = fields.text("name")?.unwrap_or_default();
            head.annotations = fields.text_map("annotations")?.unwrap_or_default();
        }
        Ok(head)
    }

    /// The head of a document of the plainest make, without reading the rest of it. `None` for all
    /// others, and wherever something is unusual about the fields.
    pub(super) fn of_plain(document: &str) -> Option<Self> {
        let mut head = Self::default();
        let mut unusual = false;
        let mut seen = [false; 5];
        outline(document, |path, value| {
            unusual |= head.take(path, value, &mut seen).is_none();
            matches!(path, ["metadata"] | ["metadata", "annotations"])
        })?;
        (!unusual).then_some(head)
    }

    /// Takes one entry; `None` if it is not the plain case.
    fn take(&mut self, path: &[&str], value: Outlined<'_>, seen: &mut [bool; 5]) -> Option<()> {
        const FIELDS: [&[&str]; 5] = [
            &["apiVersion"],
            &["kind"],
            &["metadata"],
            &["metadata", "name"],
            &["metadata", "annotations"],
        ];
        if let ["metadata", "annotations", key] = path {
            let Outlined::Text(text) = value else { return None };
            // Short keys may be booleans, which are spelled anew.
            (key.len() > "false".len()).then_some(())?;
            self.annotations.insert((*key).to_owned(), text.to_owned());
            return Some(());
        }
        let is = |field: &&[&str]| {
            field.len() == path.len()
                && field.iter().zip(path).all(|(a, b)| a.eq_ignore_ascii_case(b))
        };
        let Some(field) = FIELDS.iter().position(is) else { return Some(()) };
        (FIELDS.get(field).copied() == Some(path)).then_some(())?;
        if value != Outlined::Mapping {
            // Of two equal keys the last one counts.
            let twice = std::mem::replace(seen.get_mut(field)?, true);
            (!twice).then_some(())?;
        }
        let into = match field {
            0 => &mut self.api_version,
            1 => &mut self.kind,
            3 => &mut self.name,
            _ => {
                let is_mapping =
                    matches!(value, Outlined::Open | Outlined::Mapping | Outlined::Empty);
                return is_mapping.then_some(());
            }
        };
        let Outlined::Text(text) = value else { return None };
        text.clone_into(into);
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the scan makes of a document is what the parser makes of it.
    fn same(document: &str) -> bool {
        let Some(head) = Head::of_plain(document) else { return false };
        assert_eq!(Ok(head), Head::read(document, Profile::Helm43), "{document}");
        true
    }

    #[test]
    fn plain_documents_are_headed_by_a_scan() {
        let plain = [
            "",
            "# nothing\n\n",
            "kind: A",
            "apiVersion: v1\nkind: \"B\"\nmetadata:\n  name: 'x' # y\n  annotations: {}\n",
            "kind: A\nmetadata:\n  annotations:\n    example.com/c: d\n    number: \"1\"\n  name: z\n",
            "metadata:\n# c\nspec:\n- a\n- b: c\n  d:\n  - e\nkind: A\n",
            "a: |\n  x: y\n\n   z\nkind: A\nb: >-\n\n  t\n- k\n".trim_end_matches("- k\n"),
            "a:\n  - - b\n    - c: [x, \"y\", 1]\n      e: {f: g}\nkind: A\n",
            "a: http://x:80/#y\nb: -1\nc: 2024-01-01\nd: a - b\nkind: A\n",
            "kind: A\nmetadata:\n  annotations:\n    {}\n  name: x\nspec:\n  - a:\n      [b, c]\n  - d\n",
            "a: |\n\ttab\n".trim_end_matches("\ttab\n"),
        ];
        for document in plain {
            assert!(same(document), "{document}");
        }
    }

    #[test]
    fn what_is_not_plain_is_read() {
        let others = [
            "kind: 1\n",
            "kind: A\nkind: B\n",
            "Kind: A\n",
            "a: &b 1\nkind: A\n",
            "a: b\n  c: d\n",
            "a: b\n c\n",
            "a: .inf\n",
            "null: a\n",
            "a:\n  b\n",
            "- a\n",
            "a: 'b\n  c'\n",
            "a: b: c\n",
            "a:\n  b: c\n d: e\n",
            "a: |\n   x\n  y\n",
            "a: |\n  \tx\nkind: A\n",
            "metadata:\n- a\n",
            "metadata:\n  annotations:\n    abcdef: 1\n",
            "a: [b\n",
            "a:\n  {}\n  b: c\n",
            "a:\n  {}: b\n",
            "metadata:\n  {}\n  - b\n",
            "kind:\n  {}\n",
            "a:\tb\n",
            "a: {b: c}: d\n",
            "a: 1\n---\nb: 2\n",
            " a: 1\nb: 2\n",
            "a: 1\r\n",
        ];
        for document in others {
            assert!(!same(document), "{document}");
        }
    }

    /// All short texts of pieces that matter to YAML.
    #[test]
    fn no_text_is_taken_for_plain_and_read_otherwise() {
        const PIECES: &[&str] = &[
            "kind: A",
            "metadata:",
            "name: x",
            "- ",
            "-",
            "a",
            ": ",
            ":",
            " ",
            "\n",
            "\n  ",
            "|",
            "\"q\"",
            "'r'",
            "# c",
            "[b, c]",
            "{}",
            "\n {}",
            "x y",
        ];
        let mut plain = 0;
        for length in 1..=4_u32 {
            for number in 0..PIECES.len().pow(length) {
                let mut rest = number;
                let mut text = String::new();
                for _ in 0..length {
                    text.push_str(PIECES[rest % PIECES.len()]);
                    rest /= PIECES.len();
                }
                plain += usize::from(same(&text));
            }
        }
        assert!(plain > 1000, "{plain}");
    }
}
