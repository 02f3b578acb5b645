//! A chart: load, values, capabilities, render to manifests.
