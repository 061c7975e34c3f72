//! `LLM`: a model that is loaded, and what it is asked.

use super::answer::RunningChoice;
use super::conversation::no_conversation;
use super::guessing::{Guessing, SpeculativeConfig};
use super::load::{LlmOptions, LoadedLlm};
use super::params::PySamplingParams;
use super::prompt::{TokenizedPrompt, job, prompts};
use super::stream::{LOOK_UP, RequestStream, request_output};
use super::tokenizer::{PyTokenizer, TokenizerSource};
use crate::backends::wanted;
use crate::failure::{Class, PyFailure, PyOutcome};
use crate::numbers::{kind, maybe_whole, whole};
use crate::others::{self, OF_VLLM};
use crate::process;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use yirage_engine::{Embedding, EncoderInput, EngineError};
use yirage_model::config::Pooling;
use yirage_model::tokenizer::FramedTokens;
use yirage_plan::ExpertDivision;
use yirage_ranks::RankRole;
use yirage_session::{ModelHandle, SessionError};

/// Jobs that are open at once for one call: enough that the engine never waits for the next one.
const WINDOW: usize = 256;

/// A model: loaded once, asked by any number of threads.
#[pyclass(name = "LLM", frozen, subclass, module = "yirage")]
pub(crate) struct Llm {
    ready: Mutex<Option<Arc<LoadedLlm>>>,
    seed: u64,
    requests: AtomicU64,
}

/// One request of a call.
struct LlmRequest {
    id: String,
    prompt: TokenizedPrompt,
    params: PySamplingParams,
    seed: u64,
}

impl Llm {
    fn ready(&self) -> PyOutcome<Arc<LoadedLlm>> {
        process::check()?;
        let ready = self.ready.lock().unwrap_or_else(PoisonError::into_inner).clone();
        ready.ok_or_else(|| PyFailure::Ours(Class::Engine, "the model was closed: load it again".into()))
    }

    /// Requests of prompts, with their parameters.
    fn prompt_requests(
        &self,
        model: &ModelHandle,
        prompts: Vec<TokenizedPrompt>,
        params: Option<&Bound<'_, PyAny>>,
    ) -> PyOutcome<Vec<LlmRequest>> {
        let each: Vec<PySamplingParams> = match params.filter(|params| !params.is_none()) {
            None => vec![PySamplingParams::of_model(model.generation())?; prompts.len()],
            Some(given) => match given.extract::<PySamplingParams>() {
                Ok(params) => vec![params; prompts.len()],
                Err(_) => given.extract::<Vec<PySamplingParams>>().map_err(|_| {
                    let text =
                        format!("sampling_params is a `{}`: SamplingParams, or a list of them, is wanted", kind(given));
                    PyFailure::Raised(PyTypeError::new_err(text))
                })?,
            },
        };
        if each.len() != prompts.len() {
            let text =
                format!("{} sampling_params for {} prompts: one for all, or one each", each.len(), prompts.len());
            return Err(PyFailure::Ours(Class::Request, text));
        }
        let one = |(prompt, params): (TokenizedPrompt, PySamplingParams)| {
            params.check()?;
            let number = self.requests.fetch_add(1, Ordering::Relaxed);
            Ok(LlmRequest { id: number.to_string(), prompt, params, seed: self.seed.wrapping_add(number) })
        };
        prompts.into_iter().zip(each).map(one).collect()
    }
}

fn submit(model: &ModelHandle, asked: &LlmRequest, choice: u32) -> PyOutcome<RunningChoice> {
    let job = job(model, &asked.prompt, &asked.params, asked.seed, choice)?;
    Ok(RunningChoice::new(model.submit(job)?, asked.params.clone()))
}

/// A model that continues texts.
fn generates(ready: &LoadedLlm) -> PyOutcome<&ModelHandle> {
    match ready {
        LoadedLlm::Generates(model) => Ok(model),
        LoadedLlm::Encodes(encoder) => Err(PyFailure::unsupported(
            format!("text of {}", encoder.facts().architecture),
            "it is an encoder, which computes whole texts: use embed or score",
        )),
    }
}

/// How many ranks are asked for by an argument that has two names; one where nobody asks.
fn rank_count([short, long]: [&str; 2], [ranks, size]: [Option<u32>; 2]) -> PyOutcome<u32> {
    match (ranks, size) {
        (Some(ranks), Some(size)) if ranks != size => Err(PyFailure::option(format!(
            "{short}={ranks} and {long}={size}: they are the same, and one of them is wanted"
        ))),
        (Some(0), _) | (_, Some(0)) => Err(PyFailure::option(format!("{short}=0: one rank or more"))),
        (ranks, size) => Ok(ranks.or(size).unwrap_or(1)),
    }
}

/// How so many ranks share a model's experts.
fn own_experts(asked: bool, ranks: u32) -> PyOutcome<ExpertDivision> {
    match (asked, ranks) {
        (false, _) => Ok(ExpertDivision::Rows),
        (true, 1) => {
            Err(PyFailure::option("enable_expert_parallel=True: several ranks share experts; say how many by tp"))
        }
        (true, _) => Ok(ExpertDivision::Whole),
    }
}

#[pymethods]
impl Llm {
    /// Loads a model: a file, a folder, a name of the catalogue or of a repository.
    ///
    /// Raises:
    ///     ModelNotFoundError, ModelError, Unsupported, BackendUnavailableError, OptionError
    #[new]
    #[pyo3(signature = (model, *, task = "auto".to_owned(), backend = None, threads = None, precision = "fast".to_owned(),
        max_model_len = None, max_num_seqs = 16, max_num_batched_tokens = None, kv_cache_dtype = "auto".to_owned(),
        kv_cache_memory_bytes = None, enable_prefix_caching = true,
        speculative_config = Some(SpeculativeConfig::Word("auto".to_owned())), variant = None, seed = 0, tp = None, tensor_parallel_size = None,
        enable_expert_parallel = false, pp = None, pipeline_parallel_size = None, lora = None, **others))]
    #[expect(clippy::too_many_arguments, reason = "vLLM's")]
    fn new(
        py: Python<'_>,
        model: std::path::PathBuf,
        task: String,
        backend: Option<Bound<'_, PyAny>>,
        #[pyo3(from_py_with = maybe_whole)] threads: Option<usize>,
        precision: String,
        #[pyo3(from_py_with = maybe_whole)] max_model_len: Option<u32>,
        #[pyo3(from_py_with = whole)] max_num_seqs: u32,
        #[pyo3(from_py_with = maybe_whole)] max_num_batched_tokens: Option<u32>,
        kv_cache_dtype: String,
        #[pyo3(from_py_with = maybe_whole)] kv_cache_memory_bytes: Option<u64>,
        enable_prefix_caching: bool,
        speculative_config: Option<SpeculativeConfig<'_>>,
        variant: Option<String>,
        #[pyo3(from_py_with = whole)] seed: u64,
        #[pyo3(from_py_with = maybe_whole)] tp: Option<u32>,
        #[pyo3(from_py_with = maybe_whole)] tensor_parallel_size: Option<u32>,
        enable_expert_parallel: bool,
        #[pyo3(from_py_with = maybe_whole)] pp: Option<u32>,
        #[pyo3(from_py_with = maybe_whole)] pipeline_parallel_size: Option<u32>,
        lora: Option<Bound<'_, PyAny>>,
        others: Option<Bound<'_, PyDict>>,
    ) -> PyOutcome<Llm> {
        others::take(py, "LLM", &[OF_VLLM], others.as_ref())?;
        let tp = rank_count(["tp", "tensor_parallel_size"], [tp, tensor_parallel_size])?;
        let pp = rank_count(["pp", "pipeline_parallel_size"], [pp, pipeline_parallel_size])?;
        if tp > 1 && pp > 1 {
            let text =
                format!("pp={pp} and tp={tp}: a rank has a part of every layer, or some layers; take one of them");
            return Err(PyFailure::option(text));
        }
        let asked = LlmOptions {
            model: model.to_string_lossy().into_owned(),
            task,
            backend: backend.as_ref().map(wanted).transpose()?,
            threads,
            precision,
            max_model_len,
            max_num_seqs,
            max_num_batched_tokens,
            kv_cache_dtype,
            kv_cache_memory_bytes,
            enable_prefix_caching,
            guessing: Guessing::of(speculative_config)?,
            variant,
            ranks: tp.max(pp),
            role: if pp > 1 { RankRole::Stage } else { RankRole::Shard },
            experts: own_experts(enable_expert_parallel, tp)?,
            lora: lora.as_ref().map(super::lora::adapters).transpose()?.unwrap_or_default(),
        };
        let ready = Mutex::new(Some(Arc::new(asked.load(py)?)));
        Ok(Llm { ready, seed, requests: AtomicU64::new(0) })
    }

    /// Continues prompts: texts, token ids, or dicts with ``prompt`` or ``prompt_token_ids``. Gives a ``RequestOutput``
    /// for each, in their order. ``sampling_params`` are for all, or a list of one each; without them the model's makers'
    /// suggestions hold. ``on_finished`` is called for each request that is done. Ctrl-C ends all of them.
    #[pyo3(name = "_generate", signature = (prompts, sampling_params = None, on_finished = None))]
    fn generate<'py>(
        &self,
        py: Python<'py>,
        prompts: &Bound<'py, PyAny>,
        sampling_params: Option<Bound<'py, PyAny>>,
        on_finished: Option<Bound<'py, PyAny>>,
    ) -> PyOutcome<Bound<'py, PyList>> {
        let ready = self.ready()?;
        let model = generates(&ready)?;
        let given = self::prompts(prompts, model)?;
        let asked = self.prompt_requests(model, given, sampling_params.as_ref())?;
        run(py, &ready, model, &asked, on_finished.as_ref())
    }

    /// Answers a conversation, or each of a list of them.
    #[pyo3(name = "_chat", signature = (messages, sampling_params = None, on_finished = None))]
    fn chat<'py>(
        &self,
        py: Python<'py>,
        messages: &Bound<'py, PyAny>,
        sampling_params: Option<Bound<'py, PyAny>>,
        on_finished: Option<Bound<'py, PyAny>>,
    ) -> PyOutcome<Bound<'py, PyList>> {
        let ready = self.ready()?;
        let model = generates(&ready)?;
        let list = messages.cast::<PyList>().map_err(|_| no_conversation(messages))?;
        let many = list.iter().next().is_some_and(|first| first.is_instance_of::<PyList>());
        let given = if many {
            list.iter().map(|messages| TokenizedPrompt::of_messages(&messages, model)).collect::<PyOutcome<Vec<_>>>()?
        } else {
            vec![TokenizedPrompt::of_messages(messages, model)?]
        };
        let asked = self.prompt_requests(model, given, sampling_params.as_ref())?;
        run(py, &ready, model, &asked, on_finished.as_ref())
    }

    /// One request whose answer is read while it is computed.
    #[pyo3(name = "_stream", signature = (prompt, sampling_params = None, chat = false))]
    fn stream(
        &self,
        py: Python<'_>,
        prompt: &Bound<'_, PyAny>,
        sampling_params: Option<Bound<'_, PyAny>>,
        chat: bool,
    ) -> PyOutcome<RequestStream> {
        let ready = self.ready()?;
        let model = generates(&ready)?;
        let given = if chat { vec![TokenizedPrompt::of_messages(prompt, model)?] } else { prompts(prompt, model)? };
        let mut asked = self.prompt_requests(model, given, sampling_params.as_ref())?;
        let one = asked.pop().filter(|one| asked.is_empty() && one.params.choices() == 1);
        let one = one.ok_or_else(|| PyFailure::Ours(Class::Request, "a stream has one prompt, and n=1".into()))?;
        let running = py.detach(|| submit(model, &one, 0))?;
        Ok(RequestStream::new(ready.clone(), one.id, one.prompt, running))
    }

    /// A vector for each text, as lists of floats.
    #[pyo3(name = "_embed", signature = (prompts, pooling = None, normalize = None))]
    fn embed(
        &self,
        py: Python<'_>,
        prompts: &Bound<'_, PyAny>,
        pooling: Option<&str>,
        normalize: Option<bool>,
    ) -> PyOutcome<Vec<(Vec<u32>, Vec<f32>)>> {
        let ready = self.ready()?;
        let pooling = pooling.map(|name| match name {
            "cls" => Ok(Pooling::Cls),
            "last" => Ok(Pooling::Last),
            "mean" => Ok(Pooling::Mean),
            other => Err(PyFailure::option(format!("pooling={other:?}: 'cls', 'last' or 'mean' is wanted"))),
        });
        let pooling = pooling.transpose()?;
        match &*ready {
            LoadedLlm::Encodes(encoder) => {
                let framed = texts_of(prompts)?;
                let framed = framed.iter().map(|text| encoder.frame(text, None, None));
                let (inputs, ids) = inputs(framed.collect::<Result<Vec<_>, _>>()?);
                let usual = encoder.facts().embedding;
                let how = Embedding {
                    pooling: pooling.unwrap_or(usual.pooling),
                    normalise: normalize.unwrap_or(usual.normalise),
                };
                let rows = py.detach(|| encoder.embed(inputs, how))?;
                Ok(ids.into_iter().zip(rows).collect())
            }
            LoadedLlm::Generates(model) => {
                let how = Embedding { pooling: pooling.unwrap_or(Pooling::Last), normalise: normalize.unwrap_or(true) };
                let given = self::prompts(prompts, model)?;
                if given.iter().any(|prompt| !prompt.pictures.is_empty()) {
                    return Err(PyFailure::unsupported("a vector of pictures", "vectors are made of texts"));
                }
                let mut rows = Vec::with_capacity(given.len());
                for prompt in given {
                    py.check_signals()?;
                    let row = py.detach(|| model.embed(prompt.ids.clone(), how)).map_err(|error| match error {
                        SessionError::Engine(EngineError::NoHiddenStates) => PyFailure::Ours(
                            Class::Request,
                            "embed: the model was loaded to continue texts; load it with task='embed'".into(),
                        ),
                        error => error.into(),
                    })?;
                    rows.push((prompt.ids, row));
                }
                Ok(rows)
            }
        }
    }

    /// How well texts belong together, by a model that reads both: a score a pair.
    #[pyo3(name = "_score")]
    fn score(&self, py: Python<'_>, pairs: Vec<(String, String)>) -> PyOutcome<Vec<(Vec<u32>, Vec<f32>)>> {
        let ready = self.ready()?;
        let LoadedLlm::Encodes(encoder) = &*ready else {
            let why = "it continues texts; scores are made by encoders with labels, such as cross-encoders";
            return Err(PyFailure::unsupported("score of this model", why));
        };
        let framed = pairs.iter().map(|(a, b)| encoder.frame_pair(a, b, None, None));
        let (inputs, ids) = inputs(framed.collect::<Result<Vec<_>, _>>()?);
        let rows = py.detach(|| encoder.score(inputs))?;
        Ok(ids.into_iter().zip(rows).collect())
    }

    /// The model's tokenizer.
    fn get_tokenizer(&self) -> PyOutcome<PyTokenizer> {
        let ready = self.ready()?;
        ready.tokenizer()?;
        Ok(PyTokenizer(TokenizerSource::Model(ready)))
    }

    /// What a request has without parameters: vLLM's defaults, and what the model's makers suggest.
    fn get_default_sampling_params(&self) -> PyOutcome<PySamplingParams> {
        PySamplingParams::of_model(generates(&*self.ready()?)?.generation())
    }

    /// What was loaded.
    #[getter]
    fn model_info<'py>(&self, py: Python<'py>) -> PyOutcome<Bound<'py, PyDict>> {
        let (ready, info) = (self.ready()?, PyDict::new(py));
        match &*ready {
            LoadedLlm::Generates(model) => {
                let facts = model.facts();
                info.set_item("architecture", &facts.architecture)?;
                info.set_item("vocabulary", facts.vocabulary)?;
                info.set_item("max_model_len", facts.context)?;
                info.set_item("kv_cache_dtype", facts.kv.info().name)?;
                info.set_item("weight_bytes", facts.bytes.weights)?;
                info.set_item("kv_cache_bytes", facts.bytes.cache)?;
                info.set_item("variant", facts.variant.as_ref().map(|variant| &variant.text))?;
            }
            LoadedLlm::Encodes(encoder) => {
                let facts = encoder.facts();
                info.set_item("architecture", &facts.architecture)?;
                info.set_item("vocabulary", facts.vocabulary)?;
                info.set_item("max_model_len", facts.longest)?;
                info.set_item("weight_bytes", facts.bytes.weights)?;
                info.set_item("variant", facts.variant.as_ref().map(|variant| &variant.text))?;
            }
        }
        Ok(info)
    }

    /// What the model has done since it was loaded, counted exactly: ``steps``, ``tokens_run``, ``preemptions``; tokens of
    /// prompts that were looked for in the cache, ``prefix_queried``, and found, ``prefix_hit``; tokens that were guessed,
    /// ``drafted``, and right, ``accepted``.
    fn get_stats<'py>(&self, py: Python<'py>) -> PyOutcome<Bound<'py, PyDict>> {
        let ready = self.ready()?;
        let model = generates(&ready)?;
        let stats = py.detach(|| model.between_steps(|engine| engine.stats()))?;
        let found = PyDict::new(py);
        found.set_item("steps", stats.steps)?;
        found.set_item("tokens_run", stats.tokens_run)?;
        found.set_item("preemptions", stats.preemptions)?;
        found.set_item("prefix_queried", stats.prefix_queried)?;
        found.set_item("prefix_hit", stats.prefix_hit)?;
        found.set_item("drafted", stats.drafted)?;
        found.set_item("accepted", stats.accepted)?;
        Ok(found)
    }

    /// Forgets the cached beginnings of prompts.
    fn reset_prefix_cache(&self, py: Python<'_>) -> PyOutcome<()> {
        let ready = self.ready()?;
        let model = generates(&ready)?;
        Ok(py.detach(|| model.reset_cache())?)
    }

    /// Unloads the model, once everything that runs has ended.
    fn close(&self, py: Python<'_>) -> PyOutcome<()> {
        process::check()?;
        let ready = self.ready.lock().unwrap_or_else(PoisonError::into_inner).take();
        py.detach(|| drop(ready));
        Ok(())
    }
}

impl Drop for Llm {
    fn drop(&mut self) {
        let ready = self.ready.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if process::check().is_err() {
            // In a fork there is no thread that could end.
            std::mem::forget(ready);
            return;
        }
        // Its thread may be about to tell Python something, for which it needs Python's lock.
        let mut ready = Some(ready);
        if Python::try_attach(|py| py.detach(|| drop(ready.take()))).is_none() {
            std::mem::forget(ready);
        }
    }
}

fn texts_of(given: &Bound<'_, PyAny>) -> PyOutcome<Vec<String>> {
    if let Ok(text) = given.extract::<String>() {
        return Ok(vec![text]);
    }
    Ok(given.extract::<Vec<String>>()?)
}

fn inputs(framed: Vec<FramedTokens>) -> (Vec<EncoderInput>, Vec<Vec<u32>>) {
    let ids = framed.iter().map(|text| text.ids.clone()).collect();
    (framed.into_iter().map(|text| EncoderInput { ids: text.ids, types: text.types }).collect(), ids)
}

/// Runs requests, all at once as far as the engine takes them, and gives their outputs in order.
fn run<'py>(
    py: Python<'py>,
    ready: &LoadedLlm,
    model: &ModelHandle,
    asked: &[LlmRequest],
    on_finished: Option<&Bound<'py, PyAny>>,
) -> PyOutcome<Bound<'py, PyList>> {
    let mut next = asked.iter().flat_map(|one| (0..one.params.choices()).map(move |choice| (one, choice)));
    let mut open: VecDeque<RunningChoice> = VecDeque::new();
    let outputs = PyList::empty(py);
    for one in asked {
        let mut choices = Vec::new();
        for _ in 0..one.params.choices() {
            while open.len() < WINDOW
                && let Some((of, choice)) = next.next()
            {
                open.push_back(py.detach(|| submit(model, of, choice))?);
            }
            let missing = || PyFailure::Ours(Class::Engine, "a request was not submitted; please report this".into());
            let mut running = open.pop_front().ok_or_else(missing)?;
            while running.end.is_none() {
                py.detach(|| running.read(LOOK_UP))?;
                // What is dropped on the way out is cancelled.
                py.check_signals()?;
            }
            choices.push(running);
        }
        let output = request_output(py, ready, &one.id, &one.prompt, &choices)?;
        if let Some(told) = on_finished {
            told.call1((&output,))?;
        }
        outputs.append(output)?;
    }
    Ok(outputs)
}
