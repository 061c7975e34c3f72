//! Kernels made ready for the device: from the text of a module to pipelines, each source once.

use crate::bind_groups::{BindingLayout, BindingLayouts};
use crate::errors::{refused, scoped, unsupported, whole};
use crate::loops;
use std::collections::HashMap;
use std::sync::{Arc, Weak};
use yirage_hal::driver::{DriverError, LaunchConfig, side_by_side};
use yirage_kir::{ComputeKernel, render};

/// A kernel in the device's language.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct KernelSource {
    /// Its name, which is that of its entry point.
    pub(crate) name: String,
    /// Threads of a group, along three axes, as the text says it.
    pub(crate) block: [u32; 3],
    /// Bytes that a group shares.
    pub(crate) shared_bytes: u64,
    /// Rounds of its longest loop, as far as they are known.
    pub(crate) rounds: u64,
    /// Of each buffer, in the order of the bindings, whether the text declares it as one that is only read.
    pub(crate) read_only: Vec<bool>,
    /// WGSL.
    pub(crate) text: String,
}

impl KernelSource {
    /// A kernel as WGSL.
    pub(crate) fn of(kernel: &ComputeKernel) -> KernelSource {
        KernelSource {
            name: kernel.name.clone(),
            block: [kernel.threads, 1, 1],
            shared_bytes: kernel.shared_bytes(),
            rounds: loops::longest(kernel),
            read_only: kernel.buffers.iter().map(render::is_read_only).collect(),
            text: render::wgsl(kernel),
        }
    }

    /// Checks what wgpu does not, or not before the kernel's neighbours were made.
    fn check(&self, device: &wgpu::Device) -> Result<(), DriverError> {
        let KernelSource { name, shared_bytes, read_only, rounds, .. } = self;
        let limits = device.limits();
        let (most, bound) = (limits.max_storage_buffers_per_shader_stage, read_only.len());
        if bound > most as usize {
            let why = format!("kernel `{name}` has {bound} buffers, this device binds {most} at most");
            return Err(refused("module", why));
        }
        let most = u64::from(limits.max_compute_workgroup_storage_size);
        if *shared_bytes > most {
            let why = format!("groups of kernel `{name}` share {shared_bytes} bytes, on this device {most} at most");
            return Err(refused("module", why));
        }
        if *rounds > loops::MOST_OF_LLVMPIPE && device.adapter_info().driver == "llvmpipe" {
            let why = format!("llvmpipe leaves a loop after {} rounds", loops::MOST_OF_LLVMPIPE);
            return Err(unsupported(format!("a loop of {rounds} rounds in kernel `{name}`"), why));
        }
        Ok(())
    }
}

/// A kernel that is ready to be launched.
pub(crate) struct ReadyKernel {
    pub(crate) pipeline: wgpu::ComputePipeline,
    pub(crate) layout: Arc<BindingLayout>,
    block: [u32; 3],
}

/// The kernels of a module by their names.
pub(crate) struct ReadyModule(HashMap<String, Arc<ReadyKernel>>);

/// All kernels that any module has, so that programs of one model do not have theirs made again.
#[derive(Default)]
pub(crate) struct ReadyKernels(HashMap<String, Weak<ReadyKernel>>);

impl ReadyKernels {
    /// The module of these kernels. All of them are made at once: what is wrong with one is said before a step runs.
    pub(crate) fn module(
        &mut self,
        device: &wgpu::Device,
        cache: Option<&wgpu::PipelineCache>,
        layouts: &mut BindingLayouts,
        sources: impl Iterator<Item = KernelSource>,
    ) -> Result<ReadyModule, DriverError> {
        self.0.retain(|_, kernel| kernel.strong_count() > 0);
        let sources: Vec<KernelSource> = sources.collect();
        let mut kernels: Vec<Option<Arc<ReadyKernel>>> =
            sources.iter().map(|source| self.0.get(&source.text).and_then(Weak::upgrade)).collect();
        let missing = sources.iter().zip(&kernels).filter(|(_, kernel)| kernel.is_none());
        let missing = missing.map(|(source, _)| {
            source.check(device)?;
            Ok((source, layouts.of(device, &source.read_only)?))
        });
        let missing = missing.collect::<Result<Vec<_>, DriverError>>()?;
        // A driver takes milliseconds to seconds for one.
        let made = side_by_side(&missing, |(source, layout)| ReadyKernel::new(device, cache, source, layout.clone()))?;
        let mut made = made.into_iter();
        kernels.iter_mut().filter(|kernel| kernel.is_none()).for_each(|kernel| *kernel = made.next().map(Arc::new));
        let mut module = HashMap::new();
        for (source, kernel) in sources.into_iter().zip(kernels.into_iter().flatten()) {
            self.0.insert(source.text, Arc::downgrade(&kernel));
            let name = source.name.clone();
            if module.insert(source.name, kernel).is_some() {
                return Err(refused("module", format!("there are two kernels `{name}`")));
            }
        }
        Ok(ReadyModule(module))
    }
}

impl ReadyKernel {
    pub(crate) fn new(
        device: &wgpu::Device,
        cache: Option<&wgpu::PipelineCache>,
        source: &KernelSource,
        layout: Arc<BindingLayout>,
    ) -> Result<ReadyKernel, DriverError> {
        let KernelSource { name, block, text, .. } = source;
        let made = scoped(device, || {
            let module = device.create_shader_module(wgpu::ShaderModuleDescriptor {
                label: Some(name),
                source: wgpu::ShaderSource::Wgsl(text.into()),
            });
            device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
                label: Some(name),
                layout: Some(&layout.pipeline),
                module: &module,
                entry_point: Some(name),
                compilation_options: wgpu::PipelineCompilationOptions {
                    // Kernels write what a group shares before they read it.
                    zero_initialize_workgroup_memory: false,
                    ..Default::default()
                },
                cache,
            })
        });
        let wrong = |error: wgpu::Error| refused("module", format!("kernel `{name}`: {}", whole(&error)));
        Ok(ReadyKernel { pipeline: made.map_err(wrong)?, layout, block: *block })
    }

    /// Checks that a launch is one of this kernel, and one that this kind of device does.
    pub(crate) fn check(&self, config: &LaunchConfig) -> Result<(), DriverError> {
        let LaunchConfig { entry, block, shared_bytes, cooperative, early_start: _, arguments } = config;
        if *block != self.block {
            let made = self.block;
            return Err(refused(
                "launch",
                format!("kernel `{entry}` has groups of {made:?} threads, not of {block:?}"),
            ));
        }
        let not = |what: String, why: &str| Err(unsupported(format!("{what} of kernel `{entry}`"), why));
        if *cooperative {
            return not("a cooperative launch".into(), "WGSL promises no group that others are at work");
        }
        if *shared_bytes > 0 {
            return not(
                format!("{shared_bytes} bytes of shared memory"),
                "in WGSL a kernel declares all that it shares",
            );
        }
        if !arguments.is_empty() {
            return not(format!("an argument of {} bytes", arguments.len()), "kernels here are given buffers alone");
        }
        Ok(())
    }
}

impl ReadyModule {
    pub(crate) fn kernel(&self, name: &str) -> Result<&Arc<ReadyKernel>, DriverError> {
        self.0.get(name).ok_or_else(|| refused("launch", format!("the module has no kernel `{name}`")))
    }
}
