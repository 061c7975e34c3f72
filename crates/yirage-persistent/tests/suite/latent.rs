//! Latent attention of layer methods: alone against its formula in f64, and in a whole DeepSeek-V3 whose tokens are those of
//! transformers.
#![allow(clippy::needless_range_loop)] // formulas have indices

use crate::support::{F32, Source, behind, cpu, gated, meta, tables, tensor, tensor_of, tensors};
use std::path::Path;
use yirage_ir::rng::Rng;
use yirage_persistent::{
    KernelBuilder, KernelConfig, KernelDType, KernelTensor, LatentAttention, LaunchDims, MetaData, MetaTensor,
    MetaTensors, PersistentKernel, Routing, TensorId, TestValues,
};
use yirage_testkit::json::ids;
use yirage_testkit::tiny;

/// How attention is written down.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Form {
    Decode,
    MtpDecode,
    Prefill,
    Absorbed,
}

const FORMS: [Form; 4] = [Form::Decode, Form::MtpDecode, Form::Prefill, Form::Absorbed];

/// Gathers and attends in one of the forms.
fn attend(
    b: &mut KernelBuilder,
    form: Form,
    [nope, rope]: [TensorId; 2],
    rows: [TensorId; 2],
    [cache, out]: [TensorId; 2],
    attention: LatentAttention,
) {
    let LatentAttention { num_heads, d_v, d_kpe, .. } = attention;
    let tokens = b.of_rows(nope);
    let new = |b: &mut KernelBuilder, name: &str, dims: &[u32]| {
        b.find(name).unwrap_or_else(|| b.new_tensor(dims, F32, name).unwrap())
    };
    let one = LaunchDims::ONE;
    if form == Form::Prefill {
        let [ckv, kpe] = [("ckv_sep", d_v), ("kpe_sep", d_kpe)].map(|(name, width)| new(b, name, &[64, width]));
        b.mla_kv_gather_split_layer(rows[0], rows[1], cache, [ckv, kpe], one).unwrap();
        return b.mla_prefill_layer([nope, rope], [ckv, kpe], out, attention, one).unwrap();
    }
    let kv = new(b, "contiguous_kv", &[64, d_v + d_kpe]);
    b.mla_kv_gather_layer(rows[0], rows[1], cache, kv, one).unwrap();
    let q = new(b, "q_nope_pe", &[tokens, num_heads, d_v + d_kpe]);
    b.assemble_q_decode_layer([nope, rope], q, num_heads, one).unwrap();
    if form == Form::Absorbed {
        return b.mla_prefill_absorbed_layer(q, kv, out, attention, one).unwrap();
    }
    // As many splits as a GPU might have: they are not rows.
    let halves =
        [("partial", num_heads * d_v), ("lse", num_heads)].map(|(name, width)| new(b, name, &[tokens * 4, width]));
    match form {
        Form::Decode => {
            b.mla_decode_layer(q, kv, halves, attention, one).unwrap();
            b.mla_reduce_layer(halves, out, one).unwrap();
        }
        _ => {
            b.mla_mtp_decode_layer(q, kv, halves, attention, one).unwrap();
            b.mla_mtp_reduce_layer(halves, out, one).unwrap();
        }
    }
}

/// Rows of a tensor, for tests that build with any.
trait OfRows {
    fn of_rows(&self, id: TensorId) -> u32;
}

impl OfRows for KernelBuilder {
    fn of_rows(&self, _: TensorId) -> u32 {
        self.config().max_num_batched_tokens
    }
}

fn pass(lengths: &[usize]) -> MetaTensors {
    let count = lengths.len();
    let tokens: Vec<Vec<u32>> = (0..count).map(|row| vec![row as u32 + 1]).collect();
    let tokens = meta(&tokens, 64);
    MetaTensors::from_list(vec![
        MetaTensor { shape: vec![count], data: MetaData::Int32(tokens.step().to_vec()) },
        MetaTensor { shape: vec![count, 64], data: MetaData::Int64(tokens.tokens().to_vec()) },
        MetaTensor { shape: vec![count], data: MetaData::Int32(vec![1; count]) },
        MetaTensor { shape: vec![count], data: MetaData::Int32(lengths.iter().map(|&n| n as i32).collect()) },
    ])
    .unwrap()
}

fn values(rng: &mut Rng, count: u32) -> Vec<f32> {
    (0..count).map(|_| (rng.below(4001) as f32 - 2000.0) / 1000.0).collect()
}

#[test]
fn latent_attention_is_that_of_its_formula_in_every_form() {
    let lengths = [4usize, 3];
    let rows = 7u32;
    let attention = LatentAttention { num_heads: 3, d_v: 16, d_kpe: 8, softmax_scale: 0.21 };
    let (heads, rank, rope) = (3usize, 16usize, 8usize);
    for form in FORMS {
        let config = KernelConfig { max_num_batched_tokens: rows, max_seq_length: 64, ..KernelConfig::default() };
        let config = KernelConfig { max_num_batched_requests: 2, ..config };
        let mut b = KernelBuilder::new(config, pass(&lengths)).unwrap();
        let mut rng = Rng::new(5);
        let mut input = |name: &str, dims: &[u32]| {
            let values = values(&mut rng, dims.iter().product());
            (b.attach_input(KernelTensor::f32(dims, &values), name).unwrap(), values)
        };
        let (nope, ns) = input("q_nope", &[rows, 3 * 16]);
        let (turned, ts) = input("q_pe", &[rows, 3 * 8]);
        let (latent, cs) = input("c_latent", &[rows, 16]);
        let (key, ks) = input("k_pe", &[rows, 8]);
        let cache = b.attach_input(KernelTensor::declared(&[2, 64, 24], F32), "paged_cache").unwrap();
        let out = b.new_tensor(&[rows, 3 * 16], F32, "out").unwrap();
        attend(&mut b, form, [nope, turned], [latent, key], [cache, out], attention);
        let places: Vec<usize> = lengths.iter().enumerate().flat_map(|(s, &n)| vec![s; n]).collect();
        let mut wanted = Vec::new();
        for t in 0..rows as usize {
            for h in 0..heads {
                let q: Vec<f64> = [&ns[(t * heads + h) * rank..][..rank], &ts[(t * heads + h) * rope..][..rope]]
                    .concat()
                    .iter()
                    .map(|&x| f64::from(x))
                    .collect();
                let seen: Vec<usize> = (0..=t).filter(|&u| places[u] == places[t]).collect();
                let weight = |u: &usize| {
                    let k = [&cs[u * rank..][..rank], &ks[u * rope..][..rope]].concat();
                    (0.21f32 as f64 * q.iter().zip(&k).map(|(a, b)| a * f64::from(*b)).sum::<f64>()).exp()
                };
                let weights: Vec<f64> = seen.iter().map(weight).collect();
                let total: f64 = weights.iter().sum();
                wanted.extend((0..rank).map(|i| {
                    seen.iter().zip(&weights).map(|(u, w)| w / total * f64::from(cs[u * rank + i])).sum::<f64>()
                }));
            }
        }
        let all = b.run_test_mode(&cpu(2)).unwrap();
        let TestValues::Floats(got) = &all.iter().find(|of| of.name == "out").unwrap().values else { panic!() };
        assert_eq!(got.len(), wanted.len());
        for (i, (g, w)) in got.iter().zip(&wanted).enumerate() {
            assert!(
                (f64::from(*g) - w).abs() <= 1e-4 * w.abs().max(1.0),
                "{form:?}: element {i} is {g}, {w} is wanted"
            );
        }
    }
}

#[test]
fn heads_have_matrices_of_their_own_and_neighbours_rotate() {
    let config = KernelConfig { max_num_batched_tokens: 8, max_seq_length: 64, ..KernelConfig::default() };
    let mut b = KernelBuilder::new(config, pass(&[5])).unwrap();
    let mut rng = Rng::new(6);
    let mut input = |name: &str, dims: &[u32]| {
        let values = values(&mut rng, dims.iter().product());
        (b.attach_input(KernelTensor::f32(dims, &values), name).unwrap(), values)
    };
    let ((x, xs), (w, ws)) = (input("x", &[5, 3 * 4]), input("w", &[3, 6, 4]));
    let (y, ys) = input("y", &[5, 2 * 6]);
    let angle = |p: usize, i: usize| p as f64 * 0.4f64.powi(i as i32 + 1);
    let table = |of: fn(f64) -> f64| -> Vec<f32> {
        (0..64).flat_map(|p| (0..3).map(move |i| (p, i))).map(|(p, i)| of(angle(p, i)) as f32).collect()
    };
    let tables = [("cos", f64::cos as fn(f64) -> f64), ("sin", f64::sin)]
        .map(|(name, of)| b.attach_input(KernelTensor::f32(&[64, 3], &table(of)), name).unwrap());
    let [product, halves, neighbours] = [("product", 18), ("halves", 12), ("neighbours", 12)]
        .map(|(n, width)| b.new_tensor(&[5, width], F32, n).unwrap());
    b.linear_bmm_layer(x, w, product, LaunchDims::ONE).unwrap();
    b.mla_rope_layer(y, tables, halves, 6, false, LaunchDims::ONE).unwrap();
    b.mla_rope_layer(y, tables, neighbours, 6, true, LaunchDims::ONE).unwrap();
    let all = b.run_test_mode(&cpu(1)).unwrap();
    let check = |name: &str, wanted: &dyn Fn(usize, usize) -> f64| {
        let of = all.iter().find(|of| of.name == name).unwrap();
        let TestValues::Floats(got) = &of.values else { panic!() };
        let width = of.dims[1] as usize;
        for (i, g) in got.iter().enumerate() {
            let w = wanted(i / width, i % width);
            assert!((f64::from(*g) - w).abs() < 1e-4, "{name}: element {i} is {g}, {w} is wanted");
        }
    };
    check("product", &|t, i| {
        let (head, row) = (i / 6, i % 6);
        (0..4).map(|j| f64::from(xs[t * 12 + head * 4 + j]) * f64::from(ws[(head * 6 + row) * 4 + j])).sum()
    });
    let rotated = |t: usize, head: usize, pair: usize, first: usize, second: usize, upper: bool| {
        let (a, c) = (f64::from(ys[t * 12 + head * 6 + first]), f64::from(ys[t * 12 + head * 6 + second]));
        let (cos, sin) = (angle(t, pair).cos(), angle(t, pair).sin());
        if upper { c * cos + a * sin } else { a * cos - c * sin }
    };
    check("halves", &|t, i| rotated(t, i / 6, i % 3, i % 3, i % 3 + 3, i % 6 >= 3));
    check("neighbours", &|t, i| {
        let pair = i % 6 / 2;
        rotated(t, i / 6, pair, 2 * pair, 2 * pair + 1, i % 2 == 1)
    });
}

/// Rows of an f32 matrix for which `keep` says so.
fn rows_of(t: &KernelTensor, keep: impl Fn(u32) -> bool) -> KernelTensor {
    let bytes = t.dims[1] as usize * 4;
    let kept: Vec<&[u8]> = t
        .data
        .as_ref()
        .unwrap()
        .chunks_exact(bytes)
        .zip(0..)
        .filter(|(_, row)| keep(*row))
        .map(|(row, _)| row)
        .collect();
    KernelTensor { dims: vec![kept.len() as u32, t.dims[1]], elements: F32, data: Some(kept.concat().into()) }
}

/// An f32 matrix of each head, `[heads * rows, columns]`, as `[heads, rows, columns]`, or each of them transposed.
fn by_head(t: &KernelTensor, heads: u32, transposed: bool) -> KernelTensor {
    let (rows, columns) = ((t.dims[0] / heads) as usize, t.dims[1] as usize);
    let all: Vec<f32> = t.data.as_ref().unwrap().as_chunks().0.iter().map(|word| f32::from_le_bytes(*word)).collect();
    if !transposed {
        return KernelTensor::f32(&[heads, rows as u32, columns as u32], &all);
    }
    let turned = all
        .chunks_exact(rows * columns)
        .flat_map(|head| (0..columns).flat_map(move |column| (0..rows).map(move |row| head[row * columns + column])));
    KernelTensor::f32(&[heads, columns as u32, rows as u32], &turned.collect::<Vec<f32>>())
}

/// A DeepSeek-V3 of layer methods alone.
fn deepseek(folder: &Path, config: KernelConfig, meta: MetaTensors, form: Form) -> KernelBuilder {
    let source = Source::open(folder);
    let config = KernelConfig { rms_norm_eps: source.eps(), ..config };
    let (tokens, positions) = (config.max_num_batched_tokens, config.max_seq_length);
    let mut b = KernelBuilder::new(config, meta).unwrap();
    let one = LaunchDims::ONE;
    let size = |key: &str| source.size(key);
    let (hidden, heads, rank) = (size("hidden_size"), size("num_attention_heads"), size("kv_lora_rank"));
    let (nope, rope, v) = (size("qk_nope_head_dim"), size("qk_rope_head_dim"), size("v_head_dim"));
    let softmax_scale = (1.0 / f64::from(nope + rope).sqrt()) as f32;
    let attention = LatentAttention { num_heads: heads, d_v: rank, d_kpe: rope, softmax_scale };
    let [cos, sin] = tables(source.theta(), rope, positions);
    let turns = [b.attach_input(cos, "cos"), b.attach_input(sin, "sin")].map(Result::unwrap);
    let ids = b.attach_input(KernelTensor::declared(&[tokens, 1], KernelDType::Int64), "input_token").unwrap();
    let [mut x, mut y] = ["x", "y"].map(|name| tensor(&mut b, name, hidden));
    let mid = tensor(&mut b, "mid", hidden);
    let weight = |b: &mut KernelBuilder, name: &str| b.attach_input(source.tensor(name), name).unwrap();
    let table = weight(&mut b, "model.embed_tokens.weight");
    b.embed_layer(ids, table, x, 0, one).unwrap();
    for l in 0..size("num_hidden_layers") {
        let of = |part: &str| format!("model.layers.{l}.{part}.weight");
        let attach =
            |b: &mut KernelBuilder, name: &str, t: KernelTensor| b.attach_input(t, &format!("{l}.{name}")).unwrap();
        let norm = weight(&mut b, &of("input_layernorm"));
        let q_rank = size("q_lora_rank");
        let (q_a, q_norm) = (weight(&mut b, &of("self_attn.q_a_proj")), weight(&mut b, &of("self_attn.q_a_layernorm")));
        let (compressed, normed) = (tensor(&mut b, "q_a", q_rank), tensor(&mut b, "q_a_normed", q_rank));
        b.rmsnorm_linear_layer(x, norm, q_a, compressed, one).unwrap();
        b.rmsnorm_layer(compressed, q_norm, normed, one).unwrap();
        let q_b = source.tensor(&of("self_attn.q_b_proj"));
        let part = |row: u32| row % (nope + rope) < nope;
        let wide = attach(&mut b, "q_nope", rows_of(&q_b, part));
        let narrow = attach(&mut b, "q_rope", rows_of(&q_b, |row| !part(row)));
        let (q_nope, q_pe) = (tensor(&mut b, "q_nope", heads * nope), tensor(&mut b, "q_pe", heads * rope));
        b.linear_layer(normed, wide, q_nope, one).unwrap();
        b.linear_layer(normed, narrow, q_pe, one).unwrap();
        let (q_turned, q_latent) = (tensor(&mut b, "q_turned", heads * rope), tensor(&mut b, "q_latent", heads * rank));
        b.mla_rope_layer(q_pe, turns, q_turned, rope, true, one).unwrap();
        let kv_b = source.tensor(&of("self_attn.kv_b_proj"));
        let part = |row: u32| row % (nope + v) < nope;
        let keys = attach(&mut b, "keys", by_head(&rows_of(&kv_b, part), heads, true));
        let carried = attach(&mut b, "values", by_head(&rows_of(&kv_b, |row| !part(row)), heads, false));
        b.linear_bmm_layer(q_nope, keys, q_latent, one).unwrap();
        let kv_a = source.tensor(&of("self_attn.kv_a_proj_with_mqa"));
        let row = attach(&mut b, "kv_a", rows_of(&kv_a, |row| row < rank));
        let key = attach(&mut b, "k_rope", rows_of(&kv_a, |row| row >= rank));
        let kv_norm = weight(&mut b, &of("self_attn.kv_a_layernorm"));
        let (raw, latent) = (tensor(&mut b, "c_raw", rank), tensor(&mut b, "c_latent", rank));
        b.rmsnorm_linear_layer(x, norm, row, raw, one).unwrap();
        b.rmsnorm_layer(raw, kv_norm, latent, one).unwrap();
        let (straight, k_pe) = (tensor(&mut b, "k_straight", rope), tensor(&mut b, "k_pe", rope));
        b.rmsnorm_linear_layer(x, norm, key, straight, one).unwrap();
        b.mla_rope_layer(straight, turns, k_pe, rope, true, one).unwrap();
        let cache = attach(&mut b, "cache", KernelTensor::declared(&[4, 64, rank + rope], F32));
        let attended = tensor(&mut b, "attended", heads * rank);
        attend(&mut b, form, [q_latent, q_turned], [latent, k_pe], [cache, attended], attention);
        let back = tensor(&mut b, "back", heads * v);
        b.linear_bmm_layer(attended, carried, back, one).unwrap();
        let o = weight(&mut b, &of("self_attn.o_proj"));
        b.linear_with_residual_layer(back, o, x, mid, one).unwrap();
        let norm = weight(&mut b, &of("post_attention_layernorm"));
        match l < size("first_k_dense_replace") {
            true => gated(&mut b, &source, l, norm, [mid, y], one),
            false => experts(&mut b, &source, l, norm, [mid, y]),
        }
        std::mem::swap(&mut x, &mut y);
    }
    let (norm, head) = (weight(&mut b, "model.norm.weight"), weight(&mut b, "lm_head.weight"));
    let logits = tensor(&mut b, "logits", size("vocab_size"));
    b.rmsnorm_linear_layer(x, norm, head, logits, one).unwrap();
    let chosen = b.new_tensor(&[tokens, 1], KernelDType::Int64, "output_token").unwrap();
    b.argmax_layer(logits, chosen, one).unwrap();
    b
}

/// Experts chosen from groups, with a bias, beside a shared one.
fn experts(b: &mut KernelBuilder, source: &Source, l: u32, norm: TensorId, [mid, out]: [TensorId; 2]) {
    let one = LaunchDims::ONE;
    let (count, top_k) = (source.size("n_routed_experts"), source.size("num_experts_per_tok"));
    let (inner, hidden) = (source.size("moe_intermediate_size"), source.size("hidden_size"));
    let mlp = |part: &str| format!("model.layers.{l}.mlp.{part}");
    let weight = |b: &mut KernelBuilder, name: String| b.attach_input(source.tensor(&name), &name).unwrap();
    let normed = tensor(b, "moe_normed", hidden);
    b.rmsnorm_layer(mid, norm, normed, one).unwrap();
    let (router, bias) = (weight(b, mlp("gate.weight")), weight(b, mlp("gate.e_score_correction_bias")));
    let scores = tensor(b, "moe_scores", count);
    b.linear_layer(normed, router, scores, one).unwrap();
    let chosen = ["moe_weights", "moe_indices"].map(|name| tensor(b, name, top_k));
    let routing = Routing {
        num_groups: source.size("n_group"),
        topk_group: source.size("topk_group"),
        routed_scaling_factor: 2.5,
    };
    b.moe_topk_sigmoid_routing_layer(scores, Some(bias), chosen, routing, one).unwrap();
    let stacked = |parts: &[&str], dims: [u32; 3]| {
        let of = |expert: u32, part: &str| source.tensor(&mlp(&format!("experts.{expert}.{part}_proj.weight")));
        let all = (0..count).flat_map(|expert| parts.iter().map(move |part| (expert, part)));
        let bytes: Vec<u8> = all.flat_map(|(expert, part)| of(expert, part).data.unwrap().to_vec()).collect();
        KernelTensor { dims: dims.to_vec(), elements: F32, data: Some(bytes.into()) }
    };
    let w13 = b.attach_input(stacked(&["gate", "up"], [count, 2 * inner, hidden]), &mlp("w13")).unwrap();
    let w2 = b.attach_input(stacked(&["down"], [count, hidden, inner]), &mlp("w2")).unwrap();
    let wide = tensor_of(b, "moe_wide", &[top_k, 2 * inner]);
    b.moe_w13_linear_layer(normed, w13, chosen[1], wide, one).unwrap();
    let act = tensor_of(b, "moe_act", &[top_k, inner]);
    b.moe_silu_mul_layer(wide, act, one).unwrap();
    let back = tensor_of(b, "moe_back", &[top_k, hidden]);
    b.moe_w2_linear_layer(act, w2, chosen[1], back, one).unwrap();
    let parts = ["gate", "up"].map(|part| weight(b, mlp(&format!("shared_experts.{part}_proj.weight"))));
    let fused = b.fuse_tensors(&parts, 0, 1, &mlp("shared_gate_up")).unwrap();
    let shared = tensor(b, "shared_wide", 2 * inner);
    b.linear_layer(normed, fused, shared, one).unwrap();
    let down = weight(b, mlp("shared_experts.down_proj.weight"));
    let beside = tensor(b, "shared_out", hidden);
    b.silu_mul_linear_with_residual_layer(shared, down, mid, beside, one).unwrap();
    b.moe_mul_sum_add_layer(back, chosen[0], beside, out, one).unwrap();
}

#[test]
fn a_deepseek_of_layers_gives_the_tokens_of_transformers_in_every_form() {
    let (folder, golden) = (tiny::model("deepseek-v3"), tiny::golden("deepseek-v3"));
    for (form, case) in FORMS.iter().zip(golden["cases"].as_array().unwrap().iter().cycle().skip(1)) {
        let (prompt, wanted) = (ids(&case["ids"]), ids(&case["greedy16"]));
        let whole = (prompt.len() + wanted.len()) as u32;
        let config = KernelConfig { max_seq_length: whole, max_num_batched_tokens: 16, ..KernelConfig::default() };
        let kernel = deepseek(&folder, config, meta(std::slice::from_ref(&prompt), whole as usize), *form);
        let mut kernel = kernel.compile(cpu(1), None).unwrap();
        assert!(kernel.call(None).unwrap().finished);
        assert_eq!(behind(kernel.meta(), 0, prompt.len()), wanted, "{form:?}");
    }
}

/// Requests beside each other, and a kernel from its files, give what each gives alone.
#[test]
fn latent_caches_have_pages_and_kernels_of_them_are_saved() {
    let folder = tiny::model("deepseek-v3");
    let prompts: Vec<Vec<u32>> = (0..5).map(|i| (0..5 + 9 * i).map(|t| 3 + (t * 7 + i * 11) % 250).collect()).collect();
    let config = |requests| KernelConfig {
        max_num_batched_requests: requests,
        max_num_batched_tokens: 8,
        max_seq_length: 60,
        rms_norm_eps: Source::open(&folder).eps(),
        ..KernelConfig::default()
    };
    let build = |requests| deepseek(&folder, config(requests), meta(&prompts, 60), Form::Decode);
    let alone = {
        let mut kernel = build(1).compile(cpu(1), None).unwrap();
        kernel.call(None).unwrap();
        kernel.meta().clone()
    };
    let saved = tempfile::tempdir().unwrap();
    let builder = build(3);
    let weights = tensors(&builder);
    let mut kernel = builder.compile(cpu(1), Some(saved.path())).unwrap();
    kernel.call(None).unwrap();
    assert_eq!(*kernel.meta(), alone);
    assert_eq!(kernel.kv().blocks_in_use(0), 0, "every page came back");
    let mut again =
        PersistentKernel::load(saved.path(), config(3), meta(&prompts, 60), &weights, cpu(1), false).unwrap();
    again.call(None).unwrap();
    assert_eq!((*again.meta() == alone, again.plan_counts().compiled), (true, 0));
}

#[test]
fn what_is_no_latent_attention_is_refused() {
    let config = KernelConfig { max_num_batched_tokens: 8, max_seq_length: 64, ..KernelConfig::default() };
    let mut b = KernelBuilder::new(config, pass(&[4])).unwrap();
    let attention = LatentAttention { num_heads: 2, d_v: 16, d_kpe: 8, softmax_scale: 0.2 };
    let mut new = |name: &str, dims: &[u32]| {
        b.attach_input(KernelTensor::f32(dims, &vec![0.5; dims.iter().product::<u32>() as usize]), name).unwrap()
    };
    let (q, row, key) = (new("q", &[4, 48]), new("row", &[4, 16]), new("key", &[4, 8]));
    let cache = b.attach_input(KernelTensor::declared(&[2, 64, 24], F32), "cache").unwrap();
    let other = b.attach_input(KernelTensor::declared(&[2, 64, 25], F32), "other").unwrap();
    let [kv, partial, lse, out, sum] = [("kv", 24), ("partial", 32), ("lse", 2), ("out", 32), ("sum", 24)]
        .map(|(n, w)| b.new_tensor(&[4, w], F32, n).unwrap());
    let one = LaunchDims::ONE;
    let refused = |result: Result<(), yirage_persistent::PersistentError>, wanted: &str| {
        let text = result.unwrap_err().to_string();
        assert!(text.contains(wanted), "{text}");
    };
    refused(b.mla_decode_layer(q, kv, [partial, lse], attention, one), "what one mla_kv_gather_layer wrote");
    refused(b.mla_kv_gather_layer(row, key, other, kv, one), "[pages, page_size, 16 + 8] is wanted");
    b.mla_kv_gather_layer(row, key, cache, kv, one).unwrap();
    refused(b.mla_kv_gather_layer(row, key, cache, kv, one), "is the cache of layer 0 already");
    refused(b.mla_prefill_layer([q, q], [kv, kv], out, attention, one), "elements are wanted");
    let wrong = LatentAttention { num_heads: 0, ..attention };
    refused(b.mla_decode_layer(q, kv, [partial, lse], wrong, one), "at least 1");
    refused(b.mla_decode_layer(row, kv, [partial, lse], attention, one), "`row`");
    let other = LatentAttention { d_v: 12, d_kpe: 12, ..attention };
    refused(b.mla_decode_layer(q, kv, [partial, lse], other, one), "rows and keys of [16, 8] elements");
    let huge = LatentAttention { d_v: u32::MAX, ..attention };
    refused(b.mla_decode_layer(q, kv, [partial, lse], huge, one), "at least 1");
    refused(b.mla_reduce_layer([partial, lse], out, one), "one mla_decode_layer wrote");
    b.mla_decode_layer(q, kv, [partial, lse], attention, one).unwrap();
    refused(b.mla_mtp_reduce_layer([partial, lse], out, one), "one mla_mtp_decode_layer wrote");
    b.elementwise_add_layer(kv, kv, sum, one).unwrap();
    let text = b.run_test_mode(&cpu(1)).unwrap_err().to_string();
    assert!(text.contains("only layers of latent attention read"), "{text}");
}
