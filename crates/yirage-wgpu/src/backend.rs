//! The backend: which adapters there are, and how one is opened.

use crate::adapter::FoundAdapter;
use crate::api::GraphicsApi;
use crate::driver::WgpuDriver;
use crate::instance::GraphicsInstance;
use std::sync::{Arc, Mutex, PoisonError};
use yirage_hal::driver::DriverDevice;
use yirage_hal::{Backend, Device, DeviceInfo, HalError, OpenOptions, Unavailable};
use yirage_kernels::{KernelLibrary, target};
use yirage_probe::ProbeEnvironment;

/// The variable that names the folder in which compiled kernels are kept. Without, they are compiled anew by each process.
const CODE_FOLDER: &str = "YIRAGE_KERNEL_CACHE";

/// The devices of one interface.
pub struct WgpuBackend {
    api: GraphicsApi,
    surroundings: ProbeEnvironment,
    /// Started when somebody asks for the first time, and kept: its adapters are its own.
    instance: Mutex<Option<Arc<GraphicsInstance>>>,
}

impl WgpuBackend {
    /// The backend of an interface, on a machine with these surroundings. Nothing is loaded.
    pub fn new(api: GraphicsApi, surroundings: ProbeEnvironment) -> WgpuBackend {
        WgpuBackend { api, surroundings, instance: Mutex::default() }
    }

    /// The adapters that are visible, with what is told of each.
    fn adapters(&self) -> Result<Vec<(FoundAdapter, DeviceInfo)>, Unavailable> {
        self.api.look(&self.surroundings)?;
        let found: Vec<_> = self.instance()?.adapters().into_iter().map(FoundAdapter::new).collect();
        let (usable, refused): (Vec<_>, Vec<_>) = found.into_iter().partition(|adapter| adapter.refusal().is_none());
        let refused: Vec<String> = refused.iter().filter_map(FoundAdapter::refusal).collect();
        let passed_over = (!refused.is_empty()).then(|| ("passed_over", refused.join("; ")));
        let described = (0..).zip(&usable).map(|(ordinal, adapter)| {
            let mut info = adapter.device_info(self.api, ordinal);
            info.facts.extend(passed_over.clone());
            info
        });
        let infos = self.api.visible().apply(described.collect(), &self.surroundings);
        let chosen = self.api.visible().chosen(usable.len(), &self.surroundings).into_iter();
        let chosen: Vec<_> = chosen.filter_map(|at| usable.get(at).cloned()).zip(infos).collect();
        if chosen.is_empty() {
            return Err(self.no_adapter(usable.len(), &refused));
        }
        Ok(chosen)
    }

    fn no_adapter(&self, usable: usize, refused: &[String]) -> Unavailable {
        let title = self.api.title();
        let why = match (usable, refused.is_empty()) {
            (0, true) => format!("no driver of {title} has a device that wgpu can use"),
            (0, false) => format!("no device of {title} will do: {}", refused.join("; ")),
            (hidden, _) => format!("{hidden} devices of {title} are there, and all are hidden by variables"),
        };
        Unavailable {
            backend: self.api.name(),
            why,
            remedy: self.api.remedy().into(),
            present: usable > 0 || !refused.is_empty(),
        }
    }

    fn instance(&self) -> Result<Arc<GraphicsInstance>, Unavailable> {
        let mut kept = self.instance.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(instance) = &*kept {
            return Ok(instance.clone());
        }
        let started = GraphicsInstance::new(self.api).map_err(|why| Unavailable {
            backend: self.api.name(),
            why: format!("{} does not start: {why}", self.api.title()),
            remedy: self.api.remedy().into(),
            present: true,
        })?;
        Ok(kept.insert(Arc::new(started)).clone())
    }

    /// The device of an ordinal.
    fn adapter(&self, ordinal: u32) -> Result<(FoundAdapter, DeviceInfo), HalError> {
        let adapters = self.adapters().map_err(|e| HalError::Device(e.to_string()))?;
        let there = adapters.len();
        let no_such = || HalError::Option { option: "device", why: format!("there are {there}, and no {ordinal}") };
        adapters.into_iter().nth(ordinal as usize).ok_or_else(no_such)
    }

    /// The driver of a device, without a library of kernels.
    ///
    /// # Errors
    /// A device that is not there, and what its adapter says.
    pub fn driver(&self, ordinal: u32) -> Result<WgpuDriver, HalError> {
        Ok(self.opened(&self.adapter(ordinal)?.0)?.0)
    }

    /// A driver, which keeps what its device compiles where a folder is named for that; where it does not, why.
    fn opened(&self, adapter: &FoundAdapter) -> Result<(WgpuDriver, Option<String>), HalError> {
        let driver = WgpuDriver::new(adapter)?;
        let folder = self.surroundings.variable(CODE_FOLDER).filter(|folder| !folder.is_empty());
        let Some(folder) = folder else { return Ok((driver, None)) };
        let (driver, kept) = driver.keeping(folder.into(), adapter);
        let mut why = kept.err().map(|why| format!("compiled kernels are not kept: {why}"));
        if let Some((_, notices)) = driver.kept_pipelines().filter(|(_, notices)| !notices.is_empty()) {
            why = Some(notices.join("; "));
        }
        Ok((driver, why))
    }
}

impl Backend for WgpuBackend {
    fn name(&self) -> &'static str {
        self.api.name()
    }

    fn probe(&self) -> Result<Vec<DeviceInfo>, Unavailable> {
        Ok(self.adapters()?.into_iter().map(|(_, info)| info).collect())
    }

    fn open(&self, ordinal: u32, options: &OpenOptions) -> Result<(Arc<dyn Device>, Vec<String>), HalError> {
        let (adapter, mut info) = self.adapter(ordinal)?;
        let library = KernelLibrary::new(target(self.api.name(), &info.arch, adapter.limits()));
        let (driver, why) = self.opened(&adapter)?;
        let is_kept = if driver.kept_pipelines().is_some() { "kept on disk" } else { "not kept" };
        info.facts.push(("compiled kernels", is_kept.into()));
        let notes = options.ignored_on("a graphics device").into_iter().chain(why).collect();
        Ok((Arc::new(DriverDevice::new(info, driver, library)), notes))
    }
}
