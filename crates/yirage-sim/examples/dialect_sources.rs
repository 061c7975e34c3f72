//! Writes the kernels of the conformance suite and of the tiny models as sources of every dialect into a folder, for compilers of
//! those dialects: `cuda/000.cpp` and so on, beside `cuda/options` with what the compiler has to be told; and `kir/000.kir`, their
//! own text.
//!
//! usage: `dialect_sources FOLDER [STEP]`   with a number, every such case alone, and no model
#![allow(clippy::unwrap_used, clippy::print_stdout)] // a tool of tests

#[path = "../tests/emulator/recorded.rs"]
mod recorded;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use yirage_conformance::Suite;
use yirage_kir::ComputeKernel;
use yirage_kir::render::CDialect;
use yirage_kir::text::print;
use yirage_testkit::tiny;

/// Kernels of a source.
const KERNELS_OF_A_SOURCE: usize = 16;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (folder, suite, models) = match &arguments[..] {
        [folder] => (folder, Suite::quick(), tiny::NAMES),
        [folder, step] => (folder, Suite::sample(step.parse().unwrap()), &[][..]),
        _ => panic!("usage: dialect_sources FOLDER [STEP]"),
    };
    let all = recorded::of_suite(&suite).into_iter().chain(recorded::of_models(models));
    let kernels: BTreeMap<String, ComputeKernel> = all.map(|kernel| (kernel.name.clone(), kernel)).collect();
    let kernels: Vec<ComputeKernel> = kernels.into_values().collect();
    for dialect in CDialect::ALL {
        let folder = Path::new(folder).join(dialect.name);
        write(&folder, "cpp", &kernels, |part| dialect.source(part));
        fs::write(folder.join("options"), dialect.options.join(" ")).unwrap();
    }
    write(&Path::new(folder).join("kir"), "kir", &kernels, |part| part.iter().map(print).collect());
    println!("{} kernels in {} dialects", kernels.len(), CDialect::ALL.len());
}

fn write(folder: &Path, extension: &str, kernels: &[ComputeKernel], text: impl Fn(&[ComputeKernel]) -> String) {
    fs::create_dir_all(folder).unwrap();
    for (at, part) in kernels.chunks(KERNELS_OF_A_SOURCE).enumerate() {
        fs::write(folder.join(format!("{at:03}.{extension}")), text(part)).unwrap();
    }
}
