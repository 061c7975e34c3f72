//! Every input of every op from each place it can be in: what a device takes is exact, what it does not take it refuses
//! when a plan is compiled or loaded, with a reason. `operands/refused.txt` says what the CPU refuses, and why.
#![allow(clippy::print_stdout)] // says what it ran

use std::collections::BTreeSet;
use yirage_conformance::{Trouble, operand_source_cases};
use yirage_cpu_kernels::isa::Isa;
use yirage_hal::reference::Reference;
use yirage_hal::{Backend, OpenOptions};
use yirage_testkit::skipped;

/// Cases of an op.
const MOST: usize = 6;

/// What a backend refuses, as `op input origin`.
fn refused(backend: &dyn Backend, options: &OpenOptions) -> BTreeSet<String> {
    let (device, _) = backend.open(0, options).unwrap();
    let (mut refused, mut failed, mut ran) = (BTreeSet::new(), Vec::new(), 0);
    let mut runs = BTreeSet::new();
    for variant in operand_source_cases(MOST) {
        let of = format!("{} {} {:?}", variant.op, variant.input, variant.origin);
        match variant.check(&*device) {
            Ok(()) => {
                ran += 1;
                runs.insert(variant.op);
            }
            Err(Trouble::Refused(why)) => {
                let says = [variant.op, "weight `", "has no kernel for"].iter().any(|of| why.contains(of));
                assert!(says, "{of}: {why} does not say of what");
                refused.insert(of);
            }
            Err(Trouble::Failed(why)) => failed.push(format!("{}: {why}", variant.name())),
        }
    }
    // An op that a backend does not have at all is no matter of operands.
    refused.retain(|of: &String| of.split(' ').next().is_some_and(|op| runs.contains(op)));
    println!("{} {options:?}: {ran} run, {} refused", backend.name(), refused.len());
    assert!(failed.is_empty(), "{} failed:\n{}", failed.len(), failed.join("\n"));
    refused
}

#[test]
fn the_cpu_takes_or_refuses_every_operand_at_every_level() {
    let wanted: BTreeSet<String> = include_str!("../operands/refused.txt")
        .lines()
        .map(|line| line.split_once('\t').unwrap().0.to_string())
        .collect();
    for isa in Isa::ALL {
        if !isa.available() {
            skipped::note(&format!("level {isa}"), "this processor lacks it");
            continue;
        }
        // Guarded: an operand that is taken for a larger one is a fault.
        let options = OpenOptions {
            threads: Some(2),
            isa: Some(isa.name().into()),
            guarded: cfg!(unix),
            ..OpenOptions::default()
        };
        assert_eq!(refused(&yirage_cpu::Cpu, &options), wanted, "{isa}");
    }
}

#[test]
fn the_reference_takes_every_operand() {
    let all = refused(&Reference::new(), &OpenOptions::default());
    // What is fixed after load is in a stored format, which integers are not.
    assert!(all.iter().all(|of| of.ends_with("Weight")), "{all:?}");
}
