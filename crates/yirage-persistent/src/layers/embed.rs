//! `embed_layer`: rows of the token embedding.

use crate::builder::KernelBuilder;
use crate::emit::{LayerEmitter, LayerOutput};
use crate::error::PersistentError;
use crate::grid::LaunchDims;
use crate::layer::Layer;
use crate::tensor::TensorId;
use yirage_ir::F32;
use yirage_ir::op::Embed;

const EMBED: &str = "embed_layer";

#[derive(Debug)]
struct EmbedLayer {
    input: TensorId,
    weight: TensorId,
    rows: u32,
}

impl KernelBuilder {
    /// `output[t] = weight[id]`: `weight` is `[vocabulary, width]`, `output` `[rows, width]`. The ids of a compiled kernel are
    /// the tokens of the step. In test mode they are those that `input` has: an id for each row, `[requests, max_seq_length]`
    /// tokens of which those of the pass are taken, or what a layer wrote; an `input` without elements stands for the tokens
    /// of the metadata. `input_source` is 0 for `tokens` at `step` and 1 for `input_tokens`: the same here.
    ///
    /// # Errors
    /// [`PersistentError::Layer`] for sizes that do not fit and another source.
    pub fn embed_layer(
        &mut self,
        input: TensorId,
        weight: TensorId,
        output: TensorId,
        input_source: u32,
        launch: LaunchDims,
    ) -> Result<(), PersistentError> {
        let wrong = |why| Err(PersistentError::Layer { layer: EMBED, why });
        if input_source > 1 {
            return wrong(format!("input_source is {input_source}: 0 (tokens) or 1 (input_tokens)"));
        }
        let [_, width] = self.matrix(EMBED, weight)?;
        if width != self.width(output)? {
            return wrong(format!("rows of {width} elements do not fill an output of {}", self.width(output)?));
        }
        self.of(input)?;
        // What no layer wrote is read in test mode alone: the ids of a step are the engine's.
        let read = if self.writer(input).is_some() { vec![input] } else { Vec::new() };
        self.record_of(EmbedLayer { input, weight, rows: self.of(output)?.rows() }, launch, &read, &[output], &[output])
    }
}

impl Layer for EmbedLayer {
    fn method(&self) -> &'static str {
        EMBED
    }

    fn emit(&self, e: &mut LayerEmitter<'_>) -> Result<Vec<LayerOutput>, PersistentError> {
        let (table, ids) = (e.weight(self.weight)?, e.ids_of(self.input, self.rows, self.weight)?);
        e.embeds(self.weight)?;
        Ok(vec![LayerOutput::One(e.op("embed", Embed { scale: F32(1.0) }, &[table, ids])?)])
    }
}
