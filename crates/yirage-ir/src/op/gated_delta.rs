//! `gated_delta`: linear attention by the gated delta rule (Yang et al., 2024).

use super::case::CaseValues;
use super::recurrent_state::{self, all_case_steps, block_shape, case_blocks, check_steps, step_input, token_states};
use super::{NoGeneralForm, OpCase, OpDef, Role, StateUpdate, Tolerance, arity, f32_rows, times};
use crate::cost::{Cost, StepSizes};
use crate::dtype::DType;
use crate::graph::Graph;
use crate::op_struct;
use crate::tensor::{Data, Tensor};
use crate::types::{Type, TypeError};

op_struct! {
    /// `(state, q f32[Tokens, key_heads*n], k f32[Tokens, key_heads*n], v f32[Tokens, channels], decay f32[Tokens, heads],
    /// beta f32[Tokens, heads], positions i32[Tokens], seqs i32[Tokens], table i32[Seqs, Blocks]) ->
    /// (f32[Tokens, channels], state)`.
    ///
    /// Channel i is of head `h = i / (channels / heads)`, which reads key head `g = h / (heads / key_heads)`. For each token
    /// the state decays, `s[j, i] = decay[h] * s[j, i]`; what it says of the key is corrected by
    /// `d[i] = (v[i] - sum_j s[j, i] * k[g, j]) * beta[h]`, `s[j, i] = s[j, i] + k[g, j] * d[i]`; and
    /// `y[i] = sum_j s[j, i] * q[g, j]`. Products are added one by one, j ascending.
    ///
    /// The state is f32 `[n, channels]` a block. A token at position p of sequence `s = seqs[t]` reads it from block
    /// `table[s, (p - 1) / b]` and leaves it in block `table[s, p / b]`; at position 0 it is 0; `b` is `block_positions`. Tokens are computed one
    /// after the other, those of a sequence in the order of their positions.
    GatedDelta {
        /// Heads of values.
        heads: u32,
        /// Heads of queries and keys.
        key_heads: u32,
        /// Positions that a block of the state stands for.
        block_positions: u32,
    }
}

impl OpDef for GatedDelta {
    const NAME: &'static str = "gated_delta";
    const ROW_WISE: bool = false;

    fn updates(&self) -> Option<StateUpdate> {
        Some(StateUpdate { input: 0, output: 1 })
    }

    fn infer(&self, ins: &[Type]) -> Result<Vec<Type>, TypeError> {
        arity(ins, 9..=9)?;
        let (n, width) = block_shape(&ins[0])?;
        let channels = f32_rows(&ins[3], "v")?;
        let whole = |parts: u32, of: u32| parts > 0 && of.is_multiple_of(parts);
        if width != channels || !whole(self.heads, channels) || !whole(self.key_heads, self.heads) {
            return Err(TypeError::new(format!("v is {}, state is {} for {self:?}", ins[3], ins[0])));
        }
        let keys = times(self.key_heads, n, "keys of all heads")?;
        for (at, what, want) in [(1, "q", keys), (2, "k", keys), (4, "decay", self.heads), (5, "beta", self.heads)] {
            let got = f32_rows(&ins[at], what)?;
            if got != want || ins[at].shape[0] != ins[3].shape[0] {
                return Err(TypeError::new(format!("{what} is {}, {want} elements for each row of v wanted", ins[at])));
            }
        }
        check_steps(&ins[6..9], &ins[3], self.block_positions)?;
        Ok(vec![Type::rows(ins[3].shape[0], channels), ins[0].clone()])
    }

    fn eval(&self, ins: &[&Tensor]) -> Vec<Tensor> {
        let (mut state, channels) = (ins[0].clone(), ins[3].width());
        let (n, heads, key_heads) = (state.shape[1], self.heads as usize, self.key_heads as usize);
        let Data::F32(blocks) = &mut state.data else { panic!("a state holds floats") };
        let mut out = Vec::with_capacity(ins[3].floats().len());
        for (t, token) in token_states([ins[6], ins[7], ins[8]], self.block_positions).enumerate() {
            let mut s = token.read(blocks, n * channels);
            let [q, k, v, decay, beta] = [1, 2, 3, 4, 5].map(|at| ins[at].row_f64(t));
            for i in 0..channels {
                let h = i / (channels / heads);
                let first = h / (heads / key_heads) * n;
                (0..n).for_each(|j| s[j * channels + i] *= decay[h]);
                let said: f64 = (0..n).map(|j| s[j * channels + i] * k[first + j]).sum();
                let correction = (v[i] - said) * beta[h];
                (0..n).for_each(|j| s[j * channels + i] += k[first + j] * correction);
                out.push((0..n).map(|j| s[j * channels + i] * q[first + j]).sum::<f64>() as f32);
            }
            token.write(blocks, &s);
        }
        vec![Tensor::f32(ins[3].shape.clone(), out), state]
    }

    /// A row depends on the rows of all earlier positions.
    fn whole(&self, _: usize, _: &Type) -> bool {
        true
    }

    fn role(&self, input: usize, like: &Tensor) -> Role {
        match input {
            0 => Role::KvCache,
            _ if like.dtype == DType::I32 => step_input(like),
            _ => Role::Activation,
        }
    }

    fn lower(&self, _: &[Type]) -> Result<Graph, NoGeneralForm> {
        Err(NoGeneralForm::Beyond("a recurrent state is changed in place, it is not a value"))
    }

    fn work(&self, ins: &[Type], step: &StepSizes<'_>) -> Cost {
        recurrent_state::work(ins, step, self.block_positions)
    }

    fn cases() -> Vec<OpCase> {
        let mut rng = CaseValues::new(33);
        let mut cases = Vec::new();
        for (heads, key_heads, head, n) in [(4, 2, 8, 16), (2, 1, 20, 5), (3, 3, 1, 1)] {
            for (steps, given) in all_case_steps() {
                let (tokens, blocks, channels) = (given[0].ints().len(), case_blocks(&given[2]), heads * head);
                // Keys of models have length 1; longer ones would make the state grow without bound.
                let most = 1.0 / (n as f32).sqrt();
                let mut ins = vec![
                    rng.floats([blocks, n, channels]),
                    rng.floats_between([tokens, key_heads * n], -1.0, 1.0),
                    rng.floats_between([tokens, key_heads * n], -most, most),
                    rng.floats([tokens, channels]),
                    rng.floats_between([tokens, heads], 0.0, 1.0),
                    rng.floats_between([tokens, heads], 0.0, 1.0),
                ];
                ins.extend(given);
                let op = GatedDelta { heads: heads as u32, key_heads: key_heads as u32, block_positions: 32 };
                let name = format!("{heads} heads of {head}, keys of {n}, {steps}");
                cases.push(OpCase::new(name, op, ins, Tolerance::Close { abs: 1e-5, rel: 1e-5 }));
            }
        }
        cases
    }
}
