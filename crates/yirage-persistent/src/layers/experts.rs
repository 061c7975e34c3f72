//! Mixtures of experts: routing, the products of the chosen experts, and their sum.
//!
//! Routing gives two tensors, weights and indices, both `[rows, top_k]`. What experts make of a row is `[rows, top_k, n]`.

use super::gated::silu_mul;
use crate::builder::KernelBuilder;
use crate::emit::{LayerEmitter, LayerOutput};
use crate::error::PersistentError;
use crate::grid::LaunchDims;
use crate::layer::Layer;
use crate::origin::TensorPart;
use crate::tensor::TensorId;
use yirage_ir::expr::Func;
use yirage_ir::op::{ExpertLinear, ExpertSum, Map, Route, Scoring};
use yirage_ir::{F32, ValueId};

const SOFTMAX: &str = "moe_topk_softmax_routing_layer";
const SIGMOID: &str = "moe_topk_sigmoid_routing_layer";
const W13: &str = "moe_w13_linear_layer";
const ACT: &str = "moe_silu_mul_layer";
const W2: &str = "moe_w2_linear_layer";
const SUM: &str = "moe_mul_sum_add_layer";

/// How the sigmoid routing chooses.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Routing {
    /// Groups of experts; 1 is none.
    pub num_groups: u32,
    /// Groups that may be chosen from.
    pub topk_group: u32,
    /// Factor of the weights.
    pub routed_scaling_factor: f32,
}

impl Default for Routing {
    /// Those of DeepSeek-V3 in Mirage.
    fn default() -> Routing {
        Routing { num_groups: 8, topk_group: 4, routed_scaling_factor: 2.5 }
    }
}

#[derive(Debug)]
struct RouteLayer {
    method: &'static str,
    route: Route,
    bias: Option<TensorId>,
}

/// Reads the rows and the indices.
#[derive(Debug)]
pub(super) struct Gates {
    pub(super) method: &'static str,
    pub(super) weight: TensorId,
    pub(super) top_k: u32,
}

#[derive(Debug)]
struct Act {
    top_k: u32,
}

/// Reads what the activation gave and the indices.
#[derive(Debug)]
pub(super) struct Down {
    pub(super) method: &'static str,
    pub(super) weight: TensorId,
    pub(super) top_k: u32,
}

/// Reads the experts' rows, the weights, and what the sum is added to.
#[derive(Debug)]
struct MoeSumLayer {
    top_k: u32,
}

impl KernelBuilder {
    /// Softmax over all experts, the `top_k` best, their weights divided by their sum. `input` is `[rows, experts]`, `output`
    /// weights and indices, `[rows, top_k]` each.
    ///
    /// # Errors
    /// [`PersistentError::Layer`] for sizes that do not fit.
    pub fn moe_topk_softmax_routing_layer(
        &mut self,
        input: TensorId,
        output: [TensorId; 2],
        launch: LaunchDims,
    ) -> Result<(), PersistentError> {
        let (scoring, scale) = (Scoring::Softmax, F32(1.0));
        let top_k = self.width(output[0])?;
        let route = Route { top_k, scoring, normalize: true, scale, groups: 1, top_groups: 1 };
        self.route(SOFTMAX, input, None, output, route, launch)
    }

    /// Sigmoid of each logit, the choice by it and `bias` within the best groups, weights divided by their sum and scaled.
    ///
    /// # Errors
    /// [`PersistentError::Layer`] for sizes that do not fit.
    pub fn moe_topk_sigmoid_routing_layer(
        &mut self,
        input: TensorId,
        bias: Option<TensorId>,
        output: [TensorId; 2],
        routing: Routing,
        launch: LaunchDims,
    ) -> Result<(), PersistentError> {
        let (top_k, scale) = (self.width(output[0])?, F32(routing.routed_scaling_factor));
        let (groups, top_groups) = (routing.num_groups, routing.topk_group);
        let route = Route { top_k, scoring: Scoring::Sigmoid, normalize: true, scale, groups, top_groups };
        self.route(SIGMOID, input, bias, output, route, launch)
    }

    fn route(
        &mut self,
        method: &'static str,
        input: TensorId,
        bias: Option<TensorId>,
        output: [TensorId; 2],
        route: Route,
        launch: LaunchDims,
    ) -> Result<(), PersistentError> {
        let (experts, top_k) = (self.width(input)?, route.top_k);
        self.check_width(method, output[1], top_k)?;
        let groups = (1..=experts).contains(&route.groups) && experts.is_multiple_of(route.groups);
        if top_k > experts || !groups || !(1..=route.groups).contains(&route.top_groups) {
            let (groups, best) = (route.groups, route.top_groups);
            let why = format!("{top_k} of {experts} experts in the best {best} of {groups} groups cannot be chosen");
            return Err(PersistentError::Layer { layer: method, why });
        }
        self.record(RouteLayer { method, route, bias }, launch, &[input], &output)
    }

    /// Gate and up of the chosen experts: `weight` is `[experts, 2 * inner, width]` with the rows of gate first, `indices`
    /// the routing's, `output` `[rows, top_k, 2 * inner]`.
    ///
    /// # Errors
    /// [`PersistentError::Layer`] for sizes that do not fit.
    pub fn moe_w13_linear_layer(
        &mut self,
        input: TensorId,
        weight: TensorId,
        indices: TensorId,
        output: TensorId,
        launch: LaunchDims,
    ) -> Result<(), PersistentError> {
        let top_k = self.check_gates(W13, input, weight, indices, output)?;
        self.record(Gates { method: W13, weight, top_k }, launch, &[input, indices], &[output])
    }

    /// `silu(gate) * up` of each chosen expert: `input` is `[rows, top_k, 2 * inner]`, `output` `[rows, top_k, inner]`.
    ///
    /// # Errors
    /// [`PersistentError::Layer`] for sizes that do not fit.
    pub fn moe_silu_mul_layer(
        &mut self,
        input: TensorId,
        output: TensorId,
        launch: LaunchDims,
    ) -> Result<(), PersistentError> {
        let (of, width) = (self.of(output)?, self.width(output)?);
        let [_, top_k, _] = of.tensor.dims[..] else {
            let why = format!("`{}` is {:?}, [rows, top_k, inner] is wanted", of.name, of.tensor.dims);
            return Err(PersistentError::Layer { layer: ACT, why });
        };
        self.check_width(ACT, input, width.saturating_mul(2))?;
        self.record(Act { top_k }, launch, &[input], &[output])
    }

    /// The way back of the chosen experts: `input` is `[rows, top_k, inner]`, `weight` `[experts, width, inner]`, `output`
    /// `[rows, top_k, width]`.
    ///
    /// # Errors
    /// [`PersistentError::Layer`] for sizes that do not fit.
    pub fn moe_w2_linear_layer(
        &mut self,
        input: TensorId,
        weight: TensorId,
        indices: TensorId,
        output: TensorId,
        launch: LaunchDims,
    ) -> Result<(), PersistentError> {
        let top_k = self.check_down(W2, input, weight, indices, output)?;
        self.record(Down { method: W2, weight, top_k }, launch, &[input, indices], &[output])
    }

    /// `output = residual + sum of weights[r] * input[r]`: `input` is `[rows, top_k, width]`, `weights` the routing's.
    ///
    /// # Errors
    /// [`PersistentError::Layer`] for sizes that do not fit.
    pub fn moe_mul_sum_add_layer(
        &mut self,
        input: TensorId,
        weights: TensorId,
        residual: TensorId,
        output: TensorId,
        launch: LaunchDims,
    ) -> Result<(), PersistentError> {
        let (top_k, width) = (self.width(weights)?, self.width(output)?);
        self.check_width(SUM, input, width.saturating_mul(top_k))?;
        self.check_width(SUM, residual, width)?;
        self.record(MoeSumLayer { top_k }, launch, &[input, weights, residual], &[output])
    }

    /// Whether these are rows, gates and ups of chosen experts: how many are chosen.
    pub(super) fn check_gates(
        &self,
        layer: &'static str,
        input: TensorId,
        weight: TensorId,
        indices: TensorId,
        output: TensorId,
    ) -> Result<u32, PersistentError> {
        let (top_k, [_, n, k]) = (self.width(indices)?, self.experts(layer, weight)?);
        self.check_width(layer, input, k)?;
        self.check_width(layer, output, n.saturating_mul(top_k))?;
        Ok(top_k)
    }

    /// Whether these are rows of chosen experts and their ways back: how many are chosen.
    pub(super) fn check_down(
        &self,
        layer: &'static str,
        input: TensorId,
        weight: TensorId,
        indices: TensorId,
        output: TensorId,
    ) -> Result<u32, PersistentError> {
        let (top_k, [_, n, k]) = (self.width(indices)?, self.experts(layer, weight)?);
        self.check_width(layer, input, k.saturating_mul(top_k))?;
        self.check_width(layer, output, n.saturating_mul(top_k))?;
        Ok(top_k)
    }

    fn experts(&self, layer: &'static str, weight: TensorId) -> Result<[u32; 3], PersistentError> {
        let of = self.of(weight)?;
        match of.tensor.dims[..] {
            [experts, n, k] => Ok([experts, n, k]),
            _ => {
                let why = format!("`{}` is {:?}, [experts, rows, columns] is wanted", of.name, of.tensor.dims);
                Err(PersistentError::Layer { layer, why })
            }
        }
    }
}

impl Layer for RouteLayer {
    fn method(&self) -> &'static str {
        self.method
    }

    fn emit(&self, e: &mut LayerEmitter<'_>) -> Result<Vec<LayerOutput>, PersistentError> {
        let mut ins = vec![e.read(0)?];
        if let Some(bias) = self.bias {
            ins.push(e.vector(bias)?);
        }
        let [weights, experts] = e.pair("route", self.route.clone(), &ins)?;
        Ok(vec![LayerOutput::One(weights), LayerOutput::One(experts)])
    }
}

impl Layer for Gates {
    fn method(&self) -> &'static str {
        self.method
    }

    fn emit(&self, e: &mut LayerEmitter<'_>) -> Result<Vec<LayerOutput>, PersistentError> {
        let (x, chosen, top_k) = (e.read(0)?, e.read(1)?, self.top_k);
        let mut half = |index| -> Result<ValueId, PersistentError> {
            let w = e.part_of(self.weight, TensorPart::Rows { index, of: 2 })?;
            e.op("experts", ExpertLinear { top_k, shared: true }, &[x, w, chosen])
        };
        Ok(vec![LayerOutput::Parts { values: vec![half(0)?, half(1)?], groups: top_k }])
    }
}

impl Layer for Act {
    fn method(&self) -> &'static str {
        ACT
    }

    fn emit(&self, e: &mut LayerEmitter<'_>) -> Result<Vec<LayerOutput>, PersistentError> {
        Ok(vec![LayerOutput::One(silu_mul(e, self.top_k)?)])
    }
}

impl Layer for Down {
    fn method(&self) -> &'static str {
        self.method
    }

    fn emit(&self, e: &mut LayerEmitter<'_>) -> Result<Vec<LayerOutput>, PersistentError> {
        let (x, chosen, w) = (e.read(0)?, e.read(1)?, e.weight(self.weight)?);
        Ok(vec![LayerOutput::One(e.op(
            "experts",
            ExpertLinear { top_k: self.top_k, shared: false },
            &[x, w, chosen],
        )?)])
    }
}

impl Layer for MoeSumLayer {
    fn method(&self) -> &'static str {
        SUM
    }

    fn emit(&self, e: &mut LayerEmitter<'_>) -> Result<Vec<LayerOutput>, PersistentError> {
        let (x, weights, residual) = (e.read(0)?, e.read(1)?, e.read(2)?);
        let sum = e.op("mixed", ExpertSum { top_k: self.top_k }, &[x, weights])?;
        Ok(vec![LayerOutput::One(e.op("sum", Map::of(Func::Add), &[residual, sum])?)])
    }
}
