//! Tiny models of every architecture, with outputs of transformers.
//!
//! `fixtures/tiny/NAME.json` has a model's configuration, the recipe of each tensor and what transformers says of three
//! inputs; `tools/oracle/make_tiny_archs.py` makes them. The weights come from [`crate::weights`].

use crate::{fixtures, recipe};
use serde_json::Value;
use std::path::PathBuf;

/// Includes the fixture of each name.
macro_rules! fixtures {
    ($($name:literal),+ $(,)?) => {
        /// All of them.
        pub const NAMES: &[&str] = &[$($name),+];

        fn fixture(name: &str) -> &'static str {
            match name {
                $($name => include_str!(concat!("../fixtures/tiny/", $name, ".json")),)+
                other => panic!("there is no tiny model {other}"),
            }
        }
    };
}

fixtures![
    "llama",
    "llama3-rope",
    "mistral-swa",
    "qwen2",
    "qwen3",
    "qwen3moe",
    "mixtral",
    "gemma2",
    "gemma3",
    "phi3",
    "olmo2",
    "gpt2",
    "gptneox",
    "smollm3",
    "gptoss",
    "deepseek-v3",
    "glm",
    "glm4",
    "qwen2moe",
    "cohere",
    "cohere2",
    "gemma",
    "olmo3",
    "exaone4",
    "ernie4-5",
    "hunyuan",
    "granite",
    "granitemoe",
    "glm4moe",
    "deepseek-v2",
    "ministral",
    "seed-oss",
    "starcoder2",
    "stablelm",
    "lfm2",
    "granitemoehybrid",
    "granite-h",
    "mamba2",
    "qwen3next",
    "qwen35",
    "qwen35moe",
    "nemotron-h",
    "nemotron-h-moe",
    "ministral3",
    "minimax-m2",
    "ernie4-5-moe",
    "hunyuan-moe",
    "lfm2-moe",
    "glm4-moe-lite",
    "llama4",
    "gemma4",
    "gemma4-moe",
    "gemma3n",
    "deepseek-v32",
    "glm-moe-dsa",
];

/// Inputs and outputs of a model: `cases` with `ids`, `last_logits`, their `std`, `argmax_each_pos` and `greedy16`.
#[must_use]
pub fn golden(name: &str) -> Value {
    serde_json::from_str(fixture(name)).unwrap()
}

/// Models with layers that read what earlier ones keep or give beside their rows, which are in no pipeline stages.
pub const WHOLE: &[&str] = &["gemma4", "gemma3n"];

/// The models that pipeline stages divide.
pub fn staged() -> impl Iterator<Item = &'static str> {
    NAMES.iter().copied().filter(|name| !WHOLE.contains(name))
}

/// The models with layers of experts.
pub fn mixtures() -> impl Iterator<Item = &'static str> {
    // Some say how many experts there are, and of each layer what it is.
    let has_experts = |config: &Value| {
        let count = ["num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts"];
        let kinds = config["layers_block_type"].as_array();
        kinds.is_none_or(|kinds| kinds.iter().any(|kind| kind == "moe"))
            && count.iter().any(|key| config[key].as_u64().is_some_and(|experts| experts > 0))
    };
    NAMES.iter().copied().filter(move |name| has_experts(&golden(name)["config"]))
}

/// The model's folder: config.json, model.safetensors in f32, the settings for generation, and golden.json.
#[must_use]
pub fn model(name: &str) -> PathBuf {
    let of = golden(name);
    let mut files = vec![
        ("config.json", of["config"].to_string().into_bytes()),
        ("golden.json", fixture(name).as_bytes().to_vec()),
        ("model.safetensors", recipe::checkpoint(&of)),
    ];
    if of["generation_config"].is_object() {
        files.push(("generation_config.json", of["generation_config"].to_string().into_bytes()));
    }
    fixtures::folder(name, &files)
}

#[cfg(test)]
mod tests {
    use super::{NAMES, golden};
    use crate::recipe;

    #[test]
    fn python_made_the_same_bytes_of_every_model() {
        for name in NAMES {
            let of = golden(name);
            assert_eq!(recipe::digest(&of), of["sha256"].as_str().unwrap(), "{name}");
        }
    }
}
