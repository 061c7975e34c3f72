//! What would not fit is known before it is taken, and what is refused all the same ends in exit code 4.

use crate::support::{Ran, TINY, yirage};

/// Its arguments, in a process with so many KiB of address space.
#[cfg(target_os = "linux")]
fn within(kib: u64, arguments: &[&str]) -> (Option<i32>, String) {
    let mut command = std::process::Command::new("sh");
    command.args(["-c", "ulimit -v $0; exec \"$@\"", &kib.to_string(), env!("CARGO_BIN_EXE_yirage")]);
    command.args(arguments).env("YIRAGE_WEIGHT_CACHE", "off").env("HOME", std::env::temp_dir());
    let output = command.stdin(std::process::Stdio::null()).output().unwrap();
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

fn check(ran: &Ran, code: i32, parts: &[&str]) {
    assert_eq!(ran.code, code, "{}", ran.err);
    for part in parts {
        assert!(ran.err.contains(part), "{part:?} is not in {:?}", ran.err);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn tables_of_a_long_context_are_predicted_not_built() {
    let arguments = ["run", TINY, "--prompt-ids", "1", "-c", "67108864", "--chunk", "1048576"];
    // What is predicted is told where the tables themselves would never have had room.
    let (code, err) = within(600_000, &arguments);
    assert_eq!(code, Some(4), "{err}");
    for part in ["would not fit", "weights 3", "tables", "ulimit -v", "614400000"] {
        assert!(err.contains(part), "{part:?} is not in {err:?}");
    }
}

/// KiB of address space, to a thousand, in which the program itself begins. With less the system ends it before it does.
#[cfg(target_os = "linux")]
fn least() -> u64 {
    let begins = |kib: &u64| within(*kib, &["--version"]).0 == Some(0);
    (10_000..100_000).step_by(1_000).find(begins).expect("the program begins in 100,000 KiB")
}

#[cfg(target_os = "linux")]
#[test]
fn little_memory_is_never_an_abort() {
    let commands: [&[&str]; 5] = [
        &["run", TINY, "--prompt-ids", "1,2", "-n", "8", "-q"],
        &["logits", TINY, "--ids", "1,2,3", "-q"],
        &["perplexity", TINY, "--ids", "1,2,3", "-q"],
        &["run", TINY, "--prompt-ids", "1,2", "-n", "8", "-q", "-t", "16"],
        &["bench", TINY, "-p", "16", "-n", "4", "-r", "1", "-q"],
    ];
    let mut codes = Vec::new();
    let limits = [60_000, 90_000, 120_000, 150_000, 200_000, 250_000, 400_000, 800_000, 4_000_000];
    let least = least();
    for kib in std::iter::once(least).chain(limits.into_iter().filter(|&kib| kib > least)) {
        for arguments in commands {
            let (code, err) = within(kib, arguments);
            assert!(matches!(code, Some(0 | 4)), "{arguments:?} within {kib} KiB: {code:?}: {err}");
            codes.push(code);
        }
    }
    assert!(codes.contains(&Some(4)) && codes.contains(&Some(0)), "{codes:?}");
}

#[test]
fn many_sequences_are_predicted() {
    let ran = yirage(&["bench", TINY, "--sequences", "4096", "-d", "64", "-p", "0", "-n", "32"]).ran();
    check(&ran, 4, &["would not fit", "available"]);
}

#[test]
fn numbers_at_their_ends_are_refused() {
    for (option, value) in [
        ("--context", "4294967295"),
        ("--chunk", "4294967295"),
        ("--draft-max", "4294967295"),
        ("--threads", "18446744073709551615"),
    ] {
        check(&yirage(&["run", TINY, "--prompt-ids", "1", option, value]).ran(), 2, &[option, value]);
    }
    check(&yirage(&["bench", TINY, "-b", "4294967295"]).ran(), 2, &["--batch-size"]);
}

#[test]
fn a_benchmark_beyond_the_context_is_wrong_usage() {
    check(&yirage(&["bench", TINY, "-p", "129"]).ran(), 2, &["--n-prompt", "pp129", "129 positions", "128"]);
    check(&yirage(&["bench", TINY, "-p", "0", "-n", "8", "-d", "128"]).ran(), 2, &["--n-depth", "136"]);
}

#[test]
fn threads_beyond_sense_are_refused_and_some_more_are_noted() {
    check(&yirage(&["run", TINY, "--prompt-ids", "1", "-t", "1025"]).ran(), 2, &["--threads", "1 to ", "1025"]);
    let processors = std::thread::available_parallelism().unwrap().get();
    if processors < 32 {
        let ran = yirage(&["run", TINY, "--prompt-ids", "1", "-n", "1", "-t", "33"]).ran();
        check(&ran, 0, &["33 threads take turns"]);
    }
}

#[test]
fn logits_take_the_whole_context() {
    let ids = |n: u32| (0..n).map(|i| (i % 90).to_string()).collect::<Vec<_>>().join(",");
    let last = yirage(&["logits", TINY, "--ids", &ids(128), "--json"]).json();
    let all = yirage(&["logits", TINY, "--ids", &ids(128), "--positions", "all", "--json"]).json();
    assert_eq!(last["positions"].as_array().unwrap().len(), 1);
    assert_eq!(last["positions"][0], all["positions"][127]);
    check(&yirage(&["logits", TINY, "--ids", &ids(129)]).ran(), 1, &["129", "128"]);
}

#[cfg(target_arch = "x86_64")]
#[test]
fn an_instruction_set_of_other_processors_is_not_supported() {
    check(&yirage(&["run", TINY, "--prompt-ids", "1", "--isa", "neon"]).ran(), 3, &["neon", "x86_64"]);
}
