//! The table as a compiler of C lays it out, beside this crate's.

use crate::built::{library_of, root};
use yirage_hal::Backend;
use yirage_plugin::PluginBackend;

/// A library with a table of zeros behind a true beginning, of which the compiler of C says how long it is.
#[test]
#[ignore = "needs a compiler of C"]
fn a_compiler_of_c_lays_the_table_out_the_same() {
    let header = std::fs::read_to_string(root().join("crates/yirage-plugin/include/yirage_backend.h")).unwrap();
    assert!(header.contains("#define YIRAGE_BACKEND_VERSION 1\n"));
    // Offsets are checked where the header is compiled; the numbers are those of the fields before each.
    let text = r#"
#include "yirage_backend.h"
_Static_assert(offsetof(struct yirage_device_info, total_memory) == 272, "total_memory");
_Static_assert(offsetof(struct yirage_device_info, shared_bytes) == 296, "shared_bytes");
_Static_assert(offsetof(struct yirage_device_info, in_flight) == 320, "in_flight");
_Static_assert(sizeof(struct yirage_device_info) == 328, "device_info");
_Static_assert(sizeof(struct yirage_slice) == 24 && sizeof(struct yirage_kernel) == 16, "slice, kernel");
_Static_assert(offsetof(struct yirage_launch, slices) == 32 && sizeof(struct yirage_launch) == 48, "launch");
_Static_assert(offsetof(struct yirage_backend, count) == 24, "count");
_Static_assert(offsetof(struct yirage_backend, graphs) == 24 + 16 * sizeof(void *), "graphs");
_Static_assert(sizeof(struct yirage_backend) == 24 + 18 * sizeof(void *), "backend");
_Static_assert(sizeof(struct yirage_graphs) == 40 && sizeof(struct yirage_clock) == 16, "graphs, clock");
static const struct yirage_backend backend = {
    .version = YIRAGE_BACKEND_VERSION, .bytes = sizeof backend, .name = "mine", .title = "all null"};
const struct yirage_backend *yirage_backend(void) { return &backend; }
"#;
    let (_folder, library) = library_of(text);
    let why = PluginBackend::new("mine", &library).unwrap().probe().unwrap_err().why;
    assert!(why.contains("`count` is null"), "{why}");
}
