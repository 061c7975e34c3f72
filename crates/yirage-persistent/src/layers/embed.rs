//! `embed_layer`: rows of the token embedding.

use crate::builder::KernelBuilder;
use crate::emit::{Emit, Made};
use crate::error::PersistentError;
use crate::grid::Launch;
use crate::layer::Layer;
use crate::tensor::TensorId;
use yirage_ir::F32;
use yirage_ir::op::Embed;

const EMBED: &str = "embed_layer";

#[derive(Debug)]
struct EmbedLayer {
    weight: TensorId,
}

impl KernelBuilder {
    /// `output[t] = weight[id]`: `weight` is `[vocabulary, width]`, `output` `[rows, width]`. The ids are the tokens of the
    /// step, in test mode those of `input`. `input_source` is 0 for `tokens` at `step` and 1 for `input_tokens`; both are
    /// the tokens of the step here.
    ///
    /// # Errors
    /// [`PersistentError::Layer`] for sizes that do not fit and another source.
    pub fn embed_layer(
        &mut self,
        input: TensorId,
        weight: TensorId,
        output: TensorId,
        input_source: u32,
        launch: Launch,
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
        // What is read is the step's own, so the input is no tensor that a layer must have written.
        self.record(EmbedLayer { weight }, launch, &[], &[output])
    }
}

impl Layer for EmbedLayer {
    fn method(&self) -> &'static str {
        EMBED
    }

    fn emit(&self, e: &mut Emit<'_>) -> Result<Vec<Made>, PersistentError> {
        let (table, ids) = (e.weight(self.weight)?, e.ids()?);
        e.embeds(self.weight)?;
        Ok(vec![Made::One(e.op("embed", Embed { scale: F32(1.0) }, &[table, ids])?)])
    }
}
