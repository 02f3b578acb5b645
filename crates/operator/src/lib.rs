//! The toolkit: manager, watches.yaml, the chart reconciler, the surface for native reconcilers.
