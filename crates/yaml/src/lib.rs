//! YAML and JSON exactly as Helm reads and prints them.
