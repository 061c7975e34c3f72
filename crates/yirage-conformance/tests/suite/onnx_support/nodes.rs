//! Every node but Attention.

use super::case::OnnxCase;
use super::import::Import;
use yirage_ir::expr::Func;
use yirage_ir::op::{LayerNorm, Linear, Map, MatMul, RmsNorm, Rope, Softmax, TopK};
use yirage_ir::{BuildError, F32};

/// The axes with `axis` last.
fn last(rank: usize, axis: usize) -> Vec<usize> {
    (0..rank).filter(|&a| a != axis).chain([axis]).collect()
}

pub(crate) fn softmax(case: &OnnxCase, import: &mut Import) -> Result<(), BuildError> {
    let x = case.at(0);
    let order = last(x.shape.len(), case.axis(x.shape.len()));
    let x = x.permuted(&order);
    let input = import.activation("x", x.shape[x.shape.len() - 1], x.floats())?;
    let y = import.builder.op("y", Softmax {}, &[input])?;
    import.want(y, case.outs[0].permuted(&order).floats());
    Ok(())
}

pub(crate) fn gelu(case: &OnnxCase, import: &mut Import) -> Result<(), BuildError> {
    let tanh = case.attr("approximate", "none".to_string()) == "tanh";
    let x = case.at(0);
    let input = import.activation("x", x.shape[x.shape.len() - 1], x.floats())?;
    let gelu = if tanh { Func::GeluTanh } else { Func::GeluErf };
    let y = import.builder.op("y", Map::of(gelu), &[input])?;
    import.want(y, case.outs[0].floats());
    Ok(())
}

/// Elements that are normalised together: all from the axis on.
fn normalised(case: &OnnxCase) -> usize {
    let shape = &case.input("X").shape;
    shape[case.axis(shape.len())..].iter().product()
}

pub(crate) fn rms_normalization(case: &OnnxCase, import: &mut Import) -> Result<(), BuildError> {
    let width = normalised(case);
    let x = import.activation("x", width, case.input("X").floats())?;
    let w = import.weight("w", &[width], case.input("W").floats())?;
    let op = RmsNorm { eps: F32(case.attr("epsilon", 1e-5)), width: width as u32, unit_offset: false };
    let y = import.builder.op("y", op, &[x, w])?;
    import.want(y, case.outs[0].floats());
    Ok(())
}

/// The mean and the inverse deviation, which ours does not give, are made of products with constant matrices.
pub(crate) fn layer_normalization(case: &OnnxCase, import: &mut Import) -> Result<(), BuildError> {
    let n = normalised(case);
    let eps = F32(case.attr("epsilon", 1e-5));
    let x = import.activation("x", n, case.input("X").floats())?;
    let (w, b) =
        (import.weight("w", &[n], case.input("W").floats())?, import.weight("b", &[n], case.input("B").floats())?);
    let y = import.builder.op("y", LayerNorm { eps }, &[x, w, b])?;
    let average = import.weight("average", &[1, n], vec![1.0 / n as f32; n])?;
    let identity = |i: usize| if i.is_multiple_of(n + 1) { 1.0 } else { 0.0 };
    let centre = (0..n * n).map(|i| identity(i) - 1.0 / n as f32).collect();
    let centre = import.weight("centre", &[n, n], centre)?;
    let b = &mut import.builder;
    let product = Linear { groups: 1 };
    let mean = b.op("mean", product.clone(), &[x, average])?;
    let centred = b.op("centred", product.clone(), &[x, centre])?;
    let squares = b.op("squares", Map::of(Func::Square), &[centred])?;
    let variance = b.op("variance", product, &[squares, average])?;
    let inverse = b.op("inverse", Map::inverse_root(eps.0), &[variance])?;
    for (output, wanted) in [y, mean, inverse].into_iter().zip(&case.outs) {
        import.want(output, wanted.floats());
    }
    Ok(())
}

/// A batch is rows; broadcasting is a choice of rows; a vector is a matrix of one row or column.
pub(crate) fn matmul(case: &OnnxCase, import: &mut Import) -> Result<(), BuildError> {
    let (a, b) = (case.at(0), case.at(1));
    let (mut a_shape, mut b_shape) = (a.shape.clone(), b.shape.clone());
    if a_shape.len() == 1 {
        a_shape.insert(0, 1);
    }
    if b_shape.len() == 1 {
        b_shape.push(1);
    }
    let rank = a_shape.len().max(b_shape.len());
    for shape in [&mut a_shape, &mut b_shape] {
        shape.splice(0..0, vec![1; rank - shape.len()]);
    }
    let batch: Vec<usize> = (0..rank - 2).map(|i| a_shape[i].max(b_shape[i])).collect();
    let (m, k, n) = (a_shape[rank - 2], a_shape[rank - 1], b_shape[rank - 1]);
    let x = import.chosen("a", m * k, a.floats(), broadcast(&a_shape[..rank - 2], &batch))?;
    let y = import.chosen("b", k * n, b.floats(), broadcast(&b_shape[..rank - 2], &batch))?;
    let out = import.builder.op("y", MatMul { m: m as u32, n: n as u32 }, &[x, y])?;
    import.want(out, case.outs[0].floats());
    Ok(())
}

/// For each element of `to`, row-major, which of `from` it is.
fn broadcast(from: &[usize], to: &[usize]) -> Vec<i32> {
    let index = |mut at: usize| {
        let (mut offset, mut stride) = (0, 1);
        for (&n, &have) in to.iter().zip(from).rev() {
            offset += if have == 1 { 0 } else { at % n * stride };
            at /= n;
            stride *= have;
        }
        offset as i32
    };
    (0..to.iter().product()).map(index).collect()
}

/// Integers are ranked as floats, which must hold them exactly.
pub(crate) fn top_k(case: &OnnxCase, import: &mut Import) -> Result<(), BuildError> {
    let x = case.at(0);
    let order = last(x.shape.len(), case.axis(x.shape.len()));
    let x = x.permuted(&order);
    let op = TopK {
        k: case.at(1).ints()[0] as u32,
        largest: case.attr("largest", 1) == 1,
        sorted: case.attr("sorted", 1) == 1,
    };
    let input = import.activation("x", x.shape[x.shape.len() - 1], x.floats())?;
    let made = import.builder.op_multi(&["values", "indices"], op, &[input])?;
    import.want(made[0], case.outs[0].permuted(&order).floats());
    import.want_ints(made[1], case.outs[1].permuted(&order).ints());
    Ok(())
}

/// Without position ids each row has its own line of the tables.
pub(crate) fn rotary_embedding(case: &OnnxCase, import: &mut Import) -> Result<(), BuildError> {
    let x = case.input("input");
    let heads_first = x.shape.len() == 4;
    let positions_first = |a: &super::case::Array| if heads_first { a.permuted(&[0, 2, 1, 3]) } else { a.clone() };
    let rows = positions_first(x);
    let heads = if heads_first { rows.shape[2] } else { case.attr("num_heads", 0) };
    let row: usize = rows.shape[2..].iter().product();
    let (cos, sin) = (case.input("cos_cache"), case.input("sin_cache"));
    let half = cos.shape[cos.shape.len() - 1];
    let table = [cos.floats().len() / half, half];
    let (cos, sin) = (import.weight("cos", &table, cos.floats())?, import.weight("sin", &table, sin.floats())?);
    let count = (rows.shape[0] * rows.shape[1]) as i32;
    let positions = case.opt_input("position_ids").map_or_else(|| (0..count).collect(), |p| p.ints());
    let positions = import.ints("positions", positions)?;
    let rotary = case.attr("rotary_embedding_dim", 0usize);
    let op = Rope {
        width: (row / heads) as u32,
        rotary: if rotary == 0 { row / heads } else { rotary } as u32,
        interleaved: case.attr("interleaved", 0) == 1,
        per_row: false,
    };
    let input = import.activation("x", row, rows.floats())?;
    let y = import.builder.op("y", op, &[input, cos, sin, positions])?;
    import.want(y, positions_first(&case.outs[0]).floats());
    Ok(())
}
