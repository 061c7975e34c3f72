//! The structural hash: the same for the same computation however it is written, another one after any change.

use yirage_ir::expr::Func;
use yirage_ir::op::{Concat, Contract, Map, Op, Reduce, ReduceKind, RmsNorm};
use yirage_ir::rng::Rng;
use yirage_ir::{DType, F32, Format, Graph, GraphBuilder, Node, NodeKind, Sym, Type, ValueId, ValueSource, verify};
use yirage_ir::{Region, RegionKind};

/// A random graph of square matrices: all values have one type, so that any operand may be any other.
fn random(rng: &mut Rng, ops: usize) -> Graph {
    let ty = Type::new(DType::F32, [6u32, 6]);
    let mut g = GraphBuilder::new("random");
    let mut values = vec![
        g.step_input("x", ty.clone()).unwrap(),
        g.weight("w", ty.clone()).unwrap(),
        g.step_input("y", ty).unwrap(),
    ];
    for n in 0..ops {
        let pick = |rng: &mut Rng| *rng.choose(&values);
        let (a, b) = (pick(rng), pick(rng));
        let binary = [Func::Add, Func::Sub, Func::Mul, Func::Div];
        let unary = [Func::Exp, Func::Silu, Func::Relu];
        let (op, ins): (Op, Vec<ValueId>) = match rng.below(4) {
            0 => (Map::of(*rng.choose(&binary)).into(), vec![a, b]),
            1 => (Map::of(*rng.choose(&unary)).into(), vec![a]),
            2 => (Contract {}.into(), vec![a, b]),
            _ => (Map::scale(rng.signed_f32()).into(), vec![a]),
        };
        values.push(g.op(&format!("t{n}"), op, &ins).unwrap());
    }
    // What nothing reads is given back, and one value twice at most.
    let made = g.graph().clone();
    let read = |id: &ValueId| made.nodes.iter().any(|node| node.ins.contains(id));
    values.iter().filter(|id| !read(id) && !made.inputs.contains(id)).for_each(|&id| g.output(id));
    g.finish()
}

/// The same graph with nodes in another order that can run, other names and other numbers of values.
fn written_otherwise(graph: &Graph, rng: &mut Rng) -> Graph {
    let mut order: Vec<usize> = Vec::new();
    let mut ready: Vec<bool> = graph.values.iter().map(|v| !matches!(v.source, ValueSource::Node { .. })).collect();
    while order.len() < graph.nodes.len() {
        let open = |n: &usize| !order.contains(n) && graph.nodes[*n].ins.iter().all(|i| ready[i.index()]);
        let open: Vec<usize> = (0..graph.nodes.len()).filter(open).collect();
        let next = *rng.choose(&open);
        graph.nodes[next].outs.iter().for_each(|o| ready[o.index()] = true);
        order.push(next);
    }
    let mut numbers: Vec<u32> = (0..graph.values.len() as u32).collect();
    rng.shuffle(&mut numbers);
    let id = |old: ValueId| ValueId(numbers[old.index()]);
    let ids = |list: &[ValueId]| list.iter().map(|&i| id(i)).collect::<Vec<_>>();
    let place = |old: u32| order.iter().position(|&n| n == old as usize).unwrap() as u32;
    let mut values = graph.values.clone();
    for (old, value) in graph.values.iter().enumerate() {
        let source = match value.source {
            ValueSource::Node { node, output } => ValueSource::Node { node: place(node), output },
            other => other,
        };
        let name = format!("v{}", rng.next_u64());
        values[numbers[old] as usize] = yirage_ir::Value { name, ty: value.ty.clone(), source };
    }
    let node = |&n: &usize| {
        let node = &graph.nodes[n];
        Node { kind: node.kind.clone(), ins: ids(&node.ins), outs: ids(&node.outs) }
    };
    let nodes = order.iter().map(node).collect();
    Graph { name: "other".into(), values, nodes, inputs: ids(&graph.inputs), outputs: ids(&graph.outputs) }
}

#[test]
fn names_and_order_do_not_count() {
    let mut rng = Rng::new(1);
    for round in 0..300 {
        let graph = random(&mut rng, 2 + round % 30);
        let other = written_otherwise(&graph, &mut rng);
        verify(&other).unwrap();
        assert_eq!(graph.structural_hash(), other.structural_hash(), "{}", yirage_ir::text::print(&graph));
    }
}

/// Whether the values `a` and `b` are the same computation, so that reading one for the other is no change.
fn same(graph: &Graph, a: ValueId, b: ValueId) -> bool {
    let (x, y) = (graph.value(a).source, graph.value(b).source);
    match (x, y) {
        _ if a == b => true,
        (ValueSource::Node { node: m, .. }, ValueSource::Node { node: n, .. }) => {
            let (m, n) = (&graph.nodes[m as usize], &graph.nodes[n as usize]);
            m.kind == n.kind && m.ins.len() == n.ins.len() && m.ins.iter().zip(&n.ins).all(|(&a, &b)| same(graph, a, b))
        }
        _ => false,
    }
}

#[test]
fn every_change_counts() {
    let mut rng = Rng::new(2);
    let (mut changes, mut seen) = (0, std::collections::HashSet::new());
    for round in 0..120 {
        let graph = random(&mut rng, 3 + round % 14);
        let hash = graph.structural_hash();
        seen.insert(hash);
        let mut differs = |what: &str, other: &Graph| {
            assert_ne!(other.structural_hash(), hash, "{what}\n{}", yirage_ir::text::print(&graph));
            changes += 1;
        };
        for (n, node) in graph.nodes.iter().enumerate() {
            // Another operand.
            for (i, &was) in node.ins.iter().enumerate() {
                for id in (0..node.outs[0].0).map(ValueId).filter(|&id| !same(&graph, id, was)) {
                    let mut other = graph.clone();
                    other.nodes[n].ins[i] = id;
                    differs("operand", &other);
                }
            }
            // Operands the other way round.
            if let [a, b] = node.ins[..]
                && !same(&graph, a, b)
            {
                let mut other = graph.clone();
                other.nodes[n].ins = vec![b, a];
                differs("order of operands", &other);
            }
            // Another op of as many operands, another attribute.
            let replaced: Op = match node.ins.len() {
                2 => Map::of(Func::Pow).into(),
                _ => Map::scale(0.123).into(),
            };
            let mut other = graph.clone();
            other.nodes[n].kind = NodeKind::Op(replaced);
            differs("op", &other);
        }
        // Slots of one type that nothing reads are the same either way.
        if graph.nodes.iter().any(|node| node.ins.contains(&graph.inputs[0]) || node.ins.contains(&graph.inputs[2])) {
            let mut other = graph.clone();
            other.inputs.swap(0, 2);
            differs("order of inputs", &other);
        }
        let mut other = graph.clone();
        other.values[0].source = ValueSource::Weight;
        differs("kind of input", &other);
        for at in 0..graph.outputs.len() {
            let mut other = graph.clone();
            other.outputs.remove(at);
            differs("an output less", &other);
            for id in (0..graph.values.len() as u32).map(ValueId).filter(|&id| !same(&graph, id, graph.outputs[at])) {
                let mut other = graph.clone();
                other.outputs[at] = id;
                differs("another output", &other);
            }
        }
        let mut other = graph.clone();
        other.outputs.push(graph.outputs[0]);
        differs("an output more", &other);
        for ty in [Type::new(DType::Stored(Format::F16), [6u32, 6]), Type::new(DType::F32, [6u32, 7])] {
            let mut other = graph.clone();
            other.values[1].ty = ty;
            differs("type", &other);
        }
        let strided = Type { strides: Some(vec![1, 6]), ..graph.values[1].ty.clone() };
        let mut other = graph.clone();
        other.values[1].ty = strided;
        differs("strides", &other);
    }
    assert!(changes > 10_000, "{changes}");
    assert_eq!(seen.len(), 120, "different graphs have different hashes");
}

#[test]
fn attributes_and_sizes_count() {
    let with = |op: Op, sizes: [u32; 2]| {
        let mut g = GraphBuilder::new("g");
        let x = g.step_input("x", Type::new(DType::F32, sizes)).unwrap();
        let y = g.op("y", op, &[x]).unwrap();
        g.output(y);
        g.finish().structural_hash()
    };
    let sum = |axis| Op::from(Reduce::new(ReduceKind::Sum, &[axis], true));
    let hashes = [
        with(sum(0), [4, 4]),
        with(sum(1), [4, 4]),
        with(Reduce::new(ReduceKind::Max, &[1], true).into(), [4, 4]),
        with(Reduce::new(ReduceKind::Sum, &[1], false).into(), [4, 4]),
        with(sum(1), [4, 5]),
        with(sum(1), [5, 4]),
        with(Concat { axis: 0 }.into(), [4, 4]),
        with(Concat { axis: 1 }.into(), [4, 4]),
    ];
    let different: std::collections::HashSet<u128> = hashes.into_iter().collect();
    assert_eq!(different.len(), hashes.len());
}

#[test]
fn nodes_that_nothing_reads_and_nodes_that_stand_twice_count() {
    let build = |twice: bool, unread: bool| {
        let mut g = GraphBuilder::new("g");
        let x = g.step_input("x", Type::new(DType::F32, [3u32])).unwrap();
        let a = g.op("a", Map::of(Func::Exp), &[x]).unwrap();
        let b = if twice { g.op("b", Map::of(Func::Exp), &[x]).unwrap() } else { a };
        if unread {
            g.op("c", Map::of(Func::Neg), &[x]).unwrap();
        }
        let y = g.op("y", Map::of(Func::Mul), &[a, b]).unwrap();
        g.output(y);
        g.finish().structural_hash()
    };
    let hashes = [build(false, false), build(true, false), build(false, true), build(true, true)];
    assert_eq!(hashes.into_iter().collect::<std::collections::HashSet<_>>().len(), 4);
}

#[test]
fn regions_count_by_kind_and_content_and_not_by_names() {
    let build = |inner_name: &str, eps: f32, kind: RegionKind| {
        let ty = Type::rows(Sym::Tokens, 8);
        let mut inner = GraphBuilder::new(inner_name);
        let x = inner.step_input(&format!("{inner_name}.x"), ty.clone()).unwrap();
        let op = RmsNorm { eps: F32(eps), width: 8, unit_offset: false };
        let y = inner.op(&format!("{inner_name}.y"), op, &[x]).unwrap();
        inner.output(y);
        let region = NodeKind::Region(Box::new(Region::new(kind, inner.finish())));
        let x = Type::rows(Sym::Tokens, 8);
        let value = |name: &str, source| yirage_ir::Value { name: name.into(), ty: x.clone(), source };
        let values = vec![value("x", ValueSource::StepInput), value("y", ValueSource::Node { node: 0, output: 0 })];
        let nodes = vec![Node { kind: region, ins: vec![ValueId(0)], outs: vec![ValueId(1)] }];
        let graph = Graph { name: "g".into(), values, nodes, inputs: vec![ValueId(0)], outputs: vec![ValueId(1)] };
        graph.structural_hash()
    };
    let hash = build("a", 1e-5, RegionKind::Rows);
    assert_eq!(hash, build("b", 1e-5, RegionKind::Rows));
    assert_ne!(hash, build("a", 1e-6, RegionKind::Rows));
    assert_ne!(hash, build("a", 1e-5, RegionKind::Chain));
}

#[test]
fn a_tiling_and_what_follows_its_loop_count() {
    let build = |loops: u32, how: &str, function: &str| {
        format!(
            "graph g {{ input %x: f32[4, 256]
             %y = region tiled{{grid=\"[2, 1, 1]\", loops={loops}, ins=\"[0 - - loop 1]\", outs=\"[0 - -]\",
                 accumulate=\"[{how}]\", running=\"[]\", reads=\"[]\"}}(%x): f32[4, 1]
               graph body {{ input %t: f32[2, {width}]
                 %s = reduce{{kind=sum, axes=\"[1]\", keep=true}}(%t): f32[2, 1] output %s }}
               graph block {{ input %a: f32[2, 1] %b = map{{expr=\"{function}(x0)\"}}(%a): f32[2, 1] output %b }}
             output %y }}",
            width = 256 / loops
        )
    };
    let hash = |text: String| yirage_ir::text::parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}")).structural_hash();
    let all = [(2, "sum", "neg"), (4, "sum", "neg"), (2, "continue", "neg"), (2, "sum", "exp")];
    let hashes: std::collections::HashSet<u128> = all.map(|(n, how, f)| hash(build(n, how, f))).into();
    assert_eq!(hashes.len(), 4);
}
