//! `view`: the same elements, seen otherwise.

mod cases;

use super::{OpCase, OpDef, Role, arity, plain};
use crate::attr::AttrValue;
use crate::dim::{Dim, Sym};
use crate::op_struct;
use crate::strided::Strided;
use crate::tensor::Tensor;
use crate::types::{MAX_RANK, Type, TypeError};
use std::fmt;
use std::str::FromStr;

/// Every `step`th element of a dimension from `start` on, `size` of them. A symbolic dimension is taken whole.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Cut {
    /// The first.
    pub start: u32,
    /// To the next; negative goes back.
    pub step: i32,
    /// How many.
    pub size: Dim,
}

impl Cut {
    /// All of a dimension.
    pub fn whole(size: impl Into<Dim>) -> Cut {
        Cut { start: 0, step: 1, size: size.into() }
    }
}

/// How elements are seen.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum ViewForm {
    /// In the same order with another shape. A symbolic dimension stays the outermost.
    Reshape(Vec<Dim>),
    /// Dimension i is dimension `axes[i]` of the input.
    Permute(Vec<u32>),
    /// Some along each dimension.
    Slice(Vec<Cut>),
    /// Again and again along dimensions of size 1, and along new outer ones.
    Expand(Vec<Dim>),
}

op_struct! {
    /// `x [...] -> [...]` of x's type: no element is computed.
    View {
        /// How the elements are seen.
        form: ViewForm,
    }
}

impl View {
    /// Where the elements lie, if those of the input lie as `x` says; `None` where no strides say it (a reshape across
    /// gaps). The input has passed `infer`.
    pub fn of(&self, x: &Strided) -> Option<Strided> {
        match &self.form {
            ViewForm::Reshape(shape) => x.reshaped(shape),
            ViewForm::Permute(axes) => Some(Strided {
                shape: axes.iter().map(|&a| x.shape[a as usize]).collect(),
                strides: axes.iter().map(|&a| x.strides[a as usize]).collect(),
                offset: x.offset,
            }),
            ViewForm::Slice(cuts) => {
                let mut out = x.clone();
                for (axis, cut) in cuts.iter().enumerate() {
                    out.offset = out.offset.checked_add(i64::from(cut.start).checked_mul(x.strides[axis])?)?;
                    out.strides[axis] = x.strides[axis].checked_mul(i64::from(cut.step))?;
                    out.shape[axis] = cut.size;
                }
                Some(out)
            }
            ViewForm::Expand(shape) => {
                let mut out = Strided { shape: shape.clone(), strides: vec![0; shape.len()], offset: x.offset };
                let first = shape.len() - x.shape.len();
                for (axis, &dim) in x.shape.iter().enumerate().filter(|(_, d)| **d != Dim::Const(1)) {
                    (out.strides[first + axis], out.shape[first + axis]) = (x.strides[axis], dim);
                }
                Some(out)
            }
        }
    }

    fn shape(&self, x: &Type) -> Result<Vec<Dim>, TypeError> {
        let wrong = |why: &str| TypeError::new(format!("{} of {x}: {why}", self.form));
        match &self.form {
            ViewForm::Reshape(shape) => {
                let inner = |dims: &[Dim]| {
                    let mut sizes = dims.iter().map(|d| Some(d.as_const()? as u64));
                    sizes.try_fold(1u64, |n, d| n.checked_mul(d?))
                };
                let same = match (x.shape.split_first(), shape.split_first()) {
                    (Some((Dim::Sym(a), from)), Some((Dim::Sym(b), to))) => {
                        a == b && inner(from) == inner(to) && inner(to).is_some()
                    }
                    _ => inner(&x.shape) == inner(shape) && inner(shape).is_some(),
                };
                if same { Ok(shape.clone()) } else { Err(wrong("as many elements are wanted")) }
            }
            ViewForm::Permute(axes) => {
                let mut seen = axes.clone();
                seen.sort_unstable();
                if !seen.iter().copied().eq(0..x.shape.len() as u32) {
                    return Err(wrong("each dimension is wanted once"));
                }
                Ok(axes.iter().map(|&a| x.shape[a as usize]).collect())
            }
            ViewForm::Slice(cuts) => {
                let inside = |(cut, dim): (&Cut, &Dim)| match (dim, cut.size) {
                    (Dim::Const(n), Dim::Const(size)) => {
                        let last = i64::from(cut.start) + (i64::from(size) - 1) * i64::from(cut.step);
                        size == 0 || (cut.start < *n && (0..i64::from(*n)).contains(&last))
                    }
                    (dim, _) => *cut == Cut::whole(*dim),
                };
                if cuts.len() != x.shape.len() || !cuts.iter().zip(&x.shape).all(inside) {
                    return Err(wrong("a cut inside of each dimension is wanted, and symbolic ones whole"));
                }
                Ok(cuts.iter().map(|c| c.size).collect())
            }
            ViewForm::Expand(shape) => {
                let Some(first) = shape.len().checked_sub(x.shape.len()) else {
                    return Err(wrong("no dimension goes away"));
                };
                let meets =
                    |(to, from): (&Dim, &Dim)| to == from || (*from == Dim::Const(1) && to.as_const().is_some());
                let fixed = shape[..first].iter().all(|d| d.as_const().is_some());
                if !fixed || !shape[first..].iter().zip(&x.shape).all(meets) {
                    return Err(wrong("only a size of 1 becomes another, a fixed one"));
                }
                Ok(shape.clone())
            }
        }
    }
}

impl OpDef for View {
    const NAME: &'static str = "view";
    const ROW_WISE: bool = false;

    fn infer(&self, ins: &[Type]) -> Result<Vec<Type>, TypeError> {
        arity(ins, 1..=1)?;
        plain(&ins[0])?;
        let out = Type::new(ins[0].dtype, self.shape(&ins[0])?);
        for ty in [&ins[0], &out] {
            if Strided::dense(&ty.shape).is_none() {
                return Err(TypeError::new(format!("{ty}: only the outermost dimension may be symbolic")));
            }
        }
        out.check()?;
        Ok(vec![out])
    }

    fn eval(&self, ins: &[&Tensor]) -> Vec<Tensor> {
        let fixed = |sizes: &[usize]| sizes.iter().map(|&n| Dim::Const(n as u32)).collect::<Vec<_>>();
        // A symbol stands outermost in input and output alike, so the input's size is its value.
        let size = |dim: &Dim| dim.as_const().unwrap_or_else(|| ins[0].shape[0]);
        let dense = Strided::dense(&fixed(&ins[0].shape)).and_then(|x| View { form: self.form.fixed(size) }.of(&x));
        let view = dense.unwrap_or_else(|| unreachable!("a dense tensor has every view"));
        let shape: Vec<usize> = view.shape.iter().map(size).collect();
        let (x, n) = (ins[0].scalars(), shape.iter().product::<usize>());
        let at = |mut i: usize| {
            let mut at = view.offset;
            for (size, stride) in shape.iter().zip(&view.strides).rev() {
                at += (i % size) as i64 * stride;
                i /= size;
            }
            at as usize
        };
        let out: Vec<_> = (0..n).map(|i| x[at(i)]).collect();
        vec![Tensor::from_scalars(ins[0].dtype, shape, &out)]
    }

    fn role(&self, _: usize, _: &Tensor) -> Role {
        Role::Any
    }

    fn cases() -> Vec<OpCase> {
        cases::all()
    }
}

impl ViewForm {
    /// The form with symbols replaced by sizes.
    fn fixed(&self, size: impl Fn(&Dim) -> usize) -> ViewForm {
        let all = |dims: &[Dim]| dims.iter().map(|d| Dim::Const(size(d) as u32)).collect();
        match self {
            ViewForm::Reshape(shape) => ViewForm::Reshape(all(shape)),
            ViewForm::Permute(axes) => ViewForm::Permute(axes.clone()),
            ViewForm::Slice(cuts) => {
                ViewForm::Slice(cuts.iter().map(|c| Cut { size: Dim::Const(size(&c.size) as u32), ..*c }).collect())
            }
            ViewForm::Expand(shape) => ViewForm::Expand(all(shape)),
        }
    }
}

impl AttrValue for ViewForm {}

impl fmt::Display for ViewForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |items: Vec<String>| items.join(", ");
        let dims = |dims: &[Dim]| list(dims.iter().map(Dim::to_string).collect());
        match self {
            ViewForm::Reshape(shape) => write!(f, "reshape({})", dims(shape)),
            ViewForm::Permute(axes) => write!(f, "permute({})", list(axes.iter().map(u32::to_string).collect())),
            ViewForm::Slice(cuts) => {
                let cut = |c: &Cut| format!("{}:{}:{}", c.start, c.step, c.size);
                write!(f, "slice({})", list(cuts.iter().map(cut).collect()))
            }
            ViewForm::Expand(shape) => write!(f, "expand({})", dims(shape)),
        }
    }
}

impl FromStr for ViewForm {
    type Err = ();
    fn from_str(text: &str) -> Result<ViewForm, ()> {
        let (name, items) = text.strip_suffix(')').and_then(|t| t.split_once('(')).ok_or(())?;
        let items: Vec<&str> =
            if items.trim().is_empty() { Vec::new() } else { items.split(',').map(str::trim).collect() };
        if items.len() > MAX_RANK {
            return Err(());
        }
        let dims = || items.iter().map(|t| dim(t)).collect::<Result<Vec<_>, ()>>();
        match name.trim() {
            "reshape" => Ok(ViewForm::Reshape(dims()?)),
            "expand" => Ok(ViewForm::Expand(dims()?)),
            "permute" => {
                items.iter().map(|t| t.parse().map_err(|_| ())).collect::<Result<_, _>>().map(ViewForm::Permute)
            }
            "slice" => items.iter().map(|t| cut(t)).collect::<Result<_, _>>().map(ViewForm::Slice),
            _ => Err(()),
        }
    }
}

fn dim(text: &str) -> Result<Dim, ()> {
    let sym = Sym::ALL.into_iter().find(|s| s.name() == text).map(Dim::Sym);
    sym.or_else(|| text.parse().ok().map(Dim::Const)).ok_or(())
}

fn cut(text: &str) -> Result<Cut, ()> {
    let [start, step, size] = text.split(':').collect::<Vec<_>>()[..] else { return Err(()) };
    Ok(Cut { start: start.parse().map_err(|_| ())?, step: step.parse().map_err(|_| ())?, size: dim(size)? })
}
