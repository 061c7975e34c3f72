//! Two programs over finite fields.

use super::certificate::FieldEvidence;
use super::degree::false_accept_log2;
use super::domain::{Data, Stop, Tensor};
use super::error::NotEqual;
use super::eval::evaluate;
use super::pair::{FIELDS, Pair, Pairs};
use super::program::{Kind, Program, is_whole};
use super::sampling::{Sampled, Sampling, index};
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
    sampling: &Sampling<'_>,
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

type Differs<'a> = &'a dyn Fn(usize, String, Vec<usize>) -> NotEqual;

/// One trial; how many elements were compared.
fn one(
    sampling: &Sampling<'_>,
    field: (u32, u32),
    key: u64,
    exponents: bool,
    differs: Differs<'_>,
) -> Result<u64, NotEqual> {
    for draw in 0..DRAWS {
        let seed = mix(key.wrapping_add(u64::from(draw) << 32));
        let sampled = sampling.draw(&mut Rng::new(seed));
        let (a, b) = match both(sampling, &sampled, Pairs::new(field, seed, exponents)) {
            Ok(values) => values,
            Err(Stop::Division) => continue,
            Err(Stop::Refused(why)) => return Err(why),
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

type Values = Vec<Tensor<Pair>>;

fn both(sampling: &Sampling<'_>, sampled: &Sampled, mut field: Pairs) -> Result<(Values, Values), Stop> {
    let a = evaluate(sampling.original, &sampled.original, &mut field)?;
    let b = evaluate(sampling.candidate, &sampled.candidate, &mut field)?;
    Ok((a, b))
}

/// The first element in which two outputs differ. Only first residues count: the second may be unknown.
fn first_difference(a: &Tensor<Pair>, b: &Tensor<Pair>) -> Option<usize> {
    match (&a.data, &b.data) {
        (Data::Numbers(a), Data::Numbers(b)) => a.iter().zip(b).position(|(a, b)| a.p != b.p),
        (Data::Whole(a), Data::Whole(b)) => a.iter().zip(b).position(|(a, b)| a != b),
        _ => Some(0),
    }
}

/// Whether whole numbers or bools are given.
fn decides(program: &Program) -> bool {
    let mut dtypes = program.inputs.iter().map(|input| program.values[input.value].dtype);
    dtypes.any(|dtype| is_whole(dtype) || dtype == DType::Bool)
}

/// Whether anything is an exponential.
fn has_exponents(program: &Program) -> bool {
    let exponential = |term: &Term| {
        let Term::Call(func, _) = term else { return false };
        matches!(func, Func::Exp | Func::Tanh | Func::Sigmoid | Func::Silu | Func::GeluTanh)
    };
    program.steps.iter().any(|step| match &step.kind {
        Kind::Map(expr) => expr.terms().iter().any(exponential),
        _ => false,
    })
}
