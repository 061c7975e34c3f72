//! The backend: a library by a name and a path, its devices, and how one is opened.

use crate::abi::RawDeviceInfo;
use crate::device::OpenedDevice;
use crate::driver::{ALIGN, PluginDriver};
use crate::library::{PluginError, PluginLibrary, is_name};
use crate::status::{ask, text_of};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use yirage_hal::driver::{DriverDevice, DriverError};
use yirage_hal::{Backend, Device, DeviceInfo, HalError, OpenOptions, Unavailable};
use yirage_kernels::{KernelLibrary, target};
use yirage_kir::render::CDialect;
use yirage_plan::DeviceLimits;

/// The most devices that are taken from one answer.
const MOST_DEVICES: u32 = 1024;

/// A maker's library.
pub struct PluginBackend {
    name: &'static str,
    path: PathBuf,
    /// Once it has been loaded.
    library: Mutex<Option<Arc<PluginLibrary>>>,
}

/// A device as its library describes it, checked.
struct DescribedDevice {
    info: DeviceInfo,
    limits: DeviceLimits,
    dialect: CDialect,
    in_flight: usize,
}

impl PluginBackend {
    /// The backend of this name, whose library lies at `path`. Nothing is loaded. The name is kept for as long as the process lives.
    ///
    /// # Errors
    /// A name that is no word of lower-case letters, digits and hyphens, or too long; a path that is not absolute.
    pub fn new(name: &str, path: &Path) -> Result<PluginBackend, HalError> {
        let wrong = |why: String| Err(HalError::Option { option: "YIRAGE_PLUGINS", why });
        if !is_name(name) {
            return wrong(format!(
                "expected a name of at most 32 lower-case letters, digits and hyphens, got `{name}`"
            ));
        }
        if !path.is_absolute() {
            return wrong(format!("{name}: expected an absolute path, got `{}`", path.display()));
        }
        Ok(PluginBackend { name: name.to_owned().leak(), path: path.to_owned(), library: Mutex::default() })
    }

    /// The library, loaded when it is first asked for.
    fn library(&self) -> Result<Arc<PluginLibrary>, PluginError> {
        let mut library = self.library.lock().unwrap_or_else(PoisonError::into_inner);
        match &*library {
            Some(loaded) => Ok(loaded.clone()),
            None => Ok(library.insert(Arc::new(PluginLibrary::load(self.name, &self.path)?)).clone()),
        }
    }

    fn described(&self, library: &PluginLibrary, ordinal: u32) -> Result<DescribedDevice, DriverError> {
        let mut raw = RawDeviceInfo {
            name: [0; 128],
            arch: [0; 64],
            driver_version: [0; 64],
            dialect: [0; 16],
            total_memory: 0,
            free_memory: 0,
            cores: 0,
            threads: 0,
            shared_bytes: 0,
            grid: [0; 3],
            software: 0,
            in_flight: 0,
        };
        // SAFETY: the device's fields are written to `raw`.
        ask("describe", |message| unsafe { (library.functions.describe)(ordinal, &mut raw, message) })?;
        described(self.name, ordinal, &library.title, &raw)
    }

    /// The driver of a device, without a library of kernels.
    ///
    /// # Errors
    /// A device that is not there, and what the library says.
    pub fn driver(&self, ordinal: u32) -> Result<PluginDriver, HalError> {
        let library = self.library().map_err(|error| HalError::Device(error.to_string()))?;
        let DescribedDevice { dialect, in_flight, .. } = self.described(&library, ordinal)?;
        Ok(PluginDriver::new(OpenedDevice::open(library, ordinal)?, dialect, in_flight))
    }

    fn devices(&self) -> Result<Vec<DeviceInfo>, String> {
        let library = self.library().map_err(|error| error.to_string())?;
        let mut count = 0;
        // SAFETY: a number is written to `count`.
        let told = ask("count", |message| unsafe { (library.functions.count)(&mut count, message) });
        told.map_err(|answer| DriverError::from(answer).to_string())?;
        if count == 0 || count > MOST_DEVICES {
            return Err(format!("{}: it finds {count} devices", self.path.display()));
        }
        let all = (0..count).map(|ordinal| self.described(&library, ordinal).map(|device| device.info));
        all.collect::<Result<_, DriverError>>().map_err(|error| error.to_string())
    }
}

/// What a library says of a device, where it makes sense.
fn described(
    backend: &'static str,
    ordinal: u32,
    title: &str,
    raw: &RawDeviceInfo,
) -> Result<DescribedDevice, DriverError> {
    let wrong = |why: String| crate::status::refused("describe", format!("device {ordinal}: {why}"));
    let spoken = text_of(&raw.dialect);
    let dialect = CDialect::ALL.into_iter().find(|dialect| dialect.name == spoken && *dialect != CDialect::METAL);
    let dialect = dialect.ok_or_else(|| {
        wrong(format!("expected a dialect of `cuda`, `hip`, `hip-rdna`, `musa`, `maca`, `corex`, got `{spoken}`"))
    })?;
    if raw.threads == 0 || raw.shared_bytes == 0 || raw.grid.contains(&0) || raw.in_flight == 0 {
        return Err(wrong(format!(
            "expected threads, shared bytes, a grid and steps in flight, got {}, {}, {:?} and {}",
            raw.threads, raw.shared_bytes, raw.grid, raw.in_flight
        )));
    }
    let known = |number: u64| (number > 0).then_some(number);
    let mut info = DeviceInfo::new(backend, ordinal, text_of(&raw.name), text_of(&raw.arch));
    info.memory_bytes = known(raw.free_memory);
    info.total_memory_bytes = known(raw.total_memory);
    info.cores = (raw.cores > 0).then_some(raw.cores);
    info.driver_version = Some(text_of(&raw.driver_version)).filter(|version| !version.is_empty());
    info.software = raw.software != 0;
    info.facts.push(("plug-in", title.to_owned()));
    let limits = DeviceLimits {
        block_bytes: Some(raw.shared_bytes),
        threads: Some(raw.threads),
        grid: Some(raw.grid),
        subgroup_widths: vec![dialect.subgroup],
        ..DeviceLimits::aligned(ALIGN)
    };
    let in_flight = usize::try_from(raw.in_flight).map_err(|e| wrong(e.to_string()))?;
    Ok(DescribedDevice { info, limits, dialect, in_flight })
}

impl Backend for PluginBackend {
    fn name(&self) -> &'static str {
        self.name
    }

    fn probe(&self) -> Result<Vec<DeviceInfo>, Unavailable> {
        self.devices().map_err(|why| Unavailable {
            backend: self.name,
            why,
            remedy: "name another library in YIRAGE_PLUGINS, or none".into(),
            present: true,
        })
    }

    fn open(&self, ordinal: u32, options: &OpenOptions) -> Result<(Arc<dyn Device>, Vec<String>), HalError> {
        let library = self.library().map_err(|error| HalError::Device(error.to_string()))?;
        let there = self.devices().map_err(HalError::Device)?.len();
        if usize::try_from(ordinal).map_or(true, |ordinal| ordinal >= there) {
            return Err(HalError::Option { option: "device", why: format!("there are {there}, and no {ordinal}") });
        }
        let DescribedDevice { info, limits, dialect, in_flight } = self.described(&library, ordinal)?;
        let kernels = KernelLibrary::new(target(self.name, &info.arch, limits));
        let driver = PluginDriver::new(OpenedDevice::open(library, ordinal)?, dialect, in_flight);
        Ok((Arc::new(DriverDevice::new(info, driver, kernels)), options.ignored_on("an accelerator")))
    }
}
