//! How tokens are chosen, by the names and defaults of vLLM.

use crate::failure::{Class, PyFailure, PyOutcome};
use crate::numbers::{UnsignedNumber, all_within, kind, maybe, within};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use std::collections::BTreeMap;
use yirage_engine::sampling::{
    DrySettings, DynamicTemperature, MirostatSettings, SamplerChain, SamplerStage, SamplingParams as Sampling,
    XtcSettings,
};
use yirage_model::GenerationConfig;

/// How many tokens are generated, how they are chosen, and what ends them. Names and defaults are vLLM's.
///
/// Raises:
///     RequestError: a value out of its range. It is a ``ValueError``.
#[pyclass(name = "SamplingParams", get_all, set_all, from_py_object, module = "yirage")]
#[derive(Clone, Debug)]
pub(crate) struct PySamplingParams {
    /// Answers to each prompt.
    n: u32,
    /// -2 to 2: subtracted from the logit of each token that the answer has.
    presence_penalty: f32,
    /// -2 to 2: subtracted once for each time that the answer has the token.
    frequency_penalty: f32,
    /// 0.01 to 100: divides logits of tokens that prompt or answer have; 1 does nothing.
    repetition_penalty: f32,
    /// Divides the logits; 0 takes the likeliest token.
    temperature: f32,
    /// The fewest likeliest tokens that reach this share are kept; above 0, at most 1.
    top_p: f32,
    /// So many likeliest tokens are kept; 0 and -1 keep all.
    top_k: i64,
    /// Tokens below this share of the likeliest one's probability are dropped; 0 to 1.
    min_p: f32,
    /// What is drawn follows from it; ``None`` is a seed of the model's, another one for each request.
    seed: Option<u64>,
    /// Texts that end the answer.
    stop: Vec<String>,
    /// Tokens that end the answer.
    stop_token_ids: Vec<u32>,
    /// Whether the model's own ends do not end the answer.
    ignore_eos: bool,
    /// New tokens at most; ``None`` is as many as fit.
    max_tokens: Option<u32>,
    /// New tokens at least.
    min_tokens: u32,
    /// Log-probabilities of so many likeliest tokens, and of the one that was chosen.
    logprobs: Option<u32>,
    /// The same of the prompt's tokens.
    prompt_logprobs: Option<u32>,
    /// Whether text is made of the tokens.
    detokenize: bool,
    /// Whether control tokens are left out of the text.
    skip_special_tokens: bool,
    /// Whether the text has the stop text that ended it.
    include_stop_str_in_output: bool,
    /// Texts that are never completed.
    bad_words: Vec<String>,
    /// The only tokens that are chosen.
    allowed_token_ids: Option<Vec<u32>>,
    /// Added to the logits of these tokens.
    logit_bias: Option<BTreeMap<u32, f32>>,
    /// Samplers and their order, by llama.cpp's names; ``None`` is its own order where one of those below is asked for.
    samplers: Option<Vec<String>>,
    /// Factor of the penalty on what would go on with a repetition; 0 is none.
    dry_multiplier: f32,
    /// Each further repeated token multiplies the penalty by this.
    dry_base: f32,
    /// Repeated tokens that cost nothing.
    dry_allowed_length: u32,
    /// Last tokens that are looked at; -1 looks at all.
    dry_penalty_last_n: i64,
    /// Texts over which no repetition goes.
    dry_sequence_breakers: Vec<String>,
    /// How often the likeliest tokens are dropped, all above the threshold but the last of them.
    xtc_probability: f32,
    /// That threshold; above 0.5 drops nothing.
    xtc_threshold: f32,
    /// The tokens whose surprise is nearest to the expected one are kept, up to this share; 1 keeps all.
    typical_p: f32,
    /// Logits within so many standard deviations of the largest are kept; 0 and below keep all.
    top_n_sigma: f32,
    /// The temperature follows the entropy, within this much of itself.
    dynatemp_range: f32,
    /// Power of the entropy's share of the largest possible one.
    dynatemp_exponent: f32,
    /// 1 and 2 hold the surprise at a target, in the place of every limit; 0 does not.
    mirostat: u32,
    /// The target, in bits.
    mirostat_tau: f32,
    /// How fast mirostat's limit follows; 0 to 1.
    mirostat_eta: f32,
}

/// Whole numbers of a request, and texts: one, several, or none.
fn count<T: UnsignedNumber>(given: &Bound<'_, PyAny>) -> PyResult<T> {
    within(given, Class::Request)
}

fn maybe_count<T: UnsignedNumber>(given: &Bound<'_, PyAny>) -> PyResult<Option<T>> {
    maybe(given, count)
}

fn tokens(given: &Bound<'_, PyAny>) -> PyResult<Option<Vec<u32>>> {
    maybe(given, |given| all_within(given, Class::Request))
}

fn biases(given: &Bound<'_, PyAny>) -> PyResult<Option<BTreeMap<u32, f32>>> {
    if given.is_none() {
        return Ok(None);
    }
    let of: BTreeMap<i64, f32> = given.extract()?;
    let one = |(token, bias): (i64, f32)| {
        let wrong = |_| format!("logit_bias: token {token} is given: a token's id from 0 on is wanted");
        Ok((u32::try_from(token).map_err(|e| PyFailure::Ours(Class::Request, wrong(e)))?, bias))
    };
    of.into_iter().map(one).collect::<PyOutcome<_>>().map(Some).map_err(PyErr::from)
}

fn texts(given: &Bound<'_, PyAny>) -> PyResult<Vec<String>> {
    if given.is_none() {
        return Ok(Vec::new());
    }
    if let Ok(one) = given.extract::<String>() {
        return Ok(vec![one]);
    }
    let wrong =
        |_| PyTypeError::new_err(format!("a `{}` is given: a text, or a list of texts, is wanted", kind(given)));
    given.extract().map_err(wrong)
}

#[pymethods]
impl PySamplingParams {
    #[new]
    #[pyo3(signature = (n = 1, presence_penalty = 0.0, frequency_penalty = 0.0, repetition_penalty = 1.0,
        temperature = 1.0, top_p = 1.0, top_k = 0, min_p = 0.0, seed = None, stop = Vec::new(), stop_token_ids = None,
        ignore_eos = false, max_tokens = Some(16), min_tokens = 0, logprobs = None, prompt_logprobs = None,
        detokenize = true, skip_special_tokens = true, include_stop_str_in_output = false, bad_words = Vec::new(),
        allowed_token_ids = None, logit_bias = None, *, samplers = None, dry_multiplier = 0.0, dry_base = 1.75,
        dry_allowed_length = 2, dry_penalty_last_n = 64, dry_sequence_breakers = None, xtc_probability = 0.0,
        xtc_threshold = 0.1, typical_p = 1.0, top_n_sigma = 0.0, dynatemp_range = 0.0, dynatemp_exponent = 1.0,
        mirostat = 0, mirostat_tau = 5.0, mirostat_eta = 0.1))]
    #[expect(clippy::too_many_arguments, reason = "vLLM's")]
    fn new(
        #[pyo3(from_py_with = count)] n: u32,
        presence_penalty: f32,
        frequency_penalty: f32,
        repetition_penalty: f32,
        temperature: f32,
        top_p: f32,
        top_k: i64,
        min_p: f32,
        #[pyo3(from_py_with = maybe_count)] seed: Option<u64>,
        #[pyo3(from_py_with = texts)] stop: Vec<String>,
        #[pyo3(from_py_with = tokens)] stop_token_ids: Option<Vec<u32>>,
        ignore_eos: bool,
        #[pyo3(from_py_with = maybe_count)] max_tokens: Option<u32>,
        #[pyo3(from_py_with = count)] min_tokens: u32,
        #[pyo3(from_py_with = maybe_count)] logprobs: Option<u32>,
        #[pyo3(from_py_with = maybe_count)] prompt_logprobs: Option<u32>,
        detokenize: bool,
        skip_special_tokens: bool,
        include_stop_str_in_output: bool,
        #[pyo3(from_py_with = texts)] bad_words: Vec<String>,
        #[pyo3(from_py_with = tokens)] allowed_token_ids: Option<Vec<u32>>,
        #[pyo3(from_py_with = biases)] logit_bias: Option<BTreeMap<u32, f32>>,
        samplers: Option<Vec<String>>,
        dry_multiplier: f32,
        dry_base: f32,
        #[pyo3(from_py_with = count)] dry_allowed_length: u32,
        dry_penalty_last_n: i64,
        dry_sequence_breakers: Option<Vec<String>>,
        xtc_probability: f32,
        xtc_threshold: f32,
        typical_p: f32,
        top_n_sigma: f32,
        dynatemp_range: f32,
        dynatemp_exponent: f32,
        #[pyo3(from_py_with = count)] mirostat: u32,
        mirostat_tau: f32,
        mirostat_eta: f32,
    ) -> PyOutcome<PySamplingParams> {
        let params = PySamplingParams {
            n,
            presence_penalty,
            frequency_penalty,
            repetition_penalty,
            temperature,
            top_p,
            top_k,
            min_p,
            seed,
            stop,
            stop_token_ids: stop_token_ids.unwrap_or_default(),
            ignore_eos,
            max_tokens,
            min_tokens,
            logprobs,
            prompt_logprobs,
            detokenize,
            skip_special_tokens,
            include_stop_str_in_output,
            bad_words,
            allowed_token_ids,
            logit_bias,
            samplers,
            dry_multiplier,
            dry_base,
            dry_allowed_length,
            dry_penalty_last_n,
            dry_sequence_breakers: dry_sequence_breakers.unwrap_or(DrySettings::default().sequence_breakers),
            xtc_probability,
            xtc_threshold,
            typical_p,
            top_n_sigma,
            dynatemp_range,
            dynatemp_exponent,
            mirostat,
            mirostat_tau,
            mirostat_eta,
        };
        params.check()?;
        Ok(params)
    }

    fn __repr__(&self) -> String {
        format!("{self:?}")
    }
}

impl PySamplingParams {
    /// What vLLM's defaults and the model's makers say.
    pub(super) fn of_model(model: &GenerationConfig) -> PyOutcome<PySamplingParams> {
        let mut params = PySamplingParams::new(
            1,
            0.0,
            0.0,
            1.0,
            1.0,
            1.0,
            0,
            0.0,
            None,
            Vec::new(),
            None,
            false,
            Some(16),
            0,
            None,
            None,
            true,
            true,
            false,
            Vec::new(),
            None,
            None,
            None,
            0.0,
            1.75,
            2,
            64,
            None,
            0.0,
            0.1,
            1.0,
            0.0,
            0.0,
            1.0,
            0,
            5.0,
            0.1,
        )?;
        let greedy = (model.do_sample == Some(false)).then_some(0.0);
        let number = |into: &mut f32, of: Option<f64>| *into = of.map_or(*into, |x| x as f32);
        number(&mut params.temperature, greedy.or(model.temperature));
        number(&mut params.top_p, model.top_p);
        number(&mut params.min_p, model.min_p);
        number(&mut params.repetition_penalty, model.repetition_penalty);
        params.top_k = model.top_k.map_or(0, i64::from);
        Ok(params)
    }

    /// Refuses what no model takes.
    pub(super) fn check(&self) -> PyOutcome<()> {
        if self.n == 0 {
            return Err(PyFailure::Ours(Class::Request, "n=0: one answer or more".into()));
        }
        if self.max_tokens == Some(0) {
            return Err(PyFailure::Ours(Class::Request, "max_tokens=0: one token or more, or None".into()));
        }
        if self.allowed_token_ids.as_ref().is_some_and(Vec::is_empty) {
            let text = "allowed_token_ids=[]: it allows no token; give one at least, or None";
            return Err(PyFailure::Ours(Class::Request, text.into()));
        }
        if let Some(most) = self.max_tokens.filter(|&most| self.min_tokens > most) {
            let text = format!("min_tokens={} is more than max_tokens={most}", self.min_tokens);
            return Err(PyFailure::Ours(Class::Request, text));
        }
        let params = Sampling { logit_bias: Vec::new(), ..self.sampling(0, 0)? };
        let checked = params.checked(u32::MAX as usize);
        checked.map(drop).map_err(|e| PyFailure::Ours(Class::Request, e.to_string()))
    }

    /// As the engine takes it, for a choice of a request.
    pub(crate) fn sampling(&self, seed: u64, choice: u32) -> PyOutcome<Sampling> {
        let top_k = u32::try_from(self.top_k.max(0)).ok().filter(|_| self.top_k >= -1);
        let wrong = || PyFailure::Ours(Class::Request, format!("top_k={}: 0 or more, or -1 for all", self.top_k));
        Ok(Sampling {
            temperature: self.temperature,
            top_k: top_k.ok_or_else(wrong)?,
            top_p: self.top_p,
            min_p: self.min_p,
            presence_penalty: self.presence_penalty,
            frequency_penalty: self.frequency_penalty,
            repetition_penalty: self.repetition_penalty,
            logit_bias: self.logit_bias.iter().flatten().map(|(&token, &bias)| (token, bias)).collect(),
            seed: self.seed.unwrap_or(seed),
            choice,
            logprobs: self.logprobs,
            chain: self.chain()?,
        })
    }

    /// The samplers of the host.
    fn chain(&self) -> PyOutcome<SamplerChain> {
        let order = self.samplers.as_ref().map(|names| SamplerStage::list(names.iter().map(String::as_str)));
        let wrong = |why| PyFailure::Ours(Class::Request, format!("samplers: {why}"));
        let last = self.dry_penalty_last_n;
        let last_tokens = u32::try_from(last).ok();
        if last_tokens.is_none() && last != -1 {
            let text = format!("dry_penalty_last_n={last}: 0 or more, or -1 for all tokens");
            return Err(PyFailure::Ours(Class::Request, text));
        }
        Ok(SamplerChain {
            order: order.transpose().map_err(wrong)?,
            dry: DrySettings {
                multiplier: self.dry_multiplier,
                base: self.dry_base,
                allowed_length: self.dry_allowed_length,
                last_tokens,
                sequence_breakers: self.dry_sequence_breakers.clone(),
                ..DrySettings::default()
            },
            xtc: XtcSettings { probability: self.xtc_probability, threshold: self.xtc_threshold },
            typical_p: self.typical_p,
            // -1 is llama.cpp's word for none.
            top_n_sigma: self.top_n_sigma.max(0.0),
            dynamic_temperature: DynamicTemperature { range: self.dynatemp_range, exponent: self.dynatemp_exponent },
            mirostat: MirostatSettings {
                version: u8::try_from(self.mirostat).unwrap_or(u8::MAX),
                tau: self.mirostat_tau,
                eta: self.mirostat_eta,
            },
        })
    }

    pub(super) fn choices(&self) -> u32 {
        self.n
    }

    pub(super) fn stops(&self) -> &[String] {
        &self.stop
    }

    pub(super) fn stop_ids(&self) -> &[u32] {
        &self.stop_token_ids
    }

    pub(super) fn ignores_ends(&self) -> bool {
        self.ignore_eos
    }

    pub(super) fn tokens(&self) -> (u32, Option<u32>) {
        (self.min_tokens, self.max_tokens)
    }

    pub(super) fn bad_words(&self) -> &[String] {
        &self.bad_words
    }

    pub(super) fn allowed(&self) -> Option<&Vec<u32>> {
        self.allowed_token_ids.as_ref()
    }

    pub(super) fn prompt_logprobs(&self) -> Option<u32> {
        self.prompt_logprobs
    }

    /// Whether there is a text, whether control tokens are left out of it, and whether a stop text is part of it.
    pub(super) fn text(&self) -> (bool, bool, bool) {
        (self.detokenize, self.skip_special_tokens, self.include_stop_str_in_output)
    }
}
