//! `PyPersistentKernel`: what its layers read, how it is compiled, and how it runs.

use super::arguments::{self, end};
use super::attach::{CATEGORY, CATEGORY_OF_RANKS, named, tensor};
use super::buffers::{Written, unwritten};
use super::latent::LatentLayers;
use super::layers::KernelLayers;
use super::profiled;
use super::ranks;
use super::report::PyCallReport;
use super::shared::{KernelState, SharedKernel, finalized, tell, wrong};
use super::tensor::PyKernelTensor;
use super::tested;
use crate::dtype;
use crate::failure::{PyFailure, PyOutcome};
use crate::files;
use crate::log::{Level, say};
use crate::numbers::{maybe_strides, maybe_whole, whole, wholes};
use crate::others::{self, OF_LAUNCH};
use crate::process;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple, PyType};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};
use yirage_dlpack::{InPlace, PyTensor};
use yirage_model::Checkpoint;
use yirage_persistent::{KernelDType, PersistentKernel as Kernel};

/// How often a call on the main thread looks for Ctrl-C.
const LOOKS: Duration = Duration::from_millis(50);

/// A model that is built of layer methods and runs until all of its requests have ended, by the names and arguments of
/// Mirage.
///
/// Row r of the metadata is request r: ``step[r]`` is the position of its last known token, and ``tokens[r]`` has its prompt
/// and then what is generated. A call writes both where they lie, token by token; the result is ``tokens[r][:step[r] + 1]``.
///
/// Arguments may stand in the order of the documents, ``(world_size, mpi_rank, num_workers, ..)``, or begin with Mirage's
/// ``mode``. Each has a default.
///
/// Args:
///     mode: ``'offline'``; ``'onepass'`` runs one step a call; ``'online'``, ``'online_notoken'`` and
///         ``'online_multi_turn'`` run as ``'offline'`` does.
///     world_size, mpi_rank: ranks that compute together, and which of them this is; 1 and 0. In a process that
///         ``python -m yirage.ranks -n N`` or mpirun has started as one of several, the others are the other processes: each
///         makes its own rank with the same calls in the same order. In any other, ``ranks`` joins them.
///     num_workers: threads of a CPU, where it has as many processors; otherwise it is reported and changes nothing.
///     num_local_schedulers, num_remote_schedulers: reported; they change nothing.
///     max_seq_length: positions of a request, prompt and output together; as many as ``tokens`` has.
///     max_num_batched_requests: requests that run at once; all of them, 8 at most.
///     max_num_batched_tokens: tokens of a step over all requests; 64.
///     max_num_pages, page_size: pages of the cache, as many as all requests at once can use, and positions of a page, a
///         multiple of 32; 64.
///     eos_token_id: the token that ends a request; -1 and ``None`` run to the full length.
///     meta_tensors: ``[step, tokens]``, optionally with ``prompt_lengths`` and ``num_new_tokens``, or a ``dict`` of them:
///         int32 ``[requests]``, int64 ``[requests, max_seq_length]``, int32 ``[requests]`` each. Mirage's further buffers may
///         stand in a ``dict`` and are not read. Without it there is one request whose first token is 0.
///     profiler_tensor: int64 or uint64. After a call it has a row of four for each task that ran: worker, number, begin
///         and end in nanoseconds.
///     trace_name: after a call ``<trace_name>.perfetto-trace`` has the same for Perfetto.
///     spec_decode_config: a ``PromptLookupConfig``.
///     test_mode: for ``run_test_mode``.
///     backend, device_id: where it runs; the current backend and 0.
///     rms_norm_eps: of all norms; 1e-6.
///     sampling_params: a ``SamplingParams`` for sampling layers.
///     precision: ``'fast'`` or ``'exact'``.
///     executor: ``'steps'``, ``'persistent'``, or ``None`` for the one that is measured to be faster.
///     memory_pool_size_mb, use_mixed_precision, optimize_for_inference, use_unified_memory, use_openmp, openmp_threads,
///         use_blas: settings of YiRage's files; reported, they change nothing.
///
/// Raises:
///     OptionError, ArrayError, Unsupported, UnknownBackendError, BackendUnavailableError, RanksError
#[pyclass(name = "PersistentKernel", extends = LatentLayers, frozen, subclass, module = "yirage")]
pub(crate) struct PyPersistentKernel;

fn shared<'a>(slf: &'a Bound<'_, PyPersistentKernel>) -> &'a Arc<SharedKernel> {
    &slf.as_super().as_super().get().0
}

/// The object that Python has.
fn of_shared(shared: Arc<SharedKernel>) -> PyClassInitializer<PyPersistentKernel> {
    PyClassInitializer::from(KernelLayers(shared)).add_subclass(LatentLayers).add_subclass(PyPersistentKernel)
}

/// Works on a kernel that was compiled, without Python's lock.
fn with<R: Send>(
    slf: &Bound<'_, PyPersistentKernel>,
    what: &str,
    work: impl FnOnce(&mut Kernel) -> PyOutcome<R> + Send,
) -> PyOutcome<R> {
    process::check()?;
    let shared = shared(slf);
    slf.py().detach(|| match &mut *shared.alone() {
        KernelState::Ready(kernel) => work(kernel),
        KernelState::Building(_) if shared.test_mode => {
            Err(wrong(format!("{what}: the kernel was made with test_mode=True: use run_test_mode()")))
        }
        KernelState::Building(_) => Err(wrong(format!("{what}: the kernel is not compiled: use compile() first"))),
        KernelState::Gone => Err(finalized(what)),
    })
}

/// Replaces the layers by a kernel that is made of them, without Python's lock, and says what there is to say.
fn become_ready(
    slf: &Bound<'_, PyPersistentKernel>,
    what: &str,
    make: impl FnOnce(&mut yirage_persistent::KernelBuilder) -> PyOutcome<Option<Kernel>> + Send,
) -> PyOutcome<()> {
    process::check()?;
    let (py, shared) = (slf.py(), shared(slf));
    let notices = py.detach(|| {
        let mut state = shared.alone();
        let made = match &mut *state {
            KernelState::Building(builder) => make(builder)?,
            KernelState::Ready(_) => return Err(wrong(format!("{what}: the kernel is compiled; make another one"))),
            KernelState::Gone => return Err(finalized(what)),
        };
        let Some(mut kernel) = made else { return Ok(Vec::new()) };
        let notices = kernel.notices();
        *state = KernelState::Ready(Box::new(kernel));
        shared.compiled.store(true, Ordering::Relaxed);
        Ok(notices)
    })?;
    if shared.compiled.load(Ordering::Relaxed) {
        // What was attached is on the device now.
        let attached = std::mem::take(&mut *shared.attached.lock().unwrap_or_else(PoisonError::into_inner));
        drop(attached);
    }
    Ok(tell(py, notices)?)
}

#[pymethods]
impl PyPersistentKernel {
    #[new]
    #[pyo3(signature = (*arguments, **named))]
    fn new(
        py: Python<'_>,
        arguments: &Bound<'_, PyTuple>,
        named: Option<&Bound<'_, PyDict>>,
    ) -> PyOutcome<PyClassInitializer<PyPersistentKernel>> {
        let shared = arguments::kernel(py, arguments, named)?;
        Ok(of_shared(shared))
    }

    /// The kernel of all ranks, given in their order: each was made with the same arguments, ``world_size`` and its own
    /// ``mpi_rank``, the same metadata and the same layer methods, and has its own part of the weights. All ranks run in this
    /// process on one device, so they compute what they would and are no faster for it.
    ///
    /// Rank 0 chooses the tokens: its metadata is written. Tensors have their rank before their name from then on, such as
    /// ``rank1.embed_tokens``. The kernels of the ranks are used up and finalized, also where their layers are refused.
    ///
    /// Raises:
    ///     OptionError: other than all ranks in order, different arguments.
    ///     ArrayError: different metadata.
    ///     KernelError: different layers, a kernel that is compiled or given twice.
    #[staticmethod]
    fn ranks(py: Python<'_>, kernels: Vec<Bound<'_, PyPersistentKernel>>) -> PyOutcome<Py<PyPersistentKernel>> {
        process::check()?;
        let all: Vec<Arc<SharedKernel>> = kernels.iter().map(|kernel| shared(kernel).clone()).collect();
        Ok(Py::new(py, of_shared(ranks::joined(py, &all)?))?)
    }

    /// Attaches an array under a name: a weight, a cache, or what a layer reads in test mode. Arrays that lie densely are
    /// read where they lie, when the kernel is compiled; others are copied now, and in test mode anew for each run. Of a cache a
    /// compiled kernel reads sizes and type alone.
    ///
    /// Args:
    ///     torch_tensor: 1 to 4 dimensions of float32, float16, bfloat16, float8_e4m3fn, int32 or int64: a tensor of PyTorch,
    ///         an array of NumPy or ``ml_dtypes``, or a buffer.
    ///     dtype: the type of its elements where they are bytes: uint8 stands for ``'float8_e4m3fn'``.
    ///
    /// Raises:
    ///     ArrayError: what is no such array, a name that is taken.
    #[pyo3(signature = (torch_tensor, name = None, *, dtype = None))]
    fn attach_input(
        slf: &Bound<'_, Self>,
        torch_tensor: &Bound<'_, PyAny>,
        name: Option<&str>,
        dtype: Option<Bound<'_, PyAny>>,
    ) -> PyOutcome<PyKernelTensor> {
        let shared = shared(slf);
        let name = named(name, "attach_input")?;
        let array = Arc::new(InPlace::taken(torch_tensor, &format!("tensor `{name}`"))?);
        let stands = dtype.map(|dtype| Ok::<_, PyFailure>(KernelDType::parse(&dtype::named(&dtype)?)?)).transpose()?;
        let given = tensor(&array, name, stands)?;
        shared.building(slf.py(), "attach_input", |builder| {
            let id = builder.attach_input(given, name)?;
            shared.attached.lock().unwrap_or_else(PoisonError::into_inner).insert(id, array.clone());
            PyKernelTensor::shown(shared, builder, id, name)
        })
    }

    /// Declares a tensor that a layer writes. Its strides are row-major; ``dtype`` is bfloat16 where it is not given.
    /// ``io_category`` is ``'cuda_tensor'``, and of a rank also ``'nvshmem_tensor'``, which is the same here.
    #[pyo3(signature = (dims, strides = None, dtype = None, name = None, **others))]
    fn new_tensor(
        slf: &Bound<'_, Self>,
        #[pyo3(from_py_with = wholes)] dims: Vec<u32>,
        #[pyo3(from_py_with = maybe_strides)] strides: Option<Vec<u32>>,
        dtype: Option<Bound<'_, PyAny>>,
        name: Option<&str>,
        others: Option<Bound<'_, PyDict>>,
    ) -> PyOutcome<PyKernelTensor> {
        let world = shared(slf).building(slf.py(), "new_tensor", |builder| Ok(builder.config().world_size))?;
        let category = if world > 1 { CATEGORY_OF_RANKS } else { CATEGORY };
        others::take(slf.py(), "new_tensor", &[category], others.as_ref())?;
        let name = named(name, "new_tensor")?;
        let row = |at: usize| dims[at + 1..].iter().fold(1u32, |n, &m| n.saturating_mul(m));
        if let Some(given) = strides.filter(|given| !given.iter().copied().eq((0..dims.len()).map(row))) {
            let text = format!("new_tensor: `{name}` of {dims:?} has strides {given:?}: row-major ones are wanted");
            return Err(wrong(text));
        }
        let dtype = dtype.map_or_else(|| Ok("bfloat16".to_owned()), |dtype| dtype::named(&dtype))?;
        let elements = KernelDType::parse(&dtype)?;
        shared(slf).building(slf.py(), "new_tensor", |builder| {
            let id = builder.new_tensor(&dims, elements, name)?;
            PyKernelTensor::shown(shared(slf), builder, id, name)
        })
    }

    /// Weights as one, whose rows are interleaved in ``num_groups`` groups: queries, keys and values by heads of keys, or
    /// gate and up. What is computed with it has its results in the same order.
    #[pyo3(signature = (inputs, fused_dim, num_groups, name = None))]
    fn fuse_tensors(
        slf: &Bound<'_, Self>,
        inputs: Vec<Bound<'_, PyKernelTensor>>,
        #[pyo3(from_py_with = whole)] fused_dim: u32,
        #[pyo3(from_py_with = whole)] num_groups: u32,
        name: Option<&str>,
    ) -> PyOutcome<PyKernelTensor> {
        let name = named(name, "fuse_tensors")?;
        let ids =
            inputs.iter().map(|input| input.get().of(shared(slf), "fuse_tensors")).collect::<PyOutcome<Vec<_>>>()?;
        shared(slf).building(slf.py(), "fuse_tensors", |builder| {
            let id = builder.fuse_tensors(&ids, fused_dim, num_groups, name)?;
            PyKernelTensor::shown(shared(slf), builder, id, name)
        })
    }

    /// ``fuse_tensors`` by Mirage's newer name.
    #[pyo3(signature = (inputs, shuffled_dim, num_groups, name = None))]
    fn shuffle_tensors(
        slf: &Bound<'_, Self>,
        inputs: Vec<Bound<'_, PyKernelTensor>>,
        #[pyo3(from_py_with = whole)] shuffled_dim: u32,
        #[pyo3(from_py_with = whole)] num_groups: u32,
        name: Option<&str>,
    ) -> PyOutcome<PyKernelTensor> {
        let name = named(name, "shuffle_tensors")?;
        let ids =
            inputs.iter().map(|input| input.get().of(shared(slf), "shuffle_tensors")).collect::<PyOutcome<Vec<_>>>()?;
        shared(slf).building(slf.py(), "shuffle_tensors", |builder| {
            let id = builder.shuffle_tensors(&ids, shuffled_dim, num_groups, name)?;
            PyKernelTensor::shown(shared(slf), builder, id, name)
        })
    }

    /// Attaches the weights of a model's safetensors by their names, and adds its layers: Llama, Mistral and Qwen3, dense or
    /// with experts. The last one takes the largest logit, with ``seed`` it draws by ``sampling_params``. The epsilon of norms
    /// is the model's from then on. Where this raises the kernel may have a part of them: make another one.
    ///
    /// Raises:
    ///     ModelNotFoundError, ModelError
    ///     Unsupported: another architecture, quantised weights, and what layer methods do not have.
    #[pyo3(signature = (model_path, *, seed = None))]
    fn build_model(slf: &Bound<'_, Self>, model_path: PathBuf, seed: Option<u64>) -> PyOutcome<()> {
        let (py, shared) = (slf.py(), shared(slf));
        let path = crate::llm::resolve_model(py, &model_path.to_string_lossy())?;
        let checkpoint = Arc::new(py.detach(|| Checkpoint::open(&path))?);
        shared.building(py, "build_model", |builder| Ok(builder.build_model(&checkpoint, seed)?))
    }

    /// Compiles the layers and loads their weights; a kernel that cannot be compiled stays as it was. With ``output_dir`` the
    /// kernel is saved there, with its plans, for ``load_mpk_kernel``; a rank that is a process has a folder of its own in it, and
    /// its plans are made anew by each start. ``eos_token_id`` takes the place of the constructor's. In
    /// test mode there is nothing to do: ``run_test_mode`` compiles what it runs.
    ///
    /// Raises:
    ///     KernelError: layers that do not fit each other, a kernel that is compiled.
    ///     Unsupported: layers that are no model: no embedding, no attention, no choice of a token.
    #[pyo3(signature = (output_dir = None, *, eos_token_id = None))]
    fn compile(
        slf: &Bound<'_, Self>,
        output_dir: Option<PathBuf>,
        eos_token_id: Option<Bound<'_, PyAny>>,
    ) -> PyOutcome<()> {
        output_dir.as_deref().map_or(Ok(()), |folder| files::folder(folder, "output_dir"))?;
        let ends = eos_token_id.map(|value| end(&value)).transpose()?;
        let own = shared(slf).clone();
        let output_dir = output_dir.map(|folder| own.own_folder(folder));
        become_ready(slf, "compile", |builder| {
            if let Some(ends) = ends {
                builder.end_by(ends);
            }
            if own.test_mode {
                return Ok(None);
            }
            own.meet(builder)?;
            Ok(Some(builder.compile(own.device.clone(), output_dir.as_deref())?))
        })
    }

    /// Makes the kernel again that was saved in a folder, with the arrays that are attached by their names. No layer method
    /// is needed; plans that lie there are proved and not compiled. With ``skip_validation`` a kernel of another version,
    /// device or option is taken as far as it can run, and each difference is logged as a warning.
    ///
    /// Raises:
    ///     KernelError: a kernel that was made of or for something else, or is damaged.
    #[pyo3(signature = (output_dir, skip_validation = false))]
    fn load_mpk_kernel(slf: &Bound<'_, Self>, output_dir: PathBuf, skip_validation: bool) -> PyOutcome<()> {
        let own = shared(slf).clone();
        let (output_dir, meta) = (own.own_folder(output_dir), own.buffers.read()?);
        become_ready(slf, "load_mpk_kernel", |builder| {
            own.meet(builder)?;
            let attached = builder.attached_tensors().map(|(name, tensor)| (name.to_owned(), tensor.clone()));
            let (config, tensors) = (builder.config().clone(), attached.collect::<HashMap<_, _>>());
            Ok(Some(Kernel::load(&output_dir, config, meta, &tensors, own.device.clone(), skip_validation)?))
        })
    }

    /// Saves what the kernel is, without its plans, for ``load_mpk_kernel``.
    fn save(slf: &Bound<'_, Self>, output_dir: PathBuf) -> PyOutcome<()> {
        files::folder(&output_dir, "output_dir")?;
        let output_dir = shared(slf).own_folder(output_dir);
        with(slf, "save", |kernel| Ok(kernel.save(&output_dir)?))
    }

    /// Runs until every request has ended, or ``max_steps`` steps have run: another call goes on from there. A row that has
    /// other tokens than the kernel left in it is a new request. ``step`` and ``tokens`` are written while it runs.
    /// Ctrl-C and ``cancel`` end it behind a step; what was computed stays.
    ///
    /// Raises:
    ///     RequestError: a row that cannot run, or that was changed while it ran.
    #[pyo3(signature = (max_steps = None, **others))]
    fn __call__(
        slf: &Bound<'_, Self>,
        #[pyo3(from_py_with = maybe_whole)] max_steps: Option<u64>,
        others: Option<Bound<'_, PyDict>>,
    ) -> PyOutcome<PyCallReport> {
        let (py, shared) = (slf.py(), shared(slf));
        others::take(py, "PersistentKernel.__call__", &[OF_LAUNCH], others.as_ref())?;
        let threading = py.import("threading")?;
        let main = threading.call_method0("current_thread")?.is(&threading.call_method0("main_thread")?);
        shared.cancelled.store(false, Ordering::Relaxed);
        let (report, raised, notices, dropped) = with(slf, "__call__", |kernel| {
            kernel.set_meta(shared.buffers.read()?)?;
            let (mut written, mut took) = (Written::all(kernel.meta()), true);
            let (mut raised, mut looked) = (Ok(()), Instant::now());
            let report = kernel.call_watched(max_steps, &mut |meta| {
                took &= written.write(meta, &shared.buffers);
                if main && looked.elapsed() >= LOOKS {
                    looked = Instant::now();
                    raised = Python::attach(|py| py.check_signals());
                }
                took && raised.is_ok() && !shared.cancelled.load(Ordering::Relaxed)
            });
            took &= written.write(kernel.meta(), &shared.buffers);
            let dropped = profiled::write_out(shared, kernel)?;
            let report = report?;
            if took { Ok((report, raised, kernel.notices(), dropped)) } else { Err(unwritten()) }
        })?;
        tell(py, notices)?;
        if dropped > 0 {
            say(py, Level::Warning, &format!("PersistentKernel: the profile had no room for {dropped} tasks"))?;
        }
        raised?;
        Ok(PyCallReport::of(py, report)?)
    }

    /// Ends a call that runs on another thread behind its step. The next call goes on from there.
    fn cancel(slf: &Bound<'_, Self>) {
        shared(slf).cancelled.store(true, Ordering::Relaxed);
    }

    /// Gives a row a new prompt, in place of what it has: written into ``tokens``, ``step`` and ``prompt_lengths``. It runs
    /// with the next call. This waits for a call that runs on another thread.
    ///
    /// Raises:
    ///     RequestError: no such row, one that runs, a prompt that does not fit.
    fn load_new_request(slf: &Bound<'_, Self>, request: usize, prompt: &Bound<'_, PyAny>) -> PyOutcome<()> {
        let list = if prompt.hasattr("tolist")? { prompt.call_method0("tolist")? } else { prompt.clone() };
        let prompt: Vec<i64> = list.extract()?;
        let shared = shared(slf);
        process::check()?;
        slf.py().detach(|| {
            let mut meta = shared.buffers.read()?;
            match &mut *shared.alone() {
                KernelState::Building(_) => meta.set_prompt(request, &prompt)?,
                KernelState::Ready(kernel) => {
                    kernel.load_new_request(request, &prompt)?;
                    meta = kernel.meta().clone();
                }
                KernelState::Gone => return Err(finalized("load_new_request")),
            }
            shared.buffers.write_request(&meta, request)
        })
    }

    /// Runs all layers once on the rows of their tensors, the tokens of one pass. The tokens are those of ``num_new_tokens`` of
    /// each request, or as many of the first one as the tensors have rows. The last of them stands at ``step``; where that is
    /// less than their number, the first stands at 0. What positions before the first one have is read from the caches that
    /// are attached, and keys and values of the pass are written into them.
    ///
    /// Returns:
    ///     a ``dict`` of every tensor that a layer wrote, as it is after the last one: float32, or int32 for tokens and
    ///     indices. A layer that writes into an attached array writes it where it lies.
    ///
    /// Raises:
    ///     KernelError: layers that do not fit each other, a kernel that is compiled.
    fn run_test_mode<'py>(slf: &Bound<'py, Self>) -> PyOutcome<Bound<'py, PyDict>> {
        let (py, shared) = (slf.py(), shared(slf));
        process::check()?;
        if shared.buffers.has_pages(py)? {
            let text = "run_test_mode: paged_kv_indices_buffer is not read: the pages of a request stand behind those of the one \
                        before it";
            shared.tell_once(py, text)?;
        }
        let outputs = py.detach(|| match &mut *shared.alone() {
            KernelState::Building(builder) => {
                builder.set_meta(shared.buffers.read()?)?;
                shared.meet(builder)?;
                tested::run(shared, builder)
            }
            KernelState::Ready(_) => Err(wrong("run_test_mode: the kernel is compiled; make another one".into())),
            KernelState::Gone => Err(finalized("run_test_mode")),
        })?;
        let found = PyDict::new(py);
        for (name, ty, bytes) in outputs {
            found.set_item(name, Bound::new(py, PyTensor::of(&ty, &bytes)?)?)?;
        }
        Ok(found)
    }

    /// Writes what ``profiler_tensor`` or ``trace_name`` had kept so far as a file for Perfetto.
    ///
    /// Raises:
    ///     KernelError: nothing was kept.
    fn write_trace(slf: &Bound<'_, Self>, file_name: PathBuf) -> PyOutcome<()> {
        with(slf, "write_trace", |kernel| profiled::write_trace(kernel, &file_name))
    }

    /// Gives weights, cache and plans back. A call that runs on another thread ends before.
    fn finalize(slf: &Bound<'_, Self>) {
        let shared = shared(slf);
        shared.cancelled.store(true, Ordering::Relaxed);
        slf.py().detach(|| {
            let before = std::mem::replace(&mut *shared.alone(), KernelState::Gone);
            shared.compiled.store(false, Ordering::Relaxed);
            drop(before);
        });
        let attached = std::mem::take(&mut *shared.attached.lock().unwrap_or_else(PoisonError::into_inner));
        drop(attached);
    }

    fn __enter__<'py>(slf: &Bound<'py, Self>) -> Bound<'py, Self> {
        slf.clone()
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(slf: &Bound<'_, Self>, _exception: &Bound<'_, PyTuple>) {
        PyPersistentKernel::finalize(slf);
    }

    /// The arguments of the constructor with their defaults, as Mirage gives them.
    #[classmethod]
    fn get_default_init_parameters<'py>(class: &Bound<'py, PyType>) -> PyOutcome<Bound<'py, PyDict>> {
        Ok(arguments::defaults(class.py())?)
    }

    /// The metadata by name, as it was given.
    #[getter]
    fn meta_tensors<'py>(slf: &Bound<'py, Self>) -> Bound<'py, PyDict> {
        shared(slf).buffers.as_dict(slf.py())
    }

    /// The name of the backend that it runs on.
    #[getter]
    fn backend(slf: &Bound<'_, Self>) -> String {
        shared(slf).device.info().backend.to_owned()
    }

    /// Workers of the device.
    #[getter]
    fn num_workers(slf: &Bound<'_, Self>) -> u32 {
        shared(slf).device.target().queues()
    }

    /// Whether it can be called.
    #[getter]
    fn is_compiled(slf: &Bound<'_, Self>) -> bool {
        shared(slf).compiled.load(Ordering::Relaxed)
    }

    /// Blocks of 32 positions of the cache: ``total``, ``in_use``, ``free``, and ``cached`` beginnings that may be used again.
    fn cache_stats<'py>(slf: &Bound<'py, Self>) -> PyOutcome<Bound<'py, PyDict>> {
        let counts = with(slf, "cache_stats", |kernel| {
            let kv = kernel.kv();
            Ok([
                ("total", kv.total_blocks(0)),
                ("in_use", kv.blocks_in_use(0)),
                ("free", kv.free_blocks(0)),
                ("cached", kv.cached_blocks(0)),
            ])
        })?;
        let found = PyDict::new(slf.py());
        counts.into_iter().try_for_each(|(name, count)| found.set_item(name, count))?;
        Ok(found)
    }

    /// Where its plans came from: how many were ``compiled``, and how many ``read`` from the folder of a saved kernel.
    fn plan_counts<'py>(slf: &Bound<'py, Self>) -> PyOutcome<Bound<'py, PyDict>> {
        let counts = with(slf, "plan_counts", |kernel| Ok(kernel.plan_counts()))?;
        let found = PyDict::new(slf.py());
        found.set_item("compiled", counts.compiled)?;
        found.set_item("read", counts.read)?;
        Ok(found)
    }
}
