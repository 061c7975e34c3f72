//! Devices that are ranks of a group, each on a thread: collectives by the maker's library and by the host's memory, and a model.

use crate::fake::{FakeCuda, FakeNccl, FakeVendor};
use crate::models;
use crate::support::LONG;
use std::sync::Arc;
use std::time::Duration;
use yirage_comm::LocalGroup;
use yirage_cuda::{CudaBackend, CudaDriver, CudaVendor};
use yirage_hal::driver::{BufferSlice, CollectiveCall, Driver, DriverError, StepCommand};
use yirage_hal::{Backend, HostMemory, OpenOptions, Record};
use yirage_ir::op::{AllGather, AllReduce, Broadcast, ReduceScatter, SendRecv};
use yirage_ir::{Dims, Format, Op, Tensor, Type};
use yirage_ranks::RankGroup;
use yirage_testkit::tiny;

/// A machine with as many devices as ranks, and the library of collectives where it has one.
struct Ranks {
    machine: FakeCuda,
    library: Option<FakeNccl>,
    vendor: CudaVendor,
    ranks: usize,
}

impl Ranks {
    fn of((vendor, fake): (CudaVendor, FakeVendor), ranks: usize, has_library: bool) -> Ranks {
        let machine = FakeCuda::of(fake, &[("FAKE_CUDA_DEVICES", &ranks.to_string())]);
        let library = has_library.then(|| machine.with_collectives());
        Ranks { machine, library, vendor, ranks }
    }

    /// Runs `body` on every rank.
    fn run<T: Send>(&self, deadline: Duration, body: impl Fn(CudaBackend, usize) -> T + Sync) -> Vec<T> {
        let group = LocalGroup::new(self.ranks, deadline).unwrap();
        std::thread::scope(|scope| {
            let of_rank = |rank: usize| {
                let (group, body) = (&group, &body);
                scope.spawn(move || {
                    let place = Arc::new(RankGroup::new(group.join(rank).unwrap()));
                    body(CudaBackend::of_group(self.vendor, self.machine.surroundings(), place), rank)
                })
            };
            let all: Vec<_> = (0..self.ranks).map(of_rank).collect();
            all.into_iter().map(|rank| rank.join().unwrap()).collect()
        })
    }

    /// Calls of the maker's library; none where there is no library.
    fn calls(&self) -> u64 {
        self.library.as_ref().map_or(0, FakeNccl::calls)
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
fn collective(driver: &CudaDriver, op: &Op, given: &Tensor, [rows, width]: [u32; 2]) -> Result<Vec<u8>, DriverError> {
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
#[test]
#[ignore = "needs a compiler of C++"]
fn collectives_have_the_bytes_of_their_definition_by_the_library_and_by_the_host() {
    let vendors = [
        (CudaVendor::Nvidia, FakeVendor::Cuda),
        (CudaVendor::Amd, FakeVendor::Hip),
        (CudaVendor::MooreThreads, FakeVendor::Musa),
        (CudaVendor::Iluvatar, FakeVendor::Corex),
        (CudaVendor::MetaX, FakeVendor::Maca),
    ];
    let cases = vendors.iter().map(|vendor| (*vendor, 2, true)).chain([
        (vendors[0], 3, true),
        (vendors[0], 2, false),
        (vendors[0], 3, false),
    ]);
    for (vendor, ranks, has_library) in cases {
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
        if let Some(library) = &all.library {
            library.leaves_nothing();
        }
    }
}

/// A rank that does something else is found on the host, before the library is called.
#[test]
#[ignore = "needs a compiler of C++"]
fn ranks_that_do_not_do_the_same_are_told_so() {
    let all = Ranks::of((CudaVendor::Nvidia, FakeVendor::Cuda), 2, true);
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

/// A rank whose partner is gone hears it, and one whose collective hangs in the library ends it by its deadline.
#[test]
#[ignore = "needs a compiler of C++"]
fn a_rank_that_is_gone_or_hangs_is_an_error_within_the_deadline() {
    for hangs in [false, true] {
        let all = Ranks::of((CudaVendor::Nvidia, FakeVendor::Cuda), 2, true);
        let ends = all.run(Duration::from_secs(2), |backend, rank| {
            let driver = backend.driver(0).unwrap();
            let sum = Op::AllReduce(AllReduce { ranks: 2 });
            collective(&driver, &sum, &matrix(rank, 4, 4), [4, 4]).unwrap();
            if rank == 1 && !hangs {
                return Ok(());
            }
            if rank == 1 {
                // It agrees to take part, and its device does not come to it.
                all.library.as_ref().unwrap().fail("ncclAllReduce", 1, 3);
            } else {
                std::thread::sleep(Duration::from_millis(300));
            }
            collective(&driver, &sum, &matrix(rank, 4, 4), [4, 4]).map(drop)
        });
        let Err(DriverError::Lost(why)) = &ends[0] else { panic!("{ends:?}") };
        let wanted = if hangs { ["NCCL: rank 0", "all_reduce(sum)"] } else { ["rank 1 is gone", "has left"] };
        assert!(wanted.iter().all(|word| why.contains(word)), "{why}");
    }
}

#[test]
#[ignore = "needs a compiler of C++"]
fn as_many_devices_as_ranks_are_wanted_and_what_carries_is_told() {
    let all = Ranks::of((CudaVendor::Nvidia, FakeVendor::Cuda), 2, true);
    let told = all.run(LONG, |backend, _| backend.open(0, &OpenOptions::default()).unwrap().1);
    for notes in &told {
        assert!(notes.iter().any(|note| note == "collectives by NVIDIA NCCL 2.18.5"), "{notes:?}");
        assert!(notes.iter().any(|note| note.contains("not captured")), "{notes:?}");
    }
    let without = Ranks::of((CudaVendor::Nvidia, FakeVendor::Cuda), 2, false);
    let told = without.run(LONG, |backend, _| backend.open(0, &OpenOptions::default()).unwrap().1);
    assert!(told[0].iter().any(|note| note.contains("host's memory") && note.contains("libnccl")), "{told:?}");
    let few = all.run(LONG, |backend, _| backend.open(1, &OpenOptions::default()).map(drop));
    assert!(few[0].is_ok(), "{few:?}");
    assert!(few[1].as_ref().is_err_and(|error| error.to_string().contains("rank 1 of 2 wants device 2")), "{few:?}");
}

/// Each rank has an engine and compares its tokens with those of transformers.
#[test]
#[ignore = "needs a compiler of C++"]
fn a_model_on_two_devices_gives_the_tokens_of_one() {
    for has_library in [true, false] {
        let all = Ranks::of((CudaVendor::Nvidia, FakeVendor::Cuda), 2, has_library);
        all.run(LONG, |backend, _| {
            let device = backend.open(0, &OpenOptions::default()).unwrap().0;
            models::check(&tiny::NAMES[..1], &device);
        });
        assert_eq!(all.calls() > 0, has_library);
    }
}
