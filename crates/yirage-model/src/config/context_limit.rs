//! Attention that is computed up to a position alone: in chunks (Llama 4), of which the first is, and to chosen positions
//! (DeepSeek-V3.2), of which all are chosen while they are few. What that leaves of the context.
//!
//! It does not know how attention is computed.

use super::RawConfig;
use crate::error::ModelError;
use std::fmt;

/// A context that is shorter than the model's own, since the rest is not computed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ContextLimit {
    /// Positions that are computed.
    pub positions: u32,
    /// Positions that the model was made for.
    pub stated: u32,
    /// What the file calls the key that sets the limit, and its value.
    pub key: String,
}

impl fmt::Display for ContextLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ContextLimit { positions, stated, key } = self;
        write!(
            f,
            "{positions} positions of the model's {stated} are computed: {key}, and what follows is not computed yet"
        )
    }
}

/// Types, a key that has their layers attend otherwise from so many positions on, less these, and the key without which it
/// does not.
const LIMITS: [(&[&str], &str, u32, Option<&str>); 3] = [
    (&["llama4_text"], "attention_chunk_size", 0, None),
    (&["llama4_text"], "floor_scale", 1, Some("attn_temperature_tuning")),
    (&["deepseek_v32", "glm_moe_dsa"], "index_topk", 0, None),
];

impl RawConfig {
    /// Why the context is shorter than the model's own; none where it is not.
    pub fn context_limit(&self) -> Option<&ContextLimit> {
        self.context_limit.as_ref()
    }

    /// The positions that are computed of the type, where not all are, and what says so.
    pub(crate) fn computed_positions(&self) -> Result<Option<(u32, String)>, ModelError> {
        let of = self.opt_str("model_type")?.unwrap_or_default();
        let mut least: Option<(u32, String)> = None;
        for (_, key, spare, switch) in LIMITS.into_iter().filter(|limit| limit.0.contains(&of)) {
            let on = switch.map_or(Ok(true), |switch| self.bool_or(switch, true))?;
            let Some(found) = self.opt_u32(key)?.filter(|_| on) else { continue };
            let positions = found.checked_sub(spare).filter(|&n| n > 0);
            let positions = positions.ok_or_else(|| self.invalid(key, &format!("an integer above {spare}")))?;
            if least.as_ref().is_none_or(|(known, _)| positions < *known) {
                least = Some((positions, format!("{} is {found}", self.called(key))));
            }
        }
        Ok(least)
    }

    /// Leaves of the context what is computed.
    pub(super) fn limit_context(&mut self) -> Result<(), ModelError> {
        let (Some((positions, key)), Some(stated)) =
            (self.computed_positions()?, self.opt_u32("max_position_embeddings")?)
        else {
            return Ok(());
        };
        if stated > positions {
            self.values.insert("max_position_embeddings".into(), positions.into());
            self.context_limit = Some(ContextLimit { positions, stated, key });
        }
        Ok(())
    }
}
