//! A folder of safetensors as one GGUF file: a plan of its metadata and tensors, then tensor after tensor, a piece of rows
//! at a time. What was written is read again before it gets its name, and must be the same model.

mod family;
mod same_model;
mod tensors;
mod values;
mod vocabulary;

pub use tensors::ConvertedTensor;
pub use values::RoundedNumbers;

use crate::atomic_file::AtomicFile;
use crate::error::ConvertError;
use crate::gguf_writer::{TensorEntry, header};
use crate::mix::Mix;
use family::TensorFamily;
use same_model::difference;
use std::collections::BTreeSet;
use std::path::Path;
use tensors::TensorPlanner;
use values::convert_tensor;
use vocabulary::{VocabularyMetadata, same_tokens};
use yirage_ir::Format;
use yirage_model::arch::{BuildOptions, Model, build};
use yirage_model::chat::Templates;
use yirage_model::gguf::GgufValue;
use yirage_model::tokenizer::Tokenizer;
use yirage_model::weights::WeightBinding;
use yirage_model::{Checkpoint, ModelError, RawConfig};

/// Tensors start at multiples of this many bytes: what holds where a file does not say.
const ALIGNMENT: u64 = 32;

/// What may be said beside the model.
#[derive(Clone, Debug, Default)]
pub struct ConvertOptions {
    /// The format of matrices; where absent it is that of the first matrix of 16 bits, or f16.
    pub outtype: Option<Mix>,
    /// `general.name`; where absent it is the folder's.
    pub name: Option<String>,
}

/// A model's tokenizer and chat templates.
#[derive(Clone, Copy, Debug)]
pub struct ModelTexts<'a> {
    /// The tokenizer of its `tokenizer.json`.
    pub tokenizer: &'a Tokenizer,
    /// Its chat templates.
    pub templates: &'a Templates,
}

/// What becomes of a folder.
#[derive(Debug)]
pub struct ConversionPlan<'a> {
    /// The format of matrices.
    pub outtype: Mix,
    /// Metadata, in the order of the file.
    pub entries: Vec<(String, GgufValue)>,
    /// Tensors, in the order of the file.
    pub tensors: Vec<ConvertedTensor>,
    /// Stored tensors that have no place in the file: the model does not read them.
    pub left_out: Vec<String>,
    /// What the file cannot say of the model, in words: other programs take it otherwise.
    pub notes: Vec<String>,
    texts: Option<ModelTexts<'a>>,
    checkpoint: &'a Checkpoint,
    config: RawConfig,
    family: TensorFamily,
    model: Model,
}

/// A file that was written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WrittenGguf {
    /// Its bytes.
    pub bytes: u64,
    /// What rounding did to the numbers of each tensor, in the plan's order.
    pub rounded: Vec<RoundedNumbers>,
}

impl<'a> ConversionPlan<'a> {
    /// Chooses names, formats and metadata. A file without `texts` has no tokenizer.
    ///
    /// # Errors
    /// A checkpoint that is no folder of safetensors, or that is not sound; a family, a tensor or a value of the
    /// configuration that GGUF files do not have.
    pub fn new(
        checkpoint: &'a Checkpoint,
        texts: Option<ModelTexts<'a>>,
        options: &ConvertOptions,
    ) -> Result<ConversionPlan<'a>, ConvertError> {
        let Some(folder) = checkpoint.folder() else {
            return Err(ConvertError::NotSafetensors { path: checkpoint.label().into() });
        };
        let config = RawConfig::load(checkpoint)?;
        let family = TensorFamily::of(&config)?;
        let model = model(checkpoint, &config)?;
        let stated = config.to_gguf()?;
        let outtype = match options.outtype {
            Some(mix) => mix,
            None => sixteen_bits(checkpoint)?,
        };
        let read: BTreeSet<&str> = model.weights.iter().flat_map(WeightBinding::tensors).collect();
        let left_out = checkpoint.tensors().filter(|t| !read.contains(t.name.as_str()));
        let left_out = left_out.map(|t| t.name.clone()).collect();
        let planner = TensorPlanner { checkpoint, config: &config, family, matrices: outtype.ggml_type(), read };
        let tensors = planner.plan(&stated.divisors)?;
        let text = |key: &str, text: &str| (key.to_owned(), GgufValue::String(text.to_owned()));
        let number = |key: &str, n: u32| (key.to_owned(), GgufValue::U32(n));
        let name = options.name.clone().unwrap_or_else(|| folder_name(folder));
        let mut entries = vec![text("general.architecture", stated.architecture), text("general.type", "model")];
        if !name.is_empty() {
            entries.push(text("general.name", &name));
        }
        entries.extend(stated.entries);
        // Experts that are packed make a file of another type, whatever its other matrices are.
        let packed = tensors.iter().any(|tensor| tensor.to.format() == Some(Format::MXFP4));
        let of_file = if packed { Mix::parse("MXFP4_MOE")? } else { outtype };
        entries.push(number("general.file_type", of_file.file_type));
        entries.push(number("general.quantization_version", crate::quantize::QUANTIZATION_VERSION));
        let mut notes = Vec::new();
        if let Some(texts) = &texts {
            let vocabulary = VocabularyMetadata::new(checkpoint, &config, texts)?;
            entries.extend(vocabulary.entries);
            notes = vocabulary.notes;
        }
        Ok(ConversionPlan { outtype, entries, tensors, left_out, notes, texts, checkpoint, config, family, model })
    }

    /// Bytes of all tensors of the file.
    pub fn tensor_bytes(&self) -> u64 {
        self.tensors.iter().map(ConvertedTensor::bytes).sum()
    }

    /// Writes the file. `progress` is told of each tensor before it is written.
    ///
    /// # Errors
    /// Numbers that are not finite, or beyond what the new format holds; a file that is not the same model once it is
    /// read again; an output that is there and not to be overwritten by `force`, or that cannot be written. Nothing is
    /// left of it then.
    pub fn write(
        &self,
        path: &Path,
        force: bool,
        progress: &mut dyn FnMut(&ConvertedTensor),
    ) -> Result<WrittenGguf, ConvertError> {
        let mut out = AtomicFile::create(path, force)?;
        let entries: Vec<(&str, &GgufValue)> = self.entries.iter().map(|(k, v)| (k.as_str(), v)).collect();
        let table: Vec<TensorEntry<'_>> = self.tensors.iter().map(ConvertedTensor::entry).collect();
        out.write(&header(&entries, &table, ALIGNMENT))?;
        let mut rounded = Vec::with_capacity(self.tensors.len());
        for tensor in &self.tensors {
            progress(tensor);
            rounded.push(convert_tensor(self.checkpoint, tensor, &mut |piece| out.write(piece))?);
            out.pad(ALIGNMENT)?;
        }
        // A file that was cut off meanwhile reads as zeros behind its end.
        self.checkpoint.intact()?;
        self.check(out.written_so_far()?)?;
        Ok(WrittenGguf { bytes: out.finish()?, rounded })
    }

    /// Reads the file again, and compares what is computed from it.
    fn check(&self, written: &Path) -> Result<(), ConvertError> {
        let not_stated = |what| ConvertError::NotStated { file: self.config.file().to_owned(), what };
        let checkpoint = Checkpoint::open(written)?;
        let again = RawConfig::load(&checkpoint).and_then(|config| model(&checkpoint, &config));
        // The name of a file that is not kept tells nobody anything.
        let again = again.map_err(|e| match e {
            ModelError::Unsupported { what, .. } => not_stated(format!("the file would ask for {what}")),
            ModelError::MissingTensor { tensor, .. } => not_stated(format!("the file would need a tensor {tensor:?}")),
            ModelError::Config { key, expected, found, .. } => {
                not_stated(format!("the file would say of {key} {found} and need {expected}"))
            }
            other => other.into(),
        })?;
        if let Some(what) = difference(&self.model, &again, self.family) {
            return Err(not_stated(what));
        }
        match (&self.texts, checkpoint.gguf()) {
            (Some(texts), Some(gguf)) => same_tokens(texts.tokenizer, gguf),
            _ => Ok(()),
        }
    }
}

/// The model of a checkpoint for its whole context, with caches that take no part in what is compared.
fn model(checkpoint: &Checkpoint, config: &RawConfig) -> Result<Model, ModelError> {
    let context = config.u32("max_position_embeddings")?;
    let options = BuildOptions::plain(context);
    build(checkpoint, config, options)
}

/// The format of 16 bits that the first matrix of such a format has, else f16.
fn sixteen_bits(checkpoint: &Checkpoint) -> Result<Mix, ConvertError> {
    for tensor in checkpoint.tensors().filter(|tensor| tensor.shape.len() > 1) {
        if let Ok(format @ (Format::F16 | Format::BF16)) = checkpoint.format(tensor) {
            return Mix::of_floats(format.info().name);
        }
    }
    Mix::of_floats("F16")
}

/// What a folder is called.
fn folder_name(folder: &Path) -> String {
    let named = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
    named(folder).or_else(|| named(&folder.canonicalize().ok()?)).unwrap_or_default()
}
