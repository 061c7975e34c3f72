//! What cannot be a view says so.
#![allow(clippy::unwrap_used)] // a test may stop at anything unexpected

use yirage_compile::{CompileError, Options, compile, plan_weights};
use yirage_hal::reference::Reference;
use yirage_hal::{Backend, HalError, OpenOptions, write_view};
use yirage_ir::op::Softmax;
use yirage_ir::{DType, Dims, Format, GraphBuilder, Type};
use yirage_plan::{WeightEntry, WeightPlan};

fn view(dtype: DType, shape: [u32; 2], strides: [u32; 2]) -> Type {
    Type { strides: Some(strides.into()), ..Type::new(dtype, shape) }
}

#[test]
fn a_strided_slot_is_not_supported() {
    let (device, _) = Reference::new().open(0, &OpenOptions::default()).unwrap();
    let mut b = GraphBuilder::new("g");
    let x = b.slot("x", view(DType::F32, [2, 4], [1, 2])).unwrap();
    let y = b.op("y", Softmax {}, &[x]).unwrap();
    assert_eq!(b.ty(y).strides, None, "results lie dense");
    b.output(y);
    let graph = b.finish();
    let target = device.target();
    let weights = plan_weights(&graph, &target).unwrap();
    assert_eq!(weights, WeightPlan::default());
    let error = compile(&graph, Dims::default(), &target, &weights, &Options::default()).unwrap_err();
    assert!(matches!(&error, CompileError::Unsupported { what, .. } if what.contains("`x`")), "{error}");
}

#[test]
fn views_that_cannot_be_read_are_errors() {
    let (device, _) = Reference::new().open(0, &OpenOptions::default()).unwrap();
    let write = |ty: Type, elements: usize| {
        let entry =
            WeightEntry { name: "w".into(), ty: ty.dense(), layout: "rows".into(), groups: 1, shard_axis: None };
        write_view(&mut *device.weight(&entry).unwrap(), "w", &ty, &vec![0; elements * 4])
    };
    assert_eq!(write(view(DType::F32, [3, 4], [4, 1]), 12), Ok(()));
    assert_eq!(write(view(DType::F32, [3, 4], [0, 1]), 4), Ok(()), "one row for all");
    for (strides, elements) in [([4, 1], 11), ([1, 4], 14), ([u32::MAX, u32::MAX], 1000)] {
        let error = write(view(DType::F32, [3, 4], strides), elements).unwrap_err();
        assert!(matches!(error, HalError::Weight { .. }), "{error}");
    }
    let error = write(view(DType::Stored(Format::Q8_0), [2, 32], [64, 1]), 1000).unwrap_err();
    assert!(matches!(error, HalError::Unsupported { .. }), "{error}");
}
