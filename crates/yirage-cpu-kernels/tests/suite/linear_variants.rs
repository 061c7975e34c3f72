//! Every variant of the kernels gives the same bytes.

use crate::linear_support::*;
use yirage_cpu_kernels::isa::Isa;
use yirage_cpu_kernels::linear::{Dispatch, MatmulSchedule, MatmulVariant, TokenTileKernel, VariantError};
use yirage_ir::Format;
use yirage_plan::Precision;

/// Numbers of tokens that meet every kernel, and each cut of a tile.
const TOKENS: [usize; 14] = [1, 2, 3, 4, 5, 7, 8, 12, 15, 16, 33, 64, 91, 160];

/// Every answer by itself.
fn alone(isa: Isa) -> Vec<MatmulVariant> {
    let answers = MatmulVariant::choices(isa).into_iter().flat_map(|choice| choice.answers);
    answers.map(|a| MatmulVariant::of_level(isa).with(a).unwrap()).collect()
}

/// Answers to all choices together, one of seven ways: each two answers of different choices are among them, since no choice
/// has seven answers. How pieces are shared is not the kernels' to know.
fn together(isa: Isa) -> Vec<MatmulVariant> {
    let mut all = vec![MatmulVariant::of_level(isa)];
    for choice in MatmulVariant::choices(isa).iter().filter(|choice| !choice.answers[0].contains("share")) {
        all = all.iter().flat_map(|v| choice.answers.iter().map(|a| v.with(a).unwrap())).collect();
    }
    all.into_iter().step_by(7).collect()
}

fn check(rng: &mut Rng, format: Format, variants: impl Fn(Isa) -> Vec<MatmulVariant>) {
    let (rows, k) = (150, *ks(format).last().unwrap());
    let m = packed(format, rows, k, &weights(rng, format, rows, k));
    let mut x = floats(rng, TOKENS[TOKENS.len() - 1] * k);
    x.iter_mut().step_by(331).for_each(|v| *v *= 30.0); // some blocks with outliers
    for isa in isas() {
        for precision in [Precision::Fast, Precision::Exact] {
            let own = MatmulVariant::of_level(isa);
            let of = |variant, n: usize| bits(&product_so((isa, variant), precision, &m, &x[..n * k], n, 1 + n % 3));
            let want = TOKENS.map(|n| of(own, n));
            for variant in variants(isa) {
                for (n, want) in TOKENS.iter().zip(&want) {
                    assert_eq!(&of(variant, *n), want, "{format:?} {isa} {precision:?} {n} tokens, {variant}");
                }
            }
        }
    }
}

#[test]
fn every_answer_gives_the_same_bytes_with_every_format() {
    let mut rng = Rng::new(11);
    Format::ALL.iter().for_each(|&format| check(&mut rng, format, alone));
}

#[test]
fn all_answers_together_give_the_same_bytes() {
    let mut rng = Rng::new(12);
    for format in [Format::Q4_K, Format::Q8_0, Format::BF16] {
        check(&mut rng, format, together);
    }
}

#[test]
fn a_variant_is_its_text() {
    for isa in Isa::ALL.iter().copied() {
        let own = MatmulVariant::of_level(isa);
        for text in [
            "",
            "fetch=0, many=single,share=static",
            "stream=12K,few=15,few8=4,panels=2,lone=single,together=1,group=4K,piece=1M",
        ] {
            match own.with(text) {
                Ok(variant) => assert_eq!(own.with(&variant.to_string()), Ok(variant), "{text}"),
                Err(why) => assert!(text.contains("1M"), "{why}"),
            }
        }
        let variant = own.with("fetch=0, many=single,share=static").unwrap();
        assert_eq!((variant.fetch, variant.many, variant.share), (0, TokenTileKernel::Single, MatmulSchedule::Static));
        assert_eq!(own.with("fletch=0"), Err(VariantError::Name("fletch".into())));
        for wrong in [
            "fetch",
            "fetch=7",
            "fetch=128K",
            "few=3",
            "few=16",
            "panels=0",
            "panels=3",
            "lone=winograd",
            "many=both",
            "together=5",
            "group=1",
            "piece=x",
            "share=",
            "fetch=99999999999999999999K",
        ] {
            assert!(matches!(own.with(wrong), Err(VariantError::Value { .. })), "{wrong}");
        }
    }
}

/// Matrix registers can be chosen at every level, and nowhere without the system's leave.
#[test]
fn matrix_registers_are_refused_where_there_are_none() {
    let granted = Isa::Amx.available();
    for isa in isas() {
        for choice in ["many=matrix", "lone=matrix"] {
            let variant = MatmulVariant::of_level(isa).with(choice).unwrap();
            let kernel = Dispatch::new(isa, variant, Precision::Fast, Format::Q4_K);
            assert_eq!(kernel.is_ok(), granted, "{isa} {choice}");
            if let Err(why) = kernel {
                assert!(why.to_string().contains("amx"), "{why}");
            }
        }
    }
}
