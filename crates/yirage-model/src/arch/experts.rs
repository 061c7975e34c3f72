//! Gated experts without biases, from one tensor an expert or from stacked ones.

use super::emit::ModelBuilder;
use super::ffn;
use crate::error::ModelError;
use crate::tensor_names;
use yirage_ir::ValueId;
use yirage_ir::expr::Func;
use yirage_ir::op::{ExpertLinear, ExpertSum, Map, Route};

/// What a family calls its tensors, behind a layer's name.
pub(super) enum ExpertTensorNames {
    /// Tensors of their own for each expert.
    Separate {
        router: &'static str,
        experts: &'static str,
        /// Gate, up, down.
        parts: [&'static str; 3],
    },
    /// One tensor for all experts' gates and then ups, another for their downs.
    Stacked { router: &'static str, gate_up: &'static str, down: &'static str },
    /// The same, of matrices whose rows are the columns of others'.
    StackedTransposed { router: &'static str, gate_up: &'static str, down: &'static str },
}

impl ExpertTensorNames {
    /// What most families call them.
    pub(super) const USUAL: ExpertTensorNames = ExpertTensorNames::Separate {
        router: "mlp.gate",
        experts: "mlp.experts",
        parts: ["gate_proj", "up_proj", "down_proj"],
    };

    fn router(&self) -> &'static str {
        match self {
            ExpertTensorNames::Separate { router, .. }
            | ExpertTensorNames::Stacked { router, .. }
            | ExpertTensorNames::StackedTransposed { router, .. } => router,
        }
    }
}

/// The sizes of a layer's experts and how they are chosen.
pub(super) struct MoeLayer {
    pub(super) hidden: u32,
    pub(super) inner: u32,
    pub(super) count: u32,
    pub(super) gate: Func,
    pub(super) route: Route,
}

impl MoeLayer {
    /// From the usual keys; `inner` is the key of an expert's inner width.
    pub(super) fn read(e: &ModelBuilder<'_>, inner: &str, route: Route) -> Result<MoeLayer, ModelError> {
        let (hidden, inner) = (e.size("hidden_size")?, e.size(inner)?);
        Ok(MoeLayer { hidden, inner, count: e.size("num_experts")?, gate: ffn::gate(e)?, route })
    }

    /// Emits layer `l`'s experts; `correction` joins the choice only.
    pub(super) fn emit(
        &self,
        e: &mut ModelBuilder<'_>,
        l: u32,
        x: ValueId,
        names: &ExpertTensorNames,
        correction: Option<ValueId>,
    ) -> Result<ValueId, ModelError> {
        let logits = self.logits(e, l, x, names)?;
        let [chances, chosen] = self.choose(e, l, logits, correction)?;
        let results = self.results(e, l, x, names, chosen)?;
        self.sum(e, l, results, chances)
    }

    /// The results of layer `l`'s experts, each times its weight, added.
    pub(super) fn sum(
        &self,
        e: &mut ModelBuilder<'_>,
        l: u32,
        results: ValueId,
        weights: ValueId,
    ) -> Result<ValueId, ModelError> {
        e.op(&format!("l{l}.ffn"), ExpertSum { top_k: self.route.top_k }, &[results, weights])
    }

    /// What the router says of each expert.
    pub(super) fn logits(
        &self,
        e: &mut ModelBuilder<'_>,
        l: u32,
        x: ValueId,
        names: &ExpertTensorNames,
    ) -> Result<ValueId, ModelError> {
        let router = format!("model.layers.{l}.{}", names.router());
        e.linear(&format!("l{l}.router"), &router, x, [self.count, self.hidden], false)
    }

    /// The scores and the numbers of the experts of each token; `correction` joins the choice only.
    pub(super) fn choose(
        &self,
        e: &mut ModelBuilder<'_>,
        l: u32,
        logits: ValueId,
        correction: Option<ValueId>,
    ) -> Result<[ValueId; 2], ModelError> {
        let mut ins = vec![logits];
        ins.extend(correction);
        let outs = e.ops(&[&format!("l{l}.chances"), &format!("l{l}.chosen")], self.route.clone(), &ins)?;
        Ok([outs[0], outs[1]])
    }

    /// What the chosen experts make of each token, one result behind the other.
    pub(super) fn results(
        &self,
        e: &mut ModelBuilder<'_>,
        l: u32,
        x: ValueId,
        names: &ExpertTensorNames,
        chosen: ValueId,
    ) -> Result<ValueId, ModelError> {
        let top_k = self.route.top_k;
        let gate = self.weight(e, l, names, 0)?;
        let gate = e.op(&format!("l{l}.ffn.gate"), ExpertLinear { top_k, shared: true }, &[x, gate, chosen])?;
        let up = self.weight(e, l, names, 1)?;
        let up = e.op(&format!("l{l}.ffn.up"), ExpertLinear { top_k, shared: true }, &[x, up, chosen])?;
        let act = e.op(&format!("l{l}.ffn.act"), Map::gated(self.gate), &[gate, up])?;
        let down = self.weight(e, l, names, 2)?;
        e.op(&format!("l{l}.ffn.down"), ExpertLinear { top_k, shared: false }, &[act, down, chosen])
    }

    /// One of the three matrices of all experts.
    fn weight(
        &self,
        e: &mut ModelBuilder<'_>,
        l: u32,
        names: &ExpertTensorNames,
        part: usize,
    ) -> Result<ValueId, ModelError> {
        let label = ["gate", "up", "down"][part];
        let [n, k] = if part == 2 { [self.hidden, self.inner] } else { [self.inner, self.hidden] };
        let (name, shape) = (format!("l{l}.ffn.{label}.w"), [self.count, n, k]);
        let stacked = tensor_names::stacked_experts(l, label, "weight");
        if e.is_gguf() && e.has(&stacked) {
            return e.tensor(&name, &stacked, &shape);
        }
        let (experts, parts) = match names {
            ExpertTensorNames::Separate { experts, parts, .. } => (experts, parts),
            ExpertTensorNames::Stacked { gate_up, down, .. } => {
                let (tensor, rows, first) = if part == 2 { (down, n, 0) } else { (gate_up, 2 * n, part as u32 * n) };
                let (of, strides) = ([self.count, rows, k], [e.product(rows, k, "an expert's size")?, k, 1]);
                let offset = e.product(first, k, "an expert's size")?;
                let view = e.part(&format!("model.layers.{l}.{tensor}"), &of, offset, &shape, &strides)?;
                return e.weight(&name, &shape, vec![view]);
            }
            ExpertTensorNames::StackedTransposed { gate_up, down, .. } => {
                let (tensor, columns, first) = if part == 2 { (down, n, 0) } else { (gate_up, 2 * n, part as u32 * n) };
                let (of, strides) =
                    ([self.count, k, columns], [e.product(columns, k, "an expert's size")?, 1, columns]);
                let view = e.part(&format!("model.layers.{l}.{tensor}"), &of, first, &shape, &strides)?;
                return e.weight(&name, &shape, vec![view]);
            }
        };
        let one = |i: u32| {
            // GGUF files of the first mixtures hold a tensor an expert, too.
            let tensor = match e.is_gguf() {
                true => format!("blk.{l}.ffn_{label}.{i}.weight"),
                false => format!("model.layers.{l}.{experts}.{i}.{}.weight", parts[part]),
            };
            e.whole(&tensor, &[n, k])
        };
        let views = (0..self.count).map(one).collect::<Result<Vec<_>, _>>()?;
        e.weight(&name, &shape, views)
    }
}
