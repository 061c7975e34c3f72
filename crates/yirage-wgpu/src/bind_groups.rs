//! What kernels are bound to: layouts by what a kernel does with each buffer, and bind groups, kept for the next launch.

use crate::errors::{failed, refused, scoped};
use crate::limits::MOST_BIND_GROUPS;
use crate::memory::{BufferRange, Buffers};
use std::collections::HashMap;
use std::sync::Arc;
use yirage_hal::driver::{Binding, BufferId, BufferSlice, DriverError};

/// What kernels are bound to that do the same with each of their buffers.
pub(crate) struct BindingLayout {
    /// Its number.
    id: u32,
    /// Of each buffer, whether it is declared as one that is only read.
    pub(crate) read_only: Box<[bool]>,
    group: wgpu::BindGroupLayout,
    pub(crate) pipeline: wgpu::PipelineLayout,
}

/// Layouts, each once.
#[derive(Default)]
pub(crate) struct BindingLayouts(HashMap<Box<[bool]>, Arc<BindingLayout>>);

/// Bind groups by layout and by what is bound.
#[derive(Default)]
pub(crate) struct BindGroups {
    groups: HashMap<u32, HashMap<Box<[BufferSlice]>, wgpu::BindGroup>>,
    count: usize,
    /// Room for what is looked up.
    slices: Vec<BufferSlice>,
}

impl BindingLayouts {
    /// The layout of kernels whose buffers are these.
    pub(crate) fn of(&mut self, device: &wgpu::Device, read_only: &[bool]) -> Result<Arc<BindingLayout>, DriverError> {
        if let Some(known) = self.0.get(read_only) {
            return Ok(known.clone());
        }
        let entry = |(binding, &read_only)| wgpu::BindGroupLayoutEntry {
            binding,
            visibility: wgpu::ShaderStages::COMPUTE,
            ty: wgpu::BindingType::Buffer {
                ty: wgpu::BufferBindingType::Storage { read_only },
                has_dynamic_offset: false,
                min_binding_size: None,
            },
            count: None,
        };
        let entries: Vec<_> = (0..).zip(read_only).map(entry).collect();
        let made = scoped(device, || {
            let group =
                device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor { label: None, entries: &entries });
            let pipeline = device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
                label: None,
                bind_group_layouts: &[Some(&group)],
                immediate_size: 0,
            });
            (group, pipeline)
        });
        let (group, pipeline) = made.map_err(|error| failed("module", &error))?;
        let read_only: Box<[bool]> = read_only.into();
        let layout = BindingLayout { id: self.0.len() as u32, read_only: read_only.clone(), group, pipeline };
        Ok(self.0.entry(read_only).or_insert(Arc::new(layout)).clone())
    }
}

impl BindingLayout {
    /// A bind group of these, which nobody keeps.
    pub(crate) fn bind(&self, device: &wgpu::Device, ranges: &[BufferRange]) -> Result<wgpu::BindGroup, DriverError> {
        let bound = (0..).zip(ranges);
        let entries: Vec<_> =
            bound.map(|(binding, range)| wgpu::BindGroupEntry { binding, resource: range.binding() }).collect();
        let made = || {
            device.create_bind_group(&wgpu::BindGroupDescriptor { label: None, layout: &self.group, entries: &entries })
        };
        scoped(device, made).map_err(|error| failed("bind", &error))
    }
}

impl BindGroups {
    /// The bind group of these, made where there is none yet.
    ///
    /// # Errors
    /// Slices that cannot be bound so: beside their buffers, at an offset that the device does not take, too long, and a
    /// buffer that a kernel both only reads and writes.
    pub(crate) fn of(
        &mut self,
        device: &wgpu::Device,
        limits: &wgpu::Limits,
        buffers: &Buffers,
        layout: &BindingLayout,
        bindings: &[Binding],
    ) -> Result<wgpu::BindGroup, DriverError> {
        self.slices.clear();
        self.slices.extend(bindings.iter().map(|binding| binding.slice));
        let slices = &self.slices[..];
        if let Some(known) = self.groups.get(&layout.id).and_then(|groups| groups.get(slices)) {
            return Ok(known.clone());
        }
        check(limits, layout, bindings)?;
        let ranges = slices.iter().map(|&slice| buffers.range("bind", slice)).collect::<Result<Vec<_>, _>>()?;
        let group = layout.bind(device, &ranges)?;
        if self.count >= MOST_BIND_GROUPS {
            self.groups.clear();
            self.count = 0;
        }
        self.groups.entry(layout.id).or_default().insert(slices.into(), group.clone());
        self.count += 1;
        Ok(group)
    }

    /// Forgets what is bound to a buffer, so that its memory is not held.
    pub(crate) fn forget(&mut self, buffer: BufferId) {
        for groups in self.groups.values_mut() {
            groups.retain(|slices, _| slices.iter().all(|slice| slice.buffer != buffer));
        }
        self.count = self.groups.values().map(HashMap::len).sum();
    }
}

/// Checks what the device asks of bindings beside what their buffers do.
fn check(limits: &wgpu::Limits, layout: &BindingLayout, bindings: &[Binding]) -> Result<(), DriverError> {
    let read_only = &layout.read_only;
    if bindings.len() != read_only.len() {
        let (has, bound) = (read_only.len(), bindings.len());
        return Err(refused("bind", format!("the kernel has {has} buffers, {bound} are bound")));
    }
    let (align, most) = (u64::from(limits.min_storage_buffer_offset_alignment), limits.max_storage_buffer_binding_size);
    for Binding { slice, .. } in bindings {
        if !slice.offset.is_multiple_of(align) {
            return Err(refused("bind", format!("{slice:?}: offsets are multiples of {align}")));
        }
        if slice.bytes > most {
            return Err(refused("bind", format!("{slice:?}: bindings have at most {most} bytes")));
        }
    }
    for (at, a) in bindings.iter().enumerate() {
        for (further, b) in bindings.iter().enumerate().skip(at + 1) {
            if a.slice.buffer == b.slice.buffer && read_only[at] != read_only[further] {
                let why = "one is declared as only read, the other is not: no device of this kind binds a buffer so";
                return Err(refused("bind", format!("bindings {at} and {further} are of one buffer, and {why}")));
            }
            if a.slice.overlaps(&b.slice) && (a.access.writes() || b.access.writes()) {
                return Err(refused("bind", format!("{:?} and {:?} overlap, and one is written", a.slice, b.slice)));
            }
        }
    }
    Ok(())
}
