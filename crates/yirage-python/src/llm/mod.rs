//! Models as Python sees them: `LLM`, its requests and streams, by the names of vLLM.

mod answer;
mod conversation;
mod guessing;
mod load;
mod lora;
mod model;
mod params;
mod pictures;
mod prompt;
mod stream;
mod tokenizer;

pub(crate) use load::resolve_model;
pub(crate) use params::PySamplingParams;

use pyo3::prelude::*;

/// Adds the classes of models to the module.
pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<params::PySamplingParams>()?;
    module.add_class::<model::Llm>()?;
    module.add_class::<stream::RequestStream>()?;
    module.add_class::<tokenizer::PyTokenizer>()?;
    module.add_function(wrap_pyfunction!(tokenizer::load_tokenizer, module)?)
}
