//! Adapters of PEFT: `adapter_config.json` beside `adapter_model.safetensors`.

use super::{LoraDialect, LoraPair, pair, tensor_key, wrong};
use crate::checkpoint::Checkpoint;
use crate::error::ModelError;
use regex::Regex;
use serde_json::{Map, Value};
use std::path::Path;
use yirage_mmap::{is_there, read_bytes};

/// The file of the matrices in a folder.
pub(super) const TENSORS: &str = "adapter_model.safetensors";
/// The settings beside it.
const CONFIG: &str = "adapter_config.json";
/// The longest settings.
const CONFIG_BYTES: u64 = 1 << 20;
/// What PEFT writes before the name of a module.
const ROOT: &str = "base_model.model.";

/// Settings that change what is computed beyond pairs of matrices, where they are neither absent, null, false nor empty.
const NOT_KNOWN: &[&str] = &[
    "modules_to_save",
    "target_parameters",
    "use_dora",
    "lora_bias",
    "use_qalora",
    "layer_replication",
    "trainable_token_indices",
    "alora_invocation_tokens",
    "use_bdlora",
    "arrow_config",
    "velora_config",
    "monteclora_config",
];

/// What is read of the settings.
struct PeftConfig {
    file: String,
    values: Map<String, Value>,
}

/// Reads the adapter whose tensors these are.
pub(super) fn read(tensors: &Checkpoint, folder: &Path) -> Result<(LoraDialect, Vec<LoraPair>), ModelError> {
    let config = PeftConfig::read(folder)?;
    config.check_kind()?;
    let (ranks, alphas) = (config.pattern("rank_pattern")?, config.pattern("alpha_pattern")?);
    let (rank, alpha) = (config.number("r")?, config.number("lora_alpha")?);
    let by_root = config.flag("use_rslora")?;
    let mut pairs = Vec::new();
    for a in tensors.tensors() {
        let Some(module) = a.name.strip_suffix(".lora_A.weight") else {
            check_second(tensors, &a.name)?;
            continue;
        };
        let b = tensors.require(&format!("{module}.lora_B.weight"))?;
        let of = module.strip_prefix(ROOT).unwrap_or(module);
        let pair = pair(tensors, of, [a, b])?;
        let wanted = ranks.of(of).unwrap_or(rank);
        if wanted != pair.rank as f64 {
            let expected = format!("the rank {wanted} that {} states", config.file);
            return Err(wrong(tensors, &tensor_key(a), &expected, &format!("{} rows", pair.rank)));
        }
        let divisor = if by_root { wanted.sqrt() } else { wanted };
        pairs.push(pair.scaled(alphas.of(of).unwrap_or(alpha) / divisor));
    }
    Ok((LoraDialect::Peft { fan_in_fan_out: config.flag("fan_in_fan_out")? }, pairs))
}

/// Refuses a tensor that is no second matrix of a pair.
fn check_second(tensors: &Checkpoint, name: &str) -> Result<(), ModelError> {
    if let Some(module) = name.strip_suffix(".lora_B.weight") {
        return tensors.require(&format!("{module}.lora_A.weight")).map(|_| ());
    }
    Err(ModelError::Unsupported {
        what: format!("the adapter's tensor {name:?}"),
        why: format!(
            "{}: pairs `lora_A.weight` and `lora_B.weight` are known; merge the adapter into the model with PEFT's \
             merge_and_unload, and use that",
            tensors.label()
        ),
    })
}

/// Numbers for the modules whose names fit patterns.
struct NumbersByPattern(Vec<(Regex, f64)>);

impl NumbersByPattern {
    /// The number of the first pattern that is the module's name, or its last parts.
    fn of(&self, module: &str) -> Option<f64> {
        self.0.iter().find(|(pattern, _)| pattern.is_match(module)).map(|(_, number)| *number)
    }
}

impl PeftConfig {
    fn read(folder: &Path) -> Result<PeftConfig, ModelError> {
        let path = folder.join(CONFIG);
        if !is_there(&path)? {
            let why = format!("its settings {} are not there; an adapter of PEFT has them beside it", path.display());
            return Err(ModelError::NotAModel { path: folder.to_path_buf(), why });
        }
        let file = path.display().to_string();
        let values = serde_json::from_slice(&read_bytes(&path, CONFIG_BYTES)?);
        Ok(PeftConfig { values: values.map_err(|e| ModelError::json(&file, &e))?, file })
    }

    fn wrong(&self, key: &str, expected: &str, found: &Value) -> ModelError {
        let (file, key) = (self.file.clone(), key.to_owned());
        ModelError::Config { file, key, expected: expected.to_owned(), found: found.to_string() }
    }

    /// Refuses everything that is not pairs of matrices alone.
    fn check_kind(&self) -> Result<(), ModelError> {
        let unsupported = |what: String| ModelError::Unsupported {
            what,
            why: format!(
                "{}: pairs of low-rank matrices are known; merge the adapter into the model with PEFT's \
                 merge_and_unload, and use that",
                self.file
            ),
        };
        let kind = self.values.get("peft_type").unwrap_or(&Value::Null);
        if kind != "LORA" {
            return Err(unsupported(format!("an adapter of the type {kind}")));
        }
        if let Some(bias) = self.values.get("bias").filter(|bias| !bias.is_null() && *bias != "none") {
            return Err(unsupported(format!("an adapter with `bias` {bias}")));
        }
        let states = |value: &Value| match value {
            Value::Null | Value::Bool(false) => false,
            Value::Array(list) => !list.is_empty(),
            Value::Object(map) => !map.is_empty(),
            _ => true,
        };
        for key in NOT_KNOWN {
            if let Some(value) = self.values.get(*key).filter(|value| states(value)) {
                return Err(unsupported(format!("an adapter with `{key}` {value}")));
            }
        }
        Ok(())
    }

    /// A number above 0.
    fn number(&self, key: &str) -> Result<f64, ModelError> {
        let value = self.values.get(key).unwrap_or(&Value::Null);
        positive(value).ok_or_else(|| self.wrong(key, "a number above 0", value))
    }

    fn flag(&self, key: &str) -> Result<bool, ModelError> {
        match self.values.get(key) {
            None | Some(Value::Null) => Ok(false),
            Some(value) => value.as_bool().ok_or_else(|| self.wrong(key, "true or false", value)),
        }
    }

    fn pattern(&self, key: &str) -> Result<NumbersByPattern, ModelError> {
        let none = Map::new();
        let map = match self.values.get(key) {
            None | Some(Value::Null) => &none,
            Some(Value::Object(map)) => map,
            Some(other) => return Err(self.wrong(key, "an object of patterns and numbers", other)),
        };
        let one = |(pattern, value): (&String, &Value)| {
            let within = format!("{key}.{pattern}");
            let number = positive(value).ok_or_else(|| self.wrong(&within, "a number above 0", value))?;
            let regex = Regex::new(&format!(r"^(?:.*\.)?(?:{pattern})$"));
            let regex = regex.map_err(|e| self.wrong(&within, "a regular expression", &Value::from(e.to_string())))?;
            Ok((regex, number))
        };
        map.iter().map(one).collect::<Result<_, ModelError>>().map(NumbersByPattern)
    }
}

fn positive(value: &Value) -> Option<f64> {
    value.as_f64().filter(|number| *number > 0.0 && number.is_finite())
}
