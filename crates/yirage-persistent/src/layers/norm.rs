//! `rmsnorm_layer` and `rmsnorm_linear_layer`.

use super::linear::matmul;
use crate::builder::KernelBuilder;
use crate::emit::{LayerEmitter, LayerOutput};
use crate::error::PersistentError;
use crate::grid::LaunchDims;
use crate::layer::Layer;
use crate::tensor::TensorId;
use yirage_ir::op::RmsNorm;
use yirage_ir::{F32, ValueId};

const NORM: &str = "rmsnorm_layer";
const NORM_LINEAR: &str = "rmsnorm_linear_layer";

#[derive(Debug)]
struct Norm {
    weight: TensorId,
}

#[derive(Debug)]
struct NormLinear {
    norm: TensorId,
    linear: TensorId,
}

impl KernelBuilder {
    /// `output = input / sqrt(mean(input^2) + rms_norm_eps) * weight`, row by row.
    ///
    /// # Errors
    /// [`PersistentError::Layer`] for sizes that do not fit.
    pub fn rmsnorm_layer(
        &mut self,
        input: TensorId,
        weight: TensorId,
        output: TensorId,
        launch: LaunchDims,
    ) -> Result<(), PersistentError> {
        self.check_norm(NORM, input, weight)?;
        self.check_width(NORM, output, self.width(input)?)?;
        self.record(Norm { weight }, launch, &[input], &[output])
    }

    /// [`KernelBuilder::rmsnorm_layer`] and then [`KernelBuilder::linear_layer`].
    ///
    /// # Errors
    /// [`PersistentError::Layer`] for sizes that do not fit.
    pub fn rmsnorm_linear_layer(
        &mut self,
        input: TensorId,
        weight_norm: TensorId,
        weight_linear: TensorId,
        output: TensorId,
        launch: LaunchDims,
    ) -> Result<(), PersistentError> {
        self.check_norm(NORM_LINEAR, input, weight_norm)?;
        self.check_linear(NORM_LINEAR, input, weight_linear, output)?;
        self.record(NormLinear { norm: weight_norm, linear: weight_linear }, launch, &[input], &[output])
    }

    fn check_norm(&self, layer: &'static str, input: TensorId, weight: TensorId) -> Result<(), PersistentError> {
        let (width, of) = (self.width(input)?, self.of(weight)?);
        if of.tensor.dims[..] == [width] || of.tensor.dims[..] == [1, width] {
            return Ok(());
        }
        let why = format!("`{}` is {:?}, {width} elements are wanted", of.name, of.tensor.dims);
        Err(PersistentError::Layer { layer, why })
    }

    /// Whether a tensor has rows of `width`.
    pub(super) fn check_width(&self, layer: &'static str, id: TensorId, width: u32) -> Result<(), PersistentError> {
        let of = self.of(id)?;
        if of.width() == width {
            return Ok(());
        }
        let why = format!("`{}` is {:?}, rows of {width} elements are wanted", of.name, of.tensor.dims);
        Err(PersistentError::Layer { layer, why })
    }
}

fn norm(e: &mut LayerEmitter<'_>, weight: TensorId) -> Result<ValueId, PersistentError> {
    let (x, w) = (e.read(0)?, e.vector(weight)?);
    // Its weight was checked to be one row.
    let width = e.of(weight)?.tensor.dims.last().copied().unwrap_or(1);
    e.op("norm", RmsNorm { eps: F32(e.declared.config.rms_norm_eps), width, unit_offset: false }, &[x, w])
}

impl Layer for Norm {
    fn method(&self) -> &'static str {
        NORM
    }

    fn row_by_row(&self) -> bool {
        true
    }

    fn emit(&self, e: &mut LayerEmitter<'_>) -> Result<Vec<LayerOutput>, PersistentError> {
        Ok(vec![LayerOutput::One(norm(e, self.weight)?)])
    }
}

impl Layer for NormLinear {
    fn method(&self) -> &'static str {
        NORM_LINEAR
    }

    fn row_by_row(&self) -> bool {
        true
    }

    fn emit(&self, e: &mut LayerEmitter<'_>) -> Result<Vec<LayerOutput>, PersistentError> {
        let x = norm(e, self.norm)?;
        Ok(vec![matmul(e, x, self.linear)?])
    }
}
