//! GGUF headers, and the configuration and generation settings translated from them. Shared by the fuzz target and
//! the test that replays its corpus.

use yirage_model::config::{GenerationConfig, RawConfig};
use yirage_model::gguf::Gguf;

/// Parses `data`; whatever parses must be usable without surprise.
pub(crate) fn run(data: &[u8]) {
    let Ok(gguf) = Gguf::parse(data, "fuzz") else { return };
    let mut ranges: Vec<_> = gguf.tensors().iter().map(|t| t.range.clone()).collect();
    ranges.sort_by_key(|r| r.start);
    for t in gguf.tensors() {
        assert!(t.range.start <= t.range.end && t.range.end <= data.len() as u64, "{t:?}");
        assert!(t.shape.iter().try_fold(1u64, |n, &d| n.checked_mul(d)).is_some_and(|n| n > 0), "{t:?}");
        assert!(t.range.start.is_multiple_of(gguf.alignment()), "{t:?}");
    }
    assert!(ranges.windows(2).all(|w| w[0].end <= w[1].start));
    for (key, value) in gguf.metadata() {
        assert_eq!(gguf.get(key).map(|v| v.type_name()), Some(value.type_name()));
        if let Some(strings) = value.as_strings() {
            assert!(strings.iter().enumerate().all(|(i, s)| strings.get(i) == Some(s)));
        }
    }
    let _ = GenerationConfig::from_gguf(&gguf);
    let has_tensor = |name: &str| gguf.tensors().iter().any(|t| t.name == name);
    if let Ok(config) = RawConfig::from_gguf(&gguf, &has_tensor, None) {
        let _ = (config.check_supported(), config.windows(), config.model_type());
    }
}
