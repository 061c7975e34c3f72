//! Graphs that several tests look at.

use yirage_graph::{KernelGraph, SplitBy};
use yirage_ir::op::RmsNorm;
use yirage_ir::{DType, F32, Graph, GraphBuilder, NodeKind, Region, RegionKind, Sym, Type, ValueId};

/// One block of a Llama in plain ops: attention with grouped heads, gated feed-forward, residuals.
pub(crate) fn llama_block() -> Graph {
    let (tokens, width, heads, kv_heads, dim, inner) = (16, 256, 8, 2, 32, 512);
    let mut g = KernelGraph::new("llama block");
    let x = g.named_input("x", &[tokens, width], None, DType::F32).unwrap();
    let weight = |g: &mut KernelGraph, name: &str, dims: &[u32]| g.new_weight(name, dims, None, DType::F32).unwrap();
    let norm1 = weight(&mut g, "attn_norm", &[width]);
    let h = g.scaled_rms_norm(x, &[width], Some(norm1), 1e-5).unwrap();
    let wq = weight(&mut g, "wq", &[width, heads * dim]);
    let wk = weight(&mut g, "wk", &[width, kv_heads * dim]);
    let wv = weight(&mut g, "wv", &[width, kv_heads * dim]);
    let q = g.matmul(h, wq).unwrap();
    let k = g.matmul(h, wk).unwrap();
    let v = g.matmul(h, wv).unwrap();
    let cos = g.named_input("cos", &[tokens, 1, dim / 2], None, DType::F32).unwrap();
    let sin = g.named_input("sin", &[tokens, 1, dim / 2], None, DType::F32).unwrap();
    let rope = |g: &mut KernelGraph, x: ValueId, heads: u32| {
        let x = g.reshape(x, &[tokens, heads, dim].map(i64::from)).unwrap();
        let halves = g.split(x, SplitBy::Size(dim / 2), 2).unwrap();
        let (a, b) = (halves[0], halves[1]);
        let (ac, bs) = (g.mul(a, cos).unwrap(), g.mul(b, sin).unwrap());
        let (bc, a_s) = (g.mul(b, cos).unwrap(), g.mul(a, sin).unwrap());
        let (left, right) = (g.sub(ac, bs).unwrap(), g.add(bc, a_s).unwrap());
        let joined = g.concat(&[left, right], 2).unwrap();
        g.permute(joined, &[1, 0, 2]).unwrap()
    };
    let (q, k) = (rope(&mut g, q, heads), rope(&mut g, k, kv_heads));
    let v = g.reshape(v, &[tokens, kv_heads, dim].map(i64::from)).unwrap();
    let v = g.permute(v, &[1, 0, 2]).unwrap();
    let a = g.attention(q, k, v, true, None).unwrap();
    let a = g.permute(a, &[1, 0, 2]).unwrap();
    let a = g.reshape(a, &[tokens, width].map(i64::from)).unwrap();
    let wo = weight(&mut g, "wo", &[width, width]);
    let a = g.matmul(a, wo).unwrap();
    let x = g.add(x, a).unwrap();
    let norm2 = weight(&mut g, "ffn_norm", &[width]);
    let h = g.scaled_rms_norm(x, &[width], Some(norm2), 1e-5).unwrap();
    let (gate, up) = (weight(&mut g, "w_gate", &[width, inner]), weight(&mut g, "w_up", &[width, inner]));
    let down = weight(&mut g, "w_down", &[inner, width]);
    let (gate, up) = (g.matmul(h, gate).unwrap(), g.matmul(h, up).unwrap());
    let gate = g.silu(gate).unwrap();
    let gated = g.mul(gate, up).unwrap();
    let y = g.matmul(gated, down).unwrap();
    let y = g.add(x, y).unwrap();
    g.named_output("y", y, None).unwrap();
    g.finish().unwrap()
}

/// Two regions, one of two inputs and outputs, and an op between.
pub(crate) fn regions() -> Graph {
    let mut inner = GraphBuilder::new("inside");
    let ty = Type::rows(Sym::Tokens, 64);
    let (a, b) = (inner.step_input("a", ty.clone()).unwrap(), inner.step_input("b", ty.clone()).unwrap());
    let sum = inner.op("sum", yirage_ir::op::Map::of(yirage_ir::expr::Func::Add), &[a, b]).unwrap();
    let norm = inner.op("norm", RmsNorm { eps: F32(1e-5), width: 64, unit_offset: false }, &[sum]).unwrap();
    inner.output(sum);
    inner.output(norm);
    let rows = NodeKind::Region(Box::new(Region::new(RegionKind::Rows, inner.finish())));
    let mut g = GraphBuilder::new("with \"regions\" <&>");
    let (x, y) = (g.step_input("x", ty.clone()).unwrap(), g.step_input("y", ty).unwrap());
    let first = g.node(rows.clone(), &[x, y], &["s1".into(), "n1".into()]).unwrap();
    let t = g.op("t", yirage_ir::op::Map::scale(0.5), &[first[1]]).unwrap();
    let second = g.node(rows, &[t, first[0]], &["s2".into(), "n2".into()]).unwrap();
    g.output(second[1]);
    g.output(t);
    g.output(second[0]);
    g.finish()
}

pub(crate) fn layers() -> Vec<(&'static str, Graph)> {
    vec![("llama", llama_block()), ("regions", regions())]
}
