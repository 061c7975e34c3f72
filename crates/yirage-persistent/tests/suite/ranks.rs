//! Ranks in one process: each has its own heads and its own part of every feed-forward layer, and their tokens are those of one
//! rank and of transformers.

use crate::support::{F32, Source, behind, cpu, meta, tables, tensor, tensors};
use std::path::Path;
use yirage_persistent::{
    AttentionInputs, KernelBuilder, KernelConfig, KernelDType, KernelTensor, LaunchDims, PersistentKernel, TestValues,
};
use yirage_testkit::json::ids;
use yirage_testkit::tiny;

/// Rows of part `rank` of `of` of an f32 matrix.
fn rows(t: &KernelTensor, rank: u32, of: u32) -> KernelTensor {
    let (n, bytes) = (t.dims[0] / of, t.data.as_ref().unwrap());
    let part = bytes.len() / of as usize;
    let data = bytes[part * rank as usize..][..part].into();
    KernelTensor { dims: vec![n, t.dims[1]], elements: F32, data: Some(data) }
}

/// Columns of it.
fn columns(t: &KernelTensor, rank: u32, of: u32) -> KernelTensor {
    let (k, row) = (t.dims[1] / of, t.dims[1] as usize * 4);
    let part = row / of as usize;
    let rows = t.data.as_ref().unwrap().chunks_exact(row);
    let data = rows.flat_map(|row| row[part * rank as usize..][..part].to_vec()).collect::<Vec<u8>>().into();
    KernelTensor { dims: vec![t.dims[0], k], elements: F32, data: Some(data) }
}

/// One rank of a Llama of layer methods alone, with the metadata of `prompts`.
fn rank(folder: &Path, config: KernelConfig, prompts: &[Vec<u32>], width: usize) -> KernelBuilder {
    let source = Source::open(folder);
    let config = KernelConfig { rms_norm_eps: source.eps(), ..config };
    let (world, own, tokens) = (config.world_size, config.mpi_rank, config.max_num_batched_tokens);
    let positions = config.max_seq_length;
    let mut b = KernelBuilder::new(config, meta(prompts, width)).unwrap();
    let one = LaunchDims::ONE;
    let (hidden, inner) = (source.size("hidden_size"), source.size("intermediate_size") / world);
    let (heads, kv_heads) = (source.size("num_attention_heads"), source.size("num_key_value_heads"));
    let head = hidden / heads;
    let (heads, kv_heads) = (heads / world, kv_heads / world);
    assert!(kv_heads > 0);
    let [cos, sin] = tables(source.theta(), head, positions);
    let [cos, sin] = [("cos", cos), ("sin", sin)].map(|(name, table)| b.attach_input(table, name).unwrap());
    let ids = b.attach_input(KernelTensor::declared(&[tokens, 1], KernelDType::Int64), "input_token").unwrap();
    let [mut x, mut y] = ["x", "y"].map(|name| tensor(&mut b, name, hidden));
    let [mid, part, whole] = ["mid", "part", "whole"].map(|name| tensor(&mut b, name, hidden));
    let buffer = b.new_tensor(&[world, tokens, hidden], F32, "buffer").unwrap();
    let weight = |b: &mut KernelBuilder, name: &str| b.attach_input(source.tensor(name), name).unwrap();
    let table = weight(&mut b, "model.embed_tokens.weight");
    b.embed_layer(ids, table, x, 0, one).unwrap();
    for l in 0..source.size("num_hidden_layers") {
        let of = |part: &str| format!("model.layers.{l}.{part}.weight");
        let split = |b: &mut KernelBuilder, name: &str, how: fn(&KernelTensor, u32, u32) -> KernelTensor| {
            b.attach_input(how(&source.tensor(&of(name)), own, world), &of(name)).unwrap()
        };
        let norm = weight(&mut b, &of("input_layernorm"));
        let parts = ["q", "k", "v"].map(|p| split(&mut b, &format!("self_attn.{p}_proj"), rows));
        let fused = b.fuse_tensors(&parts, 0, kv_heads, &format!("{l}.qkv")).unwrap();
        let qkv = tensor(&mut b, "qkv", (heads + 2 * kv_heads) * head);
        b.rmsnorm_linear_layer(x, norm, fused, qkv, one).unwrap();
        let cache = KernelTensor::declared(&[4, 64, kv_heads, head], F32);
        let [k_cache, v_cache] = ["k", "v"].map(|p| b.attach_input(cache.clone(), &format!("{l}.{p}_cache")).unwrap());
        let (cos_pos_embed, sin_pos_embed) = (Some(cos), Some(sin));
        let inputs = AttentionInputs { k_cache, v_cache, q_norm: None, k_norm: None, cos_pos_embed, sin_pos_embed };
        let attended = tensor(&mut b, "attended", heads * head);
        b.paged_attention_layer(qkv, inputs, attended, one).unwrap();
        let o = split(&mut b, "self_attn.o_proj", columns);
        b.linear_layer(attended, o, part, one).unwrap();
        b.allreduce_layer(part, buffer, whole, one).unwrap();
        b.elementwise_add_layer(x, whole, mid, one).unwrap();
        let norm = weight(&mut b, &of("post_attention_layernorm"));
        let parts = ["gate", "up"].map(|p| split(&mut b, &format!("mlp.{p}_proj"), rows));
        let fused = b.fuse_tensors(&parts, 0, 1, &format!("{l}.gate_up")).unwrap();
        let (wide, act) = (tensor(&mut b, "wide", 2 * inner), tensor(&mut b, "act", inner));
        b.rmsnorm_linear_layer(mid, norm, fused, wide, one).unwrap();
        b.silu_mul_layer(wide, act, one).unwrap();
        let down = split(&mut b, "mlp.down_proj", columns);
        b.linear_layer(act, down, part, one).unwrap();
        b.allreduce_layer(part, buffer, whole, one).unwrap();
        b.elementwise_add_layer(mid, whole, y, one).unwrap();
        std::mem::swap(&mut x, &mut y);
    }
    let norm = weight(&mut b, "model.norm.weight");
    let head = match source.has("lm_head.weight") {
        true => weight(&mut b, "lm_head.weight"),
        false => table,
    };
    let logits = tensor(&mut b, "logits", source.size("vocab_size"));
    b.rmsnorm_linear_layer(x, norm, head, logits, one).unwrap();
    let chosen = b.new_tensor(&[tokens, 1], KernelDType::Int64, "output_token").unwrap();
    b.argmax_layer(logits, chosen, one).unwrap();
    b
}

fn joined(folder: &Path, world_size: u32, config: &KernelConfig, prompts: &[Vec<u32>], width: usize) -> KernelBuilder {
    let of = |mpi_rank| rank(folder, KernelConfig { world_size, mpi_rank, ..config.clone() }, prompts, width);
    KernelBuilder::of_ranks((0..world_size).map(of).collect()).unwrap()
}

#[test]
fn ranks_in_one_process_give_the_tokens_of_one_rank_and_of_transformers() {
    let (folder, golden) = (tiny::model("llama"), tiny::golden("llama"));
    for case in golden["cases"].as_array().unwrap() {
        let (prompt, wanted) = (ids(&case["ids"]), ids(&case["greedy16"]));
        let whole = (prompt.len() + wanted.len()) as u32;
        let config = KernelConfig { max_seq_length: whole, max_num_batched_tokens: 16, ..KernelConfig::default() };
        for world in [1, 2] {
            let prompts = std::slice::from_ref(&prompt);
            let mut kernel = joined(&folder, world, &config, prompts, whole as usize).compile(cpu(1), None).unwrap();
            assert!(kernel.call(None).unwrap().finished);
            assert_eq!(behind(kernel.meta(), 0, prompt.len()), wanted, "{world} ranks");
            let told: Vec<String> = kernel.notices().iter().map(ToString::to_string).collect();
            let of_ranks = told.iter().filter(|text| text.contains("2 ranks run in one process")).count();
            assert_eq!(of_ranks, usize::from(world == 2), "{told:?}");
        }
    }
}

#[test]
fn a_kernel_of_ranks_batches_requests_and_is_saved() {
    let folder = tiny::model("llama");
    let prompts: Vec<Vec<u32>> = (0..4).map(|i| (0..3 + 8 * i).map(|t| 3 + (t * 5 + i) % 240).collect()).collect();
    let config = KernelConfig {
        max_num_batched_requests: 2,
        max_num_batched_tokens: 8,
        max_seq_length: 48,
        rms_norm_eps: Source::open(&folder).eps(),
        ..KernelConfig::default()
    };
    let saved = tempfile::tempdir().unwrap();
    let builder = joined(&folder, 2, &config, &prompts, 48);
    let weights = tensors(&builder);
    assert!(weights.contains_key("rank1.model.norm.weight"));
    let mut kernel = builder.compile(cpu(1), Some(saved.path())).unwrap();
    kernel.call(None).unwrap();
    let mut one = joined(&folder, 1, &KernelConfig { max_num_batched_requests: 1, ..config.clone() }, &prompts, 48)
        .compile(cpu(1), None)
        .unwrap();
    one.call(None).unwrap();
    assert_eq!(kernel.meta(), one.meta());
    let config = KernelConfig { world_size: 2, ..config };
    let mut again = PersistentKernel::load(saved.path(), config, meta(&prompts, 48), &weights, cpu(1), false).unwrap();
    again.call(None).unwrap();
    assert_eq!((again.meta(), again.plan_counts().compiled), (kernel.meta(), 0));
}

/// A rank with its part of a sum.
fn summand(world_size: u32, mpi_rank: u32, values: &[f32]) -> KernelBuilder {
    let config =
        KernelConfig { world_size, mpi_rank, max_num_batched_tokens: 4, max_seq_length: 8, ..KernelConfig::default() };
    let mut b = KernelBuilder::new(config, meta(&[vec![1, 2]], 8)).unwrap();
    let x = b.attach_input(KernelTensor::f32(&[2, 3], values), "x").unwrap();
    let buffer = b.new_tensor(&[world_size, 2, 3], F32, "buffer").unwrap();
    let [copy, out] = ["copy", "out"].map(|name| b.new_tensor(&[2, 3], F32, name).unwrap());
    b.identity_layer(x, copy, None, LaunchDims::ONE).unwrap();
    b.allreduce_layer(copy, buffer, out, LaunchDims::ONE).unwrap();
    b
}

/// In the order of ranks, which other orders do not give to the bit.
#[test]
fn a_sum_over_ranks_is_in_their_order() {
    let parts =
        [[1e8f32, 1.0, 0.1, 3.0, 1e-3, 7.0], [1.0, 1e8, 0.2, -3.0, 1e-8, 0.5], [-1e8, -1e8, 0.3, 1e-7, 1.0, 1.0]];
    let ranks = (0..3).map(|rank| summand(3, rank, &parts[rank as usize])).collect();
    let all = KernelBuilder::of_ranks(ranks).unwrap().run_test_mode(&cpu(2)).unwrap();
    let wanted: Vec<f32> = (0..6).map(|i| (parts[0][i] + parts[1][i]) + parts[2][i]).collect();
    let out: Vec<_> = all.iter().filter(|of| of.name.ends_with(".out")).collect();
    assert_eq!(out.iter().map(|of| of.name.as_str()).collect::<Vec<_>>(), ["rank0.out"]);
    assert_eq!(out[0].values, TestValues::Floats(wanted));
}

#[test]
fn ranks_that_are_no_kernel_together_are_refused() {
    let values = [0.5; 6];
    let refused = |ranks: Vec<KernelBuilder>, wanted: &str| {
        let text = KernelBuilder::of_ranks(ranks).err().unwrap().to_string();
        assert!(text.contains(wanted), "{text}");
    };
    refused(vec![], "a builder for each rank");
    refused(vec![summand(2, 0, &values)], "1 builders are given");
    refused(vec![summand(2, 1, &values), summand(2, 0, &values)], "with mpi_rank 0 for this one");
    let mut longer = summand(2, 1, &values);
    let (x, y) = (longer.find("x").unwrap(), longer.new_tensor(&[2, 3], F32, "y").unwrap());
    longer.identity_layer(x, y, None, LaunchDims::ONE).unwrap();
    refused(vec![summand(2, 0, &values), longer], "layer 2 of rank 1 is identity_layer, of rank 0 no layer");
    let mut both = KernelBuilder::of_ranks(vec![summand(2, 0, &values), summand(2, 1, &values)]).unwrap();
    let (x, y) = (both.find("rank0.x").unwrap(), both.find("rank0.out").unwrap());
    let text = both.identity_layer(x, y, None, LaunchDims::ONE).unwrap_err().to_string();
    assert!(text.contains("the ranks are joined"), "{text}");
    let alone = summand(2, 1, &values).run_test_mode(&cpu(1)).unwrap_err();
    assert!(alone.is_unsupported() && alone.to_string().contains("rank 1 of 2"), "{alone}");
    let mut one = summand(1, 0, &values);
    let (x, y) = (one.find("x").unwrap(), one.find("out").unwrap());
    let buffer = one.new_tensor(&[2, 2, 3], F32, "two").unwrap();
    let text = one.allreduce_layer(x, buffer, y, LaunchDims::ONE).unwrap_err().to_string();
    assert!(text.contains("world_size is 1"), "{text}");
}
