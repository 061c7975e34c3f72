//! Tools that a model may call, and whether it has to.

use crate::error::ApiError;
use crate::fields::{Fields, Table, honoured, ignored, wrong};
use serde_json::{Map, Value, json};

/// Tools of one request, and bytes of a name.
const MAX_TOOLS: usize = 128;
const MAX_NAME: usize = 128;

const TOOL: Table = &[&[honoured("type", "{}"), honoured("function", "{}")], FUNCTION[0]];

const FUNCTION: Table = &[&[
    honoured("name", "{}"),
    honoured("description", "{}"),
    honoured("parameters", "{}"),
    honoured("strict", "{}"),
    // What it gives back, as transformers and Gemma describe it: templates are told, and nothing else is done with it.
    honoured("return", "{}"),
    honoured("response", "{}"),
    ignored("cache_control", "{}"),
]];

const CHOICE: Table = &[&[
    honoured("type", "{}"),
    honoured("function", "{}"),
    honoured("name", "{}"),
    honoured("allowed_tools", "{}"),
    honoured("mode", "{}"),
    honoured("tools", "{}"),
]];

const NAME: Table = &[&[honoured("name", "{}")]];

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
    /// function's fields in the tool itself, as the responses interface has them.
    ///
    /// # Errors
    /// A tool that makes no sense, by its place.
    pub(crate) fn list(list: &[Value], ignored: &mut Vec<String>) -> Result<Vec<Tool>, ApiError> {
        check_count(list.len())?;
        let one = |(at, tool): (usize, &Value)| {
            let place = format!("tools[{at}]");
            let mut outer = Fields::within(tool.clone(), TOOL, &place)?;
            if outer.text("type")?.is_some_and(|kind| kind != "function") {
                return Err(ApiError::unsupported(&place, "only functions are tools here"));
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
            Ok(Tool { shown: shown.unwrap_or(read.shown), ..read })
        };
        list.iter().enumerate().map(one).collect()
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
            None => Choice::Auto,
            Some(Value::String(word)) => match word.as_str() {
                "none" => Choice::None,
                "auto" => Choice::Auto,
                "required" => Choice::Required,
                _ => return Err(ApiError::field(field, "`tool_choice`: expected none, auto, required or an object")),
            },
            Some(object @ Value::Object(_)) => of_object(Fields::within(object, CHOICE, field)?, &mut tools, ignored)?,
            Some(other) => return Err(wrong(field, "a string or an object", &other)),
        };
        if let Choice::Named(name) = &choice
            && !tools.iter().any(|tool| tool.name == *name)
        {
            return Err(no_tool(name));
        }
        if tools.is_empty() {
            return match choice {
                Choice::Required => {
                    Err(ApiError::field(field, "`tool_choice` requires a call, and there are no tools"))
                }
                _ => Ok(None),
            };
        }
        if choice == Choice::Auto && tools.iter().any(|tool| tool.strict) {
            ignored.push("tools.strict".into());
        }
        Ok(Some(ToolUse { tools, choice, parallel }))
    }
}

fn no_tool(name: &str) -> ApiError {
    ApiError::field("tool_choice", format!("`tool_choice`: there is no tool `{name}`"))
}

fn of_object(mut choice: Fields, tools: &mut Vec<Tool>, ignored: &mut Vec<String>) -> Result<Choice, ApiError> {
    let kind = choice.text("type")?;
    if kind.as_deref() != Some("allowed_tools") {
        return Ok(Choice::Named(name_of(choice, ignored)?));
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
        one.text("type")?;
        names.push(name_of(one, ignored)?);
    }
    allowed.finish_into(ignored)?;
    if let Some(unknown) = names.iter().find(|name| tools.iter().all(|tool| tool.name != **name)) {
        return Err(no_tool(unknown));
    }
    tools.retain(|tool| names.contains(&tool.name));
    Ok(if required { Choice::Required } else { Choice::Auto })
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
        let unknown = json!({"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "z"}]});
        assert!(of(unknown).is_err() && of(json!({"type": "function", "name": "b", "x": 1})).is_err());
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
    fn tools_that_make_no_sense_are_refused() {
        for tool in [
            json!({"type": "web_search"}),
            json!({"type": "function"}),
            json!({"name": "a b"}),
            json!({"name": "a", "parameters": 3}),
            json!({"name": "a", "paramters": {}}),
            json!({"function": {"name": "a", "paramters": {}}}),
        ] {
            assert!(Tool::list(std::slice::from_ref(&tool), &mut Vec::new()).is_err(), "{tool}");
        }
    }
}
