//! `kv_append`: keys and values into the paged cache.

use super::case::CaseValues;
use super::{NoGeneralForm, OpCase, OpDef, Role, StateUpdate, Tolerance, arity, f32_rows, per_row, plus, times};
use crate::cost::{Cost, StepSizes};
use crate::dim::{Dim, Sym};
use crate::dtype::DType;
use crate::graph::Graph;
use crate::op_struct;
use crate::quant::Format;
use crate::tensor::{Data, Tensor, round_to};
use crate::types::{Type, TypeError};

op_struct! {
    /// `(state, k f32[Tokens, kv_heads*k_width], v f32[Tokens, kv_heads*v_width], slots i32[Tokens]) -> state`.
    ///
    /// The state is `[n, kv_heads, k_width + v_width]` a block of n positions, f32, f16, bf16 or q8_0; token t goes to block
    /// `slots[t] / n`, position `slots[t] % n`, rounded to nearest even or, in q8_0, encoded as that format is: each
    /// head's key and its value in blocks of 32 elements, which their widths must be multiples of. A latent cache takes
    /// no `v`: its state is `[n, kv_heads, k_width]`. The state is updated in place; the result names it after the
    /// update.
    KvAppend {
        /// Heads of keys and values.
        kv_heads: u32,
    }
}

/// Positions of blocks that cases have beside 32.
pub(super) const OTHER_LENGTHS: [usize; 2] = [16, 64];

/// The checked shape of a cache state: `(kv_heads, width)`. How many positions a block has is the type's own fact.
pub(super) fn kv_cache_shape(ty: &Type) -> Result<(u32, u32), TypeError> {
    let kept = matches!(ty.dtype, DType::Stored(Format::F32 | Format::F16 | Format::BF16 | Format::Q8_0));
    match (kept, &ty.shape[..]) {
        (true, [Dim::Const(positions), Dim::Const(h), Dim::Const(w)]) if *positions > 0 => Ok((*h, *w)),
        _ => {
            Err(TypeError::new(format!("state is {ty}, [positions, kv_heads, width] of f32, f16, bf16 or q8_0 wanted")))
        }
    }
}

/// Whether a part of a head (its key, its value) of `width` elements is whole blocks of the state's format.
pub(super) fn whole_blocks(state: &Type, part: &str, width: u32) -> Result<(), TypeError> {
    match state.dtype {
        DType::Stored(f) if !(width as usize).is_multiple_of(f.info().block) => {
            let (name, block) = (f.info().name, f.info().block);
            Err(TypeError::new(format!("{part} of {width} elements a head is not whole blocks of {block} of {name}")))
        }
        _ => Ok(()),
    }
}

impl OpDef for KvAppend {
    const NAME: &'static str = "kv_append";
    const ROW_WISE: bool = true;

    fn activations(&self) -> &'static [usize] {
        &[1, 2]
    }

    fn updates(&self) -> Option<StateUpdate> {
        Some(StateUpdate { input: 0, output: 0 })
    }

    /// The cache has its own type.
    fn keeps_f32(&self) -> bool {
        true
    }

    fn infer(&self, ins: &[Type]) -> Result<Vec<Type>, TypeError> {
        arity(ins, 3..=4)?;
        let (heads, width) = kv_cache_shape(&ins[0])?;
        let mut given = f32_rows(&ins[1], "k")?;
        if ins.len() == 4 {
            given = plus(given, f32_rows(&ins[2], "v")?, "k and v")?;
        }
        if heads != self.kv_heads || given != times(heads, width, "a state's position")? {
            return Err(TypeError::new(format!(
                "{given} elements a token for {} heads do not fill a state of {}",
                self.kv_heads, ins[0]
            )));
        }
        whole_blocks(&ins[0], "a key", f32_rows(&ins[1], "k")? / heads.max(1))?;
        whole_blocks(&ins[0], "key and value", width)?;
        per_row(&ins[ins.len() - 1], &ins[1], "slots")?;
        Ok(vec![ins[0].clone()])
    }

    fn eval(&self, ins: &[&Tensor]) -> Vec<Tensor> {
        let (mut state, slots, heads) = (ins[0].clone(), ins[ins.len() - 1].ints(), self.kv_heads as usize);
        let (width, dtype) = (state.width(), state.dtype);
        let Data::F32(cells) = &mut state.data else { panic!("a state holds floats") };
        for (t, &slot) in slots.iter().enumerate() {
            for h in 0..heads {
                let cell = &mut cells[(slot as usize * heads + h) * width..][..width];
                let parts = ins[1..ins.len() - 1].iter().flat_map(|x| {
                    let w = x.width() / heads;
                    x.floats()[(t * heads + h) * w..][..w].iter()
                });
                cell.iter_mut().zip(parts).for_each(|(c, x)| *c = *x);
                round_to(dtype, cell);
            }
        }
        vec![state]
    }

    fn whole(&self, input: usize, _: &Type) -> bool {
        input == 0
    }

    fn role(&self, input: usize, like: &Tensor) -> Role {
        match input {
            0 => Role::KvCache,
            _ if like.dtype == DType::I32 => Role::StepInput(&[Sym::Tokens]),
            _ => Role::Activation,
        }
    }

    fn lower(&self, _: &[Type]) -> Result<Graph, NoGeneralForm> {
        Err(NoGeneralForm::Beyond("a cache is a state that is changed in place, not a value"))
    }

    fn work(&self, _: &[Type], _: &StepSizes<'_>) -> Cost {
        // Appending reads nothing that is kept.
        Cost::reading(0, 0)
    }

    fn cases() -> Vec<OpCase> {
        let mut rng = CaseValues::new(13);
        let mut cases = Vec::new();
        for format in [Format::F32, Format::F16, Format::BF16] {
            for (heads, k, v) in [(2, 16, 16), (1, 24, 8), (3, 5, 7)] {
                let state = rng.kv_cache(format, [3, 32, heads, k + v]);
                let slots = Tensor::i32([4], vec![0, 33, 95, 1]);
                let ins = vec![state, rng.floats([4, heads * k]), rng.floats([4, heads * v]), slots];
                let name = format!("{} {heads}x({k}+{v})", format.info().name);
                cases.push(OpCase::new(name, KvAppend { kv_heads: heads as u32 }, ins, Tolerance::Exact));
            }
            let (state, x) = (rng.kv_cache(format, [2, 32, 1, 20]), rng.floats([2, 20]));
            let ins = vec![state, x, Tensor::i32([2], vec![40, 7])];
            cases.push(OpCase::new(
                format!("{} latent", format.info().name),
                KvAppend { kv_heads: 1 },
                ins,
                Tolerance::Exact,
            ));
        }
        cases.extend(block_cases(&mut rng));
        cases.extend(length_cases(&mut rng));
        cases
    }
}

/// States of Q8_0: whole blocks a key and a value, with zeros, ties between codes, and blocks of one large element.
fn block_cases(rng: &mut CaseValues) -> Vec<OpCase> {
    let mut cases = Vec::new();
    for (heads, k, v) in [(2, 32, 32), (1, 64, 32), (3, 32, 96)] {
        let state = rng.kv_cache(Format::Q8_0, [3, 32, heads, k + v]);
        let slots = Tensor::i32([4], vec![0, 33, 95, 1]);
        let ins = vec![state, spiky(rng, [4, heads * k]), spiky(rng, [4, heads * v]), slots];
        let op = KvAppend { kv_heads: heads as u32 };
        cases.push(OpCase::new(format!("q8_0 {heads}x({k}+{v})"), op, ins, Tolerance::Exact));
    }
    let (state, x) = (rng.kv_cache(Format::Q8_0, [2, 32, 1, 96]), spiky(rng, [2, 96]));
    let ins = vec![state, x, Tensor::i32([2], vec![40, 7])];
    cases.push(OpCase::new("q8_0 latent", KvAppend { kv_heads: 1 }, ins, Tolerance::Exact));
    cases
}

/// Blocks of other lengths, those of Q8_0 too.
fn length_cases(rng: &mut CaseValues) -> Vec<OpCase> {
    let mut cases = Vec::new();
    for positions in OTHER_LENGTHS {
        for (format, heads, k, v) in [(Format::F32, 2, 5, 7), (Format::F16, 2, 16, 16), (Format::Q8_0, 2, 32, 64)] {
            let last = (3 * positions - 1) as i32;
            let ins = vec![
                rng.kv_cache(format, [3, positions, heads, k + v]),
                rng.floats([4, heads * k]),
                rng.floats([4, heads * v]),
                Tensor::i32([4], vec![0, positions as i32 + 1, last, 1]),
            ];
            let name = format!("{} {heads}x({k}+{v}), blocks of {positions}", format.info().name);
            cases.push(OpCase::new(name, KvAppend { kv_heads: heads as u32 }, ins, Tolerance::Exact));
        }
    }
    cases
}

/// Rows that begin with a block of exact halves of a code's step; the last of several blocks is 0 but for one element.
fn spiky(rng: &mut CaseValues, shape: [usize; 2]) -> Tensor {
    let mut t = rng.floats(shape);
    if let Data::F32(x) = &mut t.data {
        for row in x.chunks_exact_mut(shape[1]) {
            row[..32].iter_mut().enumerate().for_each(|(i, x)| *x = (i as f32 - 15.5) / 128.0);
            row[7] = 127.0 / 128.0;
            if shape[1] > 32 {
                row[shape[1] - 32..].fill(0.0);
                row[shape[1] - 9] = -30.0;
            }
        }
    }
    t
}
