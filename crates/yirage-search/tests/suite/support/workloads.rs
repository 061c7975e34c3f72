//! The six workloads of Mirage's benchmarks in general ops, at their shapes for one sequence.

use yirage_ir::{Graph, text};

fn parsed(source: &str) -> Graph {
    text::parse(source).unwrap_or_else(|e| panic!("{e}\n{source}"))
}

/// Softmax without its shift, as the benchmark writes it, over 4096 keys of 2 heads of 64.
pub(crate) fn group_query_attention() -> Graph {
    parsed(
        "graph gqa { input %q: f32[2, 256, 64] input %k: f32[2, 64, 4096] input %v: f32[2, 4096, 64]
           %a = contract(%q, %k): f32[2, 256, 4096] %e = map{expr=\"exp(x0)\"}(%a): f32[2, 256, 4096]
           %s = reduce{kind=\"sum\", axes=\"[2]\", keep=true}(%e): f32[2, 256, 1]
           %d = map{expr=\"div(x0, x1)\"}(%e, %s): f32[2, 256, 4096]
           %o = contract(%d, %v): f32[2, 256, 64] output %o }",
    )
}

/// The same with norms of queries and values.
pub(crate) fn qk_norm_attention() -> Graph {
    parsed(
        "graph qknorm { input %q: f32[2, 256, 64] input %k: f32[2, 64, 4096] input %v: f32[2, 4096, 64]
           %mq = reduce{kind=\"mean_square\", axes=\"[2]\", keep=true}(%q): f32[2, 256, 1]
           %nq = map{expr=\"mul(x0, rsqrt(add(x1, 1e-6)))\"}(%q, %mq): f32[2, 256, 64]
           %mv = reduce{kind=\"mean_square\", axes=\"[2]\", keep=true}(%v): f32[2, 4096, 1]
           %nv = map{expr=\"mul(x0, rsqrt(add(x1, 1e-6)))\"}(%v, %mv): f32[2, 4096, 64]
           %a = contract(%nq, %k): f32[2, 256, 4096] %e = map{expr=\"exp(x0)\"}(%a): f32[2, 256, 4096]
           %s = reduce{kind=\"sum\", axes=\"[2]\", keep=true}(%e): f32[2, 256, 1]
           %d = map{expr=\"div(x0, x1)\"}(%e, %s): f32[2, 256, 4096]
           %o = contract(%d, %nv): f32[2, 256, 64] output %o }",
    )
}

/// A norm and the product that reads it.
pub(crate) fn rms_norm_linear() -> Graph {
    parsed(
        "graph rms_norm_linear { input %x: f32[2, 4096] input %w: f32[4096, 6144]
           %d = rms_norm{eps=1e-6, width=4096, unit_offset=false}(%x): f32[2, 4096]
           %o = contract(%d, %w): f32[2, 6144] output %o }",
    )
}

/// A product with a thin one beside it.
pub(crate) fn lora() -> Graph {
    parsed(
        "graph lora { input %x: f32[16, 256] input %w: f32[256, 4096] input %a: f32[256, 16] input %b: f32[16, 4096]
           %d = contract(%x, %a): f32[16, 16] %e = contract(%d, %b): f32[16, 4096]
           %c = contract(%x, %w): f32[16, 4096] %o = map{expr=\"add(x0, x1)\"}(%c, %e): f32[16, 4096] output %o }",
    )
}

/// Two products of one input, one of them through SiLU.
pub(crate) fn gated_mlp() -> Graph {
    parsed(
        "graph gated_mlp { input %x: f32[8, 4096] input %w1: f32[4096, 4096] input %w2: f32[4096, 4096]
           %p = contract(%x, %w1): f32[8, 4096] %q = contract(%x, %w2): f32[8, 4096]
           %s = map{expr=\"silu(x0)\"}(%p): f32[8, 4096]
           %o = map{expr=\"mul(x0, x1)\"}(%s, %q): f32[8, 4096] output %o }",
    )
}

/// The same in f16, as the benchmark has it: each op rounds.
pub(crate) fn gated_mlp_f16() -> Graph {
    parsed(
        "graph gated_mlp { input %x: f16[8, 4096] input %w1: f16[4096, 4096] input %w2: f16[4096, 4096]
           %p = contract(%x, %w1): f16[8, 4096] %q = contract(%x, %w2): f16[8, 4096]
           %s = map{expr=\"cast.f16(silu(x0))\"}(%p): f16[8, 4096]
           %o = map{expr=\"cast.f16(mul(x0, x1))\"}(%s, %q): f16[8, 4096] output %o }",
    )
}

/// A residual between two norms.
pub(crate) fn norm_transformer() -> Graph {
    parsed(
        "graph ntrans { input %h: f32[8, 4096] input %x: f32[8, 4096] input %alpha: f32[8, 4096]
           %n = rms_norm{eps=1e-6, width=4096, unit_offset=false}(%h): f32[8, 4096]
           %a = map{expr=\"add(x0, x1)\"}(%n, %x): f32[8, 4096] %b = map{expr=\"mul(x0, x1)\"}(%alpha, %a): f32[8, 4096]
           %c = map{expr=\"add(x0, x1)\"}(%x, %b): f32[8, 4096]
           %o = rms_norm{eps=1e-6, width=4096, unit_offset=false}(%c): f32[8, 4096] output %o }",
    )
}

/// All six, by name.
pub(crate) fn all() -> [(&'static str, Graph); 6] {
    [
        ("group query attention", group_query_attention()),
        ("QK norm attention", qk_norm_attention()),
        ("RMS norm and linear", rms_norm_linear()),
        ("LoRA", lora()),
        ("gated MLP", gated_mlp()),
        ("nTrans", norm_transformer()),
    ]
}
