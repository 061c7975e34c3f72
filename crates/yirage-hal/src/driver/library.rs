//! Kernels of a backend, as the device over its driver needs them.

use super::command::{Binding, BindingAccess, CollectiveCall, Launch, ModuleId};
use super::memory::BufferSlice;
use crate::error::HalError;
use std::borrow::Cow;
use yirage_ir::{DType, Dim, Dims, Graph, Node, NodeKind, Op, Sym, ValueId};
use yirage_plan::{Plan, Target, WeightEntry, WeightLayout};

/// Where the values of a program lie, for every step of it.
pub trait ValueSlices {
    /// The bytes of a value at the plan's largest sizes: of the step input, of the weight or KV cache that is bound, or in
    /// the arena.
    ///
    /// # Errors
    /// A value that has no place: it lives only inside a region.
    fn slice(&self, value: ValueId) -> Result<BufferSlice, HalError>;
    /// Blocks of a KV cache.
    ///
    /// # Errors
    /// A value that is none.
    fn blocks(&self, cache: ValueId) -> Result<u32, HalError>;
    /// Where a step's sizes lie ([`super::step_sizes`]).
    fn sizes(&self) -> BufferSlice;
}

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
    fn at(self, dims: &Dims) -> Option<u32> {
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
    /// Its name in the plan's code.
    pub entry: String,
    /// Groups of threads, along three axes.
    pub grid: [GridExtent; 3],
    /// Threads of a group, along three axes.
    pub block: [u32; 3],
    /// As [`Launch::shared_bytes`].
    pub shared_bytes: u32,
    /// As [`Launch::cooperative`].
    pub cooperative: bool,
    /// As [`Launch::early_start`].
    pub early_start: bool,
    /// What it touches. A workspace follows as one binding more, where it wants one.
    pub bindings: Vec<Binding>,
    /// As [`Launch::arguments`].
    pub arguments: Vec<u8>,
    /// Bytes of workspace that it wants.
    pub workspace: u64,
}

impl KernelLaunch {
    /// A kernel of one group of one thread that touches these.
    pub fn new(entry: impl Into<String>, bindings: Vec<Binding>) -> KernelLaunch {
        KernelLaunch {
            entry: entry.into(),
            grid: [GridExtent::Fixed(1); 3],
            block: [1; 3],
            shared_bytes: 0,
            cooperative: false,
            early_start: false,
            bindings,
            arguments: Vec::new(),
            workspace: 0,
        }
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
            let why =
                || HalError::Load(format!("kernel `{}`: the grid {extent:?} at {dims:?} is no number", self.entry));
            *groups = extent.at(dims).ok_or_else(why)?;
        }
        if grid.contains(&0) {
            return Ok(None);
        }
        let workspace = workspace.and_then(|all| all.part(0, self.workspace)).filter(|_| self.workspace > 0);
        let mut bindings = self.bindings.clone();
        bindings.extend(workspace.map(|slice| Binding { slice, access: BindingAccess::Write }));
        Ok(Some(Launch {
            module,
            entry: self.entry.clone(),
            grid,
            block: self.block,
            shared_bytes: self.shared_bytes,
            cooperative: self.cooperative,
            early_start: self.early_start,
            bindings,
            arguments: self.arguments.clone(),
        }))
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

/// A collective as a step of a plan wants it, for all sizes of the plan.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KernelCollective {
    /// As [`CollectiveCall::op`].
    pub op: Op,
    /// As [`CollectiveCall::dtype`].
    pub dtype: DType,
    /// Rows that each rank gives.
    pub rows: GridExtent,
    /// As [`CollectiveCall::width`].
    pub width: u32,
    /// The value that the rank gives.
    pub from: BufferSlice,
    /// The value that it gets.
    pub to: BufferSlice,
}

impl KernelCollective {
    /// Of a node of one collective op.
    ///
    /// # Errors
    /// A node that is none, and values without a place.
    pub fn of(graph: &Graph, node: &Node, values: &dyn ValueSlices) -> Result<KernelCollective, HalError> {
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
        Ok(KernelCollective {
            op: op.clone(),
            dtype: ty.dtype,
            rows,
            width: width.ok_or_else(other)?,
            from: values.slice(x)?,
            to: values.slice(y)?,
        })
    }

    pub(super) fn at(&self, dims: &Dims) -> Result<CollectiveCall, HalError> {
        let why =
            || HalError::Load(format!("`{}`: the rows {:?} at {dims:?} are no number", self.op.name(), self.rows));
        let KernelCollective { op, dtype, rows, width, from, to } = self.clone();
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
    Collective(KernelCollective),
    /// As [`super::StepCommand::Copy`].
    Copy {
        /// The bytes.
        from: BufferSlice,
        /// Where they go.
        to: BufferSlice,
    },
    /// As [`super::StepCommand::Fill`].
    Fill {
        /// The bytes.
        slice: BufferSlice,
        /// What each becomes.
        byte: u8,
    },
}

/// What a weight takes in its layout, and how its rows are to be given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WeightPacking {
    /// Bytes of the device's memory, with what the layout pads.
    pub bytes: u64,
    /// Rows are packed from a multiple of this on; the last piece may be shorter.
    pub row_step: usize,
}

/// Rows of a weight in its layout.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PackedRows<'a> {
    /// Where in the weight's memory they lie.
    pub offset: u64,
    /// Their bytes.
    pub bytes: Cow<'a, [u8]>,
}

/// The kernels of a backend.
pub trait Library: Send + Sync + 'static {
    /// What the compiler is told of them and of the device.
    fn target(&self) -> Target;
    /// What a weight takes in the layout of its entry: of a library without layouts of its own, what it takes in the file.
    ///
    /// # Errors
    /// A layout that the library does not pack.
    fn weight_packing(&self, entry: &WeightEntry) -> Result<WeightPacking, HalError> {
        as_in_the_file(entry)?;
        Ok(WeightPacking { bytes: entry.ty.dense().bytes(&Dims::default()) as u64, row_step: 1 })
    }
    /// Packs whole rows as they lie in the file, from `first_row` on. Rows of all leading dimensions are counted through.
    ///
    /// # Errors
    /// A layout that the library does not pack.
    fn pack<'a>(&self, entry: &WeightEntry, first_row: usize, rows: &'a [u8]) -> Result<PackedRows<'a>, HalError> {
        as_in_the_file(entry)?;
        let row_bytes = entry.ty.dtype.row_bytes(entry.ty.width().unwrap_or(1)) as u64;
        Ok(PackedRows { offset: (first_row as u64).saturating_mul(row_bytes), bytes: Cow::Borrowed(rows) })
    }
    /// The code of all kernels that a plan wants.
    ///
    /// # Errors
    /// A plan that names kernels which are not there.
    fn code(&self, plan: &Plan) -> Result<Vec<u8>, HalError>;
    /// What runs step `step` of a plan, in its order. It is asked once, when the plan is loaded, for all sizes within the
    /// plan's: kernels read the sizes of a step where [`ValueSlices::sizes`] says.
    ///
    /// # Errors
    /// Values without a place.
    fn calls(&self, plan: &Plan, step: usize, values: &dyn ValueSlices) -> Result<Vec<KernelCall>, HalError>;
}

/// Whether a weight lies as it does in the file.
fn as_in_the_file(entry: &WeightEntry) -> Result<(), HalError> {
    if entry.lies_in(WeightLayout::ROWS) || entry.lies_in(WeightLayout::ELEMENTS) {
        return Ok(());
    }
    Err(HalError::Unsupported {
        what: format!("the layout `{}` of weight `{}`", entry.layout, entry.name),
        why: "this backend's library packs no weights: rows and elements lie as in the file".into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launch(extent: GridExtent, dims: &Dims) -> Result<Option<Launch>, HalError> {
        let kernel = KernelLaunch {
            grid: [extent, GridExtent::Fixed(2), GridExtent::Fixed(1)],
            ..KernelLaunch::new("k", Vec::new())
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
    fn a_workspace_is_the_last_binding() {
        let all = BufferSlice { buffer: super::super::BufferId(3), offset: 0, bytes: 100 };
        let kernel = |workspace| KernelLaunch { workspace, ..KernelLaunch::new("k", Vec::new()) };
        let bindings = |bytes| kernel(bytes).at(ModuleId(1), &Dims::default(), Some(all)).unwrap().unwrap().bindings;
        assert_eq!(bindings(0), []);
        assert_eq!(bindings(40), [Binding { slice: BufferSlice { bytes: 40, ..all }, access: BindingAccess::Write }]);
    }
}
