//! How a model runs in an engine.

use super::adapter::EngineAdapter;
use super::cache::CacheSize;
use super::packed::PackedOptions;
use super::speculation::Speculation;
use super::tuning::Tuning;
use std::time::Duration;
use yirage_ir::Format;
use yirage_plan::KernelCapabilities;
use yirage_plan::{ExecutorKind, Precision};
use yirage_plancache::PlanFolder;

/// Options of an engine.
#[derive(Clone, PartialEq, Debug)]
pub struct EngineOptions {
    /// How products are computed.
    pub precision: Precision,
    /// Format of cached keys and values: F32, F16, BF16 or Q8_0 (8 bits and a scale for each 32 elements of a head's key
    /// and value: 0.53 of the memory of BF16). None is F32 for the exact precision, and for models whose
    /// weights are all F32, which thus compute the same in both precisions; else BF16, but F16 on a device that
    /// multiplies F16 and not BF16.
    pub kv: Option<Format>,
    /// Whether ops are fused. Without it each is a step of its own: slower, with the same bytes in the exact precision.
    pub fuse: bool,
    /// The executor of every step; none is the one that measurement chooses, plan by plan. All give the same bytes.
    pub executor: Option<ExecutorKind>,
    /// Positions a sequence may have; none is what the model was made for, at most [`DEFAULT_CONTEXT`].
    pub context: Option<u32>,
    /// Where no context is said: what the model was made for, as far as the cache of one such sequence takes so many bytes
    /// and fits beside the weights; never less than without this.
    pub context_within: Option<u64>,
    /// Sequences that run at once.
    pub max_seqs: u32,
    /// How much the cache holds. A draft model's holds as many sequences of full length besides, at least one.
    pub cache: CacheSize,
    /// Tokens of a step, and of a prefill chunk.
    pub chunk: u32,
    /// How long a step may take in which sequences wait for their next token: prompts take as much of it as measured costs
    /// allow, at least one token. None computes whole chunks. The output is the same.
    pub max_step: Option<Duration>,
    /// Rows of logits of a step; a chunk of a request for all logits is at most this long.
    pub logit_rows: u32,
    /// Whether the cached beginnings of prompts are used again.
    pub prefix_cache: bool,
    /// Whether requests may ask for hidden states. The model then has them as an output.
    pub hidden: bool,
    /// Whether prompts may have rows of embeddings in the place of tokens' own ([`Request::embedded`](crate::Request::embedded)).
    pub embedded: bool,
    /// Whether tokens are guessed and several verified in one step. The output is the same.
    pub speculation: Speculation,
    /// Where repacked weights are kept for the next start; `None` makes them from the model's files each time.
    pub packed: Option<PackedOptions>,
    /// Where compiled plans are kept for the next start, which then proves them instead of compiling; `None` compiles each
    /// time.
    pub plans: Option<PlanFolder>,
    /// How the device's kernels go about products. The bytes are the same.
    pub tuning: Tuning,
    /// Adapters beside the model, of which requests may want different ones.
    pub adapters: Vec<EngineAdapter>,
}

/// The longest context without being asked for.
pub const DEFAULT_CONTEXT: u32 = 4096;

impl Default for EngineOptions {
    fn default() -> Self {
        EngineOptions {
            precision: Precision::Fast,
            kv: None,
            fuse: true,
            executor: None,
            context: None,
            context_within: None,
            max_seqs: 16,
            cache: CacheSize::Sequences(1),
            chunk: 512,
            max_step: None,
            logit_rows: 64,
            prefix_cache: true,
            hidden: false,
            embedded: false,
            speculation: Speculation::default(),
            packed: None,
            plans: None,
            tuning: Tuning::default(),
            adapters: Vec::new(),
        }
    }
}

impl EngineOptions {
    /// How the model's graph is compiled.
    pub fn compiling(&self) -> yirage_compile::CompileOptions {
        yirage_compile::CompileOptions { precision: self.precision, fuse: self.fuse, model: true }
    }

    /// The format of the cache for a model whose weights are all F32, or not, on a device that can do so much.
    pub fn kv_format(&self, weights_f32: bool, device: &KernelCapabilities) -> Format {
        let whole = self.precision == Precision::Exact || weights_f32;
        let half = if device.fp16 && !device.bf16 { Format::F16 } else { Format::BF16 };
        self.kv.unwrap_or(if whole { Format::F32 } else { half })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cache_has_the_format_that_the_device_multiplies() {
        let fast = EngineOptions::default();
        let with = |fp16, bf16| KernelCapabilities { fp16, bf16, ..KernelCapabilities::LEAST };
        let formats = [with(false, false), with(true, false), with(false, true), with(true, true)];
        let halves = [Format::BF16, Format::F16, Format::BF16, Format::BF16];
        assert_eq!(formats.map(|device| fast.kv_format(false, &device)), halves);
        assert_eq!(formats.map(|device| fast.kv_format(true, &device)), [Format::F32; 4]);
        let exact = EngineOptions { precision: Precision::Exact, ..EngineOptions::default() };
        assert_eq!(formats.map(|device| exact.kv_format(false, &device)), [Format::F32; 4]);
        let asked = EngineOptions { kv: Some(Format::BF16), ..EngineOptions::default() };
        assert_eq!(asked.kv_format(false, &with(true, false)), Format::BF16, "what is asked for is used");
    }
}
