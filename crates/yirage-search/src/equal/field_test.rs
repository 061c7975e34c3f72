//! Two programs over finite fields.

use super::certificate::FieldEvidence;
use super::degree::false_accept_log2;
use super::domain::{EvalStop, SampledTensor, TensorElements};
use super::error::NotEqual;
use super::eval::evaluate;
use super::pair::{FIELDS, ResidueDomain, ResiduePair};
use super::program::{EvalOp, EvalProgram, is_whole};
use super::sampling::{OutputSample, OutputSampling, index};
use yirage_ir::DType;
use yirage_ir::expr::{Func, Term};
use yirage_ir::rng::{Rng, mix};

/// Inputs that are drawn before a division by zero is taken for one of all inputs.
const DRAWS: u32 = 8;

/// As many times as many trials are made where whole numbers or bools are given: what they decide takes few values, so
/// a difference shows in some of them alone.
const DECIDING: u32 = 4;

/// Trials over each field; the evidence of each.
pub(super) fn run(
    sampling: &OutputSampling<'_>,
    seed: u64,
    trials: u32,
    sizes: &str,
) -> Result<Vec<FieldEvidence>, NotEqual> {
    let trials = if decides(sampling.original) { trials.saturating_mul(DECIDING) } else { trials };
    let exponents = has_exponents(sampling.original) || has_exponents(sampling.candidate);
    let mut all = Vec::with_capacity(FIELDS.len());
    for field in FIELDS {
        let mut compared = 0;
        for trial in 0..trials {
            let key = mix(seed ^ mix(u64::from(field.0)) ^ u64::from(trial));
            compared += one(sampling, field, key, exponents, &|output, name, index| NotEqual::Field {
                output,
                name,
                index,
                p: field.0,
                trial,
                sizes: sizes.into(),
            })?;
        }
        let log2 = false_accept_log2(sampling.original, sampling.candidate, field.1);
        all.push(FieldEvidence {
            p: field.0,
            q: field.1,
            trials,
            compared,
            elements: sampling.elements() * u64::from(trials),
            false_accept_log2: log2 * f64::from(trials),
        });
    }
    Ok(all)
}

type MismatchFn<'a> = &'a dyn Fn(usize, String, Vec<usize>) -> NotEqual;

/// One trial; how many elements were compared.
fn one(
    sampling: &OutputSampling<'_>,
    field: (u32, u32),
    key: u64,
    exponents: bool,
    differs: MismatchFn<'_>,
) -> Result<u64, NotEqual> {
    for draw in 0..DRAWS {
        let seed = mix(key.wrapping_add(u64::from(draw) << 32));
        let sampled = sampling.draw(&mut Rng::new(seed));
        let (a, b) = match both(sampling, &sampled, ResidueDomain::new(field, seed, exponents)) {
            Ok(values) => values,
            Err(EvalStop::Division) => continue,
            Err(EvalStop::Refused(why)) => return Err(why),
        };
        for (output, (a, b)) in a.iter().zip(&b).enumerate() {
            if let Some(at) = first_difference(a, b) {
                let name = sampling.original.outputs[output].name.clone();
                return Err(differs(output, name, index(&a.axes, at)));
            }
        }
        return Ok(sampled.compared);
    }
    let why = format!("it divides by zero for each of {DRAWS} random inputs, so it has no value");
    Err(NotEqual::Unsupported { what: "a quotient".into(), why })
}

type FieldOutputs = Vec<SampledTensor<ResiduePair>>;

fn both(
    sampling: &OutputSampling<'_>,
    sampled: &OutputSample,
    mut field: ResidueDomain,
) -> Result<(FieldOutputs, FieldOutputs), EvalStop> {
    let a = evaluate(sampling.original, &sampled.original, &mut field)?;
    let b = evaluate(sampling.candidate, &sampled.candidate, &mut field)?;
    Ok((a, b))
}

/// The first element in which two outputs differ. Only first residues count: the second may be unknown.
fn first_difference(a: &SampledTensor<ResiduePair>, b: &SampledTensor<ResiduePair>) -> Option<usize> {
    match (&a.data, &b.data) {
        (TensorElements::Numbers(a), TensorElements::Numbers(b)) => a.iter().zip(b).position(|(a, b)| a.p != b.p),
        (TensorElements::Whole(a), TensorElements::Whole(b)) => a.iter().zip(b).position(|(a, b)| a != b),
        _ => Some(0),
    }
}

/// Whether whole numbers or bools are given.
fn decides(program: &EvalProgram) -> bool {
    let mut dtypes = program.inputs.iter().map(|input| program.values[input.value].dtype);
    dtypes.any(|dtype| is_whole(dtype) || dtype == DType::Bool)
}

/// Whether anything is an exponential.
fn has_exponents(program: &EvalProgram) -> bool {
    let exponential = |term: &Term| {
        let Term::Call(func, _) = term else { return false };
        matches!(func, Func::Exp | Func::Tanh | Func::Sigmoid | Func::Silu | Func::GeluTanh)
    };
    program.steps.iter().any(|step| match &step.kind {
        EvalOp::Map(expr) => expr.terms().iter().any(exponential),
        _ => false,
    })
}
