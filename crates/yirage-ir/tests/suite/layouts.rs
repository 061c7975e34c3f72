//! Layouts of activations: names, sizes, what encoding loses, and that only who names one reads it.

use std::collections::HashSet;
use yirage_ir::activation::q8a::{self, MOST};
use yirage_ir::op::{Attrs, OpDef, Quantize};
use yirage_ir::rng::Rng;
use yirage_ir::tensor::Data;
use yirage_ir::{ActivationFormat, DType, Dims, Op, Sym, Tensor, Type, text};

fn all() -> impl Iterator<Item = ActivationFormat> {
    ActivationFormat::ALL.iter().copied()
}

/// `x` as a row of one part.
fn encoded(layout: ActivationFormat, x: &[f32]) -> Tensor {
    Quantize { layout, parts: 1 }.eval(&[&Tensor::f32([1, x.len()], x.to_vec())]).remove(0)
}

#[test]
fn names_are_unique_and_parse_back() {
    let mut names = HashSet::new();
    for layout in all() {
        let name = layout.info().name;
        assert!(names.insert(name) && DType::parse(name).is_none(), "`{name}` is another's name");
        assert_eq!((ActivationFormat::parse(name), name.parse()), (Some(layout), Ok(layout)));
        let ty = Type::quantized(layout, [Sym::Tokens.into(), yirage_ir::Dim::Const(layout.info().block as u32 * 3)]);
        assert_eq!(text::parse_type(&ty.to_string()).unwrap(), ty);
        let op = Quantize { layout, parts: 3 };
        let attrs = op.attrs().into_iter().map(|(n, v)| (n.to_string(), v)).collect();
        assert_eq!(Quantize::from_attrs(attrs).unwrap(), op);
    }
    assert_eq!(ActivationFormat::parse("f32"), None);
    assert!(
        text::parse("graph g { input %x: f32[1, 32] %q = quantize{layout=f32, parts=1}(%x): f32[1, 32] }").is_err()
    );
}

#[test]
fn a_row_has_the_bytes_that_its_type_says() {
    for layout in all() {
        let block = layout.info().block;
        for blocks in 1..5 {
            let x = Tensor::f32([2, blocks * block], (0..2 * blocks * block).map(|i| i as f32 - 20.0).collect());
            let tensor = Quantize { layout, parts: 1 }.eval(&[&x]).remove(0);
            let Data::Quantized(of, bytes) = &tensor.data else { panic!("{:?}", tensor.data) };
            assert_eq!((*of, bytes.len()), (layout, 2 * layout.info().row_bytes(blocks * block)));
            assert_eq!(tensor.ty(), Type::quantized(layout, [2, (blocks * block) as u32]));
            assert_eq!(tensor.ty().bytes(&Dims::default()), bytes.len());
        }
    }
}

#[test]
fn codes_are_no_numbers_without_their_layout() {
    let plain = Type::new(DType::I8, [2u32, 32]);
    assert!(plain.check().unwrap_err().to_string().contains("codes without a layout"));
    assert!(text::parse("graph g { input %x: i8[Tokens, 32] }").is_err());
    for layout in all() {
        let block = layout.info().block as u32;
        let good = Type::quantized(layout, [2, block]);
        good.check().unwrap();
        for bad in [
            Type { dtype: DType::F32, ..good.clone() },
            Type { strides: Some(vec![block, 1]), ..good.clone() },
            Type::quantized(layout, [2, block + 1]),
            Type::quantized(layout, [1u32 << 31, block << 24]),
        ] {
            assert!(bad.check().is_err(), "{bad:?}");
        }
    }
}

#[test]
fn an_op_that_asks_for_no_layout_takes_none() {
    let mut refused = HashSet::new();
    for case in Op::all_cases() {
        let types: Vec<Type> = case.ins.iter().map(Tensor::ty).collect();
        for (at, layout) in (0..types.len()).flat_map(|at| all().map(move |layout| (at, layout))) {
            let mut laid = types.clone();
            laid[at] = Type::quantized(layout, laid[at].shape.clone());
            let product = matches!(case.op, Op::Linear(_) | Op::ExpertLinear(_)) && at == 0;
            assert_eq!(case.op.infer(&laid).is_ok(), product, "{}: {}: {laid:?}", case.op.name(), case.name);
            refused.insert(case.op.name());
        }
    }
    assert!(refused.len() > 15, "{refused:?}");
}

/// Rows with numbers of very different sizes, and ones that are none.
fn rows(block: usize) -> Vec<Vec<f32>> {
    let mut rng = Rng::new(71);
    let mut rows = vec![vec![0.0; 4 * block], vec![-0.0; block], vec![f32::MAX; block], vec![1e-45; 2 * block]];
    for scale in [1e-38, 1e-6, 1.0, 1e4, 1e37] {
        rows.push((0..6 * block).map(|_| rng.signed_f32() * scale).collect());
        let mut large: Vec<f32> = (0..40 * block).map(|_| rng.signed_f32() * scale).collect();
        (0..9).for_each(|i| large[5 * block + 3 * i] *= 90.0);
        large[11 * block] = -300.0 * scale;
        rows.push(large);
    }
    for spoilt in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let mut row: Vec<f32> = (0..6 * block).map(|_| rng.signed_f32()).collect();
        (row[block + 7], row[3 * block]) = (spoilt, 200.0);
        rows.push(row);
    }
    rows
}

#[test]
fn decoding_gives_the_numbers_back_within_half_a_code() {
    for layout in all() {
        let info = layout.info();
        for x in rows(info.block) {
            let back = encoded(layout, &x).row_f64(0);
            for (x, back) in x.chunks_exact(info.block).zip(back.chunks_exact(info.block)) {
                if x.iter().any(|v| !v.is_finite()) {
                    assert!(back.iter().all(|v| v.is_nan()), "{x:?}: {back:?}");
                    continue;
                }
                let most = x.iter().fold(0f64, |a, &v| a.max(f64::from(v.abs())));
                let codes = f64::from(MOST);
                // Half a code, and what f32 makes of scale and reciprocal; of tiny scales little is left.
                let bound = most / (2.0 * codes) * (1.0 + 1e-4) + codes * f64::from(f32::MIN_POSITIVE);
                for (&v, b) in x.iter().zip(back) {
                    assert!((f64::from(v) - b).abs() <= bound, "{v:e} is {b:e} among up to {most:e}");
                }
            }
        }
    }
}

#[test]
fn the_few_large_numbers_of_a_row_stay_as_they_are() {
    let mut x: Vec<f32> = (0..40 * q8a::BLOCK).map(|i| (i % 19) as f32 / 9.0 - 1.0).collect();
    // Nine in one block: the largest stay, of equal ones the first.
    (0..9).for_each(|i| x[3 * i] = if i == 8 { -60.0 } else { 50.0 });
    let tensor = encoded(ActivationFormat::Q8A, &x);
    let Data::Quantized(_, bytes) = &tensor.data else { panic!("{:?}", tensor.data) };
    let blocks: Vec<q8a::Q8aBlock> = q8a::blocks(bytes).collect();
    let columns: Vec<usize> = (0..q8a::BLOCK).filter(|&c| blocks[0].outliers[c] != 0.0).collect();
    assert_eq!(columns, [0, 3, 6, 9, 12, 15, 24]);
    for c in columns {
        assert_eq!((blocks[0].codes[c], blocks[0].outliers[c]), (0, x[c]));
    }
    assert_eq!(blocks[0].scale, 50.0 / f32::from(MOST), "the scale is that of the rest");
    assert!(blocks[1..].iter().all(|block| block.outliers == [0.0; q8a::BLOCK]));
    assert_eq!(tensor.row(0).len(), x.len());
}
