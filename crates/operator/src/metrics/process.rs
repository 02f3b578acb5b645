//! The process itself, as Prometheus' own clients tell of it; from /proc, and nothing where there is
//! none.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;

#[derive(Debug)]
pub(super) struct Process;

impl Collector for Process {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let Ok(status) = std::fs::read_to_string("/proc/self/status") else { return Ok(()) };
        let kibibytes = |field: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(field))?;
            line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()
        };
        let memory = [
            ("process_resident_memory_bytes", "Memory in use", "VmRSS:"),
            ("process_resident_memory_max_bytes", "The most memory that was in use", "VmHWM:"),
        ];
        for (name, help, field) in memory {
            if let Some(value) = kibibytes(field) {
                let gauge = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
                ConstGauge::new(value.saturating_mul(1024)).encode(gauge)?;
            }
        }
        let Ok(files) = std::fs::read_dir("/proc/self/fd") else { return Ok(()) };
        let help = "Files and connections that are open";
        let gauge = encoder.encode_descriptor("process_open_fds", help, None, MetricType::Gauge)?;
        ConstGauge::new(files.count()).encode(gauge)
    }
}
