//! Experts of gpt-oss that are packed already: the bits change places, and nothing is rounded.

use crate::{check_logits, converted, with_config};
use serde_json::{Map, json};
use yirage_model::Checkpoint;
use yirage_model::gguf::{Gguf, GgufValue};
use yirage_testkit::scratch::ScratchFolder;
use yirage_testkit::tiny;

#[test]
fn packed_experts_stay_packed() {
    let folder = ScratchFolder::new("convert-packed");
    let model = with_config(&folder, "gptoss", &json!({"quantization_config": {"quant_method": "mxfp4"}}));
    let checkpoint = Checkpoint::open(tiny::model("gptoss")).unwrap();
    let (mut header, mut data) = (Map::new(), Vec::<u8>::new());
    let mut put = |name: String, dtype: &str, shape: Vec<usize>, bytes: Vec<u8>| {
        let from = data.len();
        data.extend(bytes);
        header.insert(name, json!({"dtype": dtype, "shape": shape, "data_offsets": [from, data.len()]}));
    };
    for tensor in checkpoint.tensors() {
        if !tensor.name.ends_with("_proj") {
            put(tensor.name.clone(), "F32", tensor.shape.clone(), checkpoint.bytes(tensor).to_vec());
            continue;
        }
        // Stored `[experts, in, out]`; packed `[experts, out, blocks of in, bytes]`.
        let [experts, inner, rows] = tensor.shape[..] else { panic!("{:?}", tensor.shape) };
        let blocks = experts * rows * inner / 32;
        let codes = (0..blocks * 16).map(|i| (i * 37 % 251) as u8).collect();
        let scales = (0..blocks).map(|i| 118 + (i % 5) as u8).collect();
        put(format!("{}_blocks", tensor.name), "U8", vec![experts, rows, inner / 32, 16], codes);
        put(format!("{}_scales", tensor.name), "U8", vec![experts, rows, inner / 32], scales);
    }
    let header = serde_json::to_vec(&header).unwrap();
    let file = [&(header.len() as u64).to_le_bytes()[..], &header, &data].concat();
    std::fs::write(model.join("model.safetensors"), file).unwrap();
    let out = folder.0.join("out.gguf");
    let written = converted(&model, "f32", &out).unwrap();
    assert_eq!(written.rounded.iter().map(|r| r.changed).sum::<u64>(), 0);
    check_logits("gptoss", &model, &out, true);
    let gguf = Gguf::parse(&std::fs::read(&out).unwrap(), "out.gguf").unwrap();
    let packed = gguf.tensors().iter().filter(|t| t.ty.name() == Some("MXFP4"));
    assert!(packed.count() == 9 && gguf.get("general.file_type").and_then(GgufValue::as_u32) == Some(38));
}
