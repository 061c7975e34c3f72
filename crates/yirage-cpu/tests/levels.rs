//! That the levels which are said to be tested are there. Every test passes over levels that the CPU lacks, so a run
//! that is to exercise certain ones (under emulation, say) names them in `YIRAGE_REQUIRED_ISAS`, separated by spaces.
#![allow(clippy::unwrap_used, clippy::print_stderr)] // a test may stop at anything, and says what it skips

use yirage_cpu::isa::Isa;

#[test]
fn required_levels_are_here() {
    let Ok(required) = std::env::var("YIRAGE_REQUIRED_ISAS") else {
        eprintln!("SKIPPED: YIRAGE_REQUIRED_ISAS is not set");
        return;
    };
    for name in required.split_whitespace() {
        assert_eq!(Isa::parse(name).unwrap().name(), name);
    }
    let best = required.split_whitespace().last().map(|name| Isa::parse(name).unwrap());
    assert_eq!(best, Some(Isa::detect()), "the last one required is the best here");
}
