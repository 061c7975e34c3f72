//! Kernels made ready by a library: each text once, whatever modules have it.

use crate::abi::RawKernel;
use crate::device::OpenedDevice;
use crate::status::refused;
use std::collections::HashMap;
use std::ffi::{CString, c_char};
use std::sync::{Arc, Weak};
use yirage_hal::driver::DriverError;
use yirage_kir::ComputeKernel;
use yirage_kir::render::CDialect;

/// A source that the library has compiled, forgotten with its last kernel.
struct CompiledSource {
    device: Arc<OpenedDevice>,
    module: u64,
}

impl Drop for CompiledSource {
    fn drop(&mut self) {
        self.device.unload(self.module);
    }
}

/// A kernel that is ready to be launched.
pub(crate) struct CompiledKernel {
    source: Arc<CompiledSource>,
    pub(crate) name: CString,
    pub(crate) threads: u32,
    /// How many pointers it is given.
    pub(crate) buffers: usize,
}

impl CompiledKernel {
    pub(crate) fn module(&self) -> u64 {
        self.source.module
    }
}

/// The kernels of a module by their names.
pub(crate) struct CompiledModule(HashMap<String, Arc<CompiledKernel>>);

impl CompiledModule {
    pub(crate) fn kernel(&self, name: &str) -> Result<&Arc<CompiledKernel>, DriverError> {
        self.0.get(name).ok_or_else(|| refused("launch", format!("the module has no kernel `{name}`")))
    }
}

/// All kernels that any module has, by their text, so that programs of one model do not have theirs made again.
#[derive(Default)]
pub(crate) struct CompiledKernels(HashMap<String, Weak<CompiledKernel>>);

impl CompiledKernels {
    /// The module of these kernels; those that are new are compiled as one source.
    pub(crate) fn module(
        &mut self,
        device: &Arc<OpenedDevice>,
        dialect: CDialect,
        kernels: &[ComputeKernel],
    ) -> Result<CompiledModule, DriverError> {
        self.0.retain(|_, kernel| kernel.strong_count() > 0);
        let texts: Vec<String> = kernels.iter().map(|kernel| dialect.source(std::slice::from_ref(kernel))).collect();
        let mut module = HashMap::new();
        let mut new = Vec::new();
        for (kernel, text) in kernels.iter().zip(&texts) {
            match self.0.get(text).and_then(Weak::upgrade) {
                Some(ready) => drop(module.insert(kernel.name.clone(), ready)),
                None => new.push((kernel, text)),
            }
        }
        let sources: Vec<ComputeKernel> = new.iter().map(|(kernel, _)| (*kernel).clone()).collect();
        for (made, (kernel, text)) in load(device, dialect, &sources)?.into_iter().zip(new) {
            self.0.insert(text.clone(), Arc::downgrade(&made));
            module.insert(kernel.name.clone(), made);
        }
        if module.len() != kernels.len() {
            return Err(refused("module", "two of its kernels have one name"));
        }
        Ok(CompiledModule(module))
    }
}

/// Has these kernels compiled, in their order.
fn load(
    device: &Arc<OpenedDevice>,
    dialect: CDialect,
    kernels: &[ComputeKernel],
) -> Result<Vec<Arc<CompiledKernel>>, DriverError> {
    if kernels.is_empty() {
        return Ok(Vec::new());
    }
    let text = |name: &str| CString::new(name).map_err(|e| refused("module", format!("kernel `{name}`: {e}")));
    let names: Vec<CString> = kernels.iter().map(|kernel| text(&kernel.name)).collect::<Result<_, DriverError>>()?;
    let buffers = |kernel: &ComputeKernel| {
        let too_many = |_| refused("module", format!("kernel `{}` has too many buffers", kernel.name));
        u32::try_from(kernel.buffers.len()).map_err(too_many)
    };
    let raw = names.iter().zip(kernels).map(|(name, kernel)| {
        Ok(RawKernel { name: name.as_ptr().cast::<c_char>(), threads: kernel.threads, buffers: buffers(kernel)? })
    });
    let raw: Vec<RawKernel> = raw.collect::<Result<_, DriverError>>()?;
    let source = dialect.source(kernels);
    let module = device.load(&source, &raw)?;
    let source = Arc::new(CompiledSource { device: device.clone(), module });
    let made = names.into_iter().zip(kernels).map(|(name, kernel)| {
        let (threads, buffers) = (kernel.threads, kernel.buffers.len());
        Arc::new(CompiledKernel { source: source.clone(), name, threads, buffers })
    });
    Ok(made.collect())
}
