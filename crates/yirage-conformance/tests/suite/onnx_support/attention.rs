//! Attention over the paged cache: keys and values are appended to it, a sequence of the batch in a block of its own, and
//! each query sees the positions up to one that says what ONNX's flags say.

use super::case::{Array, OnnxCase};
use super::import::Import;
use yirage_conformance::KvCacheSetup;
use yirage_hal::Record;
use yirage_ir::op::{Attention, KvAppend};
use yirage_ir::{BuildError, DType, F32, Sym, Tensor, Type, ValueId};

/// Positions of a block of the cache.
const BLOCK: usize = 32;

/// Sizes of a case.
struct Sizes {
    batch: usize,
    queries: usize,
    past: usize,
    new: usize,
    heads: usize,
    kv_heads: usize,
    k_width: usize,
    v_width: usize,
}

impl Sizes {
    fn of(case: &OnnxCase) -> Sizes {
        let (q, k, v) = (&case.input("Q").shape, &case.input("K").shape, &case.input("V").shape);
        let past = case.opt_input("past_key").map_or(0, |p| p.shape[2]);
        if q.len() == 4 {
            let (batch, heads, queries) = (q[0], q[1], q[2]);
            return Sizes { batch, queries, past, new: k[2], heads, kv_heads: k[1], k_width: k[3], v_width: v[3] };
        }
        let (heads, kv_heads) = (case.attr("q_num_heads", 0), case.attr("kv_num_heads", 0));
        let (k_width, v_width) = (k[2] / kv_heads, v[2] / kv_heads);
        Sizes { batch: q[0], queries: q[1], past, new: k[1], heads, kv_heads, k_width, v_width }
    }

    fn keys(&self) -> usize {
        self.past + self.new
    }
}

/// Rows a position of each sequence, heads side by side.
fn rows(a: &Array) -> Vec<f32> {
    if a.shape.len() == 4 { a.permuted(&[0, 2, 1, 3]).floats() } else { a.floats() }
}

pub(crate) fn attention(case: &OnnxCase, import: &mut Import) -> Result<(), BuildError> {
    let s = Sizes::of(case);
    assert!(s.keys() <= BLOCK, "{}: one block a sequence", case.name);
    let nonpad = case.opt_input("nonpad_kv_seqlen").map(Array::ints);
    let causal = case.attr("is_causal", 0) == 1;
    let left = case.attr("left_window_size", -1i32);
    assert!(case.attr("right_window_size", -1i32) < 0 && (left < 0 || causal), "{}: windows to the left", case.name);
    let op = Attention {
        heads: s.heads as u32,
        kv_heads: s.kv_heads as u32,
        k_width: s.k_width as u32,
        v_width: s.v_width as u32,
        scale: F32(if case.has_attr("scale") { case.attr("scale", 0.0) } else { 1.0 / (s.k_width as f32).sqrt() }),
        softcap: F32(case.attr("softcap", 0.0)),
        window: (left + 1) as u32,
        causal: true,
        cached: true,
        v_in_k: false,
    };
    let (keys, values) = (rows(case.input("K")), rows(case.input("V")));
    let state = append(case, import, &s, "state", &keys, Some(&values))?;
    let last_seen = |b: usize, i: usize| {
        let known = nonpad.as_ref().map_or(s.keys() as i32, |n| n[b]);
        let first = nonpad.as_ref().map_or(s.past as i32, |n| n[b] - s.queries as i32);
        if causal { first + i as i32 } else { known - 1 }
    };
    let queries: Vec<(usize, usize)> = (0..s.batch).flat_map(|b| (0..s.queries).map(move |i| (b, i))).collect();
    let q = import.activation("q", s.heads * s.k_width, rows(case.input("Q")))?;
    let at = import.ints("positions", queries.iter().map(|&(b, i)| last_seen(b, i)).collect())?;
    let seqs = import.ints("seqs", queries.iter().map(|&(b, _)| b as i32).collect())?;
    import.dims.seqs = s.batch as u32;
    import.step_inputs.insert("table".into(), Record::of(&(0..s.batch as i32).collect::<Vec<_>>()));
    let table = import.builder.step_input("table", Type::new(DType::I32, [Sym::Seqs, Sym::Blocks]))?;
    let y = import.builder.op("y", op.clone(), &[q, state, at, seqs, table])?;
    import.want(y, rows(&case.outs[0]));
    if let [_, present_key, present_value] = &case.outs[..] {
        // A token that sees itself alone gets its own value: that is how a cache is read. Keys lie in a second cache,
        // where they are their own values.
        let alone = Attention { heads: op.kv_heads, window: 1, ..op.clone() };
        read(import, &s, "value", alone.clone(), state, table, rows(present_value))?;
        let latent = append(case, import, &s, "latent", &keys, None)?;
        let alone = Attention { v_width: op.k_width, v_in_k: true, ..alone };
        read(import, &s, "key", alone, latent, table, rows(present_key))?;
    }
    Ok(())
}

/// The cache with the past in it, after the new keys (and values) were appended.
fn append(
    case: &OnnxCase,
    import: &mut Import,
    s: &Sizes,
    name: &str,
    keys: &[f32],
    values: Option<&[f32]>,
) -> Result<ValueId, BuildError> {
    let v_width = if values.is_some() { s.v_width } else { 0 };
    let width = s.k_width + v_width;
    let mut cells = vec![0.0; s.batch * BLOCK * s.kv_heads * width];
    let parts = [("past_key", 0, s.k_width), ("past_value", s.k_width, v_width)];
    for (past, from, size) in parts.into_iter().filter(|p| p.2 > 0) {
        let Some(past) = case.opt_input(past) else { continue };
        for (i, head) in past.permuted(&[0, 2, 1, 3]).floats().chunks(size).enumerate() {
            let (b, in_past) = (i / (s.past * s.kv_heads), i % (s.past * s.kv_heads));
            cells[(b * BLOCK * s.kv_heads + in_past) * width + from..][..size].copy_from_slice(head);
        }
    }
    let cells = Tensor::f32([s.batch, BLOCK, s.kv_heads, width], cells);
    import.kv_caches.push(KvCacheSetup { name: name.into(), values: cells, k_width: s.k_width as u32 });
    let block = [BLOCK as u32, s.kv_heads as u32, width as u32];
    let mut ins = vec![import.builder.kv_cache(name, Type::new(DType::F32, block))?];
    ins.push(import.activation(&format!("{name}.k"), s.kv_heads * s.k_width, keys.to_vec())?);
    if let Some(values) = values {
        ins.push(import.activation(&format!("{name}.v"), s.kv_heads * s.v_width, values.to_vec())?);
    }
    let slot = |i: usize| (i / s.new * BLOCK + s.past + i % s.new) as i32;
    ins.push(import.ints(&format!("{name}.slots"), (0..s.batch * s.new).map(slot).collect())?);
    import.builder.op(&format!("{name}.filled"), KvAppend { kv_heads: s.kv_heads as u32 }, &ins)
}

/// Every position of every sequence, read back.
fn read(
    import: &mut Import,
    s: &Sizes,
    name: &str,
    op: Attention,
    state: ValueId,
    table: ValueId,
    wanted: Vec<f32>,
) -> Result<(), BuildError> {
    let cells = s.batch * s.keys();
    let q =
        import.activation(&format!("{name}.q"), s.kv_heads * s.k_width, vec![1.0; cells * s.kv_heads * s.k_width])?;
    let at = import.ints(&format!("{name}.positions"), (0..cells).map(|i| (i % s.keys()) as i32).collect())?;
    let seqs = import.ints(&format!("{name}.seqs"), (0..cells).map(|i| (i / s.keys()) as i32).collect())?;
    let y = import.builder.op(&format!("present.{name}"), op, &[q, state, at, seqs, table])?;
    import.want(y, wanted);
    Ok(())
}
