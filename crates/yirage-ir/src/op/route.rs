//! `route`: the choice of experts.

use super::case::CaseValues;
use super::{NoGeneralForm, OpCase, OpDef, Role, Tolerance, arity, f32_rows, times, vector};
use crate::attr::F32;
use crate::attr_enum;
use crate::dtype::DType;
use crate::graph::Graph;
use crate::op_struct;
use crate::tensor::{Data, Tensor};
use crate::types::{Type, TypeError};

attr_enum! {
    /// How logits become scores.
    Scoring {
        /// Softmax over all experts, then the choice (qwen3moe, mixtral).
        Softmax = "softmax",
        /// The choice by logit, then softmax over the chosen (gpt-oss).
        SoftmaxTopK = "softmax_top_k",
        /// Sigmoid of each logit (deepseek-v3).
        Sigmoid = "sigmoid",
    }
}

op_struct! {
    /// `(logits f32[Tokens, experts] [, bias [experts]]) -> (weights f32[Tokens, top_k], experts i32[Tokens, top_k])`
    /// in rank order; of equal scores the lower expert wins.
    ///
    /// The bias takes part in the choice only. With groups, the experts are split evenly, a group's score is the sum
    /// of its two best, and only experts of the `top_groups` best groups can be chosen (DeepSeek-V3, 2024).
    Route {
        /// Experts a token meets.
        top_k: u32,
        /// How logits become scores.
        scoring: Scoring,
        /// Whether the chosen weights are divided by their sum.
        normalize: bool,
        /// Factor of the weights, after normalisation.
        scale: F32,
        /// Groups of experts; 1 is none.
        groups: u32,
        /// Groups that may be chosen from.
        top_groups: u32,
    }
}

impl Route {
    fn scores(&self, logits: &[f64]) -> Vec<f64> {
        match self.scoring {
            Scoring::SoftmaxTopK => logits.to_vec(),
            Scoring::Sigmoid => logits.iter().map(|x| 1.0 / (1.0 + (-x).exp())).collect(),
            Scoring::Softmax => {
                let max = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                let sum: f64 = logits.iter().map(|x| (x - max).exp()).sum();
                logits.iter().map(|x| (x - max).exp() / sum).collect()
            }
        }
    }

    /// Experts outside the best groups lose their chance.
    fn limit_groups(&self, choice: &mut [f64]) {
        let size = choice.len() / self.groups as usize;
        let value = |g: usize| {
            let mut members = choice[g * size..][..size].to_vec();
            members.sort_by(|a, b| b.total_cmp(a));
            members.iter().take(2).sum::<f64>()
        };
        let values: Vec<f64> = (0..self.groups as usize).map(value).collect();
        let kept = best(&values, self.top_groups as usize);
        for g in (0..self.groups as usize).filter(|g| !kept.contains(g)) {
            choice[g * size..][..size].fill(f64::NEG_INFINITY);
        }
    }

    fn token(&self, logits: &[f64], bias: Option<&[f64]>) -> (Vec<f32>, Vec<i32>) {
        let scores = self.scores(logits);
        let mut choice = scores.clone();
        if let Some(bias) = bias {
            choice.iter_mut().zip(bias).for_each(|(c, b)| *c += b);
        }
        if self.groups > 1 {
            self.limit_groups(&mut choice);
        }
        let chosen = best(&choice, self.top_k as usize);
        let mut weights: Vec<f64> = chosen.iter().map(|&e| scores[e]).collect();
        if self.scoring == Scoring::SoftmaxTopK {
            let max = weights.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            weights.iter_mut().for_each(|w| *w = (*w - max).exp());
        }
        if self.normalize || self.scoring == Scoring::SoftmaxTopK {
            let sum: f64 = weights.iter().sum();
            weights.iter_mut().for_each(|w| *w /= sum);
        }
        let scale = f64::from(self.scale.0);
        (weights.iter().map(|w| (w * scale) as f32).collect(), chosen.iter().map(|&e| e as i32).collect())
    }
}

/// Indices of the `n` largest, largest first, the lower index first among equals.
fn best(values: &[f64], n: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| values[b].total_cmp(&values[a]).then(a.cmp(&b)));
    order.truncate(n);
    order
}

impl OpDef for Route {
    const NAME: &'static str = "route";
    const ROW_WISE: bool = true;

    fn activations(&self) -> &'static [usize] {
        &[0]
    }

    /// Weights of experts are factors of all that follows.
    fn keeps_f32(&self) -> bool {
        true
    }

    fn infer(&self, ins: &[Type]) -> Result<Vec<Type>, TypeError> {
        arity(ins, 1..=2)?;
        let experts = f32_rows(&ins[0], "logits")?;
        if let Some(bias) = ins.get(1) {
            vector(bias, experts, "bias")?;
        }
        let groups_fit = self.groups > 0 && experts.is_multiple_of(self.groups) && self.top_groups <= self.groups;
        let reachable = times(experts / self.groups.max(1), self.top_groups, "experts of the best groups")?;
        if !groups_fit || self.top_k == 0 || self.top_k > reachable {
            return Err(TypeError::new(format!("{experts} experts for {self:?}")));
        }
        let rows = ins[0].shape[0];
        Ok(vec![Type::rows(rows, self.top_k), Type { dtype: DType::I32, ..Type::rows(rows, self.top_k) }])
    }

    fn eval(&self, ins: &[&Tensor]) -> Vec<Tensor> {
        let bias = ins.get(1).map(|b| b.row_f64(0));
        let (mut weights, mut experts) = (Vec::new(), Vec::new());
        for t in 0..ins[0].rows() {
            let (w, e) = self.token(&ins[0].row_f64(t), bias.as_deref());
            weights.extend(w);
            experts.extend(e);
        }
        let shape = vec![ins[0].rows(), self.top_k as usize];
        let experts = Tensor { dtype: DType::I32, shape: shape.clone(), data: Data::I32(experts) };
        vec![Tensor::f32(shape, weights), experts]
    }

    fn whole(&self, input: usize, _: &Type) -> bool {
        input == 1
    }

    fn role(&self, input: usize, _: &Tensor) -> Role {
        match input {
            1 => Role::Weight,
            _ => Role::Activation,
        }
    }

    fn lower(&self, _: &[Type]) -> Result<Graph, NoGeneralForm> {
        Err(NoGeneralForm::Beyond("it sorts experts by their scores"))
    }

    fn cases() -> Vec<OpCase> {
        let mut rng = CaseValues::new(16);
        let close = Tolerance::Close { abs: 1e-6, rel: 1e-5 };
        let base =
            Route { top_k: 2, scoring: Scoring::Softmax, normalize: true, scale: F32(1.0), groups: 1, top_groups: 1 };
        let mut cases = Vec::new();
        for &scoring in Scoring::ALL {
            for normalize in [true, false] {
                let op = Route { scoring, normalize, ..base.clone() };
                let name = format!("{scoring} normalize {normalize}");
                cases.push(OpCase::new(name, op, vec![rng.floats([5, 8])], close));
            }
        }
        let op =
            Route { scoring: Scoring::Sigmoid, groups: 4, top_groups: 2, top_k: 3, scale: F32(2.5), ..base.clone() };
        cases.push(OpCase::new("groups and bias", op, vec![rng.floats([7, 16]), rng.floats([16])], close));
        let ties = Tensor::f32([2, 4], vec![1.0, 2.0, 2.0, 1.0, 0.0, 0.0, 0.0, 0.0]);
        cases.push(OpCase::new("ties", base, vec![ties], close));
        cases
    }
}
