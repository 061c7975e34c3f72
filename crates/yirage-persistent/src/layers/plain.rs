//! `identity_layer` and `elementwise_add_layer`.

use crate::builder::KernelBuilder;
use crate::emit::{LayerEmitter, LayerOutput};
use crate::error::PersistentError;
use crate::grid::LaunchDims;
use crate::layer::Layer;
use crate::tensor::TensorId;
use yirage_ir::expr::Func;
use yirage_ir::op::Map;

const IDENTITY: &str = "identity_layer";
const ADD: &str = "elementwise_add_layer";

#[derive(Debug)]
struct IdentityLayer;

#[derive(Debug)]
struct Add;

impl KernelBuilder {
    /// `output = input`. `dependent` is a tensor that must have been written before; the order of layers says so already.
    ///
    /// # Errors
    /// [`PersistentError::Layer`] for sizes that do not fit.
    pub fn identity_layer(
        &mut self,
        input: TensorId,
        output: TensorId,
        dependent: Option<TensorId>,
        launch: LaunchDims,
    ) -> Result<(), PersistentError> {
        self.check_width(IDENTITY, output, self.width(input)?)?;
        dependent.map_or(Ok(()), |id| self.of(id).map(|_| ()))?;
        self.record(IdentityLayer, launch, &[input], &[output])
    }

    /// `output = input_a + input_b`.
    ///
    /// # Errors
    /// [`PersistentError::Layer`] for sizes that do not fit.
    pub fn elementwise_add_layer(
        &mut self,
        input_a: TensorId,
        input_b: TensorId,
        output: TensorId,
        launch: LaunchDims,
    ) -> Result<(), PersistentError> {
        let width = self.width(output)?;
        self.check_width(ADD, input_a, width)?;
        self.check_width(ADD, input_b, width)?;
        self.record(Add, launch, &[input_a, input_b], &[output])
    }
}

impl Layer for IdentityLayer {
    fn method(&self) -> &'static str {
        IDENTITY
    }

    fn row_by_row(&self) -> bool {
        true
    }

    fn emit(&self, e: &mut LayerEmitter<'_>) -> Result<Vec<LayerOutput>, PersistentError> {
        Ok(vec![e.same(0)?])
    }
}

impl Layer for Add {
    fn method(&self) -> &'static str {
        ADD
    }

    fn emit(&self, e: &mut LayerEmitter<'_>) -> Result<Vec<LayerOutput>, PersistentError> {
        let (a, b) = (e.read(0)?, e.read(1)?);
        Ok(vec![LayerOutput::One(e.op("sum", Map::of(Func::Add), &[a, b])?)])
    }
}
