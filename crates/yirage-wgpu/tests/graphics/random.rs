//! Random graphs and tiled regions on the first Vulkan device of this machine: against the reference that the interpreter and
//! the processor are compared with in their own suites, by the same seeds.

use crate::support::device;
use yirage_conformance::random::{
    RandomGraph, RandomGraphVerdict, RandomTiledGraph, TiledComparison, TiledDemonstration, apart, numbers,
};
use yirage_ir::text;

/// Graphs and regions by default; `YIRAGE_KERNEL_GRAPHS` and `YIRAGE_KERNEL_TILES` say other numbers.
const DRAWN: u64 = 20;

fn drawn(variable: &str) -> u64 {
    std::env::var(variable).map_or(DRAWN, |n| n.parse().unwrap())
}

/// Whether a difference is one that WGSL allows: a compiler may assume that no number is NaN or infinite, so that `x - x` is 0
/// for it where the reference says NaN of an infinite x.
fn is_of_no_number(why: &str) -> bool {
    ["NaN", "inf"].iter().any(|word| why.contains(word))
}

/// The first seed; `YIRAGE_KERNEL_FIRST` says another one, so that a long run can be cut into several.
fn first() -> u64 {
    std::env::var("YIRAGE_KERNEL_FIRST").map_or(0, |n| n.parse().unwrap())
}

#[test]
#[ignore = "needs a Vulkan device"]
fn random_graphs_hold() {
    let device = device();
    let (all, mut of_no_number, mut wrong) = (drawn("YIRAGE_KERNEL_GRAPHS"), 0, Vec::new());
    for seed in first()..first() + all {
        let drawn = RandomGraph::of_seed(seed);
        match drawn.check(&*device) {
            RandomGraphVerdict::Holds => {}
            RandomGraphVerdict::Wrong(failure) if is_of_no_number(&failure.why) => of_no_number += 1,
            other => wrong.push(format!("seed {seed}: {other:?}\n{drawn}")),
        }
    }
    println!("{} graphs hold, {of_no_number} differ in what is no number", all - of_no_number - wrong.len() as u64);
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(of_no_number * 10 <= all.max(10), "{of_no_number} of {all}");
}

#[test]
#[ignore = "needs a Vulkan device"]
fn random_tiled_regions_are_what_the_reference_says() {
    let device = device();
    let (all, mut refused, mut wrong) = (drawn("YIRAGE_KERNEL_TILES"), 0, Vec::new());
    for seed in first()..first() + all {
        let drawn = RandomTiledGraph::of_seed(seed).unwrap();
        match drawn.check(&*device, TiledComparison::Reference) {
            RandomGraphVerdict::Holds => {}
            RandomGraphVerdict::Refused(why) if why.contains("smaller tiles are wanted") => refused += 1,
            other => wrong.push(format!("seed {seed}: {other:?}\n{}", text::print(&drawn.tiled.graph))),
        }
    }
    println!("{} regions hold, {refused} are too large", all - refused - wrong.len() as u64);
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(refused * 10 < all.max(20));
}

#[test]
#[ignore = "needs a Vulkan device"]
fn tiled_demonstrations_are_their_plain_ops() {
    let device = device();
    for TiledDemonstration { name, tiled, plain, has_same_bytes } in TiledDemonstration::all().unwrap() {
        let wanted = plain.reference().unwrap();
        let made = tiled.run(&*device).unwrap_or_else(|why| panic!("{name}: {why:?}"));
        let far = apart(&numbers(&made[0]), &numbers(&wanted[0].data));
        assert!(far < 1e-5, "{name}: {far:e} from the reference of its plain ops");
        let alone = plain.run(&*device).unwrap_or_else(|why| panic!("{name}: {why:?}"));
        assert!(!has_same_bytes || made == alone, "{name}: other bytes than its plain ops");
    }
}
