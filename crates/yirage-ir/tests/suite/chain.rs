//! The normal form of a chain computes what its ops compute one by one.

use std::collections::HashMap;
use yirage_ir::expr::Scalar;
use yirage_ir::region::{Core, ElementExpr, FusedChain};
use yirage_ir::rng::Rng;
use yirage_ir::{Dim, Dims, Graph, Op, Region, RegionKind, Strided, Tensor, interp, text, verify};

/// The index of every element of a shape, row-major.
fn indices(shape: &[usize]) -> Vec<Vec<usize>> {
    shape.iter().fold(vec![Vec::new()], |all, &n| {
        all.iter().flat_map(|i| (0..n).map(move |j| [&i[..], &[j]].concat())).collect()
    })
}

fn at(strided: &Strided, index: &[usize]) -> usize {
    let offset: i64 = strided.strides.iter().zip(index).map(|(s, &i)| s * i as i64).sum();
    usize::try_from(strided.offset + offset).unwrap()
}

fn sizes(shape: &[Dim], dims: &Dims) -> Vec<usize> {
    shape.iter().map(|d| d.get(dims)).collect()
}

/// All elements of an expression over inputs.
fn elements(e: &ElementExpr, ins: &[Vec<Scalar>], dims: &Dims) -> Tensor {
    let shape = sizes(&e.shape, dims);
    let value = |index: &Vec<usize>| {
        let read: Vec<Scalar> = e.reads.iter().map(|r| ins[r.input][at(&r.at, index)]).collect();
        e.expr.eval(&read)
    };
    let values: Vec<Scalar> = indices(&shape).iter().map(value).collect();
    Tensor::from_scalars(e.dtype, shape, &values)
}

fn evaluate(chain: &FusedChain, given: &[Tensor], dims: &Dims) -> Vec<Scalar> {
    let ins = &given.iter().map(Tensor::scalars).collect::<Vec<_>>();
    let made = match &chain.core {
        Core::None => return elements(&chain.after, ins, dims).scalars(),
        Core::Reduce(op, x) => Op::from(op.clone()).eval(&[&elements(x, ins, dims)]),
        Core::Contract(sides) => {
            let [a, b] = sides.each_ref().map(|e| elements(e, ins, dims));
            Op::from(yirage_ir::op::Contract {}).eval(&[&a, &b])
        }
        Core::Matmuls(products) => {
            let each = products.iter().map(|p| p.op.eval(&p.ins.iter().map(|&i| &given[i]).collect::<Vec<_>>()));
            each.flatten().collect()
        }
    };
    let results: Vec<Vec<Scalar>> = made.iter().map(Tensor::scalars).collect();
    let shape = sizes(&chain.after.shape, dims);
    let mut out = vec![Scalar::from(0i32); results[0].len()];
    for (i, index) in indices(&shape).iter().enumerate() {
        let others = chain.after.reads.iter().map(|r| ins[r.input][at(&r.at, index)]);
        let read: Vec<Scalar> = results.iter().map(|result| result[i]).chain(others).collect();
        out[at(&chain.out, index)] = chain.after.expr.eval(&read).cast(chain.after.dtype);
    }
    out
}

fn parse(body: &str) -> Graph {
    let graph = text::parse(&format!("graph chain {{\n{body}\n}}\n")).unwrap();
    verify(&graph).unwrap();
    graph
}

#[test]
fn a_chain_computes_what_its_ops_compute() {
    let dims = Dims { tokens: 3, ..Dims::default() };
    let chains = [
        "input %x: f32[4, 6]\n %y = map{expr=\"add(x0, 1.5)\"}(%x): f32[4, 6]\n output %y",
        "input %x: f32[4, 6]\n input %b: f32[6]\n %t = view{form=\"permute(1, 0)\"}(%x): f32[6, 4]
         %c = view{form=\"reshape(6, 1)\"}(%b): f32[6, 1]\n %y = map{expr=\"mul(sub(x0, x1), x0)\"}(%t, %c): f32[6, 4]
         %s = view{form=\"slice(5:-2:3, 1:1:2)\"}(%y): f32[3, 2]\n output %s",
        "input %x: f32[Tokens, 12]\n input %w: f32[4]\n %h = view{form=\"reshape(Tokens, 3, 4)\"}(%x): f32[Tokens, 3, 4]
         %m = map{expr=\"mul(x0, x1)\"}(%h, %w): f32[Tokens, 3, 4]
         %r = reduce{kind=sum, axes=\"[2]\", keep=true}(%m): f32[Tokens, 3, 1]
         %f = view{form=\"reshape(Tokens, 3)\"}(%r): f32[Tokens, 3]
         %e = map{expr=\"sqrt(abs(x0))\"}(%f): f32[Tokens, 3]\n output %e",
        "input %x: f32[2, 3, 4]\n input %o: f32[3, 2]\n %r = reduce{kind=max, axes=\"[2]\", keep=false}(%x): f32[2, 3]
         %t = view{form=\"permute(1, 0)\"}(%r): f32[3, 2]\n %y = map{expr=\"sub(x1, x0)\"}(%t, %o): f32[3, 2]\n output %y",
        "input %a: f32[2, 3, 4]\n input %b: f32[5, 4]\n input %c: f32[5]
         %t = view{form=\"permute(1, 0)\"}(%b): f32[4, 5]\n %g = map{expr=\"square(x0)\"}(%a): f32[2, 3, 4]
         %p = contract(%g, %t): f32[2, 3, 5]\n %y = map{expr=\"add(x0, x1)\"}(%p, %c): f32[2, 3, 5]
         %q = view{form=\"permute(0, 2, 1)\"}(%y): f32[2, 5, 3]\n output %q",
        "input %x: f32[4, 6]\n %n = map{expr=\"cast.bf16(x0)\"}(%x): bf16[4, 6]
         %r = reduce{kind=mean, axes=\"[0]\", keep=false}(%n): bf16[6]
         %y = map{expr=\"cast.f16(add(x0, x0))\"}(%r): f16[6]\n output %y",
        "input %x: f32[Tokens, 6]\n weight %w: f32[8, 6]\n input %b: f32[8]\n input %r: f32[Tokens, 2, 4]
         %p = linear{groups=1}(%x, %w): f32[Tokens, 8]\n %c = map{expr=\"add(x0, x1)\"}(%p, %b): f32[Tokens, 8]
         %h = view{form=\"reshape(Tokens, 2, 4)\"}(%c): f32[Tokens, 2, 4]
         %y = map{expr=\"mul(x1, tanh(x0))\"}(%h, %r): f32[Tokens, 2, 4]\n output %y",
        "input %x: f32[Tokens, 6]\n weight %w: f32[8, 6]\n weight %v: f32[8, 6]\n input %b: f32[8]
         %p = linear{groups=1}(%x, %w): f32[Tokens, 8]\n %q = linear{groups=1}(%x, %v): f32[Tokens, 8]
         %c = map{expr=\"add(x0, x1)\"}(%q, %b): f32[Tokens, 8]\n %s = map{expr=\"mul(x0, silu(x1))\"}(%c, %p): f32[Tokens, 8]
         %y = map{expr=\"sub(x1, x0)\"}(%s, %b): f32[Tokens, 8]\n output %y",
    ];
    for text in chains {
        let graph = parse(text);
        let chain = FusedChain::of(&graph).unwrap_or_else(|why| panic!("{why}:\n{text}"));
        let mut rng = Rng::new(7);
        let mut tensors = HashMap::new();
        let mut ins = Vec::new();
        for &id in &graph.inputs {
            let shape = sizes(&graph.ty(id).shape, &dims);
            let t = Tensor::f32(shape.clone(), (0..shape.iter().product()).map(|_| rng.signed_f32()).collect());
            ins.push(t.clone());
            tensors.insert(graph.value(id).name.clone(), t);
        }
        let want = interp::evaluate(&graph, &mut tensors).unwrap();
        assert_eq!(evaluate(&chain, &ins, &dims), want[0].scalars(), "{text}");
    }
}

#[test]
fn what_is_no_chain_is_told() {
    for (body, why) in [
        ("input %x: f32[4]\n output %x", "0 ops"),
        (
            "input %x: f32[4, 6]\n %t = view{form=\"permute(1, 0)\"}(%x): f32[6, 4]
             %f = view{form=\"reshape(24)\"}(%t): f32[24]\n output %f",
            "needs a copy",
        ),
        (
            "input %x: f32[4, 6]\n %r = reduce{kind=max, axes=\"[1]\", keep=true}(%x): f32[4, 1]
             %y = map{expr=\"sub(x0, x1)\"}(%x, %r): f32[4, 6]\n output %y",
            "seen whole",
        ),
        (
            "input %x: f32[4, 6]\n %r = reduce{kind=max, axes=\"[1]\", keep=false}(%x): f32[4]
             %s = reduce{kind=sum, axes=\"[0]\", keep=false}(%r): f32[]\n output %s",
            "reads another one",
        ),
        ("input %x: f32[4, 6]\n %y = softmax(%x): f32[4, 6]\n output %y", "`softmax`"),
        (
            "input %x: f32[4, 6]\n weight %w: f32[8, 6]\n %y = linear{groups=1}(%x, %w): f32[4, 8]\n output %y",
            "into a region of products",
        ),
    ] {
        let error = refusal(RegionKind::Chain, body).unwrap();
        assert!(error.contains(why), "{error}");
    }
}

fn refusal(kind: RegionKind, body: &str) -> Option<String> {
    let inner = parse(body);
    let ins: Vec<_> = inner.inputs.iter().map(|&i| inner.ty(i).clone()).collect();
    Region::new(kind, inner).infer(&ins).err().map(|why| why.to_string())
}

#[test]
fn products_have_chains_of_their_own() {
    let two = "input %x: f32[4, 6]\n weight %w: f32[8, 6]\n weight %v: f32[8, 6]\n input %b: f32[8]
         %p = linear{groups=1}(%x, %w): f32[4, 8]\n %q = linear{groups=1}(%x, %v): f32[4, 8]\n";
    let with = |rest: &str| refusal(RegionKind::MatmulGroup, &format!("{two}{rest}"));
    assert_eq!(with("%y = map{expr=\"add(x0, x1)\"}(%p, %b): f32[4, 8]\n output %y\n output %q"), None);
    assert_eq!(with("%y = map{expr=\"mul(x0, x1)\"}(%p, %q): f32[4, 8]\n output %y"), None, "one chain of both");
    for (rest, why) in [
        ("%y = map{expr=\"mul(x0, x1)\"}(%p, %q): f32[4, 8]\n output %y\n output %q", "outputs of 3 products and 4 ops, of a region that has 2 and 3"),
        ("%y = map{expr=\"relu(x0)\"}(%p): f32[4, 8]\n output %y", "outputs of 1 products and 2 ops"),
        ("%y = map{expr=\"relu(x0)\"}(%p): f32[4, 8]\n output %y\n output %p\n output %q", "outputs of 3 products and 4 ops"),
        (
            "%h = view{form=\"reshape(4, 2, 4)\"}(%p): f32[4, 2, 4]\n %g = view{form=\"reshape(4, 2, 4)\"}(%q): f32[4, 2, 4]
             %y = map{expr=\"mul(x0, x1)\"}(%h, %g): f32[4, 2, 4]\n output %y",
            "is not read as it is",
        ),
        (
            "weight %s: f32[1, 6]\n %k = linear{groups=1}(%x, %s): f32[4, 1]
             %y = map{expr=\"mul(x0, add(x1, x2))\"}(%p, %q, %k): f32[4, 8]\n output %y",
            "products of two types, f32[4, 8] and f32[4, 1]",
        ),
        (
            "weight %s: f32[8, 3]\n %k = linear{groups=2}(%x, %s): f32[4, 8]
             %y = map{expr=\"mul(x0, add(x1, x2))\"}(%p, %q, %k): f32[4, 8]\n output %y",
            "of other attributes",
        ),
        (
            "%r = map{expr=\"relu(x0)\"}(%p): f32[4, 8]\n %m = reduce{kind=sum, axes=\"[1]\", keep=true}(%x): f32[4, 1]
             %y = map{expr=\"mul(mul(x0, x1), x2)\"}(%r, %m, %q): f32[4, 8]\n output %y",
            "two reductions, contractions or products",
        ),
        ("%y = map{expr=\"relu(x0)\"}(%x): f32[4, 6]\n output %y\n output %q", "comes of no product"),
        ("%y = softmax(%p): f32[4, 8]\n output %y\n output %q", "`softmax`"),
    ] {
        let error = with(rest).unwrap_or_else(|| panic!("{rest}"));
        assert!(error.contains(why), "{error}");
    }
}
