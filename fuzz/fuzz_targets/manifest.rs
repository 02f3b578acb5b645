//! Rendered files taken apart into documents, and those into manifests and hooks.
#![no_main]

use std::collections::BTreeMap;
use std::time::Duration;

use catamaran_chart::{Profile, Rendered, manifest::split};
use catamaran_fuzz::limits::{Limits, within};
use libfuzzer_sys::fuzz_target;

const LIMITS: Limits = Limits { time: Duration::from_secs(1), bytes: 64 << 20 };

fuzz_target!(|text: &str| {
    for profile in [Profile::Helm43, Profile::Helm318] {
        let documents = within(LIMITS, || split(text, profile));
        let mut rest = text;
        for document in &documents {
            assert!(
                !document.trim().is_empty() || profile == Profile::Helm318,
                "no document is empty"
            );
            let at = rest.find(document);
            assert!(at.is_some(), "documents are parts of the text, in its order");
            rest = &rest[at.unwrap_or_default() + document.len()..];
        }
        let files = BTreeMap::from([
            ("c/templates/a.yaml".to_owned(), text.to_owned()),
            ("c/templates/b.yaml".to_owned(), "kind: A\nmetadata: {name: b}\n".to_owned()),
        ]);
        let rendered = within(LIMITS, || Rendered::from_files(&files, profile));
        let again = Rendered::from_files(&files, profile);
        let shown = |rendered: &Result<Rendered, _>| match rendered {
            Ok(rendered) => Ok((rendered.template_text(), rendered.warnings.clone())),
            Err(error) => Err(format!("{error}")),
        };
        assert_eq!(shown(&rendered), shown(&again), "the same files are the same manifests");
        if let Ok(rendered) = rendered {
            let parts = rendered.manifests.len() + rendered.hooks.len() + rendered.warnings.len();
            assert_eq!(parts, documents.len() + 1, "no document is lost");
            for event in ["pre-install", "post-delete", "test"] {
                let hooks = rendered.hooks_of(event);
                assert!(hooks.is_sorted_by_key(|hook| hook.weight), "hooks come by weight");
            }
        }
    }
});
