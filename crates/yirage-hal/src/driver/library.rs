//! Kernels of a backend, as the device over its driver needs them.

use super::contract::{Address, Launch, ModuleId};
use crate::error::HalError;
use yirage_ir::{Dims, ValueId};
use yirage_plan::{Plan, Target};

/// Where the values of a step lie.
pub trait ValueAddresses {
    /// The first byte of a value: of the step's slot, of the weight or state that is bound, or in the arena.
    ///
    /// # Errors
    /// A value that has no place: it lives only inside a region.
    fn address(&self, value: ValueId) -> Result<Address, HalError>;
    /// Blocks of a cache state.
    ///
    /// # Errors
    /// A value that is none.
    fn blocks(&self, state: ValueId) -> Result<u32, HalError>;
}

/// The kernels of a backend.
pub trait Library: Send + Sync + 'static {
    /// What the compiler is told of them and of the device.
    fn target(&self) -> Target;
    /// The code of all kernels that a plan wants.
    ///
    /// # Errors
    /// A plan that names kernels which are not there.
    fn code(&self, plan: &Plan) -> Result<Vec<u8>, HalError>;
    /// What runs step `step` of a plan at these sizes.
    ///
    /// # Errors
    /// Values without a place.
    fn launches(
        &self,
        plan: &Plan,
        module: ModuleId,
        step: usize,
        dims: &Dims,
        places: &dyn ValueAddresses,
    ) -> Result<Vec<Launch>, HalError>;
}
