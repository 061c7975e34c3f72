//! Tools that a model may call, and whether it has to.

use crate::error::ApiError;
use crate::fields::wrong;
use serde_json::{Value, json};

/// Tools of one request, and bytes of a name.
const MAX_TOOLS: usize = 128;
const MAX_NAME: usize = 128;

/// A tool.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tool {
    pub(crate) name: String,
    /// The schema of its arguments.
    pub(crate) parameters: Value,
    /// As templates are given it: OpenAI's form.
    pub(crate) shown: Value,
}

/// Whether tools are called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    /// No call is looked for, and the model hears of no tool.
    None,
    /// The model decides.
    Auto,
    /// It has to call one.
    Required,
    /// It has to call this one.
    Named(String),
}

/// The tools of a request.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ToolUse {
    pub(crate) tools: Vec<Tool>,
    pub(crate) choice: Choice,
    /// Whether several calls may come of one answer.
    pub(crate) parallel: bool,
}

impl Tool {
    /// A tool of this name.
    ///
    /// # Errors
    /// A name that is none, named `place`.
    pub(crate) fn new(place: &str, name: &str, description: Option<&str>, parameters: Value) -> Result<Tool, ApiError> {
        let usual = |c: char| c.is_ascii_alphanumeric() || "_-.:/".contains(c);
        if name.is_empty() || name.len() > MAX_NAME || !name.chars().all(usual) {
            let what = format!("`{place}`: a name has 1 to {MAX_NAME} of the characters a-z A-Z 0-9 _ - . : /");
            return Err(ApiError::field(place, what));
        }
        if !parameters.is_object() {
            return Err(ApiError::field(place, format!("`{place}`: the schema of its arguments has to be an object")));
        }
        let mut function = json!({"name": name, "parameters": parameters});
        if let Some(description) = description {
            function["description"] = description.into();
        }
        let shown = json!({"type": "function", "function": function});
        Ok(Tool { name: name.to_owned(), parameters, shown })
    }

    /// Tools in OpenAI's form: `{"type": "function", "function": {name, description, parameters}}`.
    ///
    /// # Errors
    /// A tool that makes no sense, by its place.
    pub(crate) fn list(list: &[Value]) -> Result<Vec<Tool>, ApiError> {
        let of = |(at, tool): (usize, &Value)| {
            let place = format!("tools[{at}]");
            let kind = tool.get("type").and_then(Value::as_str).unwrap_or("function");
            if kind != "function" {
                return Err(ApiError::unsupported(&place, "only functions are tools here"));
            }
            // The responses interface has the function's fields in the tool itself.
            let function = tool.get("function").unwrap_or(tool);
            let Some(name) = function.get("name").and_then(Value::as_str) else {
                return Err(ApiError::field(
                    format!("{place}.function.name"),
                    format!("`{place}.function.name` is missing"),
                ));
            };
            let description = function.get("description").and_then(Value::as_str);
            let parameters = function.get("parameters").filter(|p| !p.is_null()).cloned();
            Tool::new(
                &place,
                name,
                description,
                parameters.unwrap_or_else(|| json!({"type": "object", "properties": {}})),
            )
        };
        check_count(list.len())?;
        list.iter().enumerate().map(of).collect()
    }
}

/// The field that asks for exact arguments, where a tool of the list has it and nothing holds the model to them.
pub(crate) fn unenforced(list: &[Value], used: Option<&ToolUse>) -> Option<String> {
    let free = used.is_some_and(|used| used.choice == Choice::Auto);
    let strict = |tool: &Value| tool.get("function").unwrap_or(tool).get("strict") == Some(&Value::Bool(true));
    (free && list.iter().any(strict)).then(|| "tools.strict".to_owned())
}

/// # Errors
/// More tools than any request has.
pub(crate) fn check_count(count: usize) -> Result<(), ApiError> {
    if count > MAX_TOOLS {
        return Err(ApiError::field("tools", format!("{count} tools are given; {MAX_TOOLS} are taken")));
    }
    Ok(())
}

impl ToolUse {
    /// The tools with a choice in OpenAI's form; none where there are no tools.
    ///
    /// # Errors
    /// A choice of a tool that is not there, or that makes no sense.
    pub(crate) fn new(tools: Vec<Tool>, choice: Option<&Value>, parallel: bool) -> Result<Option<ToolUse>, ApiError> {
        let field = "tool_choice";
        let mut tools = tools;
        let choice = match choice {
            None => Choice::Auto,
            Some(Value::String(word)) => match word.as_str() {
                "none" => Choice::None,
                "auto" => Choice::Auto,
                "required" => Choice::Required,
                _ => return Err(ApiError::field(field, "`tool_choice`: expected none, auto, required or an object")),
            },
            Some(Value::Object(map)) => match map.get("type").and_then(Value::as_str) {
                Some("allowed_tools") => {
                    let inner = map.get("allowed_tools").and_then(Value::as_object).unwrap_or(map);
                    let allowed: Vec<&str> = inner
                        .get("tools")
                        .and_then(Value::as_array)
                        .into_iter()
                        .flatten()
                        .filter_map(name_of)
                        .collect();
                    tools.retain(|tool| allowed.contains(&tool.name.as_str()));
                    if inner.get("mode").and_then(Value::as_str) == Some("required") {
                        Choice::Required
                    } else {
                        Choice::Auto
                    }
                }
                _ => match name_of(&Value::Object(map.clone())) {
                    Some(name) => Choice::Named(name.to_owned()),
                    None => return Err(ApiError::field(field, "`tool_choice`: the name of a function is missing")),
                },
            },
            Some(other) => return Err(wrong(field, "a string or an object", other)),
        };
        if let Choice::Named(name) = &choice
            && !tools.iter().any(|tool| tool.name == *name)
        {
            return Err(ApiError::field(field, format!("`tool_choice`: there is no tool `{name}`")));
        }
        if tools.is_empty() {
            return match choice {
                Choice::Required => {
                    Err(ApiError::field(field, "`tool_choice` requires a call, and there are no tools"))
                }
                _ => Ok(None),
            };
        }
        Ok(Some(ToolUse { tools, choice, parallel }))
    }
}

fn name_of(value: &Value) -> Option<&str> {
    value.get("function").unwrap_or(value).get("name").and_then(Value::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tools() -> Vec<Tool> {
        let list = json!([{"type": "function", "function": {"name": "a"}}, {"type": "function", "name": "b"}]);
        Tool::list(list.as_array().unwrap()).unwrap()
    }

    #[test]
    fn choices() {
        let of = |choice: Value| ToolUse::new(tools(), Some(&choice), true).map(|used| used.unwrap());
        assert_eq!(of(json!("auto")).unwrap().choice, Choice::Auto);
        assert_eq!(of(json!("none")).unwrap().choice, Choice::None);
        assert_eq!(
            of(json!({"type": "function", "function": {"name": "b"}})).unwrap().choice,
            Choice::Named("b".into())
        );
        let allowed =
            json!({"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "b"}]});
        let used = of(allowed).unwrap();
        assert_eq!((used.tools.len(), used.choice), (1, Choice::Required));
        assert!(of(json!("maybe")).is_err() && of(json!(3)).is_err());
        assert!(of(json!({"type": "function", "function": {"name": "c"}})).is_err());
        assert_eq!(ToolUse::new(Vec::new(), None, true).unwrap(), None);
        assert!(ToolUse::new(Vec::new(), Some(&json!("required")), true).is_err());
    }

    #[test]
    fn tools_that_make_no_sense_are_refused() {
        for tool in [
            json!({"type": "web_search"}),
            json!({"type": "function"}),
            json!({"name": "a b"}),
            json!({"name": "a", "parameters": 3}),
        ] {
            assert!(Tool::list(std::slice::from_ref(&tool)).is_err(), "{tool}");
        }
    }
}
