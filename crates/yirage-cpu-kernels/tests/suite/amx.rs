//! Shapes of matrix registers: what the instruction takes, and nothing else.

use std::panic::catch_unwind;
use yirage_cpu_kernels::amx::{REGISTERS, ROW_BYTES, ROWS, Shapes, is_granted};

#[test]
fn shapes_are_what_the_instruction_takes() {
    let mut some = [(ROWS, ROW_BYTES); REGISTERS];
    let shapes = Shapes::new(some);
    for wrong in [(0, 64), (17, 64), (1, 0), (1, 68), (1, 30)] {
        some[3] = wrong;
        assert!(catch_unwind(|| Shapes::new(some)).is_err(), "{wrong:?}");
    }
    if is_granted() {
        // SAFETY: granted.
        drop(unsafe { shapes.configure() });
    } else {
        yirage_testkit::skipped::note("shapes of matrix registers", "this processor or system grants none");
    }
}
