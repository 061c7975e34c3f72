//! Weights that several tensors of a safetensors model make, against golden models (`tools/oracle/quantized_golden.py`): bit
//! for bit, in whatever format they are computed with; and what is said where parts do not fit.

use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};
use yirage_ir::Format;
use yirage_model::weights::{WeightBinding, WeightSource, WeightView, materialise};
use yirage_model::{Checkpoint, ModelError, RawConfig};
use yirage_testkit::rng::Rng;
use yirage_testkit::scratch::ScratchFolder;

/// Golden model, the format its weight is computed with, tensors that are left, and how the packing is called.
const MODELS: &[(&str, Format, usize, &str)] = &[
    ("awq", Format::Q5_0, 2, "AWQ 4-bit, groups of 64"),
    ("bnb-fp4", Format::F32, 2, "bitsandbytes FP4, scales for 64"),
    ("bnb-int8", Format::F32, 2, "bitsandbytes int8"),
    ("bnb-nf4", Format::F32, 2, "bitsandbytes NF4, scales for 64"),
    ("bnb-nf4-nested", Format::F32, 2, "bitsandbytes NF4, scales for 64, scales of 8 bits for 16 from 0.0408"),
    ("fp8-blocks", Format::F32, 2, "F8_E4M3, scales for 16 x 32"),
    ("fp8-blocks-bf16", Format::F32, 2, "F8_E4M3, scales for 16 x 32"),
    ("fp8-blocks-e8m0", Format::BF16, 2, "F8_E4M3, scales for 16 x 32"),
    ("fp8-blocks-powers", Format::BF16, 2, "F8_E4M3, scales for 16 x 32"),
    ("fp8-e5m2", Format::BF16, 2, "F8_E5M2, no scales"),
    ("fp8-plain", Format::BF16, 2, "F8_E4M3, no scales"),
    ("fp8-rows", Format::F32, 2, "F8_E4M3, scales for 1 x 80"),
    ("fp8-structure", Format::F32, 2, "F8_E4M3, scales for 8 x 40"),
    ("fp8-whole", Format::F32, 2, "F8_E4M3, scales for 24 x 80, those of activations unused"),
    ("gptq-2-bits", Format::Q4_0, 3, "GPTQ 2-bit, groups of 64, zeros from 0"),
    ("gptq-8-bits", Format::Q8_0, 3, "GPTQ 8-bit, groups of 64, zeros from 0"),
    ("gptq-8-bits-zeros", Format::F32, 3, "GPTQ 8-bit, groups of 64, zeros from 0"),
    ("gptq-f32-scales", Format::F32, 3, "GPTQ 4-bit, groups of 64, zeros from 1"),
    ("gptq-groups-of-48", Format::F32, 3, "GPTQ 4-bit, groups of 48, zeros from 1"),
    (
        "gptq-ordered",
        Format::F32,
        3,
        "GPTQ 4-bit, groups of 32, zeros from 1, inputs in the order of their activations",
    ),
    ("gptq-rows", Format::Q5_0, 3, "GPTQ 4-bit, groups of 128, zeros from 1"),
    ("gptq-symmetric", Format::Q4_0, 3, "GPTQ 4-bit, groups of 64, zeros from 1"),
    ("gptq-zeros", Format::Q5_0, 3, "GPTQ 4-bit, groups of 32, zeros from 1"),
    ("hqq-2-bits-down", Format::F32, 2, "HQQ 2-bit, groups of 16 in columns"),
    ("hqq-3-bits", Format::F32, 2, "HQQ 3-bit, groups of 64 in rows"),
    ("hqq-4-bits", Format::F32, 2, "HQQ 4-bit, groups of 40 in rows"),
    ("hqq-8-bits", Format::F32, 2, "HQQ 8-bit, groups of 80 in rows"),
    ("int4", Format::Q4_0, 2, "compressed-tensors 4-bit, groups of 32"),
    ("int4-part-of-a-word", Format::F32, 2, "compressed-tensors 4-bit, groups of 20, zero points"),
    ("int4-zeros", Format::Q5_0, 2, "compressed-tensors 4-bit, groups of 64, zero points"),
    ("int8-f32-scales", Format::F32, 2, "int8, scales for 128 inputs"),
    ("int8-packed", Format::Q8_0, 2, "compressed-tensors 8-bit, groups of 128"),
    ("int8-rows", Format::Q8_0, 2, "int8, scales for 128 inputs"),
    ("int8-whole", Format::Q8_0, 2, "int8, scales for 128 inputs"),
    ("mxfp4", Format::MXFP4, 2, "MXFP4 in pairs"),
    ("nvfp4", Format::F32, 2, "NVFP4, times a scale of all"),
    ("nvfp4-divided", Format::F32, 2, "NVFP4, divided by a scale of all"),
    ("nvfp4-power", Format::BF16, 2, "NVFP4, times a scale of all"),
];

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/quantized").join(name)
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect()
}

fn decoded(bytes: &[u8], format: Format) -> Vec<f32> {
    let info = format.info();
    let mut values = vec![0f32; bytes.len() / info.bytes * info.block];
    (info.decode)(bytes, &mut values);
    values
}

#[test]
fn every_golden_model_is_in_the_table() {
    let mut folders: Vec<String> =
        std::fs::read_dir(golden("")).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    folders.sort();
    assert_eq!(folders, MODELS.iter().map(|m| m.0).collect::<Vec<_>>());
}

#[test]
fn every_value_is_the_definitions() {
    for &(name, format, left, packing) in MODELS {
        let c = Checkpoint::open(golden(name)).unwrap();
        RawConfig::load(&c).unwrap().quantization().unwrap();
        let w = c.tensor("m.weight").unwrap();
        assert_eq!((w.dtype.to_string().as_str(), c.tensors().len()), (packing, left), "{name}");
        assert_eq!(c.format(w).unwrap(), format, "{name}");
        let mut scratch = Vec::new();
        let got = decoded(c.elements(w, 0..w.elements(), &mut scratch).unwrap(), format);
        let want = floats(&std::fs::read(golden(name).join("values.f32")).unwrap());
        assert_eq!(got.len(), want.len(), "{name}");
        for (i, (g, value)) in got.iter().zip(&want).enumerate() {
            assert_eq!(g.to_bits(), value.to_bits(), "{name} value {i}: {g} is not {value}");
        }
        let source = WeightSource::Stored(vec![WeightView::dense("m.weight", 0, w.shape.clone())]);
        let floats = WeightBinding { name: name.into(), format: Format::F32, shape: w.shape.clone(), source };
        let got = materialise(&c, &floats, 1..w.shape[0], &mut scratch).unwrap();
        assert!(decoded(got, Format::F32) == want[w.shape[1]..], "{name} as f32");
    }
}

#[test]
fn parts_of_a_weight_are_what_the_whole_says() {
    for &(name, format, ..) in MODELS {
        let c = Checkpoint::open(golden(name)).unwrap();
        let w = c.tensor("m.weight").unwrap();
        let (info, width) = (format.info(), w.shape[1]);
        let (mut scratch, mut piece) = (Vec::new(), Vec::new());
        let whole = c.elements(w, 0..w.elements(), &mut scratch).unwrap();
        let odd = if info.block == 1 { 7 } else { info.block };
        for range in [odd..width, width - odd..width + odd, w.elements() - odd..w.elements(), 0..0] {
            let want = &whole[info.row_bytes(range.start)..info.row_bytes(range.end)];
            assert_eq!(c.elements(w, range, &mut piece).unwrap(), want, "{name}");
        }
    }
}

/// A copy of a golden model whose header, data and configuration are changed.
fn changed(name: &str, change: impl FnOnce(&mut Map<String, Value>, &mut [u8], &mut Value)) -> (ScratchFolder, String) {
    let file = std::fs::read(golden(name).join("model.safetensors")).unwrap();
    let text = 8 + u64::from_le_bytes(file[..8].try_into().unwrap()) as usize;
    let mut header: Map<String, Value> = serde_json::from_slice(&file[8..text]).unwrap();
    let mut config: Value = serde_json::from_slice(&std::fs::read(golden(name).join("config.json")).unwrap()).unwrap();
    let mut data = file[text..].to_vec();
    change(&mut header, &mut data, &mut config);
    let header = serde_json::to_vec(&header).unwrap();
    let folder = ScratchFolder::new("decoded_quantized");
    folder.write("model.safetensors", &[&(header.len() as u64).to_le_bytes()[..], &header, &data].concat());
    folder.write("config.json", &serde_json::to_vec(&config).unwrap());
    let error = match Checkpoint::open(&folder.0) {
        Ok(_) => "none".to_owned(),
        Err(e) => {
            assert!(
                matches!(
                    e,
                    ModelError::MissingTensor { .. } | ModelError::Config { .. } | ModelError::Unsupported { .. }
                ),
                "{e:?}"
            );
            e.to_string()
        }
    };
    (folder, error)
}

fn said(name: &str, change: impl FnOnce(&mut Map<String, Value>, &mut [u8], &mut Value), parts: &[&str]) {
    let (_, error) = changed(name, change);
    for part in parts {
        assert!(error.contains(part), "{name}: {part:?} is not in {error:?}");
    }
}

fn renamed(tensor: &'static str) -> impl FnOnce(&mut Map<String, Value>, &mut [u8], &mut Value) {
    move |header, _, _| {
        let value = header.remove(tensor).unwrap();
        header.insert("other".into(), value);
    }
}

fn reshaped(
    tensor: &'static str,
    shape: &'static [u64],
) -> impl FnOnce(&mut Map<String, Value>, &mut [u8], &mut Value) {
    move |header, _, _| header[tensor]["shape"] = json!(shape)
}

fn configured(key: &'static str, value: Value) -> impl FnOnce(&mut Map<String, Value>, &mut [u8], &mut Value) {
    move |_, _, config| config["quantization_config"][key] = value
}

#[test]
fn missing_parts_are_named() {
    for (model, tensor) in [
        ("gptq-zeros", "m.scales"),
        ("gptq-zeros", "m.qzeros"),
        ("awq", "m.scales"),
        ("fp8-blocks", "m.weight_scale_inv"),
        ("fp8-rows", "m.weight_scale"),
        ("int4", "m.weight_scale"),
        ("int8-rows", "m.weight_scale"),
        ("nvfp4", "m.weight_scale"),
        ("hqq-4-bits", "m.zero"),
        ("bnb-nf4", "m.weight.absmax"),
        ("bnb-nf4-nested", "m.weight.nested_quant_map"),
        ("bnb-nf4", "m.weight.quant_state.bitsandbytes__nf4"),
    ] {
        said(model, renamed(tensor), &[tensor, "model.safetensors", "missing", "download"]);
    }
}

#[test]
fn parts_that_do_not_fit_are_errors_with_the_numbers() {
    said("gptq-zeros", reshaped("m.scales", &[16, 4]), &["m.scales", "[4, 16]", "[16, 4]"]);
    said("gptq-zeros", reshaped("m.qzeros", &[2, 4]), &["m.qzeros", "[4, 2]", "[2, 4]"]);
    said("gptq-zeros", reshaped("m.qweight", &[256]), &["m.qweight", "a matrix", "[256]"]);
    said("gptq-zeros", reshaped("m.qweight", &[64, 4]), &["m.qweight", "multiples of 8", "4 columns"]);
    said("awq", reshaped("m.scales", &[16, 2]), &["m.scales", "[2, 16]", "[16, 2]"]);
    said("fp8-blocks", reshaped("m.weight_scale_inv", &[3, 2]), &["m.weight_scale_inv", "[2, 3]", "16 x 32"]);
    said("int4", reshaped("m.weight_scale", &[4, 16]), &["m.weight_scale", "16 rows", "[4, 16]"]);
    said("int8-rows", reshaped("m.weight_scale", &[2, 8]), &["m.weight_scale", "[2, 8]"]);
    said("nvfp4", reshaped("m.weight_scale", &[4, 16]), &["m.weight_scale", "[16, 4]", "[4, 16]"]);
    said("hqq-4-bits", reshaped("m.scale", &[1, 48]), &["m.scale", "[48, 1]", "[1, 48]"]);
    said("hqq-4-bits", reshaped("m.W_q", &[48, 20]), &["m.W_q", "[24, 40]", "[48, 20]"]);
    said("bnb-int8", reshaped("m.SCB", &[4, 4]), &["m.SCB", "[16]", "[4, 4]"]);
    said("bnb-fp4", reshaped("m.weight.absmax", &[2, 4]), &["m.weight.absmax", "[8]", "[2, 4]"]);
    let other =
        |header: &mut Map<String, Value>, _: &mut [u8], _: &mut Value| header["m.scales"]["dtype"] = json!("I16");
    said("gptq-zeros", other, &["m.scales", "F32 or F16 or BF16"]);
    let short =
        |header: &mut Map<String, Value>, _: &mut [u8], _: &mut Value| header["m.g_idx"]["shape"] = json!([2, 64]);
    said("gptq-ordered", short, &["m.g_idx", "[128]"]);
}

#[test]
fn indices_and_settings_outside_their_range_are_errors() {
    let outside = |header: &mut Map<String, Value>, data: &mut [u8], _: &mut Value| {
        let at = header["m.g_idx"]["data_offsets"][0].as_u64().unwrap() as usize;
        data[at + 8..at + 12].copy_from_slice(&(-1i32).to_le_bytes());
    };
    said("gptq-ordered", outside, &["m.g_idx", "groups from 0 to 3", "-1 for input 2"]);
    let spoiled = |header: &mut Map<String, Value>, data: &mut [u8], _: &mut Value| {
        let state = &header["m.weight.quant_state.bitsandbytes__nf4"]["data_offsets"];
        data[state[0].as_u64().unwrap() as usize] = b'[';
    };
    said("bnb-nf4", spoiled, &["quant_state.bitsandbytes__nf4", "JSON"]);
    said("gptq-zeros", configured("group_size", json!(0)), &["group_size", "config.json", "0"]);
    said("gptq-zeros", configured("bits", json!("four")), &["bits", "whole number", "four"]);
    said("gptq-zeros", configured("bits", json!(3)), &["3 bits", "not supported"]);
    said("gptq-zeros", configured("checkpoint_format", json!("marlin")), &["marlin", "not supported"]);
    said("awq", configured("version", json!("gemv")), &["gemv", "not supported"]);
    said("fp8-blocks", configured("weight_block_size", json!([0, 32])), &["weight_block_size", "above 0"]);
    said("int4", configured("format", json!("marlin-24")), &["marlin-24", "not supported"]);
}

#[test]
fn bytes_without_scales_may_have_any_dimensions() {
    for shape in [&[1920][..], &[2, 3, 320], &[1920, 1]] {
        let (folder, said) = changed("fp8-plain", |header, _, _| header["m.weight"]["shape"] = json!(shape));
        assert_eq!(said, "none");
        let c = Checkpoint::open(&folder.0).unwrap();
        let w = c.tensor("m.weight").unwrap();
        assert_eq!(w.shape, shape);
        let mut scratch = Vec::new();
        let got = decoded(c.elements(w, 0..1920, &mut scratch).unwrap(), Format::BF16);
        assert!(got == floats(&std::fs::read(golden("fp8-plain").join("values.f32")).unwrap()));
    }
}

#[test]
fn methods_that_are_not_read_are_named_when_the_model_is_built() {
    let (folder, _) =
        changed("fp8-plain", |_, _, config| config["quantization_config"] = json!({"quant_method": "vptq"}));
    // The weights lack scales, whatever the method is.
    assert!(matches!(Checkpoint::open(&folder.0), Err(ModelError::MissingTensor { .. })));
    let config = RawConfig::from_json(br#"{"quantization_config": {"quant_method": "vptq"}}"#, "c").unwrap();
    let error = config.quantization().unwrap_err();
    assert!(matches!(&error, ModelError::Unsupported { what, .. } if what.contains("vptq")), "{error}");
}

#[test]
fn damaged_models_end_in_an_error_or_in_values() {
    for &(name, ..) in MODELS {
        let [model, config] =
            ["model.safetensors", "config.json"].map(|f| std::fs::read(golden(name).join(f)).unwrap());
        let mut rng = Rng::new(52);
        for _ in 0..40 {
            let (mut model, mut config) = (model.clone(), config.clone());
            for _ in 0..=rng.below(3) {
                let header = 8 + u64::from_le_bytes(model[..8].try_into().unwrap()) as usize;
                let reach = if rng.below(2) == 0 { header.min(model.len()) } else { model.len() };
                let at = 8 + rng.below(reach as u64 - 8) as usize;
                model[at] = if rng.below(2) == 0 { b'0' + rng.below(10) as u8 } else { rng.below(256) as u8 };
                let at = rng.below(config.len() as u64) as usize;
                if rng.below(3) == 0 {
                    config[at] = b'0' + rng.below(10) as u8;
                }
            }
            let folder = ScratchFolder::new("damaged_quantized");
            folder.write("model.safetensors", &model);
            folder.write("config.json", &config);
            let Ok(c) = Checkpoint::open(&folder.0) else { continue };
            let mut scratch = Vec::new();
            for t in c.tensors().filter(|t| c.format(t).is_ok()) {
                let block = c.format(t).unwrap().info().block;
                if t.elements().is_multiple_of(block) {
                    c.elements(t, 0..t.elements(), &mut scratch).unwrap();
                }
            }
        }
    }
}
