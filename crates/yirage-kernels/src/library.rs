//! The kernels as the library of a device.

use crate::native::{self, ModuleKernel, NativeAttention, NativeKernel, NativeProducts};
use crate::node_kernel::{BufferSource, NodeKernel};
use crate::op::{PlanSite, lower};
use crate::target;
use std::collections::HashSet;
use std::sync::Arc;
use yirage_hal::HalError;
use yirage_hal::driver::{Binding, BindingAccess, KernelCall, KernelLaunch, LaunchConfig, Library, ValueSlices};
use yirage_kir::{BufferAccess, ComputeKernel};
use yirage_plan::{Plan, Target};

/// The library of a device whose target is this, with the kernels of this crate.
#[derive(Clone, Debug)]
pub struct KernelLibrary {
    target: Target,
    products: Option<Arc<dyn NativeProducts>>,
    attention: Option<Arc<dyn NativeAttention>>,
}

impl KernelLibrary {
    /// The kernels of a plan's step.
    fn kernels(&self, plan: &Plan, step: usize) -> Result<Vec<NodeKernel>, HalError> {
        let node = &plan.graph.nodes[plan.steps[step].node as usize];
        let run_by = &plan.kernels[plan.steps[step].kernel as usize].name;
        let is_native =
            |products: &&dyn NativeProducts| [products.name(), products.name_of_regions()].contains(&run_by.as_str());
        let products = self.products.as_deref().filter(is_native);
        let attention = self.attention.as_deref().filter(|attention| attention.name() == run_by);
        let site =
            PlanSite { graph: &plan.graph, bucket: plan.bucket, limits: &self.target.limits, products, attention };
        lower(site, node).map(|kernels| kernels.into_iter().map(named).collect())
    }
}

/// A kernel whose name says what it computes: kernels that are equal have one name. A native one's does already.
fn named(mut made: NodeKernel) -> NodeKernel {
    if made.native.is_some() {
        return made;
    }
    let hash = yirage_ir::hash::fnv128(yirage_kir::text::print(&made.kernel).as_bytes());
    made.kernel.name = format!("{}_{:016x}", made.kernel.name, hash as u64);
    made
}

impl KernelLibrary {
    /// The library.
    pub fn new(target: Target) -> KernelLibrary {
        KernelLibrary { target, products: None, attention: None }
    }

    /// The library of a device that has a vendor's own kernels of products with weights too.
    pub fn with_products(target: Target, products: Arc<dyn NativeProducts>) -> KernelLibrary {
        let target = target::with_products(target, &*products);
        KernelLibrary { target, products: Some(products), attention: None }
    }

    /// The same of a device that has a vendor's own kernels of attention over a cache too.
    #[must_use]
    pub fn and_attention(self, attention: Arc<dyn NativeAttention>) -> KernelLibrary {
        let target = target::with_attention(self.target, &*attention);
        KernelLibrary { target, attention: Some(attention), ..self }
    }

    /// The kernels of a plan that are data, each once.
    ///
    /// # Errors
    /// A step that no kernel runs.
    pub fn kernels_of(&self, plan: &Plan) -> Result<Vec<ComputeKernel>, HalError> {
        let computed = |kernel| if let ModuleKernel::Computed(kernel) = kernel { Some(kernel) } else { None };
        Ok(self.module_of(plan)?.into_iter().filter_map(computed).collect())
    }

    /// The kernels of a plan, each once.
    ///
    /// # Errors
    /// A step that no kernel runs.
    pub fn module_of(&self, plan: &Plan) -> Result<Vec<ModuleKernel>, HalError> {
        let (mut all, mut names) = (Vec::new(), HashSet::new());
        for step in 0..plan.steps.len() {
            let kernels = self.kernels(plan, step)?.into_iter();
            all.extend(kernels.filter(|made| names.insert(made.kernel.name.clone())).map(in_module));
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
        Ok(native::print(&self.module_of(plan)?).into_bytes())
    }

    fn calls(&self, plan: &Plan, step: usize, values: &dyn ValueSlices) -> Result<Vec<KernelCall>, HalError> {
        let kernels = self.kernels(plan, step)?;
        kernels.into_iter().map(|made| call(made, values).map(KernelCall::Launch)).collect()
    }
}

fn in_module(made: NodeKernel) -> ModuleKernel {
    match made.native {
        None => ModuleKernel::Computed(made.kernel),
        Some(text) => ModuleKernel::Native(NativeKernel {
            threads: made.kernel.threads,
            buffers: made.kernel.buffers.len(),
            name: made.kernel.name,
            source: text.source,
        }),
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
    let early_start = made.native.is_some_and(|native| native.waits);
    let config = LaunchConfig { block: [made.kernel.threads, 1, 1], early_start, ..launch.config };
    Ok(KernelLaunch { config, grid: made.grid, workspace: made.workspace, ..launch })
}
