//! Ops in which several devices take part, each with a value of its own: rank r of `ranks` gives an input and gets an output.
//!
//! What they mean is a function of the inputs of all ranks ([`Op::eval_ranks`]). Sums begin with rank 0 and end with the
//! last, in f64, and are rounded when they are whole, so every device gives the same bytes. By itself an op is evaluated as if all ranks had
//! given the same. Names and meanings are those of MPI and NCCL.

use super::case::CaseValues;
use super::lower::Lowering;
use super::{NoGeneralForm, Op, OpCase, OpDef, Tolerance, arity, times};
use crate::dim::Dim;
use crate::expr::{Scalar, is_float};
use crate::graph::Graph;
use crate::op_struct;
use crate::tensor::Tensor;
use crate::types::{Type, TypeError};

op_struct! {
    /// `x float[rows, n] -> float[rows, n]`: the sum of the inputs of all ranks.
    AllReduce {
        /// Devices that take part.
        ranks: u32,
    }
}

op_struct! {
    /// `x float[rows, n] -> float[rows, ranks*n]`: of each row the parts of all ranks, one after the other.
    AllGather {
        /// Devices that take part.
        ranks: u32,
    }
}

op_struct! {
    /// `x float[rows, ranks*n] -> float[rows, n]`: of the sum of all inputs the part of each row that is the rank's.
    ReduceScatter {
        /// Devices that take part.
        ranks: u32,
    }
}

op_struct! {
    /// `x float[rows, n] -> float[rows, n]`: the input of one rank.
    Broadcast {
        /// Devices that take part.
        ranks: u32,
        /// Whose input all get.
        root: u32,
    }
}

op_struct! {
    /// `x float[rows, n] -> float[rows, n]`: each rank sends its input to the one `shift` after it, and receives what the one
    /// `shift` before it has sent; the first follows the last.
    SendRecv {
        /// Devices that take part.
        ranks: u32,
        /// How far.
        shift: u32,
    }
}

/// The rows and the width of what a rank gives.
fn matrix(ins: &[Type], ranks: u32) -> Result<(Dim, u32), TypeError> {
    arity(ins, 1..=1)?;
    match (ins[0].shape.as_slice(), is_float(ins[0].dtype), ins[0].strides.is_none()) {
        (&[rows, Dim::Const(width)], true, true) if width > 0 && ranks > 0 => Ok((rows, width)),
        _ => Err(TypeError::new(format!(
            "x is {} of {ranks} ranks: float[rows, fixed width] of one rank or more wanted",
            ins[0]
        ))),
    }
}

fn like(ins: &[Type], rows: Dim, width: u32) -> Vec<Type> {
    vec![Type::new(ins[0].dtype, [rows, Dim::Const(width)])]
}

/// By itself: as if all ranks had given the same.
fn alone(op: &Op, ranks: u32, x: &Tensor) -> Vec<Tensor> {
    let all = vec![x; ranks as usize];
    op.eval_ranks(&all).into_iter().flatten().take(1).collect()
}

/// A group of one gives what it is given.
fn lowered(name: &str, ranks: u32, ins: &[Type]) -> Result<Graph, NoGeneralForm> {
    if ranks > 1 {
        return Err(NoGeneralForm::Beyond("it takes the inputs of several devices"));
    }
    let (mut l, x) = Lowering::new(name, ins)?;
    let y = l.map(&format!("cast.{}(x0)", ins[0].dtype), &[x[0]])?;
    l.finish(y)
}

fn cases_of(op: impl Into<Op>, seed: u64) -> Vec<OpCase> {
    let op = op.into();
    let x = CaseValues::new(seed).floats([3, 24]);
    vec![OpCase::new("a group of one", op, vec![x], Tolerance::Exact)]
}

macro_rules! collective {
    ($name:ident, $text:literal, $seed:literal, $alone:expr, |$op:ident, $width:ident| $out:expr) => {
        impl OpDef for $name {
            const NAME: &'static str = $text;
            const ROW_WISE: bool = false;

            fn infer(&self, ins: &[Type]) -> Result<Vec<Type>, TypeError> {
                let (rows, $width) = matrix(ins, self.ranks)?;
                let $op = self;
                Ok(like(ins, rows, $out?))
            }

            fn eval(&self, ins: &[&Tensor]) -> Vec<Tensor> {
                alone(&self.clone().into(), self.ranks, ins[0])
            }

            fn lower(&self, ins: &[Type]) -> Result<Graph, NoGeneralForm> {
                lowered(Self::NAME, self.ranks, ins)
            }

            fn cases() -> Vec<OpCase> {
                cases_of($alone, $seed)
            }
        }
    };
}

collective!(AllReduce, "all_reduce", 51, AllReduce { ranks: 1 }, |op, width| {
    let _ = op;
    Ok::<u32, TypeError>(width)
});
collective!(AllGather, "all_gather", 52, AllGather { ranks: 1 }, |op, width| times(op.ranks, width, "x of all ranks"));
collective!(ReduceScatter, "reduce_scatter", 53, ReduceScatter { ranks: 1 }, |op, width| {
    let parts = width.is_multiple_of(op.ranks).then_some(width / op.ranks);
    parts.ok_or_else(|| TypeError::new(format!("rows of {width} do not divide into the parts of {} ranks", op.ranks)))
});
collective!(Broadcast, "broadcast", 54, Broadcast { ranks: 1, root: 0 }, |op, width| {
    let known = (op.root < op.ranks).then_some(width);
    known.ok_or_else(|| TypeError::new(format!("rank {} of {} ranks", op.root, op.ranks)))
});
collective!(SendRecv, "send_recv", 55, SendRecv { ranks: 1, shift: 0 }, |op, width| {
    let known = (op.shift < op.ranks).then_some(width);
    known.ok_or_else(|| TypeError::new(format!("a shift of {} for {} ranks", op.shift, op.ranks)))
});

impl Op {
    /// The names of the ops in which several devices take part.
    pub const COLLECTIVES: [&'static str; 5] =
        [AllReduce::NAME, AllGather::NAME, ReduceScatter::NAME, Broadcast::NAME, SendRecv::NAME];

    /// The number of devices that take part in it; none of an op that runs on one.
    pub fn ranks(&self) -> Option<u32> {
        match self {
            Op::AllReduce(op) => Some(op.ranks),
            Op::AllGather(op) => Some(op.ranks),
            Op::ReduceScatter(op) => Some(op.ranks),
            Op::Broadcast(op) => Some(op.ranks),
            Op::SendRecv(op) => Some(op.ranks),
            _ => None,
        }
    }

    /// What each rank gets of the inputs of all, which have passed `infer` and are as many as there are ranks; nothing of an
    /// op that runs on one device.
    pub fn eval_ranks(&self, ins: &[&Tensor]) -> Option<Vec<Tensor>> {
        let n = self.ranks()? as usize;
        Some(match self {
            Op::AllReduce(_) => vec![sum(ins); n],
            Op::AllGather(_) => vec![side_by_side(ins); n],
            Op::ReduceScatter(_) => {
                let sum = sum(ins);
                (0..n).map(|rank| columns(&sum, rank, n)).collect()
            }
            Op::Broadcast(op) => vec![ins[op.root as usize].clone(); n],
            Op::SendRecv(op) => (0..n).map(|rank| ins[(rank + n - op.shift as usize) % n].clone()).collect(),
            _ => return None,
        })
    }
}

fn of(like: &Tensor, shape: [usize; 2], values: impl Iterator<Item = f64>) -> Tensor {
    let scalars: Vec<Scalar> = values.map(|value| Scalar::from(value as f32)).collect();
    Tensor::from_scalars(like.dtype, shape, &scalars)
}

fn sum(ins: &[&Tensor]) -> Tensor {
    let (rows, width) = (ins[0].rows(), ins[0].width());
    let at = |i: usize| ins.iter().map(|x| f64::from(x.floats()[i])).sum();
    of(ins[0], [rows, width], (0..rows * width).map(at))
}

fn side_by_side(ins: &[&Tensor]) -> Tensor {
    let (rows, width) = (ins[0].rows(), ins[0].width());
    let row = |r: usize| ins.iter().flat_map(move |x| x.floats()[r * width..][..width].iter().map(|&v| f64::from(v)));
    of(ins[0], [rows, ins.len() * width], (0..rows).flat_map(row))
}

fn columns(x: &Tensor, rank: usize, ranks: usize) -> Tensor {
    let (rows, width) = (x.rows(), x.width() / ranks);
    let row = |r: usize| x.floats()[r * x.width() + rank * width..][..width].iter().map(|&v| f64::from(v));
    of(x, [rows, width], (0..rows).flat_map(row))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::DType;

    /// Each rank's 2 x 2 matrix.
    fn inputs() -> [Tensor; 2] {
        [vec![1.0, 2.0, 3.0, 4.0], vec![10.0, 20.0, 30.0, 40.0]].map(|values| Tensor::f32([2, 2], values))
    }

    fn got(op: impl Into<Op>) -> Vec<(Vec<usize>, Vec<f32>)> {
        let (op, [a, b]) = (op.into(), inputs());
        let outs = op.eval_ranks(&[&a, &b]).unwrap();
        let types: Vec<Type> = op.infer(&[a.ty()]).unwrap();
        outs.iter().for_each(|out| assert_eq!(out.ty(), types[0]));
        outs.into_iter().map(|out| (out.shape.clone(), out.floats().to_vec())).collect()
    }

    #[test]
    fn two_ranks_get_what_each_op_says() {
        let (square, sums) = (vec![2, 2], vec![11.0, 22.0, 33.0, 44.0]);
        assert_eq!(got(AllReduce { ranks: 2 }), vec![(square.clone(), sums); 2]);
        let rows = vec![1.0, 2.0, 10.0, 20.0, 3.0, 4.0, 30.0, 40.0];
        assert_eq!(got(AllGather { ranks: 2 }), vec![(vec![2, 4], rows); 2]);
        let parts = [vec![11.0, 33.0], vec![22.0, 44.0]].map(|part| (vec![2, 1], part));
        assert_eq!(got(ReduceScatter { ranks: 2 }), parts);
        let second = (square.clone(), vec![10.0, 20.0, 30.0, 40.0]);
        assert_eq!(got(Broadcast { ranks: 2, root: 1 }), vec![second.clone(); 2]);
        assert_eq!(got(SendRecv { ranks: 2, shift: 1 }), [second, (square, vec![1.0, 2.0, 3.0, 4.0])]);
    }

    #[test]
    fn what_does_not_fit_the_ranks_is_refused() {
        let x = [Type::new(DType::F32, [2, 3])];
        for op in [
            Op::from(ReduceScatter { ranks: 2 }),
            Broadcast { ranks: 2, root: 2 }.into(),
            SendRecv { ranks: 2, shift: 2 }.into(),
            AllGather { ranks: u32::MAX }.into(),
            AllReduce { ranks: 0 }.into(),
        ] {
            assert!(op.infer(&x).is_err(), "{op:?}");
        }
        assert!(AllReduce { ranks: 2 }.infer(&[Type::new(DType::I32, [2, 3])]).is_err());
        assert!(Op::from(AllReduce { ranks: 2 }).lower(&x).is_err());
    }
}
