//! Devices that are ranks of a group, each on a thread: collectives by the maker's library and by the host's memory, and a model.

use crate::fake::{FakeHccl, FakeMachine};
use crate::models;
use crate::support::LONG;
use std::sync::Arc;
use std::time::Duration;
use yirage_comm::LocalGroup;
use yirage_hal::driver::{BufferSlice, CollectiveCall, Driver, DriverError, StepCommand};
use yirage_hal::{Backend, HostMemory, OpenOptions, Record};
use yirage_ir::op::{AllGather, AllReduce, Broadcast, ReduceScatter, SendRecv};
use yirage_ir::{Dims, Format, Op, Tensor, Type};
use yirage_npu::{NpuBackend, NpuDriver, NpuVendor};
use yirage_ranks::RankGroup;
use yirage_testkit::tiny;

for_every_maker! {
    collectives_have_the_bytes_of_their_definition_by_the_library_and_by_the_host,
    ranks_that_do_not_do_the_same_are_told_so,
    a_rank_that_is_gone_or_hangs_is_an_error_within_the_deadline,
    a_library_that_fails_names_the_collective_and_ends_the_rank,
    as_many_devices_as_ranks_are_wanted_and_what_carries_is_told,
    a_model_on_two_devices_gives_the_tokens_of_one,
}

/// A machine with as many devices as ranks, and the library of collectives where it has one.
struct Ranks {
    machine: FakeMachine,
    library: Option<FakeHccl>,
    vendor: NpuVendor,
    ranks: usize,
}

impl Ranks {
    fn of(vendor: NpuVendor, ranks: usize, has_library: bool) -> Ranks {
        let machine = FakeMachine::new(vendor, &[("devices", &ranks.to_string())]);
        let library = has_library.then(|| machine.with_collectives());
        Ranks { machine, library, vendor, ranks }
    }

    /// Runs `body` on every rank.
    fn run<T: Send>(&self, deadline: Duration, body: impl Fn(NpuBackend, usize) -> T + Sync) -> Vec<T> {
        let group = LocalGroup::new(self.ranks, deadline).unwrap();
        std::thread::scope(|scope| {
            let of_rank = |rank: usize| {
                let (group, body) = (&group, &body);
                scope.spawn(move || {
                    let place = Arc::new(RankGroup::new(group.join(rank).unwrap()));
                    body(NpuBackend::of_group(self.vendor, self.machine.surroundings(), place), rank)
                })
            };
            let all: Vec<_> = (0..self.ranks).map(of_rank).collect();
            all.into_iter().map(|rank| rank.join().unwrap()).collect()
        })
    }

    /// Calls of the maker's library; none where there is no library.
    fn calls(&self) -> u64 {
        self.library.as_ref().map_or(0, FakeHccl::calls)
    }

    /// Everything has gone back, and no call was wrong.
    fn leave_nothing(&self) {
        assert!(self.machine.stats().is_clean(), "{:?}", self.machine.stats());
        if let Some(library) = &self.library {
            library.leaves_nothing();
        }
    }
}

/// The library's name of the sum of all, and how it says that it cannot do it.
fn sum_of(vendor: NpuVendor) -> (&'static str, i32) {
    match vendor {
        NpuVendor::Ascend => ("HcclAllReduce", 9),
        NpuVendor::Cambricon => ("cnclAllReduce", 0x16),
    }
}

/// What a rank gives: values that no other rank has.
fn matrix(rank: usize, rows: u32, width: u32) -> Tensor {
    let count = (rows * width) as usize;
    let values: Vec<f32> = (0..count).map(|at| (rank * 100 + at) as f32 / 7.0 - 3.0).collect();
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_ne_bytes()).collect();
    Tensor::from_memory(&Type::new(Format::F32.into(), [rows, width]), &Dims::default(), &bytes)
}

/// A collective of a matrix on memory of the device.
fn collective(driver: &NpuDriver, op: &Op, given: &Tensor, [rows, width]: [u32; 2]) -> Result<Vec<u8>, DriverError> {
    let bytes = given.memory();
    let got = match op {
        Op::AllGather(op) => bytes.len() * op.ranks as usize,
        Op::ReduceScatter(op) => bytes.len() / op.ranks as usize,
        _ => bytes.len(),
    } as u64;
    let slice = |bytes: u64| Ok(BufferSlice { buffer: driver.alloc(bytes)?, offset: 0, bytes });
    let (from, to) = (slice(bytes.len() as u64)?, slice(got)?);
    driver.upload(Arc::new(Record::of(&bytes)), from)?;
    let dtype = Format::F32.into();
    driver.submit(StepCommand::Collective(CollectiveCall { op: op.clone(), dtype, rows, width, from, to }))?;
    let download = driver.download(to)?;
    let value = driver.signal()?;
    driver.wait(value, LONG)?;
    let got = download.take().bytes().to_vec();
    driver.free(from.buffer);
    driver.free(to.buffer);
    Ok(got)
}

fn collectives(ranks: u32) -> Vec<Op> {
    let shift = ranks - 1;
    vec![
        Op::AllReduce(AllReduce { ranks }),
        Op::AllGather(AllGather { ranks }),
        Op::ReduceScatter(ReduceScatter { ranks }),
        Op::Broadcast(Broadcast { ranks, root: 1 }),
        Op::SendRecv(SendRecv { ranks, shift }),
        Op::SendRecv(SendRecv { ranks, shift: 0 }),
    ]
}

/// Every collective has the bytes of its definition, whoever carries it.
fn collectives_have_the_bytes_of_their_definition_by_the_library_and_by_the_host(vendor: NpuVendor) {
    for (ranks, has_library) in [(2, true), (3, true), (2, false), (3, false)] {
        let all = Ranks::of(vendor, ranks, has_library);
        let [rows, width] = [5, 6];
        all.run(LONG, |backend, rank| {
            let driver = backend.driver(0).unwrap();
            for op in collectives(ranks as u32) {
                let given: Vec<Tensor> = (0..ranks).map(|rank| matrix(rank, rows, width)).collect();
                let wanted = op.eval_ranks(&given.iter().collect::<Vec<_>>()).unwrap()[rank].memory();
                let got = collective(&driver, &op, &given[rank], [rows, width]).unwrap();
                assert!(got == wanted, "{vendor:?}, rank {rank} of {ranks}, library {has_library}: {op:?}");
            }
        });
        // Of sums of three nobody promises the order.
        let by_library = if ranks == 2 { 1 + 5 + 5 + 1 + 2 } else { 5 + 1 + 2 };
        assert_eq!(all.calls(), if has_library { (by_library * ranks) as u64 } else { 0 }, "{vendor:?}, {ranks}");
        all.leave_nothing();
    }
}

/// A rank that does something else is found on the host, before the library is called.
fn ranks_that_do_not_do_the_same_are_told_so(vendor: NpuVendor) {
    let all = Ranks::of(vendor, 2, true);
    let ends = all.run(LONG, |backend, rank| {
        let driver = backend.driver(0).unwrap();
        let sum = Op::AllReduce(AllReduce { ranks: 2 });
        collective(&driver, &sum, &matrix(rank, 4, 4), [4, 4]).unwrap();
        let shape = if rank == 0 { [4, 4] } else { [2, 8] };
        collective(&driver, &sum, &matrix(rank, 4, 4), shape).map(drop)
    });
    for end in ends {
        let Err(DriverError::Lost(why)) = end else { panic!("{end:?}") };
        assert!(why.contains("different steps") && why.contains("rank 1"), "{why}");
    }
    assert_eq!(all.calls(), 2);
}

/// A rank whose partner is gone hears it, and one whose collective hangs in the library ends it by its deadline. The device goes
/// away then all the same, also where the library can end nothing.
fn a_rank_that_is_gone_or_hangs_is_an_error_within_the_deadline(vendor: NpuVendor) {
    for hangs in [false, true] {
        let all = Ranks::of(vendor, 2, true);
        let ends = all.run(Duration::from_secs(2), |backend, rank| {
            let driver = backend.driver(0).unwrap();
            let sum = Op::AllReduce(AllReduce { ranks: 2 });
            collective(&driver, &sum, &matrix(rank, 4, 4), [4, 4]).unwrap();
            if rank == 1 && !hangs {
                return Ok(());
            }
            if rank == 1 {
                // It agrees to take part, and its device does not come to it.
                let (call, code) = sum_of(vendor);
                all.library.as_ref().unwrap().fail(call, 1, code);
            } else {
                std::thread::sleep(Duration::from_millis(300));
            }
            collective(&driver, &sum, &matrix(rank, 4, 4), [4, 4]).map(drop)
        });
        let Err(DriverError::Lost(why)) = &ends[0] else { panic!("{ends:?}") };
        let wanted = if hangs { ["rank 0 of 2", "all_reduce(sum)"] } else { ["rank 1 is gone", "has left"] };
        assert!(wanted.iter().all(|word| why.contains(word)), "{why}");
    }
}

/// What the library says is told with the call and the collective, and nothing is submitted afterwards.
fn a_library_that_fails_names_the_collective_and_ends_the_rank(vendor: NpuVendor) {
    let all = Ranks::of(vendor, 1 + 1, true);
    let (call, code) = sum_of(vendor);
    let ends = all.run(Duration::from_secs(2), |backend, rank| {
        let driver = backend.driver(0).unwrap();
        let sum = Op::AllReduce(AllReduce { ranks: 2 });
        if rank == 0 {
            all.library.as_ref().unwrap().fail(call, 1, code);
        }
        let first = collective(&driver, &sum, &matrix(rank, 4, 4), [4, 4]).map(drop);
        (first, collective(&driver, &sum, &matrix(rank, 4, 4), [4, 4]).map(drop))
    });
    let told = ends.iter().any(|(first, _)| {
        matches!(first, Err(DriverError::Lost(why)) if why.contains(call) && why.contains(&format!("({code})")))
    });
    assert!(told, "{ends:?}");
    assert!(ends.iter().all(|(_, then)| matches!(then, Err(DriverError::Lost(_)))), "{ends:?}");
}

fn as_many_devices_as_ranks_are_wanted_and_what_carries_is_told(vendor: NpuVendor) {
    let (title, file) = match vendor {
        NpuVendor::Ascend => ("collectives by Huawei HCCL", "libhccl"),
        NpuVendor::Cambricon => ("collectives by Cambricon CNCL", "libcncl"),
    };
    let all = Ranks::of(vendor, 2, true);
    let told = all.run(LONG, |backend, _| backend.open(0, &OpenOptions::default()).unwrap().1);
    for notes in &told {
        assert!(notes.iter().any(|note| note == title), "{notes:?}");
    }
    let without = Ranks::of(vendor, 2, false);
    let told = without.run(LONG, |backend, _| backend.open(0, &OpenOptions::default()).unwrap().1);
    assert!(told[0].iter().any(|note| note.contains("host's memory") && note.contains(file)), "{told:?}");
    let few = all.run(LONG, |backend, _| backend.open(1, &OpenOptions::default()).map(drop));
    assert!(few[0].is_ok(), "{few:?}");
    assert!(few[1].as_ref().is_err_and(|error| error.to_string().contains("rank 1 of 2 wants device 2")), "{few:?}");
    all.leave_nothing();
}

/// Each rank has an engine and compares its tokens with those of transformers.
fn a_model_on_two_devices_gives_the_tokens_of_one(vendor: NpuVendor) {
    for has_library in [true, false] {
        let all = Ranks::of(vendor, 2, has_library);
        all.run(LONG, |backend, _| {
            let device = backend.open(0, &OpenOptions::default()).unwrap().0;
            for model in &tiny::NAMES[..2] {
                models::check(model, &device, Format::F32);
            }
        });
        assert_eq!(all.calls() > 0, has_library);
        all.leave_nothing();
    }
}
