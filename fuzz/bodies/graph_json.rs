//! Any text as a graph in JSON: what is read is sound, is drawn, and is written as the same graph. Shared by the fuzz
//! target and the test that replays its corpus.

use yirage_graph::{dot, from_json, svg, to_json};

/// Reads, verifies, draws, writes and reads again.
pub(crate) fn run(data: &[u8]) {
    let Ok(source) = std::str::from_utf8(data) else { return };
    let Ok(graph) = from_json(source) else { return };
    assert_eq!(yirage_ir::verify(&graph), Ok(()), "{source}");
    let _hash = graph.structural_hash();
    let _pictures = (dot(&graph), svg(&graph));
    assert_eq!(from_json(&to_json(&graph)).as_ref(), Ok(&graph), "{source}");
}
