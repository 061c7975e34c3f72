//! Every layer method alone in test mode, against its formula in f64, over grids; and what each refuses.
#![allow(clippy::needless_range_loop)] // formulas have indices

use crate::support::{F32, cpu, meta};
use yirage_engine::sampling::SamplingParams;
use yirage_ir::Format;
use yirage_ir::rng::Rng;
use yirage_persistent::{
    AttentionInputs, KernelBuilder, KernelConfig, KernelDType, KernelTensor, LaunchDims, MetaData, MetaTensor,
    MetaTensors, PersistentError, PromptLookup, Routing, TensorId, TestValues,
};
use yirage_plan::Precision;

const ROWS: u32 = 7;
const GRIDS: [[u32; 3]; 4] = [[1, 1, 1], [2, 1, 1], [4, 2, 1], [8, 1, 2]];

/// A builder, random tensors of it, and what they hold.
struct Bench {
    b: KernelBuilder,
    rng: Rng,
}

impl Bench {
    fn new() -> Bench {
        Bench::of(meta(&[(1..=ROWS).collect()], 64))
    }

    fn of(meta: MetaTensors) -> Bench {
        let config = KernelConfig { max_num_batched_tokens: 64, max_seq_length: 64, ..KernelConfig::default() };
        Bench { b: KernelBuilder::new(config, meta).unwrap(), rng: Rng::new(17) }
    }

    fn values(&mut self, n: u32) -> Vec<f32> {
        (0..n).map(|_| (self.rng.below(4001) as f32 - 2000.0) / 1000.0).collect()
    }

    fn input(&mut self, name: &str, dims: &[u32]) -> (TensorId, Vec<f32>) {
        let values = self.values(dims.iter().product());
        (self.b.attach_input(KernelTensor::f32(dims, &values), name).unwrap(), values)
    }

    fn out(&mut self, dims: &[u32]) -> TensorId {
        self.b.new_tensor(dims, F32, "out").unwrap()
    }

    fn run(&self) -> Vec<f32> {
        match self.value("out") {
            TestValues::Floats(values) => values,
            TestValues::Ints(_) => panic!("numbers are wanted"),
        }
    }

    fn ints(&self) -> Vec<i64> {
        match self.value("out") {
            TestValues::Ints(values) => values,
            TestValues::Floats(_) => panic!("indices are wanted"),
        }
    }

    fn value(&self, name: &str) -> TestValues {
        let all = self.b.run_test_mode(&cpu(2)).unwrap();
        all.into_iter().find(|output| output.name == name).unwrap().values
    }
}

fn close(got: &[f32], wanted: &[f64], what: &str) {
    assert_eq!(got.len(), wanted.len(), "{what}");
    for (i, (g, w)) in got.iter().zip(wanted).enumerate() {
        assert!((f64::from(*g) - w).abs() <= 1e-4 * w.abs().max(1.0), "{what}: element {i} is {g}, {w} is wanted");
    }
}

/// The same bytes whatever the grid.
fn over_grids(what: &str, run: impl Fn(LaunchDims) -> Vec<f32>) -> Vec<f32> {
    let first = run(LaunchDims::of(GRIDS[0]));
    for grid in &GRIDS[1..] {
        assert_eq!(run(LaunchDims::of(*grid)), first, "{what}: grid {grid:?}");
    }
    first
}

fn wide(values: &[f32]) -> Vec<f64> {
    values.iter().map(|&x| f64::from(x)).collect()
}

fn norm(x: &[f64], w: &[f64]) -> Vec<f64> {
    let width = w.len();
    let rows = x.chunks_exact(width).flat_map(|row| {
        let mean = row.iter().map(|x| x * x).sum::<f64>() / width as f64;
        let inverse = 1.0 / (mean + 1e-6).sqrt();
        row.iter().zip(w).map(|(x, w)| x * inverse * w).collect::<Vec<f64>>()
    });
    rows.collect()
}

/// `x [rows, k] * w [n, k]^T`.
fn product(x: &[f64], w: &[f64], k: usize) -> Vec<f64> {
    x.chunks_exact(k).flat_map(|x| w.chunks_exact(k).map(|w| x.iter().zip(w).map(|(a, b)| a * b).sum())).collect()
}

fn sum(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a + b).collect()
}

fn silu(x: f64) -> f64 {
    x / (1.0 + (-x).exp())
}

#[test]
fn embed_layer_gives_rows_of_its_table() {
    let mut bench = Bench::new();
    let (table, values) = bench.input("table", &[20, 12]);
    let ids = bench.b.attach_input(KernelTensor::declared(&[ROWS, 1], KernelDType::Int64), "ids").unwrap();
    let out = bench.out(&[ROWS, 12]);
    bench.b.embed_layer(ids, table, out, 0, LaunchDims::ONE).unwrap();
    let wanted: Vec<f32> = (1..=ROWS as usize).flat_map(|id| values[id * 12..][..12].to_vec()).collect();
    assert_eq!(bench.run(), wanted);
    let refused = bench.b.embed_layer(ids, table, out, 2, LaunchDims::ONE).unwrap_err();
    assert!(refused.to_string().contains("input_source is 2"), "{refused}");
}

#[test]
fn norms_and_products_are_those_of_their_formulas() {
    let (k, n) = (24u32, 16u32);
    let run = |which: usize, launch: LaunchDims| {
        let mut bench = Bench::new();
        let (x, xs) = bench.input("x", &[ROWS, k]);
        let (norm_w, ns) = bench.input("norm", &[k]);
        let (w, ws) = bench.input("w", &[n, k]);
        let (residual, rs) = bench.input("residual", &[ROWS, n]);
        let out = bench.out(&[ROWS, if which == 0 { k } else { n }]);
        let b = &mut bench.b;
        match which {
            0 => b.rmsnorm_layer(x, norm_w, out, launch),
            1 => b.rmsnorm_linear_layer(x, norm_w, w, out, launch),
            2 => b.linear_layer(x, w, out, launch),
            3 => b.splitk_linear_layer(x, w, out, launch),
            _ => b.linear_with_residual_layer(x, w, residual, out, launch),
        }
        .unwrap();
        let [x, norm_w, w, r] = [xs, ns, ws, rs].map(|v| wide(&v));
        let wanted = match which {
            0 => norm(&x, &norm_w),
            1 => product(&norm(&x, &norm_w), &w, k as usize),
            2 | 3 => product(&x, &w, k as usize),
            _ => sum(&product(&x, &w, k as usize), &r),
        };
        (bench.run(), wanted)
    };
    for which in 0..5 {
        let got = over_grids("products", |launch| run(which, launch).0);
        close(&got, &run(which, LaunchDims::ONE).1, &format!("layer {which}"));
    }
}

#[test]
fn weights_may_be_of_half_precision() {
    for format in [Format::BF16, Format::F16] {
        // The fast precision may round activations to the weights' format.
        let precision = Precision::Exact;
        let config =
            KernelConfig { precision, max_num_batched_tokens: 64, max_seq_length: 64, ..KernelConfig::default() };
        let mut bench = Bench { b: KernelBuilder::new(config, meta(&[vec![1]], 64)).unwrap(), rng: Rng::new(3) };
        let (x, xs) = bench.input("x", &[ROWS, 24]);
        let values = bench.values(16 * 24);
        let mut bytes = vec![0; values.len() * 2];
        (format.info().encode.unwrap())(&values, &mut bytes);
        let mut rounded = vec![0f32; values.len()];
        (format.info().decode)(&bytes, &mut rounded);
        assert_ne!(rounded, values);
        let w = KernelTensor { dims: vec![16, 24], elements: KernelDType::Floats(format), data: Some(bytes.into()) };
        let w = bench.b.attach_input(w, "w").unwrap();
        let out = bench.out(&[ROWS, 16]);
        bench.b.linear_layer(x, w, out, LaunchDims::ONE).unwrap();
        close(&bench.run(), &product(&wide(&xs), &wide(&rounded), 24), format.info().name);
    }
}

#[test]
fn additions_identities_and_one_rank_reductions() {
    let run = |which: usize, launch: LaunchDims| {
        let mut bench = Bench::new();
        let ((x, xs), (y, ys)) = (bench.input("x", &[ROWS, 10]), bench.input("y", &[ROWS, 10]));
        let buffer = bench.b.new_tensor(&[1, ROWS, 10], F32, "buffer").unwrap();
        let out = bench.out(&[ROWS, 10]);
        match which {
            0 => bench.b.elementwise_add_layer(x, y, out, launch),
            1 => bench.b.identity_layer(x, out, Some(y), launch),
            _ => bench.b.allreduce_layer(x, buffer, out, launch),
        }
        .unwrap();
        (bench.run(), if which == 0 { xs.iter().zip(&ys).map(|(x, y)| x + y).collect() } else { xs })
    };
    for which in 0..3 {
        let got = over_grids("plain", |launch| run(which, launch).0);
        assert_eq!(got, run(which, LaunchDims::ONE).1, "layer {which}");
    }
    let mut bench = Bench::new();
    let (x, _) = bench.input("x", &[ROWS, 10]);
    let buffer = bench.b.new_tensor(&[2, ROWS, 10], F32, "buffer").unwrap();
    let out = bench.out(&[ROWS, 10]);
    let refused = bench.b.allreduce_layer(x, buffer, out, LaunchDims::ONE).unwrap_err();
    assert!(refused.to_string().contains("world_size is 1"), "{refused}");
}

/// Gate and up alternate in as many groups as a fused weight has, or as the grid says.
#[test]
fn gate_and_up_lie_as_their_weight_or_their_grid_says() {
    let width = 8usize;
    for groups in [1usize, 2, 4] {
        let mut bench = Bench::new();
        let (x, xs) = bench.input("x", &[ROWS, 2 * width as u32]);
        let out = bench.out(&[ROWS, width as u32]);
        bench.b.silu_mul_layer(x, out, LaunchDims::of([groups as u32, 1, 1])).unwrap();
        let part = width / groups;
        let at = |row: usize, i: usize, half: usize| {
            f64::from(xs[row * 2 * width + (i / part) * 2 * part + half * part + i % part])
        };
        let wanted: Vec<f64> = (0..ROWS as usize)
            .flat_map(|r| (0..width).map(move |i| (r, i)))
            .map(|(r, i)| silu(at(r, i, 0)) * at(r, i, 1))
            .collect();
        close(&bench.run(), &wanted, &format!("{groups} groups"));
    }
    // Behind a fused weight the grid means nothing, and what is read of the product is interleaved as the weight is.
    let run = |groups: u32, launch: LaunchDims| {
        let mut bench = Bench::new();
        let (x, xs) = bench.input("x", &[ROWS, 6]);
        let ((gate, gs), (up, us)) = (bench.input("gate", &[8, 6]), bench.input("up", &[8, 6]));
        let ((down, ds), (residual, rs)) = (bench.input("down", &[6, 8]), bench.input("residual", &[ROWS, 6]));
        let fused = bench.b.shuffle_tensors(&[gate, up], 0, groups, "fused").unwrap();
        let wide_out = bench.b.new_tensor(&[ROWS, 16], F32, "wide").unwrap();
        let out = bench.out(&[ROWS, 6]);
        bench.b.linear_layer(x, fused, wide_out, launch).unwrap();
        bench.b.silu_mul_linear_with_residual_layer(wide_out, down, residual, out, launch).unwrap();
        let [x, g, u, d, r] = [xs, gs, us, ds, rs].map(|v| wide(&v));
        let (gate, up) = (product(&x, &g, 6), product(&x, &u, 6));
        let act: Vec<f64> = gate.iter().zip(&up).map(|(g, u)| silu(*g) * u).collect();
        let wanted = sum(&product(&act, &d, 8), &r);
        let TestValues::Floats(laid) = bench.value("wide") else { panic!() };
        let part = 8 / groups as usize;
        let group =
            |row: usize, g: usize| [&gate[row * 8 + g * part..][..part], &up[row * 8 + g * part..][..part]].concat();
        let interleaved: Vec<f64> = (0..ROWS as usize)
            .flat_map(|row| (0..groups as usize).map(move |g| (row, g)))
            .flat_map(|(r, g)| group(r, g))
            .collect();
        close(&laid, &interleaved, "the product as one");
        (bench.run(), wanted)
    };
    for groups in [1, 2, 4] {
        let got = over_grids("fused", |launch| run(groups, launch).0);
        close(&got, &run(groups, LaunchDims::ONE).1, "silu_mul_linear_with_residual");
    }
}

/// Causal attention of two requests over queries, keys and values of two key heads with two query heads each.
#[test]
fn attention_with_norms_and_rotation_is_that_of_its_formula() {
    let (kv_heads, group, d) = (2usize, 2usize, 8usize);
    let lengths = [4usize, 3];
    let run = |which: usize, normed: bool, launch: LaunchDims| {
        let mut tokens = meta(&[vec![1], vec![2]], 64);
        tokens = MetaTensors::from_list(vec![
            MetaTensor { shape: vec![2], data: MetaData::Int32(tokens.step().to_vec()) },
            MetaTensor { shape: vec![2, 64], data: MetaData::Int64(tokens.tokens().to_vec()) },
            MetaTensor { shape: vec![2], data: MetaData::Int32(vec![1, 1]) },
            MetaTensor { shape: vec![2], data: MetaData::Int32(lengths.iter().map(|&n| n as i32).collect()) },
        ])
        .unwrap();
        let mut bench = Bench::of(tokens);
        let width = kv_heads * (group + 2) * d;
        let (x, xs) = bench.input("qkv", &[ROWS, width as u32]);
        let (q_norm, qn) = bench.input("q_norm", &[d as u32]);
        let (k_norm, kn) = bench.input("k_norm", &[d as u32]);
        let angle = |p: usize, i: usize| p as f64 * 0.3f64.powi(i as i32 % 4 + 1);
        let table = |of: fn(f64) -> f64| -> Vec<f32> {
            (0..64).flat_map(|p| (0..d).map(move |i| (p, i % (d / 2)))).map(|(p, i)| of(angle(p, i)) as f32).collect()
        };
        let cos = bench.b.attach_input(KernelTensor::f32(&[64, d as u32], &table(f64::cos)), "cos").unwrap();
        let sin = bench.b.attach_input(KernelTensor::f32(&[64, d as u32], &table(f64::sin)), "sin").unwrap();
        let cache = KernelTensor::declared(&[4, 64, kv_heads as u32, d as u32], F32);
        let [k_cache, v_cache] = ["k", "v"].map(|name| bench.b.attach_input(cache.clone(), name).unwrap());
        let out = bench.out(&[ROWS, (kv_heads * group * d) as u32]);
        let inputs = AttentionInputs {
            k_cache,
            v_cache,
            q_norm: normed.then_some(q_norm),
            k_norm: normed.then_some(k_norm),
            cos_pos_embed: Some(cos),
            sin_pos_embed: Some(sin),
        };
        match which {
            0 => bench.b.attention_layer(x, inputs, out, launch),
            1 => bench.b.single_batch_extend_attention_layer(x, inputs, out, launch),
            _ => bench.b.paged_attention_layer(x, inputs, out, launch),
        }
        .unwrap();
        let again = bench.b.attention_layer(x, inputs, out, launch).unwrap_err();
        assert!(again.to_string().contains("is the cache of layer"), "{again}");
        let (xs, qn, kn) = (wide(&xs), wide(&qn), wide(&kn));
        let places: Vec<(usize, usize)> =
            lengths.iter().enumerate().flat_map(|(s, &n)| (0..n).map(move |p| (s, p))).collect();
        let rotated = |x: Vec<f64>, p: usize| -> Vec<f64> {
            let half = d / 2;
            (0..d)
                .map(|i| {
                    let (c, s) = (angle(p, i % half).cos(), angle(p, i % half).sin());
                    if i < half { x[i] * c - x[i + half] * s } else { x[i] * c + x[i - half] * s }
                })
                .collect()
        };
        let head = |t: usize, g: usize, part: usize| xs[t * width + (g * (group + 2) + part) * d..][..d].to_vec();
        let normed_head = |x: Vec<f64>, w: &[f64]| if normed { norm(&x, w) } else { x };
        let mut wanted = Vec::new();
        for (t, &(s, p)) in places.iter().enumerate() {
            for g in 0..kv_heads {
                for h in 0..group {
                    let q = rotated(normed_head(head(t, g, h), &qn), p);
                    let seen: Vec<usize> = (0..=t).filter(|&u| places[u].0 == s).collect();
                    let score = |&u: &usize| {
                        let k = rotated(normed_head(head(u, g, group), &kn), places[u].1);
                        q.iter().zip(&k).map(|(a, b)| a * b).sum::<f64>() / (d as f64).sqrt()
                    };
                    let weights: Vec<f64> = seen.iter().map(score).map(f64::exp).collect();
                    let total: f64 = weights.iter().sum();
                    for i in 0..d {
                        let mixed = seen.iter().zip(&weights).map(|(&u, w)| w / total * head(u, g, group + 1)[i]);
                        wanted.push(mixed.sum());
                    }
                }
            }
        }
        (bench.run(), wanted)
    };
    for which in 0..3 {
        for normed in [false, true] {
            let got = over_grids("attention", |launch| run(which, normed, launch).0);
            close(&got, &run(which, normed, LaunchDims::ONE).1, &format!("attention {which}"));
        }
    }
}

#[test]
fn experts_are_those_of_their_formula() {
    let (experts, top_k, inner, width) = (6usize, 2usize, 5usize, 8usize);
    let run = |sigmoid: bool, launch: LaunchDims| {
        let mut bench = Bench::new();
        let (x, xs) = bench.input("x", &[ROWS, width as u32]);
        let (scores, ss) = bench.input("scores", &[ROWS, experts as u32]);
        let (w13, up) = bench.input("w13", &[experts as u32, 2 * inner as u32, width as u32]);
        let (w2, down) = bench.input("w2", &[experts as u32, width as u32, inner as u32]);
        let (residual, rs) = bench.input("residual", &[ROWS, width as u32]);
        let b = &mut bench.b;
        let tensor =
            |b: &mut KernelBuilder, name: &str, row: &[u32]| b.new_tensor(&[&[ROWS], row].concat(), F32, name).unwrap();
        let (weights, indices) = (tensor(b, "weights", &[top_k as u32]), tensor(b, "indices", &[top_k as u32]));
        let routing = Routing { num_groups: 1, topk_group: 1, routed_scaling_factor: 2.5 };
        match sigmoid {
            false => b.moe_topk_softmax_routing_layer(scores, [weights, indices], launch),
            true => b.moe_topk_sigmoid_routing_layer(scores, None, [weights, indices], routing, launch),
        }
        .unwrap();
        let k = top_k as u32;
        let wide_out = tensor(b, "wide", &[k, 2 * inner as u32]);
        b.moe_w13_linear_layer(x, w13, indices, wide_out, launch).unwrap();
        let act = tensor(b, "act", &[k, inner as u32]);
        b.moe_silu_mul_layer(wide_out, act, launch).unwrap();
        let back = tensor(b, "back", &[k, width as u32]);
        b.moe_w2_linear_layer(act, w2, indices, back, launch).unwrap();
        let out = tensor(b, "out", &[width as u32]);
        b.moe_mul_sum_add_layer(back, weights, residual, out, launch).unwrap();
        let [x, s, w13, w2, r] = [xs, ss, up, down, rs].map(|v| wide(&v));
        let mut wanted = Vec::new();
        for row in 0..ROWS as usize {
            let scores = &s[row * experts..][..experts];
            let mut order: Vec<usize> = (0..experts).collect();
            order.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]));
            let of = |e: usize| if sigmoid { 1.0 / (1.0 + (-scores[e]).exp()) } else { scores[e].exp() };
            let total: f64 = order[..top_k].iter().map(|&e| of(e)).sum();
            let mut mixed = r[row * width..][..width].to_vec();
            for &e in &order[..top_k] {
                let scale = if sigmoid { 2.5 } else { 1.0 } * of(e) / total;
                let both =
                    product(&x[row * width..][..width], &w13[e * 2 * inner * width..][..2 * inner * width], width);
                let act: Vec<f64> = (0..inner).map(|i| silu(both[i]) * both[inner + i]).collect();
                let back = product(&act, &w2[e * width * inner..][..width * inner], inner);
                mixed.iter_mut().zip(back).for_each(|(m, b)| *m += scale * b);
            }
            wanted.extend(mixed);
        }
        (bench.run(), wanted)
    };
    for sigmoid in [false, true] {
        let got = over_grids("experts", |launch| run(sigmoid, launch).0);
        close(&got, &run(sigmoid, LaunchDims::ONE).1, "experts");
    }
}

#[test]
fn the_largest_logit_is_chosen_whole_or_in_halves_and_drawn_at_no_temperature() {
    let run = |which: usize, temperature: f32| {
        let mut bench = Bench::new();
        let (logits, values) = bench.input("logits", &[ROWS, 50]);
        if which == 2 {
            let sampling = SamplingParams { temperature, ..SamplingParams::default() };
            let config =
                KernelConfig { sampling, max_seq_length: 64, max_num_batched_tokens: 64, ..KernelConfig::default() };
            let mut other = Bench { b: KernelBuilder::new(config, meta(&[vec![1]], 64)).unwrap(), rng: Rng::new(17) };
            let (logits, values) = other.input("logits", &[ROWS, 50]);
            let out = other.b.new_tensor(&[ROWS, 1], KernelDType::Int64, "out").unwrap();
            other.b.sampling_layer(logits, out, 5, LaunchDims::ONE).unwrap();
            return (other.ints(), values);
        }
        let out = bench.b.new_tensor(&[ROWS, 1], KernelDType::Int64, "out").unwrap();
        if which == 0 {
            bench.b.argmax_layer(logits, out, LaunchDims::ONE).unwrap();
        } else {
            let halves = ["value", "index"].map(|name| bench.b.new_tensor(&[ROWS, 4], F32, name).unwrap());
            bench.b.argmax_partial_layer(logits, halves, LaunchDims::ONE).unwrap();
            bench.b.argmax_reduce_layer(halves, out, LaunchDims::ONE).unwrap();
        }
        (bench.ints(), values)
    };
    for which in 0..3 {
        let (got, values) = run(which, 0.0);
        let largest = |row: &[f32]| (0..row.len()).rev().max_by(|&a, &b| row[a].total_cmp(&row[b])).unwrap() as i64;
        assert_eq!(got, values.chunks_exact(50).map(largest).collect::<Vec<i64>>(), "layer {which}");
    }
    let (drawn, _) = run(2, 1.0);
    assert_eq!(drawn, run(2, 1.0).0, "draws are those of the seed");
    assert_ne!(drawn, run(2, 0.0).0);
}

#[test]
fn guesses_and_what_of_them_is_right() {
    let prompts = [vec![5, 6, 7, 5, 6], vec![1, 2, 3], vec![9, 9, 9, 9]];
    let mut bench = Bench::of(meta(&prompts, 64));
    let tokens = bench.b.attach_input(KernelTensor::declared(&[3, 64], KernelDType::Int64), "tokens").unwrap();
    let lookup = PromptLookup { ngram_size: 2, spec_length: 3 };
    let guesses = bench.b.prompt_lookup_spec_handler(lookup, tokens, LaunchDims::ONE).unwrap();
    let targets: Vec<u8> = [7i64, 5, 8, 8, 4, 4, 4, 4, 9, 3, 3, 3].iter().flat_map(|x| x.to_le_bytes()).collect();
    let targets = KernelTensor { dims: vec![3, 4], elements: KernelDType::Int64, data: Some(targets.into()) };
    let targets = bench.b.attach_input(targets, "targets").unwrap();
    let out = bench.b.new_tensor(&[3, 2], KernelDType::Int64, "out").unwrap();
    bench.b.target_verify_greedy_layer(guesses, targets, out, LaunchDims::ONE).unwrap();
    // By hand, from the rule: the first earlier place of the last two tokens, -1 where there is none.
    let wanted = [[6, 7, 5, 6], [3, -1, -1, -1], [9, 9, 9, -1]].concat();
    assert_eq!(bench.value("spec_tokens"), TestValues::Ints(wanted));
    assert_eq!(bench.ints(), [2, 8, 0, 4, 1, 3]);
}

/// Shapes of graphs: fork, join, diamond, stripped residual, and those in which one layer forks and joins at once, which
/// Mirage's task graph refuses.
#[test]
fn layers_fork_and_join_in_every_way() {
    let run = |which: usize, launch: LaunchDims| {
        let mut bench = Bench::new();
        let (x, xs) = bench.input("x", &[ROWS, 8]);
        let weights: Vec<(TensorId, Vec<f32>)> = (0..4).map(|i| bench.input(&format!("w{i}"), &[8, 8])).collect();
        let b = &mut bench.b;
        let t: Vec<TensorId> = (0..5).map(|i| b.new_tensor(&[ROWS, 8], F32, &format!("t{i}")).unwrap()).collect();
        let out = b.new_tensor(&[ROWS, 8], F32, "out").unwrap();
        let x64 = wide(&xs);
        let w: Vec<Vec<f64>> = weights.iter().map(|(_, v)| wide(v)).collect();
        let linear =
            |b: &mut KernelBuilder, from, i: usize, to| b.linear_layer(from, weights[i].0, to, launch).unwrap();
        let times = |x: &[f64], i: usize| product(x, &w[i], 8);
        let first = times(&x64, 0);
        linear(b, x, 0, t[0]);
        let wanted = match which {
            // Diamond: one producer, two consumers, one join.
            0 => {
                linear(b, t[0], 1, t[1]);
                linear(b, t[0], 2, t[2]);
                b.elementwise_add_layer(t[1], t[2], out, launch).unwrap();
                sum(&times(&first, 1), &times(&first, 2))
            }
            // A residual that skips two layers.
            1 => {
                linear(b, t[0], 1, t[1]);
                b.linear_with_residual_layer(t[1], weights[2].0, t[0], out, launch).unwrap();
                sum(&times(&times(&first, 1), 2), &first)
            }
            // A layer that joins two producers, one of which another layer reads too.
            2 => {
                linear(b, t[0], 1, t[1]);
                linear(b, t[0], 2, t[2]);
                b.elementwise_add_layer(t[1], t[2], t[3], launch).unwrap();
                b.elementwise_add_layer(t[2], t[3], t[4], launch).unwrap();
                b.elementwise_add_layer(t[4], t[0], out, launch).unwrap();
                let (a, c) = (times(&first, 1), times(&first, 2));
                sum(&sum(&c, &sum(&a, &c)), &first)
            }
            // A layer whose output several read, one of which joins several.
            _ => {
                linear(b, x, 1, t[1]);
                b.elementwise_add_layer(t[0], t[1], t[2], launch).unwrap();
                linear(b, t[2], 2, t[3]);
                linear(b, t[2], 3, t[4]);
                b.elementwise_add_layer(t[3], t[4], t[3], launch).unwrap();
                b.elementwise_add_layer(t[3], t[1], out, launch).unwrap();
                let both = sum(&first, &times(&x64, 1));
                sum(&sum(&times(&both, 2), &times(&both, 3)), &times(&x64, 1))
            }
        };
        (bench.run(), wanted)
    };
    for which in 0..4 {
        let got = over_grids("shape", |launch| run(which, launch).0);
        let wanted = run(which, LaunchDims::ONE).1;
        assert!(
            got.iter().zip(&wanted).all(|(g, w)| (f64::from(*g) - w).abs() < 1e-3 * w.abs().max(1.0)),
            "shape {which}"
        );
    }
}

#[test]
fn what_does_not_fit_is_refused_with_names_and_sizes() {
    let mut bench = Bench::new();
    let ((x, _), (w, _)) = (bench.input("x", &[ROWS, 8]), bench.input("w", &[4, 6]));
    let out = bench.out(&[ROWS, 4]);
    let refused = |result: Result<(), PersistentError>, parts: &[&str]| {
        let text = result.unwrap_err().to_string();
        assert!(parts.iter().all(|part| text.contains(part)), "{text}");
    };
    refused(bench.b.linear_layer(x, w, out, LaunchDims::ONE), &["linear_layer", "`x`", "6 elements"]);
    refused(bench.b.rmsnorm_layer(x, w, out, LaunchDims::ONE), &["rmsnorm_layer", "`w`", "8 elements"]);
    let new = bench.b.new_tensor(&[ROWS, 8], F32, "new").unwrap();
    refused(bench.b.identity_layer(new, x, None, LaunchDims::ONE), &["`new` is read before a layer writes it"]);
    let fewer = bench.b.new_tensor(&[3, 8], F32, "fewer").unwrap();
    refused(bench.b.identity_layer(x, fewer, None, LaunchDims::ONE), &["same rows", "[7, 8]", "[3, 8]"]);
    for (grid, block) in [([0, 1, 1], [128, 1, 1]), ([1, 1, 70_000], [128, 1, 1]), ([1, 1, 1], [1024, 2, 1])] {
        refused(bench.b.identity_layer(x, new, None, LaunchDims { grid, block }), &["_dim is"]);
    }
    let logits = bench.b.new_tensor(&[ROWS, 8], F32, "logits").unwrap();
    refused(bench.b.argmax_reduce_layer([x, x], out, LaunchDims::ONE), &["argmax_reduce_layer"]);
    refused(bench.b.argmax_layer(x, logits, LaunchDims::ONE), &["rows of 1 elements"]);
    assert!(bench.b.meta().known(9).unwrap_err().to_string().contains("there are 1 rows"));
    let name = bench.b.new_tensor(&[1], F32, "x").unwrap_err();
    assert!(name.to_string().contains("the name is taken"), "{name}");
    let odd = KernelTensor { dims: vec![2, 2], elements: F32, data: Some(vec![0; 15].into()) };
    assert!(bench.b.attach_input(odd, "odd").unwrap_err().to_string().contains("15 bytes"));
    let none = bench.b.compile(cpu(1), None).err().unwrap();
    assert!(none.is_unsupported(), "{none}");
}
