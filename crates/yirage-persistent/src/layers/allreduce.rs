//! `allreduce_layer`: the sum over processes, of which there is one.

use crate::builder::KernelBuilder;
use crate::emit::{Emit, Made};
use crate::error::PersistentError;
use crate::grid::Launch;
use crate::layer::Layer;
use crate::tensor::TensorId;

const ALLREDUCE: &str = "allreduce_layer";

#[derive(Debug)]
struct AllReduce;

impl KernelBuilder {
    /// The sum of `input` over all processes: `input` itself, as there is one. `buffer` is `[processes, rows, width]`.
    ///
    /// # Errors
    /// [`PersistentError::Unsupported`] for a buffer of several processes, [`PersistentError::Layer`] for sizes that do
    /// not fit.
    pub fn allreduce_layer(
        &mut self,
        input: TensorId,
        buffer: TensorId,
        output: TensorId,
        launch: Launch,
    ) -> Result<(), PersistentError> {
        let dims = &self.of(buffer)?.given.dims;
        if dims.len() == 3 && dims[0] > 1 {
            return Err(PersistentError::Unsupported {
                what: format!("an allreduce of {} processes", dims[0]),
                why: "a kernel runs in one process, whose sum is its input".into(),
            });
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

    fn emit(&self, e: &mut Emit<'_>) -> Result<Vec<Made>, PersistentError> {
        Ok(vec![e.same(0)?])
    }
}
