//! Evidence of equality: which pairs are accepted, which are refused and why, and what a certificate says.
#![allow(clippy::unwrap_used)] // a test may stop at anything unexpected

mod accepted;
mod both_ways;
mod certificates;
mod laws;
mod mutants;
mod mutate;
mod refused;
mod sketch;
#[path = "../support/mod.rs"]
mod support;
mod witness;
mod workloads;
