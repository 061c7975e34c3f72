//! How long an all_reduce of f32 takes among processes of this box, with shared memory, and with messages of MPI where mpirun
//! has started them: `cargo bench -p yirage-comm --bench all_reduce -- 2`, `mpirun -n 2 target/release/deps/all_reduce-*`.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

#[cfg(target_os = "linux")]
fn main() {
    linux::main();
}

#[cfg(not(target_os = "linux"))]
fn main() {
    println!("there are no transports on this system");
}

#[cfg(target_os = "linux")]
mod linux {
    use std::process::Command;
    use std::time::{Duration, Instant};
    use yirage_comm::{Communicator, LocalGroup, MpiRanks, RankSeat, ReduceOp};

    const DEADLINE: Duration = Duration::from_secs(60);

    pub(super) fn main() {
        if let Some(seat) = RankSeat::from_environment().unwrap() {
            return measure(&mut seat.join().unwrap());
        }
        if let Some(mpi) = MpiRanks::from_environment() {
            return measure(&mut mpi.join(DEADLINE).unwrap());
        }
        let ranks = std::env::args().find_map(|argument| argument.parse().ok()).unwrap_or(2);
        let group = LocalGroup::new(ranks, DEADLINE).unwrap();
        let program = std::env::current_exe().unwrap();
        let children: Vec<_> = (1..ranks).map(|rank| group.spawn(rank, &mut Command::new(&program)).unwrap()).collect();
        measure(&mut group.join(0).unwrap());
        children.into_iter().for_each(|mut child| assert!(child.wait().unwrap().success()));
    }

    fn measure(comm: &mut Communicator) {
        for kib in [4, 16, 64, 256, 1024, 4096, 16384] {
            let mut values = vec![0.0f32; kib * 256];
            let rounds = (65536 / kib).clamp(8, 2000);
            let mut best = Duration::MAX;
            for _ in 0..5 {
                comm.barrier().unwrap();
                let begun = Instant::now();
                (0..rounds).for_each(|_| comm.all_reduce(&mut values, ReduceOp::Sum).unwrap());
                best = best.min(begun.elapsed() / rounds as u32);
            }
            if comm.rank() == 0 {
                let rate = (kib * 1024) as f64 / best.as_secs_f64() / 1e9;
                println!("{} ranks, {kib:>6} KiB: {:>10.1} us, {rate:.2} GB/s", comm.ranks(), best.as_secs_f64() * 1e6);
            }
        }
    }
}
