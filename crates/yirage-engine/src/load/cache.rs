//! The cache of a model: its groups, their pools, the type of a block.

use crate::error::EngineError;
use crate::kv::{CacheGroup, GroupConfig, KvError};
use crate::options::EngineOptions;
use yirage_ir::{Source, Type};
use yirage_model::ModelError;
use yirage_model::arch::{self, Model};

/// The KV manager's view of a model's cache group: widths of all heads together.
fn cache_group(model: &Model, g: usize) -> CacheGroup {
    let layers = model.state_group.iter().filter(|(_, of)| *of == g).count() as u32;
    match model.groups[g] {
        arch::CacheGroup::Paged { kv_heads, k_width, v_width, window } => {
            CacheGroup::Paged { k_width: kv_heads * k_width, v_width: kv_heads * v_width, window, layers }
        }
        arch::CacheGroup::Latent { rank, rope } => CacheGroup::Latent { rank, rope, layers },
        arch::CacheGroup::Slot { bytes } => CacheGroup::Slot { bytes },
    }
}

/// Blocks of each group's pool: enough for `cache_seqs` sequences of full length.
pub(super) fn pool_blocks(model: &Model, options: &EngineOptions, context: u32) -> Vec<u64> {
    let blocks = |g| {
        let each = cache_group(model, g).peak_blocks(context as usize, options.chunk as usize) as u64;
        // One block more a running sequence: short sequences begin blocks of their own.
        each * u64::from(options.cache_seqs.max(1)) + u64::from(options.max_seqs)
    };
    (0..model.groups.len()).map(blocks).collect()
}

/// The pools as the KV manager takes them.
pub(super) fn group_configs(model: &Model, blocks: &[u64]) -> Result<Vec<GroupConfig>, EngineError> {
    let config = |(group, &blocks): (usize, &u64)| match u32::try_from(blocks) {
        Ok(blocks) => Ok(GroupConfig { group: cache_group(model, group), blocks }),
        Err(_) => Err(KvError::PoolSize { group, blocks }.into()),
    };
    blocks.iter().enumerate().map(config).collect()
}

/// The type of a state's blocks in the model's graph.
pub(super) fn state_type(model: &Model, name: &str) -> Result<Type, EngineError> {
    let id = model.graph.inputs_of(Source::State).find(|&id| model.graph.value(id).name == name);
    let missing = || ModelError::Unsupported { what: format!("state `{name}`"), why: "the graph has none".into() };
    Ok(model.graph.ty(id.ok_or_else(missing)?).clone())
}

/// Elements of a head's key in a block of the state.
pub(super) fn k_width(group: &arch::CacheGroup) -> u32 {
    match *group {
        arch::CacheGroup::Paged { k_width, .. } => k_width,
        arch::CacheGroup::Latent { rank, rope } => rank + rope,
        arch::CacheGroup::Slot { .. } => 0,
    }
}
