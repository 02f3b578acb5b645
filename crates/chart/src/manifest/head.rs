//! The few fields of a document that Helm itself looks at.

use std::collections::BTreeMap;

use catamaran_yaml::Numbers;

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
}
