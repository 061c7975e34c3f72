//! A device measures its own limits.

use yirage_cpu::Cpu;
use yirage_hal::{Backend, HalError, Limit, OpenOptions};

#[test]
fn a_device_measures_itself() {
    for threads in [1, 3] {
        let options = OpenOptions { threads: Some(threads), ..OpenOptions::default() };
        let (device, _) = Cpu.open(0, &options).unwrap();
        for limit in Limit::ALL {
            match device.probe(limit) {
                Ok(mut probe) => {
                    assert!(probe.read().unwrap() > 0.0, "{limit}");
                    assert!(probe.method().contains(&format!("{threads} threads")), "{}", probe.method());
                }
                Err(e) => assert!(limit == Limit::Bf16 && e.to_string().contains("no such instruction"), "{e}"),
            }
        }
    }
}

#[test]
fn an_instruction_set_without_the_instruction_says_so() {
    let options = OpenOptions { threads: Some(1), isa: Some("scalar".into()), ..OpenOptions::default() };
    let (device, _) = Cpu.open(0, &options).unwrap();
    let Err(HalError::Unsupported { what, why }) = device.probe(Limit::Bf16) else { panic!("scalar has no bf16") };
    assert!(what.contains("bf16") && why.contains("scalar"), "{what}: {why}");
}
