//! The reader of packaged charts: any bytes, as they are and in gzip.
#![no_main]

use std::time::Duration;

use catamaran_chart::Chart;
use catamaran_fuzz::archive::{check, pack};
use catamaran_fuzz::limits::{Limits, within};
use libfuzzer_sys::fuzz_target;

// A megabyte of gzip is a gigabyte of zeros, of which 100 MiB are read.
const LIMITS: Limits = Limits { time: Duration::from_secs(3), bytes: 256 << 20 };

fuzz_target!(|data: &[u8]| {
    for archive in [data, &pack(data)] {
        let chart = within(LIMITS, || Chart::load_archive(archive));
        let again = Chart::load_archive(archive);
        assert_eq!(
            chart.as_ref().map_err(ToString::to_string),
            again.as_ref().map_err(ToString::to_string),
            "the same bytes are the same chart"
        );
        if let Ok(chart) = chart {
            check(&chart);
        }
    }
});
