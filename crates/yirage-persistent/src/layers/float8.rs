//! Layers of 8-bit floats: `quantize_fp8_layer`, `linear_fp8_layer` and those of experts.
//!
//! No device here computes with 8-bit floats. Weights are widened when they are loaded, with their scales, and activations are
//! not rounded: what these layers give is nearer to what was meant than what a GPU gives, and it is told.

use super::experts::{Down, Gates};
use super::linear::{LinearLayer, WithResidual};
use crate::builder::KernelBuilder;
use crate::elements::KernelDType;
use crate::emit::{LayerEmitter, LayerOutput};
use crate::error::PersistentError;
use crate::grid::LaunchDims;
use crate::layer::Layer;
use crate::notice::KernelNotice;
use crate::tensor::TensorId;

const QUANTIZE: &str = "quantize_fp8_layer";
const LINEAR: &str = "linear_fp8_layer";
const RESIDUAL: &str = "linear_fp8_with_residual_layer";
const W13: &str = "moe_w13_fp8_layer";
const W2: &str = "moe_w2_fp8_layer";

#[derive(Debug)]
struct QuantizeLayer;

impl KernelBuilder {
    /// `output` stands for `input` and `scale` for its scales, which only layers of 8-bit floats read. Nothing is rounded.
    ///
    /// # Errors
    /// [`PersistentError::Layer`] for sizes that do not fit.
    pub fn quantize_fp8_layer(
        &mut self,
        input: TensorId,
        [output, scale]: [TensorId; 2],
        launch: LaunchDims,
    ) -> Result<(), PersistentError> {
        self.check_width(QUANTIZE, output, self.width(input)?)?;
        self.notices.tell(KernelNotice::Float8);
        self.record_of(QuantizeLayer, launch, &[input], &[output, scale], &[input, output])
    }

    /// `output = input * weight^T`. `input` are the two outputs of one [`KernelBuilder::quantize_fp8_layer`]; `weight` is
    /// `[n, k]` of E4M3 and its scales: floats `[n / 128, k / 128]` or `[n, k / 128]`, rounded up, or int32 `[n, k / 512]`
    /// with four exponents E8M0 in each.
    ///
    /// # Errors
    /// [`PersistentError::Layer`] for sizes that do not fit, inputs that were not quantised and weights of another type; at
    /// compilation [`PersistentError::Tensor`] for scales of another size and elements that are no numbers.
    pub fn linear_fp8_layer(
        &mut self,
        input: [TensorId; 2],
        weight: [TensorId; 2],
        output: TensorId,
        launch: LaunchDims,
    ) -> Result<(), PersistentError> {
        self.check_linear(LINEAR, input[0], weight[0], output)?;
        self.float8(LINEAR, input, weight)?;
        self.record(LinearLayer { method: LINEAR, weight: weight[0] }, launch, &[input[0]], &[output])
    }

    /// `output = residual + input * weight^T`, as [`KernelBuilder::linear_fp8_layer`].
    ///
    /// # Errors
    /// As [`KernelBuilder::linear_fp8_layer`].
    pub fn linear_fp8_with_residual_layer(
        &mut self,
        input: [TensorId; 2],
        weight: [TensorId; 2],
        residual: TensorId,
        output: TensorId,
        launch: LaunchDims,
    ) -> Result<(), PersistentError> {
        self.check_linear(RESIDUAL, input[0], weight[0], output)?;
        self.check_width(RESIDUAL, residual, self.width(output)?)?;
        self.float8(RESIDUAL, input, weight)?;
        let layer = WithResidual { method: RESIDUAL, weight: weight[0] };
        self.record(layer, launch, &[input[0], residual], &[output])
    }

    /// [`KernelBuilder::moe_w13_linear_layer`] of E4M3: scales have the number of experts before their other sizes.
    ///
    /// # Errors
    /// As [`KernelBuilder::moe_w13_linear_layer`] and [`KernelBuilder::linear_fp8_layer`].
    pub fn moe_w13_fp8_layer(
        &mut self,
        input: [TensorId; 2],
        weight: [TensorId; 2],
        indices: TensorId,
        output: TensorId,
        launch: LaunchDims,
    ) -> Result<(), PersistentError> {
        let top_k = self.check_gates(W13, input[0], weight[0], indices, output)?;
        self.float8(W13, input, weight)?;
        self.record(Gates { method: W13, weight: weight[0], top_k }, launch, &[input[0], indices], &[output])
    }

    /// [`KernelBuilder::moe_w2_linear_layer`] of E4M3.
    ///
    /// # Errors
    /// As [`KernelBuilder::moe_w2_linear_layer`] and [`KernelBuilder::linear_fp8_layer`].
    pub fn moe_w2_fp8_layer(
        &mut self,
        input: [TensorId; 2],
        weight: [TensorId; 2],
        indices: TensorId,
        output: TensorId,
        launch: LaunchDims,
    ) -> Result<(), PersistentError> {
        let top_k = self.check_down(W2, input[0], weight[0], indices, output)?;
        self.float8(W2, input, weight)?;
        self.record(Down { method: W2, weight: weight[0], top_k }, launch, &[input[0], indices], &[output])
    }

    /// Whether these are quantised rows and a weight of 8-bit floats, whose scales are noted.
    fn float8(
        &mut self,
        layer: &'static str,
        [input, scales]: [TensorId; 2],
        [weight, weight_scales]: [TensorId; 2],
    ) -> Result<(), PersistentError> {
        let wrong = |why| Err(PersistentError::Layer { layer, why });
        let writers = [input, scales].map(|id| self.writer(id));
        if writers[0] != writers[1] || writers[0].map(|(method, _)| method) != Some(QUANTIZE) {
            return wrong(format!("its rows and their scales are those that one {QUANTIZE} wrote"));
        }
        let of = self.of(weight)?;
        if of.tensor.elements != KernelDType::Float8E4M3 {
            let (name, found) = (&of.name, of.tensor.elements);
            return wrong(format!("`{name}` is {found}, {} is wanted", KernelDType::Float8E4M3));
        }
        self.notices.tell(KernelNotice::Float8);
        self.declared.scale(weight, weight_scales)
    }
}

impl Layer for QuantizeLayer {
    fn method(&self) -> &'static str {
        QUANTIZE
    }

    fn row_by_row(&self) -> bool {
        true
    }

    fn emit(&self, e: &mut LayerEmitter<'_>) -> Result<Vec<LayerOutput>, PersistentError> {
        Ok(vec![e.same(0)?, LayerOutput::Engine])
    }
}
