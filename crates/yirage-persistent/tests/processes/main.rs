//! Kernels whose ranks are real processes: this program again, each with its part of a product, beside the same ranks in one
//! process.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::print_stdout)] // helpers of tests are tests, and a rank tells what it has

use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;
use yirage_comm::{LocalGroup, RankSeat};
use yirage_hal::{Device, OpenOptions};
use yirage_ir::Format;
use yirage_persistent::{
    KernelBuilder, KernelConfig, KernelDType, KernelTensor, LaunchDims, MetaData, MetaTensor, MetaTensors, TestOutput,
    TestValues,
};
use yirage_ranks::RankGroup;
use yirage_registry::{ProbeEnvironment, Registry};

const SCRIPT: &str = "YIRAGE_KERNEL_RANKS_TEST";
const F32: KernelDType = KernelDType::Floats(Format::F32);
/// How long a rank waits for the others.
const DEADLINE: Duration = Duration::from_secs(60);
const ONE: LaunchDims = LaunchDims::ONE;
const TOKENS: u32 = 3;
const WIDTH: u32 = 16;
/// Columns of the product, of all ranks together.
const INNER: u32 = 24;

/// What a rank builds.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RankScript {
    /// What the others do.
    Same,
    /// One layer more.
    Longer,
    /// A sum of other sizes.
    Wider,
    /// It says to be another rank.
    Elsewhere,
}

impl RankScript {
    const ALL: [RankScript; 4] = [RankScript::Same, RankScript::Longer, RankScript::Wider, RankScript::Elsewhere];
}

/// A number that is the same for a place on every rank, of many sizes, so that another order of additions is seen.
fn value(seed: u32, at: u32) -> f32 {
    let mixed = (at.wrapping_mul(2_654_435_761) ^ seed.wrapping_mul(40_503)).wrapping_mul(2_246_822_519) >> 8;
    (mixed as f32 / (1 << 24) as f32 - 0.5) * if mixed.is_multiple_of(7) { 1e4 } else { 1.0 }
}

fn meta() -> MetaTensors {
    let tensor = |shape: &[usize], data| MetaTensor { shape: shape.to_vec(), data };
    let tokens = MetaData::Int64(vec![1, 2, 3, 0, 0, 0, 0, 0]);
    MetaTensors::from_list(vec![tensor(&[1], MetaData::Int32(vec![2])), tensor(&[1, 8], tokens)]).unwrap()
}

/// One rank: a norm, its columns of a product, the sum over ranks, and what was there before.
fn rank(world_size: u32, mpi_rank: u32, script: RankScript) -> KernelBuilder {
    let config = KernelConfig { world_size, mpi_rank, max_seq_length: 8, ..KernelConfig::default() };
    let mut b = KernelBuilder::new(config, meta()).unwrap();
    let (own, width) = (INNER / world_size, WIDTH + u32::from(script == RankScript::Wider));
    let at = |row: u32, column: u32, own: u32| row * INNER + mpi_rank * own + column;
    let floats = |dims: [u32; 2], of: &dyn Fn(u32, u32) -> f32| {
        let all: Vec<f32> = (0..dims[0]).flat_map(|row| (0..dims[1]).map(move |column| of(row, column))).collect();
        KernelTensor::f32(&dims, &all)
    };
    let x = b.attach_input(floats([TOKENS, own], &|row, column| value(1, at(row, column, own))), "x").unwrap();
    let w = b.attach_input(floats([width, own], &|row, column| value(2, at(row, column, own))), "w").unwrap();
    let mut new = |dims: &[u32], name: &str| b.new_tensor(dims, F32, name).unwrap();
    let buffer = new(&[world_size, TOKENS, width], "buffer");
    let [part, whole, twice] = ["part", "whole", "twice"].map(|name| new(&[TOKENS, width], name));
    b.linear_layer(x, w, part, ONE).unwrap();
    b.allreduce_layer(part, buffer, whole, ONE).unwrap();
    b.elementwise_add_layer(whole, whole, twice, ONE).unwrap();
    if script == RankScript::Longer {
        let more = b.new_tensor(&[TOKENS, width], F32, "more").unwrap();
        b.identity_layer(twice, more, None, ONE).unwrap();
    }
    b
}

fn device(group: &Arc<RankGroup>) -> Arc<dyn Device> {
    let backend = Registry::new(ProbeEnvironment::of_this_process()).as_rank("cpu", group).unwrap();
    backend.open(0, &OpenOptions { threads: Some(1), ..OpenOptions::default() }).unwrap().0
}

/// The bits of what a kernel wrote last.
fn bits(outputs: &[TestOutput], name: &str) -> Vec<u32> {
    let of = outputs.iter().find(|of| of.name == name).unwrap();
    let TestValues::Floats(values) = &of.values else { panic!("{of:?}") };
    values.iter().map(|value| value.to_bits()).collect()
}

/// What each process of the tests below is.
#[test]
#[ignore = "the other tests start it, once for each rank"]
fn child_rank() {
    let group = Arc::new(RankGroup::new(RankSeat::from_environment().unwrap().unwrap().join().unwrap()));
    let at: usize = std::env::var(SCRIPT).unwrap().parse().unwrap();
    let (script, own) = (RankScript::ALL[at], group.rank() as u32);
    let is_elsewhere = script == RankScript::Elsewhere;
    let builder = rank(group.ranks(), if is_elsewhere { 0 } else { own }, script);
    match builder.meet(&group) {
        Ok(()) => println!("\nbits {:?}", bits(&builder.run_test_mode(&device(&group)).unwrap(), "twice")),
        Err(error) => println!("\nerror {error}"),
    }
}

/// What each rank says in the end.
fn started(scripts: &[RankScript]) -> Vec<String> {
    let group = LocalGroup::new(scripts.len(), DEADLINE).unwrap();
    let children = scripts.iter().enumerate().map(|(rank, script)| {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "child_rank", "--ignored", "--nocapture", "--test-threads=1"]);
        let at = RankScript::ALL.iter().position(|known| known == script).unwrap();
        command.env(SCRIPT, at.to_string()).stdout(Stdio::piped());
        group.spawn(rank, &mut command).unwrap()
    });
    let children: Vec<_> = children.collect();
    let said = |child: std::process::Child| {
        let text = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
        let line = text.lines().find(|line| line.starts_with("bits ") || line.starts_with("error "));
        line.unwrap_or(&text).to_owned()
    };
    children.into_iter().map(said).collect()
}

#[test]
fn ranks_that_are_processes_give_the_bytes_of_ranks_in_one() {
    for world in [2, 4] {
        let joined =
            KernelBuilder::of_ranks((0..world).map(|own| rank(world, own, RankScript::Same)).collect()).unwrap();
        let alone = Arc::new(RankGroup::new(LocalGroup::new(1, DEADLINE).unwrap().join(0).unwrap()));
        let wanted = format!("bits {:?}", bits(&joined.run_test_mode(&device(&alone)).unwrap(), "rank0.twice"));
        let said = started(&vec![RankScript::Same; world as usize]);
        assert!(said.iter().all(|said| *said == wanted), "{world} ranks: {said:#?}\n{wanted}");
    }
}

#[test]
fn ranks_that_are_processes_and_differ_are_told_in_what() {
    let told = |scripts: &[RankScript], rank: usize, wanted: &str| {
        let said = started(scripts);
        assert!(said.iter().all(|said| said.starts_with("error ")), "{said:#?}");
        assert!(said[rank].contains(wanted), "{said:#?}");
    };
    use RankScript::{Elsewhere, Longer, Same, Wider};
    told(&[Same, Longer], 1, "layer 3 of rank 1 is identity_layer, of rank 0 nothing");
    told(
        &[Same, Same, Wider],
        2,
        "layer 1 of rank 2 is allreduce_layer of [3, 17], of rank 0 allreduce_layer of [3, 16]",
    );
    told(&[Same, Wider], 0, "another rank differs from rank 0");
    told(&[Same, Elsewhere], 1, "option `world_size` is 2, with mpi_rank 0: this process is rank 1 of 2");
}
