//! Expressions over runs of elements, term by term.

use super::domain::{Data, Domain, Stop};
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
    ins: &[&Data<D::Num>],
    n: usize,
) -> Result<Data<D::Num>, Stop> {
    // A sound graph's expressions fit their inputs, so that nothing is left out here.
    let types = expr.infer(dtypes).unwrap_or_default();
    let mut out = match types.last() {
        Some(&dtype) if is_whole(dtype) => Data::Whole(Vec::with_capacity(n)),
        _ => Data::Numbers(Vec::with_capacity(n)),
    };
    for first in (0..n).step_by(STRIP) {
        let strip = first..n.min(first + STRIP);
        let mut terms: Vec<Data<D::Num>> = Vec::with_capacity(types.len());
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
            (Data::Numbers(out), Some(Data::Numbers(x))) => out.extend(x),
            (Data::Whole(out), Some(Data::Whole(x))) => out.extend(x),
            _ => {}
        }
    }
    Ok(out)
}

fn part<N: Copy>(x: &Data<N>, strip: std::ops::Range<usize>) -> Data<N> {
    match x {
        Data::Numbers(x) => Data::Numbers(x[strip].to_vec()),
        Data::Whole(x) => Data::Whole(x[strip].to_vec()),
    }
}

/// A constant, `n` times.
pub(super) fn constant<D: Domain>(domain: &mut D, value: Scalar, n: usize) -> Data<D::Num> {
    match value {
        Scalar::F32(x) => Data::Numbers(vec![domain.constant(x.0); n]),
        Scalar::Bool(x) => Data::Numbers(vec![domain.whole(i64::from(x)); n]),
        Scalar::I32(x) => Data::Whole(vec![i64::from(x); n]),
        Scalar::U32(x) => Data::Whole(vec![i64::from(x); n]),
    }
}

fn cast<D: Domain>(domain: &mut D, x: &Data<D::Num>, from: DType, to: DType) -> Data<D::Num> {
    match x {
        Data::Numbers(x) if is_whole(to) => Data::Whole(x.iter().map(|&x| domain.cut_off(x, to)).collect()),
        Data::Numbers(x) if from == to => Data::Numbers(x.clone()),
        Data::Numbers(x) if to == DType::Bool => {
            // A float is true where it is not 0; no number is unordered here that was ordered before.
            let zero = domain.whole(0);
            let truth = |&x: &D::Num| domain.call(Func::NotEqual, &[x, zero]).unwrap_or(x);
            Data::Numbers(x.iter().map(truth).collect())
        }
        Data::Numbers(x) => Data::Numbers(x.iter().map(|&x| domain.cast(x, to)).collect()),
        Data::Whole(x) if is_whole(to) => Data::Whole(x.iter().map(|&x| wrapped(x, to)).collect()),
        Data::Whole(x) if to == DType::Bool => {
            Data::Numbers(x.iter().map(|&x| domain.whole(i64::from(x != 0))).collect())
        }
        Data::Whole(x) => {
            let float = |&x: &i64| {
                let x = domain.whole(x);
                domain.cast(x, to)
            };
            Data::Numbers(x.iter().map(float).collect())
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
    terms: &[Data<D::Num>],
    types: &[DType],
    dtype: DType,
) -> Result<Data<D::Num>, Stop> {
    let n = match &terms[args[0]] {
        Data::Numbers(x) => x.len(),
        Data::Whole(x) => x.len(),
    };
    if func == Func::Select && is_whole(dtype) {
        return Ok(Data::Whole((0..n).map(|i| chosen(domain, args, terms, dtype, i)).collect()));
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
            Data::Whole(values)
        } else {
            Data::Numbers(values.into_iter().map(|x| domain.whole(x)).collect())
        });
    }
    let columns: Vec<&[D::Num]> = args.iter().filter_map(|&a| numbers(&terms[a])).collect();
    let values: Result<Vec<D::Num>, Stop> = match columns[..] {
        [x] => x.iter().map(|&x| domain.call(func, &[x])).collect(),
        [x, y] => x.iter().zip(y).map(|(&x, &y)| domain.call(func, &[x, y])).collect(),
        [x, y, z] => x.iter().zip(y).zip(z).map(|((&x, &y), &z)| domain.call(func, &[x, y, z])).collect(),
        _ => Ok(Vec::new()),
    };
    Ok(Data::Numbers(values?))
}

fn numbers<N>(x: &Data<N>) -> Option<&[N]> {
    match x {
        Data::Numbers(x) => Some(x),
        Data::Whole(_) => None,
    }
}

fn whole<N>(x: &Data<N>, i: usize) -> i64 {
    match x {
        Data::Whole(x) => x[i],
        Data::Numbers(_) => 0,
    }
}

/// One of two whole numbers; another number, which follows from all three, where it is not known which.
fn chosen<D: Domain>(domain: &D, args: &[usize], terms: &[Data<D::Num>], dtype: DType, i: usize) -> i64 {
    let (yes, no) = (whole(&terms[args[1]], i), whole(&terms[args[2]], i));
    let Some(which) = numbers(&terms[args[0]]).map(|x| x[i]) else { return no };
    match domain.truth(which) {
        Some(true) => yes,
        Some(false) => no,
        None if yes == no => yes,
        None => wrapped(mix(domain.digest(which) ^ mix(yes as u64) ^ mix(no as u64).rotate_left(1)) as i64, dtype),
    }
}
