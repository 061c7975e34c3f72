//! The sources of a program: what a dialect prints, between what stands in for its device.

use std::fmt::Write;
use yirage_kir::ComputeKernel;
use yirage_kir::render::CDialect;

/// The emulator itself, and what stands in for what a device's compiler knows.
pub(super) const FILES: [(&str, &str); 9] = [
    (SOURCES[0], include_str!("cpp/host.cpp")),
    (SOURCES[1], include_str!("cpp/grid.cpp")),
    (OPTIONS, include_str!("cpp/options")),
    ("grid.hpp", include_str!("cpp/grid.hpp")),
    ("emulator.hpp", include_str!("cpp/emulator.hpp")),
    ("cuda.hpp", include_str!("cpp/cuda.hpp")),
    ("instructions.hpp", include_str!("cpp/instructions.hpp")),
    ("hip.hpp", include_str!("cpp/hip.hpp")),
    ("metal_stdlib", include_str!("cpp/metal_stdlib")),
];

/// The sources of what runs launches.
pub(super) const SOURCES: [&str; 2] = ["host.cpp", "grid.cpp"];

/// What the compiler is told, as it reads it from a file: floats as IEEE 754 says, words that alias as bytes do, and an end to
/// the program where C++ gives an operation no value.
pub(super) const OPTIONS: &str = "options";

/// A source with these kernels, each known to the emulator by its name.
pub(super) fn source(dialect: CDialect, kernels: &[ComputeKernel]) -> String {
    let header = match dialect {
        // It includes its own.
        CDialect::METAL => "emulator.hpp",
        CDialect::HIP | CDialect::HIP_RDNA => "hip.hpp",
        _ => "cuda.hpp",
    };
    let mut out = format!("#include \"{header}\"\n{}\n", dialect.source(kernels));
    for (at, ComputeKernel { name, threads, buffers, .. }) in kernels.iter().enumerate() {
        let bound: Vec<String> = (0..buffers.len()).map(|at| format!("b[{at}]")).collect();
        // A text grows without end or not at all.
        let _ = write!(
            out,
            "static void run_{at}(const emulator::Buffer* b) {{ {name}({} EMULATED_PARAMETERS); }}\n\
             static const emulator::Kernel entry_{at}(\"{name}\", {threads}, run_{at});\n",
            bound.join(", ")
        );
    }
    out
}
