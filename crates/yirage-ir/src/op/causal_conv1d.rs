//! `causal_conv1d`: a short convolution of each channel over the latest positions of its sequence, as hybrid models and
//! state space models have it (Gu and Dao, 2023).

use super::case::CaseValues;
use super::recurrent_state::{self, all_case_steps, block_shape, case_blocks, check_steps, step_input, token_states};
use super::{NoGeneralForm, OpCase, OpDef, Role, StateUpdate, Tolerance, arity, f32_rows, vector};
use crate::cost::{Cost, StepSizes};
use crate::dim::Dim;
use crate::dtype::DType;
use crate::graph::Graph;
use crate::op_struct;
use crate::quant::Format;
use crate::tensor::{Data, Tensor};
use crate::types::{Type, TypeError};

op_struct! {
    /// `(state, x f32[Tokens, channels], weight [taps, channels], positions i32[Tokens], seqs i32[Tokens],
    /// table i32[Seqs, Blocks] [, bias [channels]]) -> (f32[Tokens, channels], state)`.
    ///
    /// `y[t, c] = bias[c] + sum_j weight[j, c] * x[c] of position p - taps + 1 + j`, where token t is at position p of its
    /// sequence and x before a sequence's beginning is 0. The products are added to the bias one by one, j ascending.
    ///
    /// The state is f32 `[taps - 1, channels]` a block: x of the latest positions, the oldest first. A token at position p
    /// of sequence `s = seqs[t]` reads it from block `table[s, (p - 1) / n]` and leaves it in block `table[s, p / n]`; at
    /// position 0 it is 0; a block stands for `n = block_positions` positions. Tokens are computed one after the other, those of a sequence in the order of their positions.
    CausalConv1d {
        /// Positions that a block of the state stands for.
        block_positions: u32,
    }
}

impl OpDef for CausalConv1d {
    const NAME: &'static str = "causal_conv1d";
    const ROW_WISE: bool = false;

    fn updates(&self) -> Option<StateUpdate> {
        Some(StateUpdate { input: 0, output: 1 })
    }

    fn infer(&self, ins: &[Type]) -> Result<Vec<Type>, TypeError> {
        arity(ins, 6..=7)?;
        let (columns, width) = block_shape(&ins[0])?;
        let channels = f32_rows(&ins[1], "x")?;
        let taps = match ins[2].shape[..] {
            [Dim::Const(taps), Dim::Const(of)] if of == channels => taps,
            _ => return Err(TypeError::new(format!("weight is {}, [taps, {channels}] wanted", ins[2]))),
        };
        if width != channels || columns.checked_add(1) != Some(taps) {
            return Err(TypeError::new(format!("state is {} for {taps} taps of {channels} channels", ins[0])));
        }
        check_steps(&ins[3..6], &ins[1], self.block_positions)?;
        if let Some(bias) = ins.get(6) {
            vector(bias, channels, "bias")?;
        }
        Ok(vec![Type::rows(ins[1].shape[0], channels), ins[0].clone()])
    }

    fn eval(&self, ins: &[&Tensor]) -> Vec<Tensor> {
        let (mut state, x, weight) = (ins[0].clone(), ins[1], ins[2]);
        let (channels, taps) = (x.width(), weight.rows());
        let weight: Vec<Vec<f64>> = (0..taps).map(|j| weight.row_f64(j)).collect();
        let bias = ins.get(6).map_or_else(|| vec![0.0; channels], |bias| bias.row_f64(0));
        let size = (taps - 1) * channels;
        let Data::F32(blocks) = &mut state.data else { panic!("a state holds floats") };
        let mut out = Vec::with_capacity(x.floats().len());
        for (t, token) in token_states([ins[3], ins[4], ins[5]], self.block_positions).enumerate() {
            let mut seen = token.read(blocks, size);
            seen.extend(x.row_f64(t));
            let sum = |c: usize| (0..taps).fold(bias[c], |sum, j| sum + weight[j][c] * seen[j * channels + c]);
            out.extend((0..channels).map(|c| sum(c) as f32));
            token.write(blocks, &seen[channels..]);
        }
        vec![Tensor::f32(x.shape.clone(), out), state]
    }

    /// A row depends on the rows of all earlier positions.
    fn whole(&self, _: usize, _: &Type) -> bool {
        true
    }

    fn role(&self, input: usize, like: &Tensor) -> Role {
        match input {
            0 => Role::KvCache,
            2 | 6 => Role::Weight,
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
        let mut rng = CaseValues::new(31);
        let mut cases = Vec::new();
        for (taps, channels, bias) in [(3, 64, false), (4, 24, true), (2, 5, true), (3, 1, false)] {
            for (steps, given) in all_case_steps() {
                let format = if bias { Format::BF16 } else { Format::F32 };
                let (tokens, blocks) = (given[0].ints().len(), case_blocks(&given[2]));
                let mut ins = vec![
                    rng.floats([blocks, taps - 1, channels]),
                    rng.floats([tokens, channels]),
                    rng.weight(format, [taps, channels]),
                ];
                ins.extend(given);
                if bias {
                    ins.push(rng.floats([channels]));
                }
                let name = format!("{taps} taps of {channels}, {steps}");
                cases.push(OpCase::new(
                    name,
                    CausalConv1d { block_positions: 32 },
                    ins,
                    Tolerance::Close { abs: 1e-6, rel: 1e-6 },
                ));
            }
        }
        cases
    }
}
