//! Any text as a plan: what parses prints to text that parses to the same plan. Shared by the fuzz target and the test
//! that replays its corpus.

use yirage_plan::{text, verify};

/// Parses, verifies, prints and parses again.
pub(crate) fn run(data: &[u8]) {
    let Ok(source) = std::str::from_utf8(data) else { return };
    let Ok(plan) = text::parse(source) else { return };
    let _verdict = verify(&plan);
    let printed = text::print(&plan);
    let again = text::parse(&printed).map(|p| text::print(&p)).map_err(|e| e.to_string());
    assert_eq!(again, Ok(printed), "{source}");
}
