//! That the levels which are said to be tested are there. Every test passes over levels that the CPU lacks, so a run
//! that is to exercise certain ones (under emulation, say) names them in `YIRAGE_REQUIRED_ISAS`, separated by spaces.

use yirage_cpu_kernels::isa::{Isa, IsaError};

#[test]
fn required_levels_are_here() {
    // Nothing is required of a machine that is what it is: the levels that it lacks are said at the end of the run.
    let required = std::env::var("YIRAGE_REQUIRED_ISAS").unwrap_or_else(|_| Isa::detect().name().to_owned());
    for name in required.split_whitespace() {
        assert_eq!(Isa::parse(name).unwrap().name(), name);
    }
    let best = required.split_whitespace().last().map(|name| Isa::parse(name).unwrap());
    assert_eq!(best, Some(Isa::detect()), "the last one required is the best here");
}

#[test]
fn names_round_trip_or_say_why_not() {
    for &isa in Isa::ALL {
        match Isa::parse(isa.name()) {
            Ok(got) => assert_eq!(got, isa),
            Err(e) => assert_eq!(e, IsaError::Unavailable { wanted: isa, best: Isa::detect() }),
        }
    }
    assert_eq!(Isa::parse("SCALAR"), Ok(Isa::Scalar));
    let unknown = Isa::parse("sse9").unwrap_err();
    assert_eq!(unknown, IsaError::Unknown("sse9".into()));
    assert!(Isa::ALL.iter().all(|isa| unknown.to_string().contains(isa.name())), "{unknown}");
    assert!(Isa::detect().available());
}
