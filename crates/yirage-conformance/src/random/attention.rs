//! Random attention in plain ops: heads alone, in groups or behind views, with or without scale, mask, bias and shift.

use super::with_random_inputs;
use crate::setup::GraphSetup;
use yirage_ir::rng::Rng;
use yirage_ir::{Graph, text};

/// Attention in plain ops, with everything that it reads.
///
/// # Errors
/// What of it is not well typed: a fault of the drawing.
pub fn plain_attention(seed: u64) -> Result<GraphSetup, String> {
    let mut rng = Rng::new(seed);
    let text = random_attention_text(&mut rng);
    let graph: Graph = text::parse(&text).map_err(|e| format!("{e}\n{text}"))?;
    Ok(with_random_inputs(graph, seed))
}

/// Sizes of one attention.
struct RandomAttentionSizes {
    heads: u32,
    group: u32,
    queries: u32,
    keys: u32,
    width: u32,
    values: u32,
}

fn random_attention_text(rng: &mut Rng) -> String {
    let sizes = RandomAttentionSizes {
        heads: *rng.choose(&[1, 2, 3]),
        group: *rng.choose(&[1, 1, 2, 4]),
        queries: *rng.choose(&[1, 8, 16, 24, 40, 60, 128]),
        keys: *rng.choose(&[1, 5, 32, 64, 100, 256, 300]),
        width: *rng.choose(&[4, 16, 40, 64]),
        values: *rng.choose(&[4, 16, 40, 64]),
    };
    let dtype = *rng.choose(&["f32", "f32", "bf16", "f16"]);
    let (inputs, k, scores) = keys(rng, &sizes, dtype);
    let (weights, softmax) = weights(rng, &sizes, dtype);
    let (v, product) = values(rng, &sizes, dtype);
    let behind = behind(rng, &sizes, dtype);
    format!("graph attention {{ {inputs} {k} {v} {scores} {weights} {softmax} {product} {behind} output %y }}")
}

/// Queries and keys, how keys are seen, and the scores.
fn keys(rng: &mut Rng, sizes: &RandomAttentionSizes, dtype: &str) -> (String, String, String) {
    let RandomAttentionSizes { heads: h, group: g, queries: m, keys: n, width: d, .. } = *sizes;
    let q = format!("input %q: {dtype}[{h}, {g}, {m}, {d}]");
    let (k, seen) = match rng.index(3) {
        // As Mirage has them, with their elements outermost.
        0 => (format!("input %kt: {dtype}[{h}, 1, {d}, {n}]"), String::new()),
        1 => {
            let turned = format!("%kt = view{{form=\"permute(0, 1, 3, 2)\"}}(%k): {dtype}[{h}, 1, {d}, {n}]");
            (format!("input %k: {dtype}[{h}, 1, {n}, {d}]"), turned)
        }
        // Rows of tokens, as a model has them.
        _ => {
            let turned = format!(
                "%kr = view{{form=\"reshape({n}, {h}, 1, {d})\"}}(%k): {dtype}[{n}, {h}, 1, {d}]
                 %kt = view{{form=\"permute(1, 2, 3, 0)\"}}(%kr): {dtype}[{h}, 1, {d}, {n}]"
            );
            (format!("input %k: {dtype}[{n}, {}]", h * d), turned)
        }
    };
    let scores = format!("%s = contract(%q, %kt): {dtype}[{h}, {g}, {m}, {n}]");
    (format!("{q} {k}"), seen, scores)
}

/// What becomes of scores: a scale, a mask or a bias, and the softmax with its shift or without.
fn weights(rng: &mut Rng, sizes: &RandomAttentionSizes, dtype: &str) -> (String, String) {
    let RandomAttentionSizes { heads: h, group: g, queries: m, keys: n, .. } = *sizes;
    let all = format!("{dtype}[{h}, {g}, {m}, {n}]");
    let one = format!("{dtype}[{h}, {g}, {m}, 1]");
    let cast = |e: &str| if dtype == "f32" { e.to_string() } else { format!("cast.{dtype}({e})") };
    let scored = match rng.index(4) {
        0 => format!("%c = map{{expr=\"{}\"}}(%s): {all}", cast("mul(x0, 0.125)")),
        1 => format!(
            "%own = iota{{shape=\"[{m}, 1]\", axis=0}}(): i32[{m}, 1] %at = iota{{shape=\"[1, {n}]\", axis=1}}(): i32[1, {n}]
             %c = map{{expr=\"{}\"}}(%s, %own, %at): {all}",
            cast("select(le(x2, add(x1, 3i)), mul(x0, 0.25), -inf)")
        ),
        2 => format!(
            "input %bias: f32[{g}, {m}, {n}] %c = map{{expr=\"{}\"}}(%s, %bias): {all}",
            cast("add(mul(x0, 0.5), x1)")
        ),
        _ => format!("%c = map{{expr=\"{}\"}}(%s): {all}", cast("mul(tanh(div(x0, 5.0)), 5.0)")),
    };
    let sum = format!("%z = reduce{{kind=sum, axes=\"[3]\", keep=true}}(%e): {one}");
    let weights = format!("%w = map{{expr=\"{}\"}}(%e, %z): {all}", cast("div(x0, x1)"));
    let softmax = match rng.index(3) {
        0 => format!("%e = map{{expr=\"{}\"}}(%c): {all} {sum} {weights}", cast("exp(x0)")),
        1 if dtype == "f32" => {
            let rows = format!("f32[{}, {n}]", h * g * m);
            format!(
                "%f = view{{form=\"reshape({}, {n})\"}}(%c): {rows} %p = softmax(%f): {rows}
                 %w = view{{form=\"reshape({h}, {g}, {m}, {n})\"}}(%p): {all}",
                h * g * m
            )
        }
        _ => format!(
            "%m = reduce{{kind=max, axes=\"[3]\", keep=true}}(%c): {one}
             %e = map{{expr=\"{}\"}}(%c, %m): {all} {sum} {weights}",
            cast("exp(sub(x0, x1))")
        ),
    };
    (scored, softmax)
}

/// The values, repeated for each head of a group or not, and the product.
fn values(rng: &mut Rng, sizes: &RandomAttentionSizes, dtype: &str) -> (String, String) {
    let RandomAttentionSizes { heads: h, group: g, queries: m, keys: n, values: w, .. } = *sizes;
    let (slot, read) = if rng.one_in(2) {
        (format!("input %v: {dtype}[{h}, 1, {n}, {w}]"), "%v")
    } else {
        let repeated = format!("%vr = view{{form=\"expand({h}, {g}, {n}, {w})\"}}(%v): {dtype}[{h}, {g}, {n}, {w}]");
        (format!("input %v: {dtype}[{h}, 1, {n}, {w}] {repeated}"), "%vr")
    };
    (slot, format!("%o = contract(%w, {read}): {dtype}[{h}, {g}, {m}, {w}]"))
}

/// The result as rows of tokens, or as it is.
fn behind(rng: &mut Rng, sizes: &RandomAttentionSizes, dtype: &str) -> String {
    let RandomAttentionSizes { heads: h, group: g, queries: m, values: w, .. } = *sizes;
    let cast = |e: &str| if dtype == "f32" { e.to_string() } else { format!("cast.f32({e})") };
    if rng.one_in(2) {
        return format!("%y = map{{expr=\"{}\"}}(%o): f32[{h}, {g}, {m}, {w}]", cast("add(x0, 1.0)"));
    }
    let all = h * g * w;
    format!(
        "%t = view{{form=\"permute(2, 0, 1, 3)\"}}(%o): {dtype}[{m}, {h}, {g}, {w}]
         %r = view{{form=\"reshape({m}, {all})\"}}(%t): {dtype}[{m}, {all}]
         %y = map{{expr=\"{}\"}}(%r): f32[{m}, {all}]",
        cast("mul(x0, 2.0)")
    )
}
