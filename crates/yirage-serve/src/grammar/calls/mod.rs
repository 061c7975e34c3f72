//! Calls that have to come: in the model's own form, or as bare JSON where that form cannot hold them exactly.

mod bare;
mod braces;
mod elements;
mod lark;
mod own;
mod parameters;
mod python;
#[cfg(test)]
mod tests;

pub(crate) use own::OwnCalls;

use super::{CompiledGrammar, Grammar, GrammarKind};
use crate::error::ApiError;
use crate::response_parser::ModelCallFrame;
use crate::tools::{ToolChoice, ToolUse};
use std::sync::Arc;

/// Calls of one answer that has to have some.
const MAX_CALLS: usize = 16;

/// The field that errors of such a form name.
const FIELD: &str = "tools";

/// Calls that have to come, held to their form.
pub(crate) struct ForcedCalls {
    pub(crate) compiled: CompiledGrammar,
    /// Why they are bare JSON and not in the model's own form, where they are.
    pub(crate) bare: Option<String>,
}

impl ForcedCalls {
    /// The form of calls that have to come: one where one tool is named or calls may not come side by side, else there may
    /// be several. `own` is how the model writes calls, `thought` whether they follow a thought.
    ///
    /// # Errors
    /// Arguments that cannot be held to their schema.
    pub(crate) fn new(
        used: &ToolUse,
        own: Option<&Arc<ModelCallFrame>>,
        thought: bool,
        compile: impl Fn(&Grammar) -> Result<CompiledGrammar, ApiError>,
    ) -> Result<ForcedCalls, ApiError> {
        let why = match own {
            None => "the chat template shows no form of calls that is known".to_owned(),
            Some(own) => {
                let calls = OwnCalls { own: own.clone(), tools: called(used), most: most(used), thought };
                match compile(&Grammar::new(GrammarKind::Calls(Box::new(calls)), FIELD)) {
                    Ok(compiled) => return Ok(ForcedCalls { compiled, bare: None }),
                    Err(error) => error.message,
                }
            }
        };
        let schema = bare::schema(&called(used));
        let compiled = compile(&Grammar::new(GrammarKind::BareCalls { schema, most: most(used) }, FIELD))?;
        Ok(ForcedCalls { compiled, bare: Some(why) })
    }
}

impl Grammar {
    /// # Errors
    /// A form beside calls that have to come, which the answer cannot have as well.
    pub(crate) fn check_allows_calls(&self) -> Result<(), ApiError> {
        if self.shape == GrammarKind::Free {
            return Ok(());
        }
        Err(ApiError::unsupported(&self.field, "a call that has to come leaves no room for another form"))
    }
}

/// The tools of which one has to be called: their names and the schemas of their arguments.
fn called(used: &ToolUse) -> Vec<(String, serde_json::Value)> {
    let is_called = |name: &str| !matches!(&used.choice, ToolChoice::Named(only) if only != name);
    let tools = used.tools.iter().filter(|tool| is_called(&tool.name));
    tools.map(|tool| (tool.name.clone(), tool.parameters.clone())).collect()
}

fn most(used: &ToolUse) -> usize {
    if used.parallel && !matches!(used.choice, ToolChoice::Named(_)) { MAX_CALLS } else { 1 }
}
