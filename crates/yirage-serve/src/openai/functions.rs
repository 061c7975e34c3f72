//! `functions` and `function_call` of chat completions, which `tools` and `tool_choice` have replaced. Clients of that time
//! send them, and read the one call of an answer in `message.function_call`.

use crate::error::ApiError;
use crate::fields::{Fields, wrong};
use crate::tools::{Tool, ToolChoice, ToolUse};
use serde_json::{Value, json};

/// Whether a body has functions and no tools, so that its answer is one for whoever sends them.
pub(super) fn are_sent(fields: &Fields) -> bool {
    let has = |name: &str| fields.peek(name).and_then(Value::as_array).is_some_and(|list| !list.is_empty());
    has("functions") && !has("tools")
}

/// The functions as tools, of which one is called at a time; none where there are none.
///
/// # Errors
/// Functions that make no sense or stand beside `tools`, a choice of one that is not there.
pub(super) fn read(
    fields: &mut Fields,
    tools: Option<ToolUse>,
    ignored: &mut Vec<String>,
) -> Result<Option<ToolUse>, ApiError> {
    let functions = fields.list("functions")?.unwrap_or_default();
    let choice = fields.take("function_call");
    for (at, function) in functions.iter().enumerate() {
        if !function.is_object() {
            return Err(wrong(&format!("functions[{at}]"), "an object", function));
        }
    }
    let is_word = |word: &str| choice.as_ref().is_some_and(|choice| choice == word);
    if functions.is_empty() {
        return match choice {
            None => Ok(tools),
            Some(_) if is_word("none") || is_word("auto") => Ok(tools),
            Some(_) => Err(ApiError::field(
                "function_call",
                "`function_call` chooses of `functions`, and there are none; choose of `tools` by `tool_choice`",
            )),
        };
    }
    if tools.is_some() && is_word("none") {
        ignored.push("functions".to_owned());
        return Ok(tools);
    }
    if tools.is_some() {
        return Err(ApiError::field(
            "functions",
            "`functions` and `tools` are the same in two forms; send all of them as `tools`",
        ));
    }
    let list: Vec<Value> =
        functions.into_iter().map(|function| json!({"type": "function", "function": function})).collect();
    let tools = Tool::list(&list, ignored).map_err(of_functions)?;
    let choice = match &choice {
        None => ToolChoice::Auto,
        Some(_) if is_word("auto") => ToolChoice::Auto,
        Some(_) if is_word("none") => {
            ignored.push("functions".to_owned());
            ToolChoice::None
        }
        Some(Value::Object(of)) => match of.get("name").and_then(Value::as_str) {
            Some(name) if tools.iter().any(|tool| tool.name == name) => ToolChoice::Named(name.to_owned()),
            _ => return Err(expected()),
        },
        Some(_) => return Err(expected()),
    };
    Ok(Some(ToolUse { tools, choice, parallel: false }))
}

fn expected() -> ApiError {
    let what = "`function_call`: expected none, auto or an object with the `name` of one of the functions";
    ApiError::field("function_call", what)
}

/// An error of tools, by the fields that were sent.
pub(super) fn of_functions(error: ApiError) -> ApiError {
    let place = |text: String| text.replace("tools[", "functions[").replace("].function", "]");
    let name = |param: String| if param == "tools" { "functions".to_owned() } else { place(param) };
    let said = |text: String| text.replace("`tools`", "`functions`").replace("`tool_choice`", "`function_call`");
    ApiError { param: error.param.map(name), message: said(place(error.message)), ..error }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::openai::CHAT;

    fn used(body: &Value) -> Result<(Option<ToolUse>, Vec<String>), ApiError> {
        let mut ignored = Vec::new();
        let mut fields = Fields::parse(body.to_string().as_bytes(), CHAT)?;
        read(&mut fields, None, &mut ignored).map(|used| (used, ignored))
    }

    #[test]
    fn functions_are_tools_of_which_one_is_called() {
        let functions = json!([{"name": "a", "description": "d", "parameters": {"type": "object"}}, {"name": "b"}]);
        for (choice, wanted) in [
            (json!(null), ToolChoice::Auto),
            (json!("auto"), ToolChoice::Auto),
            (json!({"name": "b"}), ToolChoice::Named("b".into())),
        ] {
            let (used, ignored) = used(&json!({"functions": functions, "function_call": choice})).unwrap();
            let used = used.unwrap();
            assert_eq!((used.tools.len(), used.choice, used.parallel, ignored.len()), (2, wanted, false, 0));
            assert_eq!(used.tools[0].shown, json!({"type": "function", "function": functions[0]}));
        }
        let (none, ignored) = used(&json!({"functions": functions, "function_call": "none"})).unwrap();
        assert_eq!((none.unwrap().choice, ignored), (ToolChoice::None, vec!["functions".to_owned()]));
    }

    #[test]
    fn functions_that_make_no_sense_are_refused_by_their_place() {
        for (body, param) in [
            (json!({"functions": [3]}), "functions[0]"),
            (json!({"functions": [{"name": "a"}, {}]}), "functions[1].name"),
            (json!({"functions": [{"name": "a", "paramters": {}}]}), "functions[0].paramters"),
            (json!({"functions": [{"name": "a"}], "function_call": {"name": "z"}}), "function_call"),
            (json!({"functions": [{"name": "a"}], "function_call": "required"}), "function_call"),
            (json!({"function_call": {"name": "a"}}), "function_call"),
        ] {
            assert_eq!(used(&body).unwrap_err().param.as_deref(), Some(param), "{body}");
        }
        let tools = Tool::list(&[json!({"name": "t"})], &mut Vec::new()).unwrap();
        let both = ToolUse { tools, choice: ToolChoice::Auto, parallel: true };
        let mut fields = Fields::parse(br#"{"functions": [{"name": "a"}]}"#, CHAT).unwrap();
        let refused = read(&mut fields, Some(both), &mut Vec::new()).unwrap_err();
        assert!(refused.message.contains("send all of them as `tools`"), "{refused:?}");
    }

    /// A client that sends everything it knows.
    #[test]
    fn functions_of_which_none_may_be_called_are_left_out_beside_tools() {
        let tools = Tool::list(&[json!({"name": "t"})], &mut Vec::new()).unwrap();
        let both = ToolUse { tools, choice: ToolChoice::Auto, parallel: true };
        let body = br#"{"functions": [{"name": "a"}], "function_call": "none", "tools": [{}]}"#;
        let (mut fields, mut ignored) = (Fields::parse(body, CHAT).unwrap(), Vec::new());
        assert!(!are_sent(&fields));
        let used = read(&mut fields, Some(both), &mut ignored).unwrap().unwrap();
        assert_eq!((used.tools[0].name.as_str(), used.choice), ("t", ToolChoice::Auto));
        assert_eq!(ignored, ["functions"]);
    }
}
