//! `silu_mul_layer` and `silu_mul_linear_with_residual_layer`.

use super::linear::added;
use crate::builder::KernelBuilder;
use crate::emit::{LayerEmitter, LayerOutput};
use crate::error::PersistentError;
use crate::grid::LaunchDims;
use crate::layer::Layer;
use crate::tensor::TensorId;
use yirage_ir::ValueId;
use yirage_ir::expr::Func;
use yirage_ir::op::Map;

const SILU_MUL: &str = "silu_mul_layer";
const SILU_MUL_LINEAR: &str = "silu_mul_linear_with_residual_layer";

#[derive(Debug)]
struct SiluMul {
    /// Groups of gate and up in a tensor that no fused weight made.
    groups: u32,
}

/// Its second read is what the product is added to.
#[derive(Debug)]
struct SiluMulLinear {
    weight: TensorId,
    groups: u32,
}

impl KernelBuilder {
    /// `output = silu(gate) * up`. `input` is `[rows, 2 * width]` with gate before up. Where a fused or shuffled weight
    /// made it, it has that weight's groups. Else the grid's first size says in how many groups gate and up alternate:
    /// each block has one of them.
    ///
    /// # Errors
    /// [`PersistentError::Layer`] for sizes that do not fit; at compilation for groups that do not divide the width.
    pub fn silu_mul_layer(
        &mut self,
        input: TensorId,
        output: TensorId,
        launch: LaunchDims,
    ) -> Result<(), PersistentError> {
        let width = self.width(output)?;
        self.check_width(SILU_MUL, input, width.saturating_mul(2))?;
        self.record(SiluMul { groups: launch.grid[0] }, launch, &[input], &[output])
    }

    /// [`KernelBuilder::silu_mul_layer`] and then [`KernelBuilder::linear_with_residual_layer`]. Gate stands whole before
    /// up, but where a fused or shuffled weight made the input.
    ///
    /// # Errors
    /// [`PersistentError::Layer`] for sizes that do not fit.
    pub fn silu_mul_linear_with_residual_layer(
        &mut self,
        input: TensorId,
        weight: TensorId,
        residual: TensorId,
        output: TensorId,
        launch: LaunchDims,
    ) -> Result<(), PersistentError> {
        let [n, k] = self.matrix(SILU_MUL_LINEAR, weight)?;
        self.check_width(SILU_MUL_LINEAR, input, k.saturating_mul(2))?;
        self.check_width(SILU_MUL_LINEAR, residual, n)?;
        self.check_width(SILU_MUL_LINEAR, output, n)?;
        self.record(SiluMulLinear { weight, groups: 1 }, launch, &[input, residual], &[output])
    }
}

pub(super) fn silu_mul(e: &mut LayerEmitter<'_>, groups: u32) -> Result<ValueId, PersistentError> {
    let [gate, up] = e.parts(0, [1, 1], groups)?;
    e.op("act", Map::gated(Func::Silu), &[gate, up])
}

impl Layer for SiluMul {
    fn method(&self) -> &'static str {
        SILU_MUL
    }

    fn emit(&self, e: &mut LayerEmitter<'_>) -> Result<Vec<LayerOutput>, PersistentError> {
        Ok(vec![LayerOutput::One(silu_mul(e, self.groups)?)])
    }
}

impl Layer for SiluMulLinear {
    fn method(&self) -> &'static str {
        SILU_MUL_LINEAR
    }

    fn emit(&self, e: &mut LayerEmitter<'_>) -> Result<Vec<LayerOutput>, PersistentError> {
        let (x, residual) = (silu_mul(e, self.groups)?, e.read(1)?);
        Ok(vec![added(e, residual, x, self.weight)?])
    }
}
