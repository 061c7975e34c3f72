//! Any text as a plan file: as it is, and behind its first two lines under a checksum that fits. Shared by the fuzz target
//! and the test that replays its corpus.

use super::plan_text::target;
use yirage_compile::CompileOptions;
use yirage_ir::GraphBuilder;
use yirage_plancache::{PlanFile, PlanKey};

/// Parses, prints and proves.
pub(crate) fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    parse(text);
    // The checksum stops nearly all inputs.
    let rest = text.splitn(3, '\n').nth(2).unwrap_or(text);
    parse(&format!("yirage-plan 2\nsum {}\n{rest}", yirage_packed::sealed::sum(rest)));
}

fn parse(text: &str) {
    let Ok(file) = PlanFile::parse(text) else { return };
    if let Ok(printed) = file.print() {
        let again = PlanFile::parse(&printed).and_then(|file| file.print()).map_err(|e| e.to_string());
        assert_eq!(again, Ok(printed));
    }
    // A device that has what the plan names, so that its proof goes as far as it can.
    let target = target(&file.plan);
    let here = PlanKey::of(&GraphBuilder::new("none").finish(), file.plan.bucket, &target, &CompileOptions::default());
    let key = PlanKey { compiler: here.compiler, facts: here.facts, ..file.key };
    let _verdict = PlanFile { key, ..file }.prove(&target);
}
