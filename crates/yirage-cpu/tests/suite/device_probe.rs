//! What a device tells of itself, and its own limits, which it measures.

use yirage_cpu::Cpu;
#[cfg(target_arch = "x86_64")]
use yirage_cpu_kernels::isa::Isa;
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

#[cfg(target_arch = "x86_64")]
#[test]
fn the_flags_are_those_of_cpuid() {
    let c = Cpu.probe().unwrap()[0].capabilities;
    let avx512 = Isa::Avx512.available();
    assert_eq!(c.bf16, avx512 && is_x86_feature_detected!("avx512bf16"));
    assert_eq!(c.int8, Isa::Avx2.available());
}

#[test]
fn the_ten_facts_of_a_device_are_there() {
    let info = Cpu.probe().unwrap().remove(0);
    assert_eq!((info.backend, info.ordinal, info.software), ("cpu", 0, false));
    assert!(!info.name.is_empty() && info.arch.contains('/') && info.cores.is_some_and(|n| n > 0));
    if cfg!(target_os = "linux") {
        assert!(info.total_memory_bytes.is_some_and(|all| Some(all) >= info.memory_bytes), "{info:?}");
        assert!(info.facts.iter().any(|(name, _)| *name == "cgroup"), "{info:?}");
    }
    // A processor has no driver and no libraries above one.
    assert_eq!((info.driver_version, info.sdk_version), (None, None));
}
