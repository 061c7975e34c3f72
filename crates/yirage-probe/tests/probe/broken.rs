//! Libraries that are broken: each is an error that names the file and the reason, and never the end of the process.

use crate::fakes::{CUDA, Machine, compile};
use std::fs;
use std::path::Path;
use std::time::Duration;
use yirage_hal::Unavailable;
use yirage_probe::families;

/// Where the library lies.
const LIBRARY: &str = "/usr/lib/libcuda.so.1";

fn look(machine: &Machine) -> Unavailable {
    let error = families::CUDA.look(&machine.surroundings()).unwrap_err();
    assert!(error.backend == "cuda" && !error.why.is_empty() && !error.remedy.is_empty(), "{error}");
    error
}

/// What is said when the bytes of a working library are changed so.
fn changed(change: impl FnOnce(&mut Vec<u8>)) -> String {
    let machine = Machine::new();
    let path = machine.library(LIBRARY, "driver.c", CUDA);
    let mut bytes = fs::read(&path).unwrap();
    change(&mut bytes);
    fs::write(&path, bytes).unwrap();
    look(&machine).why
}

/// What is said of a library that is compiled with these definitions besides.
fn compiled(definitions: &[&str]) -> String {
    let machine = Machine::new();
    machine.library(LIBRARY, "driver.c", &[CUDA, definitions].concat());
    look(&machine).why
}

fn without(function: &str) -> String {
    let machine = Machine::new();
    let definitions: Vec<_> = CUDA.iter().copied().filter(|d| !d.starts_with(function)).collect();
    machine.library(LIBRARY, "driver.c", &definitions);
    look(&machine).why
}

/// The first program header, which is in the usual place.
const FIRST: usize = 64;

fn first_dynamic(bytes: &[u8]) -> usize {
    (0..).map(|n| FIRST + 56 * n).find(|&at| bytes[at..at + 4] == [2, 0, 0, 0]).unwrap()
}

#[test]
fn files_that_are_no_whole_library_are_refused_before_they_are_loaded() {
    let whole = {
        let machine = Machine::new();
        fs::metadata(machine.library(LIBRARY, "driver.c", CUDA)).unwrap().len() as usize
    };
    type Change = Box<dyn FnOnce(&mut Vec<u8>)>;
    let cut = |to: usize| -> Change { Box::new(move |bytes| bytes.truncate(to)) };
    let set = |at: usize, value: u8| -> Change { Box::new(move |bytes| bytes[at] = value) };
    let variants: Vec<(&str, Change, &str)> = vec![
        ("empty", cut(0), "does not begin like one"),
        ("a linker's script", Box::new(|bytes| *bytes = b"INPUT(libcuda.so.1)".to_vec()), "does not begin like one"),
        ("the magic alone", cut(4), "cut off: the header ends at byte 64, and the file has 4"),
        ("half a header", cut(40), "cut off: the header"),
        ("half a table", cut(100), "cut off: the table of program headers"),
        ("half a file", cut(whole / 2), "cut off: the table of sections"),
        ("one byte less", cut(whole - 1), "cut off: the table of sections"),
        ("32 bits", set(4, 1), "a 32-bit library, and this program is 64-bit"),
        ("big-endian", set(5, 2), "a big-endian library"),
        ("no known class", set(4, 9), "its class is unknown"),
        ("another processor", set(18, 243), "ELF number 243"),
        ("a program", set(16, 2), "it is a program or an object file"),
        ("no program headers", set(56, 0), "its program headers make no sense"),
        ("strange program headers", set(54, 55), "its program headers make no sense"),
        ("headers beyond the end", set(39, 0x70), "cut off: the table of program headers"),
        ("sections beyond the end", set(47, 0xff), "cut off: the table of sections"),
        ("a segment beyond the end", set(FIRST + 8 + 5, 1), "cut off: a segment"),
        ("a segment beyond all numbers", set(FIRST + 32 + 7, 0xff), "cut off: a segment"),
        (
            "no table of symbols",
            Box::new(|bytes| {
                let at = first_dynamic(bytes);
                bytes[at] = 4;
            }),
            "it has no table of symbols",
        ),
    ];
    for (what, change, says) in variants {
        let why = changed(change);
        assert!(why.contains(says) && why.contains(LIBRARY), "{what}: {why}");
    }
}

#[test]
fn what_is_no_file_is_refused_without_waiting() {
    let machine = Machine::new();
    fs::create_dir_all(machine.path(LIBRARY)).unwrap();
    assert!(look(&machine).why.contains("a folder"), "{}", look(&machine));
    let machine = Machine::new();
    let pipe = machine.file(LIBRARY);
    assert!(std::process::Command::new("mkfifo").arg(pipe).status().unwrap().success());
    assert!(look(&machine).why.contains("a pipe"), "{}", look(&machine));
    let machine = Machine::new();
    compile(&machine.file(LIBRARY), "driver.c", &["-c", "-fPIC"], CUDA);
    assert!(look(&machine).why.contains("object file"), "{}", look(&machine));
    let machine = Machine::new();
    std::os::unix::fs::symlink("nowhere", machine.file(LIBRARY)).unwrap();
    assert!(look(&machine).why.contains("is in none of the"), "{}", look(&machine));
}

#[test]
fn libraries_that_cannot_be_used_say_why() {
    for (what, why, says) in [
        ("no start", without("START"), "it has no function cuInit"),
        ("no count", without("COUNT"), "it has no function cuDeviceGetCount"),
        ("no version", without("VERSION"), "it has no function cuDriverGetVersion"),
        ("no device", without("DEVICE="), "it has no function cuDeviceGet"),
        ("no name", without("NAME"), "it has no function cuDeviceGetName"),
        ("a function of nobody", compiled(&["UNRESOLVED"]), "function_of_nobody"),
        ("too old", compiled(&["ANSWER=11080"]), "version 11.8, and 12.0 is the oldest that will do"),
        ("no driver behind it", compiled(&["CODE=999"]), "cuInit failed with code 999"),
        ("a stub", compiled(&["CODE=34"]), "cuInit failed with code 34"),
        ("no device at start", compiled(&["CODE=100"]), "it works and finds no device"),
        ("no device counted", compiled(&["DEVICES=0"]), "it works and finds no device"),
        ("a negative number", compiled(&["DEVICES=-3"]), "cuDeviceGetCount answered -3 devices"),
        ("a huge number", compiled(&["DEVICES=1000000"]), "cuDeviceGetCount answered 1000000 devices"),
        ("a device without a name", compiled(&["DEVICES=3"]), "cuDeviceGetName failed with code 101"),
    ] {
        assert!(why.contains(says) && why.contains(LIBRARY), "{what}: {why}");
    }
}

#[test]
fn a_library_whose_own_libraries_are_gone_is_refused() {
    let machine = Machine::new();
    let needed = machine.library("/elsewhere/libneeded.so", "driver.c", &["START=needed"]);
    let definitions: Vec<_> = CUDA.iter().map(|d| format!("-D{d}")).collect();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/probe/fakes/driver.c");
    let mut compiler = std::process::Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-Wl,--no-as-needed"]).args(definitions);
    compiler.arg("-o").arg(machine.file(LIBRARY)).arg(source).arg(&needed);
    assert!(compiler.status().unwrap().success());
    fs::remove_file(&needed).unwrap();
    let error = look(&machine);
    assert!(error.why.contains("libneeded.so") && error.remedy.contains("ldd"), "{error}");
}

#[test]
fn a_library_that_does_not_answer_is_left_behind() {
    for slow in ["SLOW_START", "SLOW_LOAD"] {
        let machine = Machine::new();
        machine.library(LIBRARY, "driver.c", &[CUDA, &[slow]].concat());
        let soon = machine.surroundings().with_deadline(Duration::from_millis(100));
        let error = families::CUDA.look(&soon).unwrap_err();
        assert!(error.why.contains("did not answer within 0.1 s") && error.remedy.contains("hang"), "{slow}: {error}");
    }
}

#[test]
fn runtimes_of_other_shapes_say_why_too() {
    let machine = Machine::new();
    machine.library("/usr/lib64/libvulkan.so.1", "vulkan.c", &["ANSWER=(1u<<22)"]);
    let error = families::VULKAN.look(&machine.surroundings()).unwrap_err();
    assert!(error.why.contains("version 1.0.0, and 1.1.0 is the oldest"), "{error}");
    let machine = Machine::new();
    machine.library("/usr/lib64/libascendcl.so", "vulkan.c", &[]);
    let error = families::ASCEND.look(&machine.surroundings()).unwrap_err();
    assert!(error.why.contains("no function aclrtGetVersion"), "{error}");
    let machine = Machine::new();
    machine.library("/opt/rocm/lib/libamdhip64.so.5", "driver.c", &["VERSION=hipRuntimeGetVersion", "ANSWER=40300000"]);
    let error = families::HIP.look(&machine.surroundings()).unwrap_err();
    assert!(error.why.contains("version 4.3, and 5.0 is the oldest"), "{error}");
}

#[test]
fn a_family_of_another_system_says_which() {
    let error = families::METAL.look(&Machine::new().surroundings()).unwrap_err();
    assert_eq!(error.to_string(), "mps: it is looked for on macos, and this is linux; choose another backend");
}

#[test]
fn on_a_bare_machine_every_family_says_what_to_install() {
    for family in families::ALL.into_iter().filter(|family| family.name != "mps") {
        let error = family.look(&Machine::new().surroundings()).unwrap_err();
        assert!(error.why.contains("is in none of the") && error.remedy.starts_with("install"), "{error}");
    }
}
