//! Libraries with one thing wrong: each is told, and nothing of them is called.

use crate::built::library_of;
use yirage_hal::driver::Driver;
use yirage_hal::{Backend, OpenOptions};
use yirage_plugin::PluginBackend;

/// A backend of one device that does nothing, in which single things can be replaced.
const WHOLE: &str = r#"
#include <string.h>
#include "yirage_backend.h"
#define UNUSED __attribute__((unused))
#define M UNUSED struct yirage_message *message
#define D UNUSED struct yirage_device *device
static yirage_status count(uint32_t *devices, M) { *devices = COUNT; return YIRAGE_DONE; }
static yirage_status describe(UNUSED uint32_t ordinal, struct yirage_device_info *info, M) {
  memset(info->name, 'x', sizeof info->name);
  strcpy(info->dialect, DIALECT);
  info->threads = THREADS, info->shared_bytes = 1024, info->in_flight = 1;
  info->grid[0] = info->grid[1] = info->grid[2] = 1;
  return YIRAGE_DONE;
}
static yirage_status open(UNUSED uint32_t ordinal, struct yirage_device **device, M) { *device = (struct yirage_device *)DEVICE; OPEN }
static void close(D) {}
static yirage_status alloc(D, UNUSED uint64_t bytes, uint64_t *buffer, M) { *buffer = 5; return YIRAGE_DONE; }
static void free_buffer(D, UNUSED uint64_t buffer) {}
static yirage_status upload(D, UNUSED const void *from, UNUSED struct yirage_slice to, M) { return YIRAGE_DONE; }
static yirage_status download(D, UNUSED struct yirage_slice from, UNUSED void *to, M) { return YIRAGE_DONE; }
static yirage_status copy(D, UNUSED struct yirage_slice from, UNUSED struct yirage_slice to, M) { return YIRAGE_DONE; }
static yirage_status fill(D, UNUSED struct yirage_slice slice, UNUSED uint8_t byte, M) { return YIRAGE_DONE; }
static yirage_status load(D, UNUSED const char *source, UNUSED size_t bytes, UNUSED const struct yirage_kernel *kernels, UNUSED size_t all,
                          uint64_t *module, M) { *module = 1; return YIRAGE_DONE; }
static yirage_status launch(D, UNUSED const struct yirage_launch *launch, M) { return YIRAGE_DONE; }
static yirage_status value(D, uint64_t *value, M) { *value = 0; return YIRAGE_DONE; }
static yirage_status wait_for(D, UNUSED uint64_t value, UNUSED uint64_t nanoseconds, M) { return YIRAGE_DONE; }
static yirage_status begin(D, M) { return YIRAGE_DONE; }
static yirage_status replay(D, UNUSED uint64_t graph, M) { return YIRAGE_DONE; }
UNUSED static const struct yirage_graphs graphs = {sizeof graphs, begin, value, replay, free_buffer};
UNUSED static const struct yirage_graphs short_graphs = {8, begin, value, replay, free_buffer};
UNUSED static const struct yirage_graphs no_end = {sizeof no_end, begin, 0, replay, free_buffer};
UNUSED static const struct yirage_clock broken_clock = {sizeof broken_clock, 0};
static const struct yirage_backend backend = {VERSION, BYTES, NAME, "nothing", count, describe, open, close, alloc, free_buffer,
                                              upload, download, copy, fill, load, free_buffer, launch, value, value, wait_for, GRAPHS, CLOCK};
const struct yirage_backend *yirage_backend(void) { return RETURNED; }
"#;

/// What each word of [`WHOLE`] stands for.
const WORDS: [(&str, &str); 11] = [
    ("COUNT", "1"),
    ("DIALECT", "\"cuda\""),
    ("THREADS", "256"),
    ("DEVICE", "8"),
    ("OPEN", "return YIRAGE_DONE;"),
    ("VERSION", "YIRAGE_BACKEND_VERSION"),
    ("BYTES", "sizeof backend"),
    ("NAME", "\"mine\""),
    ("RETURNED", "&backend"),
    ("GRAPHS", "0"),
    ("CLOCK", "0"),
];

fn with(changed: &str, to: &str) -> String {
    assert!(WORDS.iter().any(|(word, _)| *word == changed) || changed.is_empty());
    let defined = WORDS.map(|(word, own)| format!("#define {word} {}\n", if word == changed { to } else { own }));
    defined.concat() + WHOLE
}

fn why(changed: &str, to: &str) -> String {
    let (_folder, library) = library_of(&with(changed, to));
    PluginBackend::new("mine", &library).unwrap().probe().unwrap_err().why
}

#[test]
#[ignore = "needs a compiler of C"]
fn what_a_library_says_is_checked_before_it_is_believed() {
    for (changed, to, told) in [
        ("VERSION", "2", "expected version 1 of the plug-in interface, got 2"),
        ("BYTES", "100", "expected a table of 152 bytes at least, got 100"),
        ("NAME", "\"other\"", "expected a backend named `mine`, got `other`"),
        ("NAME", "(const char *)0", "`name` or `title` is null"),
        ("RETURNED", "(const struct yirage_backend *)0", "returned no table"),
        ("GRAPHS", "&short_graphs", "expected `graphs` of 40 bytes, got 8"),
        ("GRAPHS", "&no_end", "`graphs.end` is null"),
        ("CLOCK", "&broken_clock", "`clock.timestamp` is null"),
        ("COUNT", "0", "it finds 0 devices"),
        ("COUNT", "5000", "it finds 5000 devices"),
        ("DIALECT", "\"metal\"", "got `metal`"),
        ("THREADS", "0", "expected threads, shared bytes, a grid and steps in flight, got 0"),
    ] {
        let why = why(changed, to);
        assert!(why.contains(told), "{changed} {to}: {why}");
    }
}

#[test]
#[ignore = "needs a compiler of C"]
fn a_device_that_does_not_open_says_why() {
    let opened = |changed: &str, to: &str| {
        let (_folder, library) = library_of(&with(changed, to));
        let backend = PluginBackend::new("mine", &library).unwrap();
        backend.open(0, &OpenOptions::default()).err().map(|error| error.to_string())
    };
    let failed = "strcpy(message->text, \"busy\"); return YIRAGE_FAILED;";
    assert!(opened("OPEN", failed).unwrap().contains("open: busy"));
    assert!(opened("OPEN", "return 77;").unwrap().contains("expected a status from 0 to 5, got 77"));
    assert!(opened("DEVICE", "0").unwrap().contains("gave no device"));
    assert_eq!(opened("", ""), None, "a name without an end is cut, and no error");
}

/// A library of an older header ends before what may be left out, and one of this header may leave it out: both run without.
#[test]
#[ignore = "needs a compiler of C"]
fn a_library_without_graphs_and_clock_runs_without() {
    let has = |changed: &str, to: &str| {
        let (_folder, library) = library_of(&with(changed, to));
        let driver = PluginBackend::new("mine", &library).unwrap().driver(0).unwrap();
        (driver.graph_capture().is_some(), driver.clock().is_some())
    };
    assert_eq!(has("BYTES", "offsetof(struct yirage_backend, graphs)"), (false, false));
    assert_eq!(has("", ""), (false, false));
    assert_eq!(has("GRAPHS", "&graphs"), (true, false));
}

#[test]
#[ignore = "needs a compiler of C"]
fn a_library_without_the_function_is_told() {
    let (_folder, library) = library_of("int other(void) { return 0; }\n");
    let why = PluginBackend::new("mine", &library).unwrap().probe().unwrap_err().why;
    assert!(why.contains("it has no function yirage_backend"), "{why}");
}
