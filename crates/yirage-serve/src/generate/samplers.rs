//! The samplers of llama.cpp that run on the host, by its fields.

use crate::error::ApiError;
use crate::fields::{FieldSpec, Fields, honoured};
use serde_json::Value;
use yirage_engine::sampling::{SamplerChain, SamplerStage, SamplingParams};

const SHARE: &str = r#"{"type":["number","null"],"minimum":0,"maximum":1}"#;
const NUMBER: &str = r#"{"type":["number","null"],"minimum":0,"maximum":100}"#;
const TEXTS: &str = r#"{"type":["array","null"],"items":{"type":"string"}}"#;

/// The fields that [`read_samplers`] takes.
pub(crate) const SAMPLERS: &[FieldSpec] = &[
    honoured("samplers", TEXTS),
    honoured("dry_multiplier", NUMBER),
    honoured("dry_base", r#"{"type":["number","null"],"minimum":1,"maximum":100}"#),
    honoured("dry_allowed_length", r#"{"type":["integer","null"],"minimum":0}"#),
    honoured("dry_penalty_last_n", r#"{"type":["integer","null"],"minimum":-1}"#),
    honoured("dry_sequence_breakers", TEXTS),
    honoured("xtc_probability", SHARE),
    honoured("xtc_threshold", SHARE),
    honoured("typical_p", r#"{"type":["number","null"],"exclusiveMinimum":0,"maximum":1}"#),
    honoured("top_n_sigma", r#"{"type":["number","null"]}"#),
    honoured("dynatemp_range", NUMBER),
    honoured("dynatemp_exponent", NUMBER),
    honoured("mirostat", r#"{"type":["integer","null"],"minimum":0,"maximum":2}"#),
    honoured("mirostat_tau", NUMBER),
    honoured("mirostat_eta", SHARE),
];

/// Samplers of llama.cpp that there are not here: what asks for them is told, and the others are taken.
const ABSENT: [&str; 2] = ["infill", "adaptive_p"];

/// Fields that do nothing while another is 0.
const PARTS: [(&str, &[&str]); 4] = [
    ("dry_multiplier", &["dry_base", "dry_allowed_length", "dry_penalty_last_n", "dry_sequence_breakers"]),
    ("xtc_probability", &["xtc_threshold"]),
    ("dynatemp_range", &["dynatemp_exponent"]),
    ("mirostat", &["mirostat_tau", "mirostat_eta"]),
];

/// Takes the fields of [`SAMPLERS`] that are there.
///
/// # Errors
/// A field that makes no sense. Ranges of numbers are checked once more by the engine.
pub(crate) fn read_samplers(chain: &mut SamplerChain, fields: &mut Fields) -> Result<(), ApiError> {
    if fields.has("samplers") {
        let names = fields.texts("samplers")?;
        let known = names.iter().map(String::as_str).filter(|name| !ABSENT.contains(name));
        chain.order = Some(SamplerStage::list(known).map_err(|why| fields.error("samplers", why))?);
    }
    if fields.has("dry_sequence_breakers") {
        chain.dry.sequence_breakers = fields.texts("dry_sequence_breakers")?;
    }
    if let Some(length) = fields.whole::<u32>("dry_allowed_length", "a whole number from 0")? {
        chain.dry.allowed_length = length;
    }
    if let Some(n) = fields.whole::<i32>("dry_penalty_last_n", "a whole number, -1 for all tokens")? {
        chain.dry.last_tokens = u32::try_from(n).ok();
    }
    read_typical_and_mirostat(chain, fields)?;
    let numbers = [
        ("dry_multiplier", &mut chain.dry.multiplier),
        ("dry_base", &mut chain.dry.base),
        ("xtc_probability", &mut chain.xtc.probability),
        ("xtc_threshold", &mut chain.xtc.threshold),
        ("top_n_sigma", &mut chain.top_n_sigma),
        ("dynatemp_range", &mut chain.dynamic_temperature.range),
        ("dynatemp_exponent", &mut chain.dynamic_temperature.exponent),
    ];
    read_numbers(fields, numbers)?;
    // -1 is llama.cpp's word for none.
    chain.top_n_sigma = chain.top_n_sigma.max(0.0);
    Ok(())
}

/// The fields of `sent` that ask for something which the samplers asked for do not read.
pub(crate) fn unread(sampling: &SamplingParams, sent: &Fields) -> Vec<String> {
    let asked = sampling.chain.asked();
    let parts = PARTS.iter().filter(|(main, _)| !asked.contains(main)).flat_map(|(_, parts)| parts.iter().copied());
    let names = sampling.unused().into_iter().chain(parts);
    let mut names: Vec<String> = names.filter(|name| sent.has(name)).map(str::to_owned).collect();
    let absent = |list: &Vec<Value>| list.iter().any(|name| name.as_str().is_some_and(|name| ABSENT.contains(&name)));
    if sent.peek("samplers").and_then(Value::as_array).is_some_and(absent) && !names.iter().any(|n| n == "samplers") {
        names.push("samplers".into());
    }
    names
}

/// Those of them that ollama has as well.
///
/// # Errors
/// As [`read_samplers`].
pub(crate) fn read_typical_and_mirostat(chain: &mut SamplerChain, fields: &mut Fields) -> Result<(), ApiError> {
    if let Some(version) = fields.whole::<u8>("mirostat", "0, 1 or 2")? {
        chain.mirostat.version = version;
    }
    let numbers = [
        ("typical_p", &mut chain.typical_p),
        ("mirostat_tau", &mut chain.mirostat.tau),
        ("mirostat_eta", &mut chain.mirostat.eta),
    ];
    read_numbers(fields, numbers)
}

fn read_numbers<const N: usize>(fields: &mut Fields, numbers: [(&str, &mut f32); N]) -> Result<(), ApiError> {
    for (name, place) in numbers {
        if let Some(value) = fields.number(name)? {
            *place = value;
        }
    }
    Ok(())
}
