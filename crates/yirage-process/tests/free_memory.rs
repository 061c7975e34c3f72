//! Memory that is free is given back, wherever it lies.
#![cfg(all(target_os = "linux", target_env = "gnu"))]

use yirage_process::give_back_free_memory;

/// Bytes of the process that are in memory. The system counts them in KiB here, whatever its pages have.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux has it");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a line of it");
    let kib: usize = line.split_whitespace().next().and_then(|kib| kib.parse().ok()).expect("a number");
    kib << 10
}

#[test]
fn what_lies_below_a_block_in_use_is_given_back_too() {
    const BLOCK: usize = 16 << 10;
    let mut blocks: Vec<Vec<u8>> = (0..1024).map(|_| vec![1; BLOCK]).collect();
    // The last one stays where the heap ends.
    let last = blocks.pop();
    let full = resident();
    drop(blocks);
    let freed = resident();
    give_back_free_memory();
    let left = resident();
    assert!(freed > full - (full >> 2), "{freed} of {full}: the library gave it back by itself");
    assert!(left < full - (12 << 20), "{left} of {full}");
    drop(last);
}
