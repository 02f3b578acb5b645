//! A real control plane, started in seconds: etcd, API server, controller-manager, scheduler, simulated nodes.
