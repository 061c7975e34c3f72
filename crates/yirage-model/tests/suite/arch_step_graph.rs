//! Step inputs, weights and the inputs of cache groups are declared once each, whoever asks for them and how often.

use yirage_ir::{BuildError, DType, Format, Type};
use yirage_model::arch::{KvCacheSpec, StepGraph, StepGraphBuilder};

#[test]
fn what_is_asked_for_again_is_declared_once() {
    let (weight, state) = (Type::new(DType::Stored(Format::F32), [4, 8]), Type::new(DType::F32, [4, 8]));
    let block = Type::new(DType::Stored(Format::F16), [32, 2, 8]);
    let paged = KvCacheSpec::Paged { kv_heads: 2, k_width: 4, v_width: 4, window: None };
    let mut step = StepGraphBuilder::new("step");
    assert_eq!(step.positions().unwrap(), step.positions().unwrap());
    assert_eq!(step.bound_weight("w"), None);
    let bound = step.weight("w", weight.clone()).unwrap();
    assert_eq!((step.weight("w", weight).unwrap(), step.bound_weight("w")), (bound, Some(bound)));
    assert_eq!(step.bound_weight("positions"), None);
    let first = step.kv_cache("kv.0".into(), block.clone(), paged).unwrap();
    let recurrent = step.kv_cache("state.1".into(), state, KvCacheSpec::Recurrent).unwrap();
    let second = step.kv_cache("kv.2".into(), block, paged).unwrap();
    assert_eq!((first.slot_mapping, first.block_table), (second.slot_mapping, second.block_table));
    assert_eq!(recurrent.slot_mapping, None);
    let StepGraph { graph, groups, kv_cache_group } = step.finish();
    assert_eq!(groups, [paged, KvCacheSpec::Recurrent]);
    assert_eq!(kv_cache_group, [("kv.0".to_owned(), 0), ("state.1".to_owned(), 1), ("kv.2".to_owned(), 0)]);
    let names: Vec<&str> = graph.inputs.iter().map(|&id| graph.value(id).name.as_str()).collect();
    assert_eq!(names, ["positions", "w", "slots.0", "table.0", "kv.0", "table.1", "state.1", "kv.2"]);
}

#[test]
fn a_name_that_has_another_type_or_kind_is_refused() {
    let mut step = StepGraphBuilder::new("step");
    step.per_token("rows").unwrap();
    assert_eq!(step.rows(), Err(BuildError::Duplicate("rows".into())));
    step.weight("ids", Type::new(DType::Stored(Format::F32), [4])).unwrap();
    assert_eq!(step.ids(), Err(BuildError::Duplicate("ids".into())));
}
