//! GGUF files that are cut, mutated, or lie: a typed error each time, never a panic, never memory beyond the file's
//! own size times a small factor.

#[path = "../../../../fuzz/bodies/gguf.rs"]
mod body;

use crate::alloc::peak_of;
use crate::corpus::corpus_files;
use yirage_model::flaw::Flaw;
use yirage_model::gguf::Gguf;
use yirage_model::{Checkpoint, ModelError, limits};
use yirage_testkit::gguf::{GgufWriter, string};
use yirage_testkit::scratch::ScratchFolder;

/// A few bytes may state as many layers as the limit allows, and some values are lists of one a layer.
const PER_LAYER_LISTS: usize = 256 * limits::LAYERS as usize;

fn flaw(bytes: &[u8]) -> (String, u64, Flaw) {
    match Gguf::parse(bytes, "hostile.gguf") {
        Err(ModelError::Corrupt(c)) => {
            assert!(c.to_string().contains("hostile.gguf"), "{c}");
            (c.field.clone(), c.offset, c.flaw.clone())
        }
        Err(other) => panic!("another error: {other}"),
        Ok(_) => panic!("accepted"),
    }
}

fn valid() -> GgufWriter {
    GgufWriter::new()
        .str("general.architecture", "llama")
        .array("names", 8, 2, &[string(b"one"), string("zwölf".as_bytes())].concat())
        .array("nested", 9, 1, &[&4u32.to_le_bytes()[..], &2u64.to_le_bytes(), &[1; 8]].concat())
        .u32("llama.block_count", 2)
        .tensor("a", &[4, 2], 0, 0)
        .tensor("b", &[32], 8, 32)
        .data(32 + 34)
}

#[test]
fn the_base_of_the_mutations_is_valid() {
    let g = Gguf::parse(&valid().bytes(), "valid").unwrap();
    assert_eq!(g.tensors()[0].shape, [2, 4]);
    assert_eq!(g.metadata().len(), 4);
}

#[test]
fn corpus_replays() {
    corpus_files("gguf").iter().for_each(|(_, bytes)| body::run(bytes));
}

#[test]
fn every_truncation_is_an_error_with_its_place() {
    let bytes = valid().bytes();
    for cut in 0..bytes.len() {
        let (field, offset, _) = flaw(&bytes[..cut]);
        assert!(!field.is_empty() && offset <= bytes.len() as u64, "cut at {cut}: {field} at {offset}");
    }
    for (name, bytes) in corpus_files("gguf") {
        (0..bytes.len()).for_each(|cut| body::run(&bytes[..cut]));
        assert!(Gguf::parse(&bytes[..bytes.len() / 2], &name).is_err());
    }
}

#[test]
fn every_single_byte_mutation_is_survived() {
    let original = valid().bytes();
    let mut bytes = original.clone();
    for i in 0..bytes.len() {
        for value in 0..=255 {
            bytes[i] = value;
            let ((), peak) = peak_of(|| body::run(&bytes));
            assert!(peak <= 64 * bytes.len() + PER_LAYER_LISTS, "byte {i} = {value}: {peak} bytes allocated");
        }
        bytes[i] = original[i];
    }
}

#[test]
fn mutations_of_the_seeds_are_survived() {
    for (name, original) in corpus_files("gguf") {
        let mut bytes = original.clone();
        for i in 0..bytes.len() {
            for value in [0, 1, 0x7f, 0x80, 0xff, original[i] ^ 1, original[i] ^ 0x40, original[i].wrapping_add(1)] {
                bytes[i] = value;
                let ((), peak) = peak_of(|| body::run(&bytes));
                assert!(
                    peak <= 64 * bytes.len() + PER_LAYER_LISTS,
                    "{name} byte {i} = {value}: {peak} bytes allocated"
                );
            }
            bytes[i] = original[i];
        }
    }
}

#[test]
fn lying_counts_allocate_nothing() {
    for lie in [100, 65_536, 1 << 20, u64::MAX] {
        for bytes in [
            GgufWriter { lie_entries: Some(lie), ..valid() }.bytes(),
            GgufWriter { lie_tensors: Some(lie), ..valid() }.bytes(),
            GgufWriter::new().array("x", 4, lie, &[0; 64]).bytes(),
            GgufWriter::new().array("x", 8, lie, &[0; 64]).bytes(),
            GgufWriter::new().array("x", 9, lie, &[0; 64]).bytes(),
            GgufWriter::new().raw("x", 8, &[&lie.to_le_bytes()[..], &[0; 64]].concat()).bytes(),
        ] {
            let (result, peak) = peak_of(|| Gguf::parse(&bytes, "lie"));
            assert!(result.is_err(), "{lie}");
            assert!(peak < 64 * bytes.len(), "{lie}: {peak} bytes allocated for {}", bytes.len());
        }
    }
}

#[test]
fn magic_version_and_byte_order() {
    let mut bytes = valid().bytes();
    bytes[0] = b'X';
    assert!(matches!(flaw(&bytes), (_, 0, Flaw::Magic { .. })));
    bytes[..4].copy_from_slice(b"FUGG");
    assert_eq!(flaw(&bytes).2, Flaw::BigEndian);
    for (version, expected) in [(1, Flaw::Version { found: 1 }), (4, Flaw::Version { found: 4 })] {
        assert_eq!(flaw(&GgufWriter { version, ..valid() }.bytes()), ("version".into(), 4, expected));
    }
    assert_eq!(flaw(&GgufWriter { version: 3 << 24, ..valid() }.bytes()).2, Flaw::BigEndian);
}

#[test]
fn duplicates_are_named() {
    let (field, offset, f) = flaw(&GgufWriter::new().u32("twice", 1).u32("twice", 2).bytes());
    assert_eq!((field.as_str(), offset, f), ("twice", 24 + 8 + 5 + 4 + 4, Flaw::Duplicate));
    let (field, _, f) = flaw(&GgufWriter::new().tensor("t", &[4], 0, 0).tensor("t", &[4], 0, 32).data(64).bytes());
    assert_eq!((field.as_str(), f), ("tensor \"t\"", Flaw::Duplicate));
}

#[test]
fn misplaced_tensors_are_named() {
    let base = || GgufWriter::new().tensor("first", &[16], 0, 0);
    let overlap = flaw(&base().tensor("second", &[4], 0, 32).data(64).bytes());
    assert_eq!(overlap.0, "tensor \"second\"");
    assert!(matches!(&overlap.2, Flaw::Overlap { other, .. } if other == "first"), "{overlap:?}");
    let same_place = flaw(&GgufWriter::new().tensor("x", &[4], 999, 0).tensor("y", &[4], 0, 0).data(64).bytes());
    assert!(matches!(same_place.2, Flaw::Overlap { .. }), "unknown sizes overlap too");
    let misaligned = flaw(&base().tensor("second", &[4], 0, 68).data(128).bytes());
    assert_eq!(misaligned.2, Flaw::Misaligned { found: 68, alignment: 32 });
    let past = flaw(&base().tensor("second", &[4], 0, 64).data(79).bytes());
    assert!(matches!(past.2, Flaw::PastEnd { start, end, len } if end == start + 16 && len == end - 1), "{past:?}");
    let far = flaw(&base().tensor("second", &[4], 0, u64::MAX - 31).data(79).bytes());
    assert!(matches!(far.2, Flaw::PastEnd { .. }));
}

#[test]
fn impossible_shapes_are_named() {
    let one = |dims: &[u64], ty| flaw(&GgufWriter::new().tensor("t", dims, ty, 0).data(64).bytes()).2;
    assert_eq!(one(&[], 0), Flaw::Zero);
    assert_eq!(one(&[4, 0], 0), Flaw::Zero);
    assert_eq!(one(&[1; 5], 0), Flaw::OverBudget { found: 5, limit: 4 });
    assert!(matches!(one(&[33], 8), Flaw::PartialBlock { row: 33, block: 32, .. }));
    assert!(matches!(one(&[128, 2], 12), Flaw::PartialBlock { row: 128, block: 256, .. }));
    assert!(matches!(one(&[u64::MAX, 2], 0), Flaw::SizeOverflow { .. }));
    assert!(matches!(one(&[1 << 62], 0), Flaw::SizeOverflow { .. }));
    assert!(matches!(one(&[1 << 40], 0), Flaw::PastEnd { .. }));
}

#[test]
fn bad_values_are_named_with_their_place() {
    let (field, offset, f) = flaw(&GgufWriter::new().raw("k", 13, &[0; 8]).bytes());
    assert_eq!((field.as_str(), offset, f), ("k", 24 + 9, Flaw::ValueType { found: 13 }));
    let (_, offset, f) = flaw(&GgufWriter::new().raw("k", 7, &[2]).bytes());
    assert_eq!((offset, f), (24 + 9 + 4, Flaw::Bool { found: 2 }));
    let (_, offset, f) = flaw(&GgufWriter::new().array("k", 7, 3, &[0, 1, 9]).bytes());
    assert_eq!((offset, f), (24 + 9 + 4 + 12 + 2, Flaw::Bool { found: 9 }));
    let (_, offset, f) = flaw(&GgufWriter::new().raw("k", 8, &string(b"ab\xffc")).bytes());
    assert_eq!((offset, f), (24 + 9 + 4 + 8 + 2, Flaw::Utf8));
    // The third string is broken at its second byte.
    let strings = [string(b"ab"), string(b""), string(b"c\xff")].concat();
    let (_, offset, f) = flaw(&GgufWriter::new().array("k", 8, 3, &strings).bytes());
    assert_eq!((offset, f), (24 + 9 + 4 + 12 + 10 + 8 + 8 + 1, Flaw::Utf8));
    // Two halves of one character are not two strings.
    let halves = [string(b"\xc3"), string(b"\xbc")].concat();
    assert_eq!(flaw(&GgufWriter::new().array("k", 8, 2, &halves).bytes()).2, Flaw::Utf8);
}

#[test]
fn alignments_must_be_powers_of_two() {
    for bad in [0, 3, 48, 1 << 20] {
        let f = flaw(&GgufWriter::new().u32("general.alignment", bad).bytes()).2;
        assert_eq!(f, Flaw::Alignment { found: bad.into() });
    }
    assert!(matches!(flaw(&GgufWriter::new().str("general.alignment", "32").bytes()).2, Flaw::Unexpected { .. }));
    let eight = GgufWriter { alignment: 8, ..GgufWriter::new().u32("general.alignment", 8) };
    let g = Gguf::parse(&eight.tensor("t", &[1], 0, 8).data(12).bytes(), "eight").unwrap();
    assert_eq!(g.tensors()[0].range.start, g.data_offset() + 8);
}

#[test]
fn nesting_is_bounded_in_depth_and_number() {
    let mut inner = [&0u32.to_le_bytes()[..], &0u64.to_le_bytes()].concat();
    for _ in 1..limits::GGUF_ARRAY_DEPTH - 1 {
        inner = [&9u32.to_le_bytes()[..], &1u64.to_le_bytes(), &inner].concat();
    }
    assert!(Gguf::parse(&GgufWriter::new().array("k", 9, 1, &inner).bytes(), "deepest").is_ok());
    inner = [&9u32.to_le_bytes()[..], &1u64.to_le_bytes(), &inner].concat();
    let (field, _, f) = flaw(&GgufWriter::new().array("k", 9, 1, &inner).bytes());
    assert!(field.contains("depth") && matches!(f, Flaw::OverBudget { .. }));
    let many = limits::GGUF_NESTED_ARRAYS + 1;
    let (_, _, f) = flaw(&GgufWriter::new().array("k", 9, many, &vec![0; 12 * many as usize]).bytes());
    assert_eq!(f, Flaw::OverBudget { found: many, limit: many - 1 });
}

#[test]
fn long_names_are_refused() {
    let long = "n".repeat(limits::TENSOR_NAME_BYTES as usize + 1);
    assert!(matches!(flaw(&GgufWriter::new().tensor(&long, &[4], 0, 0).data(16).bytes()).2, Flaw::OverBudget { .. }));
    let key = "k".repeat(limits::GGUF_KEY_BYTES as usize + 1);
    assert!(matches!(flaw(&GgufWriter::new().u32(&key, 0).bytes()).2, Flaw::OverBudget { .. }));
}

fn shard(no: u16, count: u16, total: u32, tensor: &str) -> Vec<u8> {
    let w = GgufWriter::new().str("general.architecture", "llama").u16("split.no", no).u16("split.count", count);
    w.u32("split.tensors.count", total).tensor(tensor, &[4], 0, 0).data(16).bytes()
}

#[test]
fn shards_open_together_from_any_of_them() {
    let s = ScratchFolder::new("shards");
    for no in 0..3 {
        let bytes = shard(no, 3, 3, &format!("t{no}"));
        s.write(&format!("m-{:05}-of-00003.gguf", no + 1), &bytes);
    }
    for name in ["m-00001-of-00003.gguf", "m-00003-of-00003.gguf", ""] {
        let c = Checkpoint::open(s.0.join(name)).unwrap();
        assert_eq!(c.files().len(), 3);
        assert_eq!(
            c.tensors().map(|t| (t.name.as_str(), t.file)).collect::<Vec<_>>(),
            [("t0", 0), ("t1", 1), ("t2", 2)]
        );
        assert_eq!(c.bytes(c.tensor("t2").unwrap()).len(), 16);
    }
    std::fs::remove_file(s.0.join("m-00002-of-00003.gguf")).unwrap();
    let error = Checkpoint::open(s.0.join("m-00003-of-00003.gguf")).unwrap_err();
    assert!(
        matches!(&error, ModelError::MissingShard { path, .. } if path.ends_with("m-00002-of-00003.gguf")),
        "{error}"
    );
}

#[test]
fn shards_that_contradict_each_other_are_refused() {
    let s = ScratchFolder::new("bad-shards");
    let open = |second: &[u8]| {
        s.write("m-00001-of-00002.gguf", &shard(0, 2, 2, "t0"));
        s.write("m-00002-of-00002.gguf", second);
        Checkpoint::open(s.0.join("m-00001-of-00002.gguf"))
    };
    assert!(open(&shard(1, 2, 2, "t1")).is_ok());
    for (second, said) in [
        (shard(0, 2, 2, "t1"), "split.no"),
        (shard(1, 3, 2, "t1"), "split.count"),
        (shard(1, 2, 2, "t0"), "\"t0\""),
        (GgufWriter::new().str("general.architecture", "llama").bytes(), "split.no"),
    ] {
        let error = open(&second).unwrap_err().to_string();
        assert!(error.contains(said), "{error}");
    }
    s.write("m-00001-of-00002.gguf", &shard(0, 2, 5, "t0"));
    s.write("m-00002-of-00002.gguf", &shard(1, 2, 5, "t1"));
    let error = Checkpoint::open(s.0.join("m-00001-of-00002.gguf")).unwrap_err().to_string();
    assert!(error.contains("split.tensors.count") && error.contains('5'), "{error}");
    let renamed = s.write("renamed.gguf", &shard(0, 2, 2, "t0"));
    assert!(Checkpoint::open(renamed).unwrap_err().to_string().contains("-of-00002.gguf"));
}

#[test]
fn what_is_no_model_is_refused_by_name() {
    let s = ScratchFolder::new("no-model");
    for (name, bytes) in [("empty.gguf", &b""[..]), ("text.gguf", b"hello, world"), ("notes.txt", b"hello, world")] {
        let error = Checkpoint::open(s.write(name, bytes)).unwrap_err().to_string();
        assert!(error.contains(name), "{error}");
    }
    let error = Checkpoint::open(s.0.join("absent.gguf")).unwrap_err().to_string();
    assert!(error.contains("absent.gguf"), "{error}");
    let empty = ScratchFolder::new("empty-folder");
    assert!(matches!(Checkpoint::open(&empty.0), Err(ModelError::NotAModel { .. })));
    let unnamed = s.write("model.bin", &valid().bytes());
    assert!(Checkpoint::open(unnamed).is_ok(), "content decides where the name says nothing");
}
