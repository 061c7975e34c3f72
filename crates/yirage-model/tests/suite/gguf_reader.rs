//! Reading true GGUF files: values against what the PyPI `gguf` writer was told (`fuzz/make_seeds.py`), and real models.

use crate::corpus::corpus;
use yirage_ir::Format;
use yirage_model::gguf::{GgmlType, Gguf, GgufArray, GgufValue};
use yirage_model::{Checkpoint, CheckpointKind, ModelError, StoredType};
use yirage_testkit::{absent, bedtime};

fn seed(name: &str) -> Gguf {
    Gguf::parse(&std::fs::read(corpus("gguf").join(name)).unwrap(), name).unwrap()
}

#[test]
fn every_value_type_reads_as_written() {
    for name in ["all_types.gguf", "version2.gguf"] {
        let g = seed(name);
        assert_eq!(g.version(), if name == "version2.gguf" { 2 } else { 3 });
        assert_eq!(g.architecture(), Some("llama"));
        assert_eq!(g.get("t.u8"), Some(&GgufValue::U8(200)));
        assert_eq!(g.get("t.i8"), Some(&GgufValue::I8(-100)));
        assert_eq!(g.get("t.u16"), Some(&GgufValue::U16(60000)));
        assert_eq!(g.get("t.i16"), Some(&GgufValue::I16(-30000)));
        assert_eq!(g.get("t.u32"), Some(&GgufValue::U32(4_000_000_000)));
        assert_eq!(g.get("t.i32"), Some(&GgufValue::I32(-2_000_000_000)));
        assert_eq!(g.get("t.f32"), Some(&GgufValue::F32(1e-6)));
        assert_eq!(g.get("t.bool"), Some(&GgufValue::Bool(true)));
        assert_eq!(g.get("t.string"), Some(&GgufValue::String("grüße 🦙".into())));
        assert_eq!(g.get("t.u64"), Some(&GgufValue::U64(1 << 63)));
        assert_eq!(g.get("t.i64"), Some(&GgufValue::I64(-(1 << 62))));
        assert_eq!(g.get("t.f64"), Some(&GgufValue::F64(0.1)));
        assert_eq!(g.get("absent"), None);
        let strings = g.get("t.strings").unwrap().as_strings().unwrap();
        assert_eq!(strings.iter().collect::<Vec<_>>(), ["", "a", "ß", "🦙 llama"]);
        assert_eq!((strings.get(2), strings.get(4), strings.len()), (Some("ß"), None, 4));
        assert_eq!(g.get("t.ints"), Some(&GgufValue::Array(GgufArray::I32(vec![1, -2, 3]))));
        assert_eq!(g.get("t.floats"), Some(&GgufValue::Array(GgufArray::F32(vec![0.5, -1.5]))));
        assert_eq!(g.get("t.bools"), Some(&GgufValue::Array(GgufArray::Bool(vec![true, false, true]))));
        let nested = vec![GgufArray::I32(vec![1, 2]), GgufArray::I32(vec![3])];
        assert_eq!(g.get("t.nested"), Some(&GgufValue::Array(GgufArray::Array(nested))));
    }
}

#[test]
fn f32_values_read_as_the_decimal_that_was_meant() {
    assert_eq!(GgufValue::F32(1e-6).as_f64(), Some(1e-6));
    assert_eq!(GgufValue::F32(10000.0).as_f64(), Some(10000.0));
    assert_eq!(GgufValue::F32(0.1).as_f64(), Some(0.1));
    assert_eq!(GgufValue::F32(f32::INFINITY).as_f64(), Some(f64::INFINITY));
    assert_eq!(GgufValue::U32(1).as_f64(), None);
}

#[test]
fn tensors_are_row_major_and_in_place() {
    let path = corpus("gguf").join("all_types.gguf");
    let c = Checkpoint::open(&path).unwrap();
    assert_eq!(c.kind(), CheckpointKind::Gguf);
    assert_eq!(c.total_bytes(), std::fs::metadata(&path).unwrap().len());
    let a = c.tensor("a.weight").unwrap();
    assert_eq!((a.shape.as_slice(), a.elements()), (&[3, 4][..], 12));
    assert_eq!(c.format(a).unwrap(), Format::F32);
    let expected: Vec<u8> = (0..12).flat_map(|i| (i as f32).to_le_bytes()).collect();
    assert_eq!(c.bytes(a), expected);
    let b = c.tensor("b.weight").unwrap();
    assert_eq!((b.shape.as_slice(), c.bytes(b)), (&[5][..], &[0, 0, 0, 0x3c, 0, 0x40, 0, 0x42, 0, 0x44][..]));
    assert_eq!(c.tensor("c.weight").unwrap().shape, [2, 3, 4]);
    c.release(a, 0..usize::MAX);
    assert_eq!(c.bytes(a), expected);
}

#[test]
fn unsupported_formats_are_listed_and_refused_on_use() {
    let c = Checkpoint::open(corpus("gguf").join("quantised.gguf")).unwrap();
    assert_eq!(c.gguf().unwrap().alignment(), 64);
    let iq1 = c.tensor("iq1.weight").unwrap();
    assert_eq!(iq1.dtype, StoredType::Ggml(GgmlType(19)));
    assert_eq!((iq1.shape.as_slice(), c.bytes(iq1).len()), (&[1, 256][..], 50));
    assert_eq!(c.format(iq1).unwrap(), Format::Q6_K, "decoded when it is read");
    let error = c.format(c.tensor("i32.weight").unwrap()).unwrap_err();
    assert!(matches!(&error, ModelError::UnsupportedFormat { tensor, .. } if tensor == "i32.weight"));
    assert!(error.to_string().contains("I32 (GGUF type 26)"), "{error}");
    let missing = c.require("blk.0.attn_q.weight").unwrap_err();
    assert!(missing.to_string().contains("blk.0.attn_q.weight"));
}

#[test]
fn small_models_have_their_tensors() {
    for (path, ty) in [(bedtime::f32(), 0), (bedtime::q8_0(), 8)] {
        let c = Checkpoint::open(&path).unwrap();
        let g = c.gguf().unwrap();
        assert_eq!((c.tensors().len(), g.alignment()), (47, 32));
        let embedding = g.tensors().iter().find(|t| t.name == "token_embd.weight").unwrap();
        assert_eq!((embedding.shape.as_slice(), embedding.ty.0), (&[512, 64][..], ty));
        let end = g.tensors().iter().map(|t| t.range.end).max().unwrap();
        assert!(c.total_bytes() - end < 32, "the file ends with its last tensor");
    }
}

#[test]
#[ignore = "needs four models in YIRAGE_MODELS"]
fn real_models_open_with_the_offsets_that_the_pypi_reader_finds() {
    for (name, tensors, data_offset, entries, tokens) in [
        ("gemma-3-270m-q4_k_m.gguf", 236, 6_525_120, 33, 262_144),
        ("qwen2.5-coder-0.5b-instruct-q4_k_m.gguf", 291, 5_947_776, 26, 151_936),
        ("qwen2.5-coder-1.5b-instruct-q4_k_m.gguf", 339, 5_950_528, 26, 151_936),
        ("smollm2-135m-instruct-q4_1.gguf", 272, 1_785_664, 33, 49_152),
    ] {
        let c = Checkpoint::open(absent::model(name)).unwrap();
        let g = c.gguf().unwrap();
        assert_eq!((g.tensors().len(), g.data_offset(), g.metadata().len()), (tensors, data_offset, entries), "{name}");
        assert_eq!(g.get("tokenizer.ggml.tokens").unwrap().as_strings().unwrap().len(), tokens);
        let end = g.tensors().iter().map(|t| t.range.end).max().unwrap();
        assert!(c.total_bytes() - end < 32, "{name}: {end} of {}", c.total_bytes());
    }
}
