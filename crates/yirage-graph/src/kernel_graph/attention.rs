//! Attention of plain tensors, without a cache.

use super::builder::{KernelGraph, KernelGraphResult, operands, sizes};
use super::error::GraphError;
use yirage_ir::attr::List;
use yirage_ir::op::{Contract, Iota, Map, Reduce, ReduceKind, View, ViewForm};
use yirage_ir::{Expr, F32, ValueId};

/// The operands, as grouped heads of f32: queries `[batch.., kv_heads, group, len, dim]`, keys and values
/// `[batch.., kv_heads, 1, len, dim]`.
struct GroupedHeads {
    q: ValueId,
    k: ValueId,
    v: ValueId,
    queries: u32,
    keys: u32,
}

impl KernelGraph {
    /// `softmax(scale q k^T) v` (Vaswani et al., 2017): `q [batch.., heads, len, dim]`, `k [batch.., kv_heads, keys, dim]`,
    /// `v [batch.., kv_heads, keys, width] -> [batch.., heads, len, width]`. Query head h reads key head
    /// `h / (heads / kv_heads)` (Ainslie et al., 2023). `scale` is `1 / sqrt(dim)` where none is given.
    ///
    /// If `causal`, the last query sees all keys, and each query before it one key less: the queries are the last of the
    /// keys' positions, as with a cache. Scores and weights are f32 for 16-bit operands as well. Mirage's graphs have no
    /// such operation.
    ///
    /// # Errors
    /// Ranks that differ or are below 3, sizes that do not fit, heads that are no multiple of the key heads, no key at
    /// all, more queries than keys if `causal`, a scale that is not finite.
    pub fn attention(
        &mut self,
        q: ValueId,
        k: ValueId,
        v: ValueId,
        causal: bool,
        scale: Option<f32>,
    ) -> KernelGraphResult {
        let what = "attention";
        let dtype = self.common(what, &[q, k, v])?;
        let dims = sizes(self.ty(what, q)?);
        let heads = self.grouped(q, k, v, causal)?;
        let scale = scale.unwrap_or_else(|| 1.0 / (dims[dims.len() - 1] as f32).sqrt());
        if !scale.is_finite() {
            let (given, wanted) = (scale.to_string(), "a finite number");
            return Err(GraphError::Argument { what, argument: "scale", given, wanted });
        }
        let scores = self.scores(&heads, causal, scale)?;
        let innermost = sizes(self.ty(what, scores)?).len() as u32 - 1;
        let largest = self.op(Reduce::new(ReduceKind::Max, &[innermost], true), &[scores])?;
        let exp = self.op(Map { expr: written("exp(sub(x0, x1))") }, &[scores, largest])?;
        let sum = self.op(Reduce::new(ReduceKind::Sum, &[innermost], true), &[exp])?;
        let weights = self.op(Map { expr: written("div(x0, x1)") }, &[exp, sum])?;
        let made = self.op(Contract {}, &[weights, heads.v])?;
        let made = self.cast(what, made, dtype)?;
        let width = self.dims(v)?.last().copied();
        let shape: Vec<u32> = dims[..dims.len() - 1].iter().copied().chain(width).collect();
        self.reshaped(what, made, &shape)
    }

    fn grouped(&mut self, q: ValueId, k: ValueId, v: ValueId, causal: bool) -> Result<GroupedHeads, GraphError> {
        let what = "attention";
        let types = [self.ty(what, q)?, self.ty(what, k)?, self.ty(what, v)?];
        let wrong = |wanted: &str| operands(what, &types, wanted);
        let shapes = types.map(sizes);
        let [[batch @ .., heads, queries, dim], [batch_k @ .., kv_heads, keys, dim_k], [batch_v @ .., kv_v, keys_v, _]] =
            shapes.each_ref().map(Vec::as_slice)
        else {
            return Err(wrong("[batch.., heads, len, dim] wanted of each"));
        };
        if batch != batch_k || batch != batch_v || dim != dim_k || kv_heads != kv_v || keys != keys_v {
            return Err(wrong("equal batches, equal dims of q and k, equal heads and lengths of k and v wanted"));
        }
        if *kv_heads == 0 || !heads.is_multiple_of(*kv_heads) || *keys == 0 || *dim == 0 {
            return Err(wrong("heads that are a multiple of the key heads, some key and some dim wanted"));
        }
        if causal && queries > keys {
            return Err(wrong("at least as many keys as queries wanted, as each causal query sees a key"));
        }
        let (queries, keys) = (*queries, *keys);
        let split = |dims: &[u32], group: u32, kv_heads: u32| {
            let (batch, inner) = (&dims[..dims.len() - 3], &dims[dims.len() - 2..]);
            [batch, &[kv_heads, group], inner].concat()
        };
        let (q_dims, k_dims, v_dims) = (
            split(&shapes[0], heads / kv_heads, *kv_heads),
            split(&shapes[1], 1, *kv_heads),
            split(&shapes[2], 1, *kv_heads),
        );
        let mut one = |x: ValueId, dims: &[u32]| {
            let x = self.widened(what, x)?;
            self.reshaped(what, x, dims)
        };
        Ok(GroupedHeads { q: one(q, &q_dims)?, k: one(k, &k_dims)?, v: one(v, &v_dims)?, queries, keys })
    }

    /// Scaled scores `[batch.., kv_heads, group, queries, keys]`; of keys that a query does not see minus infinity.
    fn scores(&mut self, heads: &GroupedHeads, causal: bool, scale: f32) -> KernelGraphResult {
        let rank = sizes(self.ty("attention", heads.k)?).len() as u32;
        let mut axes: Vec<u32> = (0..rank).collect();
        axes.swap(rank as usize - 1, rank as usize - 2);
        let turned = self.op(View { form: ViewForm::Permute(axes) }, &[heads.k])?;
        let dots = self.op(Contract {}, &[heads.q, turned])?;
        let scaled = format!("mul(x0, {})", F32(scale));
        if !causal || heads.queries == 0 {
            return self.op(Map { expr: written(&scaled) }, &[dots]);
        }
        let own = self.op(Iota { shape: List(vec![heads.queries, 1]), axis: 0 }, &[])?;
        let positions = self.op(Iota { shape: List(vec![1, heads.keys]), axis: 1 }, &[])?;
        let before = heads.keys - heads.queries;
        let seen = format!("select(le(x2, add(x1, {before}i)), {scaled}, -inf)");
        self.op(Map { expr: written(&seen) }, &[dots, own, positions])
    }
}

/// An expression of ours.
fn written(text: &str) -> Expr {
    text.parse().unwrap_or_else(|why| unreachable!("{text}: {why}"))
}
