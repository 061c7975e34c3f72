//! GGUF formats that are decoded when a model is loaded, against golden files made by an independent implementation
//! (`tools/oracle/quant_golden.py`): bit for bit, in whatever format they are computed with.

use std::path::Path;
use yirage_ir::Format;
use yirage_model::weights::{WeightBinding, WeightSource, WeightView, materialise};
use yirage_model::{Checkpoint, TensorInfo};
use yirage_testkit::gguf::GgufWriter;
use yirage_testkit::scratch::ScratchFolder;

/// Name, number, weights and bytes of a block, the format of ordinary blocks, and whether the golden file's extreme ones
/// (the first eight) fit it too.
const FORMATS: &[(&str, u32, u64, usize, Format, bool)] = &[
    ("iq2_xxs", 16, 256, 66, Format::F32, true),
    ("iq2_xs", 17, 256, 74, Format::F32, true),
    ("iq3_xxs", 18, 256, 98, Format::Q6_K, false),
    ("iq1_s", 19, 256, 50, Format::Q6_K, false),
    ("iq3_s", 21, 256, 110, Format::Q6_K, true),
    ("iq2_s", 22, 256, 82, Format::F32, true),
    ("iq4_xs", 23, 256, 136, Format::F32, true),
    ("iq1_m", 29, 256, 56, Format::Q6_K, false),
    ("tq1_0", 34, 256, 54, Format::Q4_0, true),
    ("tq2_0", 35, 256, 66, Format::Q4_0, true),
    ("nvfp4", 40, 64, 36, Format::BF16, true),
    ("q1_0", 41, 128, 18, Format::Q4_0, true),
];

fn file(name: &str) -> Vec<u8> {
    std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/decoded").join(name)).unwrap()
}

fn decoded(bytes: &[u8], format: Format) -> Vec<u32> {
    let info = format.info();
    let mut values = vec![0f32; bytes.len() / info.bytes * info.block];
    (info.decode)(bytes, &mut values);
    values.into_iter().map(f32::to_bits).collect()
}

/// A file with the blocks as the tensor `w`, and the folder that it is gone with.
fn checkpoint(ty: u32, width: u64, blocks: &[u8], bytes: usize) -> (ScratchFolder, Checkpoint) {
    let rows = (blocks.len() / bytes) as u64;
    let mut writer = GgufWriter::new().tensor("w", &[width, rows], ty, 0);
    writer.data = blocks.to_vec();
    let folder = ScratchFolder::new("decoded_ggml");
    let path = folder.write("w.gguf", &writer.bytes());
    (folder, Checkpoint::open(path).unwrap())
}

fn info(c: &Checkpoint) -> &TensorInfo {
    c.tensor("w").unwrap()
}

#[test]
fn every_value_is_the_references() {
    for &(name, ty, width, bytes, ordinary, extremes) in FORMATS {
        let blocks = file(&format!("{name}.blocks"));
        let want: Vec<u32> = file(&format!("{name}.values"))
            .chunks_exact(4)
            .map(|b| u32::from_le_bytes(b.try_into().unwrap()))
            .collect();
        for skipped in [0, 8] {
            let (_folder, c) = checkpoint(ty, width, &blocks[skipped * bytes..], bytes);
            let tensor = info(&c);
            let format = c.format(tensor).unwrap();
            let expected = if skipped == 0 && !extremes { Format::F32 } else { ordinary };
            assert_eq!(format, expected, "{name} without {skipped} blocks");
            let mut scratch = Vec::new();
            let got = decoded(c.elements(tensor, 0..tensor.elements(), &mut scratch).unwrap(), format);
            let want = &want[skipped * width as usize..];
            assert_eq!(got.len(), want.len(), "{name}");
            for (i, (g, w)) in got.iter().zip(want).enumerate() {
                assert_eq!(g, w, "{name} value {i}: {} is not {}", f32::from_bits(*g), f32::from_bits(*w));
            }
        }
    }
}

#[test]
fn parts_of_a_tensor_are_what_the_whole_says() {
    for &(name, ty, width, bytes, ..) in FORMATS {
        let (_folder, c) = checkpoint(ty, width, &file(&format!("{name}.blocks")), bytes);
        let tensor = info(&c);
        let format = c.format(tensor).unwrap();
        let (block, rows, width) = (format.info().block, tensor.shape[0], width as usize);
        let mut scratch = Vec::new();
        let whole = c.elements(tensor, 0..tensor.elements(), &mut scratch).unwrap().to_vec();
        // A piece that begins and ends inside stored blocks, where the format's own blocks let it.
        let piece = width - block..width + block;
        let of = |n: usize| format.info().row_bytes(n);
        assert_eq!(c.elements(tensor, piece.clone(), &mut scratch).unwrap(), &whole[of(piece.start)..of(piece.end)]);
        // Rows in another order, as a weight whose heads are interleaved takes them.
        let view = |row| WeightView::dense("w", row * width, vec![1, width]);
        let swapped = WeightBinding {
            name: "test".into(),
            format,
            shape: vec![2, width],
            source: WeightSource::Stored(vec![view(rows - 1), view(3)]),
        };
        let got = materialise(&c, &swapped, 0..2, &mut scratch).unwrap();
        let row = |r: usize| &whole[of(r * width)..of((r + 1) * width)];
        assert_eq!(got, [row(rows - 1), row(3)].concat(), "{name}");
    }
}

#[test]
fn what_is_decoded_is_told_with_its_bytes() {
    let (_folder, c) = checkpoint(23, 256, &file("iq4_xs.blocks"), 136);
    let told = c.decoded_tensors();
    assert_eq!(told.len(), 1);
    assert_eq!((told[0].tensors, told[0].stored_bytes, told[0].bytes), (1, 24 * 136, 24 * 1024));
    let want = "IQ4_XS: 1 tensors, 3264 bytes in the file, are f32, 24576 bytes in memory";
    assert_eq!(told[0].to_string(), want);
    assert_eq!(c.stored_bytes(info(&c)), 24 * 136);
    assert_eq!(c.bytes(info(&c)).len(), 24 * 136);
}

#[test]
fn scales_beside_nvfp4_weights_belong_to_them() {
    const NVFP4: u32 = 40;
    let blocks = file("nvfp4.blocks");
    let values = file("nvfp4.values");
    let open = |dims: &[u64], scales: &[f32]| {
        let mut writer = GgufWriter::new().tensor("a.weight", dims, NVFP4, 0);
        writer.data = blocks.clone();
        let writer = writer.f32s("a.scale", &[scales.len()], scales).f32s("a.input_scale", &[1], &[3.0]);
        let folder = ScratchFolder::new("nvfp4_scales");
        let path = folder.write("w.gguf", &writer.f32s("b.weight", &[1], &[5.0]).bytes());
        (folder, Checkpoint::open(path))
    };
    for (dims, scales) in [(&[64, 24][..], &[0.3f32][..]), (&[64, 8, 3], &[0.3, 0.7, -1.1])] {
        let (_folder, c) = open(dims, scales);
        let c = c.unwrap();
        let names: Vec<&str> = c.tensors().map(|t| t.name.as_str()).collect();
        assert_eq!(names, ["a.weight", "b.weight"]);
        let tensor = c.tensor("a.weight").unwrap();
        assert_eq!(c.format(tensor).unwrap(), Format::F32);
        let mut scratch = Vec::new();
        let got = decoded(c.elements(tensor, 5..1536, &mut scratch).unwrap(), Format::F32);
        for (i, got) in (5..1536).zip(got) {
            let value = f32::from_le_bytes(values[4 * i..][..4].try_into().unwrap());
            assert_eq!(got, (value * scales[i / (1536 / scales.len())]).to_bits(), "value {i}");
        }
    }
    let (_folder, refused) = open(&[64, 8, 3], &[0.3, 0.7]);
    let error = refused.unwrap_err().to_string();
    assert!(error.contains("a.scale") && error.contains("one f32, or 3") && error.contains("[2]"), "{error}");
}

#[test]
fn parts_of_a_weight_that_are_decoded_differently_are_all_f32() {
    let (blocks, bytes) = (file("iq3_xxs.blocks"), 98);
    let values = file("iq3_xxs.values");
    let mut writer = GgufWriter::new().tensor("a", &[256, 4], 18, 0).tensor("b", &[256, 4], 18, 416);
    writer.data = [&blocks[8 * bytes..12 * bytes], &[0; 24], &blocks[4 * bytes..8 * bytes]].concat();
    let folder = ScratchFolder::new("two_formats");
    let c = Checkpoint::open(folder.write("w.gguf", &writer.bytes())).unwrap();
    let formats = ["a", "b"].map(|name| c.format(c.tensor(name).unwrap()).unwrap());
    assert_eq!(formats, [Format::Q6_K, Format::F32]);
    let source = WeightSource::Stored(["a", "b"].map(|name| WeightView::dense(name, 0, vec![4, 256])).to_vec());
    let binding = WeightBinding { name: "test".into(), format: Format::F32, shape: vec![8, 256], source };
    let mut scratch = Vec::new();
    let got = materialise(&c, &binding, 0..8, &mut scratch).unwrap();
    assert_eq!(got, [&values[8 * 1024..12 * 1024], &values[4 * 1024..8 * 1024]].concat());
    let error = WeightBinding { format: Format::Q6_K, ..binding }.check(&c).unwrap_err().to_string();
    assert!(error.contains("one format") && error.contains("f32 in \"b\""), "{error}");
}
