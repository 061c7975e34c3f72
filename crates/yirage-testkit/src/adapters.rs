//! Low-rank adapters for the tiny models, with outputs of PEFT.
//!
//! `fixtures/lora/NAME.json` has an adapter's settings, names and shapes of its matrices and what PEFT says of three inputs;
//! `tools/oracle/make_lora.py` makes them. The matrices come from [`crate::weights`].

use crate::gguf::GgufWriter;
use crate::{fixtures, safetensors, weights};
use serde_json::Value;
use std::path::PathBuf;

/// All of them.
pub const NAMES: &[&str] = &["llama-patterns", "llama-rslora-head", "qwen2", "gemma2", "phi3-fused", "gpt2-transposed"];

/// Two at once: `adapters` has their names and scales.
pub const TOGETHER: &str = "llama-two";

fn fixture(name: &str) -> &'static str {
    match name {
        "llama-patterns" => include_str!("../fixtures/lora/llama-patterns.json"),
        "llama-rslora-head" => include_str!("../fixtures/lora/llama-rslora-head.json"),
        "llama-two" => include_str!("../fixtures/lora/llama-two.json"),
        "qwen2" => include_str!("../fixtures/lora/qwen2.json"),
        "gemma2" => include_str!("../fixtures/lora/gemma2.json"),
        "phi3-fused" => include_str!("../fixtures/lora/phi3-fused.json"),
        "gpt2-transposed" => include_str!("../fixtures/lora/gpt2-transposed.json"),
        other => panic!("there is no tiny adapter {other}"),
    }
}

/// The tiny `model` that an adapter is for; inputs and outputs: `cases` as those of [`crate::tiny::golden`].
#[must_use]
pub fn golden(name: &str) -> Value {
    serde_json::from_str(fixture(name)).unwrap()
}

/// The matrices of an adapter: name, shape, values.
#[must_use]
pub fn matrices(name: &str) -> Vec<(String, Vec<usize>, Vec<f32>)> {
    let of = golden(name);
    let seed = of["seed"].as_u64().unwrap();
    let matrix = |entry: &Value| {
        let tensor = entry[0].as_str().unwrap().to_owned();
        let shape: Vec<usize> = entry[1].as_array().unwrap().iter().map(|n| n.as_u64().unwrap() as usize).collect();
        let values = weights::values(seed, &format!("{name}:{tensor}"), shape.iter().product(), 0.0, 10);
        (tensor, shape, values)
    };
    of["tensors"].as_array().unwrap().iter().map(matrix).collect()
}

/// The adapter's folder as PEFT writes it, with other matrices or settings.
#[must_use]
pub fn folder(called: &str, config: &Value, matrices: &[(String, Vec<usize>, Vec<f32>)]) -> PathBuf {
    let tensors: Vec<_> = matrices.iter().map(|(n, shape, values)| (n.as_str(), &shape[..], values.clone())).collect();
    let files = [
        ("adapter_config.json", config.to_string().into_bytes()),
        ("adapter_model.safetensors", safetensors::file(&tensors)),
    ];
    fixtures::folder(&format!("lora-{called}"), &files)
}

/// The adapter's folder: adapter_config.json, adapter_model.safetensors in f32.
#[must_use]
pub fn adapter(name: &str) -> PathBuf {
    folder(name, &golden(name)["config"], &matrices(name))
}

/// A GGUF adapter of rank 3 with numbers for matrices of a model: names, rows and columns.
#[must_use]
pub fn gguf(architecture: &str, targets: &[(&str, usize, usize)]) -> Vec<u8> {
    let mut file = GgufWriter::new()
        .str("general.type", "adapter")
        .str("general.architecture", architecture)
        .str("adapter.type", "lora")
        .f32("adapter.lora.alpha", 6.0);
    let value = |i: usize, salt: usize| ((i * 37 + salt * 11) % 64) as f32 / 128.0 - 0.25;
    for (salt, &(name, n, k)) in targets.iter().enumerate() {
        let (a, b) = ((0..3 * k).map(|i| value(i, salt)), (0..3 * n).map(|i| value(i, salt + 7)));
        file = file.f32s(&format!("{name}.lora_a"), &[3, k], &a.collect::<Vec<_>>());
        file = file.f32s(&format!("{name}.lora_b"), &[n, 3], &b.collect::<Vec<_>>());
    }
    file.bytes()
}

#[cfg(test)]
mod tests {
    use super::{NAMES, golden, matrices};
    use sha2::{Digest, Sha256};

    #[test]
    fn python_made_the_same_bytes_of_every_adapter() {
        for name in NAMES {
            let mut hash = Sha256::new();
            for (_, _, values) in matrices(name) {
                values.iter().for_each(|x| hash.update(x.to_le_bytes()));
            }
            let digest: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(digest, golden(name)["sha256"].as_str().unwrap(), "{name}");
        }
    }
}
