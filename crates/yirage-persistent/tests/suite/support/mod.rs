//! Models built only of layer methods, with the weights that testkit makes.
#![allow(unreachable_pub)]

use serde_json::Value;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use yirage_engine::{Engine, EngineOptions, Event, Request};
use yirage_hal::{Backend, Device, OpenOptions};
use yirage_ir::Format;
use yirage_model::Checkpoint;
use yirage_model::checkpoint::StoredType;
use yirage_model::rope::Frequencies;
use yirage_persistent::{
    AttentionInputs, KernelBuilder, KernelConfig, KernelDType, KernelTensor, LaunchDims, MetaData, MetaTensor,
    MetaTensors, TensorId,
};

pub const F32: KernelDType = KernelDType::Floats(Format::F32);

pub fn cpu(threads: usize) -> Arc<dyn Device> {
    let open = OpenOptions { threads: Some(threads), ..OpenOptions::default() };
    yirage_cpu::Cpu.open(0, &open).unwrap().0
}

/// `[step, tokens]` with these prompts.
pub fn meta(prompts: &[Vec<u32>], width: usize) -> MetaTensors {
    let mut tokens = vec![0i64; prompts.len() * width];
    for (row, prompt) in prompts.iter().enumerate() {
        for (at, &id) in prompt.iter().enumerate() {
            tokens[row * width + at] = i64::from(id);
        }
    }
    let step = prompts.iter().map(|prompt| prompt.len() as i32 - 1).collect();
    MetaTensors::from_list(vec![
        MetaTensor { shape: vec![prompts.len()], data: MetaData::Int32(step) },
        MetaTensor { shape: vec![prompts.len(), width], data: MetaData::Int64(tokens) },
    ])
    .unwrap()
}

/// What a model is, and its weights.
pub struct Source {
    config: Value,
    checkpoint: Checkpoint,
}

impl Source {
    pub fn open(folder: &Path) -> Source {
        let config = serde_json::from_slice(&std::fs::read(folder.join("config.json")).unwrap()).unwrap();
        Source { config, checkpoint: Checkpoint::open(folder).unwrap() }
    }

    pub fn has(&self, name: &str) -> bool {
        self.checkpoint.tensor(name).is_some()
    }

    pub fn size(&self, key: &str) -> u32 {
        self.config[key].as_u64().unwrap_or_else(|| panic!("{key}")) as u32
    }

    pub fn eps(&self) -> f32 {
        self.config["rms_norm_eps"].as_f64().unwrap() as f32
    }

    fn head(&self) -> u32 {
        let stated = self.config["head_dim"].as_u64().map(|n| n as u32);
        stated.unwrap_or_else(|| self.size("hidden_size") / self.size("num_attention_heads"))
    }

    pub fn theta(&self) -> f64 {
        let nested = self.config["rope_parameters"]["rope_theta"].as_f64();
        nested.or(self.config["rope_theta"].as_f64()).unwrap()
    }

    pub fn tensor(&self, name: &str) -> KernelTensor {
        let info = self.checkpoint.require(name).unwrap();
        assert_eq!(info.dtype, StoredType::Format(Format::F32), "{name}");
        let dims = info.shape.iter().map(|&n| n as u32).collect();
        KernelTensor { dims, elements: F32, data: Some(self.checkpoint.bytes(info).into()) }
    }

    /// Gate and up of all experts, and their ways back.
    fn experts(&self, layer: u32) -> [KernelTensor; 2] {
        let (count, inner, hidden) =
            (self.size("num_local_experts"), self.size("moe_intermediate_size"), self.size("hidden_size"));
        let (mut w13, mut w2) = (Vec::new(), Vec::new());
        for expert in 0..count {
            let of = |part: &str| self.tensor(&format!("model.layers.{layer}.mlp.experts.{expert}.{part}_proj.weight"));
            w13.extend_from_slice(of("gate").data.as_ref().unwrap());
            w13.extend_from_slice(of("up").data.as_ref().unwrap());
            w2.extend_from_slice(of("down").data.as_ref().unwrap());
        }
        let tensor = |dims: [u32; 3], bytes: Vec<u8>| KernelTensor {
            dims: dims.to_vec(),
            elements: F32,
            data: Some(bytes.into()),
        };
        [tensor([count, 2 * inner, hidden], w13), tensor([count, hidden, inner], w2)]
    }
}

/// How the last layer chooses.
#[derive(Clone, Copy)]
pub enum End {
    Argmax,
    Halves,
    Sampled(u64),
}

/// A kernel of the model in `folder`, of layer methods alone.
pub fn build(folder: &Path, config: KernelConfig, meta: MetaTensors) -> KernelBuilder {
    build_with(folder, config, meta, End::Argmax, LaunchDims::ONE)
}

pub fn build_with(
    folder: &Path,
    config: KernelConfig,
    meta: MetaTensors,
    end: End,
    launch: LaunchDims,
) -> KernelBuilder {
    let source = Source::open(folder);
    let config = KernelConfig { rms_norm_eps: source.eps(), ..config };
    let rows = config.max_num_batched_tokens;
    let positions = config.max_seq_length;
    let mut b = KernelBuilder::new(config, meta).unwrap();
    let (hidden, vocabulary) = (source.size("hidden_size"), source.size("vocab_size"));
    let (heads, kv_heads, head) =
        (source.size("num_attention_heads"), source.size("num_key_value_heads"), source.head());
    let weight = |b: &mut KernelBuilder, name: &str| b.attach_input(source.tensor(name), name).unwrap();

    let [cos, sin] = tables(source.theta(), head, positions);
    let cos = b.attach_input(cos, "cos_position_embedding").unwrap();
    let sin = b.attach_input(sin, "sin_position_embedding").unwrap();
    let ids = b.attach_input(KernelTensor::declared(&[rows, 1], KernelDType::Int64), "input_token").unwrap();
    let new = |b: &mut KernelBuilder, name: &str, width: u32| b.new_tensor(&[rows, width], F32, name).unwrap();
    // As in Mirage's demonstrations, one tensor of each kind serves all layers.
    let [mut x, mut y] = ["embed_out", "mlp_out"].map(|name| new(&mut b, name, hidden));
    let qkv = new(&mut b, "attn_in", (heads + 2 * kv_heads) * head);
    let attended = new(&mut b, "attn_out", heads * head);
    let mid = new(&mut b, "attn_proj_out", hidden);

    let table = weight(&mut b, "model.embed_tokens.weight");
    b.embed_layer(ids, table, x, 0, launch).unwrap();
    for l in 0..source.size("num_hidden_layers") {
        let of = |part: &str| format!("model.layers.{l}.{part}.weight");
        let norm = weight(&mut b, &of("input_layernorm"));
        let parts = ["q", "k", "v"].map(|p| weight(&mut b, &of(&format!("self_attn.{p}_proj"))));
        let fused = b.fuse_tensors(&parts, 0, kv_heads, &format!("layer_{l}_qkv")).unwrap();
        b.rmsnorm_linear_layer(x, norm, fused, qkv, launch).unwrap();
        let cache = KernelTensor::declared(&[4, 64, kv_heads, head], F32);
        let [k_cache, v_cache] =
            ["k", "v"].map(|p| b.attach_input(cache.clone(), &format!("layer_{l}_{p}_cache")).unwrap());
        let normed = source.checkpoint.tensor(&of("self_attn.q_norm")).is_some();
        let head_norm = |b: &mut KernelBuilder, p: &str| {
            normed.then(|| {
                b.attach_input(source.tensor(&of(&format!("self_attn.{p}_norm"))), &of(&format!("self_attn.{p}_norm")))
                    .unwrap()
            })
        };
        let (q_norm, k_norm) = (head_norm(&mut b, "q"), head_norm(&mut b, "k"));
        let (cos_pos_embed, sin_pos_embed) = (Some(cos), Some(sin));
        let inputs = AttentionInputs { k_cache, v_cache, q_norm, k_norm, cos_pos_embed, sin_pos_embed };
        b.paged_attention_layer(qkv, inputs, attended, launch).unwrap();
        let o = weight(&mut b, &of("self_attn.o_proj"));
        b.linear_with_residual_layer(attended, o, x, mid, launch).unwrap();
        let norm = weight(&mut b, &of("post_attention_layernorm"));
        if source.config["num_local_experts"].is_u64() {
            experts(&mut b, &source, l, norm, [mid, y], launch);
        } else {
            gated(&mut b, &source, l, norm, [mid, y], launch);
        }
        std::mem::swap(&mut x, &mut y);
    }
    let norm = weight(&mut b, "model.norm.weight");
    let head = match source.checkpoint.tensor("lm_head.weight") {
        Some(_) => weight(&mut b, "lm_head.weight"),
        None => table,
    };
    let logits = new(&mut b, "logits", vocabulary);
    b.rmsnorm_linear_layer(x, norm, head, logits, launch).unwrap();
    let chosen = b.new_tensor(&[rows, 1], KernelDType::Int64, "output_token").unwrap();
    match end {
        End::Argmax => b.argmax_layer(logits, chosen, launch).unwrap(),
        End::Halves => {
            let halves = [("argmax_value", F32), ("argmax_index", KernelDType::Int64)];
            let halves = halves.map(|(name, elements)| b.new_tensor(&[rows, 96], elements, name).unwrap());
            b.argmax_partial_layer(logits, halves, launch).unwrap();
            b.argmax_reduce_layer(halves, chosen, launch).unwrap();
        }
        End::Sampled(seed) => b.sampling_layer(logits, chosen, seed, launch).unwrap(),
    }
    b
}

pub fn gated(
    b: &mut KernelBuilder,
    source: &Source,
    l: u32,
    norm: TensorId,
    [mid, out]: [TensorId; 2],
    launch: LaunchDims,
) {
    let of = |part: &str| format!("model.layers.{l}.mlp.{part}_proj.weight");
    let parts = ["gate", "up"].map(|p| b.attach_input(source.tensor(&of(p)), &of(p)).unwrap());
    let fused = b.shuffle_tensors(&parts, 0, 2, &format!("layer_{l}_gatedup")).unwrap();
    let inner = source.size("intermediate_size");
    let wide = tensor(b, "mlp_mid", 2 * inner);
    let down = b.attach_input(source.tensor(&of("down")), &of("down")).unwrap();
    b.rmsnorm_linear_layer(mid, norm, fused, wide, launch).unwrap();
    if l.is_multiple_of(2) {
        b.silu_mul_linear_with_residual_layer(wide, down, mid, out, launch).unwrap();
    } else {
        let act = tensor(b, "silu_mul_out", inner);
        b.silu_mul_layer(wide, act, launch).unwrap();
        b.linear_with_residual_layer(act, down, mid, out, launch).unwrap();
    }
}

fn experts(
    b: &mut KernelBuilder,
    source: &Source,
    l: u32,
    norm: TensorId,
    [mid, out]: [TensorId; 2],
    launch: LaunchDims,
) {
    let (count, top_k) = (source.size("num_local_experts"), source.size("num_experts_per_tok"));
    let (inner, hidden) = (source.size("moe_intermediate_size"), source.size("hidden_size"));
    let normed = tensor(b, "moe_norm_out", hidden);
    b.rmsnorm_layer(mid, norm, normed, launch).unwrap();
    let router = format!("model.layers.{l}.mlp.gate.weight");
    let router = b.attach_input(source.tensor(&router), &router).unwrap();
    let scores = tensor(b, "moe_scores", count);
    b.linear_layer(normed, router, scores, launch).unwrap();
    let (weights, indices) = (tensor(b, "moe_weights", top_k), tensor(b, "moe_indices", top_k));
    b.moe_topk_softmax_routing_layer(scores, [weights, indices], launch).unwrap();
    let [w13, w2] = source.experts(l);
    let w13 = b.attach_input(w13, &format!("layer_{l}_w13")).unwrap();
    let w2 = b.attach_input(w2, &format!("layer_{l}_w2")).unwrap();
    let wide = tensor_of(b, "moe_w13_out", &[top_k, 2 * inner]);
    b.moe_w13_linear_layer(normed, w13, indices, wide, launch).unwrap();
    let act = tensor_of(b, "moe_silu_out", &[top_k, inner]);
    b.moe_silu_mul_layer(wide, act, launch).unwrap();
    let back = tensor_of(b, "moe_w2_out", &[top_k, hidden]);
    b.moe_w2_linear_layer(act, w2, indices, back, launch).unwrap();
    b.moe_mul_sum_add_layer(back, weights, mid, out, launch).unwrap();
}

pub fn tensor(b: &mut KernelBuilder, name: &str, width: u32) -> TensorId {
    tensor_of(b, name, &[width])
}

/// A tensor of this name: the same in every layer.
pub fn tensor_of(b: &mut KernelBuilder, name: &str, row: &[u32]) -> TensorId {
    let rows = b.config().max_num_batched_tokens;
    let dims = [&[rows], row].concat();
    b.find(name).unwrap_or_else(|| b.new_tensor(&dims, F32, name).unwrap())
}

/// Cosines and sines as Hugging Face has them: both halves of a row alike.
pub fn tables(theta: f64, head: u32, positions: u32) -> [KernelTensor; 2] {
    let per_position = (0..head / 2).map(|i| theta.powf(-2.0 * f64::from(i) / f64::from(head))).collect();
    let (cos, sin) = Frequencies { per_position, factor: 1.0, growth: None }.tables(0..positions);
    [cos, sin].map(|half: Vec<f32>| {
        let rows = half.chunks_exact(head as usize / 2).flat_map(|row| [row, row].concat());
        KernelTensor::f32(&[positions, head], &rows.collect::<Vec<f32>>())
    })
}

/// The attached tensors of a kernel by name, as a program that loads it has them.
pub fn tensors(b: &KernelBuilder) -> HashMap<String, KernelTensor> {
    b.attached_tensors().map(|(name, tensor)| (name.to_owned(), tensor.clone())).collect()
}

pub fn engine(folder: &Path, context: u32) -> Engine {
    let options = EngineOptions { context: Some(context), chunk: 64, ..EngineOptions::default() };
    Engine::load(&Checkpoint::open(folder).unwrap(), cpu(1), &options, &mut |_, _| {}).unwrap()
}

/// The tokens of a request that runs alone in the engine.
pub fn alone(engine: &mut Engine, request: Request) -> Vec<u32> {
    engine.add(request).unwrap();
    let mut tokens = Vec::new();
    while !engine.is_idle() {
        tokens.extend(engine.step().unwrap().into_iter().filter_map(|event| match event {
            Event::Token { token, .. } => Some(token),
            _ => None,
        }));
    }
    tokens
}

/// What stands behind a prompt in a row of the metadata.
pub fn behind(meta: &MetaTensors, row: usize, prompt: usize) -> Vec<u32> {
    meta.known(row).unwrap()[prompt..].iter().map(|&id| u32::try_from(id).unwrap()).collect()
}
