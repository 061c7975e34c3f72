//! Layers of 8-bit floats beside PyTorch's: `tools/oracle/float8_cases.py` made the numbers.

use crate::support::{F32, cpu, meta, tensors};
use serde_json::Value;
use std::collections::HashMap;
use yirage_ir::rng::at;
use yirage_persistent::{
    KernelBuilder, KernelConfig, KernelDType, KernelTensor, LaunchDims, PersistentError, Routing, TensorId, TestValues,
};
use yirage_plan::Precision;

const ROWS: u32 = 3;
const N: u32 = 130;
const K: u32 = 260;

fn case() -> Value {
    serde_json::from_str(include_str!("../fixtures/float8.json")).unwrap()
}

fn numbers(seed: u64, count: u32) -> Vec<f32> {
    (0..count).map(|i| (at(seed, u64::from(i)) >> 40) as f32 / (1 << 24) as f32 - 0.5).collect()
}

fn codes(seed: u64, dims: &[u32]) -> KernelTensor {
    let data = (0..dims.iter().product::<u32>())
        .map(|i| (at(seed, u64::from(i)) >> 56) as u8 & 0xf7)
        .collect::<Vec<u8>>()
        .into();
    KernelTensor { dims: dims.to_vec(), elements: KernelDType::Float8E4M3, data: Some(data) }
}

/// A scale for each block of 128 rows and columns.
fn by_block() -> KernelTensor {
    let scales: Vec<f32> = numbers(3, 6).into_iter().map(|x| x + 1.0).collect();
    KernelTensor::f32(&[2, 3], &scales)
}

/// A word of four exponents for each row.
fn by_row() -> KernelTensor {
    let data = (0..N * 4).map(|i| 120 + (at(4, u64::from(i)) >> 61) as u8).collect::<Vec<u8>>().into();
    KernelTensor { dims: vec![N, 1], elements: KernelDType::Int32, data: Some(data) }
}

fn builder() -> KernelBuilder {
    // The fast precision may round activations, and the reference does not.
    let precision = Precision::Exact;
    let config = KernelConfig { precision, max_num_batched_tokens: 8, max_seq_length: 64, ..KernelConfig::default() };
    KernelBuilder::new(config, meta(&[(1..=ROWS).collect()], 64)).unwrap()
}

/// Rows of a tensor that were quantised, with their scales.
fn quantised(b: &mut KernelBuilder, name: &str, width: u32, seed: u64) -> [TensorId; 2] {
    let x = b.attach_input(KernelTensor::f32(&[ROWS, width], &numbers(seed, ROWS * width)), name).unwrap();
    let rows = b.new_tensor(&[ROWS, width], KernelDType::Float8E4M3, &format!("{name}.fp8")).unwrap();
    let scale = b.new_tensor(&[ROWS, 1], KernelDType::Int32, &format!("{name}.scale")).unwrap();
    b.quantize_fp8_layer(x, [rows, scale], LaunchDims::ONE).unwrap();
    [rows, scale]
}

fn floats(b: &KernelBuilder, name: &str) -> Vec<f32> {
    let all = b.run_test_mode(&cpu(2)).unwrap();
    match all.into_iter().find(|output| output.name == name).unwrap().values {
        TestValues::Floats(values) => values,
        TestValues::Ints(_) => panic!("numbers are wanted"),
    }
}

fn close(got: &[f32], wanted: &[f64], what: &str) {
    assert_eq!(got.len(), wanted.len(), "{what}");
    let largest = wanted.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
    for (i, (g, w)) in got.iter().zip(wanted).enumerate() {
        assert!((f64::from(*g) - w).abs() <= 1e-5 * largest, "{what}: element {i} is {g}, {w} is wanted");
    }
}

#[test]
fn products_of_8_bit_weights_are_those_of_pytorch() {
    let case = case();
    let list = |key: &str| -> Vec<f64> { case[key].as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect() };
    for (key, scales) in [("by_block", by_block()), ("by_row", by_row())] {
        let mut b = builder();
        let x = quantised(&mut b, "x", K, 2);
        let weight = [b.attach_input(codes(1, &[N, K]), "w"), b.attach_input(scales, "w.scale")].map(Result::unwrap);
        let [plain, out] = ["plain", "out"].map(|name| b.new_tensor(&[ROWS, N], F32, name).unwrap());
        let residual = numbers(5, ROWS * N);
        let r = b.attach_input(KernelTensor::f32(&[ROWS, N], &residual), "residual").unwrap();
        b.linear_fp8_layer(x, weight, plain, LaunchDims::ONE).unwrap();
        b.linear_fp8_with_residual_layer(x, weight, r, out, LaunchDims::ONE).unwrap();
        let product = list(key);
        close(&floats(&b, "plain"), &product, key);
        let sum: Vec<f64> = product.iter().zip(&residual).map(|(p, r)| p + f64::from(*r)).collect();
        close(&floats(&b, "out"), &sum, key);
        let told: Vec<String> = b.notices().iter().map(ToString::to_string).collect();
        assert_eq!(told.iter().filter(|text| text.contains("widened to float32")).count(), 1, "{told:?}");
    }
}

/// A float for each row and 128 columns is that of its block where all rows of the block have the same.
#[test]
fn scales_of_rows_are_those_of_blocks_with_equal_rows() {
    let blocks = by_block();
    let words: Vec<[u8; 4]> = blocks.data.as_ref().unwrap().as_chunks().0.to_vec();
    let data = (0..N as usize).flat_map(|row| words[row / 128 * 3..][..3].concat()).collect::<Vec<u8>>().into();
    let rows = KernelTensor { dims: vec![N, 3], elements: F32, data: Some(data) };
    let run = |scales: KernelTensor| {
        let mut b = builder();
        let x = quantised(&mut b, "x", K, 2);
        let weight = [b.attach_input(codes(1, &[N, K]), "w"), b.attach_input(scales, "w.scale")].map(Result::unwrap);
        let out = b.new_tensor(&[ROWS, N], F32, "out").unwrap();
        b.linear_fp8_layer(x, weight, out, LaunchDims::ONE).unwrap();
        floats(&b, "out")
    };
    assert_eq!(run(rows), run(blocks));
}

/// Experts of 8-bit floats give what experts of the same numbers in f32 give, whose formula has a test of its own.
#[test]
fn experts_of_8_bit_weights_are_those_of_widened_ones() {
    let (experts, top_k, inner, width) = (4u32, 2u32, 136u32, 16u32);
    let (w13, w2) = (codes(7, &[experts, 2 * inner, width]), codes(8, &[experts, width, inner]));
    let scales = |seed, dims: &[u32]| {
        let count = dims.iter().product();
        KernelTensor::f32(dims, &numbers(seed, count).into_iter().map(|x| (x + 1.0) / 512.0).collect::<Vec<f32>>())
    };
    let (s13, s2) = (scales(9, &[experts, 3, 1]), scales(10, &[experts, 1, 2]));
    let every = case()["e4m3"].as_array().unwrap().clone();
    let widened = |weight: &KernelTensor, scale: &KernelTensor| {
        let [_, rows, columns] = weight.dims[..] else { panic!() };
        let factors: Vec<f32> =
            scale.data.as_ref().unwrap().as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect();
        let factor = |i: u32| {
            let (matrix, row, column) = (i / columns / rows, i / columns % rows, i % columns);
            factors[((matrix * scale.dims[1] + row / 128) * scale.dims[2] + column / 128) as usize]
        };
        let codes = weight.data.as_ref().unwrap().iter().zip(0..);
        let values: Vec<f32> =
            codes.map(|(&code, i)| every[usize::from(code)].as_f64().unwrap() as f32 * factor(i)).collect();
        KernelTensor::f32(&weight.dims, &values)
    };
    let run = |eight: bool| {
        let mut b = builder();
        let scores =
            b.attach_input(KernelTensor::f32(&[ROWS, experts], &numbers(11, ROWS * experts)), "scores").unwrap();
        let tensor =
            |b: &mut KernelBuilder, name: &str, row: &[u32]| b.new_tensor(&[&[ROWS], row].concat(), F32, name).unwrap();
        let routed = ["weights", "indices"].map(|name| tensor(&mut b, name, &[top_k]));
        let routing = Routing { num_groups: 1, topk_group: 1, routed_scaling_factor: 1.0 };
        b.moe_topk_sigmoid_routing_layer(scores, None, routed, routing, LaunchDims::ONE).unwrap();
        let (wide, act, back) = (
            tensor(&mut b, "wide", &[top_k, 2 * inner]),
            tensor(&mut b, "act", &[top_k, inner]),
            tensor(&mut b, "back", &[top_k, width]),
        );
        let x = quantised(&mut b, "x", width, 12);
        if eight {
            let w13 = [b.attach_input(w13.clone(), "w13"), b.attach_input(s13.clone(), "s13")].map(Result::unwrap);
            let w2 = [b.attach_input(w2.clone(), "w2"), b.attach_input(s2.clone(), "s2")].map(Result::unwrap);
            b.moe_w13_fp8_layer(x, w13, routed[1], wide, LaunchDims::ONE).unwrap();
            b.moe_silu_mul_layer(wide, act, LaunchDims::ONE).unwrap();
            let rows = b.new_tensor(&[ROWS, top_k, inner], KernelDType::Float8E4M3, "act.fp8").unwrap();
            let scale = b.new_tensor(&[ROWS, top_k], KernelDType::Int32, "act.scale").unwrap();
            b.quantize_fp8_layer(act, [rows, scale], LaunchDims::ONE).unwrap();
            b.moe_w2_fp8_layer([rows, scale], w2, routed[1], back, LaunchDims::ONE).unwrap();
        } else {
            let [w13, w2] = [("w13", widened(&w13, &s13)), ("w2", widened(&w2, &s2))]
                .map(|(name, weight)| b.attach_input(weight, name).unwrap());
            b.moe_w13_linear_layer(x[0], w13, routed[1], wide, LaunchDims::ONE).unwrap();
            b.moe_silu_mul_layer(wide, act, LaunchDims::ONE).unwrap();
            b.moe_w2_linear_layer(act, w2, routed[1], back, LaunchDims::ONE).unwrap();
        }
        floats(&b, "back")
    };
    let got = run(true);
    assert!(got.iter().any(|x| x.abs() > 1e-3));
    assert_eq!(got, run(false));
}

#[test]
fn what_is_wrong_with_scales_and_codes_is_told() {
    let refused = |weight: KernelTensor, scale: KernelTensor, wanted: &str| {
        let mut b = builder();
        let x = quantised(&mut b, "x", K, 2);
        let weight = [b.attach_input(weight, "w"), b.attach_input(scale, "w.scale")].map(Result::unwrap);
        let out = b.new_tensor(&[ROWS, N], F32, "out").unwrap();
        let made = b.linear_fp8_layer(x, weight, out, LaunchDims::ONE).and_then(|()| b.run_test_mode(&cpu(1)));
        let text = made.unwrap_err().to_string();
        assert!(text.contains(wanted), "{text}");
    };
    let whole = codes(1, &[N, K]);
    refused(whole.clone(), KernelTensor::f32(&[3, 2], &[1.0; 6]), "`w.scale` are [3, 2]");
    refused(whole.clone(), KernelTensor::declared(&[2, 3], F32), "have no elements");
    refused(
        whole.clone(),
        KernelTensor { elements: KernelDType::Int64, ..KernelTensor::declared(&[2, 3], F32) },
        "no elements",
    );
    refused(KernelTensor::f32(&[N, K], &numbers(1, N * K)), by_block(), "`w` is float32, float8_e4m3fn is wanted");
    let mut spoilt = whole.data.as_ref().unwrap().to_vec();
    spoilt[(K + 7) as usize] = 0x7f;
    let spoilt = KernelTensor { data: Some(spoilt.into()), ..whole.clone() };
    refused(spoilt, by_block(), "row 1, column 7 of matrix 0 is 0x7f");
    refused(whole.clone(), KernelTensor::f32(&[2, 3], &[f32::INFINITY; 6]), "no finite number");

    let mut b = builder();
    let x = quantised(&mut b, "x", K, 2);
    let [w, one, two] = [("w", whole), ("one", by_block()), ("two", by_row())]
        .map(|(name, tensor)| b.attach_input(tensor, name).unwrap());
    let out = b.new_tensor(&[ROWS, N], F32, "out").unwrap();
    b.linear_layer(x[0], w, out, LaunchDims::ONE).unwrap();
    let text = b.run_test_mode(&cpu(1)).unwrap_err().to_string();
    assert!(text.contains("linear_fp8_layer"), "{text}");
    let text = b.linear_fp8_layer([x[0], w], [w, one], out, LaunchDims::ONE).unwrap_err().to_string();
    assert!(text.contains("one quantize_fp8_layer wrote"), "{text}");
    b.linear_fp8_layer(x, [w, one], out, LaunchDims::ONE).unwrap();
    let again: Result<(), PersistentError> = b.linear_fp8_layer(x, [w, two], out, LaunchDims::ONE);
    let text = again.unwrap_err().to_string();
    assert!(text.contains("`one` in one layer and `two` in another"), "{text}");
    let given: HashMap<String, KernelTensor> = tensors(&b);
    assert_eq!(given["w"].elements, KernelDType::Float8E4M3, "what is attached stays as it is");
    assert_eq!(KernelDType::parse("torch.float8_e4m3fn").unwrap(), KernelDType::Float8E4M3);
}
