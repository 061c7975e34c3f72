//! Random schedules of collectives and messages, each compared with what its definition says.

use crate::values::{ComparedElement, ScheduleRandom, given};
use half::{bf16, f16};
use yirage_comm::{CommError, Communicator, ReduceOp};

/// A schedule of twelve steps, which every rank draws alike.
pub(crate) fn run(comm: &mut Communicator, seed: u64) -> Result<(), CommError> {
    let mut random = ScheduleRandom::new(seed);
    for step in 0..12 {
        let step_seed = seed * 100 + step;
        match random.below(5) {
            0 => one::<f32>(comm, &mut random, step_seed)?,
            1 => one::<f16>(comm, &mut random, step_seed)?,
            2 => one::<bf16>(comm, &mut random, step_seed)?,
            3 => one::<i32>(comm, &mut random, step_seed)?,
            _ => one::<u8>(comm, &mut random, step_seed)?,
        }
    }
    Ok(())
}

/// Everything once with more than a slot holds, and with nothing.
pub(crate) fn large(comm: &mut Communicator) -> Result<(), CommError> {
    for count in [100_003, 0] {
        for kind in 0..KINDS {
            step::<f32>(comm, kind, count, 1, 7)?;
            step::<u8>(comm, kind, count, 2, 8)?;
        }
    }
    Ok(())
}

fn one<T: ComparedElement>(comm: &mut Communicator, random: &mut ScheduleRandom, seed: u64) -> Result<(), CommError> {
    let counts = [0, 1, 2, 3, 7, 31, 64, 257, 1000, 40_001];
    let count = counts[random.below(counts.len() as u64) as usize];
    step::<T>(comm, random.below(KINDS), count, random.next(), seed)
}

const KINDS: u64 = 16;

/// One step of any kind; `choice` is a root, a shift or a pair of ranks.
fn step<T: ComparedElement>(
    comm: &mut Communicator,
    kind: u64,
    count: usize,
    choice: u64,
    seed: u64,
) -> Result<(), CommError> {
    let (rank, ranks) = (comm.rank(), comm.ranks());
    let chosen = (choice % ranks as u64) as usize;
    let all = given::<T>(seed, ranks, count);
    match kind {
        0..5 => {
            let op = ReduceOp::ALL[kind as usize];
            let mut values = all[rank].clone();
            comm.all_reduce(&mut values, op)?;
            same(&values, &reduced(op, &all));
        }
        5..10 => {
            let op = ReduceOp::ALL[kind as usize - 5];
            let all = given::<T>(seed, ranks, count * ranks);
            let mut part = vec![T::default(); count];
            comm.reduce_scatter(&all[rank], &mut part, op)?;
            same(&part, &reduced(op, &all)[rank * count..][..count]);
        }
        10 => {
            let mut values = vec![T::default(); count * ranks];
            comm.all_gather(&all[rank], &mut values)?;
            same(&values, &all.concat());
        }
        11 => {
            let mut values = all[rank].clone();
            comm.broadcast(&mut values, chosen)?;
            same(&values, &all[chosen]);
        }
        12 => {
            let mut values = vec![T::default(); count];
            comm.shift(&all[rank], &mut values, chosen)?;
            same(&values, &all[(rank + ranks - chosen) % ranks]);
        }
        13 => comm.barrier()?,
        _ => message(comm, &all, chosen, choice)?,
    }
    Ok(())
}

/// From one rank to another and back; the others have nothing to do with it.
fn message<T: ComparedElement>(
    comm: &mut Communicator,
    all: &[Vec<T>],
    from: usize,
    choice: u64,
) -> Result<(), CommError> {
    let (rank, ranks) = (comm.rank(), comm.ranks());
    if ranks == 1 {
        return Ok(());
    }
    let to = (from + 1 + (choice / 64) as usize % (ranks - 1)) % ranks;
    let mut values = vec![T::default(); all[0].len()];
    if rank == from {
        comm.send(&all[rank], to)?;
        comm.recv(&mut values, to)?;
        same(&values, &all[from]);
    } else if rank == to {
        comm.recv(&mut values, from)?;
        comm.send(&values, from)?;
        same(&values, &all[from]);
    }
    Ok(())
}

fn reduced<T: ComparedElement>(op: ReduceOp, all: &[Vec<T>]) -> Vec<T> {
    let at = |i: usize| T::reduced(op, &all.iter().map(|values| values[i]).collect::<Vec<T>>());
    (0..all[0].len()).map(at).collect()
}

/// To the bit.
fn same<T: ComparedElement>(got: &[T], wanted: &[T]) {
    let bits = |values: &[T]| values.iter().map(|x| x.bits()).collect::<Vec<u32>>();
    assert_eq!(bits(got), bits(wanted));
}
