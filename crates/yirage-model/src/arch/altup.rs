//! Alternating updates (AltUp; Baykal et al., NeurIPS 2023) as Gemma 3n has them: each token has several rows, of which a
//! layer computes one. The others are predicted from all of them, and corrected by what the layer made of the one.
//!
//! The rows of a token lie one behind the other: f32 `[Tokens, count * hidden]`. This module does not know what a layer does.

use super::emit::ModelBuilder;
use crate::error::ModelError;
use yirage_ir::attr::List;
use yirage_ir::expr::{Expr, Func};
use yirage_ir::op::{Concat, Cut, Map, MatMul, Reduce, ReduceKind, RmsNorm, View, ViewForm};
use yirage_ir::{Dim, Sym, ValueId};

/// The least mean square that a row is divided by.
const LEAST_SQUARE: f32 = 1e-5;

/// What is read of the configuration.
pub(super) struct AltUp {
    count: u32,
    /// The row that layers compute.
    active: u32,
    hidden: u32,
    /// Whether each element of the computed row has a factor before it meets the layer's own embedding.
    scales: bool,
    norm: RmsNorm,
}

impl AltUp {
    /// From the usual keys; `norm` is that of other rows of the model.
    pub(super) fn read(e: &ModelBuilder<'_>, norm: &RmsNorm) -> Result<AltUp, ModelError> {
        let (count, active) = (e.size("altup_num_inputs")?, e.config.u32_or("altup_active_idx", 0)?);
        if count < 2 {
            return Err(e.config.invalid("altup_num_inputs", "an integer above 1"));
        }
        if active >= count {
            return Err(e.config.invalid("altup_active_idx", "an integer below altup_num_inputs"));
        }
        e.product(count, norm.width, "altup_num_inputs times hidden_size")?;
        e.product(count, count, "altup_num_inputs times itself")?;
        let scales = e.config.bool_or("altup_correct_scale", true)?;
        Ok(AltUp { count, active, hidden: norm.width, scales, norm: norm.clone() })
    }

    /// All rows of each token, from its embedding.
    pub(super) fn begin(&self, e: &mut ModelBuilder<'_>, x: ValueId) -> Result<ValueId, ModelError> {
        let mut rows = vec![x];
        let size = square(e, "altup.size", x)?;
        for at in 1..self.count {
            let name = format!("altup.{at}");
            let hf = format!("model.altup_projections.{}", at - 1);
            let row = e.linear(&format!("{name}.project"), &hf, x, [self.hidden, self.hidden], false)?;
            rows.push(as_large(e, &name, row, size)?);
        }
        e.op("altup.rows", Concat { axis: 1 }, &rows)
    }

    /// One row of each of the wanted tokens: the mean of all of theirs.
    pub(super) fn end(&self, e: &mut ModelBuilder<'_>, rows: ValueId) -> Result<ValueId, ModelError> {
        let rows = e.wanted(rows)?;
        let mut sum = self.row(e, "altup.last.0", Sym::Rows, rows, 0)?;
        let size = square(e, "altup.last.size", sum)?;
        for at in 1..self.count {
            let name = format!("altup.last.{at}");
            let row = self.row(e, &name, Sym::Rows, rows, at)?;
            let hf = format!("model.altup_unembed_projections.{}", at - 1);
            let row = e.linear(&format!("{name}.project"), &hf, row, [self.hidden, self.hidden], false)?;
            let row = as_large(e, &format!("{name}.sized"), row, size)?;
            sum = e.add(&format!("{name}.sum"), sum, row)?;
        }
        e.scale("altup.mean", sum, (1.0 / f64::from(self.count)) as f32)
    }

    /// The rows that layer `l` expects.
    pub(super) fn predict(&self, e: &mut ModelBuilder<'_>, l: u32, rows: ValueId) -> Result<ValueId, ModelError> {
        let name = format!("l{l}.predict");
        let active = self.active(e, &format!("l{l}.before"), rows)?;
        let routed = self.routed(e, l, &name, active)?;
        let (hf, shape) = (format!("model.layers.{l}.altup.prediction_coefs"), [self.count * self.count, self.count]);
        // Row i of a token's matrix has the shares of all its rows in row i.
        let shares = e.linear(&format!("{name}.shares"), &hf, routed, shape, false)?;
        let moved = e.op(&format!("{name}.moved"), self.product(), &[shares, rows])?;
        e.add(&format!("{name}.rows"), moved, rows)
    }

    /// The expected rows, moved by as much as `made`, what the layer made of the computed one, is off from what was expected.
    pub(super) fn correct(
        &self,
        e: &mut ModelBuilder<'_>,
        l: u32,
        predicted: [ValueId; 2],
        made: ValueId,
    ) -> Result<ValueId, ModelError> {
        let [rows, active] = predicted;
        let name = format!("l{l}.correct");
        let routed = self.routed(e, l, &name, made)?;
        let hf = format!("model.layers.{l}.altup.correction_coefs");
        let shares = e.linear(&format!("{name}.shares"), &hf, routed, [self.count, self.count], false)?;
        let plus_one = Map { expr: Expr::call(Func::Add, &[Expr::input(0), Expr::constant(1.0f32)]) };
        let shares = e.op(&format!("{name}.factors"), plus_one, &[shares])?;
        let off = e.op(&format!("{name}.off"), Map::of(Func::Sub), &[made, active])?;
        let moved = e.op(&format!("{name}.moved"), self.product(), &[shares, off])?;
        e.add(&format!("{name}.rows"), moved, rows)
    }

    /// The computed row as it meets the layer's own embedding.
    pub(super) fn gate_input(&self, e: &mut ModelBuilder<'_>, l: u32, rows: ValueId) -> Result<ValueId, ModelError> {
        let hf = format!("model.layers.{l}.altup.correct_output_scale");
        let row = self.active(e, &format!("l{l}.corrected"), rows)?;
        if !self.scales {
            e.pass_over(&hf);
            return Ok(row);
        }
        let factors = e.tensor(&format!("l{l}.corrected.w"), &hf, &[self.hidden])?;
        e.op(&format!("l{l}.corrected.scaled"), Map::of(Func::Mul), &[row, factors])
    }

    /// All rows but the first plus `x`.
    pub(super) fn add_behind_first(
        &self,
        e: &mut ModelBuilder<'_>,
        l: u32,
        rows: ValueId,
        x: ValueId,
    ) -> Result<ValueId, ModelError> {
        let name = format!("l{l}.out");
        let first = self.row(e, &format!("{name}.first"), Sym::Tokens, rows, 0)?;
        let others = self.rows(e, &format!("{name}.others"), Sym::Tokens, rows, [1, self.count - 1])?;
        let again = vec![x; self.count as usize - 1];
        let again = e.op(&format!("{name}.again"), Concat { axis: 1 }, &again)?;
        let others = e.add(&format!("{name}.added"), others, again)?;
        e.op(&name, Concat { axis: 1 }, &[first, others])
    }

    /// The row that layers compute.
    pub(super) fn active(&self, e: &mut ModelBuilder<'_>, name: &str, rows: ValueId) -> Result<ValueId, ModelError> {
        self.row(e, &format!("{name}.active"), Sym::Tokens, rows, self.active)
    }

    fn row(
        &self,
        e: &mut ModelBuilder<'_>,
        name: &str,
        of: Sym,
        rows: ValueId,
        at: u32,
    ) -> Result<ValueId, ModelError> {
        self.rows(e, name, of, rows, [at, 1])
    }

    /// So many rows from this one on.
    fn rows(
        &self,
        e: &mut ModelBuilder<'_>,
        name: &str,
        of: Sym,
        rows: ValueId,
        [first, count]: [u32; 2],
    ) -> Result<ValueId, ModelError> {
        let columns = Cut { start: first * self.hidden, step: 1, size: Dim::Const(count * self.hidden) };
        let form = ViewForm::Slice(vec![Cut::whole(Dim::Sym(of)), columns]);
        e.op(name, View { form }, &[rows])
    }

    /// What a row says of how the rows of its token belong together, f32 `[Tokens, count]`.
    fn routed(&self, e: &mut ModelBuilder<'_>, l: u32, name: &str, row: ValueId) -> Result<ValueId, ModelError> {
        let hf = format!("model.layers.{l}.altup");
        let w = e.tensor(&format!("l{l}.altup.norm.w"), &format!("{hf}.router_norm.weight"), &[self.hidden])?;
        let n = e.op(&format!("{name}.norm"), self.norm.clone(), &[row, w])?;
        let n = e.scale(&format!("{name}.scaled"), n, (1.0 / f64::from(self.hidden)) as f32)?;
        let (w, shape) = (format!("{hf}.modality_router.weight"), [self.count, self.hidden]);
        let w = e.tensor(&format!("l{l}.altup.router.w"), &w, &shape)?;
        let routed = e.matmul(&format!("{name}.router"), n, w, 1)?;
        e.op(&format!("{name}.routed"), Map::of(Func::Tanh), &[routed])
    }

    /// The product of each token's matrix of `count` rows and its rows of `hidden`.
    fn product(&self) -> MatMul {
        MatMul { m: self.count, n: self.hidden }
    }
}

/// The mean of the squares of each row.
fn square(e: &mut ModelBuilder<'_>, name: &str, x: ValueId) -> Result<ValueId, ModelError> {
    e.op(name, Reduce { kind: ReduceKind::MeanSquare, axes: List(vec![1]), keep: true }, &[x])
}

/// Rows `x` made as large as those whose mean squares `size` are.
fn as_large(e: &mut ModelBuilder<'_>, name: &str, x: ValueId, size: ValueId) -> Result<ValueId, ModelError> {
    let own = square(e, &format!("{name}.size"), x)?;
    let root = |of: Expr| Expr::call(Func::Sqrt, &[of]);
    let least = Expr::call(Func::Max, &[Expr::input(2), Expr::constant(LEAST_SQUARE)]);
    let wanted = Expr::call(Func::Mul, &[Expr::input(0), root(Expr::input(1))]);
    let expr = Expr::call(Func::Div, &[wanted, root(least)]);
    e.op(name, Map { expr }, &[x, size, own])
}
