//! A whole chart, from its files to manifests. The input is files one after the other, each behind
//! a line `=== name`.
#![no_main]

use std::time::Duration;

use catamaran_chart::{Chart, Profile, coalesce};
use catamaran_fuzz::archive::{check, pack};
use catamaran_fuzz::limits::{Limits, within};
use catamaran_fuzz::rendering::{BUDGET, default_values, render_repeatedly};
use libfuzzer_sys::{Corpus, fuzz_target};
use serde_json::Map;

const LIMITS: Limits = Limits { time: Duration::from_secs(2), bytes: 128 << 20 };

fn archive_of(text: &str) -> Vec<u8> {
    let mut archive = tar::Builder::new(Vec::new());
    for file in text.split("=== ").skip(1) {
        let (name, data) = file.split_once('\n').unwrap_or((file, ""));
        let mut header = tar::Header::new_gnu();
        header.set_size(data.len() as u64);
        // A name that does not fit is left out.
        let _ = archive.append_data(&mut header, format!("c/{name}"), data.as_bytes());
    }
    pack(&archive.into_inner().unwrap_or_default())
}

fuzz_target!(|text: &str| -> Corpus {
    let archive = archive_of(text);
    let Ok(chart) = within(LIMITS, || Chart::load_archive(&archive)) else { return Corpus::Keep };
    check(&chart);
    for profile in [Profile::Helm43, Profile::Helm318] {
        for values in [Map::new(), default_values()] {
            let merged = within(LIMITS, || coalesce(&chart, &values, profile));
            assert_eq!(
                merged.ok(),
                coalesce(&chart, &values, profile).ok(),
                "values merge the same"
            );
            let _ = render_repeatedly(&chart, &values, profile, BUDGET);
        }
    }
    Corpus::Keep
});
