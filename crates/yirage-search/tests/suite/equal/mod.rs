//! Evidence of equality: which pairs are accepted, which are refused and why, and what a certificate says.

mod accepted;
mod both_ways;
mod certificates;
mod laws;
mod mutants;
mod mutate;
mod refused;
mod sketch;
mod witness;
mod workloads;
