//! The operator that a user edits.
fn main() {}
