//! `rope`: rotary position embedding (Su et al., 2021) by table.

use super::case::CaseValues;
use super::lower::Lowering;
use super::{NoGeneralForm, OpCase, OpDef, Role, Tolerance, arity, f32_rows, per_row};
use crate::cost::{Cost, StepSizes};
use crate::dim::{Dim, Sym};
use crate::graph::{Graph, ValueId};
use crate::op_struct;
use crate::tensor::Tensor;
use crate::types::{Type, TypeError};

op_struct! {
    /// `(x f32[rows, heads*width], cos f32[positions, rotary/2], sin, positions i32[rows]) -> f32` of x's shape; with
    /// `per_row` `(x, cos f32[rows, rotary/2], sin)`, where row t of the tables is that of x's row t.
    ///
    /// Within the first `rotary` elements of each head, pair `i` with table entry `(c, s)` becomes
    /// `(a c - b s, b c + a s)`; the pairs are `(i, i + rotary/2)`, or `(2i, 2i+1)` when interleaved. The rest of a
    /// head stays. Every scaling (linear, llama3, yarn, dynamic) is a matter of how the tables were made. Positions
    /// past the tables give NaN, never other memory.
    Rope {
        /// Elements of a head.
        width: u32,
        /// Elements of a head that rotate.
        rotary: u32,
        /// Whether pairs are neighbours.
        interleaved: bool,
        /// Whether cosines and sines are given for each row, not looked up by its position.
        per_row: bool,
    }
}

impl OpDef for Rope {
    const NAME: &'static str = "rope";
    const ROW_WISE: bool = true;

    fn activations(&self) -> &'static [usize] {
        &[0]
    }

    fn infer(&self, ins: &[Type]) -> Result<Vec<Type>, TypeError> {
        let inputs = if self.per_row { 3 } else { 4 };
        arity(ins, inputs..=inputs)?;
        let row = f32_rows(&ins[0], "x")?;
        if self.width == 0 || !row.is_multiple_of(self.width) || self.rotary > self.width || self.rotary % 2 == 1 {
            return Err(TypeError::new(format!(
                "rows of {row}, heads of {}, {} of them rotating: heads must fill the row and an even part rotate",
                self.width, self.rotary
            )));
        }
        f32_rows(&ins[1], "cos")?;
        if ins[1].shape.get(1) != Some(&Dim::Const(self.rotary / 2)) || ins[1] != ins[2] {
            let (cos, sin) = (&ins[1], &ins[2]);
            return Err(TypeError::new(format!("cos is {cos}, sin {sin}, [positions, {}] wanted", self.rotary / 2)));
        }
        match ins.get(3) {
            Some(positions) => per_row(positions, &ins[0], "positions")?,
            None if ins[1].shape[0] != ins[0].shape[0] => {
                return Err(TypeError::new(format!("cos is {}, x {}: equal rows wanted", ins[1], ins[0])));
            }
            None => {}
        }
        Ok(vec![ins[0].clone()])
    }

    fn eval(&self, ins: &[&Tensor]) -> Vec<Tensor> {
        let (cos, sin) = (ins[1], ins[2]);
        let own: Vec<i32> = (0..ins[0].rows() as i32).collect();
        let positions = ins.get(3).map_or(&own[..], |p| p.ints());
        let (width, half) = (self.width as usize, self.rotary as usize / 2);
        let mut out = ins[0].floats().to_vec();
        for (row, &p) in out.chunks_exact_mut(ins[0].width().max(1)).zip(positions) {
            let at = usize::try_from(p).ok().filter(|&p| p < cos.rows());
            let (c, s) = match at {
                Some(p) => (cos.row_f64(p), sin.row_f64(p)),
                None => (vec![f64::NAN; half], vec![f64::NAN; half]),
            };
            for head in row.chunks_exact_mut(width) {
                for i in 0..half {
                    let (j, k) = if self.interleaved { (2 * i, 2 * i + 1) } else { (i, i + half) };
                    let (a, b) = (f64::from(head[j]), f64::from(head[k]));
                    head[j] = (a * c[i] - b * s[i]) as f32;
                    head[k] = (b * c[i] + a * s[i]) as f32;
                }
            }
        }
        vec![Tensor::f32(ins[0].shape.clone(), out)]
    }

    fn whole(&self, input: usize, _: &Type) -> bool {
        matches!(input, 1 | 2) && !self.per_row
    }

    fn role(&self, input: usize, _: &Tensor) -> Role {
        match input {
            0 => Role::Activation,
            1 | 2 if self.per_row => Role::StepInput(&[Sym::Tokens]),
            1 | 2 => Role::Weight,
            _ => Role::StepInput(&[Sym::Tokens]),
        }
    }

    fn lower(&self, ins: &[Type]) -> Result<Graph, NoGeneralForm> {
        let (mut l, x) = Lowering::new(Self::NAME, ins)?;
        let (shape, half) = (l.shape(x[0]), self.rotary / 2);
        let heads = Dim::Const(ins[0].width().unwrap_or(0) as u32 / self.width);
        let all = l.reshape(x[0], &[shape[0], heads, Dim::Const(self.width)])?;
        // Pairs that are neighbours are every second element.
        let (second, step) = if self.interleaved { (1, 2) } else { (half, 1) };
        let (a, b) = (l.slice(all, 2, 0, step, half)?, l.slice(all, 2, second, step, half)?);
        let table = |l: &mut Lowering, table: ValueId| {
            let rows = if self.per_row { table } else { l.gather(table, x[3])? };
            l.reshape(rows, &[shape[0], Dim::Const(1), Dim::Const(half)])
        };
        let (cos, sin) = (table(&mut l, x[1])?, table(&mut l, x[2])?);
        let first = l.map("sub(mul(x0, x2), mul(x1, x3))", &[a, b, cos, sin])?;
        let second = l.map("add(mul(x1, x2), mul(x0, x3))", &[a, b, cos, sin])?;
        let mut parts = if self.interleaved {
            let pairs = [shape[0], heads, Dim::Const(half), Dim::Const(1)];
            let (first, second) = (l.reshape(first, &pairs)?, l.reshape(second, &pairs)?);
            let pairs = l.concat(3, &[first, second])?;
            vec![l.reshape(pairs, &[shape[0], heads, Dim::Const(self.rotary)])?]
        } else {
            vec![first, second]
        };
        if self.rotary < self.width {
            parts.push(l.slice(all, 2, self.rotary, 1, self.width - self.rotary)?);
        }
        let y = l.concat(2, &parts)?;
        let y = l.reshape(y, &shape)?;
        l.finish(y)
    }

    fn work(&self, _: &[Type], _: &StepSizes<'_>) -> Cost {
        // Of a table of rotations the same few rows are read in every layer.
        Cost::reading(0, 0)
    }

    fn cases() -> Vec<OpCase> {
        let mut rng = CaseValues::new(12);
        let close = Tolerance::Close { abs: 1e-6, rel: 1e-6 };
        let mut cases = Vec::new();
        for (rows, heads, width, rotary, interleaved) in [
            (1, 4, 64, 64, false),
            (5, 2, 32, 8, false),
            (3, 3, 24, 24, true),
            (4, 1, 10, 6, true),
            (0, 1, 8, 8, false),
        ] {
            let (cos, sin) = (rng.floats([9, rotary / 2]), rng.floats([9, rotary / 2]));
            let positions = Tensor::i32([rows], (0..rows as i32).map(|p| (p * 5) % 9).collect());
            let ins = vec![rng.floats([rows, heads * width]), cos, sin, positions];
            let (width32, rotary32) = (width as u32, rotary as u32);
            let op = Rope { width: width32, rotary: rotary32, interleaved, per_row: false };
            let name = format!("{rows}x{heads}x{width}, {rotary} rotate, interleaved {interleaved}");
            cases.push(OpCase::new(name.clone(), op, ins.clone(), close));
            let (cos, sin) = (rng.floats([rows, rotary / 2]), rng.floats([rows, rotary / 2]));
            let op = Rope { width: width32, rotary: rotary32, interleaved, per_row: true };
            cases.push(OpCase::new(format!("{name}, of each row"), op, vec![ins[0].clone(), cos, sin], close));
        }
        cases
    }
}
