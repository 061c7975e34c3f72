//! Ceilings of the processor: their loops run and read what they say.

use crate::linear_support::isas;
use yirage_cpu_kernels::limits;

#[test]
fn loops_run_on_every_instruction_set_here() {
    for isa in isas() {
        for peak in [Some(limits::f32(isa)), limits::bf16(isa), Some(limits::int8(isa, 4)), Some(limits::int8(isa, 8))]
            .into_iter()
            .flatten()
        {
            // SAFETY: the instruction set is there.
            let once = |rounds| unsafe { (peak.run)(rounds) };
            assert_eq!(once(3), once(3), "{isa} {}", peak.method);
            assert!(peak.round_ops > 0 && !peak.method.is_empty());
        }
    }
}

#[test]
fn every_byte_is_read() {
    for isa in isas() {
        let mut bytes = vec![0u8; 1024 + 3];
        let base = limits::read(isa, &bytes);
        for at in 0..bytes.len() {
            bytes[at] = 1;
            assert_ne!(limits::read(isa, &bytes), base, "{isa}: byte {at} makes no difference");
            bytes[at] = 0;
        }
    }
}
