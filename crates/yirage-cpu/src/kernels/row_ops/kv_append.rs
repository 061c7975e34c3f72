//! `kv_append`: keys and values to their slots of a cache.

use super::super::operand_constraints::{cache, floats, integers};
use super::{BindRow, RowOp, rule};
use crate::bind::{CacheShape, CpuRunContext, FloatRows, KvCacheOperand, Site, WordArray};
use std::ops::Range;
use yirage_hal::HalError;
use yirage_ir::op;
use yirage_plan::rules::OpRule;

pub(super) struct KvAppendRowOp {
    cache: KvCacheOperand,
    k: FloatRows,
    /// None where values lie in their keys.
    v: Option<FloatRows>,
    slots: WordArray<i32>,
}

impl BindRow for KvAppendRowOp {
    type Op = op::KvAppend;

    fn rules() -> Vec<OpRule> {
        let latent = vec![cache(), floats(), integers()];
        vec![rule::<op::KvAppend>(latent), rule::<op::KvAppend>(vec![cache(), floats(), floats(), integers()])]
    }

    fn bind(op: &op::KvAppend, site: &Site) -> Result<KvAppendRowOp, HalError> {
        let (heads, k) = (op.kv_heads as usize, site.float_rows(1)?);
        let (v, slots) = if site.inputs() > 3 { (Some(site.float_rows(2)?), 3) } else { (None, 2) };
        let k_width = k.width() / heads.max(1);
        // Of values that lie in their keys, any width is one that a block can be seen with.
        let v_width = v.as_ref().map_or(1, |v| v.width() / heads.max(1));
        let shape = CacheShape { heads, kv_heads: heads, k_width, v_width, v_in_k: v.is_none() };
        Ok(KvAppendRowOp { cache: site.cache(0, shape)?, k, v, slots: site.array(slots)? })
    }
}

impl RowOp for KvAppendRowOp {
    unsafe fn run(&self, run: &CpuRunContext<'_>, rows: Range<usize>) {
        let k = self.k.src(run);
        let v = self.v.as_ref().map_or(k, |v| v.src(run));
        // SAFETY: what `RowOp::run` is promised; `Site` bound rows that lie whole in their memory and a cache of their widths; the
        // scheduler gives each token its own slot.
        let done = unsafe { self.cache.blocks().append(rows.clone(), k, v, self.slots.some(run, rows)) };
        if let Err(why) = done {
            run.fail(why);
        }
    }
}
