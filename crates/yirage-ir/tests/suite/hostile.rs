//! Graphs that nobody sane writes: attributes and sizes whose products are no number, and texts spoilt at random. Each is
//! a graph or a typed error; nothing panics or wraps.

use yirage_ir::cost::{SequenceSpan, StepSizes};
use yirage_ir::op::OpCase;
use yirage_ir::region::{block_bytes, unrolled};
use yirage_ir::rng::Rng;
use yirage_ir::{Dims, Graph, GraphBuilder, NodeKind, Op, Type, ValueId, ValueSource, text, verify};

const MOST: Dims = Dims { tokens: u32::MAX, seqs: u32::MAX, blocks: u32::MAX, rows: u32::MAX };

const LONGEST: SequenceSpan = SequenceSpan { start: u32::MAX, tokens: u32::MAX, rows: u32::MAX };

/// Inputs of a graph and one node whose sizes overflow 32 bits, or more memory than there is.
const HOSTILE: &[(&str, &str)] = &[
    ("input %x: f32[Tokens, 0] weight %w: f32[4, 2147483648]", "linear{groups=2}(%x, %w): f32[Tokens, 4]"),
    (
        "input %x: f32[Tokens, 4] weight %w: f32[65536, 4] input %c: i32[Tokens, 65536]",
        "expert_linear{top_k=65536, shared=true}(%x, %w, %c): f32[Tokens, 4]",
    ),
    (
        "input %x: f32[Tokens, 4] weight %w: f32[2, 65536, 4] input %c: i32[Tokens, 65536]",
        "expert_linear{top_k=65536, shared=true}(%x, %w, %c): f32[Tokens, 4]",
    ),
    (
        "input %x: f32[Tokens, 4] weight %w: f32[2, 4, 65536] input %c: i32[Tokens, 65536]",
        "expert_linear{top_k=65536, shared=false}(%x, %w, %c): f32[Tokens, 4]",
    ),
    (
        "input %x: f32[Tokens, 4] weight %b: f32[2, 1073741825] input %c: i32[Tokens, 4]",
        "expert_bias{top_k=4}(%x, %b, %c): f32[Tokens, 4]",
    ),
    ("input %a: f32[Tokens, 2147483648] input %b: f32[Tokens, 2147483648]", "concat{groups=1}(%a, %b): f32[Tokens, 0]"),
    ("input %a: f32[Tokens, 65536] input %b: f32[Tokens, 65536]", "matmul{m=65536, n=65536}(%a, %b): f32[Tokens, 0]"),
    ("input %x: f32[Tokens, 64]", "quantize{layout=q8a, parts=134217728}(%x): q8a[Tokens, 64]"),
    ("input %x: f32[Tokens, 64]", "quantize{layout=q8a, parts=4294967295}(%x): q8a[Tokens, 64]"),
    (
        "input %x: f32[Tokens, 64]",
        "route{top_k=4, scoring=softmax, normalize=true, scale=1.0, groups=1, top_groups=4294967295}(%x): f32[Tokens, 4]",
    ),
    (
        "kv_cache %s: f32[32, 65536, 65536] input %k: f32[Tokens, 4] input %v: f32[Tokens, 4] input %i: i32[Tokens]",
        "kv_append{kv_heads=65536}(%s, %k, %v, %i): f32[32, 65536, 65536]",
    ),
    (
        "kv_cache %s: f32[32, 1, 4] input %k: f32[Tokens, 4294967295] input %v: f32[Tokens, 5] input %i: i32[Tokens]",
        "kv_append{kv_heads=1}(%s, %k, %v, %i): f32[32, 1, 4]",
    ),
    ("weight %w: f32[4294967295, 4294967295, 4294967295, 4294967295]", "softmax(%w): f32[1, 1]"),
    ("weight %w: f32[0, 4294967295, 4294967295, 4294967295]", "softmax(%w): f32[1, 1]"),
    ("weight %w: f32[4294967295, 4294967295]/[4294967295, 4294967295]", "softmax(%w): f32[1, 1]"),
    ("weight %w: f32[Tokens, 4]", "softmax(%w): f32[Tokens, 4]"),
    ("kv_cache %s: f32[Tokens, 4]", "softmax(%s): f32[Tokens, 4]"),
    ("input %x: f32[Tokens, 0]", "softmax(%x): f32[Tokens, 0]"),
];

#[test]
fn products_that_are_no_size_are_errors() {
    for (inputs, node) in HOSTILE {
        let error = text::parse(&format!("graph g {{ {inputs} %y = {node} output %y }}")).unwrap_err();
        assert!(!error.what.contains("is declared"), "{node}: {error}");
    }
    let heads =
        [("heads", "4294967295"), ("kv_heads", "4294967295"), ("k_width", "4294967295"), ("v_width", "4294967295")];
    for (name, value) in heads {
        for cached in [true, false] {
            let node = attention(cached).replace(&format!(" {name}=2"), &format!(" {name}={value}"));
            assert!(text::parse(&node).is_err(), "{node}");
        }
    }
    // The same with products that wrap to what is there.
    let wraps = attention(false).replace(" heads=2", " heads=2147483650");
    assert!(text::parse(&wraps).is_err());
    for cached in [true, false] {
        text::parse(&attention(cached)).unwrap();
    }
}

fn attention(cached: bool) -> String {
    let keys = match cached {
        true => ("kv_cache %s: f32[32, 2, 4] input %t: i32[Seqs, Blocks]", "%s, %p, %n, %t"),
        false => ("input %k: f32[Tokens, 4] input %v: f32[Tokens, 4]", "%k, %v, %p, %n"),
    };
    format!(
        "graph g {{ input %q: f32[Tokens, 4] input %p: i32[Tokens] input %n: i32[Tokens] {}
        %y = attention{{ heads=2, kv_heads=2, k_width=2, v_width=2, scale=1.0, softcap=0.0, window=0, causal=true, cached={cached}, v_in_k=false}}(%q, {}): f32[Tokens, 4]
        output %y }}",
        keys.0, keys.1
    )
}

#[test]
fn a_long_chain_of_appends_is_no_deep_one() {
    let mut b = GraphBuilder::new("g");
    let ty = Type::new(yirage_ir::DType::F32, [32u32, 1, 4]);
    let (mut state, k) =
        (b.kv_cache("s", ty).unwrap(), b.step_input("k", Type::rows(yirage_ir::Sym::Tokens, 4)).unwrap());
    let slots = b.step_input("i", Type::new(yirage_ir::DType::I32, [yirage_ir::Sym::Tokens])).unwrap();
    for n in 0..200_000 {
        state = b.op(&format!("a{n}"), yirage_ir::op::KvAppend { kv_heads: 1 }, &[state, k, slots]).unwrap();
    }
    assert_eq!(b.finish().kv_cache_of(state), Some(ValueId(0)));
}

#[test]
fn regions_hold_what_their_kind_says() {
    let region = |kind: &str, inputs: &str, ops: &str, outs: &str, types: &str| {
        let ins: Vec<&str> =
            inputs.split_whitespace().filter(|w| w.starts_with('%')).map(|w| &w[..w.len() - 1]).collect();
        let (ins, names) = (ins.join(", "), outs.replace('%', "%o"));
        text::parse(&format!(
            "graph g {{ {inputs} {names} = region {kind}({ins}): {types} graph r {{ {inputs} {ops} output {outs} }} }}"
        ))
        .and_then(|g| verify(&g).map(|()| g).map_err(|e| text::ParseError { line: 0, what: e.to_string() }))
    };
    let x = "input %x: f32[Tokens, 8]";
    let soft = "%y = softmax(%x): f32[Tokens, 8]";
    region("rows", x, soft, "%y", "f32[Tokens, 8]").unwrap();
    let refused = |made: Result<Graph, text::ParseError>, why: &str| {
        let error = made.unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    };
    refused(region("columns", x, soft, "%y", "f32[Tokens, 8]"), "there is no kind of region `columns`");
    refused(region("matmul_group", x, soft, "%y", "f32[Tokens, 8]"), "no product");
    refused(region("rows", x, "", "%x", "f32[Tokens, 8]"), "0 ops");
    refused(region("rows", x, soft, "%y, %x", "f32[Tokens, 8], f32[Tokens, 8]"), "is not made inside");
    let weights = format!("{x} weight %w: f32[8, 8] weight %v: f32[8, 8]");
    let two = "%y = linear{groups=1}(%x, %w): f32[Tokens, 8] %z = linear{groups=1}(%x, %v): f32[Tokens, 8]";
    region("matmul_group", &weights, two, "%y, %z", "f32[Tokens, 8], f32[Tokens, 8]").unwrap();
    refused(region("rows", &weights, two, "%y", "f32[Tokens, 8]"), "is not row-wise");
    let chained = two.replace("linear{groups=1}(%x, %v)", "linear{groups=1}(%y, %v)");
    let both = "f32[Tokens, 8], f32[Tokens, 8]";
    refused(region("matmul_group", &weights, &chained, "%y, %z", both), "do not share their first input");
    refused(
        region("matmul_group", &weights, two, "%z", "f32[Tokens, 8]"),
        "outputs of 1 products and 1 ops, of a region that has 2 and 2",
    );
    let rows = "input %x: f32[Tokens, 8] input %r: f32[Rows, 8]";
    let both = "%y = softmax(%x): f32[Tokens, 8] %z = softmax(%r): f32[Rows, 8]";
    refused(region("rows", rows, both, "%y, %z", "f32[Tokens, 8], f32[Rows, 8]"), "others over");
    // A table that the region itself makes row by row: whoever reads a row of it may be earlier than who makes it.
    let table = "input %x: f32[8, 8] input %i: i32[8]";
    let looked_up = "%y = softmax(%x): f32[8, 8] %z = embed{scale=1.0}(%y, %i): f32[8, 8]";
    refused(region("rows", table, looked_up, "%z", "f32[8, 8]"), "reads all of `y`");
    let nested = "%y = region rows(%x): f32[Tokens, 8] graph n { input %x: f32[Tokens, 8] %y = softmax(%x): f32[Tokens, 8] output %y }";
    refused(region("rows", x, nested, "%y", "f32[Tokens, 8]"), "is not row-wise");
}

/// Every op's first cases as graphs, and a region.
fn corpus() -> Vec<String> {
    let mut texts = vec![attention(true), attention(false)];
    let mut seen = std::collections::HashMap::new();
    for case in Op::all_cases() {
        let n: &mut usize = seen.entry(case.op.name()).or_default();
        *n += 1;
        if *n <= 2 {
            texts.push(text::print(&graph(&case)));
        }
    }
    texts.push(
        "graph g { input %x: f32[Tokens, 32] weight %w: f32[32]
         %y, %z = region rows(%x, %w): f32[Tokens, 32], q8a[Tokens, 32]
         graph rows { input %x: f32[Tokens, 32] weight %w: f32[32]
         %y = rms_norm{eps=1e-5, width=32, unit_offset=false}(%x, %w): f32[Tokens, 32]
         %z = quantize{layout=q8a, parts=1}(%y): q8a[Tokens, 32] output %y, %z } output %y }"
            .into(),
    );
    texts.extend((0..8).map(|_| {
        "graph g { input %x: f32[4, 12] input %w: f32[12, 6] input %v: f32[4, 1]
         %y = region tiled{grid=\"[3, 2, 1]\", loops=4, ins=\"[- 0 - loop 1, 1 - - loop 0, - 0 -]\", outs=\"[1 0 -]\",
         accumulate=\"[continue, max, rescaled 3]\", running=\"[1, 2]\", reads=\"[2]\"}(%x, %w, %v): f32[4, 6]
         graph body { input %a: f32[2, 3] input %b: f32[3, 2] input %v: f32[2, 1] input %m: f32[2, 1] input %l: f32[2, 2]
         %p = contract(%a, %b): f32[2, 2] %r = contract(%a, %b): f32[2, 2]
         %t = reduce{kind=max, axes=\"[1]\", keep=true}(%a): f32[2, 1]
         %f = map{expr=\"exp(sub(x0, x1))\"}(%m, %t): f32[2, 1] %s = map{expr=\"add(x0, x1)\"}(%r, %l): f32[2, 2]
         output %p, %t, %s, %f }
         graph block { input %p: f32[2, 2] input %m: f32[2, 1] input %s: f32[2, 2] input %v: f32[2, 1]
         %o = map{expr=\"add(mul(x0, x1), div(x2, x3))\"}(%p, %m, %s, %v): f32[2, 2] output %o } output %y }"
            .to_string()
    }));
    texts
}

/// The case with all its inputs given from outside.
fn graph(case: &OpCase) -> Graph {
    let mut b = GraphBuilder::new("case");
    let ins: Vec<ValueId> = (case.ins.iter().enumerate())
        .map(|(i, t)| {
            let state = matches!(case.op.role(i, t), yirage_ir::op::Role::KvCache);
            let mut ty = t.ty();
            ty.shape.drain(..usize::from(state));
            b.declare(&format!("i{i}"), ty, if state { ValueSource::KvCache } else { ValueSource::StepInput }).unwrap()
        })
        .collect();
    let types: Vec<Type> = ins.iter().map(|&i| b.ty(i).clone()).collect();
    let outs = case.op.infer(&types).map_or(0, |o| o.len());
    let names: Vec<String> = (0..outs).map(|i| format!("o{i}")).collect();
    // `sample` wants symbols.
    if outs > 0 {
        b.node(NodeKind::Op(case.op.clone()), &ins, &names).unwrap().into_iter().for_each(|o| b.output(o));
    }
    b.finish()
}

/// Spoils one to four places of a text.
fn mutate(text: &str, rng: &mut Rng) -> String {
    const NUMBERS: [&str; 12] =
        ["0", "1", "2", "31", "32", "65535", "65536", "2147483647", "2147483648", "4294967295", "4294967296", "Tokens"];
    let mut words: Vec<String> = split(text);
    for _ in 0..1 + rng.index(4) {
        let at = rng.index(words.len());
        let other = rng.index(words.len());
        match rng.index(6) {
            0 => drop(words.remove(at)),
            1 => words.insert(at, words[other].clone()),
            2 => words.swap(at, other),
            3 => words[at] = words[other].clone(),
            _ => {
                let numbers: Vec<usize> =
                    (0..words.len()).filter(|&i| words[i].chars().all(|c| c.is_ascii_digit())).collect();
                if !numbers.is_empty() {
                    words[numbers[rng.index(numbers.len())]] = NUMBERS[rng.index(NUMBERS.len())].into();
                }
            }
        }
        if words.is_empty() {
            break;
        }
    }
    words.concat()
}

/// Words, spaces and single characters.
fn split(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for c in text.chars() {
        let joins = |w: &String| w.chars().all(char::is_alphanumeric) && c.is_alphanumeric();
        match words.last_mut().filter(|w| joins(w)) {
            Some(word) => word.push(c),
            None => words.push(c.into()),
        }
    }
    words
}

#[test]
fn spoilt_texts_are_graphs_or_errors() {
    let corpus = corpus();
    let mut rng = Rng::new(16);
    let (mut accepted, mut refused) = (0, 0);
    for round in 0..20_000 {
        let text = mutate(&corpus[round % corpus.len()], &mut rng);
        let Ok(graph) = text::parse(&text) else {
            refused += 1;
            continue;
        };
        accepted += 1;
        verify(&graph).unwrap_or_else(|e| panic!("{e}: {text}"));
        for v in &graph.values {
            let _ = (v.ty.elems(&MOST), v.ty.bytes(&MOST), v.ty.span());
        }
        for node in &graph.nodes {
            let ins: Vec<Type> = node.ins.iter().map(|&i| graph.ty(i).clone()).collect();
            match &node.kind {
                NodeKind::Op(op) => drop(op.work(&ins, &StepSizes { dims: MOST, spans: &[LONGEST] })),
                NodeKind::Region(region) => {
                    let _ = (unrolled(region, &ins), region.parts());
                    let _ = region.tiled.as_ref().map(|tiled| block_bytes(&region.graph, tiled, Some(4096)));
                }
            }
        }
        assert_eq!(text::print(&text::parse(&text::print(&graph)).unwrap()), text::print(&graph));
    }
    assert!(accepted > 1000 && refused > 1000, "{accepted} accepted, {refused} refused");
}
