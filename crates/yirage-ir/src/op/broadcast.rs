//! Shapes that meet each other element by element.

use crate::dim::Dim;
use crate::expr::Scalar;
use crate::tensor::Tensor;
use crate::types::{Type, TypeError};

/// The shape in which all inputs meet.
pub(super) fn shape(ins: &[Type]) -> Result<Vec<Dim>, TypeError> {
    let rank = ins.iter().map(|t| t.shape.len()).max().unwrap_or(0);
    let mut out = vec![Dim::Const(1); rank];
    for ty in ins {
        // Outermost in the result, too: not below dimensions that only others have.
        let below = usize::from(ty.shape.len() == rank);
        if let Some(dim) = ty.shape.iter().skip(below).find(|d| d.as_const().is_none()) {
            return Err(TypeError::new(format!("{ty}: {dim} may only be the outermost of {rank} dimensions")));
        }
        let first = rank - ty.shape.len();
        for (have, &dim) in out[first..].iter_mut().zip(&ty.shape) {
            match (*have, dim) {
                (Dim::Const(1), dim) => *have = dim,
                (have, dim) if have == dim || dim == Dim::Const(1) => {}
                (have, dim) => {
                    let list: Vec<String> = ins.iter().map(Type::to_string).collect();
                    return Err(TypeError::new(format!("{}: {have} does not meet {dim}", list.join(", "))));
                }
            }
        }
    }
    Ok(out)
}

/// The sizes in which all tensors meet; their types have passed [`shape`].
pub(super) fn sizes(ins: &[&Tensor]) -> Vec<usize> {
    let rank = ins.iter().map(|t| t.shape.len()).max().unwrap_or(0);
    let mut out = vec![1; rank];
    for t in ins {
        let first = rank - t.shape.len();
        out[first..].iter_mut().zip(&t.shape).filter(|(_, n)| **n != 1).for_each(|(out, &n)| *out = n);
    }
    out
}

/// The elements of `t` as they meet those of `shape`, row-major.
pub(super) fn spread(t: &Tensor, shape: &[usize]) -> Vec<Scalar> {
    let elements = t.scalars();
    let first = shape.len() - t.shape.len();
    let n: usize = shape.iter().product();
    let at = |mut i: usize| {
        let (mut at, mut stride) = (0, 1);
        for axis in (0..shape.len()).rev() {
            let index = i % shape[axis];
            i /= shape[axis];
            if axis >= first {
                let size = t.shape[axis - first];
                at += if size == 1 { 0 } else { index * stride };
                stride *= size;
            }
        }
        at
    };
    (0..n).map(|i| elements[at(i)]).collect()
}
