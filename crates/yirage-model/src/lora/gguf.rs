//! Adapters of GGUF: `general.type` is `adapter`, and tensors are called as those they are for, with `.lora_a` and `.lora_b`.

use super::{LoraDialect, LoraPair, pair, wrong};
use crate::checkpoint::Checkpoint;
use crate::error::ModelError;
use crate::gguf::{Gguf, GgufValue};

/// Reads the adapter whose tensors and header these are.
pub(super) fn read(tensors: &Checkpoint, header: &Gguf) -> Result<(LoraDialect, Vec<LoraPair>), ModelError> {
    for (key, expected) in [("general.type", "adapter"), ("adapter.type", "lora")] {
        let found = header.get(key).and_then(GgufValue::as_str);
        if found != Some(expected) {
            return Err(wrong(tensors, key, &format!("{expected:?}"), &format!("{:?}", found.unwrap_or("nothing"))));
        }
    }
    if header.get("adapter.alora.invocation_tokens").is_some() {
        return Err(ModelError::Unsupported {
            what: "an adapter that is used from certain tokens on".into(),
            why: format!("{}: `adapter.alora.invocation_tokens` names them", tensors.label()),
        });
    }
    let Some(architecture) = header.architecture() else {
        return Err(wrong(tensors, "general.architecture", "the model's architecture", "nothing"));
    };
    let alpha = header.get("adapter.lora.alpha").map(|value| (value, value.as_f64()));
    let alpha = match alpha {
        None => 0.0,
        Some((_, Some(alpha))) if alpha.is_finite() => alpha,
        Some((value, _)) => return Err(wrong(tensors, "adapter.lora.alpha", "a finite number", value.type_name())),
    };
    let mut pairs = Vec::new();
    for a in tensors.tensors() {
        let Some(of) = a.name.strip_suffix(".lora_a") else {
            check_second(tensors, &a.name)?;
            continue;
        };
        let pair = pair(tensors, of, [a, tensors.require(&format!("{of}.lora_b"))?])?;
        // Without an alpha the product counts as it is, as in llama.cpp.
        let by = if alpha == 0.0 { 1.0 } else { alpha / pair.rank as f64 };
        pairs.push(pair.scaled(by));
    }
    Ok((LoraDialect::Gguf { architecture: architecture.to_owned() }, pairs))
}

fn check_second(tensors: &Checkpoint, name: &str) -> Result<(), ModelError> {
    match name.strip_suffix(".lora_b") {
        Some(of) => tensors.require(&format!("{of}.lora_a")).map(|_| ()),
        None => Err(ModelError::Unsupported {
            what: format!("the adapter's tensor {name:?}"),
            why: format!("{}: pairs `.lora_a` and `.lora_b` are known", tensors.label()),
        }),
    }
}
