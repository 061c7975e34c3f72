//! The kernels as the library of a device.

use crate::node_kernel::{BufferSource, NodeKernel};
use crate::op::{PlanSite, lower};
use yirage_hal::HalError;
use yirage_hal::driver::{Binding, BindingAccess, KernelCall, KernelLaunch, LaunchConfig, Library, ValueSlices};
use yirage_kir::{BufferAccess, ComputeKernel};
use yirage_plan::{Plan, Target};

/// The library of a device whose target is this, with the kernels of this crate.
#[derive(Clone, Debug)]
pub struct KernelLibrary {
    target: Target,
}

impl KernelLibrary {
    /// The kernels of a plan's step.
    fn kernels(&self, plan: &Plan, step: usize) -> Result<Vec<NodeKernel>, HalError> {
        let node = &plan.graph.nodes[plan.steps[step].node as usize];
        let site = PlanSite { graph: &plan.graph, bucket: plan.bucket, limits: &self.target.limits };
        lower(site, node).map(|kernels| kernels.into_iter().map(named).collect())
    }
}

/// A kernel whose name says what it computes: kernels that are equal have one name.
fn named(mut made: NodeKernel) -> NodeKernel {
    let hash = yirage_ir::hash::fnv128(yirage_kir::text::print(&made.kernel).as_bytes());
    made.kernel.name = format!("{}_{:016x}", made.kernel.name, hash as u64);
    made
}

impl KernelLibrary {
    /// The library.
    pub fn new(target: Target) -> KernelLibrary {
        KernelLibrary { target }
    }

    /// The kernels of a plan, each once.
    ///
    /// # Errors
    /// A step that no kernel runs.
    pub fn kernels_of(&self, plan: &Plan) -> Result<Vec<ComputeKernel>, HalError> {
        let mut all: Vec<ComputeKernel> = Vec::new();
        let mut names = std::collections::HashSet::new();
        for step in 0..plan.steps.len() {
            let kernels = self.kernels(plan, step)?;
            all.extend(kernels.into_iter().map(|made| made.kernel).filter(|kernel| names.insert(kernel.name.clone())));
        }
        Ok(all)
    }
}

impl Library for KernelLibrary {
    fn target(&self) -> Target {
        self.target.clone()
    }

    /// The text of all kernels: a driver makes of it what its device's compiler reads.
    fn code(&self, plan: &Plan) -> Result<Vec<u8>, HalError> {
        let kernels = self.kernels_of(plan)?;
        Ok(kernels.iter().map(yirage_kir::text::print).collect::<Vec<String>>().join("\n").into_bytes())
    }

    fn calls(&self, plan: &Plan, step: usize, values: &dyn ValueSlices) -> Result<Vec<KernelCall>, HalError> {
        let kernels = self.kernels(plan, step)?;
        kernels.into_iter().map(|made| call(made, values).map(KernelCall::Launch)).collect()
    }
}

/// The launch of a kernel where its values lie.
fn call(made: NodeKernel, values: &dyn ValueSlices) -> Result<KernelLaunch, HalError> {
    let mut bindings = Vec::with_capacity(made.sources.len());
    for (source, buffer) in made.sources.iter().zip(&made.kernel.buffers) {
        let slice = match source {
            BufferSource::Sizes => values.sizes(),
            BufferSource::Value(value) => values.slice(*value)?,
            BufferSource::Part { value, offset, bytes } => {
                let whole = values.slice(*value)?;
                let outside = || HalError::Load(format!("{bytes} bytes from {offset} on are not in {whole:?}"));
                whole.part(*offset, *bytes).ok_or_else(outside)?
            }
            BufferSource::Workspace => continue,
        };
        let access = match buffer.access {
            BufferAccess::Read => BindingAccess::Read,
            BufferAccess::Write => BindingAccess::Write,
            BufferAccess::ReadWrite => BindingAccess::ReadWrite,
        };
        bindings.push(Binding { slice, access });
    }
    let launch = KernelLaunch::new(made.kernel.name, bindings, Vec::new());
    let config = LaunchConfig { block: [made.kernel.threads, 1, 1], ..launch.config };
    Ok(KernelLaunch { config, grid: made.grid, workspace: made.workspace, ..launch })
}
