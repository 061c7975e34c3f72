//! Writes the kernels that are written by hand, for shapes of models, as sources into a folder, for NVIDIA's compiler:
//! `decode_matmul_q8_0_4096x14336_s0_t1_y0.cpp` and so on, beside `options` with what the compiler has to be told.
//!
//! The same kernels stand in `persistent_q8_0_t1.cpp` and so on as functions of one kernel that runs a step.
//!
//! usage: `native_sources FOLDER`
#![allow(clippy::unwrap_used, clippy::print_stdout)] // a tool of tests

use std::fs;
use std::path::Path;
use yirage_cuda::{attention, matmul, persistent_kernel};
use yirage_ir::op::Attention;
use yirage_ir::{F32, Format};
use yirage_kernels::{ModuleKernel, NativeKernel, PagedAttentionShape, ProductShape, RowCount};
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
    let own = attention("sm_80").unwrap();
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
    for &format in products.formats() {
        for most_rows in [1, 16] {
            let product = |[columns, k]: [u32; 2]| {
                let rows = RowCount::Size(0);
                let made = products.kernel(&ProductShape { format, columns, k, rows, most_rows, first_word: 0 });
                native(made.name, made.threads, 4, made.source)
            };
            let made = own.kernel(&attention_shape(Format::BF16, HEADS[2], most_rows));
            let kernels = SHAPES.map(product).into_iter().chain([native(made.name, made.threads, 8, made.source)]);
            let kernels: Vec<ModuleKernel> = kernels.collect();
            let source = persistent_kernel(&kernels.iter().collect::<Vec<_>>()).unwrap().source;
            let name = format!("persistent_{}_t{most_rows}.cpp", format.info().name.to_ascii_lowercase());
            fs::write(folder.join(name), source).unwrap();
            count += 1;
        }
    }
    for &cache in own.formats() {
        for heads in HEADS {
            for most_tokens in [1, 64] {
                let kernel = own.kernel(&attention_shape(cache, heads, most_tokens));
                count += u32::from(!folder.join(format!("{}.cpp", kernel.name)).exists());
                fs::write(folder.join(format!("{}.cpp", kernel.name)), kernel.source).unwrap();
            }
        }
    }
    fs::write(folder.join("options"), CDialect::CUDA.options.join(" ")).unwrap();
    println!("{count} kernels");
}

fn attention_shape(cache: Format, [heads, kv_heads, width]: [u32; 3], most_tokens: u32) -> PagedAttentionShape {
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
    PagedAttentionShape { op, cache, has_sinks: true, tokens, most_tokens, seqs, blocks }
}

fn native(name: String, threads: u32, buffers: usize, source: String) -> ModuleKernel {
    ModuleKernel::Native(NativeKernel { name, threads, buffers, source })
}
