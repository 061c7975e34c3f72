//! The cache of a model: its groups, their pools, the type of a block.

use crate::block_positions::block_positions;
use crate::error::EngineError;
use crate::kv::{CacheGroup, GroupConfig, KvError};
use crate::options::{CacheSize, EngineOptions};
use crate::scheduler::ConfigError;
use yirage_ir::{Dims, Type, ValueSource};
use yirage_model::ModelError;
use yirage_model::arch::{self, Model};

/// Blocks from one kept state of a run to the next in a model that keeps nothing else.
const WITHOUT_ATTENTION: u32 = 16;

/// The KV manager's view of a model's cache group: widths of all heads together.
pub(super) fn cache_group(model: &Model, g: usize) -> CacheGroup {
    let layers = model.kv_cache_group.iter().filter(|(_, of)| *of == g).count() as u32;
    match model.groups[g] {
        arch::KvCacheSpec::Paged { kv_heads, k_width, v_width, window } => {
            CacheGroup::Paged { k_width: kv_heads * k_width, v_width: kv_heads * v_width, window, layers }
        }
        arch::KvCacheSpec::Latent { rank, rope } => CacheGroup::Latent { rank, rope, layers },
        arch::KvCacheSpec::Recurrent => {
            let elements = state_elements(model, g);
            CacheGroup::Recurrent { elements, every: blocks_between_states(model, elements) }
        }
    }
}

/// Elements of a block of all states of a group.
fn state_elements(model: &Model, g: usize) -> u64 {
    let of_group = |name: &str| model.kv_cache_group.iter().any(|(state, group)| state == name && *group == g);
    let graph = &model.graph;
    let states = graph.inputs_of(ValueSource::KvCache).filter(|&id| of_group(&graph.value(id).name));
    states.map(|id| graph.ty(id).elems(&Dims::default()) as u64).fold(0, u64::saturating_add)
}

/// Blocks from one kept state of a run to the next, where a state has so many elements: states take no more room than the
/// keys and values of the same positions.
fn blocks_between_states(model: &Model, elements: u64) -> u32 {
    let of_positions = (0..model.groups.len()).filter(|&g| model.groups[g] != arch::KvCacheSpec::Recurrent);
    let block = block_positions(model);
    let kept: u64 = of_positions.map(|g| cache_group(model, g).elements_per_block(block)).sum();
    match kept {
        0 => WITHOUT_ATTENTION,
        kept => u32::try_from(elements.div_ceil(kept)).unwrap_or(u32::MAX).max(1),
    }
}

/// Blocks of each group's pool, for as many sequences of full length as the options say, or as a budget holds. A block of
/// each group takes so many bytes.
///
/// # Errors
/// [`ConfigError::OutOfRange`] for no sequence, [`EngineError::CacheTooSmall`] for a budget without a block for each group.
pub(super) fn pool_blocks(
    model: &Model,
    options: &EngineOptions,
    context: u32,
    block_bytes: &[u64],
) -> Result<Vec<u64>, EngineError> {
    let block = block_positions(model);
    let blocks = |g, seqs: u32| {
        let each = cache_group(model, g).peak_blocks(context as usize, options.chunk as usize, block) as u64;
        // One block more a running sequence: short sequences begin blocks of their own.
        each.saturating_mul(seqs.into()).saturating_add(options.max_seqs.into())
    };
    let for_seqs = |seqs| (0..model.groups.len()).map(|g| blocks(g, seqs)).collect::<Vec<u64>>();
    match options.cache {
        CacheSize::Sequences(0) => {
            Err(ConfigError::OutOfRange { field: "cache sequences", value: 0, most: u32::MAX }.into())
        }
        CacheSize::Sequences(seqs) => Ok(for_seqs(seqs)),
        CacheSize::Blocks(blocks) => Ok(vec![blocks.into(); model.groups.len()]),
        CacheSize::Bytes(bytes) => scaled(&for_seqs(1), block_bytes, bytes),
    }
}

/// As many blocks of each group as fit `bytes` together, in the ratio of `blocks`.
fn scaled(blocks: &[u64], block_bytes: &[u64], bytes: u64) -> Result<Vec<u64>, EngineError> {
    let whole: u128 = blocks.iter().zip(block_bytes).map(|(&n, &each)| u128::from(n) * u128::from(each)).sum();
    // The pool that has the fewest blocks decides what is too little.
    let Some(fewest) = blocks.iter().copied().min().filter(|&n| n > 0 && whole > 0) else {
        return Ok(blocks.to_vec());
    };
    let least = whole.div_ceil(u128::from(fewest));
    if u128::from(bytes) < least {
        return Err(EngineError::CacheTooSmall { bytes, least: u64::try_from(least).unwrap_or(u64::MAX) });
    }
    let share = |&n: &u64| u128::from(n) * u128::from(bytes) / whole;
    Ok(blocks.iter().map(|n| u64::try_from(share(n)).unwrap_or(u64::MAX)).collect())
}

/// The pools as the KV manager takes them.
pub(super) fn group_configs(model: &Model, blocks: &[u64]) -> Result<Vec<GroupConfig>, EngineError> {
    let config = |(group, &blocks): (usize, &u64)| match u32::try_from(blocks) {
        Ok(blocks) => Ok(GroupConfig { group: cache_group(model, group), blocks }),
        Err(_) => Err(KvError::PoolSize { group, blocks }.into()),
    };
    blocks.iter().enumerate().map(config).collect()
}

/// The type of a KV cache's blocks in the model's graph.
pub(crate) fn kv_cache_type(model: &Model, name: &str) -> Result<Type, EngineError> {
    let id = model.graph.inputs_of(ValueSource::KvCache).find(|&id| model.graph.value(id).name == name);
    let missing = || ModelError::Unsupported { what: format!("KV cache `{name}`"), why: "the graph has none".into() };
    Ok(model.graph.ty(id.ok_or_else(missing)?).clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_divided_as_the_groups_need_it() {
        let (blocks, each) = ([144, 49], [1000, 4000]);
        let whole = 144 * 1000 + 49 * 4000;
        assert_eq!(scaled(&blocks, &each, whole).unwrap(), blocks);
        assert_eq!(scaled(&blocks, &each, 10 * whole).unwrap(), [1440, 490]);
        let some = scaled(&blocks, &each, 100_000).unwrap();
        assert!(some.iter().zip(each).map(|(n, each)| n * each).sum::<u64>() <= 100_000, "{some:?}");
        let least = whole.div_ceil(49);
        assert_eq!(scaled(&blocks, &each, least).unwrap().last(), Some(&1));
        let refused = scaled(&blocks, &each, least - 1);
        assert!(
            matches!(refused, Err(EngineError::CacheTooSmall { bytes, least: l }) if (bytes, l) == (least - 1, least))
        );
        let huge = scaled(&blocks, &each, u64::MAX).unwrap();
        assert!(
            huge.iter().zip(each).map(|(&n, each)| u128::from(n) * u128::from(each)).sum::<u128>() <= u64::MAX.into()
        );
    }
}
