//! `allreduce_layer`: the sum over ranks, in their order: the same bytes whether they run in one process or in several.

use crate::builder::KernelBuilder;
use crate::emit::{LayerEmitter, LayerOutput};
use crate::error::PersistentError;
use crate::grid::LaunchDims;
use crate::layer::Layer;
use crate::tensor::TensorId;
use yirage_ir::expr::Func;
use yirage_ir::op::Map;

pub(crate) const ALLREDUCE: &str = "allreduce_layer";

#[derive(Debug)]
struct AllReduce;

impl KernelBuilder {
    /// The sum of `input` over all ranks, added in their order: of one rank `input` itself. `buffer` is `[ranks, rows, width]`.
    /// [`KernelBuilder::of_ranks`] joins ranks of one process; of ranks that are processes each gets the parts of all.
    ///
    /// # Errors
    /// [`PersistentError::Layer`] for sizes that do not fit, and a buffer of another number of ranks than `world_size`.
    pub fn allreduce_layer(
        &mut self,
        input: TensorId,
        buffer: TensorId,
        output: TensorId,
        launch: LaunchDims,
    ) -> Result<(), PersistentError> {
        let (of, ranks) = (self.of(buffer)?, self.declared.config.world_size);
        if of.tensor.dims.len() != 3 || of.tensor.dims[0] != ranks {
            let (name, dims) = (&of.name, &of.tensor.dims);
            let why = format!("`{name}` is {dims:?}: [ranks, rows, width] is wanted, and world_size is {ranks}");
            return Err(PersistentError::Layer { layer: ALLREDUCE, why });
        }
        self.check_width(ALLREDUCE, output, self.width(input)?)?;
        self.record(AllReduce, launch, &[input], &[output])
    }
}

impl Layer for AllReduce {
    fn method(&self) -> &'static str {
        ALLREDUCE
    }

    fn row_by_row(&self) -> bool {
        true
    }

    fn emit(&self, e: &mut LayerEmitter<'_>) -> Result<Vec<LayerOutput>, PersistentError> {
        let parts = e.of_all_ranks()?;
        let (&first, others) = match parts.split_first() {
            Some((_, [])) | None => return Ok(vec![e.same(0)?]),
            Some(split) => split,
        };
        let sum = others.iter().try_fold(first, |sum, &part| e.op("sum", Map::of(Func::Add), &[sum, part]))?;
        Ok(vec![LayerOutput::One(sum)])
    }
}
