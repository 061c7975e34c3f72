//! Models whose ranks are real processes: this program again, each with an engine and a simulated accelerator of its own.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::print_stdout)] // helpers of tests are tests, and a rank tells its end

mod rank;

use rank::{Ended, RankScript, mpirun, start};
use yirage_testkit::tiny;

/// What each process of the tests below is.
#[test]
#[ignore = "the other tests start it, once for each rank"]
fn child_rank() {
    rank::run();
}

/// All ranks have the tokens, and each compares them with those of transformers.
#[test]
fn several_processes_give_the_tokens_of_one() {
    for ranks in [2, 4] {
        for model in tiny::NAMES {
            let ends = start(ranks, 600_000, |_| RankScript::Golden(model));
            assert!(ends.iter().all(|end| *end == Ended::Well), "{model} on {ranks} ranks: {ends:#?}");
        }
    }
}

/// One engine alone, whose device has the others follow: on processors, and on accelerators whose memory the host does not
/// reach.
#[test]
fn processes_that_follow_one_give_the_tokens_of_one() {
    for ranks in [1, 2, 4] {
        for model in tiny::NAMES {
            let ends = start(ranks, 600_000, |_| RankScript::Led("cpu", model));
            assert!(ends.iter().all(|end| *end == Ended::Well), "{model} on {ranks} ranks: {ends:#?}");
        }
    }
    let ends = start(2, 600_000, |_| RankScript::Led("sim", tiny::NAMES[0]));
    assert!(ends.iter().all(|end| *end == Ended::Well), "{ends:#?}");
}

/// Experts that are whole on one rank each: every mixture on two, and one of eight experts on four.
#[test]
fn processes_with_experts_of_their_own_give_the_tokens_of_one() {
    for (ranks, model) in tiny::mixtures().map(|model| (2, model)).chain([(4, "qwen3moe")]) {
        let ends = start(ranks, 600_000, |_| RankScript::OwnExperts(model));
        assert!(ends.iter().all(|end| *end == Ended::Well), "{model} on {ranks} ranks: {ends:#?}");
    }
}

/// Ranks that have some layers whole: every architecture on two, those of more layers on as many as they have, and stages of two
/// kinds of devices.
#[test]
fn processes_that_are_stages_give_the_tokens_of_one() {
    let all = tiny::staged().map(|model| (2, "cpu", model));
    for (ranks, backend, model) in all.chain([(3, "cpu", "llama"), (7, "cpu", "gemma3"), (3, "sim", "llama")]) {
        let ends = start(ranks, 600_000, |_| RankScript::Stages(backend, model));
        assert!(
            ends.iter().all(|end| *end == Ended::Well),
            "{model} in {ranks} stages, the last of {backend}: {ends:#?}"
        );
    }
}

/// Heads and rows of the first model do not divide by three, and not all by eight: what does not, each rank has whole.
#[test]
fn numbers_of_ranks_that_divide_little_give_the_same_tokens() {
    for ranks in [1, 3, 8] {
        for model in &tiny::NAMES[..2] {
            let ends = start(ranks, 600_000, |_| RankScript::Golden(model));
            assert!(ends.iter().all(|end| *end == Ended::Well), "{model} on {ranks} ranks: {ends:#?}");
        }
    }
}

/// Runs the models on two ranks, and the first of them on four, under both launchers.
fn hold_under_mpi(models: &[&'static str], on_four: usize) {
    for launcher in ["mpirun.openmpi", "mpirun.mpich"] {
        for (ranks, models) in [(2, models), (4, &models[..on_four])] {
            for model in models {
                let (passed, text) = mpirun(launcher, ranks, RankScript::Golden(model));
                assert!(passed == ranks && !text.contains("rank error"), "{launcher}, {model}, {ranks} ranks: {text}");
            }
        }
    }
}

/// Each start takes seconds: what differs from model to model is shown without MPI.
#[test]
#[ignore = "needs mpirun.openmpi and mpirun.mpich"]
fn processes_of_mpi_give_the_tokens_of_one() {
    hold_under_mpi(&tiny::NAMES.iter().copied().step_by(6).collect::<Vec<_>>(), 1);
}

#[test]
#[ignore = "needs mpirun.openmpi and mpirun.mpich"]
fn processes_of_mpi_give_the_tokens_of_one_in_all_its_ways() {
    hold_under_mpi(tiny::NAMES, 4);
}

#[test]
fn a_rank_that_dies_in_a_step_ends_the_others_with_an_error() {
    let ends = start(4, 600_000, |rank| if rank == 2 { RankScript::AbortAfter(5) } else { RankScript::Forever });
    assert_eq!(ends[2], Ended::Killed);
    for rank in [0, 1, 3] {
        let Ended::Error(error) = &ends[rank] else { panic!("rank {rank}: {:?}", ends[rank]) };
        assert!(error.contains("rank 2 is gone") && error.contains("is dead"), "rank {rank}: {error}");
    }
}

#[test]
fn ranks_with_different_requests_are_told_so() {
    let ends = start(2, 600_000, |rank| RankScript::Prompt(5 + rank));
    for (rank, end) in ends.iter().enumerate() {
        let Ended::Error(error) = end else { panic!("rank {rank}: {end:?}") };
        assert!(error.contains("the ranks run different steps: "), "rank {rank}: {error}");
    }
}
