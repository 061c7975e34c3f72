//! safetensors files true and false, single and sharded. The true ones come from the PyPI `safetensors` writer
//! (`fuzz/make_seeds.py`).

#[path = "../../../../fuzz/bodies/safetensors.rs"]
mod body;

use crate::alloc::peak_of;
use crate::corpus::{corpus, corpus_files};
use yirage_ir::Format;
use yirage_model::flaw::Flaw;
use yirage_model::safetensors::{SafeTensors, ShardIndex};
use yirage_model::{Checkpoint, CheckpointKind, ModelError, StoredType};
use yirage_testkit::scratch::ScratchFolder;
use yirage_testkit::tiny;

fn file(header: &str, data: usize) -> Vec<u8> {
    let mut out = (header.len() as u64).to_le_bytes().to_vec();
    out.extend(header.as_bytes());
    out.resize(out.len() + data, 0);
    out
}

fn flaw(bytes: &[u8]) -> (String, u64, Flaw) {
    match SafeTensors::parse(bytes, "hostile.safetensors") {
        Err(ModelError::Corrupt(c)) => {
            assert!(c.to_string().contains("hostile.safetensors"), "{c}");
            (c.field.clone(), c.offset, c.flaw.clone())
        }
        Err(other) => panic!("another error: {other}"),
        Ok(_) => panic!("accepted"),
    }
}

#[test]
fn seeds_read_as_written() {
    let path = corpus("safetensors").join("mixed.safetensors");
    let c = Checkpoint::open(&path).unwrap();
    assert_eq!(c.kind(), CheckpointKind::Safetensors);
    assert_eq!(c.safetensors_metadata().unwrap()["format"], "pt");
    let of = |name: &str| c.tensor(name).unwrap();
    assert_eq!((of("a").shape.as_slice(), c.format(of("a")).unwrap()), (&[2, 3][..], Format::F32));
    let expected: Vec<u8> = (0..6).flat_map(|i| (i as f32).to_le_bytes()).collect();
    assert_eq!(c.bytes(of("a")), expected);
    assert_eq!(c.format(of("b")).unwrap(), Format::F16);
    assert_eq!((&of("blocks").dtype, c.bytes(of("blocks"))), (&StoredType::U8, &[0, 1, 2, 3, 4, 5, 6, 7][..]));
    assert_eq!((of("empty").shape.as_slice(), c.bytes(of("empty")).len()), (&[0, 4][..], 0));
    assert_eq!((of("scalar").shape.len(), c.bytes(of("scalar"))), (0, &7f32.to_le_bytes()[..]));
    let error = c.format(of("ids")).unwrap_err().to_string();
    assert!(error.contains("\"ids\"") && error.contains("I64"), "{error}");

    let c = Checkpoint::open(corpus("safetensors").join("fp8_bf16.safetensors")).unwrap();
    assert!(
        matches!(c.format(c.tensor("q").unwrap()), Err(ModelError::UnsupportedFormat { dtype, .. }) if dtype == "F8_E4M3")
    );
    assert_eq!(c.format(c.tensor("w").unwrap()).unwrap().info().name, "bf16");
    let nothing = SafeTensors::parse(&std::fs::read(corpus("safetensors").join("nothing.safetensors")).unwrap(), "n");
    assert!(nothing.unwrap().tensors().is_empty());
}

#[test]
fn tiny_models_open_as_folders() {
    for path in tiny::NAMES.iter().map(|name| tiny::model(name)) {
        let c = Checkpoint::open(&path).unwrap();
        assert!(c.tensors().len() > 10, "{}", path.display());
        assert!(c.tensors().all(|t| c.format(t).is_ok() && c.bytes(t).len() == t.elements() * 4));
        assert_eq!(c.folder(), Some(path.as_path()));
    }
}

#[test]
fn corpus_replays() {
    corpus_files("safetensors").iter().for_each(|(_, bytes)| body::run(bytes));
}

#[test]
fn truncations_and_mutations_are_survived() {
    for (name, original) in corpus_files("safetensors") {
        for cut in 0..original.len() {
            assert!(SafeTensors::parse(&original[..cut], &name).is_err(), "{name} cut at {cut}");
        }
        let mut bytes = original.clone();
        for i in 0..bytes.len() {
            for value in 0..=255 {
                bytes[i] = value;
                let ((), peak) = peak_of(|| body::run(&bytes));
                assert!(peak <= 64 * bytes.len() + 65_536, "{name} byte {i} = {value}: {peak} bytes allocated");
            }
            bytes[i] = original[i];
        }
    }
}

#[test]
fn header_lengths_that_lie_are_refused() {
    let mut bytes = file("{}", 0);
    bytes[..8].copy_from_slice(&100_000_001u64.to_le_bytes());
    assert_eq!(flaw(&bytes), ("header length".into(), 0, Flaw::OverBudget { found: 100_000_001, limit: 100_000_000 }));
    bytes[..8].copy_from_slice(&3u64.to_le_bytes());
    assert_eq!(flaw(&bytes), ("header".into(), 8, Flaw::Truncated { needed: 3, left: 2 }));
    assert_eq!(flaw(&[0; 7]).2, Flaw::Truncated { needed: 8, left: 7 });
}

#[test]
fn header_mistakes_have_their_place() {
    let (field, offset, f) = flaw(&file("{\"a\": nonsense}", 0));
    assert!(field == "header" && (14..=16).contains(&offset) && matches!(f, Flaw::Header { .. }), "{offset}");
    let (_, offset, _) = flaw(&file("{\n\n  \"a\": 5}", 0));
    assert!((8 + 9..=8 + 11).contains(&offset), "{offset}");
    for (header, said) in [
        (
            r#"{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}"#,
            "second time",
        ),
        (r#"{"a":{"dtype":"F32","shape":[1,1,1,1,1,1,1,1,1],"data_offsets":[0,4]}}"#, "at most 8 dimensions"),
        (r#"{"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}}"#, "-1"),
        (r#"{"a":{"dtype":"F32","shape":[1]}}"#, "data_offsets"),
        (r#"{"__metadata__":{"k":"v","k":"w"}}"#, "second time"),
        (r#"{"__metadata__":{"k":1}}"#, "string"),
        (r#"[]"#, "table of tensors"),
    ] {
        let (_, _, f) = flaw(&file(header, 4));
        assert!(matches!(&f, Flaw::Header { why } if why.contains(said)), "{header}: {f}");
    }
    let long = format!(r#"{{"{}":{{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}}}"#, "n".repeat(1025));
    assert!(flaw(&file(&long, 4)).2.to_string().contains("1025"));
    // Unknown fields are skipped without recursion, however deep.
    let deep = format!(r#"{{"a":{{"dtype":"F32","shape":[1],"data_offsets":[0,4],"x":{}}}}}"#, "[".repeat(100_000));
    assert!(matches!(flaw(&file(&deep, 4)).2, Flaw::Header { .. }));
}

#[test]
fn misplaced_and_missized_tensors_are_named() {
    let two = |a: &str, b: &str, data| {
        let header = format!(
            r#"{{"a":{{"dtype":"F32","shape":[2],"data_offsets":{a}}},"b":{{"dtype":"F32","shape":[2],"data_offsets":{b}}}}}"#
        );
        let (field, _, f) = flaw(&file(&header, data));
        (field, f)
    };
    let (field, f) = two("[0,8]", "[4,12]", 12);
    assert!(field == "tensor \"b\"" && matches!(&f, Flaw::Overlap { other, .. } if other == "a"), "{field} {f}");
    assert!(matches!(two("[0,8]", "[12,20]", 20).1, Flaw::Hole { .. }));
    assert!(matches!(two("[4,12]", "[12,20]", 20).1, Flaw::Hole { .. }), "the first tensor starts the data");
    assert!(matches!(two("[0,8]", "[8,16]", 20).1, Flaw::SizeMismatch { .. }), "nothing may follow the last");
    assert!(matches!(two("[0,8]", "[8,16]", 15).1, Flaw::PastEnd { .. }));
    assert!(matches!(two("[0,8]", "[16,8]", 16).1, Flaw::Unexpected { .. }));
    assert_eq!(two("[0,12]", "[12,20]", 20).1, Flaw::SizeMismatch { found: 12, expected: 8 });
    assert!(matches!(two("[0,8]", "[18446744073709551608,18446744073709551615]", 16).1, Flaw::PastEnd { .. }));
    let one = |dtype: &str, shape: &str, end: u64| {
        flaw(&file(&format!(r#"{{"t":{{"dtype":"{dtype}","shape":{shape},"data_offsets":[0,{end}]}}}}"#), end as usize))
            .2
    };
    assert!(matches!(one("F32", "[9223372036854775807,4]", 8), Flaw::SizeOverflow { .. }));
    assert!(matches!(one("F32", "[4611686018427387904]", 0), Flaw::SizeOverflow { .. }));
    assert!(matches!(one("F4", "[3]", 1), Flaw::PartialBlock { .. }));
}

#[test]
fn types_of_the_future_are_listed_and_refused_on_use() {
    let s = ScratchFolder::new("future");
    let header = r#"{"t":{"dtype":"F3_E1M1","shape":[5],"data_offsets":[0,2]}}"#;
    let c = Checkpoint::open(s.write("m.safetensors", &file(header, 2))).unwrap();
    assert!(c.format(c.tensor("t").unwrap()).unwrap_err().to_string().contains("F3_E1M1"));
}

const ONE: &str = r#"{"T":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}"#;

#[test]
fn shards_open_together_from_index_folder_or_shard() {
    let s = ScratchFolder::new("st-shards");
    s.write("model-00001-of-00002.safetensors", &file(&ONE.replace('T', "a"), 4));
    s.write("model-00002-of-00002.safetensors", &file(&ONE.replace('T', "b"), 4));
    let index = r#"{"metadata":{"total_size":8},"weight_map":{"b":"model-00002-of-00002.safetensors","a":"model-00001-of-00002.safetensors"}}"#;
    s.write("model.safetensors.index.json", index.as_bytes());
    for path in [s.0.clone(), s.0.join("model-00002-of-00002.safetensors")] {
        let c = Checkpoint::open(path).unwrap();
        let names: Vec<_> = c.tensors().map(|t| (t.name.as_str(), t.file)).collect();
        assert_eq!(names, [("a", 0), ("b", 1)]);
        assert_eq!(c.total_bytes(), 2 * file(ONE, 4).len() as u64);
    }
    std::fs::remove_file(s.0.join("model-00002-of-00002.safetensors")).unwrap();
    let error = Checkpoint::open(&s.0).unwrap_err();
    assert!(
        matches!(&error, ModelError::MissingShard { path, .. } if path.ends_with("model-00002-of-00002.safetensors"))
    );
    s.write("model-00002-of-00002.safetensors", &file(&ONE.replace('T', "other"), 4));
    let error = Checkpoint::open(&s.0).unwrap_err();
    assert!(matches!(&error, ModelError::MissingTensor { tensor, .. } if tensor == "b"), "{error}");
}

#[test]
fn indices_that_lie_are_refused() {
    for (index, said) in [
        ("{", "line 1"),
        ("[]", "line 1"),
        (r#"{"metadata":{}}"#, "weight_map"),
        (r#"{"weight_map":{}}"#, "shards"),
        (r#"{"weight_map":{"a":5}}"#, "string"),
        (r#"{"weight_map":{"a":"../secret.safetensors"}}"#, "plain file names"),
        (r#"{"weight_map":{"a":"/etc/passwd"}}"#, "plain file names"),
        (r#"{"weight_map":{"a":""}}"#, "plain file names"),
    ] {
        let error = ShardIndex::parse(index.as_bytes(), "index.json").unwrap_err().to_string();
        assert!(error.contains(said) && error.contains("index.json"), "{index}: {error}");
    }
}
