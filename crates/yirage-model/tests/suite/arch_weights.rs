//! Views of stored tensors: rows one by one, borrowing, and what is refused.

#![allow(clippy::print_stderr)]

use crate::arch_support::{load, tiny};
use yirage_ir::Format;
use yirage_model::weights::{WeightBinding, WeightSource, WeightView, materialise};
use yirage_model::{Checkpoint, ModelError};

fn open(kind: &str, name: &str) -> Checkpoint {
    Checkpoint::open(tiny(kind).into_iter().find(|p| p.ends_with(name)).expect("a fixture")).unwrap()
}

fn binding(format: Format, shape: &[usize], views: Vec<WeightView>) -> WeightBinding {
    WeightBinding { name: "test".into(), format, shape: shape.to_vec(), source: WeightSource::Stored(views) }
}

#[test]
fn rows_one_by_one_are_the_rows_of_the_whole() {
    for folder in tiny("safetensors").into_iter().chain(tiny("gguf")) {
        let (checkpoint, model) = load(&folder, 8).unwrap();
        for w in &model.weights {
            let mut scratch = Vec::new();
            let whole = materialise(&checkpoint, w, 0..w.rows(), &mut scratch).unwrap().to_vec();
            assert_eq!(whole.len(), w.rows() * w.row_bytes(), "{}: {}", folder.display(), w.name);
            for r in 0..w.rows() {
                let row = materialise(&checkpoint, w, r..r + 1, &mut scratch).unwrap();
                assert_eq!(row, &whole[r * w.row_bytes()..][..w.row_bytes()], "{} row {r}", w.name);
            }
            assert!(materialise(&checkpoint, w, 0..0, &mut scratch).unwrap().is_empty());
        }
    }
}

#[test]
fn what_lies_side_by_side_is_borrowed() {
    let folder = tiny("safetensors").into_iter().find(|p| p.ends_with("phi3-partial-window")).unwrap();
    let (checkpoint, model) = load(&folder, 8).unwrap();
    let find = |name: &str| model.weights.iter().find(|w| w.name == name).unwrap();
    let mut scratch = Vec::new();
    for name in ["embed.w", "l0.q.w", "l1.v.w", "l1.ffn.up.w", "norm.w"] {
        let w = find(name);
        let bytes = materialise(&checkpoint, w, 0..w.rows(), &mut scratch).unwrap();
        let file = checkpoint.bytes(checkpoint.tensor(w.tensors()[0]).unwrap()).as_ptr_range();
        assert!(file.contains(&bytes.as_ptr()), "{name} was copied");
    }
}

#[test]
fn transposes_gather_the_right_elements() {
    let checkpoint = open("safetensors", "gpt2-scaled");
    let tensor = checkpoint.tensor("transformer.h.0.mlp.c_fc.weight").unwrap();
    let (k, n, stored) = (tensor.shape[0], tensor.shape[1], checkpoint.bytes(tensor));
    let view = WeightView { tensor: tensor.name.clone(), offset: 0, shape: vec![n, k], strides: vec![1, n] };
    let (w, mut scratch) = (binding(Format::BF16, &[n, k], vec![view]), Vec::new());
    let rows = materialise(&checkpoint, &w, 3..5, &mut scratch).unwrap();
    for (i, row) in (3..5).enumerate() {
        for j in 0..k {
            assert_eq!(rows[2 * (i * k + j)..][..2], stored[2 * (j * n + row)..][..2]);
        }
    }
}

#[test]
fn blocks_are_never_split() {
    let checkpoint = open("gguf", "gpt-oss");
    let name = "blk.0.ffn_down_exps.weight";
    let shape = checkpoint.tensor(name).unwrap().shape.clone();
    let (e, n, k) = (shape[0], shape[1], shape[2]);
    let view = WeightView { tensor: name.into(), offset: 0, shape: vec![e, k, n], strides: vec![n * k, 1, k] };
    let err = binding(Format::MXFP4, &[e, k, n], vec![view]).check(&checkpoint).unwrap_err();
    assert!(matches!(err, ModelError::Unsupported { .. }));
    assert!(err.to_string().contains(name) && err.to_string().contains("mxfp4"), "{err}");
    let whole_rows =
        WeightView { tensor: name.into(), offset: k, shape: vec![e, n / 2, k], strides: vec![n * k, 2 * k, 1] };
    binding(Format::MXFP4, &[e, n / 2, k], vec![whole_rows]).check(&checkpoint).unwrap();
    let inside = WeightView::dense(name, 16, vec![n, k]);
    assert!(binding(Format::MXFP4, &[n, k], vec![inside]).check(&checkpoint).is_err());
}

#[test]
fn parts_of_other_formats_and_views_outside_are_errors_that_name_the_tensor() {
    let checkpoint = open("gguf", "llama");
    let matrix = WeightView::dense("blk.0.attn_q.weight", 0, vec![1, 36]);
    let norm = WeightView::dense("blk.0.attn_norm.weight", 0, vec![1, 36]);
    let err = binding(Format::F16, &[2, 36], vec![matrix.clone(), norm]).check(&checkpoint).unwrap_err();
    assert!(err.to_string().contains("blk.0.attn_norm.weight") && err.to_string().contains("f32"), "{err}");
    let huge = usize::MAX / 2;
    for (offset, shape, strides) in [
        (36 * 36, vec![1, 36], vec![36, 1]),
        (0, vec![37, 36], vec![36, 1]),
        (0, vec![2, 36], vec![huge, 1]),
        (huge, vec![1, 36], vec![1, 1]),
        (0, vec![huge, 36], vec![huge, 1]),
        (0, vec![0, 36], vec![36, 1]),
        (0, vec![36], vec![36, 1]),
    ] {
        let view = WeightView { offset, shape: shape.clone(), strides, ..matrix.clone() };
        let w = binding(Format::F16, &shape, vec![view]);
        assert!(matches!(w.check(&checkpoint), Err(ModelError::Config { .. })), "offset {offset} {shape:?}");
    }
    let w = binding(Format::F16, &[1, 36], vec![matrix.clone()]);
    let mut scratch = Vec::new();
    assert!(materialise(&checkpoint, &w, 0..2, &mut scratch).is_err());
    #[allow(clippy::reversed_empty_ranges)]
    let reversed = materialise(&checkpoint, &w, 1..0, &mut scratch);
    assert!(reversed.is_err());
    assert!(binding(Format::F16, &[2, 36], vec![matrix]).check(&checkpoint).is_err());
}
