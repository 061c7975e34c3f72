//! Models of files as layers: Llama, Mistral and Qwen3, dense or with experts, by their configurations.
//!
//! It knows the names of safetensors and no other; what a configuration asks for and no layer method does is refused.

use crate::builder::KernelBuilder;
use crate::bytes::SharedBytes;
use crate::elements::KernelDType;
use crate::error::PersistentError;
use crate::grid::LaunchDims;
use crate::layers::AttentionInputs;
use crate::tensor::{KernelTensor, TensorId};
use std::sync::Arc;
use yirage_ir::Format;
use yirage_model::rope::Frequencies;
use yirage_model::{Checkpoint, LayerType, RawConfig, RopeScaling, StoredType};
use yirage_plan::Precision;

/// Architectures that are nothing but the layers here.
const KNOWN: [&str; 4] = ["llama", "mistral", "qwen3", "qwen3_moe"];
const F32: KernelDType = KernelDType::Floats(Format::F32);

/// A tensor of a checkpoint, where it lies.
struct CheckpointTensor {
    checkpoint: Arc<Checkpoint>,
    name: String,
}

impl AsRef<[u8]> for CheckpointTensor {
    fn as_ref(&self) -> &[u8] {
        // It was found by this name before.
        self.checkpoint.tensor(&self.name).map_or(&[], |info| self.checkpoint.bytes(info))
    }
}

/// A model while it becomes layers.
struct ModelLowering<'a> {
    b: &'a mut KernelBuilder,
    checkpoint: &'a Arc<Checkpoint>,
    hidden: u32,
    heads: u32,
    kv_heads: u32,
    head: u32,
    rows: u32,
}

fn unsupported(what: impl Into<String>, why: &str) -> PersistentError {
    PersistentError::Unsupported { what: what.into(), why: why.into() }
}

impl KernelBuilder {
    /// Attaches the weights of a model's safetensors by their names, and adds its layers up to the choice of a token: the
    /// largest logit, or with a seed a draw. The epsilon of norms is the model's from then on. Where this fails the builder
    /// may have a part of them: make another one.
    ///
    /// # Errors
    /// [`PersistentError::Unsupported`] for another architecture, biases, windows, rotations and formats that layer methods
    /// do not have; [`PersistentError::Model`] for files that are wrong.
    pub fn build_model(&mut self, checkpoint: &Arc<Checkpoint>, seed: Option<u64>) -> Result<(), PersistentError> {
        if checkpoint.gguf().is_some() {
            return Err(unsupported(
                "a kernel of a GGUF file",
                "its tensors have other names: give a folder of safetensors",
            ));
        }
        let config = RawConfig::load(checkpoint)?;
        config.check_supported()?;
        check(&config)?;
        let (hidden, heads) = (config.u32("hidden_size")?, config.u32("num_attention_heads")?);
        let head = config.opt_u32("head_dim")?.unwrap_or(hidden / heads.max(1));
        let kv_heads = config.u32_or("num_key_value_heads", heads)?;
        self.declared.config.rms_norm_eps = config.f64("rms_norm_eps")? as f32;
        let tables = tables(&config, head, self.declared.config.max_seq_length)?;
        let rows = self.declared.config.max_num_batched_tokens;
        ModelLowering { b: self, checkpoint, hidden, heads, kv_heads, head, rows }.layers(&config, tables, seed)
    }
}

/// Refuses what no layer method does.
fn check(config: &RawConfig) -> Result<(), PersistentError> {
    let name = config.model_type()?;
    if !KNOWN.contains(&name) {
        let why = format!("layer methods make {}: run it from its files by the engine", KNOWN.join(", "));
        return Err(PersistentError::Unsupported { what: format!("a kernel of the architecture `{name}`"), why });
    }
    for key in ["attention_bias", "mlp_bias"] {
        if config.bool_or(key, false)? {
            return Err(unsupported(format!("{key} of {}", config.file()), "products of layer methods have no bias"));
        }
    }
    if config.windows()?.iter().any(Option::is_some) {
        return Err(unsupported(
            format!("a sliding window in {}", config.file()),
            "attention layers see every position",
        ));
    }
    match config.opt_str("hidden_act")? {
        None | Some("silu") => Ok(()),
        Some(other) => Err(unsupported(format!("hidden_act={other}"), "gated layers are of silu")),
    }
}

/// Cosines and sines by position.
fn tables(config: &RawConfig, head: u32, positions: u32) -> Result<[KernelTensor; 2], PersistentError> {
    let rope = config.rope(LayerType::Full)?;
    let fixed = !matches!(rope.scaling, RopeScaling::Dynamic { .. }) && !rope.scaling.is_divided();
    if !fixed || rope.partial_rotary_factor != 1.0 {
        let what = format!("the rotary embedding of {}", config.file());
        return Err(unsupported(what, "attention layers rotate whole heads, by the same angles whatever the length"));
    }
    let (cos, sin) = Frequencies::new(&rope, head, None).tables(0..positions);
    Ok([cos, sin].map(|table| KernelTensor::f32(&[positions, head / 2], &table)))
}

impl ModelLowering<'_> {
    /// A weight by its name.
    fn checkpoint_weight(&self, name: &str) -> Result<KernelTensor, PersistentError> {
        let info = self.checkpoint.require(name)?;
        let format = self.checkpoint.format(info)?;
        // What is decoded has other bytes in its file.
        let plain = matches!(format, Format::F32 | Format::F16 | Format::BF16);
        if !plain || info.dtype != StoredType::Format(format) {
            let what = format!("the weight `{name}` of format {}", info.dtype);
            return Err(unsupported(what, "weights of layer methods are stored as float32, float16 or bfloat16"));
        }
        let dims = info.shape.iter().map(|&n| u32::try_from(n)).collect::<Result<Vec<_>, _>>();
        let dims = dims.map_err(|_| unsupported(format!("the weight `{name}`"), "a size is 2^32 or more"))?;
        let stored = CheckpointTensor { checkpoint: Arc::clone(self.checkpoint), name: name.to_owned() };
        Ok(KernelTensor { dims, elements: KernelDType::Floats(format), data: Some(SharedBytes::of(Arc::new(stored))) })
    }

    fn weight(&mut self, name: &str) -> Result<TensorId, PersistentError> {
        let given = self.checkpoint_weight(name)?;
        self.b.attach_input(given, name)
    }

    /// A tensor of this name, the same in every layer.
    fn tensor(&mut self, name: &str, row: &[u32]) -> Result<TensorId, PersistentError> {
        match self.b.find(name) {
            Some(known) => Ok(known),
            None => self.b.new_tensor(&[&[self.rows], row].concat(), F32, name),
        }
    }

    fn layers(
        mut self,
        config: &RawConfig,
        [cos, sin]: [KernelTensor; 2],
        seed: Option<u64>,
    ) -> Result<(), PersistentError> {
        let launch = LaunchDims::ONE;
        let tables =
            [self.b.attach_input(cos, "cos_position_embedding")?, self.b.attach_input(sin, "sin_position_embedding")?];
        let ids = KernelTensor::declared(&[self.rows, 1], KernelDType::Int64);
        let ids = self.b.attach_input(ids, "input_token")?;
        let table = self.weight("model.embed_tokens.weight")?;
        let [mut x, mut y] = [self.tensor("embed_out", &[self.hidden])?, self.tensor("mlp_out", &[self.hidden])?];
        self.b.embed_layer(ids, table, x, 0, launch)?;
        for l in 0..config.layers()? {
            let mid = self.attention(l, x, tables, launch)?;
            match self.checkpoint.tensor(&format!("model.layers.{l}.mlp.gate.weight")) {
                Some(_) => self.experts(config, l, [mid, y], launch)?,
                None => self.gated(config.u32("intermediate_size")?, l, [mid, y], launch)?,
            }
            std::mem::swap(&mut x, &mut y);
        }
        let norm = self.weight("model.norm.weight")?;
        let head = match self.checkpoint.tensor("lm_head.weight") {
            Some(_) => self.weight("lm_head.weight")?,
            None => table,
        };
        let logits = self.tensor("logits", &[config.u32("vocab_size")?])?;
        self.b.rmsnorm_linear_layer(x, norm, head, logits, launch)?;
        let chosen = self.b.new_tensor(&[self.rows, 1], KernelDType::Int64, "output_token")?;
        match seed {
            None => self.b.argmax_layer(logits, chosen, launch),
            Some(seed) => self.b.sampling_layer(logits, chosen, seed, launch),
        }
    }

    fn attention(
        &mut self,
        l: u32,
        x: TensorId,
        [cos, sin]: [TensorId; 2],
        launch: LaunchDims,
    ) -> Result<TensorId, PersistentError> {
        let of = |part: &str| format!("model.layers.{l}.{part}.weight");
        let norm = self.weight(&of("input_layernorm"))?;
        let mut parts = Vec::with_capacity(3);
        for part in ["q", "k", "v"] {
            parts.push(self.weight(&of(&format!("self_attn.{part}_proj")))?);
        }
        let fused = self.b.fuse_tensors(&parts, 0, self.kv_heads, &format!("layer_{l}_qkv"))?;
        let width = self.kv_heads.saturating_mul(2).saturating_add(self.heads).saturating_mul(self.head);
        let qkv = self.tensor("attn_in", &[width])?;
        let attended = self.tensor("attn_out", &[self.heads.saturating_mul(self.head)])?;
        let mid = self.tensor("attn_proj_out", &[self.hidden])?;
        self.b.rmsnorm_linear_layer(x, norm, fused, qkv, launch)?;
        let config = &self.b.declared.config;
        // Without rounding there is none of keys and values either; else they are kept as the weights are.
        let kept = if config.precision == Precision::Exact { F32 } else { self.b.tensor(parts[0])?.elements };
        let cache = KernelTensor::declared(&[1, self.b.declared.config.page_size, self.kv_heads, self.head], kept);
        let k_cache = self.b.attach_input(cache.clone(), &format!("layer_{l}_k_cache"))?;
        let v_cache = self.b.attach_input(cache, &format!("layer_{l}_v_cache"))?;
        let mut norms = [None; 2];
        for (norm, part) in norms.iter_mut().zip(["q", "k"]) {
            let name = of(&format!("self_attn.{part}_norm"));
            if self.checkpoint.tensor(&name).is_some() {
                *norm = Some(self.weight(&name)?);
            }
        }
        let [q_norm, k_norm] = norms;
        let inputs =
            AttentionInputs { k_cache, v_cache, q_norm, k_norm, cos_pos_embed: Some(cos), sin_pos_embed: Some(sin) };
        self.b.paged_attention_layer(qkv, inputs, attended, launch)?;
        let o = self.weight(&of("self_attn.o_proj"))?;
        self.b.linear_with_residual_layer(attended, o, x, mid, launch)?;
        Ok(mid)
    }

    fn gated(
        &mut self,
        inner: u32,
        l: u32,
        [mid, out]: [TensorId; 2],
        launch: LaunchDims,
    ) -> Result<(), PersistentError> {
        let of = |part: &str| format!("model.layers.{l}.{part}.weight");
        let norm = self.weight(&of("post_attention_layernorm"))?;
        let parts = [self.weight(&of("mlp.gate_proj"))?, self.weight(&of("mlp.up_proj"))?];
        let fused = self.b.shuffle_tensors(&parts, 0, 1, &format!("layer_{l}_gate_up"))?;
        let wide = self.tensor("mlp_mid", &[inner.saturating_mul(2)])?;
        let down = self.weight(&of("mlp.down_proj"))?;
        self.b.rmsnorm_linear_layer(mid, norm, fused, wide, launch)?;
        self.b.silu_mul_linear_with_residual_layer(wide, down, mid, out, launch)
    }

    fn experts(
        &mut self,
        config: &RawConfig,
        l: u32,
        [mid, out]: [TensorId; 2],
        launch: LaunchDims,
    ) -> Result<(), PersistentError> {
        if !config.bool_or("norm_topk_prob", false)? {
            let what = format!("norm_topk_prob=false in {}", config.file());
            return Err(unsupported(what, "routing layers divide the weights of chosen experts by their sum"));
        }
        let (count, top_k) = (config.u32("num_local_experts")?, config.u32("num_experts_per_tok")?);
        let inner = config.u32("moe_intermediate_size")?;
        let norm = self.weight(&format!("model.layers.{l}.post_attention_layernorm.weight"))?;
        let router = self.weight(&format!("model.layers.{l}.mlp.gate.weight"))?;
        let [normed, scores] = [self.tensor("moe_norm_out", &[self.hidden])?, self.tensor("moe_scores", &[count])?];
        let chosen = [self.tensor("moe_weights", &[top_k])?, self.tensor("moe_indices", &[top_k])?];
        self.b.rmsnorm_layer(mid, norm, normed, launch)?;
        self.b.linear_layer(normed, router, scores, launch)?;
        self.b.moe_topk_softmax_routing_layer(scores, chosen, launch)?;
        let [w13, w2] = self.joined(l, count)?;
        let w13 = self.b.attach_input(w13, &format!("layer_{l}_w13"))?;
        let w2 = self.b.attach_input(w2, &format!("layer_{l}_w2"))?;
        let wide = self.tensor("moe_w13_out", &[top_k, inner.saturating_mul(2)])?;
        let act = self.tensor("moe_silu_out", &[top_k, inner])?;
        let back = self.tensor("moe_w2_out", &[top_k, self.hidden])?;
        self.b.moe_w13_linear_layer(normed, w13, chosen[1], wide, launch)?;
        self.b.moe_silu_mul_layer(wide, act, launch)?;
        self.b.moe_w2_linear_layer(act, w2, chosen[1], back, launch)?;
        self.b.moe_mul_sum_add_layer(back, chosen[0], mid, out, launch)
    }

    /// Gate and up of all experts as one weight, and their ways back.
    fn joined(&self, l: u32, count: u32) -> Result<[KernelTensor; 2], PersistentError> {
        let (mut both, mut kinds) = ([Vec::new(), Vec::new()], [None, None]);
        for expert in 0..count {
            for (at, part) in [(0, "gate"), (0, "up"), (1, "down")] {
                let name = format!("model.layers.{l}.mlp.experts.{expert}.{part}_proj.weight");
                let given = self.checkpoint_weight(&name)?;
                both[at].extend_from_slice(given.data.as_deref().unwrap_or(&[]));
                let kind = (given.dims, given.elements);
                if *kinds[at].get_or_insert_with(|| kind.clone()) != kind {
                    let why = format!("it is {} {:?}, and others of its layer are not", kind.1, kind.0);
                    return Err(PersistentError::Tensor { name, why });
                }
            }
        }
        let [w13, w2] = both;
        let joined = |kind: Option<(Vec<u32>, KernelDType)>, parts: u32, bytes: Vec<u8>| match kind {
            Some((dims, elements)) if dims.len() == 2 => {
                let dims = vec![count, dims[0].saturating_mul(parts), dims[1]];
                Ok(KernelTensor { dims, elements, data: Some(bytes.into()) })
            }
            _ => Err(unsupported(format!("{count} experts in layer {l}"), "one at least, of matrices, is wanted")),
        };
        let [of_w13, of_w2] = kinds;
        Ok([joined(of_w13, 2, w13)?, joined(of_w2, 1, w2)?])
    }
}
