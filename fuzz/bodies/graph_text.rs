//! Any text as a graph: what parses prints to text that parses to the same graph. Shared by the fuzz target and the test
//! that replays its corpus.

use yirage_ir::{text, verify};

/// Parses, verifies, prints and parses again.
pub(crate) fn run(data: &[u8]) {
    let Ok(source) = std::str::from_utf8(data) else { return };
    let Ok(graph) = text::parse(source) else { return };
    let _verdict = verify(&graph);
    let printed = text::print(&graph);
    let again = text::parse(&printed).map(|g| text::print(&g));
    assert_eq!(again.as_deref(), Ok(&printed[..]), "{source}");
}
