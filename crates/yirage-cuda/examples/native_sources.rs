//! Writes the kernels that are written by hand, for shapes of models, as sources into a folder, for NVIDIA's compiler:
//! `decode_matmul_q8_0_4096x14336_s0_t1_y0.cpp` and so on, beside `options` with what the compiler has to be told.
//!
//! usage: `native_sources FOLDER`
#![allow(clippy::unwrap_used, clippy::print_stdout)] // a tool of tests

use std::fs;
use std::path::Path;
use yirage_cuda::matmul;
use yirage_kernels::{ProductShape, RowCount};
use yirage_kir::render::CDialect;

/// Columns and elements along k: of the model that ships, and of one of 8 billion parameters.
const SHAPES: [[u32; 2]; 3] = [[384, 1024], [4096, 4096], [4096, 14_336]];

fn main() {
    let folder = std::env::args().nth(1).expect("usage: native_sources FOLDER");
    let folder = Path::new(&folder);
    fs::create_dir_all(folder).unwrap();
    let products = matmul("sm_80").unwrap();
    let mut count = 0;
    for &format in products.formats() {
        for [columns, k] in SHAPES {
            for most_rows in [1, 2, 4, 8, 16, 32] {
                let shape = ProductShape { format, columns, k, rows: RowCount::Size(0), most_rows, first_word: 0 };
                let kernel = products.kernel(&shape);
                fs::write(folder.join(format!("{}.cpp", kernel.name)), kernel.source).unwrap();
                count += 1;
            }
        }
    }
    fs::write(folder.join("options"), CDialect::CUDA.options.join(" ")).unwrap();
    println!("{count} kernels");
}
