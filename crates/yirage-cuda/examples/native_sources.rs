//! Writes the kernels that are written by hand, for shapes of models, as sources into a folder, for NVIDIA's compiler:
//! `decode_matmul_q8_0_4096x14336_s0_t1_y0.cpp` and so on, beside `options` with what the compiler has to be told.
//!
//! usage: `native_sources FOLDER`
#![allow(clippy::unwrap_used, clippy::print_stdout)] // a tool of tests

use std::fs;
use std::path::Path;
use yirage_cuda::{attention, matmul};
use yirage_ir::F32;
use yirage_ir::op::Attention;
use yirage_kernels::{PagedAttentionShape, ProductShape, RowCount};
use yirage_kir::render::CDialect;

/// Columns and elements along k: of the model that ships, and of one of 8 billion parameters.
const SHAPES: [[u32; 2]; 3] = [[384, 1024], [4096, 4096], [4096, 14_336]];

/// Query heads, key heads and elements of both: of the model that ships, and of ones of 1 and 8 billion parameters.
const HEADS: [[u32; 3]; 3] = [[6, 2, 64], [32, 8, 64], [32, 8, 128]];

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
    let own = attention("sm_80").unwrap();
    for &cache in own.formats() {
        for [heads, kv_heads, width] in HEADS {
            for most_tokens in [1, 64] {
                let op = Attention {
                    heads,
                    kv_heads,
                    k_width: width,
                    v_width: width,
                    scale: F32(0.125),
                    softcap: F32(30.0),
                    window: 4096,
                    causal: true,
                    cached: true,
                    v_in_k: false,
                };
                let [tokens, seqs, blocks] = [0, 1, 2].map(RowCount::Size);
                let shape = PagedAttentionShape { op, cache, has_sinks: true, tokens, most_tokens, seqs, blocks };
                let kernel = own.kernel(&shape);
                count += u32::from(!folder.join(format!("{}.cpp", kernel.name)).exists());
                fs::write(folder.join(format!("{}.cpp", kernel.name)), kernel.source).unwrap();
            }
        }
    }
    fs::write(folder.join("options"), CDialect::CUDA.options.join(" ")).unwrap();
    println!("{count} kernels");
}
