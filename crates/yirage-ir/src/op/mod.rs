//! The ops. One file owns the whole meaning of an op: its attributes, type rule, reference evaluation, test cases and
//! work; the `ops!` list below is the only place that names them all.
//!
//! Evaluation is scalar with f64 accumulation and is never optimised: it is the oracle for every backend. It knows no
//! device and no kernel.

use crate::attr::AttrError;
use crate::cost::{Cost, StepSizes};
use crate::dim::Sym;
use crate::dtype::DType;
use crate::expr::is_float;
use crate::graph::Graph;
use crate::tensor::Tensor;
use crate::types::{Type, TypeError};

mod attention;
mod broadcast;
mod case;
mod causal_conv1d;
mod collective;
mod concat;
mod concat_heads;
mod contract;
mod embed;
mod expert;
mod fill;
mod gated_delta;
mod gather;
mod hadamard;
mod iota;
mod kv_append;
mod layer_norm;
mod linear;
mod lower;
mod map;
mod matmul;
mod quantize;
mod recurrent_state;
pub mod reduce;
mod reduced;
mod rms_norm;
mod rope;
mod route;
pub mod sample;
mod softmax;
mod ssm_scan;
mod tolerance;
mod top_k;
mod view;

pub use attention::Attention;
pub use case::OpCase;
pub use causal_conv1d::CausalConv1d;
pub use collective::{AllGather, AllReduce, Broadcast, ReduceScatter, SendRecv};
pub use concat::Concat;
pub use concat_heads::ConcatHeads;
pub use contract::Contract;
pub use embed::Embed;
pub use expert::{ExpertBias, ExpertLinear, ExpertSum, NO_EXPERT};
pub use fill::Fill;
pub use gated_delta::GatedDelta;
pub use gather::Gather;
pub use hadamard::Hadamard;
pub use iota::Iota;
pub use kv_append::KvAppend;
pub use layer_norm::LayerNorm;
pub use linear::Linear;
pub use lower::NoGeneralForm;
pub use map::Map;
pub use matmul::MatMul;
pub use quantize::Quantize;
pub use reduce::{PARTS, Reduce, ReduceKind, join as join_parts};
pub use rms_norm::RmsNorm;
pub use rope::Rope;
pub use route::{Route, Scoring};
pub use sample::{Sample, SampleInput};
pub use softmax::Softmax;
pub use ssm_scan::SsmScan;
pub use tolerance::Tolerance;
pub use top_k::TopK;
pub use view::{Cut, View, ViewForm};

/// Where an input of an op comes from in a model, when nothing in the graph computes it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// Computed by another op.
    Activation,
    /// Fixed after load.
    Weight,
    /// Given anew for each step; its outermost sizes are these symbols, the others are fixed.
    StepInput(&'static [Sym]),
    /// Cache memory.
    KvCache,
    /// From anywhere: the op is general, and so are its kernels.
    Any,
}

/// A cache state that an op updates in place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StateUpdate {
    /// The input that is the state before.
    pub input: usize,
    /// The output that names it afterwards.
    pub output: usize,
}

/// Attributes as text.
pub trait Attrs: Sized {
    /// Names and values in declaration order.
    fn attrs(&self) -> Vec<(&'static str, String)>;
    /// The inverse of [`Attrs::attrs`].
    fn from_attrs(list: Vec<(String, String)>) -> Result<Self, AttrError>;
}

/// What one file says about its op.
pub trait OpDef: Attrs {
    /// Name in text forms.
    const NAME: &'static str;
    /// Whether output row t (a token) depends on input row t alone (and on whole weights): such ops can be fused into
    /// one pass over the tokens.
    const ROW_WISE: bool;
    /// Output types for these input types.
    fn infer(&self, ins: &[Type]) -> Result<Vec<Type>, TypeError>;
    /// Whether input `input` may be in a layout of activations.
    fn takes_quantized(&self, input: usize) -> bool {
        let _ = input;
        false
    }
    /// Inputs that are activations, which may be f16 or bf16 where the op's own `infer` says f32: see `reduced.rs`.
    fn activations(&self) -> &'static [usize] {
        &[]
    }
    /// Whether outputs of f32 stay so whatever the type of the activations.
    fn keeps_f32(&self) -> bool {
        false
    }
    /// Which output names a cache state after the op has updated it in place, and which input it was before.
    fn updates(&self) -> Option<StateUpdate> {
        None
    }
    /// The meaning: scalar loops, f64 accumulation. Inputs have passed `infer`.
    fn eval(&self, ins: &[&Tensor]) -> Vec<Tensor>;
    /// Where input `input` comes from in a model; `like` is a value of it. Integers are step inputs and all else is computed,
    /// unless the op says otherwise.
    fn role(&self, input: usize, like: &Tensor) -> Role {
        let _ = input;
        match like.dtype {
            DType::I32 | DType::U32 => Role::StepInput(&[Sym::Tokens]),
            _ => Role::Activation,
        }
    }
    /// [`OpDef::ROW_WISE`] for inputs of these types.
    fn row_wise(&self, ins: &[Type]) -> bool {
        let _ = ins;
        Self::ROW_WISE
    }
    /// Whether each row of the output may depend on all of input `input`, of type `ty`: a table, a weight, one row for
    /// all. The other inputs of a row-wise op are read row by row.
    fn whole(&self, input: usize, ty: &Type) -> bool {
        let _ = (input, ty);
        false
    }
    /// The same as a graph of general ops, whose inputs are those of the op in order.
    ///
    /// # Errors
    /// Why there is none for inputs of these types.
    fn lower(&self, ins: &[Type]) -> Result<Graph, NoGeneralForm> {
        let _ = ins;
        Err(NoGeneralForm::General)
    }
    /// Shapes and values to test a kernel with.
    fn cases() -> Vec<OpCase>;
    /// What it has to do at least in a step, the only place where that is said: by default read all its inputs.
    fn work(&self, ins: &[Type], step: &StepSizes<'_>) -> Cost {
        let rows = ins.first().and_then(|t| t.shape.first()).map_or(1, |d| d.get(&step.dims));
        Cost::reading(ins.len(), rows)
    }
}

/// An op as one of all.
pub trait OpVariant: OpDef {
    /// The op itself, if `op` is one of this kind.
    fn of(op: &Op) -> Option<&Self>;
}

macro_rules! ops {
    ($($name:ident),* $(,)?) => {
        /// Any op.
        #[derive(Clone, PartialEq, Eq, Hash, Debug)]
        #[allow(missing_docs)]
        pub enum Op { $($name($name)),* }

        $(impl From<$name> for Op { fn from(op: $name) -> Op { Op::$name(op) } })*

        $(impl OpVariant for $name {
            fn of(op: &Op) -> Option<&$name> {
                if let Op::$name(op) = op { Some(op) } else { None }
            }
        })*

        impl Op {
            /// Names of all ops.
            pub const NAMES: &'static [&'static str] = &[$($name::NAME),*];

            /// The name in text forms.
            pub fn name(&self) -> &'static str {
                match self { $(Op::$name(_) => $name::NAME),* }
            }
            /// See [`OpDef::row_wise`].
            pub fn row_wise(&self, ins: &[Type]) -> bool {
                match self { $(Op::$name(op) => op.row_wise(ins)),* }
            }
            /// Attribute names and values.
            pub fn attrs(&self) -> Vec<(&'static str, String)> {
                match self { $(Op::$name(op) => op.attrs()),* }
            }
            /// The op called `name` with these attributes; `None` when there is no such op.
            pub fn from_attrs(name: &str, list: Vec<(String, String)>) -> Option<Result<Op, AttrError>> {
                $(if name == $name::NAME { return Some($name::from_attrs(list).map(Op::$name)); })*
                None
            }
            /// See [`OpDef::takes_quantized`].
            pub fn takes_quantized(&self, input: usize) -> bool {
                match self { $(Op::$name(op) => op.takes_quantized(input)),* }
            }
            /// See [`OpDef::infer`]. Inputs in a layout are refused here, where the op does not say that it takes them.
            pub fn infer(&self, ins: &[Type]) -> Result<Vec<Type>, TypeError> {
                let laid = |(at, ty): &(usize, &Type)| ty.activation_format.is_some() && !self.takes_quantized(*at);
                if let Some((at, ty)) = ins.iter().enumerate().find(laid) {
                    return Err(TypeError::new(format!("input {at} is {ty}, plain elements wanted")));
                }
                let (wide, reduced) = reduced::as_f32(self.activations(), ins)?;
                let outs = match self { $(Op::$name(op) => op.infer(&wide)),* }?;
                Ok(match reduced.filter(|_| !self.keeps_f32()) {
                    Some(dtype) => reduced::outputs(outs, dtype),
                    None => outs,
                })
            }
            /// See [`OpDef::activations`].
            pub fn activations(&self) -> &'static [usize] {
                match self { $(Op::$name(op) => op.activations()),* }
            }
            /// See [`OpDef::keeps_f32`].
            pub fn keeps_f32(&self) -> bool {
                match self { $(Op::$name(op) => op.keeps_f32()),* }
            }
            /// See [`OpDef::updates`].
            pub fn updates(&self) -> Option<StateUpdate> {
                match self { $(Op::$name(op) => op.updates()),* }
            }
            /// See [`OpDef::eval`].
            pub fn eval(&self, ins: &[&Tensor]) -> Vec<Tensor> {
                let outs = match self { $(Op::$name(op) => op.eval(ins)),* };
                match reduced::type_of(self.activations(), ins).filter(|_| !self.keeps_f32()) {
                    Some(dtype) => reduced::rounded(outs, dtype),
                    None => outs,
                }
            }
            /// See [`OpDef::role`].
            pub fn role(&self, input: usize, like: &Tensor) -> Role {
                match self { $(Op::$name(op) => op.role(input, like)),* }
            }
            /// See [`OpDef::whole`].
            pub fn whole(&self, input: usize, ty: &Type) -> bool {
                match self { $(Op::$name(op) => op.whole(input, ty)),* }
            }
            /// See [`OpDef::lower`].
            ///
            /// # Errors
            /// Why there is no general form.
            pub fn lower(&self, ins: &[Type]) -> Result<Graph, NoGeneralForm> {
                let mixed = |_| NoGeneralForm::Beyond("its activations are of several types");
                let (wide, reduced) = reduced::as_f32(self.activations(), ins).map_err(mixed)?;
                let form = match self { $(Op::$name(op) => op.lower(&wide)),* }?;
                Ok(match reduced {
                    Some(dtype) => reduced::lowered(&form, self.activations(), dtype, self.keeps_f32()),
                    None => form,
                })
            }
            /// See [`OpDef::work`].
            pub fn work(&self, ins: &[Type], step: &StepSizes<'_>) -> Cost {
                match self { $(Op::$name(op) => op.work(ins, step)),* }
            }
            /// The cases of every op.
            pub fn all_cases() -> Vec<OpCase> {
                let mut all = Vec::new();
                $(all.extend($name::cases());)*
                all
            }
        }
    };
}

ops! {
    Map, Reduce, View, Contract, Concat, Gather, Fill, Iota,
    Embed, Linear, Quantize,
    RmsNorm, LayerNorm, Softmax, ConcatHeads, MatMul, TopK,
    Rope, Hadamard, KvAppend, Attention,
    CausalConv1d, SsmScan, GatedDelta,
    Route, ExpertLinear, ExpertBias, ExpertSum,
    Sample,
    AllReduce, AllGather, ReduceScatter, Broadcast, SendRecv,
}

/// Checks that elements of `ty` lie one by one: a float, a whole number or a bool, not a block.
pub(crate) fn plain(ty: &Type) -> Result<(), TypeError> {
    if is_float(ty.dtype) || matches!(ty.dtype, DType::I32 | DType::U32 | DType::Bool) {
        return Ok(());
    }
    Err(TypeError::new(format!("{ty}: elements of f32, f16, bf16, i32, u32 or bool wanted")))
}

/// Checks that only the outermost dimension of `ty` is symbolic.
pub(crate) fn symbol_outermost(ty: &Type) -> Result<(), TypeError> {
    match ty.shape.iter().skip(1).find(|d| d.as_const().is_none()) {
        None => Ok(()),
        Some(dim) => Err(TypeError::new(format!("{ty}: {dim} may only be the outermost dimension"))),
    }
}

/// Checks the number of inputs.
pub(crate) fn arity(ins: &[Type], want: std::ops::RangeInclusive<usize>) -> Result<(), TypeError> {
    if want.contains(&ins.len()) {
        return Ok(());
    }
    Err(TypeError::new(format!("{} inputs given, {} to {} wanted", ins.len(), want.start(), want.end())))
}

/// `a * b` elements of something; an error where that is no size.
pub(crate) fn times(a: u32, b: u32, what: &str) -> Result<u32, TypeError> {
    a.checked_mul(b).ok_or_else(|| TypeError::new(format!("{what}: {a} x {b} elements are no size")))
}

/// `a + b` elements of something; an error where that is no size.
pub(crate) fn plus(a: u32, b: u32, what: &str) -> Result<u32, TypeError> {
    a.checked_add(b).ok_or_else(|| TypeError::new(format!("{what}: {a} + {b} elements are no size")))
}

/// Checks that `ty` is an f32 matrix and returns its fixed width.
pub(crate) fn f32_rows(ty: &Type, what: &str) -> Result<u32, TypeError> {
    match (ty.dtype == DType::F32, ty.shape.as_slice()) {
        (true, [_, crate::dim::Dim::Const(w)]) if *w > 0 => Ok(*w),
        _ => Err(TypeError::new(format!("{what} is {ty}, f32[rows, fixed width above 0] wanted"))),
    }
}

/// Checks that `ty` is what products read: f32, or a layout of activations, whichever it is.
pub(crate) fn activations(ty: &Type) -> Result<(), TypeError> {
    if ty.dtype == DType::F32 || ty.activation_format.is_some() {
        return Ok(());
    }
    Err(TypeError::new(format!("x is {ty}, f32 or a layout of activations wanted")))
}

/// Checks that `ty` is a vector (a fixed one for weights) of `n` elements readable as f32.
pub(crate) fn vector(ty: &Type, n: u32, what: &str) -> Result<(), TypeError> {
    if ty.shape == [crate::dim::Dim::Const(n)] {
        return Ok(());
    }
    Err(TypeError::new(format!("{what} is {ty}, [{n}] wanted")))
}

/// Checks that `ty` is an i32 vector with one entry for each of `like`'s rows.
pub(crate) fn per_row(ty: &Type, like: &Type, what: &str) -> Result<(), TypeError> {
    if ty.dtype == crate::dtype::DType::I32 && ty.shape.len() == 1 && ty.shape.first() == like.shape.first() {
        return Ok(());
    }
    Err(TypeError::new(format!("{what} is {ty}, one i32 a row of {like} wanted")))
}
