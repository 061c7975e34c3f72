//! Arguments of other packages' calls: taken where they say what holds here anyway, reported where they mean nothing here,
//! and refused where they ask for what does not exist.

use crate::failure::{Failure, Outcome};
use crate::log::{Level, say};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// A value that an argument may have.
#[derive(Clone, Copy)]
pub(crate) enum Value {
    Nothing,
    Flag(bool),
    Number(i64),
    Text(&'static str),
}

/// What is said to any other value.
#[derive(Clone, Copy)]
pub(crate) enum Answer {
    /// It changes nothing, for this reason.
    Reported(&'static str),
    /// It does not exist, for this reason.
    Refused(&'static str),
}

/// An argument of another package's call.
pub(crate) struct Foreign {
    pub(crate) name: &'static str,
    /// Values that ask for nothing.
    pub(crate) neutral: &'static [Value],
    pub(crate) answer: Answer,
}

impl Value {
    fn is(self, given: &Bound<'_, PyAny>) -> bool {
        match self {
            Value::Nothing => given.is_none(),
            Value::Flag(wanted) => given.extract::<bool>().is_ok_and(|flag| flag == wanted),
            Value::Number(wanted) => given.extract::<i64>().is_ok_and(|number| number == wanted),
            Value::Text(wanted) => given.extract::<String>().is_ok_and(|text| text == wanted),
        }
    }
}

/// Takes what is left of a call's arguments.
///
/// # Errors
/// `Unsupported` for what does not exist here, and Python's `TypeError` for a name that nobody knows.
pub(crate) fn take(py: Python<'_>, call: &str, known: &[&[Foreign]], given: Option<&Bound<'_, PyDict>>) -> Outcome<()> {
    for (key, value) in given.into_iter().flat_map(|given| given.iter()) {
        let name: String = key.extract()?;
        let Some(of) = known.iter().copied().flatten().find(|of| of.name == name) else {
            let text = format!("{call}() got an unexpected keyword argument '{name}'");
            return Err(Failure::Raised(PyTypeError::new_err(text)));
        };
        if of.neutral.iter().any(|neutral| neutral.is(&value)) {
            continue;
        }
        let shown = value.repr()?.to_string();
        match of.answer {
            Answer::Reported(why) => say(py, Level::Info, &format!("{call}: {name}={shown} changes nothing: {why}"))?,
            Answer::Refused(why) => return Err(Failure::unsupported(format!("{call}: {name}={shown}"), why)),
        }
    }
    Ok(())
}

use Answer::{Refused, Reported};
use Value::{Flag, Nothing, Number, Text};

const ONE_DEVICE: &str = "a model runs on one device; start one process for each device and share requests among them";
const CUDA_GRAPHS: &str = "they are of CUDA graphs, and a plan is recorded at load here";

/// Those of vLLM's `LLM`.
pub(crate) const OF_VLLM: &[Foreign] = &[
    Foreign { name: "tensor_parallel_size", neutral: &[Number(1)], answer: Refused(ONE_DEVICE) },
    Foreign { name: "pipeline_parallel_size", neutral: &[Number(1)], answer: Refused(ONE_DEVICE) },
    Foreign { name: "data_parallel_size", neutral: &[Number(1)], answer: Refused(ONE_DEVICE) },
    Foreign { name: "enable_expert_parallel", neutral: &[Flag(false)], answer: Refused(ONE_DEVICE) },
    Foreign { name: "distributed_executor_backend", neutral: &[Nothing], answer: Reported(ONE_DEVICE) },
    Foreign {
        name: "dtype",
        neutral: &[Nothing, Text("auto")],
        answer: Reported("weights keep the types of their file; precision says how products are computed"),
    },
    Foreign {
        name: "quantization",
        neutral: &[Nothing],
        answer: Reported("the formats of weights are those of the file, which are read from it"),
    },
    Foreign {
        name: "gpu_memory_utilization",
        neutral: &[Nothing],
        answer: Reported("kv_cache_memory_bytes says how much the cache takes"),
    },
    Foreign { name: "swap_space", neutral: &[Nothing, Number(0)], answer: Reported("nothing is swapped") },
    Foreign {
        name: "cpu_offload_gb",
        neutral: &[Nothing, Number(0)],
        answer: Refused("all weights of a model lie on its device; use a smaller quantisation"),
    },
    Foreign { name: "enforce_eager", neutral: &[Nothing, Flag(false)], answer: Reported(CUDA_GRAPHS) },
    Foreign { name: "max_seq_len_to_capture", neutral: &[Nothing], answer: Reported(CUDA_GRAPHS) },
    Foreign { name: "compilation_config", neutral: &[Nothing], answer: Reported(CUDA_GRAPHS) },
    Foreign { name: "disable_custom_all_reduce", neutral: &[Nothing, Flag(false)], answer: Reported(ONE_DEVICE) },
    Foreign {
        name: "trust_remote_code",
        neutral: &[Nothing, Flag(false)],
        answer: Reported("no code of a model's repository is ever run"),
    },
    Foreign {
        name: "tokenizer",
        neutral: &[Nothing],
        answer: Refused("a model's own tokenizer is used; encode with another one and give prompt_token_ids"),
    },
    Foreign {
        name: "tokenizer_mode",
        neutral: &[Nothing, Text("auto")],
        answer: Reported("there is one implementation of tokenizers"),
    },
    Foreign {
        name: "skip_tokenizer_init",
        neutral: &[Nothing, Flag(false)],
        answer: Reported("the tokenizer is loaded beside the weights; detokenize=False makes no text"),
    },
    Foreign {
        name: "load_format",
        neutral: &[Nothing, Text("auto"), Text("safetensors"), Text("gguf")],
        answer: Refused("safetensors and GGUF are read, which the files tell"),
    },
    Foreign {
        name: "download_dir",
        neutral: &[Nothing],
        answer: Refused("models lie in the hub's cache: set HF_HUB_CACHE, or give the path of a folder"),
    },
    Foreign {
        name: "revision",
        neutral: &[Nothing, Text("main")],
        answer: Refused("fetch that revision and give the path of its folder"),
    },
    Foreign {
        name: "hf_overrides",
        neutral: &[Nothing],
        answer: Refused("a model is computed as its config.json says; change a copy of that file"),
    },
    Foreign {
        name: "enable_chunked_prefill",
        neutral: &[Nothing, Flag(true)],
        answer: Reported("prompts are computed in pieces of max_num_batched_tokens, which changes no output"),
    },
    Foreign {
        name: "block_size",
        neutral: &[Nothing, Number(32)],
        answer: Reported("blocks of the cache have 32 positions, which the order of additions follows"),
    },
    Foreign { name: "enable_lora", neutral: &[Nothing, Flag(false)], answer: Refused("no adapters are read yet") },
    Foreign { name: "limit_mm_per_prompt", neutral: &[Nothing], answer: Refused("models of images are not read") },
    Foreign {
        name: "disable_log_stats",
        neutral: &[Nothing, Flag(true), Flag(false)],
        answer: Reported("none are logged"),
    },
    Foreign { name: "max_logprobs", neutral: &[Nothing], answer: Reported("128 of a token are given at most") },
];

const STATIC_CACHE: &str = "a forward pass has a static cache, and its attention reads it where it lies";

/// Those of InfiniLM's `InferEngine`.
pub(crate) const OF_INFINILM: &[Foreign] = &[
    Foreign {
        name: "enable_graph_compiling",
        neutral: &[Nothing, Flag(true), Flag(false)],
        answer: Reported("every forward pass is compiled, and its plans are kept"),
    },
    Foreign {
        name: "attention_backend",
        neutral: &[Nothing, Text("default"), Text("static-attn")],
        answer: Reported(STATIC_CACHE),
    },
    Foreign {
        name: "use_mla",
        neutral: &[Nothing, Flag(false)],
        answer: Reported("a model with latent attention has a latent cache, which its files tell"),
    },
    Foreign {
        name: "weight_load_mode",
        neutral: &[Nothing, Text("async")],
        answer: Reported("weights are read from mapped files, piece by piece"),
    },
    Foreign { name: "moe_ep_backend", neutral: &[Nothing, Text("disabled")], answer: Refused(ONE_DEVICE) },
    Foreign { name: "moe_ep_size", neutral: &[Nothing, Number(1)], answer: Refused(ONE_DEVICE) },
    Foreign {
        name: "use_legacy_moe",
        neutral: &[Nothing, Flag(false)],
        answer: Reported("there is one implementation of experts"),
    },
    Foreign {
        name: "pre_transpose",
        neutral: &[Nothing, Flag(false)],
        answer: Reported("weights are repacked for the device's kernels at load"),
    },
];

/// Those of its `forward`.
pub(crate) const OF_FORWARD: &[Foreign] = &[
    Foreign {
        name: "input_offsets",
        neutral: &[Nothing],
        answer: Refused("rows of a call have one length; their offsets follow"),
    },
    Foreign {
        name: "cu_seqlens",
        neutral: &[Nothing],
        answer: Refused("rows of a call have one length; their offsets follow"),
    },
    Foreign {
        name: "block_tables",
        neutral: &[Nothing],
        answer: Refused("row i has the blocks of sequence i, by a static cache"),
    },
    Foreign {
        name: "slot_mapping",
        neutral: &[Nothing],
        answer: Refused("row i has the blocks of sequence i, by a static cache"),
    },
    Foreign { name: "pixel_values", neutral: &[Nothing], answer: Refused("models of images are not read") },
    Foreign { name: "image_bound", neutral: &[Nothing], answer: Refused("models of images are not read") },
    Foreign { name: "tgt_sizes", neutral: &[Nothing], answer: Refused("models of images are not read") },
];

/// Those of Mirage's `PersistentKernel`.
pub(crate) const OF_MIRAGE: &[Foreign] = &[Foreign {
    name: "use_cutlass_kernel",
    neutral: &[Nothing],
    answer: Reported("kernels are the device's own, chosen by the compiler"),
}];

const MEMORY: &str = "memory is taken as weights, cache and plans need it; max_num_pages says how much the cache has";
const THREADS: &str = "num_workers says how many threads of a CPU there are";
const PRECISION: &str = "precision says how products are computed, 'fast' or 'exact'";
const SAME_KERNELS: &str = "kernels are the device's own, which a compiled kernel always has";

/// Those of the settings that YiRage's `backend_utils` makes and its files have.
pub(crate) const OF_YIRAGE: &[Foreign] = &[
    Foreign { name: "memory_pool_size_mb", neutral: &[Nothing], answer: Reported(MEMORY) },
    Foreign { name: "use_mixed_precision", neutral: &[Nothing], answer: Reported(PRECISION) },
    Foreign { name: "optimize_for_inference", neutral: &[Nothing, Flag(true)], answer: Reported(SAME_KERNELS) },
    Foreign { name: "use_unified_memory", neutral: &[Nothing], answer: Reported(MEMORY) },
    Foreign { name: "use_openmp", neutral: &[Nothing], answer: Reported(THREADS) },
    Foreign { name: "openmp_threads", neutral: &[Nothing], answer: Reported(THREADS) },
    Foreign { name: "use_blas", neutral: &[Nothing], answer: Reported(SAME_KERNELS) },
];

/// Those of the call of Mirage's `PersistentKernel`.
pub(crate) const OF_LAUNCH: &[Foreign] = &[
    Foreign { name: "stream", neutral: &[Nothing], answer: Reported(NO_STREAMS) },
    Foreign { name: "default_stream", neutral: &[Nothing], answer: Reported(NO_STREAMS) },
];

const NO_STREAMS: &str = "a call returns when its requests have ended";
