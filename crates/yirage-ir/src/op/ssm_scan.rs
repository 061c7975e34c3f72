//! `ssm_scan`: a selective state space model of which each head has one decay (Mamba-2: Dao and Gu, 2024).

use super::case::CaseValues;
use super::recurrent_state::{self, all_case_steps, block_shape, case_blocks, check_steps, step_input, token_states};
use super::{NoGeneralForm, OpCase, OpDef, Role, StateUpdate, Tolerance, arity, f32_rows, times, vector};
use crate::cost::{Cost, StepSizes};
use crate::dtype::DType;
use crate::graph::Graph;
use crate::op_struct;
use crate::tensor::{Data, Tensor};
use crate::types::{Type, TypeError};

op_struct! {
    /// `(state, x f32[Tokens, channels], dt f32[Tokens, heads], decay f32[Tokens, heads], b f32[Tokens, groups*n],
    /// c f32[Tokens, groups*n], positions i32[Tokens], seqs i32[Tokens], table i32[Seqs, Blocks] [, skip [heads]]) ->
    /// (f32[Tokens, channels], state)`.
    ///
    /// Channel i is of head `h = i / (channels / heads)`, and that of group `g = h / (heads / groups)`. For each token
    /// `s[j, i] = decay[h] * s[j, i] + (dt[h] * x[i]) * b[g, j]`, and `y[i] = sum_j c[g, j] * s[j, i] + skip[h] * x[i]`,
    /// the products added one by one, j ascending, that of `skip` last.
    ///
    /// The state is f32 `[n, channels]` a block. A token at position p of sequence `s = seqs[t]` reads it from block
    /// `table[s, (p - 1) / b]` and leaves it in block `table[s, p / b]`; at position 0 it is 0; `b` is `block_positions`. Tokens are computed one
    /// after the other, those of a sequence in the order of their positions.
    SsmScan {
        /// Heads: channels that decay alike.
        heads: u32,
        /// Groups of heads that share `b` and `c`.
        groups: u32,
        /// Positions that a block of the state stands for.
        block_positions: u32,
    }
}

impl OpDef for SsmScan {
    const NAME: &'static str = "ssm_scan";
    const ROW_WISE: bool = false;

    fn updates(&self) -> Option<StateUpdate> {
        Some(StateUpdate { input: 0, output: 1 })
    }

    fn infer(&self, ins: &[Type]) -> Result<Vec<Type>, TypeError> {
        arity(ins, 9..=10)?;
        let (n, width) = block_shape(&ins[0])?;
        let channels = f32_rows(&ins[1], "x")?;
        let whole = |parts: u32, of: u32| parts > 0 && of.is_multiple_of(parts);
        if width != channels || !whole(self.heads, channels) || !whole(self.groups, self.heads) {
            return Err(TypeError::new(format!("x is {}, state is {} for {self:?}", ins[1], ins[0])));
        }
        let of_group = times(self.groups, n, "b and c of all groups")?;
        for (at, what, want) in
            [(2, "dt", self.heads), (3, "decay", self.heads), (4, "b", of_group), (5, "c", of_group)]
        {
            let got = f32_rows(&ins[at], what)?;
            if got != want || ins[at].shape[0] != ins[1].shape[0] {
                return Err(TypeError::new(format!("{what} is {}, {want} elements for each row of x wanted", ins[at])));
            }
        }
        check_steps(&ins[6..9], &ins[1], self.block_positions)?;
        if let Some(skip) = ins.get(9) {
            vector(skip, self.heads, "skip")?;
        }
        Ok(vec![Type::rows(ins[1].shape[0], channels), ins[0].clone()])
    }

    fn eval(&self, ins: &[&Tensor]) -> Vec<Tensor> {
        let (mut state, channels) = (ins[0].clone(), ins[1].width());
        let (n, heads, groups) = (state.shape[1], self.heads as usize, self.groups as usize);
        let skip = ins.get(9).map(|skip| skip.row_f64(0));
        let Data::F32(blocks) = &mut state.data else { panic!("a state holds floats") };
        let mut out = Vec::with_capacity(ins[1].floats().len());
        for (t, token) in token_states([ins[6], ins[7], ins[8]], self.block_positions).enumerate() {
            let mut s = token.read(blocks, n * channels);
            let [x, dt, decay, b, c] = [1, 2, 3, 4, 5].map(|at| ins[at].row_f64(t));
            for i in 0..channels {
                let h = i / (channels / heads);
                let first = h / (heads / groups) * n;
                let mut y = 0.0;
                for j in 0..n {
                    let kept = &mut s[j * channels + i];
                    *kept = decay[h] * *kept + dt[h] * x[i] * b[first + j];
                    y += c[first + j] * *kept;
                }
                out.push((y + skip.as_ref().map_or(0.0, |skip| skip[h] * x[i])) as f32);
            }
            token.write(blocks, &s);
        }
        vec![Tensor::f32(ins[1].shape.clone(), out), state]
    }

    /// A row depends on the rows of all earlier positions.
    fn whole(&self, _: usize, _: &Type) -> bool {
        true
    }

    fn role(&self, input: usize, like: &Tensor) -> Role {
        match input {
            0 => Role::KvCache,
            9 => Role::Weight,
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
        let mut rng = CaseValues::new(32);
        let mut cases = Vec::new();
        for (heads, groups, head, n, with_skip) in [(4, 2, 8, 16, true), (2, 1, 20, 5, false), (3, 3, 1, 1, true)] {
            for (steps, given) in all_case_steps() {
                let (tokens, blocks, channels) = (given[0].ints().len(), case_blocks(&given[2]), heads * head);
                let mut ins = vec![
                    rng.floats([blocks, n, channels]),
                    rng.floats([tokens, channels]),
                    rng.floats_between([tokens, heads], 0.0, 1.0),
                    rng.floats_between([tokens, heads], 0.0, 1.0),
                    rng.floats([tokens, groups * n]),
                    rng.floats([tokens, groups * n]),
                ];
                ins.extend(given);
                if with_skip {
                    ins.push(rng.floats([heads]));
                }
                let op = SsmScan { heads: heads as u32, groups: groups as u32, block_positions: 32 };
                let name = format!("{heads} heads of {head}, state of {n}, {steps}");
                cases.push(OpCase::new(name, op, ins, Tolerance::Close { abs: 1e-5, rel: 1e-5 }));
            }
        }
        cases
    }
}
