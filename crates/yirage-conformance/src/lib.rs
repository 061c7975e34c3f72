//! Conformance: every op and case on every backend, against the reference.
#![forbid(unsafe_code)]
