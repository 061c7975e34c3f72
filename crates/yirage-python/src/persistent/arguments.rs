//! The constructor's arguments, in the orders of Mirage's generations and by name.

use super::buffers::MetaBuffers;
use super::shared::{Profiled, SharedKernel, tell};
use crate::backends::{self, Chosen, wanted};
use crate::failure::{PyFailure, PyOutcome};
use crate::files;
use crate::llm::PySamplingParams;
use crate::log::{Level, say};
use crate::others::{self, OF_MIRAGE, OF_YIRAGE};
use crate::ranks::member_device;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyTuple};
use std::sync::Arc;
use yirage_dlpack::InPlace;
use yirage_hal::{Device, OpenOptions};
use yirage_persistent::{KernelBuilder, KernelConfig, PromptLookup};

/// Without a mode at the beginning: the order of the documents.
const BY_WORLD: [&str; 12] = [
    "world_size",
    "mpi_rank",
    "num_workers",
    "num_local_schedulers",
    "num_remote_schedulers",
    "max_seq_length",
    "eos_token_id",
    "meta_tensors",
    "profiler_tensor",
    "spec_decode_config",
    "backend",
    "test_mode",
];

/// With one: the order of Mirage.
const BY_MODE: [&str; 18] = [
    "mode",
    "world_size",
    "mpi_rank",
    "num_workers",
    "num_local_schedulers",
    "num_remote_schedulers",
    "max_seq_length",
    "max_num_batched_requests",
    "max_num_batched_tokens",
    "max_num_pages",
    "page_size",
    "eos_token_id",
    "meta_tensors",
    "profiler_tensor",
    "trace_name",
    "spec_decode_config",
    "use_cutlass_kernel",
    "test_mode",
];

/// Requests that run at once where nobody says how many.
const AT_ONCE: u32 = 8;
/// Tasks whose times are kept, of all workers together, where no array says how many.
const SPANS: usize = 1 << 18;
/// Numbers of the array for each task.
pub(super) const WORDS: usize = 4;

/// Arguments that were given, by name; each is taken once.
struct KernelArguments<'py>(Bound<'py, PyDict>);

impl<'py> KernelArguments<'py> {
    fn new(positional: &Bound<'py, PyTuple>, named: Option<&Bound<'py, PyDict>>) -> PyOutcome<KernelArguments<'py>> {
        let given = PyDict::new(positional.py());
        let order: &[&str] = match positional.get_item(0) {
            Ok(first) if first.extract::<String>().is_ok() => &BY_MODE,
            _ => &BY_WORLD,
        };
        let wrong = |text: String| PyFailure::Raised(PyTypeError::new_err(text));
        if positional.len() > order.len() {
            let (got, most) = (positional.len(), order.len());
            return Err(wrong(format!("PersistentKernel() takes {most} positional arguments, and {got} were given")));
        }
        order.iter().zip(positional.iter()).try_for_each(|(name, value)| given.set_item(*name, value))?;
        for (name, value) in named.into_iter().flat_map(|named| named.iter()) {
            if given.contains(&name)? {
                return Err(wrong(format!("PersistentKernel() got multiple values for argument '{name}'")));
            }
            given.set_item(name, value)?;
        }
        Ok(KernelArguments(given))
    }

    /// An argument; none where it is `None` as well.
    fn object(&self, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
        let found = self.0.get_item(name)?;
        if found.is_some() {
            self.0.del_item(name)?;
        }
        Ok(found.filter(|value| !value.is_none()))
    }

    fn value<T>(
        &self,
        name: &str,
        wanted: &str,
        read: impl Fn(&Bound<'py, PyAny>) -> Option<T>,
    ) -> PyOutcome<Option<T>> {
        let Some(value) = self.object(name)? else { return Ok(None) };
        match read(&value) {
            Some(read) => Ok(Some(read)),
            None => Err(PyFailure::option(format!("{name}={}: {wanted} is wanted", value.repr()?))),
        }
    }

    fn number(&self, name: &str) -> PyOutcome<Option<u32>> {
        self.value(name, "a whole number from 0 on", |value| {
            value.extract::<u32>().ok().filter(|_| !value.is_instance_of::<PyBool>())
        })
    }

    fn text(&self, name: &str) -> PyOutcome<Option<String>> {
        self.value(name, "a text", |value| value.extract().ok())
    }

    fn flag(&self, name: &str) -> PyOutcome<Option<bool>> {
        self.value(name, "True or False", |value| value.extract().ok())
    }
}

/// The token that ends requests; none for -1, as in Mirage.
pub(super) fn end(value: &Bound<'_, PyAny>) -> PyOutcome<Option<u32>> {
    match value.extract::<i64>() {
        Ok(-1) => Ok(None),
        Ok(id) if u32::try_from(id).is_ok() => Ok(Some(id as u32)),
        _ => Err(PyFailure::option(format!("eos_token_id={}: a token's id, or -1 for none, is wanted", value.repr()?))),
    }
}

/// How guesses are made, of an object with its two numbers.
pub(super) fn lookup(config: &Bound<'_, PyAny>) -> PyOutcome<PromptLookup> {
    let number = |name: &str| config.getattr(name).and_then(|value| value.extract::<u32>());
    match (number("ngram_size"), number("spec_length")) {
        (Ok(ngram_size), Ok(spec_length)) => Ok(PromptLookup { ngram_size, spec_length }),
        _ => Err(PyFailure::unsupported(
            format!("spec_decode_config={}", config.repr()?),
            "guesses are looked up in the prompt: give a PromptLookupConfig with ngram_size and spec_length",
        )),
    }
}

/// A kernel without layers, as the arguments say.
///
/// # Errors
/// Options out of range, metadata that is none, and what opening a device met.
pub(super) fn kernel(
    py: Python<'_>,
    positional: &Bound<'_, PyTuple>,
    named: Option<&Bound<'_, PyDict>>,
) -> PyOutcome<Arc<SharedKernel>> {
    let given = KernelArguments::new(positional, named)?;
    let meta = given.object("meta_tensors")?;
    let buffers = meta.map(|meta| MetaBuffers::of(&meta)).transpose()?;
    let sizes = buffers.as_ref().and_then(MetaBuffers::sizes);
    let config = config(py, &given, sizes)?;
    config.check()?;
    let buffers = buffers.map_or_else(|| MetaBuffers::fresh(py, config.max_seq_length), Ok)?;
    let test_mode = given.flag("test_mode")?.unwrap_or(false);
    let tensor = given.object("profiler_tensor")?.map(|tensor| profile_of(&tensor)).transpose()?;
    let trace_name = given.text("trace_name")?;
    trace_name.as_ref().map_or(Ok(()), |name| files::stem(name.as_ref(), "trace_name"))?;
    let profiled = (tensor.is_some() || trace_name.is_some()).then_some(Profiled { tensor, trace_name });
    let (backend, number) = (given.object("backend")?, given.number("device_id")?.unwrap_or(0));
    others::take(py, "PersistentKernel", &[OF_MIRAGE, OF_YIRAGE], Some(&given.0))?;
    let chosen = match backend {
        Some(object) => backends::select(py, &wanted(&object)?)?,
        None => backends::current(py)?,
    };
    let place = (config.world_size, Some(config.mpi_rank));
    let options = OpenOptions { threads: config.num_workers.map(|n| n as usize), ..OpenOptions::default() };
    let (device, membership) = match member_device(py, &chosen, number, options, place)? {
        Some((device, membership)) => (device, Some(membership)),
        None => (device(py, &chosen, number, config.num_workers, profiled.is_some())?, None),
    };
    let config = match &profiled {
        None => config,
        Some(of) => {
            let all = of.tensor.as_ref().map_or(SPANS, |tensor| tensor.elements() / WORDS);
            let workers = device.target().queues().max(1) as usize;
            KernelConfig { profiler_spans: Some(all / workers), ..config }
        }
    };
    let mut builder = KernelBuilder::new(config, buffers.read()?)?;
    tell(py, builder.notices())?;
    let shared = SharedKernel::new(builder, device, Arc::new(buffers), profiled.map(Arc::new), test_mode);
    Ok(Arc::new(shared.of_processes(membership)))
}

fn config(py: Python<'_>, given: &KernelArguments<'_>, sizes: Option<(usize, usize)>) -> PyOutcome<KernelConfig> {
    let usual = KernelConfig::default();
    let size = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    let requests = sizes.map_or(1, |(requests, _)| size(requests)).clamp(1, AT_ONCE);
    let positions = sizes.map_or(usual.max_seq_length, |(_, positions)| size(positions));
    let requests = given.number("max_num_batched_requests")?.unwrap_or(requests);
    let tokens = given.number("max_num_batched_tokens")?;
    let sampling =
        given.value("sampling_params", "a SamplingParams", |value| value.extract::<PySamplingParams>().ok())?;
    let sampling = match sampling {
        None => usual.sampling.clone(),
        Some(params) => {
            let text = "PersistentKernel: of sampling_params only what says how a token is chosen is read: requests end by \
                        eos_token_id and max_seq_length";
            say(py, Level::Info, text)?;
            yirage_engine::sampling::SamplingParams { logprobs: None, ..params.sampling(0, 0)? }
        }
    };
    let executor = given.value("executor", "'steps', 'persistent' or None", |value| {
        value.extract::<String>().ok().and_then(|name| name.parse().ok())
    })?;
    let precision = given.value("precision", "'fast' or 'exact'", |value| {
        value.extract::<String>().ok().and_then(|name| name.parse().ok())
    })?;
    let mode = given.text("mode")?.map(|mode| mode.parse()).transpose()?;
    Ok(KernelConfig {
        mode: mode.unwrap_or(usual.mode),
        world_size: given.number("world_size")?.unwrap_or(usual.world_size),
        mpi_rank: given.number("mpi_rank")?.unwrap_or(usual.mpi_rank),
        num_workers: given.number("num_workers")?,
        num_local_schedulers: given.number("num_local_schedulers")?.unwrap_or(0),
        num_remote_schedulers: given.number("num_remote_schedulers")?.unwrap_or(0),
        max_seq_length: given.number("max_seq_length")?.unwrap_or(positions),
        max_num_batched_requests: requests,
        max_num_batched_tokens: tokens.unwrap_or(usual.max_num_batched_tokens.max(requests)),
        max_num_pages: given.number("max_num_pages")?,
        page_size: given.number("page_size")?.unwrap_or(usual.page_size),
        eos_token_id: given.object("eos_token_id")?.map_or(Ok(None), |value| end(&value))?,
        spec_decode: given.object("spec_decode_config")?.map(|config| lookup(&config)).transpose()?,
        rms_norm_eps: given
            .value("rms_norm_eps", "a number", |value| value.extract().ok())?
            .unwrap_or(usual.rms_norm_eps),
        sampling,
        precision: precision.unwrap_or(usual.precision),
        executor,
        profiler_spans: None,
    })
}

/// The array that times are written into.
fn profile_of(tensor: &Bound<'_, PyAny>) -> PyOutcome<InPlace> {
    let array = InPlace::taken(tensor, "profiler_tensor")?;
    let name = array.number().name();
    if array.writable() && array.number().is_wide() && array.elements() >= WORDS {
        return Ok(array);
    }
    let text = format!(
        "profiler_tensor is {name} of {} elements: int64 or uint64, {WORDS} for each task, that may be written, are wanted",
        array.elements()
    );
    Err(PyFailure::Ours(crate::failure::Class::Array, text))
}

/// The device that a kernel runs on: that of its backend; another one of as many threads as there are workers, where the
/// processors are enough for them; and one of its own where times are kept, since a device keeps the times of all it runs.
fn device(
    py: Python<'_>,
    chosen: &Chosen,
    number: u32,
    workers: Option<u32>,
    profiled: bool,
) -> PyOutcome<Arc<dyn Device>> {
    let usual = backends::device(py, chosen, number)?;
    let has = usual.target().queues();
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let threads = workers.map(|workers| workers as usize).filter(|&n| (1..=processors).contains(&n));
    let threads = threads.filter(|&n| matches!(chosen, Chosen::Native("cpu")) && n != has as usize);
    let options = OpenOptions { threads, ..OpenOptions::default() };
    match (profiled, threads) {
        (true, _) => {
            let threads = threads.or(Some(has as usize)).filter(|_| matches!(chosen, Chosen::Native("cpu")));
            backends::own_device(py, chosen, number, &OpenOptions { threads, ..options })
        }
        (false, Some(_)) => backends::device_with(py, chosen, number, options),
        (false, None) => Ok(usual),
    }
}

/// Every argument with its default.
pub(super) fn defaults(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let usual = KernelConfig::default();
    let found = PyDict::new(py);
    found.set_item("mode", usual.mode.name())?;
    found.set_item("world_size", usual.world_size)?;
    found.set_item("mpi_rank", usual.mpi_rank)?;
    found.set_item("num_local_schedulers", usual.num_local_schedulers)?;
    found.set_item("num_remote_schedulers", usual.num_remote_schedulers)?;
    found.set_item("max_seq_length", usual.max_seq_length)?;
    found.set_item("page_size", usual.page_size)?;
    found.set_item("eos_token_id", -1)?;
    found.set_item("rms_norm_eps", usual.rms_norm_eps)?;
    found.set_item("precision", usual.precision.to_string())?;
    found.set_item("device_id", 0)?;
    found.set_item("test_mode", false)?;
    let unset = [
        "num_workers",
        "max_num_batched_requests",
        "max_num_batched_tokens",
        "max_num_pages",
        "meta_tensors",
        "profiler_tensor",
        "trace_name",
        "spec_decode_config",
        "use_cutlass_kernel",
        "backend",
        "sampling_params",
        "executor",
    ];
    unset.into_iter().try_for_each(|name| found.set_item(name, py.None()))?;
    Ok(found)
}
