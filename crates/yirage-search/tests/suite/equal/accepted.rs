//! Pairs of graphs that are equal are found so, at several sizes and for each type of float.

use super::laws::{self, Sizes};
use crate::support::target;
use std::collections::BTreeSet;
use std::path::Path;
use yirage_compile::{CompileOptions, Decisions, PIPELINE};
use yirage_ir::{DType, Format, text};
use yirage_plan::Precision;
use yirage_search::equal::{EqualityOptions, equivalent};

const SIZES: [Sizes; 4] = [
    Sizes { m: 3, k: 4, n: 5, h: 2 },
    Sizes { m: 1, k: 64, n: 8, h: 4 },
    Sizes { m: 6, k: 7, n: 9, h: 3 },
    Sizes { m: 4, k: 130, n: 16, h: 2 },
];

#[test]
fn equal_pairs_are_accepted() {
    let (mut pairs, mut refused, mut names) = (0, Vec::new(), BTreeSet::new());
    for law in laws::all() {
        assert!(names.insert(law.name), "two laws are called {}", law.name);
        for dtype in [DType::F32, DType::Stored(Format::F16), DType::Stored(Format::BF16)] {
            if law.f32_only && dtype != DType::F32 {
                continue;
            }
            for sizes in SIZES {
                let [a, b] = law.sides(sizes, dtype);
                pairs += 1;
                if let Err(why) = equivalent(&a, &b, &EqualityOptions::default()) {
                    refused.push(format!("{}, {dtype}, {sizes:?}: {why}", law.name));
                }
            }
        }
    }
    assert!(names.len() >= 40 && pairs >= 200, "{} laws, {pairs} pairs", names.len());
    assert!(refused.is_empty(), "{} of {pairs} pairs are refused:\n{}", refused.len(), refused.join("\n"));
}

#[test]
fn a_graph_equals_itself_in_other_words() {
    for law in laws::all() {
        let [a, b] = law.sides(SIZES[0], DType::F32);
        for graph in [a, b] {
            let again = text::parse(&text::print(&graph)).unwrap();
            equivalent(&graph, &again, &EqualityOptions::default()).unwrap_or_else(|e| panic!("{}: {e}", law.name));
        }
    }
}

#[test]
fn passes_give_equal_graphs() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../yirage-compile/tests/filetests");
    for file in std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()) {
        let content = std::fs::read_to_string(&file).unwrap();
        let original = text::parse(content.split_once("--- ").unwrap().0).unwrap();
        let mut lowered = original.clone();
        for pass in PIPELINE {
            lowered =
                (pass.run)(&lowered, &target(), &CompileOptions::new(Precision::Exact), &mut Decisions::unheard())
                    .unwrap();
        }
        let compared = equivalent(&original, &lowered, &EqualityOptions::default());
        compared.unwrap_or_else(|e| panic!("{}: {e}", file.display()));
    }
}
