//! The backend: which devices there are, and how one is opened.

use crate::collective::{SimGroup, SimRank};
use crate::driver::{SimDriver, SimMonitor};
use crate::emulator::Emulator;
use crate::library::References;
use crate::memory::SimMemoryStats;
use crate::settings::{Settings, SimKernels};
use crate::shared_module::SharedKernels;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use yirage_hal::driver::DriverDevice;
use yirage_hal::{Backend, Device, DeviceGroup, DeviceInfo, HalError, OpenOptions, Unavailable};
use yirage_kernels::KernelLibrary;
use yirage_kir::ComputeKernel;
use yirage_ranks::{RankDevice, RankGroup};

/// The backend of simulated accelerators.
pub struct Sim {
    settings: Settings,
    shared_kernels: Arc<SharedKernels>,
    /// The group that its one device is a rank of.
    group: Option<Arc<RankGroup>>,
    opened: Mutex<Vec<SimMonitor>>,
}

impl Default for Sim {
    fn default() -> Sim {
        Sim::with(Settings::default())
    }
}

impl Sim {
    /// Accelerators that are like this.
    pub fn with(settings: Settings) -> Sim {
        let shared_kernels = Arc::new(SharedKernels::new(settings.kernels));
        Sim { settings, shared_kernels, group: None, opened: Mutex::default() }
    }

    /// One accelerator that is a rank of a group, whose other ranks are in other processes. How many there are the group says,
    /// not the settings.
    pub fn of_group(settings: Settings, group: impl Into<Arc<RankGroup>>) -> Sim {
        let group = group.into();
        let settings = Settings { devices: 1, ranks: group.ranks(), ..settings };
        Sim { group: Some(group), ..Sim::with(settings) }
    }

    /// What compiles the kernels of [`SimKernels::Emulated`]: each module by itself, or many kernels before.
    pub fn emulator(&self) -> Option<&Emulator> {
        self.shared_kernels.emulator()
    }

    /// All kernels of `yirage-kernels` that devices were given, each once, by their names.
    pub fn kernels(&self) -> Vec<ComputeKernel> {
        self.shared_kernels.given()
    }

    /// What each device that was opened holds now, in the order of opening.
    pub fn memory_stats(&self) -> Vec<SimMemoryStats> {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner).iter().map(SimMonitor::memory_stats).collect()
    }

    /// How long the queue of each device that was opened has run commands, in the order of opening.
    pub fn busy(&self) -> Vec<Duration> {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner).iter().map(SimMonitor::busy).collect()
    }

    /// Bytes of staging memory that each device that was opened has given, in the order of opening.
    pub fn staging(&self) -> Vec<u64> {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner).iter().map(SimMonitor::staging).collect()
    }

    /// How many graphs each device that was opened has captured, in the order of opening.
    pub fn captures(&self) -> Vec<u64> {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner).iter().map(SimMonitor::captures).collect()
    }

    /// One accelerator, by itself or as a rank of a group.
    fn accelerator(&self, ordinal: u32, rank: Option<SimRank>) -> Result<Arc<dyn Device>, HalError> {
        let driver = SimDriver::new(&self.settings, Arc::clone(&self.shared_kernels), ordinal, rank)?;
        self.opened.lock().unwrap_or_else(PoisonError::into_inner).push(driver.monitor());
        let (info, limits) = (self.info(ordinal), self.settings.limits.clone());
        let Settings { kernels, activations, ranks, weight_tiles, ref cache_layout, .. } = self.settings;
        let operations = match kernels {
            SimKernels::Interpreted | SimKernels::Emulated(_) | SimKernels::Recorded => {
                let library = KernelLibrary::new(yirage_kernels::target("sim", "interpreter", limits));
                return Ok(Arc::new(DriverDevice::new(info, driver, library)));
            }
            SimKernels::References => false,
            SimKernels::Operations => true,
        };
        let cache_layout = cache_layout.clone();
        let library = References { operations, activations, ranks, weight_tiles, cache_layout, limits };
        Ok(Arc::new(DriverDevice::new(info, driver, library)))
    }

    fn info(&self, ordinal: u32) -> DeviceInfo {
        DeviceInfo {
            memory_bytes: Some(self.settings.memory),
            total_memory_bytes: Some(self.settings.memory),
            software: true,
            facts: vec![("purpose", "finds what only works on the host; slow by design".into())],
            ..DeviceInfo::new("sim", ordinal, "simulated accelerator", "scalar f64")
        }
    }
}

impl Backend for Sim {
    fn name(&self) -> &'static str {
        "sim"
    }

    fn probe(&self) -> Result<Vec<DeviceInfo>, Unavailable> {
        Ok((0..self.settings.devices).map(|ordinal| self.info(ordinal)).collect())
    }

    fn open(&self, ordinal: u32, options: &OpenOptions) -> Result<(Arc<dyn Device>, Vec<String>), HalError> {
        let devices = self.settings.devices;
        if ordinal >= devices {
            return Err(HalError::Option { option: "device", why: format!("there are {devices}, and no {ordinal}") });
        }
        let mut notes = Vec::new();
        if options.threads.is_some() || options.isa.is_some() || options.guarded {
            notes.push(
                "a simulated accelerator has no threads, instruction sets or guard pages of the host: ignored".into(),
            );
        }
        if let Some(group) = &self.group {
            let accelerator = self.accelerator(ordinal, Some(SimRank::Elsewhere(group.clone())))?;
            // A group of one has no collectives.
            if group.ranks() <= 1 {
                return Ok((accelerator, notes));
            }
            return Ok((Arc::new(RankDevice::new(accelerator, group.clone(), options.experts)?), notes));
        }
        if self.settings.ranks <= 1 {
            return Ok((self.accelerator(ordinal, None)?, notes));
        }
        let ranks = SimGroup::ranks(self.settings.ranks as usize).into_iter();
        let ranks = ranks.map(|rank| self.accelerator(ordinal, Some(rank)));
        let group = DeviceGroup::new(self.info(ordinal), ranks.collect::<Result<_, HalError>>()?, options.experts)?;
        Ok((Arc::new(group), notes))
    }
}
