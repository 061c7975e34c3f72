//! Attention with norms of queries, keys and values, of which the last layers read the keys and values of earlier ones
//! (Gemma 3n and 4): of the last layer of their kind before them.
//!
//! It does not know what else a layer does, nor how wide its heads are.

use super::attention::{AttentionHeads, KeptKeys, LayerAttention};
use super::emit::ModelBuilder;
use crate::config::LayerType;
use crate::error::ModelError;
use yirage_ir::op::RmsNorm;
use yirage_ir::{F32, ValueId};

/// How many layers keep nothing of their own.
const SHARED: &str = "num_kv_shared_layers";

/// The attention of all layers, and what those emitted so far have kept.
pub(super) struct KeySharing {
    layers: Vec<SharingLayer>,
    kept: Vec<KeptKeys>,
    bias: bool,
    eps: F32,
}

/// How a layer attends.
struct SharingLayer {
    heads: AttentionHeads,
    attention: LayerAttention,
    /// The earlier layer whose keys and values it reads, where it keeps none.
    reads: Option<u32>,
    /// Whether values are the keys before norm and rotation.
    values_are_keys: bool,
}

impl KeySharing {
    /// From the usual keys. `heads` gives those of a layer of this type; `values_are_keys` says whether layers that attend to
    /// everything have no projection of values.
    pub(super) fn read(
        e: &mut ModelBuilder<'_>,
        heads: &dyn Fn(&ModelBuilder<'_>, u32, LayerType) -> Result<AttentionHeads, ModelError>,
        values_are_keys: bool,
    ) -> Result<KeySharing, ModelError> {
        let types = e.config.layer_types()?;
        let sources = sources(e, &types)?;
        let mut layers = Vec::with_capacity(types.len());
        for (l, ((of, window), reads)) in types.into_iter().zip(e.config.windows()?).zip(sources).enumerate() {
            let heads = heads(e, l as u32, of)?;
            let rotation = e.rotation(of, heads.width, false)?;
            let attention = LayerAttention::full(Some(rotation), 1.0).within(window);
            let values_are_keys = values_are_keys && of == LayerType::Full;
            layers.push(SharingLayer { heads, attention, reads, values_are_keys });
        }
        let (bias, eps) = (e.config.bool_or("attention_bias", false)?, F32(e.eps("rms_norm_eps")?));
        Ok(KeySharing { layers, kept: Vec::new(), bias, eps })
    }

    /// Whether layer `l` keeps no keys and values.
    pub(super) fn keeps_nothing(&self, l: u32) -> bool {
        self.layers[l as usize].reads.is_some()
    }

    /// Emits the attention of layer `l` to its normalised rows `x`. Layers are emitted in their order.
    pub(super) fn emit(&mut self, e: &mut ModelBuilder<'_>, l: u32, x: ValueId) -> Result<ValueId, ModelError> {
        let SharingLayer { heads: h, attention, reads, .. } = &self.layers[l as usize];
        let hf = format!("model.layers.{l}.self_attn");
        let of_head = RmsNorm { eps: self.eps, width: h.width, unit_offset: false };
        let q = e.linear(&format!("l{l}.q"), &format!("{hf}.q_proj"), x, [h.q(), h.hidden], self.bias)?;
        let q = e.rms_norm(&format!("l{l}.q.norm"), &format!("{hf}.q_norm"), q, &of_head)?;
        let q = attention.query(e, l, h, q)?;
        let keys = match reads {
            Some(from) => {
                // Files may have what such a layer would keep.
                for part in ["k_proj.weight", "v_proj.weight", "k_norm.weight", "k_proj.bias", "v_proj.bias"] {
                    e.pass_over(&format!("{hf}.{part}"));
                }
                self.kept[*from as usize]
            }
            None => self.keep(e, l, x, &of_head)?,
        };
        let a = attention.attend(e, l, h, q, keys)?;
        let a = h.output(e, l, a, self.bias)?;
        self.kept.push(keys);
        Ok(a)
    }

    /// Keys and values of layer `l`, appended to its cache.
    fn keep(&self, e: &mut ModelBuilder<'_>, l: u32, x: ValueId, of_head: &RmsNorm) -> Result<KeptKeys, ModelError> {
        let SharingLayer { heads: h, attention, values_are_keys, .. } = &self.layers[l as usize];
        let hf = format!("model.layers.{l}.self_attn");
        let k = e.linear(&format!("l{l}.k"), &format!("{hf}.k_proj"), x, [h.k(), h.hidden], self.bias)?;
        let v = match values_are_keys {
            true => k,
            false => e.linear(&format!("l{l}.v"), &format!("{hf}.v_proj"), x, [h.v(), h.hidden], self.bias)?,
        };
        let k = e.rms_norm(&format!("l{l}.k.norm"), &format!("{hf}.k_norm"), k, of_head)?;
        let v = e.op(&format!("l{l}.v.norm"), of_head.clone(), &[v])?;
        attention.keep(e, l, h, [k, v])
    }
}

/// For each layer the one whose keys and values it reads in the place of its own.
fn sources(e: &ModelBuilder<'_>, types: &[LayerType]) -> Result<Vec<Option<u32>>, ModelError> {
    let shared = e.config.u32_or(SHARED, 0)? as usize;
    let keeping = types.len().checked_sub(shared).filter(|&n| n > 0);
    let keeping = keeping.ok_or_else(|| e.config.invalid(SHARED, "fewer than there are layers"))?;
    let (kept, others) = types.split_at(keeping);
    let source = |of: &LayerType| {
        let last = kept.iter().rposition(|kept| kept == of).map(|at| Some(at as u32));
        last.ok_or_else(|| e.config.invalid(SHARED, "so few layers that one of each type comes before them"))
    };
    let reading = others.iter().map(source);
    kept.iter().map(|_| Ok(None)).chain(reading).collect()
}
