//! Devices with memory and a queue of their own: what a vendor's runtime has to give, and the device made of it.
//!
//! A [`Driver`] is the least that such a runtime offers: memory, one queue that runs in order, and code that is launched on
//! it. [`DriverDevice`] is a [`Device`](crate::Device) over any driver and any [`Library`] of kernels, written once. A
//! backend gives these two and has all else. Unknown here: any vendor, and what a kernel computes.

mod arena;
mod buffer;
mod captured_graph;
mod command;
mod contract;
mod device;
mod error;
mod kernel_call;
mod kv_cache;
mod library;
mod memory;
mod operands;
mod persistent_step;
mod prepared_step;
mod program;
mod resources;
mod side_by_side;
mod step_inputs;
mod step_sizes;
mod transfer;
mod weight;

pub use command::{
    Binding, BindingAccess, CollectiveCall, Launch, LaunchConfig, MemoryCommand, ModuleId, OperationCall, OperationId,
    StepCommand,
};
pub use contract::{
    CapturedGraphId, DeviceClock, Download, Driver, GraphCapture, OperationLibrary, PersistentKernels,
    PersistentStepId, PreparedOperation, Timestamp, TransferQueue,
};
pub use device::DriverDevice;
pub use error::DriverError;
pub use kernel_call::{GridExtent, KernelCall, KernelLaunch, LibraryOperation};
pub use library::{Library, PackedRows, WeightPacking};
pub use memory::{BufferId, BufferSlice};
pub use operands::{OperandBindings, ValueSlices};
pub use persistent_step::{PersistentLaunch, PersistentStep};
pub use side_by_side::side_by_side;
pub use step_sizes::{STEP_SIZES_BYTES, sizes_of_block, step_sizes};
