//! Every level has kernels of its own: one that ran the portable ones would pass every comparison with them.

use crate::linear_support::isas;
use yirage_cpu_kernels::isa::Isa;
use yirage_cpu_kernels::linear::{Dispatch, MatmulVariant};
use yirage_ir::Format;
use yirage_plan::Precision;

fn dispatch(isa: Isa, precision: Precision, format: Format) -> Dispatch {
    Dispatch::new(isa, MatmulVariant::of_level(isa), precision, format).unwrap()
}

#[test]
fn every_level_has_kernels_of_its_own() {
    let kinds = [
        (Precision::Fast, Format::Q4_0),
        (Precision::Fast, Format::Q8_0),
        // Exact products of floats: those of a level's vectors, which have no weaker way.
        (Precision::Exact, Format::BF16),
    ];
    for isa in isas().into_iter().filter(|isa| *isa != Isa::Scalar) {
        for (precision, format) in kinds {
            let (own, portable) = (dispatch(isa, precision, format), dispatch(Isa::Scalar, precision, format));
            assert!(!own.has_kernels_of(&portable), "{isa} {format:?}");
            assert!(own.has_kernels_of(&own) && portable.has_kernels_of(&portable), "{isa} {format:?}");
        }
        assert!(dispatch(isa, Precision::Exact, Format::BF16).takes_tiles_together(), "{isa}");
    }
    if Isa::NeonI8mm.available() {
        let [own, below] = [Isa::NeonI8mm, Isa::Neon].map(|isa| dispatch(isa, Precision::Fast, Format::Q4_0));
        assert!(!own.has_kernels_of(&below), "i8mm");
    }
}
