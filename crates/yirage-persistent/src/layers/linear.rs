//! `linear_layer`, `splitk_linear_layer` and `linear_with_residual_layer`.

use crate::builder::KernelBuilder;
use crate::emit::{LayerEmitter, LayerOutput};
use crate::error::PersistentError;
use crate::grid::LaunchDims;
use crate::layer::Layer;
use crate::tensor::{TensorId, TensorSource};
use yirage_ir::ValueId;
use yirage_ir::expr::Func;
use yirage_ir::op::{Linear, Map};

const LINEAR: &str = "linear_layer";
const SPLIT_K: &str = "splitk_linear_layer";
const BMM: &str = "linear_bmm_layer";
const RESIDUAL: &str = "linear_with_residual_layer";

#[derive(Debug)]
pub(super) struct LinearLayer {
    pub(super) method: &'static str,
    pub(super) weight: TensorId,
}

/// The matrices of heads, one below the other.
#[derive(Debug)]
struct Bmm {
    weight: TensorId,
    heads: u32,
}

/// Its second read is what the product is added to.
#[derive(Debug)]
pub(super) struct WithResidual {
    pub(super) method: &'static str,
    pub(super) weight: TensorId,
}

impl KernelBuilder {
    /// `output = input * weight^T`: `weight` is `[n, k]`, `input` `[rows, k]`, `output` `[rows, n]`.
    ///
    /// # Errors
    /// [`PersistentError::Layer`] for sizes that do not fit.
    pub fn linear_layer(
        &mut self,
        input: TensorId,
        weight: TensorId,
        output: TensorId,
        launch: LaunchDims,
    ) -> Result<(), PersistentError> {
        self.check_linear(LINEAR, input, weight, output)?;
        self.record(LinearLayer { method: LINEAR, weight }, launch, &[input], &[output])
    }

    /// [`KernelBuilder::linear_layer`]; how the sum is split is the device's decision, and its order is that of every
    /// other product.
    ///
    /// # Errors
    /// As [`KernelBuilder::linear_layer`].
    pub fn splitk_linear_layer(
        &mut self,
        input: TensorId,
        weight: TensorId,
        output: TensorId,
        launch: LaunchDims,
    ) -> Result<(), PersistentError> {
        self.check_linear(SPLIT_K, input, weight, output)?;
        self.record(LinearLayer { method: SPLIT_K, weight }, launch, &[input], &[output])
    }

    /// Each head's rows times its own matrix: `input` is `[rows, heads * k]`, `weight` `[heads, n, k]`, `output`
    /// `[rows, heads * n]`. This is how latent attention carries queries into the compressed space and results out of it.
    ///
    /// # Errors
    /// [`PersistentError::Layer`] for sizes that do not fit.
    pub fn linear_bmm_layer(
        &mut self,
        input: TensorId,
        weight: TensorId,
        output: TensorId,
        launch: LaunchDims,
    ) -> Result<(), PersistentError> {
        let of = self.of(weight)?;
        let [heads, n, k] = of.tensor.dims[..] else {
            let why = format!("`{}` is {:?}, [heads, rows, columns] is wanted", of.name, of.tensor.dims);
            return Err(PersistentError::Layer { layer: BMM, why });
        };
        self.check_width(BMM, input, heads.saturating_mul(k))?;
        self.check_width(BMM, output, heads.saturating_mul(n))?;
        self.record(Bmm { weight, heads }, launch, &[input], &[output])
    }

    /// `output = residual + input * weight^T`.
    ///
    /// # Errors
    /// As [`KernelBuilder::linear_layer`].
    pub fn linear_with_residual_layer(
        &mut self,
        input: TensorId,
        weight: TensorId,
        residual: TensorId,
        output: TensorId,
        launch: LaunchDims,
    ) -> Result<(), PersistentError> {
        self.check_linear(RESIDUAL, input, weight, output)?;
        self.check_width(RESIDUAL, residual, self.width(output)?)?;
        self.record(WithResidual { method: RESIDUAL, weight }, launch, &[input, residual], &[output])
    }

    pub(super) fn check_linear(
        &self,
        layer: &'static str,
        input: TensorId,
        weight: TensorId,
        output: TensorId,
    ) -> Result<(), PersistentError> {
        let [n, k] = self.matrix(layer, weight)?;
        self.check_width(layer, input, k)?;
        self.check_width(layer, output, n)
    }
}

/// `x * weight^T`, part by part where the weight is several.
pub(super) fn matmul(e: &mut LayerEmitter<'_>, x: ValueId, weight: TensorId) -> Result<LayerOutput, PersistentError> {
    let one = |e: &mut LayerEmitter<'_>, weight| {
        let w = e.weight(weight)?;
        e.op("linear", Linear { groups: 1 }, &[x, w])
    };
    match e.of(weight)?.kind.clone() {
        TensorSource::Fused { parts, groups } => {
            let values = parts.into_iter().map(|part| one(e, part)).collect::<Result<_, _>>()?;
            Ok(LayerOutput::Parts { values, groups })
        }
        TensorSource::Attached | TensorSource::New => Ok(LayerOutput::One(one(e, weight)?)),
    }
}

/// `residual + x * weight^T`.
pub(super) fn added(
    e: &mut LayerEmitter<'_>,
    residual: ValueId,
    x: ValueId,
    weight: TensorId,
) -> Result<LayerOutput, PersistentError> {
    let product = matmul(e, x, weight)?;
    let product = e.joined(product)?;
    Ok(LayerOutput::One(e.op("sum", Map::of(Func::Add), &[residual, product])?))
}

impl Layer for LinearLayer {
    fn method(&self) -> &'static str {
        self.method
    }

    fn row_by_row(&self) -> bool {
        true
    }

    fn emit(&self, e: &mut LayerEmitter<'_>) -> Result<Vec<LayerOutput>, PersistentError> {
        let x = e.read(0)?;
        Ok(vec![matmul(e, x, self.weight)?])
    }
}

impl Layer for Bmm {
    fn method(&self) -> &'static str {
        BMM
    }

    fn row_by_row(&self) -> bool {
        true
    }

    fn emit(&self, e: &mut LayerEmitter<'_>) -> Result<Vec<LayerOutput>, PersistentError> {
        let (x, w) = (e.read(0)?, e.stacked(self.weight)?);
        Ok(vec![LayerOutput::One(e.op("bmm", Linear { groups: self.heads }, &[x, w])?)])
    }
}

impl Layer for WithResidual {
    fn method(&self) -> &'static str {
        self.method
    }

    fn emit(&self, e: &mut LayerEmitter<'_>) -> Result<Vec<LayerOutput>, PersistentError> {
        let (x, residual) = (e.read(0)?, e.read(1)?);
        Ok(vec![added(e, residual, x, self.weight)?])
    }
}
