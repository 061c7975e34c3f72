//! How a client wants tokens chosen: the fields that all protocols share, over the model's own suggestions.

use super::samplers::{SAMPLERS, read_samplers, unread};
use crate::error::ApiError;
use crate::fields::{FieldSpec, Fields, honoured, ignored, refused, wrong};
use crate::limits::{MAX_CHOICES, MAX_STOPS};
use crate::models::adapter_scales;
use serde_json::Value;
use yirage_engine::sampling::SamplingParams;
use yirage_model::GenerationConfig;

const SIZE: &str = r#"{"type":["integer","null"],"minimum":0}"#;
const IDS: &str = r#"{"type":["array","null"],"items":{"type":"integer","minimum":0}}"#;

/// The fields that [`GenerationParams::read`] takes.
pub(crate) const SAMPLING: &[FieldSpec] = &[
    honoured("temperature", r#"{"type":["number","null"],"minimum":0,"maximum":100}"#),
    honoured("top_p", r#"{"type":["number","null"],"exclusiveMinimum":0,"maximum":1}"#),
    honoured("top_k", r#"{"type":["integer","null"],"minimum":-1}"#),
    honoured("min_p", r#"{"type":["number","null"],"minimum":0,"maximum":1}"#),
    honoured("seed", r#"{"type":["integer","null"]}"#),
    honoured("presence_penalty", r#"{"type":["number","null"],"minimum":-2,"maximum":2}"#),
    honoured("frequency_penalty", r#"{"type":["number","null"],"minimum":-2,"maximum":2}"#),
    honoured("repetition_penalty", r#"{"type":["number","null"],"minimum":0.01,"maximum":100}"#),
    honoured("repeat_penalty", r#"{"type":["number","null"],"minimum":0.01,"maximum":100}"#),
    honoured(
        "logit_bias",
        r#"{"anyOf":[{"type":["object","null"],"additionalProperties":{"type":"number","minimum":-100,"maximum":100}},
            {"type":"array","items":{"type":"array","prefixItems":[{"type":"integer","minimum":0},
            {"anyOf":[{"type":"number","minimum":-100,"maximum":100},{"const":false}]}],"minItems":2,"maxItems":2}}]}"#,
    ),
    honoured("stop", r#"{"anyOf":[{"type":["string","null"]},{"type":"array","items":{"type":"string"}}]}"#),
    honoured("stop_token_ids", IDS),
    honoured("allowed_token_ids", IDS),
    honoured("ignore_eos", r#"{"type":["boolean","null"]}"#),
    honoured("min_tokens", SIZE),
    honoured("n", r#"{"type":["integer","null"],"minimum":1,"maximum":128}"#),
    honoured("cache_salt", r#"{"type":["string","null"]}"#),
    honoured("cache_prompt", r#"{"type":["boolean","null"]}"#),
    honoured(
        "lora",
        r#"{"type":["array","null"],"items":{"type":"object","required":["id"],"properties":{"id":{"type":"integer","minimum":0},
            "scale":{"type":["number","null"]}}}}"#,
    ),
    refused("priority", "requests of all clients take turns", &["0"]),
    refused("skip_special_tokens", "special tokens are never text; ask for token ids", &["true"]),
    ignored("spaces_between_special_tokens", r#"{"type":"boolean"}"#),
    refused("include_stop_str_in_output", "a stop string is never part of the text", &["false"]),
    refused("truncate_prompt_tokens", "prompts are never cut; shorten it", &[]),
    refused("use_beam_search", "tokens are sampled one by one", &["false"]),
    refused("length_penalty", "there is no beam search", &["1", "1.0"]),
    refused("bad_words", "give logit_bias for single tokens", &["[]"]),
];

/// Tokens wanted, and how.
#[derive(Clone, Debug)]
pub(crate) struct GenerationParams {
    pub(crate) sampling: SamplingParams,
    pub(crate) max_tokens: Option<u32>,
    pub(crate) min_tokens: u32,
    pub(crate) stops: Vec<String>,
    pub(crate) stop_ids: Vec<u32>,
    pub(crate) allowed: Option<Vec<u32>>,
    pub(crate) ignore_ends: bool,
    /// Answers to each prompt.
    pub(crate) n: u32,
    pub(crate) prompt_logprobs: Option<u32>,
    pub(crate) cache_salt: String,
    pub(crate) cache_prompt: bool,
    /// Adapters by their numbers, with scales; none is what the server has set.
    pub(crate) lora: Option<Vec<(usize, f32)>>,
    /// Fields that were sent and that the samplers asked for do not read.
    pub(crate) unread: Vec<String>,
}

impl GenerationParams {
    /// What the model suggests, and a seed that was drawn.
    pub(crate) fn suggested(model: &GenerationConfig, seed: u64) -> GenerationParams {
        let number = |of: Option<f64>, usual: f32| of.map_or(usual, |x| x as f32);
        let greedy = model.do_sample == Some(false);
        let sampling = SamplingParams {
            temperature: if greedy { 0.0 } else { number(model.temperature, 1.0) },
            top_p: number(model.top_p, 1.0),
            top_k: model.top_k.unwrap_or(0),
            min_p: number(model.min_p, 0.0),
            repetition_penalty: number(model.repetition_penalty, 1.0),
            seed,
            ..SamplingParams::default()
        };
        GenerationParams {
            sampling,
            max_tokens: None,
            min_tokens: 0,
            stops: Vec::new(),
            stop_ids: Vec::new(),
            allowed: None,
            ignore_ends: false,
            n: 1,
            prompt_logprobs: None,
            cache_salt: String::new(),
            cache_prompt: true,
            lora: None,
            unread: Vec::new(),
        }
    }

    /// What holds where no model suggests anything: for reading a body alone.
    pub(crate) fn unsuggested() -> GenerationParams {
        GenerationParams::suggested(&GenerationConfig::default(), 0)
    }

    /// Takes the fields of [`SAMPLING`] that are there.
    ///
    /// # Errors
    /// A field that makes no sense. Ranges of numbers are checked once more by the engine, against the model.
    pub(crate) fn read(mut self, fields: &mut Fields) -> Result<GenerationParams, ApiError> {
        let sent = fields.numbers_and(SAMPLERS);
        let sampling = &mut self.sampling;
        let numbers = [
            ("temperature", &mut sampling.temperature),
            ("top_p", &mut sampling.top_p),
            ("min_p", &mut sampling.min_p),
            ("presence_penalty", &mut sampling.presence_penalty),
            ("frequency_penalty", &mut sampling.frequency_penalty),
            ("repetition_penalty", &mut sampling.repetition_penalty),
        ];
        for (name, place) in numbers {
            if let Some(value) = fields.number(name)? {
                *place = value;
            }
        }
        // llama.cpp's and LM Studio's name of it.
        if let Some(penalty) = fields.number("repeat_penalty")? {
            sampling.repetition_penalty = penalty;
        }
        if let Some(k) = fields.whole::<i32>("top_k", "a whole number, 0 or -1 for all")? {
            // -1 is vLLM's word for all.
            sampling.top_k = if k == -1 { 0 } else { at_least_zero("top_k", k)? };
        }
        read_samplers(&mut sampling.chain, fields)?;
        self.unread = unread(sampling, &sent);
        // llama.cpp's and vLLM's word for any seed.
        fields.leave_out("seed", &Value::from(-1));
        if let Some(seed) = fields.take("seed") {
            let number = seed.as_u64().or_else(|| seed.as_i64().map(|n| n as u64));
            sampling.seed = number.ok_or_else(|| wrong("seed", "a whole number of 64 bits", &seed))?;
        }
        match fields.take("logit_bias") {
            None => {}
            Some(Value::Object(map)) => {
                for (id, bias) in &map {
                    sampling.logit_bias.extend(one_bias(id, bias)?);
                }
            }
            Some(Value::Array(pairs)) => {
                for pair in &pairs {
                    sampling.logit_bias.extend(pair_of_bias(pair)?);
                }
            }
            Some(other) => return Err(wrong("logit_bias", "an object, or pairs of a token id and its bias", &other)),
        }
        fields.leave_out("stop", &Value::from(""));
        self.stops = fields.texts("stop")?;
        if self.stops.len() > MAX_STOPS {
            return Err(ApiError::field(
                "stop",
                format!("`stop` has {} strings; {MAX_STOPS} are taken", self.stops.len()),
            ));
        }
        self.stop_ids = fields.ids("stop_token_ids")?.unwrap_or_default();
        self.allowed = fields.ids("allowed_token_ids")?;
        self.ignore_ends = fields.switch("ignore_eos")?.unwrap_or(false);
        self.min_tokens = fields.whole("min_tokens", "a whole number")?.unwrap_or(0);
        self.n = fields.whole("n", "a whole number from 1")?.unwrap_or(1);
        if !(1..=MAX_CHOICES as u32).contains(&self.n) {
            return Err(ApiError::field("n", format!("`n` is {}; 1 to {MAX_CHOICES} are supported", self.n)));
        }
        self.cache_salt = fields.text("cache_salt")?.unwrap_or_default();
        self.lora = fields.list("lora")?.map(|list| adapter_scales(list, "lora")).transpose()?;
        self.cache_prompt = fields.switch("cache_prompt")?.unwrap_or(true);
        Ok(self)
    }
}

fn at_least_zero(name: &str, n: i32) -> Result<u32, ApiError> {
    u32::try_from(n).map_err(|_| ApiError::field(name, format!("`{name}` is {n}; it must be 0 or above")))
}

/// A token and its bias as llama.cpp's clients send them, which say `false` for a token that never comes.
fn pair_of_bias(pair: &Value) -> Result<Option<(u32, f32)>, ApiError> {
    let [id, bias] = pair.as_array().map(Vec::as_slice).unwrap_or_default() else {
        return Err(wrong("logit_bias", "an object, or pairs of a token id and its bias", pair));
    };
    let token = id.as_u64().and_then(|id| u32::try_from(id).ok());
    let token = token.ok_or_else(|| wrong("logit_bias", "a token id; `/tokenize` gives those of a text", id))?;
    match bias {
        Value::Bool(false) => Ok(Some((token, f32::MIN))),
        bias => one_bias(&token.to_string(), bias),
    }
}

/// One token and what is added to its logit; none where nothing is.
fn one_bias(id: &str, bias: &Value) -> Result<Option<(u32, f32)>, ApiError> {
    let place = || format!("logit_bias.{id}");
    let bias = bias.as_f64().filter(|bias| (-100.0..=100.0).contains(bias));
    let bias = bias.ok_or_else(|| ApiError::field(place(), "`logit_bias`: expected numbers from -100 to 100"))?;
    if bias == 0.0 {
        return Ok(None);
    }
    let token = id.parse().map_err(|_| ApiError::field("logit_bias", "`logit_bias`: a key is no token id"))?;
    Ok(Some((token, bias as f32)))
}
