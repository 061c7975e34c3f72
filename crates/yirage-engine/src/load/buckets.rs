//! The sizes that plans are made for.

use crate::limits::MAX_DRAFTS;
use crate::options::EngineOptions;
use yirage_ir::Dims;

/// The sizes plans are made for: steps of decoding sequences only, those that verify drafts besides, and steps with
/// prefill. Without drafts there is nothing to verify. A block of the cache has so many positions.
pub(super) fn buckets(options: &EngineOptions, context: u32, block: usize) -> Vec<Dims> {
    let blocks = context.div_ceil(block as u32);
    let (seqs, rows) = (options.max_seqs, options.logit_rows.max(options.max_seqs));
    let prefill = Dims { tokens: options.chunk.max(seqs), seqs, blocks, rows };
    let drafts = options.speculation.most.min(MAX_DRAFTS);
    let tokens = [seqs, seqs.saturating_mul(1 + drafts)];
    let mut buckets: Vec<Dims> =
        tokens.map(|n| Dims { tokens: n.min(prefill.tokens), seqs, blocks, rows: n.min(rows) }).into();
    buckets.push(prefill);
    buckets.dedup();
    buckets
}
