//! Architectures: one file and one line of `ARCHITECTURES` each. A file reads the configuration and emits the model
//! as a device-free [`Graph`], with a binding to stored elements for each weight.
//!
//! Architectures know nothing of devices, layouts, kernels, precision of activations, batches or memory; of the cache
//! they know only which groups of layers keep what per position.
//!
//! # The graph's interface
//! Step inputs: `ids`, `positions`, `seqs` (the row of the block tables) of i32 `[Tokens]`; `rows` of i32 `[Rows]`, the token
//! rows whose logits are wanted; and for each cache group g `slots.g` of i32 `[Tokens]` (block times 32 plus the place
//! in it) and `table.g` of i32 `[Seqs, Blocks]`. States: `kv.l` for each layer l, typed as one block of 32 positions.
//! Output: `logits` of f32 `[Rows, vocab]`.
//!
//! Recurrent layers are a cache group too, without `slots.g`: entry b of a row of `table.g` is the block that holds their
//! states after the latest computed position of positions 32b to 32b + 31. Their states are `state.l` and more, of f32.
//!
//! Adapters that stand beside a model's products need the step input `lora.scales` of f32 `[Tokens, width]`.
//!
//! A model whose prompts may have rows of embeddings in the place of tokens has the step inputs `given` of f32
//! `[Tokens, width]` and `is_given` of f32 `[Tokens, 1]`: 1 where a token's row counts, 0 where its id does.
//!
//! An MTP head ([`build_mtp_head`]) has the step input [`PREVIOUS_HIDDEN`] of f32 `[Tokens, width]`, and behind its logits
//! the output `hidden` of f32 `[Rows, width]`, which is what that input is of the position behind.
//!
//! Encoders keep nothing: they have no cache group, the step input `types` of i32 `[Tokens]` (which of two texts a token
//! belongs to), and another output, which [`ModelOutput`] says.

mod altup;
mod attention;
mod bert;
mod cohere;
mod cohere2;
mod decoder;
mod deepseek_moe;
mod deepseek_v2;
mod deepseek_v3;
mod deepseek_v32;
mod delta_net;
mod emit;
mod ernie4_5;
mod exaone4;
mod experts;
mod ffn;
mod frequencies;
mod gemma;
mod gemma2;
mod gemma3;
mod gemma3n;
mod gemma4;
mod glm;
mod glm4;
mod glm4moe;
mod gpt2;
mod gptneox;
mod gptoss;
mod granite;
mod granitemoe;
mod granitemoehybrid;
mod hunyuan;
mod key_bias;
mod key_sharing;
mod layers;
mod lfm2;
mod llama;
mod llama4;
mod low_rank;
mod mamba2;
mod mamba2_mixer;
mod matmul_inputs;
mod minimax_m2;
mod mistral;
mod mixtral;
mod modernbert;
mod mtp;
mod nemotron_h;
mod normal_quantile;
mod olmo2;
mod olmo3;
mod per_layer_embedding;
mod phi3;
mod qwen2;
mod qwen2moe;
mod qwen3;
mod qwen3moe;
mod qwen3next;
mod recurrent_parts;
mod scoring;
mod seed_oss;
mod short_conv;
mod smollm3;
mod stablelm;
mod stages;
mod starcoder2;
mod step_graph;
mod unused_tensors;
mod vision;

pub use matmul_inputs::{ExpertInput, MatmulInputs, StoredMatmul};
pub use mtp::{PREVIOUS_HIDDEN, mtp_layer};
pub use vision::{PatchGrid, PictureMarkup, VisionModel, build_tower, picture_token};

use crate::checkpoint::Checkpoint;
use crate::config::{ConfigSource, RawConfig};
use crate::error::ModelError;
use crate::lora::LoraAdapter;
use crate::rope;
use crate::weights::WeightBinding;
use emit::ModelBuilder;
pub use low_rank::LORA_SCALES;
pub use stages::PipelineStage;
pub use step_graph::{KvCacheInputs, StepGraph, StepGraphBuilder};
use yirage_ir::{Format, Graph};

/// What the caller decides about a model's graph.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BuildOptions {
    /// Format of the cache: F32, F16, BF16 or Q8_0.
    pub kv: Format,
    /// Positions of a block of the cache, at least 1.
    pub kv_block: u32,
    /// Positions that the tables of the rotary embedding cover: the longest sequence that will be computed.
    pub context: u32,
    /// Whether the wanted rows after the final norm, f32 `[Rows, width]`, are an output beside the logits.
    pub hidden: bool,
    /// Whether a step may give rows of embeddings in the place of tokens' own.
    pub embedded: bool,
    /// Whether the rows of all tokens after the final norm, f32 `[Tokens, width]`, are the last output. An MTP head reads
    /// them ([`build_mtp_head`]).
    pub all_hidden: bool,
}

impl BuildOptions {
    /// Logits of so many positions and nothing else, with a cache of f32 in blocks of 32: for what looks at a model, keeps
    /// nothing, or compares.
    pub const fn plain(context: u32) -> BuildOptions {
        BuildOptions { kv: Format::F32, kv_block: 32, context, hidden: false, embedded: false, all_hidden: false }
    }
}

/// What a group of layers keeps of positions. Layers of one group share block tables.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum KvCacheSpec {
    /// Keys and values of each head.
    Paged {
        /// Heads.
        kv_heads: u32,
        /// Elements of a key.
        k_width: u32,
        /// Elements of a value.
        v_width: u32,
        /// Positions that a token sees, its own included; older blocks may be given back.
        window: Option<u32>,
    },
    /// One compressed row for all heads (latent attention).
    Latent {
        /// Elements from which keys and values are made.
        rank: u32,
        /// Elements of the key that carry the position.
        rope: u32,
    },
    /// A state of all earlier positions together, whatever their number: a block of it stands for a block of positions and
    /// holds what it is after the last of them that is computed. All recurrent layers of a model are of one group.
    Recurrent,
}

impl KvCacheSpec {
    /// Elements of a head's key in a block of the state; 0 where it has no keys.
    pub fn k_width(&self) -> u32 {
        match *self {
            KvCacheSpec::Paged { k_width, .. } => k_width,
            KvCacheSpec::Latent { rank, rope } => rank + rope,
            KvCacheSpec::Recurrent => 0,
        }
    }
}

/// What a model's graph gives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ModelOutput {
    /// `logits` of f32 `[Rows, vocab]`: which token comes next.
    Logits,
    /// The last layer of an encoder, f32 `[Tokens, width]`.
    Hidden {
        /// Elements of a row.
        width: u32,
    },
    /// What an encoder says of whole sequences, f32 `[Rows, labels]`. `rows` are their first tokens.
    Scores {
        /// Elements of a row.
        labels: u32,
    },
}

/// A model, ready to be compiled and loaded.
#[derive(Clone, PartialEq, Debug)]
pub struct Model {
    /// The architecture's name: `model_type` of its configuration.
    pub name: String,
    /// What it computes.
    pub graph: Graph,
    /// What that gives.
    pub output: ModelOutput,
    /// Types of tokens that an encoder tells apart; 0 for models without the step input `types`.
    pub token_types: u32,
    /// Width of the rows that a step may give in the place of tokens' embeddings; none for models without that.
    pub embedded: Option<u32>,
    /// A binding for each weight of the graph, in the graph's order.
    pub weights: Vec<WeightBinding>,
    /// The cache groups; group g has the step inputs `slots.g` and `table.g`.
    pub groups: Vec<KvCacheSpec>,
    /// Each state's name and its group.
    pub kv_cache_group: Vec<(String, usize)>,
    /// The scaling of the rotary embedding by the length of sequences. Such a model has the step inputs `rope.cos` and `rope.sin` of
    /// f32 `[Tokens, rotary / 2]`, as its sequences' frequencies depend on their lengths.
    pub dynamic_rope: Option<rope::Dynamic>,
    /// Whether keys are cached with biases added and no norm after them. Biases may be many times the rest of a key, of
    /// which formats in blocks then keep little.
    pub biased_keys: bool,
    /// Tokens that the model knows; the width of logits.
    pub vocab_size: u32,
    /// The longest context the model was made for.
    pub context: u32,
}

/// What emits a model.
type EmitFn = fn(&mut ModelBuilder<'_>) -> Result<(), ModelError>;

/// An architecture: its `model_type`, whether it is also read from GGUF, and what emits it.
type Architecture = (&'static str, bool, EmitFn);

/// Every architecture: the only list.
const ARCHITECTURES: &[Architecture] = &[
    ("llama", true, llama::emit),
    ("mistral", false, mistral::emit),
    ("qwen2", true, qwen2::emit),
    ("qwen3", true, qwen3::emit),
    ("qwen3_moe", true, qwen3moe::emit),
    ("mixtral", true, mixtral::emit),
    ("gemma2", true, gemma2::emit),
    ("gemma3_text", true, gemma3::emit),
    ("gemma3n_text", false, gemma3n::emit),
    ("gemma4_text", false, gemma4::emit),
    ("phi3", true, phi3::emit),
    ("olmo2", true, olmo2::emit),
    ("smollm3", true, smollm3::emit),
    ("llama4_text", true, llama4::emit),
    ("glm", true, glm::emit),
    ("glm4", true, glm4::emit),
    ("gpt2", false, gpt2::emit),
    ("gpt_neox", false, gptneox::emit),
    ("gpt_oss", true, gptoss::emit),
    ("deepseek_v3", true, deepseek_v3::emit),
    ("kimi_k2", false, deepseek_v3::emit),
    ("deepseek_v32", false, deepseek_v32::emit),
    ("glm_moe_dsa", false, deepseek_v32::emit),
    ("qwen2_moe", true, qwen2moe::emit),
    ("cohere", true, cohere::emit),
    ("cohere2", true, cohere2::emit),
    ("gemma", true, gemma::emit),
    ("olmo3", true, olmo3::emit),
    ("exaone4", true, exaone4::emit),
    ("ernie4_5", true, ernie4_5::emit),
    ("hunyuan_v1_dense", true, hunyuan::emit),
    ("granite", true, granite::emit),
    ("granitemoe", true, granitemoe::emit),
    ("glm4_moe", true, glm4moe::emit),
    ("deepseek_v2", true, deepseek_v2::emit),
    ("glm4_moe_lite", false, deepseek_v3::emit),
    ("ministral", false, mistral::emit),
    ("seed_oss", true, seed_oss::emit),
    ("starcoder2", true, starcoder2::emit),
    ("stablelm", true, stablelm::emit),
    ("lfm2", true, lfm2::emit),
    ("lfm2_moe", true, lfm2::emit_moe),
    ("granitemoehybrid", true, granitemoehybrid::emit),
    ("mamba2", true, mamba2::emit),
    ("qwen3_next", true, qwen3next::emit),
    ("qwen3_5_text", true, qwen3next::emit_dense_3_5),
    ("qwen3_5_moe_text", true, qwen3next::emit_moe_3_5),
    ("nemotron_h", true, nemotron_h::emit),
    ("ministral3", true, mistral::emit),
    ("minimax_m2", true, minimax_m2::emit),
    ("ernie4_5_moe", true, ernie4_5::emit_moe),
    ("hunyuan_v1_moe", false, hunyuan::emit_moe),
    ("bert", false, bert::emit),
    ("modernbert", false, modernbert::emit),
    ("roberta", false, bert::emit_roberta),
    ("xlm-roberta", false, bert::emit_xlm_roberta),
];

/// Whether an architecture reads whole texts and generates none.
pub fn is_encoder(model_type: &str) -> bool {
    matches!(model_type, "bert" | "modernbert" | "roberta" | "xlm-roberta")
}

/// The graph and weight bindings of a checkpoint's model.
///
/// # Errors
/// [`ModelError::Unsupported`] for architectures and features that are not known, naming them;
/// [`ModelError::MissingTensor`], [`ModelError::UnusedTensors`], [`ModelError::UnsupportedFormat`] and [`ModelError::Config`]
/// for files whose tensors and configuration do not fit together.
pub fn build(checkpoint: &Checkpoint, config: &RawConfig, options: BuildOptions) -> Result<Model, ModelError> {
    build_with_adapters(checkpoint, config, options, &[])
}

/// The same with adapters beside its products. Such a model has the step input [`LORA_SCALES`] of f32 `[Tokens, width]`,
/// of [`LoraLayout`](crate::lora::LoraLayout) for these adapters.
///
/// # Errors
/// As [`build`]; an adapter that does not fit the model ([`LoraAdapter::targets`]), or that can only be merged into it.
pub fn build_with_adapters(
    checkpoint: &Checkpoint,
    config: &RawConfig,
    options: BuildOptions,
    adapters: &[LoraAdapter],
) -> Result<Model, ModelError> {
    let mut e = ModelBuilder::new(checkpoint, config, options)?;
    if !adapters.is_empty() {
        e.stand_beside(adapters)?;
    }
    emitter(config)?(&mut e)?;
    e.finish()
}

/// The graph and weight bindings of the layer of a checkpoint that predicts one token further ([`mtp_layer`]).
///
/// # Errors
/// [`ModelError::Unsupported`] for a checkpoint without one, and an architecture whose layers cannot be emitted alone;
/// and as [`build`].
pub fn build_mtp_head(checkpoint: &Checkpoint, config: &RawConfig, options: BuildOptions) -> Result<Model, ModelError> {
    let layer = mtp_layer(checkpoint, config)?.ok_or_else(|| mtp::no_head(config))?;
    let options = BuildOptions { hidden: false, embedded: false, all_hidden: false, ..options };
    let mut e = ModelBuilder::new(checkpoint, config, options)?;
    e.only_mtp_head(layer);
    emitter(config)?(&mut e)?;
    e.finish()
}

/// What emits the model that a configuration describes.
fn emitter(config: &RawConfig) -> Result<EmitFn, ModelError> {
    let name = config.model_type()?;
    let gguf = config.source() == ConfigSource::Gguf;
    let Some((_, _, emit)) = ARCHITECTURES.iter().find(|a| a.0 == name && (a.1 || !gguf)) else {
        let known: Vec<&str> = ARCHITECTURES.iter().filter(|a| a.1 || !gguf).map(|a| a.0).collect();
        let container = if gguf { "GGUF" } else { "safetensors" };
        return Err(ModelError::Unsupported {
            what: format!("the architecture {name:?}"),
            why: format!("{}: from {container} files these are known: {}", config.file(), known.join(", ")),
        });
    };
    config.check_supported()?;
    Ok(*emit)
}
