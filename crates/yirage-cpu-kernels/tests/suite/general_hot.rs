//! Loops of their own against the steps that they stand for.

use crate::linear_support::isas;
use yirage_cpu_kernels::general::hot::{Hot, HotExprName, TABLE};
use yirage_cpu_kernels::general::{Elem, ElementProgram, LoopSizes, StridedInput, StridedOutput, Strides, map};
use yirage_ir::dtype::DType;
use yirage_ir::expr::{Expr, Func};
use yirage_ir::op::Map;
use yirage_testkit::rng::Rng;

#[test]
fn a_loop_of_its_own_gives_the_bits_of_the_steps() {
    let levels = isas();
    let mut rng = Rng::new(81);
    for (name, inputs, pattern) in TABLE.iter() {
        let own = pattern.substitute(|i| if (i as usize) < *inputs { Expr::input(i) } else { Expr::constant(2.5f32) });
        let hot = ElementProgram::new(&own, &vec![DType::F32; *inputs]).unwrap();
        let steps = hot.clone().in_steps();
        assert_ne!(steps, hot, "{name:?}");
        for n in [1, 15, 16, 64, 67, 1000] {
            let odd = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -0.0, 1e-40, 3e38];
            let mut float = || if rng.one_in(9) { *rng.choose(&odd) } else { rng.signed_f32() * 12.0 };
            let x: Vec<Vec<f32>> = (0..*inputs).map(|_| (0..3 * n).map(|_| float()).collect()).collect();
            // The second input: of its own, or one row for all.
            for repeats in [false, true] {
                let sizes = LoopSizes::new(&[3, n]).unwrap();
                let dense = Strides::dense(&sizes);
                let row = Strides::new(&[0, 1]).unwrap();
                let strides = |i: usize| if repeats && i == 1 { row } else { dense };
                let operand = |(i, x): (usize, &Vec<f32>)| StridedInput::at(x.as_ptr().cast(), Elem::F32, strides(i));
                let operands: Vec<StridedInput> = x.iter().enumerate().map(operand).collect();
                for &isa in &levels {
                    let made = [&hot, &steps].map(|program| {
                        let mut out = vec![0f32; 3 * n];
                        let output = StridedOutput::at(out.as_mut_ptr().cast(), Elem::F32, dense);
                        // SAFETY: all have three rows of n elements, or one that is met three times.
                        unsafe { map(isa, program, &sizes, &operands, output, 1..3 * n) };
                        let word = |x: f32| if x.is_nan() { u32::MAX } else { x.to_bits() };
                        out.into_iter().map(word).collect::<Vec<_>>()
                    });
                    assert_eq!(made[0], made[1], "{isa}: {name:?} of {n}");
                }
            }
        }
    }
}

#[test]
fn every_row_is_an_expression_and_finds_itself() {
    let names: Vec<HotExprName> = TABLE.iter().map(|row| row.0).collect();
    for text in ["add(x1, x0)", "mul(x0, 0.5)", "mul(0.5, x0)", "mul(30.0, tanh(div(x0, 30.0)))", "mul(x1, silu(x0))"] {
        assert!(Hot::of(&text.parse().unwrap()).is_some(), "{text}");
    }
    for (name, inputs, pattern) in TABLE.iter() {
        let own = pattern.substitute(|i| if (i as usize) < *inputs { Expr::input(i) } else { Expr::constant(2.5f32) });
        assert_eq!(Hot::of(&own).map(|hot| hot.name), Some(*name), "{own}");
    }
    assert_eq!(names.len(), 31);
    for text in ["mul(tanh(div(x0, 30.0)), 20.0)", "add(x0, 1.0)", "mul(silu(x0), 2i)", "pow(x0, x1)"] {
        assert!(text.parse::<Expr>().is_ok_and(|e| Hot::of(&e).is_none()), "{text}");
    }
}

#[test]
fn the_forms_of_models_have_loops_of_their_own() {
    let named = [Map::scale(0.5), Map::softcap(30.0), Map::inverse_root(1e-5), Map::clipped_gate()];
    let gates = [Func::Silu, Func::GeluTanh, Func::GeluErf, Func::Sigmoid].map(Map::gated);
    let alone =
        [Func::Add, Func::Sub, Func::Mul, Func::Div, Func::Tanh, Func::Exp, Func::Sqrt, Func::Square].map(Map::of);
    let activations = [Func::Silu, Func::GeluTanh, Func::GeluErf, Func::Sigmoid, Func::Relu].map(Map::of);
    for form in [&named[..], &gates, &alone, &activations].concat() {
        assert!(Hot::of(&form.expr).is_some(), "{}", form.expr);
    }
}
