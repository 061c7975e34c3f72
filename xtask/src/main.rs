//! Project chores: tidy checks, generated documents.
fn main() {}
