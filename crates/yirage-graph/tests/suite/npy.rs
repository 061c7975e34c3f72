//! .npy files: what NumPy writes is read, what is written NumPy reads, what is broken or does not fit is told.

use yirage_graph::{Npy, NpyError, npy};
use yirage_ir::rng::Rng;
use yirage_ir::{DType, Format, Type};

/// A file of version `version` whose dict is `dict`.
fn file(version: u8, dict: &str, elements: &[u8]) -> Vec<u8> {
    let length = match version {
        1 => (dict.len() as u16).to_le_bytes().to_vec(),
        _ => (dict.len() as u32).to_le_bytes().to_vec(),
    };
    [b"\x93NUMPY", &[version, 0][..], &length, dict.as_bytes(), elements].concat()
}

fn floats(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|x| x.to_le_bytes()).collect()
}

fn f32s(sizes: &[u32]) -> Type {
    Type::new(DType::F32, sizes.iter().copied())
}

#[test]
fn every_version_and_order_is_read() {
    let c = floats(&[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
    let fortran = floats(&[0.0, 3.0, 1.0, 4.0, 2.0, 5.0]);
    for version in 1..=3 {
        let bytes = file(version, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n", &c);
        let array = Npy::parse(&bytes).unwrap();
        assert_eq!(array.memory(&f32s(&[2, 3])).unwrap(), (c.clone(), None));
        let column = Type { strides: Some(vec![1, 2]), ..f32s(&[2, 3]) };
        assert_eq!(array.memory(&column).unwrap().0, fortran);
        let bytes = file(version, "{\"shape\":(2,3),\"fortran_order\":True,\"descr\":\"<f4\"}", &fortran);
        let array = Npy::parse(&bytes).unwrap();
        assert_eq!(array.memory(&f32s(&[2, 3])).unwrap().0, c);
        assert_eq!(array.memory(&column).unwrap().0, fortran);
        let gaps = Type { strides: Some(vec![8, 2]), ..f32s(&[2, 3]) };
        let spread = floats(&[0.0, 0.0, 1.0, 0.0, 2.0, 0.0, 0.0, 0.0, 3.0, 0.0, 4.0, 0.0, 5.0]);
        assert_eq!(array.memory(&gaps).unwrap().0, spread);
    }
}

#[test]
fn every_type_goes_out_and_comes_back() {
    let types = [("f32", 4), ("f16", 2), ("bf16", 2), ("i32", 4), ("u32", 4), ("bool", 1)];
    for (name, size) in types {
        let dtype = DType::parse(name).unwrap();
        for sizes in [&[3u32, 2][..], &[5], &[], &[0, 4], &[2, 1, 2, 1]] {
            let ty = Type::new(dtype, sizes.iter().copied());
            let elements: Vec<u8> = (0..sizes.iter().product::<u32>() * size).map(|i| (i % 2) as u8).collect();
            let (bytes, said) = npy::write(&ty, &elements).unwrap();
            assert_eq!((bytes.len() - elements.len()) % 64, 0, "elements are aligned");
            let (back, note) = Npy::parse(&bytes).unwrap().memory(&ty).unwrap();
            assert_eq!(back, elements, "{ty}");
            assert_eq!((said.is_some(), note.is_some()), (name == "bf16", name == "bf16"));
        }
    }
}

/// The bytes of `np.save` of NumPy 2.4 for `np.arange(3, dtype=np.float32)`.
#[test]
fn the_header_is_numpys_own() {
    let (bytes, _) = npy::write(&f32s(&[3]), &floats(&[0.0, 1.0, 2.0])).unwrap();
    let dict = "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }";
    let numpys = format!("{dict:<117}\n");
    assert_eq!(bytes, file(1, &numpys, &floats(&[0.0, 1.0, 2.0])));
}

fn refused(bytes: &[u8], ty: &Type, wanted: &str) {
    let error = Npy::parse(bytes).and_then(|array| array.memory(ty).map(drop)).unwrap_err().to_string();
    assert!(error.contains(wanted), "`{wanted}` is not in: {error}");
}

#[test]
fn what_does_not_fit_is_told_with_both_sides() {
    let with = |descr: &str, shape: &str, bytes: usize| {
        let dict = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}");
        file(1, &dict, &vec![2; bytes])
    };
    let ty = f32s(&[2, 3]);
    refused(&with("<f8", "(2, 3)", 48), &ty, "f32[2, 3] wanted, the array is `<f8`: write it with .astype(np.float32)");
    refused(&with(">f4", "(2, 3)", 24), &ty, "`>f4`");
    refused(&with("<V2", "(2, 3)", 12), &ty, "`<V2`");
    refused(&with("<f4", "(3, 2)", 24), &ty, "f32[2, 3] wanted, the array has the shape [3, 2]");
    refused(&with("<f4", "(6,)", 24), &ty, "shape [6]");
    refused(&with("<f4", "(2, 3)", 23), &ty, "23 bytes of elements, <f4 of shape [2, 3] needs 24");
    refused(&with("<f4", "(2, 3)", 28), &ty, "28 bytes");
    refused(&with("|b1", "(2, 3)", 6), &Type::new(DType::Bool, [2u32, 3]), "element 0 is the byte 2");
    refused(&with("<V2", "(2, 3)", 12), &Type::new(DType::Stored(Format::F16), [2u32, 3]), ".astype(np.float16)");
    refused(&with("|i1", "(32,)", 32), &Type::new(DType::Stored(Format::Q4_0), [32u32]), "come from .npy files");
    assert!(matches!(npy::write(&f32s(&[2]), &[0; 4]), Err(NpyError::Length { given: 4, wanted: 8, .. })));
    assert!(npy::write(&Type::new(DType::Stored(Format::Q4_0), [32u32]), &[]).is_err());
}

#[test]
fn gaps_that_no_memory_has_are_told() {
    let ty = Type { strides: Some(vec![1 << 31, 1]), ..f32s(&[1 << 15, 1]) };
    let bytes = file(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (32768, 1)}", &vec![0; 1 << 17]);
    refused(&bytes, &ty, "bytes with its gaps");
}

#[test]
fn broken_files_are_told() {
    let ty = f32s(&[2]);
    let good = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }";
    for (bytes, wanted) in [
        (b"".to_vec(), "first bytes"),
        (b"PK\x03\x04".to_vec(), "first bytes"),
        (b"\x93NUMPY".to_vec(), "ends within"),
        (b"\x93NUMPY\x01\x00\x10".to_vec(), "ends within"),
        (b"\x93NUMPY\x01\x00\x10\x00{}".to_vec(), "ends within"),
        (file(4, good, &[]), "version 4.0"),
        (b"\x93NUMPY\x02\x00\xff\xff\xff\xff".to_vec(), "65536 are the most"),
        (file(1, "{'descr': '<f4', 'fortran_order': False}", &[]), "`shape` is missing"),
        (file(1, "{'shape': (1,), 'shape': (1,)}", &[]), "`shape` stands twice"),
        (file(1, "{'shape': (-1,)}", &[]), "a size wanted"),
        (file(1, "{'shape': (99999999999999999999999,)}", &[]), "a size wanted"),
        (file(1, "{'shape': 'no'}", &[]), "of another type"),
        (file(1, "{'descr': [('a', '<f4')], }", &[]), "fields"),
        (file(1, "{'descr': '<f\\x34'}", &[]), "escape"),
        (file(1, "{'descr': '<f4", &[]), "in quotes"),
        (file(1, "[1]", &[]), "`{` wanted"),
        (file(1, &format!("{good} more"), &[]), "follows"),
        (file(1, "{'descr' '<f4'}", &[]), "`:` wanted"),
    ] {
        refused(&bytes, &ty, wanted);
    }
    let huge = file(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (4294967295, 4294967295), }", &[]);
    refused(&huge, &f32s(&[u32::MAX, u32::MAX]), "needs");
}

#[test]
fn damaged_files_never_break_the_reader() {
    let mut rng = Rng::new(11);
    let good = npy::write(&f32s(&[2, 3]), &floats(&[1.0; 6])).unwrap().0;
    for _ in 0..20_000 {
        let mut bytes = good.clone();
        for _ in 0..1 + rng.below(4) {
            let at = rng.index(bytes.len());
            match rng.below(3) {
                0 => bytes[at] = rng.next_u64() as u8,
                1 => bytes.truncate(at.max(1)),
                _ => bytes.insert(at, b"'(),:{}0159TF<"[rng.index(14)]),
            }
        }
        if let Ok(array) = Npy::parse(&bytes) {
            let _read_or_refused = array.memory(&f32s(&[2, 3]));
        }
    }
}
