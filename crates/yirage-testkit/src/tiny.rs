//! Tiny models of eighteen architectures, with outputs of transformers.
//!
//! `fixtures/tiny/NAME.json` has a model's configuration, the recipe of each tensor and what transformers says of three
//! inputs; `tools/oracle/make_tiny_archs.py` makes them. The weights come from [`crate::weights`].

use crate::{made, safetensors, weights};
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
];

/// Inputs and outputs of a model: `cases` with `ids`, `last_logits`, their `std`, `argmax_each_pos` and `greedy16`.
#[must_use]
pub fn golden(name: &str) -> Value {
    serde_json::from_str(fixture(name)).unwrap()
}

/// The model's folder: config.json, model.safetensors in f32, the settings for generation, and golden.json.
#[must_use]
pub fn model(name: &str) -> PathBuf {
    let of = golden(name);
    let seed = of["seed"].as_u64().unwrap();
    let recipes: Vec<Recipe<'_>> = of["tensors"].as_array().unwrap().iter().map(Recipe::of).collect();
    let tensors: Vec<_> = recipes.iter().map(|r| (r.name, &r.shape[..], r.values(seed))).collect();
    let mut files = vec![
        ("config.json", of["config"].to_string().into_bytes()),
        ("golden.json", fixture(name).as_bytes().to_vec()),
        ("model.safetensors", safetensors::file(&tensors)),
    ];
    if of["generation_config"].is_object() {
        files.push(("generation_config.json", of["generation_config"].to_string().into_bytes()));
    }
    made::folder(name, &files)
}

/// How a tensor is made.
struct Recipe<'a> {
    name: &'a str,
    shape: Vec<usize>,
    base: f32,
    exponent: u8,
}

impl<'a> Recipe<'a> {
    fn of(entry: &'a Value) -> Self {
        Recipe {
            name: entry[0].as_str().unwrap(),
            shape: entry[1].as_array().unwrap().iter().map(|n| n.as_u64().unwrap() as usize).collect(),
            base: entry[2].as_f64().unwrap() as f32,
            exponent: u8::try_from(entry[3].as_u64().unwrap()).unwrap(),
        }
    }

    fn values(&self, seed: u64) -> Vec<f32> {
        weights::values(seed, self.name, self.shape.iter().product(), self.base, self.exponent)
    }
}

#[cfg(test)]
mod tests {
    use super::{NAMES, Recipe, golden};
    use sha2::{Digest, Sha256};

    #[test]
    fn python_made_the_same_bytes_of_every_model() {
        for name in NAMES {
            let of = golden(name);
            let mut hash = Sha256::new();
            for entry in of["tensors"].as_array().unwrap() {
                let values = Recipe::of(entry).values(of["seed"].as_u64().unwrap());
                values.iter().for_each(|x| hash.update(x.to_le_bytes()));
            }
            let hex: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(hex, of["sha256"].as_str().unwrap(), "{name}");
        }
    }
}
