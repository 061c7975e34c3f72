//! Arguments of other packages' calls: taken where they say what holds here anyway, reported where they mean nothing here,
//! and refused where they ask for what does not exist.

use crate::failure::{PyFailure, PyOutcome};
use crate::log::{Level, say};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// A value that an argument may have.
#[derive(Clone, Copy)]
pub(crate) enum ArgumentValue {
    Nothing,
    Flag(bool),
    Number(i64),
    Text(&'static str),
}

/// What is said to any other value.
#[derive(Clone, Copy)]
pub(crate) enum ArgumentReply {
    /// It changes nothing, for this reason.
    Reported(&'static str),
    /// It does not exist, for this reason.
    Refused(&'static str),
}

/// An argument of another package's call.
pub(crate) struct ForeignArgument {
    pub(crate) name: &'static str,
    /// Values that ask for nothing.
    pub(crate) neutral: &'static [ArgumentValue],
    pub(crate) answer: ArgumentReply,
}

impl ArgumentValue {
    fn is(self, given: &Bound<'_, PyAny>) -> bool {
        match self {
            ArgumentValue::Nothing => given.is_none(),
            ArgumentValue::Flag(wanted) => given.extract::<bool>().is_ok_and(|flag| flag == wanted),
            ArgumentValue::Number(wanted) => given.extract::<i64>().is_ok_and(|number| number == wanted),
            ArgumentValue::Text(wanted) => given.extract::<String>().is_ok_and(|text| text == wanted),
        }
    }
}

/// Takes what is left of a call's arguments.
///
/// # Errors
/// `Unsupported` for what does not exist here, and Python's `TypeError` for a name that nobody knows.
pub(crate) fn take(
    py: Python<'_>,
    call: &str,
    known: &[&[ForeignArgument]],
    given: Option<&Bound<'_, PyDict>>,
) -> PyOutcome<()> {
    for (key, value) in given.into_iter().flat_map(|given| given.iter()) {
        let name: String = key.extract()?;
        let Some(of) = known.iter().copied().flatten().find(|of| of.name == name) else {
            let text = format!("{call}() got an unexpected keyword argument '{name}'");
            return Err(PyFailure::Raised(PyTypeError::new_err(text)));
        };
        if of.neutral.iter().any(|neutral| neutral.is(&value)) {
            continue;
        }
        let shown = value.repr()?.to_string();
        match of.answer {
            ArgumentReply::Reported(why) => {
                say(py, Level::Info, &format!("{call}: {name}={shown} changes nothing: {why}"))?
            }
            ArgumentReply::Refused(why) => return Err(PyFailure::unsupported(format!("{call}: {name}={shown}"), why)),
        }
    }
    Ok(())
}

use ArgumentReply::{Refused, Reported};
use ArgumentValue::{Flag, Nothing, Number, Text};

const ONE_DEVICE: &str = "ranks share the layers of a model (tp, or some layers each by pp) and its experts (enable_expert_parallel), and nothing else is spread over them";
const CUDA_GRAPHS: &str = "they are of CUDA graphs, and a plan is recorded at load here";

/// Those of vLLM's `LLM`.
pub(crate) const OF_VLLM: &[ForeignArgument] = &[
    ForeignArgument { name: "data_parallel_size", neutral: &[Number(1)], answer: Refused(ONE_DEVICE) },
    ForeignArgument { name: "distributed_executor_backend", neutral: &[Nothing], answer: Reported(ONE_DEVICE) },
    ForeignArgument {
        name: "dtype",
        neutral: &[Nothing, Text("auto")],
        answer: Reported("weights keep the types of their file; precision says how products are computed"),
    },
    ForeignArgument {
        name: "quantization",
        neutral: &[Nothing],
        answer: Reported("the formats of weights are those of the file, which are read from it"),
    },
    ForeignArgument {
        name: "gpu_memory_utilization",
        neutral: &[Nothing],
        answer: Reported("kv_cache_memory_bytes says how much the cache takes"),
    },
    ForeignArgument { name: "swap_space", neutral: &[Nothing, Number(0)], answer: Reported("nothing is swapped") },
    ForeignArgument {
        name: "cpu_offload_gb",
        neutral: &[Nothing, Number(0)],
        answer: Refused("all weights of a model lie on its device; use a smaller quantisation"),
    },
    ForeignArgument { name: "enforce_eager", neutral: &[Nothing, Flag(false)], answer: Reported(CUDA_GRAPHS) },
    ForeignArgument { name: "max_seq_len_to_capture", neutral: &[Nothing], answer: Reported(CUDA_GRAPHS) },
    ForeignArgument { name: "compilation_config", neutral: &[Nothing], answer: Reported(CUDA_GRAPHS) },
    ForeignArgument {
        name: "disable_custom_all_reduce",
        neutral: &[Nothing, Flag(false)],
        answer: Reported(ONE_DEVICE),
    },
    ForeignArgument {
        name: "trust_remote_code",
        neutral: &[Nothing, Flag(false)],
        answer: Reported("no code of a model's repository is ever run"),
    },
    ForeignArgument {
        name: "tokenizer",
        neutral: &[Nothing],
        answer: Refused("a model's own tokenizer is used; encode with another one and give prompt_token_ids"),
    },
    ForeignArgument {
        name: "tokenizer_mode",
        neutral: &[Nothing, Text("auto")],
        answer: Reported("there is one implementation of tokenizers"),
    },
    ForeignArgument {
        name: "skip_tokenizer_init",
        neutral: &[Nothing, Flag(false)],
        answer: Reported("the tokenizer is loaded beside the weights; detokenize=False makes no text"),
    },
    ForeignArgument {
        name: "load_format",
        neutral: &[Nothing, Text("auto"), Text("safetensors"), Text("gguf")],
        answer: Refused("safetensors and GGUF are read, which the files tell"),
    },
    ForeignArgument {
        name: "download_dir",
        neutral: &[Nothing],
        answer: Refused("models lie in the hub's cache: set HF_HUB_CACHE, or give the path of a folder"),
    },
    ForeignArgument {
        name: "revision",
        neutral: &[Nothing, Text("main")],
        answer: Refused("fetch that revision and give the path of its folder"),
    },
    ForeignArgument {
        name: "hf_overrides",
        neutral: &[Nothing],
        answer: Refused("a model is computed as its config.json says; change a copy of that file"),
    },
    ForeignArgument {
        name: "enable_chunked_prefill",
        neutral: &[Nothing, Flag(true)],
        answer: Reported("prompts are computed in pieces of max_num_batched_tokens, which changes no output"),
    },
    ForeignArgument {
        name: "block_size",
        neutral: &[Nothing, Number(32)],
        answer: Reported("blocks of the cache have 32 positions, which the order of additions follows"),
    },
    ForeignArgument {
        name: "enable_lora",
        neutral: &[Nothing, Flag(false)],
        answer: Refused("no adapters are read yet"),
    },
    ForeignArgument {
        name: "limit_mm_per_prompt",
        neutral: &[Nothing],
        answer: Refused("a prompt has as many pictures as its context has room for"),
    },
    ForeignArgument {
        name: "disable_log_stats",
        neutral: &[Nothing, Flag(true), Flag(false)],
        answer: Reported("none are logged"),
    },
    ForeignArgument { name: "max_logprobs", neutral: &[Nothing], answer: Reported("128 of a token are given at most") },
];

const STATIC_CACHE: &str = "a forward pass has a static cache, and its attention reads it where it lies";

/// Those of InfiniLM's `InferEngine`.
pub(crate) const OF_INFINILM: &[ForeignArgument] = &[
    ForeignArgument {
        name: "enable_graph_compiling",
        neutral: &[Nothing, Flag(true), Flag(false)],
        answer: Reported("every forward pass is compiled, and its plans are kept"),
    },
    ForeignArgument {
        name: "attention_backend",
        neutral: &[Nothing, Text("default"), Text("static-attn")],
        answer: Reported(STATIC_CACHE),
    },
    ForeignArgument {
        name: "use_mla",
        neutral: &[Nothing, Flag(false)],
        answer: Reported("a model with latent attention has a latent cache, which its files tell"),
    },
    ForeignArgument {
        name: "weight_load_mode",
        neutral: &[Nothing, Text("async")],
        answer: Reported("weights are read from mapped files, piece by piece"),
    },
    ForeignArgument {
        name: "moe_ep_backend",
        neutral: &[Nothing, Text("disabled")],
        answer: Reported(
            "moe_ep_size says whether ranks have experts of their own; what they give each other is the device's",
        ),
    },
    ForeignArgument {
        name: "use_legacy_moe",
        neutral: &[Nothing, Flag(false)],
        answer: Reported("there is one implementation of experts"),
    },
    ForeignArgument {
        name: "pre_transpose",
        neutral: &[Nothing, Flag(false)],
        answer: Reported("weights are repacked for the device's kernels at load"),
    },
];

/// Those of its `forward`.
pub(crate) const OF_FORWARD: &[ForeignArgument] = &[
    ForeignArgument {
        name: "input_offsets",
        neutral: &[Nothing],
        answer: Refused("rows of a call have one length; their offsets follow"),
    },
    ForeignArgument {
        name: "cu_seqlens",
        neutral: &[Nothing],
        answer: Refused("rows of a call have one length; their offsets follow"),
    },
    ForeignArgument {
        name: "block_tables",
        neutral: &[Nothing],
        answer: Refused("row i has the blocks of sequence i, by a static cache"),
    },
    ForeignArgument {
        name: "slot_mapping",
        neutral: &[Nothing],
        answer: Refused("row i has the blocks of sequence i, by a static cache"),
    },
    ForeignArgument { name: "pixel_values", neutral: &[Nothing], answer: Refused("models of images are not read") },
    ForeignArgument { name: "image_bound", neutral: &[Nothing], answer: Refused("models of images are not read") },
    ForeignArgument { name: "tgt_sizes", neutral: &[Nothing], answer: Refused("models of images are not read") },
];

/// Those of Mirage's `PersistentKernel`.
pub(crate) const OF_MIRAGE: &[ForeignArgument] = &[ForeignArgument {
    name: "use_cutlass_kernel",
    neutral: &[Nothing],
    answer: Reported("kernels are the device's own, chosen by the compiler"),
}];

const MEMORY: &str = "memory is taken as weights, cache and plans need it; max_num_pages says how much the cache has";
const THREADS: &str = "num_workers says how many threads of a CPU there are";
const PRECISION: &str = "precision says how products are computed, 'fast' or 'exact'";
const SAME_KERNELS: &str = "kernels are the device's own, which a compiled kernel always has";

/// Those of the settings that YiRage's `backend_utils` makes and its files have.
pub(crate) const OF_YIRAGE: &[ForeignArgument] = &[
    ForeignArgument { name: "memory_pool_size_mb", neutral: &[Nothing], answer: Reported(MEMORY) },
    ForeignArgument { name: "use_mixed_precision", neutral: &[Nothing], answer: Reported(PRECISION) },
    ForeignArgument { name: "optimize_for_inference", neutral: &[Nothing, Flag(true)], answer: Reported(SAME_KERNELS) },
    ForeignArgument { name: "use_unified_memory", neutral: &[Nothing], answer: Reported(MEMORY) },
    ForeignArgument { name: "use_openmp", neutral: &[Nothing], answer: Reported(THREADS) },
    ForeignArgument { name: "openmp_threads", neutral: &[Nothing], answer: Reported(THREADS) },
    ForeignArgument { name: "use_blas", neutral: &[Nothing], answer: Reported(SAME_KERNELS) },
];

/// Those of the call of Mirage's `PersistentKernel`.
pub(crate) const OF_LAUNCH: &[ForeignArgument] = &[
    ForeignArgument { name: "stream", neutral: &[Nothing], answer: Reported(NO_STREAMS) },
    ForeignArgument { name: "default_stream", neutral: &[Nothing], answer: Reported(NO_STREAMS) },
];

const NO_STREAMS: &str = "a call returns when its requests have ended";
