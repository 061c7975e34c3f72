//! `PyPersistentKernel`: models of layer methods, by the names and arguments of Mirage.

// Before the modules whose rows its macros read.
#[macro_use]
mod table;

mod arguments;
mod attach;
mod buffers;
mod kernel;
mod latent;
mod layers;
mod profiled;
mod ranks;
mod report;
mod shared;
mod tensor;
mod tested;

use pyo3::prelude::*;

/// Adds the classes to the module.
pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<tensor::PyKernelTensor>()?;
    module.add_class::<layers::KernelLayers>()?;
    module.add_class::<latent::LatentLayers>()?;
    module.add_class::<kernel::PyPersistentKernel>()?;
    module.add_class::<report::PyCallReport>()?;
    module.add_class::<report::PyEndedRequest>()
}
