//! The class.

use super::config::model_config;
use super::ids::{rows, starts};
use super::options::options;
use super::weights;
use crate::backends;
use crate::division::{check_division, expert_division};
use crate::failure::{Class, PyFailure, PyOutcome};
use crate::fusion::{self, FusionConfig};
use crate::kind::ArrayKind;
use crate::lock::lock_detached;
use crate::log::{Level, say};
use crate::numbers::{maybe_whole, maybe_wholes, whole};
use crate::others::{self, OF_FORWARD, OF_INFINILM};
use crate::process;
use crate::ranks::{leading_device, member_device};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use yirage_dlpack::PyTensor;
use yirage_engine::sampling::{SamplingParams, TokenCounts};
use yirage_engine::scheduler::LogitsWanted;
use yirage_engine::{EngineError, Forward, ForwardError, ForwardRow, ForwardStep, Generate};
use yirage_hal::{Device, OpenOptions};
use yirage_ir::{Dim, Type};
use yirage_model::{Checkpoint, GenerationConfig, RawConfig};
use yirage_plan::ExpertDivision;
use yirage_plancache::PlanCache;
use yirage_ranks::RankRole;

/// A model whose forward pass is called with tokens and positions.
#[pyclass(frozen, module = "yirage")]
pub(crate) struct InferEngine {
    forward: Mutex<Option<Forward>>,
    plans: Arc<PlanCache>,
    path: PathBuf,
    ends: Vec<u32>,
    config: Py<PyAny>,
    debug: bool,
}

/// How tokens are chosen from logits, where a call wants tokens.
#[derive(FromPyObject)]
struct TokenSampling {
    temperature: Option<f32>,
    top_k: Option<u32>,
    top_p: Option<f32>,
    seed: u64,
}

impl TokenSampling {
    fn params(&self) -> SamplingParams {
        let usual = SamplingParams::default();
        SamplingParams {
            temperature: self.temperature.unwrap_or(usual.temperature),
            top_k: self.top_k.unwrap_or(usual.top_k),
            top_p: self.top_p.unwrap_or(usual.top_p),
            seed: self.seed,
            ..usual
        }
    }
}

impl InferEngine {
    /// Works on the forward pass without Python's lock, its weights loaded.
    fn with<R: Send>(&self, py: Python<'_>, f: impl FnOnce(&mut Forward) -> PyOutcome<R> + Send) -> PyOutcome<R> {
        process::check()?;
        let loaded = py.detach(|| {
            let mut held = self.forward.lock().unwrap_or_else(PoisonError::into_inner);
            let forward = held.as_mut().ok_or_else(closed)?;
            let loaded = !forward.has_weights();
            if loaded {
                forward.load_weights(&Checkpoint::open(&self.path)?, &mut |_, _| {})?;
            }
            PyOutcome::Ok((loaded, f(forward)?))
        });
        let (loaded, made) = loaded?;
        if loaded {
            let text =
                format!("{}: its weights were loaded at the first call, as nobody had loaded any", self.path.display());
            say(py, Level::Info, &text)?;
        }
        Ok(made)
    }

    /// Says what happened beside the result.
    fn tell(&self, py: Python<'_>, step: &ForwardStep) -> PyOutcome<()> {
        if step.forgot {
            say(
                py,
                Level::Info,
                "what was cached was forgotten to make room for more rows; reset_cache makes it before",
            )?;
        }
        fusion::tell(py, &step.notices, self.debug)
    }

    /// Loads a checkpoint.
    fn take(&self, py: Python<'_>, checkpoint: &Checkpoint) -> PyOutcome<()> {
        process::check()?;
        py.detach(|| {
            let mut held = self.forward.lock().unwrap_or_else(PoisonError::into_inner);
            Ok(held.as_mut().ok_or_else(closed)?.load_weights(checkpoint, &mut |_, _| {})?)
        })
    }
}

/// The device of an engine. Of several ranks it is one of those that this process was started for with others, or rank 0 of
/// processes that it starts.
fn device_of(
    py: Python<'_>,
    given: Option<&Bound<'_, PyAny>>,
    ranks: u32,
    experts: ExpertDivision,
) -> PyOutcome<Arc<dyn Device>> {
    if ranks == 1 {
        return backends::device_argument(py, given);
    }
    let (chosen, number) = backends::device_choice(py, given)?;
    let options = OpenOptions { experts, ..OpenOptions::default() };
    match member_device(py, &chosen, number, options.clone(), (ranks, None))? {
        Some((device, _)) => Ok(device),
        None => leading_device(py, &chosen, number, options, (ranks, RankRole::Shard)),
    }
}

fn closed() -> PyFailure {
    PyFailure::Ours(Class::Engine, "the engine was closed: make it again".into())
}

#[pymethods]
impl InferEngine {
    #[new]
    #[pyo3(signature = (model_path, device = None, *, fusion_config = None, warmup_iterations = 0,
        precision = "exact".to_owned(), kv_cache_dtype = None, max_cache_len = None, max_batch_size = None, tp_size = 1,
        moe_ep_size = None, **others))]
    #[expect(clippy::too_many_arguments, reason = "InfiniLM's")]
    fn new(
        py: Python<'_>,
        model_path: String,
        device: Option<Bound<'_, PyAny>>,
        fusion_config: Option<FusionConfig>,
        #[pyo3(from_py_with = whole)] warmup_iterations: u32,
        precision: String,
        kv_cache_dtype: Option<String>,
        #[pyo3(from_py_with = maybe_whole)] max_cache_len: Option<u32>,
        #[pyo3(from_py_with = maybe_whole)] max_batch_size: Option<usize>,
        #[pyo3(from_py_with = whole)] tp_size: u32,
        #[pyo3(from_py_with = maybe_whole)] moe_ep_size: Option<u32>,
        others: Option<Bound<'_, PyDict>>,
    ) -> PyOutcome<InferEngine> {
        others::take(py, "InferEngine", &[OF_INFINILM], others.as_ref())?;
        let kv = kv_cache_dtype.as_deref();
        let experts = expert_division("moe_ep_size", moe_ep_size.unwrap_or(1), tp_size)?;
        let options = options(fusion_config.as_ref(), warmup_iterations, &precision, kv, max_cache_len)?;
        let path = crate::llm::resolve_model(py, &model_path)?;
        if tp_size > 1 {
            check_division(py, &path, tp_size, experts)?;
        }
        let device = device_of(py, device.as_ref(), tp_size, experts)?;
        let (checkpoint, config, forward, ends) = py.detach(|| {
            let checkpoint = Checkpoint::open(&path)?;
            let config = RawConfig::load(&checkpoint)?;
            let ends = GenerationConfig::load(&checkpoint, &config)?.eos;
            let mut forward = Forward::open(&checkpoint, device, &options)?;
            if let Some(rows) = max_batch_size {
                forward.load_weights(&checkpoint, &mut |_, _| {})?;
                forward.reset_cache(Some(rows), None)?;
            }
            PyOutcome::Ok((checkpoint, config, forward, ends))
        })?;
        let config = model_config(py, &config, &checkpoint)?.unbind();
        let plans = forward.plans().clone();
        let debug = fusion_config.is_some_and(|of| of.debug_mode);
        Ok(InferEngine { forward: Mutex::new(Some(forward)), plans, path, ends, config, debug })
    }

    /// The model's configuration.
    #[getter]
    fn config(&self, py: Python<'_>) -> Py<PyAny> {
        self.config.clone_ref(py)
    }

    /// Computes rows of tokens at their positions: float32 logits of shape ``[rows, tokens, vocabulary]``, or with
    /// ``choice`` a token for each row.
    #[pyo3(signature = (input_ids, pos = None, past_kv_lengths = None, total_kv_lengths = None, choice = None, **others))]
    #[expect(clippy::too_many_arguments, reason = "InfiniLM's")]
    fn forward<'py>(
        &self,
        py: Python<'py>,
        input_ids: &Bound<'py, PyAny>,
        pos: Option<Bound<'py, PyAny>>,
        past_kv_lengths: Option<Bound<'py, PyAny>>,
        total_kv_lengths: Option<Bound<'py, PyAny>>,
        choice: Option<TokenSampling>,
        others: Option<Bound<'py, PyDict>>,
    ) -> PyOutcome<Bound<'py, PyAny>> {
        others::take(py, "forward", &[OF_FORWARD], others.as_ref())?;
        let ids = rows(input_ids, "input_ids")?;
        let past = past_kv_lengths.map(|given| lengths(&given, ids.len(), "past_kv_lengths")).transpose()?;
        let first = match pos {
            Some(given) => starts(&rows(&given, "pos")?, &ids)?,
            None => past.clone().unwrap_or_else(|| vec![0; ids.len()]),
        };
        agree("past_kv_lengths", past.as_deref(), &first)?;
        let tokens = ids.first().map_or(0, Vec::len) as u32;
        let total = total_kv_lengths.map(|given| lengths(&given, ids.len(), "total_kv_lengths")).transpose()?;
        let ends: Vec<u32> = first.iter().map(|first| first.saturating_add(tokens)).collect();
        agree("total_kv_lengths", total.as_deref(), &ends)?;
        let wanted = if choice.is_some() { LogitsWanted::Last } else { LogitsWanted::All };
        let (step, chosen, vocabulary) = self.with(py, |forward| {
            let rows = ids.iter().zip(&first).enumerate();
            let given: Vec<ForwardRow<'_>> =
                rows.map(|(sequence, (tokens, &start))| ForwardRow { sequence, start, tokens }).collect();
            let step = forward.forward(&given, wanted)?;
            let vocabulary = forward.vocabulary();
            let chosen = match &choice {
                None => None,
                Some(choice) => {
                    let params = choice.params().checked(vocabulary as usize).map_err(EngineError::from)?;
                    let counts: Vec<TokenCounts> = ids.iter().map(|row| TokenCounts::new(row)).collect();
                    let rows: Vec<(&TokenCounts, u32)> = counts.iter().zip(ends.iter().copied()).collect();
                    Some(forward.choose(&step, &params, &rows)?)
                }
            };
            Ok((step, chosen, vocabulary))
        })?;
        self.tell(py, &step)?;
        if let Some(tokens) = chosen {
            return Ok(tokens.into_pyobject(py)?.into_any());
        }
        let shape = [ids.len() as u32, tokens, vocabulary].map(Dim::Const).to_vec();
        let ty = Type { shape, ..step.logits.ty().clone() };
        Ok(ArrayKind::of(input_ids)?.convert_tensor(py, PyTensor::of(&ty, step.logits.bytes())?)?)
    }

    /// Continues each row: lists of new tokens. What was cached of these rows is forgotten.
    #[pyo3(signature = (input_ids, max_new_tokens, choice, eos_token_id = None, stop_on_eos = true))]
    fn generate(
        &self,
        py: Python<'_>,
        input_ids: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = whole)] max_new_tokens: u32,
        choice: TokenSampling,
        #[pyo3(from_py_with = maybe_wholes)] eos_token_id: Option<Vec<u32>>,
        stop_on_eos: bool,
    ) -> PyOutcome<Vec<Vec<u32>>> {
        let ids = rows(input_ids, "input_ids")?;
        let ends = if stop_on_eos { eos_token_id.unwrap_or_else(|| self.ends.clone()) } else { Vec::new() };
        let how = Generate { max_new_tokens, sampling: choice.params(), ends };
        let mut raised = Ok(());
        let made = self.with(py, |forward| {
            let mut each = |step: &ForwardStep| {
                // Ctrl-C, and what there is to say of the step.
                raised = Python::attach(|py| self.tell(py, step).and_then(|()| Ok(py.check_signals()?)));
                raised.is_ok()
            };
            Ok(forward.generate(&ids, &how, &mut each)?)
        })?;
        raised?;
        Ok(made)
    }

    /// Forgets what is cached; with numbers there is room for so many rows of so many positions from now on.
    #[pyo3(signature = (max_batch_size = None, max_cache_len = None))]
    fn reset_cache(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = maybe_whole)] max_batch_size: Option<usize>,
        #[pyo3(from_py_with = maybe_whole)] max_cache_len: Option<u32>,
    ) -> PyOutcome<()> {
        self.with(py, |forward| Ok(forward.reset_cache(max_batch_size, max_cache_len)?))
    }

    /// Names of the tensors that the model reads.
    fn state_dict_keyname(&self, py: Python<'_>) -> PyOutcome<Vec<String>> {
        let held = lock_detached(py, &self.forward);
        let forward = held.as_ref().ok_or_else(closed)?;
        Ok(forward.tensors().into_iter().map(str::to_owned).collect())
    }

    /// Weights from a dict of arrays: names that are missing and names that are unexpected. With ``strict`` either is an
    /// error, and without it the model's files have what is missing.
    #[pyo3(signature = (state_dict, strict = true))]
    fn load_state_dict(
        &self,
        py: Python<'_>,
        state_dict: &Bound<'_, PyDict>,
        strict: bool,
    ) -> PyOutcome<(Vec<String>, Vec<String>)> {
        let names: Vec<String> = state_dict.keys().extract()?;
        let (differs, known) = {
            let held = lock_detached(py, &self.forward);
            let forward = held.as_ref().ok_or_else(closed)?;
            let known: Vec<String> = forward.tensors().into_iter().map(str::to_owned).collect();
            (forward.compare(names.iter().map(String::as_str)), known)
        };
        if strict && !differs.is_empty() {
            let (missing, unexpected) = (differs.missing, differs.unexpected);
            return Err(EngineError::from(ForwardError::Names { missing, unexpected }).into());
        }
        let tensors = weights::tensors(state_dict, |name| known.iter().any(|known| known == name))?;
        self.take(py, &weights::open_with_tensors(&self.path, tensors)?)?;
        Ok((differs.missing, differs.unexpected))
    }

    /// Weights from the files of a model.
    #[pyo3(signature = (model_path, dtype = None))]
    fn load_file(&self, py: Python<'_>, model_path: String, dtype: Option<Bound<'_, PyAny>>) -> PyOutcome<()> {
        let path = crate::llm::resolve_model(py, &model_path)?;
        let own = self.config.bind(py).getattr("dtype")?;
        if let Some(dtype) = dtype.filter(|dtype| !dtype.is_none()) {
            let asked = crate::dtype::of(&dtype)?;
            if own.is_none() || crate::dtype::of(&own).ok() != Some(asked) {
                let own = if own.is_none() { "quantised".to_owned() } else { own.to_string() };
                let text = format!(
                    "dtype={} changes nothing: weights keep the types of their file, {own}",
                    crate::dtype::name(asked)
                );
                say(py, Level::Info, &text)?;
            }
        }
        self.take(py, &Checkpoint::open(Path::new(&path))?)
    }

    /// What was done so far, by InfiniLM's keys.
    fn get_stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        fusion::counts(py, &self.plans.stats())
    }

    /// Has plans kept and fused, or not.
    fn set_fusion_enabled(&self, enabled: bool) {
        self.plans.set_fusion_enabled(enabled);
    }

    /// Whether plans are kept and fused.
    #[getter]
    fn fusion_enabled(&self) -> bool {
        self.plans.fusion_enabled()
    }

    /// Whether the device has kernels for fused nodes.
    #[getter]
    fn fusion_scheduler_available(&self) -> bool {
        self.plans.fusion_available()
    }

    /// Drops all plans and what they hold on the device.
    fn clear_cache(&self, py: Python<'_>) {
        py.detach(|| self.plans.clear());
    }

    /// Bytes that kept plans take on the device, weights and caches of positions not counted.
    #[getter]
    fn plan_bytes(&self) -> u64 {
        self.plans.stats().bytes
    }

    /// Positions of each row that are cached.
    #[getter]
    fn cached_lengths(&self, py: Python<'_>) -> PyOutcome<Vec<u32>> {
        let held = lock_detached(py, &self.forward);
        Ok(held.as_ref().ok_or_else(closed)?.cached().to_vec())
    }

    /// Gives weights, caches and plans back.
    fn close(&self, py: Python<'_>) {
        let forward = lock_detached(py, &self.forward).take();
        py.detach(|| {
            drop(forward);
            self.plans.clear();
        });
    }
}

/// One number for each row.
fn lengths(given: &Bound<'_, PyAny>, rows: usize, what: &str) -> PyOutcome<Vec<u32>> {
    let list = self::rows(given, what)?.concat();
    if list.len() == rows {
        return Ok(list);
    }
    let text = format!("{what} has {} numbers, and input_ids {rows} rows: one for each is wanted", list.len());
    Err(PyFailure::Ours(Class::Request, text))
}

/// Whether what was given says what follows from the positions.
fn agree(what: &str, given: Option<&[u32]>, follows: &[u32]) -> PyOutcome<()> {
    match given {
        Some(given) if given != follows => {
            let text = format!("{what} is {given:?}, and the positions of the call make it {follows:?}");
            Err(PyFailure::Ours(Class::Request, text))
        }
        _ => Ok(()),
    }
}
