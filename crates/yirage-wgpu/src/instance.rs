//! An interface that was started, and its adapters. The one place that calls into an interface beside wgpu: so Vulkan
//! starts without a window, and says how much memory a device has.

use crate::api::GraphicsApi;
use crate::errors::ready;

/// An interface that was started.
pub(crate) struct GraphicsInstance(wgpu::Instance);

/// What is known of an adapter beside what wgpu tells.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct AdapterExtras {
    /// Bytes of its own memory.
    pub(crate) memory: Option<u64>,
    /// The version of the interface that its driver has.
    pub(crate) api_version: Option<String>,
}

impl GraphicsInstance {
    /// Starts an interface: loads its library, which loads those of the drivers.
    ///
    /// # Errors
    /// What its library says.
    pub(crate) fn new(api: GraphicsApi) -> Result<GraphicsInstance, String> {
        if !wgpu::Instance::enabled_backend_features().contains(api.backends()) {
            return Err(format!("{} is not in this build", api.title()));
        }
        #[cfg(all(feature = "vulkan", any(target_os = "linux", target_os = "windows")))]
        if api == GraphicsApi::Vulkan {
            return vulkan::start().map(GraphicsInstance);
        }
        let descriptor = wgpu::InstanceDescriptor { backends: api.backends(), ..headless() };
        Ok(GraphicsInstance(wgpu::Instance::new(descriptor)))
    }

    /// Its adapters, in its own order.
    pub(crate) fn adapters(&self) -> Vec<wgpu::Adapter> {
        ready(self.0.enumerate_adapters(wgpu::Backends::all())).unwrap_or_default()
    }
}

/// Without a window. The interface's own layers of checks are asked for where debug assertions are, and used where they are
/// installed.
fn headless() -> wgpu::InstanceDescriptor {
    let flags = if cfg!(debug_assertions) { wgpu::InstanceFlags::VALIDATION } else { wgpu::InstanceFlags::empty() };
    wgpu::InstanceDescriptor { flags, ..wgpu::InstanceDescriptor::new_without_display_handle() }
}

/// What wgpu does not tell of an adapter.
pub(crate) fn extras(adapter: &wgpu::Adapter) -> AdapterExtras {
    #[cfg(all(feature = "vulkan", any(target_os = "linux", target_os = "windows")))]
    if adapter.get_info().backend == wgpu::Backend::Vulkan {
        return vulkan::extras(adapter).unwrap_or_default();
    }
    let _ = adapter;
    AdapterExtras::default()
}

#[cfg(all(feature = "vulkan", any(target_os = "linux", target_os = "windows")))]
#[allow(unsafe_code)] // wgpu's door to Vulkan itself
mod vulkan {
    use super::{AdapterExtras, headless};
    use std::ffi::CStr;
    use wgpu::hal::vulkan::{Api, Instance};

    /// Extensions of windows. With one of them among an instance's, Mesa looks for a display whenever its devices are
    /// counted, and complains on the standard error where there is none, as on every server.
    const OF_WINDOWS: [&CStr; 3] = [c"VK_KHR_wayland_surface", c"VK_KHR_xcb_surface", c"VK_KHR_xlib_surface"];

    pub(super) fn start() -> Result<wgpu::Instance, String> {
        let wgpu::InstanceDescriptor { flags, memory_budget_thresholds, backend_options, .. } = headless();
        let descriptor = wgpu::hal::InstanceDescriptor {
            name: "yirage",
            flags,
            memory_budget_thresholds,
            backend_options,
            telemetry: None,
            display: None,
        };
        let without_windows = |callback: wgpu::hal::vulkan::CreateInstanceCallbackArgs<'_, '_, '_>| {
            callback.extensions.retain(|name| !OF_WINDOWS.contains(name));
        };
        // SAFETY: the library is the system's Vulkan loader. What is left out of the list is what wgpu looks up in it before
        // it makes a surface of a window, and no surface is made here; nothing else depends on these three.
        let instance = unsafe { Instance::init_with_callback(&descriptor, Some(Box::new(without_windows))) };
        let instance = instance.map_err(|e| crate::errors::whole(&e))?;
        // SAFETY: it was made above, and nobody else has it.
        Ok(unsafe { wgpu::Instance::from_hal::<Api>(instance) })
    }

    pub(super) fn extras(adapter: &wgpu::Adapter) -> Option<AdapterExtras> {
        // SAFETY: nothing is destroyed through it.
        let adapter = unsafe { adapter.as_hal::<Api>() }?;
        let (instance, device) = (adapter.shared_instance().raw_instance(), adapter.raw_physical_device());
        // SAFETY: the device is one of the instance, which lives as long as the adapter.
        let (memory, about) = unsafe {
            (instance.get_physical_device_memory_properties(device), instance.get_physical_device_properties(device))
        };
        let heaps = memory.memory_heaps.iter().take(memory.memory_heap_count as usize);
        // The first flag: it lies on the device.
        let own = heaps.filter(|heap| heap.flags.as_raw() & 1 != 0).map(|heap| heap.size).fold(0, u64::saturating_add);
        let version = about.api_version;
        let written = format!("{}.{}.{}", version >> 22 & 0x7f, version >> 12 & 0x3ff, version & 0xfff);
        Some(AdapterExtras { memory: (own > 0).then_some(own), api_version: Some(written) })
    }
}
