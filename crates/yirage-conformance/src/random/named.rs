//! Nodes of the named ops, on rows of f32.

use super::draft::{Draft, stored};
use super::general::{rows, width};
use yirage_hal::Record;
use yirage_ir::attr::F32;
use yirage_ir::expr::Func;
use yirage_ir::op::{ConcatHeads, Embed, Hadamard, LayerNorm, Linear, Map, MatMul, RmsNorm, Rope, Softmax, TopK};
use yirage_ir::{BuildError, DType, Dim, Format, Sym, Type, ValueId};

/// What follows a product in a model.
const ACTIVATIONS: [Func; 9] = [
    Func::Silu,
    Func::GeluTanh,
    Func::GeluErf,
    Func::Tanh,
    Func::Sigmoid,
    Func::Relu,
    Func::Exp,
    Func::Square,
    Func::Sqrt,
];

const GATES: [Func; 3] = [Func::Silu, Func::GeluTanh, Func::GeluErf];

type NamedOpResult = Result<(), BuildError>;

impl Draft<'_> {
    fn rows(&mut self) -> Result<ValueId, BuildError> {
        self.value(rows, |draft| {
            let outer: Dim = match draft.choices.below(4) {
                0 | 1 => draft.take(Sym::Tokens),
                2 => draft.take(Sym::Rows),
                _ => Dim::Const(draft.choices.choose(&[3, 1, 9])),
            };
            Type::rows(outer, draft.choices.choose(&[32, 8, 1, 64, 5, 17, 48]))
        })
    }

    /// As many rows of the same width.
    fn like(&mut self, x: ValueId) -> Result<ValueId, BuildError> {
        let ty = self.ty(x);
        let same = ty.clone();
        self.value(move |other| *other == same, |_| ty)
    }

    fn vector(&mut self, n: u32) -> Result<ValueId, BuildError> {
        let ty = Type::new(DType::F32, [n]);
        if self.choices.one_in(4) {
            let same = ty.clone();
            return self.value(move |other| *other == same, |_| ty);
        }
        self.weight(ty)
    }

    /// A divisor of a width.
    fn part(&mut self, width: u32) -> u32 {
        let parts: Vec<u32> = (1..=width).filter(|p| width.is_multiple_of(*p)).collect();
        parts[parts.len() - 1 - self.choices.below(parts.len())]
    }

    /// One of the ops that work row by row.
    pub(super) fn row_op(&mut self) -> NamedOpResult {
        let x = self.rows()?;
        let n = width(self, x);
        match self.choices.below(10) {
            0 => {
                let width = self.part(n);
                let op = RmsNorm { eps: F32(1e-5), width, unit_offset: self.choices.one_in(2) };
                let mut ins = vec![x];
                if !self.choices.one_in(3) {
                    ins.push(self.vector(width)?);
                }
                self.op(op, &ins)
            }
            1 => {
                let ins = [x, self.vector(n)?, self.vector(n)?];
                let given = if self.choices.one_in(2) { 2 } else { 3 };
                self.op(LayerNorm { eps: F32(1e-5) }, &ins[..given])
            }
            2 => self.op(Softmax {}, &[x]),
            3 => {
                let c = self.choices.choose(&[1.0, 0.125, 30.0]);
                let map = match self.choices.below(1 + ACTIVATIONS.len()) {
                    0 => self.choices.choose::<fn(f32) -> Map>(&[Map::scale, Map::softcap, Map::inverse_root])(c),
                    at => Map::of(ACTIVATIONS[at - 1]),
                };
                self.op(map, &[x])
            }
            4 => {
                let b = if self.choices.one_in(3) { self.vector(n)? } else { self.like(x)? };
                let func = self.choices.choose(&[Func::Add, Func::Mul, Func::Sub, Func::Div]);
                self.op(Map::of(func), &[x, b])
            }
            5 => {
                let up = self.like(x)?;
                let gate = self.choices.below(1 + GATES.len()).checked_sub(1);
                self.op(gate.map_or_else(Map::clipped_gate, |at| Map::gated(GATES[at])), &[x, up])
            }
            6 => {
                let b = self.like(x)?;
                let groups = self.part(n);
                self.op(ConcatHeads { groups }, &[x, b])
            }
            7 => {
                let (k, largest, sorted) =
                    (1 + self.choices.below(n as usize) as u32, self.choices.one_in(2), self.choices.one_in(2));
                return self.node(TopK { k, largest, sorted }.into(), &[x]).map(drop);
            }
            8 => {
                let b = self.like(x)?;
                let k = self.part(n);
                if n / k * (n / k) > 400 {
                    self.op(Softmax {}, &[x])
                } else {
                    self.op(MatMul { m: n / k, n: n / k }, &[x, b])
                }
            }
            _ if n.is_power_of_two() => self.op(Hadamard { part: n }, &[x]),
            _ => self.rope(x, n),
        }
        .map(drop)
    }

    fn rope(&mut self, x: ValueId, n: u32) -> Result<ValueId, BuildError> {
        let width = self.part(n);
        let rotary = width / 2 * 2;
        let table = Type::rows(7u32, rotary / 2);
        let (cos, sin) = (self.weight(table.clone())?, self.weight(table)?);
        let outer = self.ty(x).shape[0];
        let positions = self.ints(outer.get(&self.dims), 0, 7);
        let positions = self.step_input(Type::new(DType::I32, [outer]), Record::of(&positions))?;
        let op = Rope { width, rotary, interleaved: self.choices.one_in(2), per_row: false };
        self.op(op, &[x, cos, sin, positions])
    }

    /// A product with a weight of any format, or a look-up in one.
    pub(super) fn table_op(&mut self) -> NamedOpResult {
        let formats: Vec<Format> = Format::ALL.iter().copied().filter(|f| f.info().encode.is_some()).collect();
        let format = self.choices.choose(&formats);
        let block = format.info().block as u32;
        if self.choices.one_in(3) {
            let k = block * self.choices.choose(&[1, 3]);
            let table = self.stored(format, [11, k])?;
            let count = self.dims.tokens as usize;
            let ids = self.ints(count, 0, 11);
            let tokens = self.take(Sym::Tokens);
            let ids = self.step_input(Type::new(DType::I32, [tokens]), Record::of(&ids))?;
            let scale = F32(self.choices.choose(&[1.0, 2.5]));
            return self.op(Embed { scale }, &[table, ids]).map(drop);
        }
        let wide = move |ty: &Type| rows(ty) && ty.width().is_some_and(|w| w.is_multiple_of(block as usize));
        let x = self.value(wide, |draft| {
            let tokens = draft.take(Sym::Tokens);
            Type::rows(tokens, block.max(8) * draft.choices.choose(&[1, 2]))
        })?;
        let n = self.choices.choose(&[16, 1, 7, 33]);
        let w = self.stored(format, [n, width(self, x)])?;
        self.op(Linear { groups: 1 }, &[x, w]).map(drop)
    }

    fn stored(&mut self, format: Format, shape: [u32; 2]) -> Result<ValueId, BuildError> {
        // A block is encoded by its largest value, so that these are finite.
        let finite = |x: f32| if x.abs() < 8.0 { x } else { 1.0 };
        let values: Vec<f32> = (0..shape[0] * shape[1]).map(|_| finite(self.float())).collect();
        let tensor = stored(format, shape.map(|n| n as usize).to_vec(), &values);
        self.weight_of_values(Type::new(DType::Stored(format), shape), tensor)
    }
}
