//! What runs a step of a plan, said once for all sizes of the plan.

use super::command::{Binding, BindingAccess, CollectiveCall, Launch, LaunchConfig, MemoryCommand, ModuleId};
use super::memory::BufferSlice;
use super::operands::ValueSlices;
use crate::error::HalError;
use yirage_ir::{Dim, Dims, Graph, Node, NodeKind, Sym};
use yirage_plan::DeviceLimits;

/// Groups of a grid along one axis: so many for each step, or as many as a size of the step needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GridExtent {
    /// This many.
    Fixed(u32),
    /// `ceil(size * times / per)`.
    Of {
        /// The size.
        size: Sym,
        /// What it is multiplied by.
        times: u32,
        /// What a group does.
        per: u32,
    },
}

impl GridExtent {
    /// The number at these sizes; none where it is no number that a grid may have.
    pub fn at(self, dims: &Dims) -> Option<u32> {
        match self {
            GridExtent::Fixed(groups) => Some(groups),
            GridExtent::Of { size, times, per } => {
                let elements = u64::from(dims.get(size)).checked_mul(u64::from(times))?;
                u32::try_from(elements.checked_add(u64::from(per).checked_sub(1)?)? / u64::from(per)).ok()
            }
        }
    }
}

/// A kernel as a step of a plan launches it, for all sizes of the plan.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KernelLaunch {
    /// Which kernel of the plan's code, and how.
    pub config: LaunchConfig,
    /// Groups of threads, along three axes.
    pub grid: [GridExtent; 3],
    /// What it touches. A workspace follows as one binding more, where it wants one.
    pub bindings: Vec<Binding>,
    /// Bytes of workspace that it wants.
    pub workspace: u64,
}

impl KernelLaunch {
    /// A kernel of one group of one thread that touches these, with the bytes of its last parameter.
    pub fn new(entry: impl Into<String>, bindings: Vec<Binding>, arguments: Vec<u8>) -> KernelLaunch {
        let config = LaunchConfig {
            entry: entry.into(),
            block: [1; 3],
            shared_bytes: 0,
            cooperative: false,
            early_start: false,
            arguments,
        };
        KernelLaunch { config, grid: [GridExtent::Fixed(1); 3], bindings, workspace: 0 }
    }

    /// That no step of a plan for these largest sizes goes beyond what the device bounds.
    ///
    /// # Errors
    /// The bound, with both numbers.
    pub(super) fn check(&self, limits: &DeviceLimits, bucket: &Dims) -> Result<(), HalError> {
        let entry = &self.config.entry;
        let beyond = |what: String, most: &dyn std::fmt::Display| {
            Err(HalError::Load(format!("kernel `{entry}`: {what}, the device has at most {most}; use another kernel")))
        };
        let threads = self.config.block.iter().map(|&n| u64::from(n)).product::<u64>();
        if let Some(most) = limits.threads.filter(|&most| threads > u64::from(most)) {
            return beyond(format!("a block of {threads} threads"), &most);
        }
        let Some(most) = limits.grid else { return Ok(()) };
        for (axis, (extent, most)) in self.grid.iter().zip(most).enumerate() {
            let blocks = extent.at(bucket);
            if blocks.is_none_or(|blocks| blocks > most) {
                let blocks = blocks.map_or_else(|| format!("{extent:?}"), |blocks| blocks.to_string());
                return beyond(format!("{blocks} blocks along axis {axis}"), &most);
            }
        }
        Ok(())
    }

    /// The launch at these sizes; nothing where the grid is empty.
    ///
    /// # Errors
    /// A grid whose size is no number.
    pub(super) fn at(
        &self,
        module: ModuleId,
        dims: &Dims,
        workspace: Option<BufferSlice>,
    ) -> Result<Option<Launch>, HalError> {
        let mut grid = [0; 3];
        for (groups, extent) in grid.iter_mut().zip(&self.grid) {
            let entry = &self.config.entry;
            let why = || HalError::Load(format!("kernel `{entry}`: the grid {extent:?} at {dims:?} is no number"));
            *groups = extent.at(dims).ok_or_else(why)?;
        }
        if grid.contains(&0) {
            return Ok(None);
        }
        let KernelLaunch { config, bindings, .. } = self.with_workspace(workspace);
        Ok(Some(Launch { module, config, grid, bindings }))
    }

    /// The same with the workspace that it wants among its bindings.
    pub(super) fn with_workspace(&self, workspace: Option<BufferSlice>) -> KernelLaunch {
        let workspace = workspace.and_then(|all| all.part(0, self.workspace)).filter(|_| self.workspace > 0);
        let mut made = self.clone();
        made.bindings.extend(workspace.map(|slice| Binding { slice, access: BindingAccess::Write }));
        made
    }
}

/// An operation of the vendor's library, as a step of a plan wants it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LibraryOperation {
    /// What the driver is told of it.
    pub descriptor: Vec<u8>,
    /// Its operands.
    pub bindings: Vec<Binding>,
}

impl CollectiveCall<GridExtent> {
    /// What a node of one collective op does, for all sizes of the plan.
    ///
    /// # Errors
    /// A node that is none, and values without a place.
    pub fn of(graph: &Graph, node: &Node, values: &dyn ValueSlices) -> Result<CollectiveCall<GridExtent>, HalError> {
        let other = || HalError::Load(format!("`{}` is no collective of a matrix", node.name()));
        let NodeKind::Op(op) = &node.kind else { return Err(other()) };
        let (&[x], &[y]) = (&node.ins[..], &node.outs[..]) else { return Err(other()) };
        let ty = graph.ty(x);
        let rows = match ty.shape.first() {
            Some(&Dim::Sym(size)) => GridExtent::Of { size, times: 1, per: 1 },
            Some(&Dim::Const(rows)) => GridExtent::Fixed(rows),
            None => return Err(other()),
        };
        let width = ty.width().and_then(|width| u32::try_from(width).ok()).filter(|_| op.ranks().is_some());
        let (width, from, to) = (width.ok_or_else(other)?, values.slice(x)?, values.slice(y)?);
        Ok(CollectiveCall { op: op.clone(), dtype: ty.dtype, rows, width, from, to })
    }

    pub(super) fn at(&self, dims: &Dims) -> Result<CollectiveCall, HalError> {
        let (name, rows) = (self.op.name(), self.rows);
        let why = || HalError::Load(format!("`{name}`: the rows {rows:?} at {dims:?} are no number"));
        let CollectiveCall { op, dtype, width, from, to, .. } = self.clone();
        Ok(CollectiveCall { op, dtype, rows: rows.at(dims).ok_or_else(why)?, width, from, to })
    }
}

/// What runs a step of a plan, or a part of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum KernelCall {
    /// A kernel of the plan's code.
    Launch(KernelLaunch),
    /// An operation of the vendor's library.
    Operation(LibraryOperation),
    /// What all devices of a group do together.
    Collective(CollectiveCall<GridExtent>),
    /// Copies or fills.
    Memory(MemoryCommand),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launch(extent: GridExtent, dims: &Dims) -> Result<Option<Launch>, HalError> {
        let kernel = KernelLaunch {
            grid: [extent, GridExtent::Fixed(2), GridExtent::Fixed(1)],
            ..KernelLaunch::new("k", Vec::new(), Vec::new())
        };
        kernel.at(ModuleId(1), dims, None)
    }

    #[test]
    fn a_grid_follows_the_sizes() {
        let dims = Dims { tokens: 65, seqs: 0, blocks: u32::MAX, rows: 1 };
        let of = |size, times, per| launch(GridExtent::Of { size, times, per }, &dims);
        assert_eq!(of(Sym::Tokens, 1, 64).unwrap().unwrap().grid, [2, 2, 1]);
        assert_eq!(of(Sym::Tokens, 64, 65).unwrap().unwrap().grid, [64, 2, 1]);
        assert_eq!(of(Sym::Seqs, 7, 8).unwrap(), None);
        for (times, per) in [(2, 1), (1, 0)] {
            assert!(of(Sym::Blocks, times, per).unwrap_err().to_string().contains("is no number"));
        }
    }

    #[test]
    fn what_goes_beyond_the_device_is_refused_with_numbers() {
        let bounded = DeviceLimits { threads: Some(256), grid: Some([65535, 2, 1]), ..DeviceLimits::aligned(64) };
        let kernel = |block, extent| {
            let made = KernelLaunch::new("k", Vec::new(), Vec::new());
            let config = LaunchConfig { block, ..made.config };
            KernelLaunch { config, grid: [extent, GridExtent::Fixed(2), GridExtent::Fixed(1)], ..made }
        };
        let of = |size, times, per| GridExtent::Of { size, times, per };
        let dims = Dims { tokens: 70_000, seqs: 1, blocks: 1, rows: 1 };
        let check = |block, extent| kernel(block, extent).check(&bounded, &dims).map_err(|e| e.to_string());
        assert_eq!(check([256, 1, 1], of(Sym::Tokens, 1, 2)), Ok(()));
        assert!(
            check([257, 1, 1], GridExtent::Fixed(1)).unwrap_err().contains("257 threads, the device has at most 256")
        );
        let refused = check([1; 3], of(Sym::Tokens, 1, 1)).unwrap_err();
        assert!(refused.contains("70000 blocks along axis 0, the device has at most 65535"), "{refused}");
        assert!(kernel([2048, 1, 1], GridExtent::Fixed(u32::MAX)).check(&DeviceLimits::aligned(64), &dims).is_ok());
    }

    #[test]
    fn a_workspace_is_the_last_binding() {
        let all = BufferSlice { buffer: super::super::BufferId(3), offset: 0, bytes: 100 };
        let kernel = |workspace| KernelLaunch { workspace, ..KernelLaunch::new("k", Vec::new(), Vec::new()) };
        let bindings = |bytes| kernel(bytes).at(ModuleId(1), &Dims::default(), Some(all)).unwrap().unwrap().bindings;
        assert_eq!(bindings(0), []);
        assert_eq!(bindings(40), [Binding { slice: BufferSlice { bytes: 40, ..all }, access: BindingAccess::Write }]);
    }
}
