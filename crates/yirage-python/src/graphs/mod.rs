//! Kernel graphs as Python sees them: Mirage's `KNGraph` and `TBGraph`, built, called, searched and explained.

mod block;
mod content;
mod equivalence;
mod explain;
mod kernel;
mod loaded;
mod search;
mod tasks;
mod values;

pub(crate) use kernel::KNGraph;

use pyo3::prelude::*;

/// Adds the classes and functions of graphs to the module.
pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<kernel::KNGraph>()?;
    module.add_class::<block::TBGraph>()?;
    module.add_class::<values::DTensor>()?;
    module.add_class::<values::STensor>()?;
    module.add_class::<loaded::CompileHandle>()?;
    module.add_class::<equivalence::Equivalence>()?;
    module.add_class::<yirage_dlpack::PyTensor>()?;
    module.add_function(wrap_pyfunction!(kernel::new_kernel_graph, module)?)?;
    module.add_function(wrap_pyfunction!(block::new_threadblock_graph, module)?)?;
    module.add_function(wrap_pyfunction!(equivalence::equivalent, module)?)?;
    module.add_function(wrap_pyfunction!(search::search_counters, module)?)
}
