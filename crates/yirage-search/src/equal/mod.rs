//! Evidence that two graphs are equal: a test over finite fields, then one in floats, both pure and deterministic.
//!
//! Over a field equality is exact, so reordering and factoring change nothing and everything else does, with a
//! probability that [`Certificate::false_accept_log2`] bounds. In floats the candidate must be as good as the original
//! on inputs that are chosen to break bad rewrites. One evaluator serves both: what it computes with is a domain.
//!
//! Deliberately unknown here: how a candidate was found, what it costs, and on which device it will run.

mod axis;
mod both_ways;
mod certificate;
mod class;
mod degree;
mod demand;
mod domain;
mod error;
mod eval;
mod field_test;
mod float_test;
mod inputs;
mod map;
mod options;
mod pair;
mod prime;
mod program;
mod rational;
mod rounded;
mod running;
mod sampling;
mod words;

pub use both_ways::BothWays;
pub use certificate::{CHECKER_VERSION, Certificate, ClassEvidence, FieldEvidence};
pub use class::Class;
pub use error::{CertificateError, NotEqual};
pub use options::EqualityOptions;

use program::{EvalProgram, called_alike};
use sampling::OutputSampling;
use std::collections::HashMap;
use yirage_ir::rng::mix;
use yirage_ir::{Dims, Graph, verify};

/// Whether `candidate` may stand for `original`: they are called alike, are equal as functions, and the candidate is as
/// good in floats.
///
/// Inputs are matched by name, outputs by position, and their types are equal; where an input lies (its strides) may
/// differ. An input that the candidate does not read may be missing there. States are compared after the step, too.
///
/// Evidence is not symmetric: a candidate may round less than the original does, not more. [`BothWays`] is.
///
/// # Errors
/// Why there is no certificate. That a pair is refused does not say that it differs: see [`NotEqual`].
pub fn equivalent(original: &Graph, candidate: &Graph, options: &EqualityOptions) -> Result<Certificate, NotEqual> {
    for (which, graph) in [("original", original), ("candidate", candidate)] {
        verify(graph).map_err(|source| NotEqual::Graph { which, source })?;
    }
    called_alike(original, candidate)?;
    let sizes = compared_sizes(original, candidate, options)?;
    let names = Certificate::names(original, candidate);
    let mut certificate = Certificate {
        version: CHECKER_VERSION,
        original: names.0,
        candidate: names.1,
        seed: options.seed,
        sizes: sizes.clone(),
        fields: Vec::new(),
        classes: Vec::new(),
    };
    let programs = sizes.iter().map(|dims| programs(original, candidate, dims)).collect::<Result<Vec<_>, _>>()?;
    // Fields first, at all sizes: what differs is seen there at once.
    for ((a, b), (dims, n)) in programs.iter().zip(sizes.iter().zip(0u64..)) {
        let sampling = OutputSampling::within(a, b, options.work, "a trial over a field")?;
        let found = field_test::run(&sampling, mix(options.seed ^ n), options.trials.max(1), &described(dims))?;
        add_fields(&mut certificate.fields, found);
    }
    for ((a, b), (dims, n)) in programs.iter().zip(sizes.iter().zip(0u64..)) {
        let sampling = OutputSampling::within(a, b, options.work / FLOAT_SHARE, "a test in floats")?;
        for (at, &class) in Class::ALL.iter().enumerate() {
            let found = float_test::run(&sampling, class, mix(options.seed ^ n), &described(dims))?;
            match certificate.classes.get_mut(at) {
                None => certificate.classes.push(found),
                Some(known) => *known = float_test::joined(found, known),
            }
        }
    }
    Ok(certificate)
}

/// An operation on floats with their bounds takes longer than one of a field, and there are more classes than trials.
const FLOAT_SHARE: u64 = 16;

/// The sizes to compare at; graphs without symbols have one.
fn compared_sizes(a: &Graph, b: &Graph, options: &EqualityOptions) -> Result<Vec<Dims>, NotEqual> {
    let symbolic = |graph: &Graph| graph.values.iter().any(|v| !v.ty.is_fixed());
    if !symbolic(a) && !symbolic(b) {
        return Ok(vec![Dims::default()]);
    }
    if options.sizes.is_empty() {
        let why = "`EqualityOptions::sizes` is empty: give at least one value of each symbol".into();
        return Err(NotEqual::Unsupported { what: "graphs with symbols".into(), why });
    }
    Ok(options.sizes.clone())
}

fn programs(original: &Graph, candidate: &Graph, dims: &Dims) -> Result<(EvalProgram, EvalProgram), NotEqual> {
    let (a, mut b) = (EvalProgram::of(original, dims)?, EvalProgram::of(candidate, dims)?);
    // One input has one value in both: the original says which whole numbers are valid.
    let below: HashMap<&str, u32> = a.inputs.iter().map(|input| (input.name.as_str(), input.below)).collect();
    for input in &mut b.inputs {
        input.below = below.get(input.name.as_str()).copied().unwrap_or(input.below);
    }
    Ok((a, b))
}

fn described(dims: &Dims) -> String {
    if *dims == Dims::default() {
        return "sizes fixed".into();
    }
    format!("{} tokens, {} sequences, {} blocks, {} rows", dims.tokens, dims.seqs, dims.blocks, dims.rows)
}

fn add_fields(all: &mut Vec<FieldEvidence>, found: Vec<FieldEvidence>) {
    if all.is_empty() {
        *all = found;
        return;
    }
    for (known, found) in all.iter_mut().zip(found) {
        known.compared += found.compared;
        known.elements += found.elements;
        known.false_accept_log2 += found.false_accept_log2;
    }
}
