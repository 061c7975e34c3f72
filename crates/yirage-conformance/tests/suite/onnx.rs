//! The single-node cases of ONNX for the ops that we have, as its own expected outputs say, and nodes at the corners that
//! its cases leave out: compiled as any graph is, on the reference and on the CPU at every instruction-set level. What does
//! not run stands in `onnx/excluded.txt`, with the reason.
#![allow(clippy::print_stdout)] // says what it ran

use crate::onnx_support::{OnnxCase, Wanted, import, kernel_graph, read};
use std::collections::BTreeMap;
use std::sync::Arc;
use yirage_conformance::{GraphSetup, Trouble, limits};
use yirage_cpu_kernels::isa::Isa;
use yirage_hal::reference::Reference;
use yirage_hal::{Backend, Device, OpenOptions};
use yirage_ir::tensor::Data;
use yirage_ir::{Graph, Node, NodeKind};
use yirage_testkit::skipped;

/// Single nodes of the ops that we have, and how many of them have to run at least.
const CASES: usize = 538;
const LEAST: usize = 322;
/// How many of both are kernel graphs at least.
const KERNEL_GRAPHS: usize = 292;
/// Nodes at the corners, all of which run.
const CORNERS: usize = 217;
/// Whether the CPU has to run what the reference runs. Until then what it refuses is counted.
const CPU_RUNS_ALL: bool = true;
/// ONNX's own tolerance of these cases; the ops' limits hold as well.
const ABSOLUTE: f64 = 1e-7;
const RELATIVE: f64 = 1e-3;

fn excluded() -> BTreeMap<&'static str, &'static str> {
    include_str!("../onnx/excluded.txt").lines().map(|l| l.split_once('\t').unwrap()).collect()
}

/// The widest absolute and relative part among the limits of a graph's ops.
fn widest(graph: &Graph) -> (f64, f64) {
    let limit = |node: &Node| if let NodeKind::Op(op) = &node.kind { Some(limits::of(op)) } else { None };
    let limits = graph.nodes.iter().filter_map(limit);
    limits.fold((0.0, 0.0), |(abs, rel), limit| (abs.max(limit.abs.into()), rel.max(limit.rel.into())))
}

/// What became of a case.
#[derive(PartialEq, Debug)]
enum Outcome {
    Passed,
    Refused(String),
    Failed(String),
}

/// As graphs of named ops, of general ones, or both.
fn check(device: &dyn Device, case: &OnnxCase) -> Outcome {
    match import(case) {
        Ok(graphs) => graphs
            .into_iter()
            .map(|(setup, wanted)| check_graph(device, &setup, &wanted))
            .find(|outcome| *outcome != Outcome::Passed)
            .unwrap_or(Outcome::Passed),
        Err(why) => Outcome::Failed(why),
    }
}

fn check_graph(device: &dyn Device, setup: &GraphSetup, wanted: &[Wanted]) -> Outcome {
    let got = match setup.run(device) {
        Ok(got) => got,
        Err(Trouble::Refused(why)) => return Outcome::Refused(why),
        Err(Trouble::Failed(why)) => return Outcome::Failed(why),
    };
    let (abs, rel) = widest(&setup.graph);
    let bound = |size: f64| (ABSOLUTE + RELATIVE * size).min(abs + rel * size);
    if got.len() != wanted.len() {
        return Outcome::Failed(format!("{} outputs of {}", got.len(), wanted.len()));
    }
    let same = |(got, wanted): (&Data, &Wanted)| match (got, wanted) {
        (Data::F32(got), Wanted::F32(wanted)) => {
            let close = |(g, w): (&f32, &f32)| {
                let nan = g.is_nan() && w.is_nan();
                nan || g == w || (f64::from(*g) - f64::from(*w)).abs() <= bound(f64::from(w.abs()))
            };
            got.len() == wanted.len() && got.iter().zip(wanted).all(close)
        }
        (Data::I32(got), Wanted::I32(wanted)) => got == wanted,
        (Data::U32(got), Wanted::I32(wanted)) => got.iter().map(|&x| x as i32).eq(wanted.iter().copied()),
        (Data::Bool(got), Wanted::I32(wanted)) => got.iter().map(|&x| i32::from(x)).eq(wanted.iter().copied()),
        _ => false,
    };
    match got.iter().zip(wanted).position(|pair| !same(pair)) {
        None => Outcome::Passed,
        Some(at) => Outcome::Failed(format!("output {at} is {:?}, {:?} wanted", got[at], wanted[at])),
    }
}

fn check_all(name: &str, device: &dyn Device, may_refuse: bool) {
    let (cases, excluded) = (read(include_str!("../onnx/cases.txt")), excluded());
    // A case is in exactly one list.
    cases
        .iter()
        .for_each(|case| assert_ne!(excluded.contains_key(case.name.as_str()), !case.outs.is_empty(), "{}", case.name));
    let ran = check_each(name, device, &cases, may_refuse);
    println!("{name}: {ran} of {} run, {} excluded", cases.len(), excluded.len());
    assert_eq!((cases.len(), ran + excluded.len()), (CASES, CASES));
    assert!(ran >= LEAST);
    let corners = read(include_str!("../onnx/corners.txt"));
    assert_eq!(check_each(&format!("{name}, corners"), device, &corners, may_refuse), CORNERS);
}

/// How many of the cases ran, which are those that have outputs.
fn check_each(name: &str, device: &dyn Device, cases: &[OnnxCase], may_refuse: bool) -> usize {
    let (mut failed, mut refused) = (Vec::new(), Vec::new());
    let there: Vec<&OnnxCase> = cases.iter().filter(|case| !case.outs.is_empty()).collect();
    for case in &there {
        match check(device, case) {
            Outcome::Passed => {}
            Outcome::Refused(why) if may_refuse => refused.push(format!("{}: {why}", case.name)),
            Outcome::Refused(why) | Outcome::Failed(why) => failed.push(format!("{}: {why}", case.name)),
        }
    }
    println!("{name}: {} cases, {} refused\n{}", there.len(), refused.len(), refused.join("\n"));
    assert!(failed.is_empty(), "{name}: {} failed:\n{}", failed.len(), failed.join("\n"));
    there.len()
}

fn open(backend: &dyn Backend, options: &OpenOptions) -> Arc<dyn Device> {
    backend.open(0, options).unwrap().0
}

#[test]
fn reference() {
    check_all("reference", &*open(&Reference::new(), &OpenOptions::default()), false);
}

#[test]
fn cpu_at_every_level() {
    for isa in Isa::ALL {
        if !isa.available() {
            skipped::note(&format!("level {isa}"), "this processor lacks it");
            continue;
        }
        let options = OpenOptions { threads: Some(2), isa: Some(isa.name().into()), ..OpenOptions::default() };
        check_all(&format!("cpu {isa}"), &*open(&yirage_cpu::Cpu, &options), !CPU_RUNS_ALL);
    }
}

/// Those that the operations of kernel graphs say, as people build them.
#[test]
fn as_kernel_graphs() {
    let devices = [open(&Reference::new(), &OpenOptions::default()), open(&yirage_cpu::Cpu, &OpenOptions::default())];
    let mut cases = read(include_str!("../onnx/cases.txt"));
    cases.extend(read(include_str!("../onnx/corners.txt")));
    let mut left_out: BTreeMap<String, usize> = BTreeMap::new();
    let mut ran = 0;
    for case in cases.iter().filter(|case| !case.outs.is_empty()) {
        match kernel_graph(case) {
            Ok((setup, wanted)) => {
                for device in &devices {
                    let outcome = check_graph(&**device, &setup, &wanted);
                    assert_eq!(outcome, Outcome::Passed, "{} on {}", case.name, device.info().backend);
                }
                ran += 1;
            }
            Err(why) => *left_out.entry(why).or_default() += 1,
        }
    }
    println!("{ran} of {} as kernel graphs; left out: {left_out:#?}", cases.len());
    assert!(ran >= KERNEL_GRAPHS, "{ran} of {}", cases.len());
}

#[test]
#[ignore = "needs further cases, in the file that YIRAGE_ONNX_CASES names"]
fn further_cases() {
    let cases = read(&std::fs::read_to_string(std::env::var("YIRAGE_ONNX_CASES").unwrap()).unwrap());
    check_each("reference", &*open(&Reference::new(), &OpenOptions::default()), &cases, false);
    check_each("cpu", &*open(&yirage_cpu::Cpu, &OpenOptions::default()), &cases, !CPU_RUNS_ALL);
}
