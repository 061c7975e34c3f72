//! `kv_append`: keys and values into the paged cache.

use super::case::Rng;
use super::{BLOCK, Case, OpDef, Role, Tolerance, arity, f32_rows, per_row};
use crate::dim::{Dim, Sym};
use crate::dtype::DType;
use crate::op_struct;
use crate::quant::Format;
use crate::tensor::{Data, Tensor, round_to};
use crate::types::{Type, TypeError};

op_struct! {
    /// `(state, k f32[Tokens, kv_heads*k_width], v f32[Tokens, kv_heads*v_width], slots i32[Tokens]) -> state`.
    ///
    /// The state is `[32, kv_heads, k_width + v_width]` a block, f32, f16 or bf16; token t goes to block
    /// `slots[t] / 32`, position `slots[t] % 32`, rounded to nearest even. A latent cache takes no `v`: its state is
    /// `[32, kv_heads, k_width]`. The state is updated in place; the result names it after the update.
    KvAppend {
        /// Heads of keys and values.
        kv_heads: u32,
    }
}

/// The checked shape of a cache state: `(kv_heads, width)`.
pub(super) fn state_shape(ty: &Type) -> Result<(u32, u32), TypeError> {
    let float = matches!(ty.dtype, DType::Stored(Format::F32 | Format::F16 | Format::BF16));
    match (float, &ty.shape[..]) {
        (true, [Dim::Const(b), Dim::Const(h), Dim::Const(w)]) if *b as usize == BLOCK => Ok((*h, *w)),
        _ => Err(TypeError::new(format!("state is {ty}, a float [{BLOCK}, kv_heads, width] wanted"))),
    }
}

impl OpDef for KvAppend {
    const NAME: &'static str = "kv_append";
    const ROW_WISE: bool = true;

    fn infer(&self, ins: &[Type]) -> Result<Vec<Type>, TypeError> {
        arity(ins, 3..=4)?;
        let (heads, width) = state_shape(&ins[0])?;
        let mut given = f32_rows(&ins[1], "k")?;
        if ins.len() == 4 {
            given += f32_rows(&ins[2], "v")?;
        }
        if heads != self.kv_heads || given != heads * width {
            return Err(TypeError::new(format!(
                "{given} elements a token for {} heads do not fill a state of {}",
                self.kv_heads, ins[0]
            )));
        }
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
                cell.iter_mut().zip(parts).for_each(|(c, x)| *c = round_to(dtype, *x));
            }
        }
        vec![state]
    }

    fn role(&self, input: usize, like: &Tensor) -> Role {
        match input {
            0 => Role::State,
            _ if like.dtype == DType::I32 => Role::Slot(&[Sym::Tokens]),
            _ => Role::Activation,
        }
    }

    fn cases() -> Vec<Case> {
        let mut rng = Rng(13);
        let mut cases = Vec::new();
        for format in [Format::F32, Format::F16, Format::BF16] {
            for (heads, k, v) in [(2, 16, 16), (1, 24, 8), (3, 5, 7)] {
                let state = rng.state(format, [3, BLOCK, heads, k + v]);
                let slots = Tensor::i32([4], vec![0, 33, 95, 1]);
                let ins = vec![state, rng.floats([4, heads * k]), rng.floats([4, heads * v]), slots];
                let name = format!("{} {heads}x({k}+{v})", format.info().name);
                cases.push(Case::new(name, KvAppend { kv_heads: heads as u32 }, ins, Tolerance::Exact));
            }
            let (state, x) = (rng.state(format, [2, BLOCK, 1, 20]), rng.floats([2, 20]));
            let ins = vec![state, x, Tensor::i32([2], vec![40, 7])];
            cases.push(Case::new(
                format!("{} latent", format.info().name),
                KvAppend { kv_heads: 1 },
                ins,
                Tolerance::Exact,
            ));
        }
        cases
    }
}
