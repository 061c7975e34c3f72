//! `config.json` and `generation_config.json`. Shared by the fuzz target and the test that replays its corpus.

use yirage_model::config::{GenerationConfig, RawConfig};

/// Parses `data` as both, and reads everything that a configuration answers.
pub(crate) fn run(data: &[u8]) {
    let Ok(config) = RawConfig::from_json(data, "fuzz") else { return };
    let _ = (config.check_supported(), config.model_type(), config.architectures());
    if let (Ok(types), Ok(windows)) = (config.layer_types(), config.windows()) {
        assert_eq!(types.len(), windows.len());
    }
    let _ = GenerationConfig::from_json(data, "fuzz", &config);
}
