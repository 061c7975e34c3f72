//! Where the values of a plan lie.

use yirage_ir::ValueId;
use yirage_plan::{Plan, ValueLocation, text};

const LAYER: &str = include_str!("../work/layer.txt");

/// A plan that places what the layer's first two nodes make.
fn plan() -> Plan {
    let head = "plan cpu x86_64/avx2 workers=1\nprecision fast\nbucket tokens=8 seqs=1 blocks=1 rows=1\narena 4096\n\
                placement 15 offset=0 bytes=2048\nplacement 16 offset=2048 bytes=2048\n";
    text::parse(&format!("{head}{LAYER}")).unwrap()
}

fn named(plan: &Plan, name: &str) -> ValueId {
    (0..plan.graph.values.len() as u32).map(ValueId).find(|&id| plan.graph.value(id).name == name).unwrap()
}

#[test]
fn each_value_lies_where_the_plan_or_the_device_has_it() {
    let plan = plan();
    let at = |name: &str| plan.location(named(&plan, name));
    assert_eq!(at("ids"), Some(ValueLocation::StepInput(0)));
    assert_eq!(at("rows"), Some(ValueLocation::StepInput(5)));
    assert_eq!(at("wo"), Some(ValueLocation::Weight));
    let place = |name: &str| match at(name) {
        Some(ValueLocation::Arena(place)) => Some((place.offset, place.bytes)),
        _ => None,
    };
    assert_eq!((place("x"), place("n"), place("q")), (Some((0, 2048)), Some((2048, 2048)), None));
    assert_eq!(at("q"), None, "the plan has no place for it");
}

#[test]
fn a_cache_lies_where_it_did_when_a_node_has_appended_to_it() {
    let plan = plan();
    let cache = named(&plan, "kv");
    assert_eq!(plan.location(cache), Some(ValueLocation::KvCache(cache)));
    assert_eq!(plan.location(named(&plan, "kv1")), Some(ValueLocation::KvCache(cache)));
}
