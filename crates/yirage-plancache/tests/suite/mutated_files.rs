//! Plan files that are spoilt: their bytes as they lie, and their words under a checksum that fits. Each is refused, or it
//! runs on a device whose memory is guarded and touches no byte that it must not; and where it says the same, it gives the
//! same.
#![allow(clippy::print_stdout)] // says what it did

#[path = "../../../yirage-conformance/tests/suite/mutated_plans/words.rs"]
mod words;

use crate::support::{bits, block, inputs, paged, sampling, small, weights};
use std::collections::BTreeMap;
use std::sync::Arc;
use yirage_cpu::Cpu;
use yirage_hal::{Backend, Device, OpenOptions};
use yirage_ir::rng::Rng;
use yirage_ir::{Dims, Graph};
use yirage_packed::sealed;
use yirage_plancache::{
    CallError, CallOptions, Callable, HostArray, Interface, PlanFile, PlanKey, ProvedFile, ResidentWeights, planned,
};

const DIMS: Dims = Dims { tokens: 5, seqs: 2, blocks: 4, rows: 5 };

/// What became of a spoilt file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Fate {
    /// Nothing was changed.
    Same,
    /// It is no plan file.
    Unread,
    /// It is not proved.
    Refused,
    /// The call or the device says why it is not run.
    Error,
    /// It ran.
    Ran,
}

/// A sound file, and what its plan gives.
struct Subject {
    file: PlanFile,
    text: String,
    weights: Vec<(String, HostArray)>,
    inputs: Vec<HostArray>,
    wanted: Vec<Vec<u8>>,
}

impl Subject {
    fn new(device: &dyn Device, graph: &Graph, fuse: bool) -> Subject {
        let options = CallOptions { dims: DIMS, fuse, ..CallOptions::default() };
        let plan = planned(graph, &device.target(), &options).unwrap();
        let key = PlanKey::of(graph, plan.bucket, &device.target(), &options.compiling());
        let file = PlanFile { key, interface: Interface::of(graph), plan: plan.into_plan() };
        let (weights, inputs) = (weights(graph, 77), inputs(graph, &DIMS, 1));
        let mut subject = Subject { text: file.print().unwrap(), file, weights, inputs, wanted: Vec::new() };
        let proved = subject.file.clone().prove(&device.target()).unwrap();
        subject.wanted = subject.run(device, &proved).unwrap();
        subject
    }

    fn run(&self, device: &dyn Device, file: &ProvedFile) -> Result<Vec<Vec<u8>>, CallError> {
        let mut held = ResidentWeights::default();
        held.load(device, &file.plan, &self.weights)?;
        let mut callable = Callable::load(device, &file.interface, &file.plan, &held, DIMS)?;
        Ok(bits(&callable.call(&self.inputs)?))
    }

    fn try_text(&self, device: &dyn Device, text: &str) -> Fate {
        let Ok(file) = PlanFile::parse(text) else { return Fate::Unread };
        if file == self.file {
            return Fate::Same;
        }
        let same = (&file.plan.graph, &file.plan.weights, &file.interface, file.plan.precision)
            == (&self.file.plan.graph, &self.file.plan.weights, &self.file.interface, self.file.plan.precision);
        let Ok(proved) = file.prove(&device.target()) else { return Fate::Refused };
        let Ok(got) = self.run(device, &proved) else { return Fate::Error };
        assert!(!same || got == self.wanted, "other values from\n{text}");
        Fate::Ran
    }
}

/// The text with the words of one section spoilt, the sum and the lengths made to fit.
fn spoilt_words(text: &str, rng: &mut Rng) -> String {
    let names = ["key", "interface", "plan"];
    let mut bodies = sealed::open("yirage-plan 2", names, text).unwrap().map(str::to_owned);
    // The plan is what most can be wrong with.
    let at = [0, 1, 2, 2, 2, 2][rng.index(6)];
    bodies[at] = words::spoil(&bodies[at], rng);
    let sections: Vec<_> = names.into_iter().zip(bodies.iter().map(String::as_str)).collect();
    sealed::seal("yirage-plan 2", &sections)
}

/// The text with some bytes changed, cut out or doubled.
fn spoilt_bytes(text: &str, rng: &mut Rng) -> String {
    let mut bytes = text.as_bytes().to_vec();
    for _ in 0..1 + rng.index(3) {
        let at = rng.index(bytes.len());
        match rng.index(4) {
            0 => drop(bytes.drain(at..(at + 1 + rng.index(64)).min(bytes.len()))),
            1 => bytes.truncate(at.max(1)),
            2 => bytes.insert(at, bytes[at]),
            _ => bytes[at] ^= 1 << rng.index(7),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn run(count: usize) {
    let options = OpenOptions { threads: Some(2), guarded: true, ..OpenOptions::default() };
    let device: Arc<dyn Device> = Cpu.open(0, &options).unwrap().0;
    let graphs = [block(), paged(), sampling(), small("small", 2.0)];
    let subjects: Vec<Subject> =
        graphs.iter().flat_map(|graph| [true, false].map(|fuse| Subject::new(&*device, graph, fuse))).collect();
    let mut rng = Rng::new(4_096);
    let mut fates: BTreeMap<(&str, Fate), usize> = BTreeMap::new();
    for n in 0..count {
        let subject = &subjects[n % subjects.len()];
        let (kind, text) = match (n / subjects.len()).is_multiple_of(4) {
            true => ("bytes", spoilt_bytes(&subject.text, &mut rng)),
            false => ("words", spoilt_words(&subject.text, &mut rng)),
        };
        *fates.entry((kind, subject.try_text(&*device, &text))).or_default() += 1;
    }
    for ((kind, fate), n) in &fates {
        println!("{kind}: {n} {fate:?}");
    }
    let of = |fate: Fate| fates.iter().filter(|((_, f), _)| *f == fate).map(|(_, n)| n).sum::<usize>();
    assert!(
        fates.keys().filter(|(kind, _)| *kind == "bytes").all(|(_, fate)| matches!(fate, Fate::Unread | Fate::Same))
    );
    let (refused, ran) = (of(Fate::Refused), of(Fate::Ran));
    assert!(refused > count / 10 && ran > count / 200, "{refused} refused, {ran} ran");
}

#[test]
fn two_thousand_spoilt_files_are_refused_or_harmless() {
    run(2_000);
}

#[test]
#[ignore = "takes long: a tenth of them runs always"]
fn twenty_thousand_spoilt_files_are_refused_or_harmless() {
    run(20_000);
}
