//! Two programs in floats, on structured inputs: whether the candidate is as good as the original.
//!
//! The original is evaluated exactly (in f64), with a bound of what rounding in its own types may do; the candidate as
//! its ops' references round it. It may be eight times as far from the exact value as the original's bound, and may
//! lose half of the digits of its type, measured by the largest element of the row: a rewrite such as `x (y - z)` to
//! `x y - x z` loses the digits in which `y` and `z` agree, which for unrelated inputs are few. What cancels all digits
//! where the original does not, as a variance from `E[x^2] - E[x]^2`, is refused.

use super::certificate::ClassEvidence;
use super::class::Class;
use super::domain::{EvalStop, SampledTensor, TensorElements};
use super::error::NotEqual;
use super::eval::evaluate;
use super::rounded::Rounded;
use super::running::{BoundedFloat, RunningErrors, unit};
use super::sampling::{OutputSampling, index};
use yirage_ir::DType;
use yirage_ir::rng::{Rng, mix};

/// How many times as far as the original's own rounding the candidate may be.
const SLACK: f64 = 8.0;

/// Both programs on one class of inputs.
pub(super) fn run(
    sampling: &OutputSampling<'_>,
    class: Class,
    seed: u64,
    sizes: &str,
) -> Result<ClassEvidence, NotEqual> {
    let seed = mix(seed ^ (class as u64 + 1) << 40);
    let sampled = sampling.draw(&mut Rng::new(seed));
    let refused = |stop| match stop {
        EvalStop::Refused(why) => why,
        EvalStop::Division => NotEqual::Unsupported { what: "a quotient".into(), why: "floats divide by zero".into() },
    };
    let exact = evaluate(sampling.original, &sampled.original, &mut RunningErrors { class, seed }).map_err(refused)?;
    let rounded = evaluate(sampling.candidate, &sampled.candidate, &mut Rounded { class, seed }).map_err(refused)?;
    let mut evidence = ClassEvidence { class, judged: 0, open: 0, error: 0.0, bound: 0.0 };
    for (output, (a, b)) in exact.iter().zip(&rounded).enumerate() {
        let known = &sampling.original.outputs[output];
        let dtype = sampling.original.values[known.value].dtype;
        judge(a, b, dtype, &mut evidence).map_err(|wrong| NotEqual::Floating {
            output,
            name: known.name.clone(),
            index: index(&a.axes, wrong.at),
            class,
            a: wrong.a,
            b: wrong.b,
            bound: wrong.bound,
            sizes: sizes.into(),
        })?;
    }
    Ok(evidence)
}

/// An element that is too far away.
struct Wrong {
    at: usize,
    a: f64,
    b: f64,
    bound: f64,
}

fn judge(
    a: &SampledTensor<BoundedFloat>,
    b: &SampledTensor<f64>,
    dtype: DType,
    evidence: &mut ClassEvidence,
) -> Result<(), Wrong> {
    // Whole numbers do not round; the fields compare them.
    let (TensorElements::Numbers(exact), TensorElements::Numbers(rounded)) = (&a.data, &b.data) else { return Ok(()) };
    let width = row_width(a);
    for (row, (exact, rounded)) in exact.chunks(width).zip(rounded.chunks(width)).enumerate() {
        let finite = exact.iter().map(|x| x.value.abs()).filter(|x| x.is_finite());
        let digits = unit(dtype).sqrt() * finite.fold(0.0, f64::max);
        for (column, (&a, &b)) in exact.iter().zip(rounded).enumerate() {
            let at = row * width + column;
            if !a.value.is_finite() {
                // Random inputs make no infinity by chance: both are outside of what the function is defined for.
                if evidence.class == Class::Ordinary && a.within == 0.0 && b.is_finite() {
                    return Err(Wrong { at, a: a.value, b, bound: 0.0 });
                }
                evidence.open += 1;
                continue;
            }
            let bound = SLACK * a.within + digits + f64::from(f32::MIN_POSITIVE);
            if bound.is_infinite() {
                evidence.open += 1;
                continue;
            }
            let error = (b - a.value).abs();
            if error.is_nan() || error > bound {
                return Err(Wrong { at, a: a.value, b, bound });
            }
            evidence.judged += 1;
            if evidence.bound == 0.0 || error * evidence.bound > evidence.error * bound {
                (evidence.error, evidence.bound) = (error, bound);
            }
        }
    }
    Ok(())
}

/// Elements that are measured by the largest of them: the fewest innermost dimensions with at least four. Less would be
/// single sums, which cancel by chance.
fn row_width<N>(x: &SampledTensor<N>) -> usize {
    let mut width = 1;
    for axis in x.axes.iter().rev() {
        if width >= 4 {
            break;
        }
        width *= axis.len().max(1);
    }
    width
}

/// What two sizes of symbols have shown of one class.
pub(super) fn joined(a: ClassEvidence, b: &ClassEvidence) -> ClassEvidence {
    let worse = a.bound == 0.0 || b.error * a.bound > a.error * b.bound;
    let (error, bound) = if worse { (b.error, b.bound) } else { (a.error, a.bound) };
    ClassEvidence { judged: a.judged + b.judged, open: a.open + b.open, error, bound, ..a }
}
