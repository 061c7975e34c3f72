//! Whether plain evaluation on random floats tells two graphs apart: the ops' references, which know nothing of fields,
//! bounds or samples.

use std::collections::HashMap;
use yirage_ir::rng::Rng;
use yirage_ir::{DType, Graph, Tensor, interp};

/// By more than rounding does: a thousandth of the largest element, or a number that only one of them has.
pub(crate) fn tells_apart(a: &Graph, b: &Graph, seed: u64) -> bool {
    (0..3).any(|draw| {
        let given = inputs(a, draw, seed);
        let run = |graph: &Graph| interp::evaluate(graph, &mut given.clone()).unwrap();
        run(a).iter().zip(run(b)).any(|(a, b)| differ(a, &b))
    })
}

fn differ(a: &Tensor, b: &Tensor) -> bool {
    let numbers = |t: &Tensor| t.scalars().into_iter().map(|x| x.as_f64()).collect::<Vec<_>>();
    let (a, b) = (numbers(a), numbers(b));
    let largest = a.iter().map(|x| x.abs()).filter(|x| x.is_finite()).fold(0.0, f64::max);
    let far = |(a, b): (&f64, &f64)| a.is_finite() != b.is_finite() || (a - b).abs() > 1e-3 * largest.max(1e-6);
    a.iter().zip(&b).any(far)
}

/// Near 1 in the first draw, so that roots and quotients are defined; then around 0.
fn inputs(graph: &Graph, draw: u64, seed: u64) -> HashMap<String, Tensor> {
    let mut rng = Rng::new(seed ^ draw << 32);
    let mut tensor = |graph: &Graph, id| {
        let ty = graph.ty(id);
        let shape: Vec<usize> = ty.shape.iter().map(|d| d.as_const().unwrap()).collect();
        let n = shape.iter().product::<usize>();
        if ty.dtype == DType::I32 {
            return Tensor::i32(shape, (0..n).map(|_| rng.below(3) as i32).collect());
        }
        let float = |rng: &mut Rng| match draw {
            0 => 1.0 + 0.5 * rng.signed_f32(),
            1 => rng.signed_f32(),
            _ => rng.normal() as f32 * 2.0,
        };
        Tensor::f32(shape, (0..n).map(|_| float(&mut rng)).collect())
    };
    graph.inputs.iter().map(|&id| (graph.value(id).name.clone(), tensor(graph, id))).collect()
}
