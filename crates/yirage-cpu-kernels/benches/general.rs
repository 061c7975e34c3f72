//! Expressions over 64 MB of f32 against a copy of as much, on all cores.
//!
//! `cargo bench -p yirage-cpu --bench general`. A ratio of 1 is the speed of `copy_nonoverlapping` on the same memory; runs
//! of both alternate, so that what else the machine does meets both.
#![allow(clippy::print_stdout, clippy::unwrap_used)] // printing is its purpose

use std::time::Instant;
use yirage_cpu_kernels::general::{Elem, ElementProgram, LoopSizes, StridedInput, StridedOutput, Strides, map};
use yirage_cpu_kernels::isa::Isa;
use yirage_ir::dtype::DType;
use yirage_ir::expr::Expr;

const ELEMENTS: usize = 16 << 20;
const PAIRS: usize = 11;

const EXPRESSIONS: [(&str, &str); 9] = [
    ("one add", "add(x0, 1.0)"),
    ("six of add, sub, mul, max, abs, relu", "relu(max(mul(sub(abs(add(x0, 1.5)), 0.25), 3.0), -1.0))"),
    ("six, others", "abs(sub(relu(mul(max(add(x0, 0.5), -0.75), 1.25)), 0.125))"),
    ("six, several reads", "t0 = abs(x0); relu(sub(max(add(t0, 1.0), mul(x0, 2.0)), t0))"),
    ("exp", "exp(x0)"),
    ("six, and exp", "exp(sub(max(mul(abs(add(x0, 1.5)), 0.25), -1.0), 0.5))"),
    ("silu", "silu(x0)"),
    ("six, and silu", "relu(max(mul(silu(abs(add(x0, 1.5))), 3.0), -1.0))"),
    ("gelu_tanh", "gelu_tanh(x0)"),
];

fn main() {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let isa = Isa::detect();
    println!("{isa}, {threads} threads, {} MB; copy = 1", ELEMENTS >> 18);
    let x: Vec<f32> = (0..ELEMENTS).map(|i| (i % 1013) as f32 / 100.0 - 5.0).collect();
    let (mut out, mut copy) = (vec![0f32; ELEMENTS], vec![0f32; ELEMENTS]);
    for (name, text) in EXPRESSIONS {
        let expr: Expr = text.parse().unwrap();
        let program = ElementProgram::new(&expr, &[DType::F32]).unwrap();
        let mut ratios: Vec<f64> = (0..PAIRS)
            .map(|_| {
                let copied = timed(threads, &mut copy, &|from, part| part.copy_from_slice(&x[from..][..part.len()]));
                let made = timed(threads, &mut out, &|from, part| one(isa, &program, &x[from..], part));
                copied / made
            })
            .collect();
        ratios.sort_by(f64::total_cmp);
        println!("{name:<40} {:.2} (from {:.2} to {:.2})", ratios[PAIRS / 2], ratios[1], ratios[PAIRS - 2]);
    }
}

/// Seconds for each thread's part of the output.
fn timed(threads: usize, out: &mut [f32], work: &(dyn Fn(usize, &mut [f32]) + Sync)) -> f64 {
    let part = out.len().div_ceil(threads);
    let start = Instant::now();
    std::thread::scope(|scope| {
        for (i, part_of) in out.chunks_mut(part).enumerate() {
            scope.spawn(move || work(i * part, part_of));
        }
    });
    start.elapsed().as_secs_f64()
}

fn one(isa: Isa, program: &ElementProgram, x: &[f32], out: &mut [f32]) {
    let sizes = LoopSizes::new(&[out.len()]).unwrap();
    let dense = Strides::dense(&sizes);
    let input = StridedInput::at(x.as_ptr().cast(), Elem::F32, dense);
    let output = StridedOutput::at(out.as_mut_ptr().cast(), Elem::F32, dense);
    // SAFETY: both slices have the elements.
    unsafe { map(isa, program, &sizes, &[input], output, 0..out.len()) }
}
