//! `yirage graph show`: a graph as text, as a picture, or for graphviz.

use super::file;
use crate::console::Console;
use crate::failure::CliFailure;
use crate::options::Layers;
use yirage_graph::{dot, svg, to_json};
use yirage_ir::text;

/// Runs the command.
///
/// # Errors
/// Whatever is wrong with the options or the file; [`CliFailure::Picture`] for a graph that is too large to be drawn.
pub(crate) fn run(layers: &Layers, console: &Console, path: &str) -> Result<(), CliFailure> {
    let graph = file::graph(std::path::Path::new(path))?;
    let (as_dot, as_svg) = (layers.switch("dot")?, layers.switch("svg")?);
    match (as_dot, as_svg) {
        (true, true) => Err(CliFailure::Usage("--dot and --svg exclude each other; give one of them".into())),
        (true, false) => console.text(&dot(&graph)),
        (false, true) => console.text(&svg(&graph)?),
        (false, false) if console.json => {
            let form: Result<serde_json::Value, _> = serde_json::from_str(&to_json(&graph));
            console.value(&form.map_err(|e| CliFailure::Other(format!("the graph's JSON: {e}")))?)
        }
        (false, false) => console.text(&text::print(&graph)),
    }
}
