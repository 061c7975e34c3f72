//! Tools that a model may call, and whether it has to.

use crate::error::ApiError;
use crate::fields::{FieldTable, Fields, honoured, ignored, without_indices, wrong};
use serde_json::{Map, Value, json};

/// Tools of one request, and bytes of a name. Agents with many servers of tools send hundreds.
const MAX_TOOLS: usize = 1024;
const MAX_NAME: usize = 128;

const TOOL: FieldTable = &[&[honoured("type", "{}"), honoured("function", "{}")], FUNCTION[0]];

const FUNCTION: FieldTable = &[&[
    honoured("name", "{}"),
    honoured("description", "{}"),
    honoured("parameters", "{}"),
    honoured("strict", "{}"),
    // What it gives back, as transformers and Gemma describe it: templates are told, and nothing else is done with it.
    honoured("return", "{}"),
    honoured("response", "{}"),
    ignored("cache_control", "{}"),
]];

const CHOICE: FieldTable = &[&[
    honoured("type", "{}"),
    honoured("function", "{}"),
    honoured("name", "{}"),
    honoured("allowed_tools", "{}"),
    honoured("mode", "{}"),
    honoured("tools", "{}"),
]];

const NAME: FieldTable = &[&[honoured("name", "{}")]];

/// A tool.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tool {
    pub(crate) name: String,
    /// The schema of its arguments.
    pub(crate) parameters: Value,
    /// As templates are given it: OpenAI's form, as it was sent where it was sent in it.
    pub(crate) shown: Value,
    /// Whether its arguments are to be exactly of its schema.
    pub(crate) strict: bool,
}

/// Whether tools are called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ToolChoice {
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
    pub(crate) choice: ToolChoice,
    /// Whether several calls may come of one answer.
    pub(crate) parallel: bool,
}

impl Tool {
    /// A tool of this name.
    ///
    /// # Errors
    /// A name that is none, named `place`.
    pub(crate) fn new(
        place: &str,
        name: &str,
        description: Option<&str>,
        parameters: Value,
        strict: bool,
    ) -> Result<Tool, ApiError> {
        let usual = |c: char| c.is_ascii_alphanumeric() || "_-.:/".contains(c);
        if name.is_empty() || name.len() > MAX_NAME || !name.chars().all(usual) {
            let what = format!("`{place}`: a name has 1 to {MAX_NAME} of the characters a-z A-Z 0-9 _ - . : /");
            return Err(ApiError::field(place, what));
        }
        if !parameters.is_object() {
            return Err(ApiError::field(place, format!("`{place}`: the schema of its arguments has to be an object")));
        }
        // The order of keys is the one that OpenAI's API describes and models are trained on.
        let mut function = json!({"name": name});
        if let Some(description) = description {
            function["description"] = description.into();
        }
        function["parameters"] = parameters.clone();
        let shown = json!({"type": "function", "function": function});
        Ok(Tool { name: name.to_owned(), parameters, shown, strict })
    }

    /// Tools in OpenAI's form: `{"type": "function", "function": {name, description, parameters}}`, or with the
    /// function's fields in the tool itself, as the responses interface has them. Tools of other types (`web_search`,
    /// `custom`, `local_shell`, namespaces of them) are none that this server or its models can run: they are left out, and
    /// their types join `ignored`.
    ///
    /// # Errors
    /// A tool that makes no sense, by its place.
    pub(crate) fn list(list: &[Value], ignored: &mut Vec<String>) -> Result<Vec<Tool>, ApiError> {
        let mut tools = Vec::new();
        for (at, tool) in list.iter().enumerate() {
            let place = format!("tools[{at}]");
            let mut outer = Fields::within(tool.clone(), TOOL, &place)?;
            if let Some(kind) = outer.text("type")?.filter(|kind| kind != "function") {
                ignored.push(named("tools", &kind));
                continue;
            }
            let (mut function, shown) = match outer.fields("function", FUNCTION)? {
                Some(function) => {
                    outer.finish_into(ignored)?;
                    (function, Some(as_sent(tool)))
                }
                None => (outer, None),
            };
            let name = function.text("name")?;
            let name = function.need("name", name)?;
            let description = function.text("description")?;
            let strict = function.switch("strict")?.unwrap_or(false);
            let parameters = function.take("parameters").unwrap_or_else(|| json!({"type": "object", "properties": {}}));
            function.take("return");
            function.take("response");
            function.finish_into(ignored)?;
            let read = Tool::new(&place, &name, description.as_deref(), parameters, strict)?;
            tools.push(Tool { shown: shown.unwrap_or(read.shown), ..read });
        }
        check_count(tools.len())?;
        Ok(tools)
    }
}

/// A tool in OpenAI's form with its fields in their order, without the marks for other servers' caches.
fn as_sent(tool: &Value) -> Value {
    let mut shown = Map::new();
    if tool["type"].is_null() {
        shown.insert("type".to_owned(), json!("function"));
    }
    for (name, value) in
        tool.as_object().into_iter().flatten().filter(|(name, value)| *name != "type" || !value.is_null())
    {
        shown.insert(name.clone(), value.clone());
    }
    shown.shift_remove("cache_control");
    if let Some(function) = shown.get_mut("function").and_then(Value::as_object_mut) {
        function.shift_remove("cache_control");
    }
    Value::Object(shown)
}

/// The name of something of this type in a list that is left out: `tools.web_search`.
pub(crate) fn named(list: &str, kind: &str) -> String {
    format!("{}.{kind}", without_indices(list))
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
    /// The tools with a choice in OpenAI's form; none where there are no tools. What changes nothing joins `ignored`:
    /// exact arguments, where nothing holds the model to them.
    ///
    /// # Errors
    /// A choice of a tool that is not there, or that makes no sense.
    pub(crate) fn new(
        tools: Vec<Tool>,
        choice: Option<Value>,
        parallel: bool,
        ignored: &mut Vec<String>,
    ) -> Result<Option<ToolUse>, ApiError> {
        let field = "tool_choice";
        let mut tools = tools;
        let choice = match choice {
            None => ToolChoice::Auto,
            Some(Value::String(word)) => match word.as_str() {
                "none" => ToolChoice::None,
                "auto" => ToolChoice::Auto,
                "required" => ToolChoice::Required,
                _ => return Err(ApiError::field(field, "`tool_choice`: expected none, auto, required or an object")),
            },
            Some(object @ Value::Object(_)) => of_object(Fields::within(object, CHOICE, field)?, &mut tools, ignored)?,
            Some(other) => return Err(wrong(field, "a string or an object", &other)),
        };
        if let ToolChoice::Named(name) = &choice
            && !tools.iter().any(|tool| tool.name == *name)
        {
            return Err(no_tool(name));
        }
        if tools.is_empty() {
            return match choice {
                ToolChoice::Required => {
                    Err(ApiError::field(field, "`tool_choice` requires a call, and there are no tools"))
                }
                _ => Ok(None),
            };
        }
        if choice == ToolChoice::Auto && tools.iter().any(|tool| tool.strict) {
            ignored.push("tools.strict".into());
        }
        Ok(Some(ToolUse { tools, choice, parallel }))
    }
}

fn no_tool(name: &str) -> ApiError {
    let what = format!("`tool_choice`: there is no function `{name}` among the tools; other tools are not run here");
    ApiError::field("tool_choice", what)
}

fn of_object(mut choice: Fields, tools: &mut Vec<Tool>, ignored: &mut Vec<String>) -> Result<ToolChoice, ApiError> {
    match choice.text("type")?.as_deref() {
        None | Some("function") => return Ok(ToolChoice::Named(name_of(choice, ignored)?)),
        Some("allowed_tools") => {}
        Some(other) => {
            let what = format!("`tool_choice`: tools of the type {other:?} are not run here; choose a function");
            return Err(ApiError::field("tool_choice", what));
        }
    }
    let mut allowed = match choice.fields("allowed_tools", CHOICE)? {
        Some(inner) => {
            choice.finish_into(ignored)?;
            inner
        }
        None => choice,
    };
    let required = match allowed.text("mode")?.as_deref() {
        None | Some("auto") => false,
        Some("required") => true,
        Some(_) => return Err(allowed.error("mode", "expected auto or required")),
    };
    let place = allowed.at("tools");
    let list = allowed.list("tools")?;
    let mut names = Vec::new();
    for (at, one) in allowed.need("tools", list)?.into_iter().enumerate() {
        let mut one = Fields::within(one, CHOICE, &format!("{place}[{at}]"))?;
        match one.text("type")?.filter(|kind| kind != "function") {
            Some(kind) => ignored.push(named("tool_choice.tools", &kind)),
            None => names.push(name_of(one, ignored)?),
        }
    }
    allowed.finish_into(ignored)?;
    if let Some(unknown) = names.iter().find(|name| tools.iter().all(|tool| tool.name != **name)) {
        return Err(no_tool(unknown));
    }
    tools.retain(|tool| names.contains(&tool.name));
    Ok(if required { ToolChoice::Required } else { ToolChoice::Auto })
}

/// The name of a function, which stands in it or beside it.
fn name_of(mut fields: Fields, ignored: &mut Vec<String>) -> Result<String, ApiError> {
    let name = match fields.fields("function", NAME)? {
        Some(mut function) => {
            let name = function.text("name")?;
            function.finish_into(ignored)?;
            name
        }
        None => fields.text("name")?,
    };
    let missing = ApiError::field("tool_choice", "`tool_choice`: the name of a function is missing");
    fields.finish_into(ignored)?;
    name.ok_or(missing)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tools() -> Vec<Tool> {
        let list = json!([{"type": "function", "function": {"name": "a"}}, {"type": "function", "name": "b"}]);
        Tool::list(list.as_array().unwrap(), &mut Vec::new()).unwrap()
    }

    #[test]
    fn choices() {
        let of = |choice: Value| ToolUse::new(tools(), Some(choice), true, &mut Vec::new()).map(|used| used.unwrap());
        assert_eq!(of(json!("auto")).unwrap().choice, ToolChoice::Auto);
        assert_eq!(of(json!("none")).unwrap().choice, ToolChoice::None);
        assert_eq!(
            of(json!({"type": "function", "function": {"name": "b"}})).unwrap().choice,
            ToolChoice::Named("b".into())
        );
        let allowed =
            json!({"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "b"}]});
        let used = of(allowed).unwrap();
        assert_eq!((used.tools.len(), used.choice), (1, ToolChoice::Required));
        assert!(of(json!("maybe")).is_err() && of(json!(3)).is_err());
        assert!(of(json!({"type": "function", "function": {"name": "c"}})).is_err());
        let unknown = json!({"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "z"}]});
        assert!(of(unknown).is_err() && of(json!({"type": "function", "nam": "b"})).is_err());
        // A choice of what was left out is none.
        for left_out in [
            json!({"type": "web_search"}),
            json!({"type": "file_search"}),
            json!({"type": "mcp", "server_label": "m"}),
            json!({"type": "custom", "name": "b"}),
            json!({"type": "custom", "custom": {"name": "b"}}),
            json!({"type": "allowed_tools", "mode": "required", "tools": [{"type": "web_search"}]}),
        ] {
            assert!(of(left_out.clone()).is_err(), "{left_out}");
        }
        let some = json!({"type": "allowed_tools", "mode": "auto",
            "tools": [{"type": "web_search"}, {"type": "function", "name": "a"}]});
        assert_eq!(of(some).unwrap().tools.len(), 1);
        assert_eq!(ToolUse::new(Vec::new(), None, true, &mut Vec::new()).unwrap(), None);
        assert!(ToolUse::new(Vec::new(), Some(json!("required")), true, &mut Vec::new()).is_err());
    }

    /// Case 1: templates write tools as JSON, and models know the order that clients send.
    #[test]
    fn tools_are_shown_as_they_were_sent() {
        let shown = |tool: &str| {
            let tool: Value = serde_json::from_str(tool).unwrap();
            Tool::list(&[tool], &mut Vec::new()).unwrap().remove(0).shown.to_string()
        };
        let schema =
            r#"{"type":"object","properties":{"z":{"default":12345678901234567890123},"a":{"enum":[1.0,-0]}}}"#;
        for function in [
            format!(r#"{{"name":"f","description":"d","parameters":{schema}}}"#),
            format!(r#"{{"parameters":{schema},"description":"d","name":"f"}}"#),
            format!(r#"{{"description":"d","name":"f","strict":true,"parameters":{schema}}}"#),
            format!(r#"{{"name":"f","strict":false,"parameters":{schema}}}"#),
            r#"{"name":"f","description":null}"#.to_owned(),
            r#"{"name":"f","description":"","parameters":{},"return":{"type":"string"}}"#.to_owned(),
        ] {
            let tool = format!(r#"{{"type":"function","function":{function}}}"#);
            assert_eq!(shown(&tool), tool);
            let turned = format!(r#"{{"function":{function},"type":"function"}}"#);
            assert_eq!(shown(&turned), turned);
            assert_eq!(shown(&format!(r#"{{"function":{function}}}"#)), tool);
            let marked = format!(r#"{{"type":"function","cache_control":{{}},"function":{function}}}"#);
            assert_eq!(shown(&marked), tool);
        }
        let flat = r#"{"parameters":{"type":"object"},"type":"function","strict":true,"description":"d","name":"f"}"#;
        let of_flat = r#"{"type":"function","function":{"name":"f","description":"d","parameters":{"type":"object"}}}"#;
        assert_eq!(shown(flat), of_flat);
    }

    #[test]
    fn tools_that_nobody_here_runs_are_left_out_and_named() {
        let list = json!([
            {"type": "web_search"}, {"type": "file_search", "vector_store_ids": ["a"]}, {"type": "computer_use_preview"},
            {"type": "code_interpreter", "container": {"type": "auto"}}, {"type": "mcp", "server_label": "m"},
            {"type": "local_shell"}, {"type": "custom", "name": "apply_patch", "format": {"type": "grammar"}},
            {"type": "namespace", "name": "n", "tools": [{"type": "function", "name": "inner"}]},
            {"type": "image_generation"}, {"type": "function", "name": "f", "strict": false, "defer_loading": true},
        ]);
        let mut ignored = Vec::new();
        let tools = Tool::list(list.as_array().unwrap(), &mut ignored).unwrap();
        assert_eq!(tools.len(), 1);
        let wanted = [
            "tools.web_search",
            "tools.file_search",
            "tools.computer_use_preview",
            "tools.code_interpreter",
            "tools.mcp",
            "tools.local_shell",
            "tools.custom",
            "tools.namespace",
            "tools.image_generation",
            "tools.defer_loading",
        ];
        assert_eq!(ignored, wanted);
        assert!(ToolUse::new(Vec::new(), Some(json!("required")), true, &mut ignored).is_err());
        assert_eq!(ToolUse::new(Vec::new(), Some(json!("auto")), true, &mut ignored).unwrap(), None);
    }

    #[test]
    fn tools_that_make_no_sense_are_refused() {
        for tool in [
            json!({"type": "function"}),
            json!({"type": 3}),
            json!({"name": "a b"}),
            json!({"name": "a", "parameters": 3}),
            json!({"name": "a", "paramters": {}}),
            json!({"function": {"name": "a", "paramters": {}}}),
        ] {
            assert!(Tool::list(std::slice::from_ref(&tool), &mut Vec::new()).is_err(), "{tool}");
        }
    }
}
