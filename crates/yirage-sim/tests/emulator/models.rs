//! Tiny models by kernels as C++ of CUDA: golden tokens.

use crate::recorded;
use yirage_hal::{Backend, OpenOptions};
use yirage_kir::render::CDialect;
use yirage_sim::{Settings, Sim};
use yirage_testkit::tiny;

fn check(models: &[&str]) {
    let sim = Sim::with(Settings::with_emulator(CDialect::CUDA));
    sim.emulator().unwrap().compile(&recorded::of_models(models)).unwrap();
    let (device, _) = sim.open(0, &OpenOptions::default()).unwrap();
    for model in models {
        for (got, wanted) in recorded::golden(model, device.clone()) {
            assert_eq!(got, wanted, "{model}");
        }
    }
}

#[test]
#[ignore = "needs a compiler of C++"]
fn a_model_gives_the_golden_tokens() {
    check(&tiny::NAMES[..1]);
}

#[test]
#[ignore = "needs a compiler of C++, and minutes"]
fn every_architecture_in_all_its_ways_gives_the_golden_tokens() {
    check(tiny::NAMES);
}
