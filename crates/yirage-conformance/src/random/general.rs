//! Nodes of the general vocabulary.

use super::draft::{Draft, FLOATS, MOST, PLAIN};
use super::expression;
use yirage_hal::Record;
use yirage_ir::attr::List;
use yirage_ir::expr::{Scalar, is_float};
use yirage_ir::op::{Concat, Contract, Cut, Fill, Gather, Iota, Map, Reduce, ReduceKind, View, ViewForm};
use yirage_ir::types::MAX_RANK;
use yirage_ir::{BuildError, DType, Dim, Sym, Type, ValueId};

type GeneralOpResult = Result<(), BuildError>;

fn plain(ty: &Type) -> bool {
    PLAIN.contains(&ty.dtype)
}

fn fixed(dim: Dim) -> u32 {
    dim.as_const().unwrap_or(0) as u32
}

fn symbolic(ty: &Type) -> bool {
    matches!(ty.shape.first(), Some(Dim::Sym(_)))
}

impl Draft<'_> {
    fn plain_type(&mut self) -> Type {
        let dtype =
            self.choices.choose(&[DType::F32, DType::F32, PLAIN[1], PLAIN[2], DType::I32, DType::U32, DType::Bool]);
        Type::new(dtype, self.shape())
    }

    /// An expression of one to four values whose shapes meet.
    pub(super) fn map(&mut self) -> GeneralOpResult {
        let first = self.value(plain, Self::plain_type)?;
        let shape = self.ty(first).shape;
        let mut ins = vec![first];
        for _ in 0..self.choices.below(4) {
            let like = shape.clone();
            let meets = move |ty: &Type| plain(ty) && meets(&ty.shape, &like);
            let like = shape.clone();
            let other = self.value(meets, |draft| {
                let dtype = draft.choices.choose(&PLAIN);
                Type::new(dtype, draft.smaller(&like))
            })?;
            ins.push(other);
        }
        let dtypes: Vec<DType> = ins.iter().map(|&i| self.ty(i).dtype).collect();
        let expr = expression::draw(&mut self.choices, &dtypes);
        self.op(Map { expr }, &ins).map(drop)
    }

    /// A shape that meets another: sizes of 1 here and there, outer ones left out.
    fn smaller(&mut self, shape: &[Dim]) -> Vec<Dim> {
        let from = if self.choices.one_in(3) { self.choices.below(shape.len() + 1) } else { 0 };
        let size = |dim: &Dim| if self.choices.one_in(4) { Dim::Const(1) } else { *dim };
        shape[from..].iter().map(size).collect()
    }

    pub(super) fn reduce(&mut self) -> GeneralOpResult {
        let number =
            |ty: &Type| (is_float(ty.dtype) || matches!(ty.dtype, DType::I32 | DType::U32)) && !ty.shape.is_empty();
        let x = self.value(number, |draft| {
            let dtype = draft.choices.choose(&[DType::F32, FLOATS[1], FLOATS[2], DType::I32, DType::U32]);
            let mut shape = draft.shape();
            if shape.is_empty() {
                shape.push(Dim::Const(70));
            }
            Type::new(dtype, shape)
        })?;
        let ty = self.ty(x);
        let rank = ty.shape.len();
        let mut axes: Vec<u32> = (0..rank as u32).filter(|_| self.choices.one_in(2)).collect();
        if axes.is_empty() {
            axes.push(self.choices.below(rank) as u32);
        }
        let kinds = if is_float(ty.dtype) {
            ReduceKind::ALL
        } else {
            &[ReduceKind::Sum, ReduceKind::Max, ReduceKind::Min, ReduceKind::Prod]
        };
        let op = Reduce { kind: self.choices.choose(kinds), axes: List(axes), keep: self.choices.one_in(2) };
        self.op(op, &[x]).map(drop)
    }

    pub(super) fn view(&mut self) -> GeneralOpResult {
        let x = self.value(plain, Self::plain_type)?;
        let ty = self.ty(x);
        let form = match self.choices.below(4) {
            0 => ViewForm::Permute(self.order(&ty)),
            1 => ViewForm::Reshape(self.reshaped(&ty)),
            2 => ViewForm::Slice(ty.shape.iter().map(|&dim| self.cut(dim)).collect()),
            _ => ViewForm::Expand(self.expanded(&ty)),
        };
        self.op(View { form }, &[x]).map(drop)
    }

    /// Any order of the dimensions; a symbolic one stays outermost.
    fn order(&mut self, ty: &Type) -> Vec<u32> {
        let mut order: Vec<u32> = (0..ty.shape.len() as u32).collect();
        let first = usize::from(symbolic(ty));
        for i in (first + 1..order.len()).rev() {
            order.swap(i, first + self.choices.below(i + 1 - first));
        }
        order
    }

    /// Neighbours joined, sizes cut in two, sizes of 1 put in.
    fn reshaped(&mut self, ty: &Type) -> Vec<Dim> {
        let first = usize::from(symbolic(ty));
        let mut inner: Vec<u32> = ty.shape[first..].iter().map(|&d| fixed(d)).collect();
        for _ in 0..1 + self.choices.below(3) {
            let at = self.choices.below(inner.len().max(1));
            let full = inner.len() + first >= MAX_RANK;
            match self.choices.below(3) {
                0 if at + 1 < inner.len() => inner[at] *= inner.remove(at + 1),
                1 if !full && at < inner.len() => {
                    let n = inner[at];
                    let part = (2..=n / 2).find(|part| n.is_multiple_of(*part)).unwrap_or(1);
                    inner[at] = n / part;
                    inner.insert(at, part);
                }
                _ if !full => inner.insert(at.min(inner.len()), 1),
                _ => {}
            }
        }
        ty.shape[..first].iter().copied().chain(inner.into_iter().map(Dim::Const)).collect()
    }

    fn cut(&mut self, dim: Dim) -> Cut {
        let Dim::Const(n) = dim else { return Cut::whole(dim) };
        if n == 0 || self.choices.one_in(2) {
            return Cut::whole(n);
        }
        let start = self.choices.below(n as usize) as u32;
        let step = self.choices.choose(&[1, 2, -1, 3, -2]);
        let there = if step > 0 { n - 1 - start } else { start } / i32::unsigned_abs(step) + 1;
        Cut { start, step, size: Dim::Const(self.choices.below(there as usize + 1) as u32) }
    }

    fn expanded(&mut self, ty: &Type) -> Vec<Dim> {
        let mut shape = ty.shape.clone();
        let mut room = (MOST / self.elems(&shape).max(1)) as u32;
        for dim in &mut shape {
            if *dim == Dim::Const(1) && room > 0 {
                let size = self.choices.choose(&[3, 1, 2, 17]).min(room);
                (*dim, room) = (Dim::Const(size), room / size);
            }
        }
        if !symbolic(ty) && shape.len() < MAX_RANK && room > 1 && self.choices.one_in(3) {
            shape.insert(0, Dim::Const(2));
        }
        shape
    }

    /// A product with an input of the same type, which is turned now and then.
    pub(super) fn contract(&mut self) -> GeneralOpResult {
        let matrix = |ty: &Type| is_float(ty.dtype) && ty.shape.len() >= 2;
        let a = self.value(matrix, |draft| {
            let dtype = draft.choices.choose(&FLOATS);
            let mut shape = draft.shape();
            while shape.len() < 2 {
                shape.push(Dim::Const(draft.choices.choose(&[5, 16, 1, 40])));
            }
            Type::new(dtype, shape)
        })?;
        let ty = self.ty(a);
        let (batch, k) = (ty.shape[..ty.shape.len() - 2].to_vec(), ty.shape[ty.shape.len() - 1]);
        let n = Dim::Const(self.choices.choose(&[4, 1, 16, 3, 33]));
        let mut shape = self.smaller(&batch);
        let turned = self.choices.one_in(3) && shape.first().is_none_or(|d| d.as_const().is_some());
        shape.extend(if turned { [n, k] } else { [k, n] });
        if self.elems(&ty.shape) * fixed(n) as usize > 8 * MOST {
            return Ok(());
        }
        let mut b = self.input(Type::new(ty.dtype, shape.clone()))?;
        if turned {
            let rank = shape.len() as u32;
            let order = (0..rank - 2).chain([rank - 1, rank - 2]).collect();
            b = self.op(View { form: ViewForm::Permute(order) }, &[b])?;
        }
        self.op(Contract {}, &[a, b]).map(drop)
    }

    pub(super) fn concat(&mut self) -> GeneralOpResult {
        let joined = |ty: &Type| plain(ty) && ty.shape.iter().any(|d| d.as_const().is_some());
        let first = self.value(joined, |draft| {
            let mut ty = draft.plain_type();
            ty.shape.push(Dim::Const(3));
            ty.shape.truncate(MAX_RANK);
            ty
        })?;
        let ty = self.ty(first);
        let along: Vec<usize> = (0..ty.shape.len()).filter(|&a| ty.shape[a].as_const().is_some()).collect();
        let Some(&last) = along.last() else { return Ok(()) };
        let axis = if self.choices.one_in(2) { self.choices.choose(&along) } else { last };
        let mut ins = vec![first];
        for _ in 0..self.choices.below(4) {
            let like = ty.clone();
            let beside = move |other: &Type| {
                let mut other = other.clone();
                let fixed = other.shape.get(axis).is_some_and(|d| d.as_const().is_some());
                if fixed {
                    other.shape[axis] = like.shape[axis];
                }
                fixed && other == like
            };
            let mut new = ty.clone();
            new.shape[axis] = Dim::Const(self.choices.choose(&[2, 1, 5, 0]));
            ins.push(self.value(beside, |_| new)?);
        }
        if ins.iter().map(|&i| self.elems(&self.ty(i).shape)).sum::<usize>() > 4 * MOST {
            return Ok(());
        }
        self.op(Concat { axis: axis as u32 }, &ins).map(drop)
    }

    /// Numbers inside and outside of the dimension.
    pub(super) fn gather(&mut self) -> GeneralOpResult {
        let x = self.value(
            |ty| plain(ty) && !ty.shape.is_empty(),
            |draft| {
                let mut ty = draft.plain_type();
                ty.shape.push(Dim::Const(6));
                ty.shape.truncate(MAX_RANK);
                ty
            },
        )?;
        let ty = self.ty(x);
        let axis = self.choices.below(ty.shape.len());
        let mut at = vec![Dim::Const(3); self.choices.choose(&[1, 1, 0, 2])];
        let stays = axis > 0 && symbolic(&ty);
        if axis == 0 && !at.is_empty() && self.choices.one_in(2) {
            at[0] = self.take(Sym::Rows);
        }
        let whole = if stays {
            self.elems(&ty.shape)
        } else {
            self.elems(&ty.shape[axis + 1..]).max(1) * self.elems(&ty.shape[..axis])
        };
        if ty.shape.len() + at.len() > MAX_RANK + 1 || whole * self.elems(&at) > 4 * MOST {
            return Ok(());
        }
        let n = ty.shape[axis].get(&self.dims) as i32;
        let count = self.elems(&at);
        let numbers = if self.choices.one_in(5) { self.ints(count, -2, n + 2) } else { self.ints(count, 0, n) };
        let at = self.step_input(Type::new(DType::I32, at), Record::of(&numbers))?;
        self.op(Gather { axis: axis as u32 }, &[x, at]).map(drop)
    }

    pub(super) fn constant(&mut self) -> GeneralOpResult {
        let shape: Vec<u32> = self.shape().into_iter().map(|d| d.get(&self.dims) as u32).collect();
        if self.choices.one_in(2) && !shape.is_empty() {
            let axis = self.choices.below(shape.len()) as u32;
            return self.op(Iota { shape: List(shape), axis }, &[]).map(drop);
        }
        let value: Scalar = match self.choices.below(4) {
            0 => self.float().into(),
            1 => (-7i32).into(),
            2 => 3_000_000_000u32.into(),
            _ => true.into(),
        };
        self.op(Fill { value, shape: List(shape) }, &[]).map(drop)
    }
}

/// Whether a shape meets another without changing it.
fn meets(shape: &[Dim], like: &[Dim]) -> bool {
    let Some(outer) = like.len().checked_sub(shape.len()) else { return false };
    shape.iter().zip(&like[outer..]).all(|(a, b)| a == b || *a == Dim::Const(1))
}

/// A value to be read as rows of f32, which named ops take.
pub(super) fn rows(ty: &Type) -> bool {
    ty.dtype == DType::F32 && ty.shape.len() == 2 && ty.shape[1].as_const().is_some_and(|w| w > 0)
}

/// The width of rows.
pub(super) fn width(draft: &Draft<'_>, x: ValueId) -> u32 {
    draft.ty(x).width().unwrap_or(1) as u32
}
