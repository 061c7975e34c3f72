//! Inputs of general ops: each from a step input, from a weight, and from another op.
//!
//! Only floats are weights; all others are cast inside the graph from one that may.

use super::{GeneralInputScheme, OperandSource, Wrapping};
use yirage_hal::Record;
use yirage_ir::expr::is_float;
use yirage_ir::op::{Map, OpCase, Role};
use yirage_ir::tensor::Data;
use yirage_ir::{BuildError, DType, Dim, Expr, Sym, Tensor, Type, ValueId};

/// Where an input comes from, and whether its outermost dimension is a symbol.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct GeneralInput {
    origin: OperandSource,
    symbol: bool,
}

/// Whether the op takes its inputs from anywhere.
pub(crate) fn is_general(case: &OpCase) -> bool {
    case.ins.iter().enumerate().any(|(i, t)| case.op.role(i, t) == Role::Any)
}

/// Where each input comes from; `None` where the op has no symbolic dimension.
pub(super) fn general_inputs(case: &OpCase, from: GeneralInputScheme) -> Option<Vec<GeneralInput>> {
    let (turn, symbolic) = match from {
        GeneralInputScheme::Turn(turn) => (turn, false),
        _ => (1, true),
    };
    let symbols = symbols(case, symbolic)?;
    let place = |(i, (t, &symbol)): (usize, (&Tensor, &bool))| {
        let origin = match OperandSource::ALL[(i + turn) % 3] {
            OperandSource::Slot => OperandSource::Slot,
            OperandSource::Weight if is_float(t.dtype) && !symbol => OperandSource::Weight,
            _ => OperandSource::Computed,
        };
        GeneralInput { origin, symbol }
    };
    Some(case.ins.iter().zip(&symbols).enumerate().map(place).collect())
}

/// Which inputs have a symbol outermost: none, or if `wanted`, or if the op names one, as many as it allows.
fn symbols(case: &OpCase, wanted: bool) -> Option<Vec<bool>> {
    let rank = case.ins.iter().map(|t| t.shape.len()).max()?;
    let size = case.ins.iter().filter(|t| t.shape.len() == rank).filter_map(|t| t.shape.first()).max();
    let outermost = |t: &Tensor| t.shape.len() == rank && t.shape.first() == size && size.is_some();
    let count = case.ins.len();
    let choices = [
        vec![false; count],
        case.ins.iter().map(outermost).collect(),
        (0..count).map(|i| i == 0 && !case.ins[i].shape.is_empty()).collect(),
        (0..count).map(|i| i + 1 == count && !case.ins[i].shape.is_empty()).collect(),
    ];
    let fits = |symbols: &Vec<bool>| {
        let types: Vec<Type> = case.ins.iter().zip(symbols).map(|(t, &symbol)| ty(t, t.dtype, symbol)).collect();
        case.op.infer(&types).is_ok()
    };
    choices.into_iter().filter(|c| !wanted || c.contains(&true)).find(fits)
}

fn ty(t: &Tensor, dtype: DType, symbol: bool) -> Type {
    let mut ty = Type::new(dtype, t.shape.iter().map(|&n| n as u32));
    if symbol {
        ty.shape[0] = Dim::Sym(Sym::Tokens);
    }
    ty
}

impl Wrapping {
    pub(super) fn any(&mut self, name: &str, t: &Tensor, place: GeneralInput) -> Result<ValueId, BuildError> {
        if place.symbol {
            self.dims.tokens = t.shape[0] as u32;
        }
        match place.origin {
            OperandSource::Slot => self.plain_step_input(name, t, place.symbol),
            OperandSource::Weight => self.weight(name, &stored(t)),
            OperandSource::Computed => self.computed(name, t, place.symbol),
        }
    }

    /// A step input.
    fn plain_step_input(&mut self, name: &str, t: &Tensor, symbol: bool) -> Result<ValueId, BuildError> {
        self.step_inputs.insert(name.into(), Record::of(&t.memory()));
        self.builder.step_input(name, ty(t, t.dtype, symbol))
    }

    /// What another op makes of a step input.
    fn computed(&mut self, name: &str, t: &Tensor, symbol: bool) -> Result<ValueId, BuildError> {
        let given = match t.dtype {
            DType::I32 | DType::U32 => t.dtype,
            DType::Bool => DType::I32,
            _ => DType::F32,
        };
        let values = Tensor::from_scalars(given, t.shape.clone(), &t.scalars());
        let slot = self.plain_step_input(&format!("{name}.given"), &values, symbol)?;
        let expr = if given == t.dtype { Expr::input(0) } else { Expr::input(0).cast(t.dtype) };
        self.builder.op(name, Map { expr }, &[slot])
    }
}

/// Floats of 16 bits as they lie in a file.
fn stored(t: &Tensor) -> Tensor {
    let DType::Stored(format) = t.dtype else { return t.clone() };
    let (Data::F32(values), Some(encode)) = (&t.data, format.info().encode) else { return t.clone() };
    let mut bytes = vec![0; format.info().row_bytes(values.len())];
    encode(values, &mut bytes);
    Tensor::stored(format, t.shape.clone(), bytes)
}
