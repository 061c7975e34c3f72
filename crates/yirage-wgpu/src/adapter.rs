//! An adapter: what is known of it, what bounds its kernels, and whether it will do.

use crate::api::GraphicsApi;
use crate::clock::Clock;
use crate::instance::{AdapterExtras, extras};
use yirage_hal::DeviceInfo;
use yirage_plan::{DeviceLimits, KernelCapabilities};

/// An adapter.
#[derive(Clone, Debug)]
pub(crate) struct FoundAdapter {
    pub(crate) adapter: wgpu::Adapter,
    info: wgpu::AdapterInfo,
    extras: AdapterExtras,
}

/// What the limits of an adapter mean to a compiler.
pub(crate) fn device_limits(limits: &wgpu::Limits, subgroups: Option<[u32; 2]>) -> DeviceLimits {
    let groups = limits.max_compute_workgroups_per_dimension;
    let widths = |[narrowest, widest]: [u32; 2]| {
        std::iter::successors(Some(narrowest.max(1)), |width| width.checked_mul(2))
            .take_while(move |&width| width <= widest)
    };
    DeviceLimits {
        block_bytes: Some(limits.max_compute_workgroup_storage_size.into()),
        threads: Some(limits.max_compute_invocations_per_workgroup.min(limits.max_compute_workgroup_size_x)),
        grid: Some([groups; 3]),
        bindings: Some(limits.max_storage_buffers_per_shader_stage.min(limits.max_bindings_per_bind_group)),
        binding_bytes: Some(limits.max_storage_buffer_binding_size),
        subgroup_widths: subgroups.into_iter().flat_map(widths).collect(),
        ..DeviceLimits::aligned(limits.min_storage_buffer_offset_alignment)
    }
}

impl FoundAdapter {
    pub(crate) fn new(adapter: wgpu::Adapter) -> FoundAdapter {
        FoundAdapter { info: adapter.get_info(), extras: extras(&adapter), adapter }
    }

    /// Why nothing can be computed with it; none where it will do.
    pub(crate) fn refusal(&self) -> Option<String> {
        let compute = wgpu::DownlevelFlags::COMPUTE_SHADERS;
        let computes = self.adapter.get_downlevel_capabilities().flags.contains(compute);
        (!computes).then(|| format!("{} runs no compute shaders", self.info.name))
    }

    /// What is asked of it beside what every adapter does.
    pub(crate) fn features(&self) -> wgpu::Features {
        let useful = Clock::FEATURES
            | wgpu::Features::SUBGROUP
            | wgpu::Features::SUBGROUP_BARRIER
            | wgpu::Features::PIPELINE_CACHE;
        self.adapter.features() & useful
    }

    /// Bytes of its memory, where that is known.
    pub(crate) fn memory(&self) -> Option<u64> {
        self.extras.memory
    }

    /// What bounds its kernels.
    pub(crate) fn limits(&self) -> DeviceLimits {
        let wgpu::AdapterInfo { subgroup_min_size, subgroup_max_size, .. } = self.info;
        let has_subgroups = self.features().contains(wgpu::Features::SUBGROUP);
        device_limits(&self.adapter.limits(), has_subgroups.then_some([subgroup_min_size, subgroup_max_size]))
    }

    /// What is told of it as a device of a backend.
    pub(crate) fn device_info(&self, api: GraphicsApi, ordinal: u32) -> DeviceInfo {
        let FoundAdapter { info, extras, .. } = self;
        let version = extras.api_version.as_deref();
        let arch = version.map_or_else(|| api.title().to_lowercase(), |version| format!("{} {version}", api.name()));
        let limits = self.limits();
        let widths: Vec<String> = limits.subgroup_widths.iter().map(u32::to_string).collect();
        let mut facts = vec![("kind", kind(info.device_type).to_owned())];
        facts.push(("vendor_and_device", format!("{:#06x} {:#06x}", info.vendor, info.device)));
        facts.extend((!info.device_pci_bus_id.is_empty()).then(|| ("pci", info.device_pci_bus_id.clone())));
        facts.extend(limits.binding_bytes.map(|most| ("largest_binding", most.to_string())));
        facts.push(("largest_buffer", self.adapter.limits().max_buffer_size.to_string()));
        facts.extend((!widths.is_empty()).then(|| ("subgroups", widths.join(" "))));
        let driver = [&info.driver, &info.driver_info].map(String::as_str);
        let driver = driver.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ");
        DeviceInfo {
            total_memory_bytes: extras.memory,
            driver_version: (!driver.is_empty()).then_some(driver),
            software: info.device_type == wgpu::DeviceType::Cpu,
            capabilities: KernelCapabilities::LEAST,
            facts,
            ..DeviceInfo::new(api.name(), ordinal, info.name.clone(), arch)
        }
    }
}

fn kind(of: wgpu::DeviceType) -> &'static str {
    match of {
        wgpu::DeviceType::Cpu => "a processor that plays a device",
        wgpu::DeviceType::IntegratedGpu => "integrated",
        wgpu::DeviceType::DiscreteGpu => "discrete",
        wgpu::DeviceType::VirtualGpu => "virtual",
        wgpu::DeviceType::Other => "unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_the_adapters() {
        let limits = wgpu::Limits {
            min_storage_buffer_offset_alignment: 64,
            max_storage_buffer_binding_size: 1 << 27,
            max_storage_buffers_per_shader_stage: 32,
            max_compute_invocations_per_workgroup: 1024,
            max_compute_workgroup_size_x: 512,
            ..wgpu::Limits::default()
        };
        let of = device_limits(&limits, Some([8, 32]));
        assert_eq!((of.align, of.bindings, of.binding_bytes), (64, Some(32), Some(1 << 27)));
        assert_eq!((of.threads, of.grid), (Some(512), Some([65535; 3])));
        assert_eq!(of.subgroup_widths, [8, 16, 32]);
        assert!(device_limits(&limits, None).subgroup_widths.is_empty());
    }
}
