//! DeepSeek-V2 (arXiv 2405.04434): the latent attention of DeepSeek-V3, which it introduced, and experts by softmax.

use super::decoder::Decoder;
use super::deepseek_moe::DeepseekMoe;
use super::deepseek_v3::Latent;
use super::emit::ModelBuilder;
use crate::error::ModelError;
use yirage_ir::F32;
use yirage_ir::op::{Route, Scoring};

pub(super) fn emit(e: &mut ModelBuilder<'_>) -> Result<(), ModelError> {
    e.plain_storage()?;
    let latent = Latent::read(e, true)?;
    let moe = DeepseekMoe::read(e, route(e)?)?;
    Decoder::read(e)?.emit(e, &|e, l, x| latent.emit(e, l, x), &|e, l, x| moe.emit(e, l, x))
}

fn route(e: &ModelBuilder<'_>) -> Result<Route, ModelError> {
    let method = e.config.opt_str("topk_method")?.unwrap_or("greedy");
    // Where no group is left out, groups change nothing.
    let all = method == "group_limited_greedy" && e.size("n_group")? == e.size("topk_group")?;
    if method != "greedy" && !all {
        return Err(ModelError::Unsupported {
            what: format!("the choice of experts {method:?}"),
            why: format!(
                "{}: topk_method names it; greedy is known, and group_limited_greedy where topk_group is n_group",
                e.config.file()
            ),
        });
    }
    Ok(Route {
        top_k: e.size("num_experts_per_tok")?,
        scoring: Scoring::Softmax,
        normalize: false,
        scale: F32(e.config.f64_or("routed_scaling_factor", 1.0)? as f32),
        groups: 1,
        top_groups: 1,
    })
}
