//! The reader of packaged charts: archives with odd headers, lies about sizes, several members.
#![no_main]

use std::time::Duration;

use catamaran_chart::Chart;
use catamaran_fuzz::archive::{Odd, check};
use catamaran_fuzz::limits::{Limits, within};
use libfuzzer_sys::fuzz_target;

const LIMITS: Limits = Limits { time: Duration::from_secs(1), bytes: 64 << 20 };

fuzz_target!(|odd: Odd| {
    let chart = within(LIMITS, || Chart::load_archive(&odd.0));
    let again = Chart::load_archive(&odd.0);
    assert_eq!(
        chart.as_ref().map_err(ToString::to_string),
        again.as_ref().map_err(ToString::to_string),
        "the same bytes are the same chart"
    );
    if let Ok(chart) = chart {
        check(&chart);
    }
});
