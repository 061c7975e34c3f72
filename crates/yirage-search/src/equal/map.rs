//! Expressions over runs of elements, term by term.

use super::domain::{Domain, EvalStop, TensorElements};
use super::program::is_whole;
use yirage_ir::expr::{Func, Scalar, Term};
use yirage_ir::rng::mix;
use yirage_ir::{DType, Expr};

/// Elements computed at once: what lies between terms stays in the cache.
const STRIP: usize = 512;

/// The value of `expr` for each of `n` elements; every input has `n`, of type `dtypes`.
pub(super) fn map<D: Domain>(
    domain: &mut D,
    expr: &Expr,
    dtypes: &[DType],
    ins: &[&TensorElements<D::Num>],
    n: usize,
) -> Result<TensorElements<D::Num>, EvalStop> {
    // A sound graph's expressions fit their inputs, so that nothing is left out here.
    let types = expr.infer(dtypes).unwrap_or_default();
    let mut out = match types.last() {
        Some(&dtype) if is_whole(dtype) => TensorElements::Whole(Vec::with_capacity(n)),
        _ => TensorElements::Numbers(Vec::with_capacity(n)),
    };
    for first in (0..n).step_by(STRIP) {
        let strip = first..n.min(first + STRIP);
        let mut terms: Vec<TensorElements<D::Num>> = Vec::with_capacity(types.len());
        for (term, &dtype) in expr.terms().iter().zip(&types) {
            let value = match term {
                Term::Input(i) => part(ins[*i as usize], strip.clone()),
                Term::Const(value) => constant(domain, *value, strip.len()),
                Term::Cast(to, x) => cast(domain, &terms[*x as usize], types[*x as usize], *to),
                Term::Call(func, args) => {
                    let args: Vec<usize> = args[..func.arity()].iter().map(|&a| a as usize).collect();
                    call(domain, *func, &args, &terms, &types, dtype)?
                }
            };
            terms.push(value);
        }
        match (&mut out, terms.pop()) {
            (TensorElements::Numbers(out), Some(TensorElements::Numbers(x))) => out.extend(x),
            (TensorElements::Whole(out), Some(TensorElements::Whole(x))) => out.extend(x),
            _ => {}
        }
    }
    Ok(out)
}

fn part<N: Copy>(x: &TensorElements<N>, strip: std::ops::Range<usize>) -> TensorElements<N> {
    match x {
        TensorElements::Numbers(x) => TensorElements::Numbers(x[strip].to_vec()),
        TensorElements::Whole(x) => TensorElements::Whole(x[strip].to_vec()),
    }
}

/// A constant, `n` times.
pub(super) fn constant<D: Domain>(domain: &mut D, value: Scalar, n: usize) -> TensorElements<D::Num> {
    match value {
        Scalar::F32(x) => TensorElements::Numbers(vec![domain.constant(x.0); n]),
        Scalar::Bool(x) => TensorElements::Numbers(vec![domain.whole(i64::from(x)); n]),
        Scalar::I32(x) => TensorElements::Whole(vec![i64::from(x); n]),
        Scalar::U32(x) => TensorElements::Whole(vec![i64::from(x); n]),
    }
}

fn cast<D: Domain>(domain: &mut D, x: &TensorElements<D::Num>, from: DType, to: DType) -> TensorElements<D::Num> {
    match x {
        TensorElements::Numbers(x) if is_whole(to) => {
            TensorElements::Whole(x.iter().map(|&x| domain.cut_off(x, to)).collect())
        }
        TensorElements::Numbers(x) if from == to => TensorElements::Numbers(x.clone()),
        TensorElements::Numbers(x) if to == DType::Bool => {
            // A float is true where it is not 0; no number is unordered here that was ordered before.
            let zero = domain.whole(0);
            let truth = |&x: &D::Num| domain.call(Func::NotEqual, &[x, zero]).unwrap_or(x);
            TensorElements::Numbers(x.iter().map(truth).collect())
        }
        TensorElements::Numbers(x) => TensorElements::Numbers(x.iter().map(|&x| domain.cast(x, to)).collect()),
        TensorElements::Whole(x) if is_whole(to) => TensorElements::Whole(x.iter().map(|&x| wrapped(x, to)).collect()),
        TensorElements::Whole(x) if to == DType::Bool => {
            TensorElements::Numbers(x.iter().map(|&x| domain.whole(i64::from(x != 0))).collect())
        }
        TensorElements::Whole(x) => {
            let float = |&x: &i64| {
                let x = domain.whole(x);
                domain.cast(x, to)
            };
            TensorElements::Numbers(x.iter().map(float).collect())
        }
    }
}

/// The low 32 bits of a whole number, as one of type `to`.
pub(super) fn wrapped(x: i64, to: DType) -> i64 {
    if to == DType::I32 { i64::from(x as i32) } else { i64::from(x as u32) }
}

fn scalar(x: i64, dtype: DType) -> Scalar {
    if dtype == DType::I32 { Scalar::from(x as i32) } else { Scalar::from(x as u32) }
}

fn call<D: Domain>(
    domain: &mut D,
    func: Func,
    args: &[usize],
    terms: &[TensorElements<D::Num>],
    types: &[DType],
    dtype: DType,
) -> Result<TensorElements<D::Num>, EvalStop> {
    let n = match &terms[args[0]] {
        TensorElements::Numbers(x) => x.len(),
        TensorElements::Whole(x) => x.len(),
    };
    if func == Func::Select && is_whole(dtype) {
        return Ok(TensorElements::Whole((0..n).map(|i| chosen(domain, args, terms, dtype, i)).collect()));
    }
    if is_whole(types[args[0]]) {
        // What functions of whole numbers are is said where expressions are evaluated.
        let function = Expr::call(func, &(0..args.len() as u32).map(Expr::input).collect::<Vec<_>>());
        let element = |i: usize| {
            let x: Vec<Scalar> = args.iter().map(|&a| scalar(whole(&terms[a], i), types[a])).collect();
            function.eval(&x).as_f64() as i64
        };
        let values: Vec<i64> = (0..n).map(element).collect();
        return Ok(if is_whole(dtype) {
            TensorElements::Whole(values)
        } else {
            TensorElements::Numbers(values.into_iter().map(|x| domain.whole(x)).collect())
        });
    }
    let columns: Vec<&[D::Num]> = args.iter().filter_map(|&a| numbers(&terms[a])).collect();
    let values: Result<Vec<D::Num>, EvalStop> = match columns[..] {
        [x] => x.iter().map(|&x| domain.call(func, &[x])).collect(),
        [x, y] => x.iter().zip(y).map(|(&x, &y)| domain.call(func, &[x, y])).collect(),
        [x, y, z] => x.iter().zip(y).zip(z).map(|((&x, &y), &z)| domain.call(func, &[x, y, z])).collect(),
        _ => Ok(Vec::new()),
    };
    Ok(TensorElements::Numbers(values?))
}

fn numbers<N>(x: &TensorElements<N>) -> Option<&[N]> {
    match x {
        TensorElements::Numbers(x) => Some(x),
        TensorElements::Whole(_) => None,
    }
}

fn whole<N>(x: &TensorElements<N>, i: usize) -> i64 {
    match x {
        TensorElements::Whole(x) => x[i],
        TensorElements::Numbers(_) => 0,
    }
}

/// One of two whole numbers; another number, which follows from all three, where it is not known which.
fn chosen<D: Domain>(domain: &D, args: &[usize], terms: &[TensorElements<D::Num>], dtype: DType, i: usize) -> i64 {
    let (yes, no) = (whole(&terms[args[1]], i), whole(&terms[args[2]], i));
    let Some(which) = numbers(&terms[args[0]]).map(|x| x[i]) else { return no };
    match domain.truth(which) {
        Some(true) => yes,
        Some(false) => no,
        None if yes == no => yes,
        None => wrapped(mix(domain.digest(which) ^ mix(yes as u64) ^ mix(no as u64).rotate_left(1)) as i64, dtype),
    }
}
