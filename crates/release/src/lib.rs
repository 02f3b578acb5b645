//! A release: record, storage, plan, drive, history.
