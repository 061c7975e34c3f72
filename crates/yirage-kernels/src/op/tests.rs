//! Ops that read weights, by the interpreter: against their reference, and the same bytes for any number of rows.

use super::{PlanSite, lower};
use crate::node_kernel::{BufferSource, NodeKernel};
use yirage_hal::HalError;
use yirage_hal::driver::GridExtent;
use yirage_ir::op::{ExpertLinear, Linear, NO_EXPERT, OpCase, Role, Tolerance};
use yirage_ir::tensor::{Data, round_to};
use yirage_ir::{DType, Dim, Dims, Format, Graph, GraphBuilder, NodeKind, Op, Region, RegionKind, Sym, Tensor, Type};
use yirage_kir::interpret::{InterpretedKernel, InterpreterSettings};
use yirage_plan::{DeviceLimits, ValueParts};

/// The largest sizes of these plans.
const BUCKET: Dims = Dims { tokens: 64, seqs: 1, blocks: 1, rows: 64 };

const OPS: [&str; 5] = ["linear", "embed", "expert_linear", "expert_bias", "expert_sum"];

/// An op over inputs of which all but the weights have a row a token.
fn graph(op: &Op, ins: &[Tensor]) -> Graph {
    let mut b = GraphBuilder::new("op");
    let mut ids = Vec::new();
    for (at, tensor) in ins.iter().enumerate() {
        let ty = tensor.ty();
        ids.push(if op.role(at, tensor) == Role::Weight {
            b.weight(&format!("w{at}"), ty).unwrap()
        } else {
            let inner = ty.shape[1..].iter().copied();
            let shape: Vec<Dim> = std::iter::once(Dim::Sym(Sym::Tokens)).chain(inner).collect();
            b.step_input(&format!("x{at}"), Type::new(ty.dtype, shape)).unwrap()
        });
    }
    let y = b.op("y", op.clone(), &ids).unwrap();
    b.output(y);
    b.finish()
}

fn words(bytes: &[u8]) -> Vec<u32> {
    let word = |part: &[u8]| part.iter().rev().fold(0, |word, &byte| word << 8 | u32::from(byte));
    bytes.chunks(4).map(word).collect()
}

fn groups(extent: GridExtent, tokens: u32) -> u32 {
    match extent {
        GridExtent::Fixed(groups) => groups,
        GridExtent::Of { times, per, .. } => (tokens * times).div_ceil(per),
    }
}

/// What the kernels of an op make.
fn made(op: &Op, ins: &[Tensor]) -> Tensor {
    made_within(&DeviceLimits::aligned(256), op, ins).unwrap()
}

/// The same on a device of these limits.
fn made_within(limits: &DeviceLimits, op: &Op, ins: &[Tensor]) -> Result<Tensor, HalError> {
    made_in(BUCKET, limits, op, ins)
}

/// The same by a plan of these largest sizes.
fn made_in(bucket: Dims, limits: &DeviceLimits, op: &Op, ins: &[Tensor]) -> Result<Tensor, HalError> {
    let graph = graph(op, ins);
    let tokens = ins.iter().enumerate().find(|(at, x)| op.role(*at, x) != Role::Weight).map_or(1, |(_, x)| x.shape[0]);
    let dims = Dims { tokens: tokens as u32, ..bucket };
    let kernels = lower(PlanSite { graph: &graph, bucket, limits, products: None, attention: None }, &graph.nodes[0])?;
    let ty = graph.ty(graph.outputs[0]);
    let bytes = ty.checked_bytes(&dims).unwrap();
    let mut values: Vec<Vec<u32>> = ins.iter().map(|x| words(&x.memory())).collect();
    values.push(vec![0xffff_ffff; bytes.div_ceil(4)]);
    for kernel in &kernels {
        run(kernel, &mut values, dims);
    }
    let bytes: Vec<u8> = values[ins.len()].iter().flat_map(|word| word.to_le_bytes()).take(bytes).collect();
    Ok(Tensor::from_memory(ty, &dims, &bytes))
}

fn run(made: &NodeKernel, values: &mut [Vec<u32>], dims: Dims) {
    let mut sizes: Vec<u32> = Sym::ALL.iter().map(|&sym| dims.get(sym)).collect();
    yirage_kir::verify(&made.kernel).unwrap();
    let mut lent: Vec<Option<&mut [u32]>> = values.iter_mut().map(|words| Some(words.as_mut_slice())).collect();
    let mut sizes = Some(sizes.as_mut_slice());
    let bound = made.sources.iter().map(|source| match source {
        BufferSource::Sizes => sizes.take().unwrap(),
        BufferSource::Value(id) => lent[id.index()].take().unwrap(),
        BufferSource::Part { value, offset, bytes } => {
            let words = [*offset, offset + bytes].map(|at| (at as usize).div_ceil(4));
            &mut lent[value.index()].take().unwrap()[words[0]..words[1]]
        }
        BufferSource::Workspace => panic!("{} has a workspace", made.kernel.name),
    });
    let mut bound: Vec<&mut [u32]> = bound.collect();
    let grid = made.grid.map(|extent| groups(extent, dims.tokens));
    let kernel = InterpretedKernel::new(made.kernel.clone()).unwrap();
    kernel.run(grid, &mut bound, &InterpreterSettings::default()).unwrap();
}

/// The same case with activations of 16 bits.
fn narrowed(case: &OpCase, format: Format) -> OpCase {
    let dtype = DType::Stored(format);
    let mut case = case.clone();
    for at in 0..case.ins.len() {
        if case.op.role(at, &case.ins[at]) == Role::Weight || case.ins[at].dtype != DType::F32 {
            continue;
        }
        case.ins[at].dtype = dtype;
        if let Data::F32(values) = &mut case.ins[at].data {
            round_to(dtype, values);
        }
    }
    case
}

fn numbers(x: &Tensor) -> Vec<f64> {
    (0..x.rows()).flat_map(|row| x.row_f64(row)).collect()
}

fn check(case: &OpCase) {
    let got = made(&case.op, &case.ins);
    let want = case.op.eval(&case.ins.iter().collect::<Vec<_>>()).remove(0);
    assert_eq!((&got.dtype, &got.shape), (&want.dtype, &want.shape), "{}", case.name);
    let (got, want) = (numbers(&got), numbers(&want));
    let bounds = case.bounds(0, &want);
    for (at, ((got, want), bound)) in got.iter().zip(&want).zip(bounds).enumerate() {
        let right = (got - want).abs() <= bound || got.is_nan() && want.is_nan();
        assert!(right, "{} {}: element {at} is {got}, {want} within {bound} wanted", case.op.name(), case.name);
    }
}

fn cases() -> impl Iterator<Item = OpCase> {
    let plain = |case: &OpCase| case.ins.iter().all(|x| x.activation_format().is_none());
    Op::all_cases().into_iter().filter(move |case| OPS.contains(&case.op.name()) && plain(case))
}

#[test]
fn ops_of_weights_give_what_their_reference_gives() {
    cases().for_each(|case| check(&case));
}

#[test]
fn ops_of_weights_take_activations_of_16_bits() {
    for case in cases().filter(|case| matches!(case.tolerance, Tolerance::SumOfProducts { .. })) {
        [Format::F16, Format::BF16].into_iter().for_each(|format| check(&narrowed(&case, format)));
    }
}

/// Rows of what no case has by itself.
fn matmul(rows: usize, format: Format, groups: u32, dtype: DType) -> Vec<Tensor> {
    let k = if format.info().block == 256 { 256 } else { 96 };
    vec![inputs(rows, k * groups as usize, dtype), weights(format, &[24], k)]
}

/// Weights of this shape, in rows of so many.
fn weights(format: Format, shape: &[usize], k: usize) -> Tensor {
    let n: usize = shape.iter().product();
    let weight = cases().find(|case| case.op.name() == "linear" && case.ins[1].dtype == format.into()).unwrap();
    let bytes = weight.ins[1].memory();
    let row = format.info().row_bytes(k);
    let shape: Vec<usize> = shape.iter().copied().chain([k]).collect();
    Tensor::stored(format, shape, bytes.iter().copied().cycle().take(n * row).collect())
}

fn inputs(rows: usize, width: usize, dtype: DType) -> Tensor {
    let mut values: Vec<f32> = (0..rows * width).map(|at| ((at * 37 % 101) as f32 - 50.0) / 64.0).collect();
    round_to(dtype, &mut values);
    Tensor { dtype, shape: vec![rows, width], data: Data::F32(values) }
}

/// Where a plan is for few rows, threads share a result's segments, and where it is for many they do not: the same bytes, near
/// those of the reference.
#[test]
fn threads_that_share_segments_change_no_byte() {
    let many = Dims { tokens: 1 << 20, ..BUCKET };
    let limits = DeviceLimits::aligned(256);
    let experts = ExpertLinear { top_k: 2, shared: true };
    for format in Format::ALL.iter().copied().filter(|format| format.info().block > 1) {
        // Ten segments, of which the last is not whole where blocks are small: more than threads share at once.
        let k = if format.info().block == 256 { 2560 } else { 2336 };
        for (rows, columns) in [(1, 24), (3, 67), (9, 5)] {
            let (x, chosen) = (inputs(rows, k, DType::F32), (0..2 * rows as i32).map(|at| at % 3).collect());
            let of_experts = vec![x.clone(), weights(format, &[3, columns], k), Tensor::i32([rows, 2], chosen)];
            let plain = vec![x, weights(format, &[columns], k)];
            for (op, ins) in [(Op::from(Linear { groups: 1 }), plain), (Op::from(experts.clone()), of_experts)] {
                let [shared, alone] = [BUCKET, many].map(|bucket| made_in(bucket, &limits, &op, &ins).unwrap());
                let what = format!("{} of {format:?}, {rows} rows, {columns} columns", op.name());
                assert_eq!(shared.memory(), alone.memory(), "{what}");
                let want = op.eval(&ins.iter().collect::<Vec<_>>()).remove(0);
                for (got, want) in numbers(&shared).iter().zip(numbers(&want)) {
                    assert!((got - want).abs() <= 1e-4 * want.abs() + 1e-2, "{what}: {got}, {want} wanted");
                }
            }
        }
    }
}

#[test]
fn a_rows_bytes_do_not_depend_on_the_number_of_rows() {
    for format in [Format::F32, Format::F16, Format::Q4_0, Format::Q6_K] {
        for (dtype, groups) in [(DType::F32, 1), (DType::Stored(Format::F16), 1), (DType::F32, 3)] {
            let op = Op::from(Linear { groups });
            let many = matmul(11, format, groups, dtype);
            let all = made(&op, &many);
            for row in 0..11 {
                let width = many[0].width();
                let Data::F32(values) = &many[0].data else { panic!("floats") };
                let part = values[row * width..][..width].to_vec();
                let x = Tensor { dtype, shape: vec![1, width], data: Data::F32(part) };
                let alone = made(&op, &[x, many[1].clone()]);
                assert_eq!(alone.row(0), all.row(row), "{format:?} {dtype:?} {groups} row {row}");
            }
        }
    }
}

#[test]
fn what_names_no_row_gives_nan_or_nothing_and_reads_nothing() {
    let table = matmul(1, Format::Q4_0, 1, DType::F32).remove(1);
    let op = Op::all_cases().into_iter().find(|case| case.op.name() == "embed").unwrap().op;
    let rows = made(&op, &[table, Tensor::i32([4], vec![-1, 24, 23, i32::MAX])]);
    let nan: Vec<bool> = (0..4).map(|row| rows.row(row).iter().all(|x| x.is_nan())).collect();
    assert_eq!(nan, [true, true, false, true]);
    let case = cases().find(|case| case.op.name() == "expert_linear").unwrap();
    let mut ins = case.ins.clone();
    ins[2] = Tensor::i32([4, 2], vec![0, 5, NO_EXPERT, -2, i32::MIN, i32::MAX, 4, 3]);
    let rows = made(&case.op, &ins);
    let all = |is: fn(&f32) -> bool| -> Vec<bool> {
        (0..4).flat_map(|row| [0, 24].map(|at| rows.row(row)[at..][..24].iter().all(is))).collect()
    };
    assert_eq!(all(|x| x.is_nan()), [false, true, false, true, true, true, false, false]);
    assert_eq!(all(|x| x.to_bits() == 0), [false, false, true, false, false, false, false, false], "0 of none");
}

/// Weights as they are bound on devices whose bindings are smaller, one after the other: the same bytes.
#[test]
fn parts_of_a_weight_change_no_byte() {
    let mut in_parts = 0;
    let floats = |case: &OpCase| matches!(case.tolerance, Tolerance::SumOfProducts { .. });
    let narrow = cases().filter(floats).flat_map(|case| [Format::F16, Format::BF16].map(|to| narrowed(&case, to)));
    for case in cases().chain(narrow).filter(|case| ["linear", "embed", "expert_linear"].contains(&case.op.name())) {
        let weight = case.ins.iter().enumerate().find(|(at, x)| case.op.role(*at, x) == Role::Weight).unwrap().1.ty();
        let whole = made(&case.op, &case.ins);
        for (align, share) in [(4, 2), (64, 2), (4, 3), (256, 5)] {
            let most = weight.checked_bytes(&BUCKET).unwrap() as u64 / share;
            let limits = DeviceLimits { binding_bytes: Some(most), ..DeviceLimits::aligned(align) };
            let got = made_within(&limits, &case.op, &case.ins);
            match ValueParts::of(&[&weight], &limits) {
                Ok(parts) => {
                    in_parts += usize::from(!parts.is_whole());
                    let what = format!("{} {} in parts of {most}", case.op.name(), case.name);
                    assert_eq!(got.unwrap().memory(), whole.memory(), "{what}");
                }
                Err(_) => {
                    assert!(got.unwrap_err().to_string().contains("a weight larger than a binding"), "{}", case.name)
                }
            }
        }
    }
    assert!(in_parts > 100, "{in_parts} cases in parts");
}

/// Regions of products: what follows each is computed where its results are at hand.
const REGIONS: [&str; 6] = [
    "input %x: f32[Tokens, 64] weight %w: f32[96, 64] input %b: f32[96]
     %p = linear{groups=1}(%x, %w): f32[Tokens, 96] %y = map{expr=\"add(x0, x1)\"}(%p, %b): f32[Tokens, 96] output %y",
    "input %x: f32[Tokens, 64] weight %w: f32[98, 64] weight %v: f16[98, 64] input %r: f32[Tokens, 98]
     %p = linear{groups=1}(%x, %w): f32[Tokens, 98] %q = linear{groups=1}(%x, %v): f32[Tokens, 98]
     %y = map{expr=\"add(mul(silu(x0), x1), x2)\"}(%p, %q, %r): f32[Tokens, 98] output %y",
    "input %x: f32[Tokens, 64] weight %w: f32[96, 64] weight %v: f32[33, 64]
     %p = linear{groups=1}(%x, %w): f32[Tokens, 96] %h = map{expr=\"cast.bf16(x0)\"}(%p): bf16[Tokens, 96]
     %q = linear{groups=1}(%x, %v): f32[Tokens, 33] %k = map{expr=\"cast.f16(x0)\"}(%q): f16[Tokens, 33]
     output %h output %k",
    "input %x: f32[Tokens, 64] weight %w: f32[96, 32]
     %p = linear{groups=2}(%x, %w): f32[Tokens, 96] %h = view{form=\"reshape(Tokens, 2, 48)\"}(%p): f32[Tokens, 2, 48]
     %t = view{form=\"permute(0, 2, 1)\"}(%h): f32[Tokens, 48, 2] %y = map{expr=\"mul(x0, 0.5)\"}(%t): f32[Tokens, 48, 2]
     output %y",
    "input %x: f32[Tokens, 64] weight %w: f32[96, 64]
     %p = linear{groups=1}(%x, %w): f32[Tokens, 96] %h = view{form=\"reshape(Tokens, 2, 48)\"}(%p): f32[Tokens, 2, 48]
     %t = view{form=\"permute(0, 2, 1)\"}(%h): f32[Tokens, 48, 2] %y = map{expr=\"cast.f16(x0)\"}(%t): f16[Tokens, 48, 2]
     output %y",
    "input %x: f32[Tokens, 64] weight %w: f32[5, 24, 64] weight %v: f32[5, 24, 64] input %c: i32[Tokens, 2]
     %p = expert_linear{top_k=2, shared=true}(%x, %w, %c): f32[Tokens, 48]
     %q = expert_linear{top_k=2, shared=true}(%x, %v, %c): f32[Tokens, 48]
     %y = map{expr=\"mul(silu(x0), x1)\"}(%p, %q): f32[Tokens, 48] output %y",
];

/// Small whole numbers, whose sums of products are exact.
fn whole_numbers(ty: &Type, dims: &Dims) -> Tensor {
    let shape: Vec<usize> = ty.shape.iter().map(|dim| dim.get(dims)).collect();
    let count = shape.iter().product::<usize>();
    let value = |at: usize| (at * 7919 % 17) as f32 - 8.0;
    match ty.dtype {
        DType::I32 => Tensor::i32(shape, (0..count).map(|at| (at * 31 % 5) as i32).collect()),
        dtype => Tensor { dtype, shape, data: Data::F32((0..count).map(value).collect()) },
    }
}

#[test]
fn what_follows_products_is_computed_of_their_results() {
    for (body, tokens, binding_bytes) in REGIONS.iter().flat_map(|body| {
        [(0, None), (1, None), (7, None), (7, Some(6144)), (1, Some(8000))].map(|(tokens, most)| (body, tokens, most))
    }) {
        let inner = yirage_ir::text::parse(&format!("graph region {{\n{body}\n}}\n")).unwrap();
        let dims = Dims { tokens, ..BUCKET };
        let mut b = GraphBuilder::new("outer");
        let mut given = std::collections::HashMap::new();
        let mut values = Vec::new();
        let mut ids = Vec::new();
        for &id in &inner.inputs {
            let value = inner.value(id);
            let tensor = whole_numbers(&value.ty, &dims);
            values.push(words(&tensor.memory()));
            ids.push(b.declare(&value.name, value.ty.clone(), value.source).unwrap());
            given.insert(value.name.clone(), tensor);
        }
        let names: Vec<String> = (0..inner.outputs.len()).map(|at| format!("y{at}")).collect();
        let region = Region::new(RegionKind::MatmulGroup, inner.clone());
        let outs = b.node(NodeKind::Region(Box::new(region)), &ids, &names).unwrap();
        outs.iter().for_each(|&out| b.output(out));
        let graph = b.finish();
        values.extend(outs.iter().map(|&out| vec![!0; graph.ty(out).checked_bytes(&dims).unwrap().div_ceil(4)]));
        let limits = DeviceLimits { binding_bytes, ..DeviceLimits::aligned(64) };
        for kernel in lower(
            PlanSite { graph: &graph, bucket: BUCKET, limits: &limits, products: None, attention: None },
            &graph.nodes[0],
        )
        .unwrap()
        {
            run(&kernel, &mut values, dims);
        }
        let wanted = yirage_ir::interp::evaluate(&inner, &mut given).unwrap();
        for (want, out) in wanted.iter().zip(outs) {
            let bytes: Vec<u8> = values[out.index()].iter().flat_map(|word| word.to_le_bytes()).collect();
            let ty = graph.ty(out);
            let got = Tensor::from_memory(ty, &dims, &bytes[..ty.checked_bytes(&dims).unwrap()]);
            for (got, want) in numbers(&got).iter().zip(numbers(want)) {
                assert!((got - want).abs() <= 1e-5 * want.abs() + 1e-6, "{got} {want}:\n{body}");
            }
        }
    }
}
