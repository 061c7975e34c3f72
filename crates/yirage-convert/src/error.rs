//! What goes wrong when model files are written.

use std::path::PathBuf;
use yirage_model::ModelError;
use yirage_model::tokenizer::TokenizerError;

/// Why a file was not written. Nothing is left of it then.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConvertError {
    /// The file that is read is not sound.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// A tokenizer that is not sound, or that GGUF metadata cannot state.
    #[error(transparent)]
    Tokenizer(#[from] TokenizerError),
    /// A tokenizer that makes other tokens once it is read from the GGUF file.
    #[error(
        "{file}: GGUF metadata cannot state this tokenizer: {text:?} would be the tokens {written:?} instead of {read:?}; nothing was written, and the model runs as it is"
    )]
    OtherTokens {
        /// The tokenizer's file.
        file: String,
        /// A text.
        text: String,
        /// Its tokens as the model's own tokenizer has them.
        read: Vec<u32>,
        /// Its tokens by the new file.
        written: Vec<u32>,
    },
    /// A model that is no GGUF file.
    #[error("{path}: expected a GGUF file, got a folder; `yirage convert` writes it as one")]
    NotGguf {
        /// The folder.
        path: PathBuf,
    },
    /// A mix that nothing here writes.
    #[error(
        "unknown mix {name:?}: expected one of {known}; formats of less than four bits from tables (IQ1, IQ2, IQ3) and of three values (TQ) are not written"
    )]
    UnknownMix {
        /// What was asked for.
        name: String,
        /// The mixes there are.
        known: String,
    },
    /// A format that nothing here writes.
    #[error("unknown format {name:?}: expected one of {known}; name one of them")]
    UnknownFormat {
        /// What was asked for.
        name: String,
        /// The formats there are.
        known: String,
    },
    /// One file of several.
    #[error("{file}: is part {part} of {of}; expected a single file; join them with `llama-gguf-split --merge`")]
    Split {
        /// The file.
        file: String,
        /// Its number, from 1.
        part: i128,
        /// How many there are.
        of: i128,
    },
    /// A tensor that is quantised already.
    #[error(
        "{file}: tensor {tensor:?} is {found} and would become {wanted}: quantising twice loses more than once; take a \
         file of F32, F16 or BF16, or allow it with --allow-requantize"
    )]
    Requantized {
        /// The file.
        file: String,
        /// The tensor.
        tensor: String,
        /// Its format.
        found: String,
        /// The format it would get.
        wanted: String,
    },
    /// A tensor of a format that nothing here reads.
    #[error(
        "{file}: tensor {tensor:?} is {found}, which is not read here; expected F32, F16, BF16 or a format of `yirage inspect` that is computed as it is"
    )]
    Unreadable {
        /// The file.
        file: String,
        /// The tensor.
        tensor: String,
        /// Its format.
        found: String,
    },
    /// A number that no scale holds.
    #[error("{file}: tensor {tensor:?} has {value} at element {element}; expected finite numbers")]
    NotFinite {
        /// The file.
        file: String,
        /// The tensor.
        tensor: String,
        /// Where, row-major.
        element: u64,
        /// What is there.
        value: f32,
    },
    /// A mix that needs importances, or one whose importances lack a tensor.
    #[error(
        "tensor {tensor:?} becomes {format}, for which {mix} needs importances; give those of the model with --imatrix, or choose a mix with more bits"
    )]
    NeedsImportances {
        /// The mix.
        mix: &'static str,
        /// The tensor.
        tensor: String,
        /// Its format.
        format: String,
    },
    /// Importances of another model.
    #[error(
        "{file}: {tensor:?} has {found} importances; expected {expected}; give those that were made with this model"
    )]
    ImportanceCount {
        /// The file of importances.
        file: String,
        /// The tensor.
        tensor: String,
        /// How many there are.
        found: usize,
        /// How many belong to it.
        expected: u64,
    },
    /// Squares of activations whose sum no f32 holds.
    #[error(
        "{tensor:?}: the squares of its input {column} have the sum {sum:e}; expected a number that f32 holds; run the model in the exact precision, or over another text"
    )]
    ActivationRange {
        /// The tensor.
        tensor: String,
        /// Which of its inputs.
        column: usize,
        /// The sum.
        sum: f64,
    },
    /// A file that holds no importances.
    #[error("{file}: {what}; expected importances as `llama-imatrix` writes them (GGUF)")]
    NoImportances {
        /// The file.
        file: String,
        /// What it lacks.
        what: String,
    },
    /// A model that is a GGUF file already.
    #[error("{path}: is a GGUF file already; `yirage quantize` writes one with other formats")]
    NotSafetensors {
        /// The file.
        path: PathBuf,
    },
    /// A family whose tensors nothing here converts.
    #[error("{file}: model_type {model_type:?} is not converted; expected one of {known}; it runs as it is")]
    UnknownFamily {
        /// The configuration.
        file: String,
        /// The family.
        model_type: String,
        /// The families that are converted.
        known: String,
    },
    /// A tensor that GGUF files have no name for.
    #[error(
        "{file}: tensor {tensor:?} has no name in GGUF files of this family; expected those of the family's published models"
    )]
    UnknownTensor {
        /// The file.
        file: String,
        /// The tensor.
        tensor: String,
    },
    /// Rows of queries or keys that are no whole heads of pairs.
    #[error(
        "{file}: tensor {tensor:?} has {rows} rows; expected {heads} heads of as many rows each, an even number, as config.json says"
    )]
    OddHeads {
        /// The file.
        file: String,
        /// The tensor.
        tensor: String,
        /// Its rows.
        rows: usize,
        /// The heads that they are of.
        heads: usize,
    },
    /// A layer without some of its experts.
    #[error(
        "{file}: layer {layer} has {found} matrices of experts; expected {expected}, three of each; download the model again"
    )]
    ExpertCount {
        /// The file.
        file: String,
        /// The layer.
        layer: u32,
        /// How many there are.
        found: usize,
        /// How many belong to it.
        expected: u64,
    },
    /// An expert that is not like the others of its layer.
    #[error(
        "{file}: tensor {tensor:?} is not the next one of its layer's experts, of one shape and type; download the model again"
    )]
    OddExpert {
        /// The file.
        file: String,
        /// The tensor.
        tensor: String,
    },
    /// A tensor of another number of dimensions.
    #[error("{file}: tensor {tensor:?} has {found} dimensions; expected {expected}; download the model again")]
    Dimensions {
        /// The file.
        file: String,
        /// The tensor.
        tensor: String,
        /// How many it has.
        found: usize,
        /// How many it should have.
        expected: usize,
    },
    /// A number that the new format does not reach.
    #[error(
        "{file}: tensor {tensor:?} has {value} at element {element}, which is beyond what {format} holds; convert with --outtype bf16 or f32"
    )]
    OutOfRange {
        /// The file.
        file: String,
        /// The tensor.
        tensor: String,
        /// Where, row-major in the new tensor.
        element: u64,
        /// What is there.
        value: f32,
        /// The new format.
        format: &'static str,
    },
    /// A model that GGUF metadata cannot state.
    #[error("{file}: GGUF metadata cannot state this model: {what}; nothing was written, and the model runs as it is")]
    NotStated {
        /// The configuration.
        file: String,
        /// What would be otherwise.
        what: String,
    },
    /// The output is there already.
    #[error("{path} is there already; choose another name, or overwrite it with --force")]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// The output could not be written.
    #[error("{path}: cannot be written: {source}")]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

impl ConvertError {
    /// Whether the model is sound, and is only not written in such a file.
    pub fn is_unsupported(&self) -> bool {
        match self {
            ConvertError::Model(e) => {
                matches!(e, ModelError::Unsupported { .. } | ModelError::UnsupportedFormat { .. })
            }
            ConvertError::Tokenizer(e) => e.is_unsupported(),
            ConvertError::NotGguf { .. }
            | ConvertError::NotSafetensors { .. }
            | ConvertError::Unreadable { .. }
            | ConvertError::Split { .. }
            | ConvertError::UnknownFamily { .. }
            | ConvertError::NotStated { .. }
            | ConvertError::OtherTokens { .. } => true,
            _ => false,
        }
    }
}
