//! Kernels made ready for the device: from the text of a module to functions, each kernel once.

use crate::code_store::CodeStore;
use crate::compiler::KernelCompiler;
use crate::runtime::{CudaContext, CudaFunction, CudaModule, CudaStream, DeviceRange, FunctionLaunch, LaunchMode};
use crate::status::{refused, unsupported};
use std::collections::HashMap;
use std::sync::{Arc, Weak};
use yirage_hal::driver::{DriverError, LaunchConfig, side_by_side};
use yirage_kernels::{ModuleKernel, NativeKernel};
use yirage_kir::render::CDialect;

/// Where kernels are made, and for what.
pub(crate) struct KernelToolchain {
    pub(crate) context: Arc<CudaContext>,
    pub(crate) compiler: KernelCompiler,
    /// The device's architecture, as `sm_90`.
    pub(crate) arch: String,
    /// The language of its kernels.
    pub(crate) dialect: CDialect,
    /// Whether launches that wait by themselves may begin before the one ahead of them has ended.
    pub(crate) starts_early: bool,
    /// Whether all blocks of a launch can be on the device at once, so that they may wait for each other.
    pub(crate) is_cooperative: bool,
    /// The text around the functions of a step's kernels where they are one kernel.
    pub(crate) around_functions: String,
    /// Where compiled kernels are kept, if they are.
    pub(crate) kept: Option<CodeStore>,
}

/// A kernel that is ready to be launched.
pub(crate) struct LoadedKernel {
    function: CudaFunction,
    /// It keeps the function.
    _module: CudaModule,
    block: [u32; 3],
    /// How many pointers it is given.
    pointers: usize,
    /// Whether its device starts launches early.
    starts_early: bool,
}

/// The kernels of a module by their names.
pub(crate) struct KernelModule {
    ready: HashMap<String, Arc<LoadedKernel>>,
    sources: HashMap<String, ModuleKernel>,
}

/// All kernels that any module has, by their text, so that programs of one model do not have theirs made again.
#[derive(Default)]
pub(crate) struct LoadedKernels(HashMap<String, Weak<LoadedKernel>>);

impl LoadedKernels {
    /// The module of these kernels. All of them are made at once: what is wrong with one is said before a step runs.
    pub(crate) fn module(
        &mut self,
        toolchain: &KernelToolchain,
        kernels: &[ModuleKernel],
    ) -> Result<KernelModule, DriverError> {
        self.0.retain(|_, kernel| kernel.strong_count() > 0);
        let all: Vec<NativeKernel> = kernels.iter().map(|kernel| toolchain.text(kernel)).collect();
        let known = all.iter().map(|kernel| self.0.get(&kernel.source).and_then(Weak::upgrade));
        let mut ready: Vec<Option<Arc<LoadedKernel>>> = known.collect();
        let missing: Vec<_> = all.iter().zip(&ready).filter(|(_, ready)| ready.is_none()).map(|(of, _)| of).collect();
        let mut made = side_by_side(&missing, |kernel| toolchain.make(kernel))?.into_iter();
        ready.iter_mut().filter(|ready| ready.is_none()).for_each(|ready| *ready = made.next().map(Arc::new));
        let mut module = HashMap::new();
        for (NativeKernel { name, source, .. }, ready) in all.into_iter().zip(ready.into_iter().flatten()) {
            self.0.insert(source, Arc::downgrade(&ready));
            if module.insert(name.clone(), ready).is_some() {
                return Err(refused("module", format!("there are two kernels `{name}`")));
            }
        }
        let sources = kernels.iter().map(|kernel| (kernel.name().to_owned(), kernel.clone())).collect();
        Ok(KernelModule { ready: module, sources })
    }

    /// A kernel that is no part of a module.
    pub(crate) fn kernel(
        &mut self,
        toolchain: &KernelToolchain,
        kernel: NativeKernel,
    ) -> Result<Arc<LoadedKernel>, DriverError> {
        if let Some(ready) = self.0.get(&kernel.source).and_then(Weak::upgrade) {
            return Ok(ready);
        }
        let ready = Arc::new(toolchain.make(&kernel)?);
        self.0.insert(kernel.source, Arc::downgrade(&ready));
        Ok(ready)
    }
}

impl LoadedKernel {
    /// Blocks of it that a multiprocessor has room for at once.
    pub(crate) fn resident_blocks(&self, context: &CudaContext) -> Result<u32, DriverError> {
        context.resident_blocks(self.function, self.block[0])
    }
}

impl KernelToolchain {
    /// A kernel as what the compiler reads.
    fn text(&self, kernel: &ModuleKernel) -> NativeKernel {
        match kernel {
            ModuleKernel::Native(kernel) => kernel.clone(),
            ModuleKernel::Computed(kernel) => NativeKernel {
                name: kernel.name.clone(),
                threads: kernel.threads,
                buffers: kernel.buffers.len(),
                source: self.dialect.source(std::slice::from_ref(kernel)),
            },
        }
    }

    fn make(&self, kernel: &NativeKernel) -> Result<LoadedKernel, DriverError> {
        let NativeKernel { name, source, .. } = kernel;
        let compile = || self.compiler.compile(name, source, &self.arch, self.dialect.options);
        match &self.kept {
            Some(kept) => kept.code(name, source, self.dialect.options, compile, |code| self.load(kernel, code)),
            None => self.load(kernel, &compile()?),
        }
    }

    fn load(&self, kernel: &NativeKernel, code: &[u8]) -> Result<LoadedKernel, DriverError> {
        let wrong = |error: DriverError| match error {
            DriverError::Failed { call, why } => refused(call, format!("kernel `{}`: {why}", kernel.name)),
            other => other,
        };
        let module = CudaModule::new(&self.context, code).map_err(wrong)?;
        Ok(LoadedKernel {
            function: module.function(&kernel.name).map_err(wrong)?,
            _module: module,
            block: [kernel.threads, 1, 1],
            pointers: kernel.buffers,
            starts_early: self.starts_early,
        })
    }
}

impl KernelModule {
    pub(crate) fn kernel(&self, name: &str) -> Result<&Arc<LoadedKernel>, DriverError> {
        self.ready.get(name).ok_or_else(|| no_kernel("launch", name))
    }

    /// What a kernel was made of.
    pub(crate) fn source(&self, name: &str) -> Result<&ModuleKernel, DriverError> {
        self.sources.get(name).ok_or_else(|| no_kernel("prepare", name))
    }
}

fn no_kernel(call: &'static str, name: &str) -> DriverError {
    refused(call, format!("the module has no kernel `{name}`"))
}

/// A launch with all that it needs.
pub(crate) struct ReadyLaunch {
    kernel: Arc<LoadedKernel>,
    grid: [u32; 3],
    shared_bytes: u32,
    /// Where it is behind another launch.
    mode: LaunchMode,
    pointers: Vec<DeviceRange>,
}

impl ReadyLaunch {
    /// The launch of a kernel, where it is one of this kernel.
    pub(crate) fn new(
        kernel: &Arc<LoadedKernel>,
        config: &LaunchConfig,
        grid: [u32; 3],
        pointers: Vec<DeviceRange>,
    ) -> Result<ReadyLaunch, DriverError> {
        let LaunchConfig { entry, block, shared_bytes, cooperative, early_start, arguments } = config;
        if *block != kernel.block {
            let made = kernel.block;
            return Err(refused(
                "launch",
                format!("kernel `{entry}`: expected groups of {made:?} threads, got {block:?}"),
            ));
        }
        if pointers.len() != kernel.pointers {
            let (made, got) = (kernel.pointers, pointers.len());
            return Err(refused("launch", format!("kernel `{entry}`: expected {made} buffers, got {got}")));
        }
        if *cooperative {
            return Err(unsupported(
                format!("a cooperative launch of kernel `{entry}`"),
                "no kernel here waits for others",
            ));
        }
        if !arguments.is_empty() {
            let what = format!("an argument of {} bytes for kernel `{entry}`", arguments.len());
            return Err(unsupported(what, "kernels here are given buffers alone"));
        }
        // It waits by itself.
        let mode = if *early_start && kernel.starts_early { LaunchMode::Early } else { LaunchMode::Ordinary };
        Ok(ReadyLaunch { kernel: kernel.clone(), grid, shared_bytes: *shared_bytes, mode, pointers })
    }

    /// The launch of so many blocks that wait for each other.
    pub(crate) fn cooperative(kernel: &Arc<LoadedKernel>, blocks: u32, pointers: Vec<DeviceRange>) -> ReadyLaunch {
        let (kernel, grid, mode) = (kernel.clone(), [blocks, 1, 1], LaunchMode::Cooperative);
        ReadyLaunch { kernel, grid, shared_bytes: 0, mode, pointers }
    }

    /// Submits it behind another launch or not: early begins one that is behind another alone.
    pub(crate) fn submit(&self, stream: &CudaStream, behind_launch: bool) -> Result<(), DriverError> {
        let ReadyLaunch { kernel, grid, shared_bytes, mode, pointers } = self;
        let (function, block) = (kernel.function, kernel.block);
        let mode = if *mode == LaunchMode::Early && !behind_launch { LaunchMode::Ordinary } else { *mode };
        stream.launch(&FunctionLaunch { function, grid: *grid, block, shared_bytes: *shared_bytes, mode, pointers })
    }
}
