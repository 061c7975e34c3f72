//! What a device tells of itself, and its own limits, which it measures.

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

#[test]
fn a_device_tells_what_it_does_about_stalled_workers() {
    let told = |threads, keep_stalled| {
        let options = OpenOptions { threads: Some(threads), keep_stalled, ..OpenOptions::default() };
        let device = Cpu.open(0, &options).unwrap().0;
        let facts = &device.info().facts;
        facts.iter().find(|(name, _)| *name == "stalled_workers").unwrap().1.clone()
    };
    assert_eq!(told(2, true), "kept: it was asked for");
    assert_eq!(told(1, false), "kept: there is one");
    let usual = told(2, false);
    assert!(usual == "left out while that is faster" || usual.starts_with("kept: how long threads wait"), "{usual}");
}
