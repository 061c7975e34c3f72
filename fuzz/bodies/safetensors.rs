//! safetensors headers and shard indices. Shared by the fuzz target and the test that replays its corpus.

use yirage_model::safetensors::{SafeTensors, ShardIndex};

/// Parses `data` as either; whatever parses must be usable without surprise.
pub(crate) fn run(data: &[u8]) {
    if let Ok(index) = ShardIndex::parse(data, "fuzz") {
        assert!(index.weight_map.values().all(|&shard| shard < index.shards.len()));
        assert!(index.shards.iter().all(|s| !s.contains('/') && s != ".."));
    }
    let Ok(file) = SafeTensors::parse(data, "fuzz") else { return };
    let mut end = file.data_offset();
    for t in file.tensors() {
        assert_eq!(t.range.start, end);
        end = t.range.end;
        let elements = t.shape.iter().try_fold(1u64, |n, &d| n.checked_mul(d)).expect("checked by the parser");
        if let Some(bits) = t.dtype.bits() {
            assert_eq!(elements * bits, (t.range.end - t.range.start) * 8);
        }
    }
    assert_eq!(end, data.len() as u64);
}
