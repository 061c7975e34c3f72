//! From a model's text of a call to its name and arguments.

use super::family::CallForm;
use serde_json::{Map, Value};

/// A call of a tool, as the model wrote it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Call {
    pub(crate) name: String,
    /// Arguments as JSON text.
    pub(crate) arguments: String,
}

/// The calls in what stands between the markers of a form; none where it is no such text.
pub(crate) fn parse(form: CallForm, text: &str) -> Option<Vec<Call>> {
    let text = text.trim();
    let calls = match form {
        CallForm::Elements => vec![elements(text)?],
        CallForm::Tagged => vec![object(serde_json::from_str(text).ok()?)?],
        CallForm::List => match serde_json::from_str(text).ok()? {
            Value::Array(list) => list.into_iter().map(object).collect::<Option<Vec<Call>>>()?,
            one => vec![object(one)?],
        },
        CallForm::Bare => {
            // Several calls stand behind each other with a semicolon between them.
            let (mut calls, mut rest) = (Vec::new(), text);
            while !rest.is_empty() {
                let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
                calls.push(object(values.next()?.ok()?)?);
                let behind = rest.get(values.byte_offset()..).unwrap_or_default().trim_start();
                rest = behind.strip_prefix(';').unwrap_or(behind).trim_start();
            }
            calls
        }
    };
    (!calls.is_empty()).then_some(calls)
}

/// `{"name": ..., "arguments": {...}}`, or `parameters` in its place.
fn object(value: Value) -> Option<Call> {
    let Value::Object(mut map) = value else { return None };
    let Some(Value::String(name)) = map.remove("name") else { return None };
    let arguments = map.remove("arguments").or_else(|| map.remove("parameters"));
    let arguments = match arguments {
        Some(Value::String(text)) => serde_json::from_str::<Map<String, Value>>(&text).ok().map(|_| text)?,
        Some(Value::Object(arguments)) => Value::Object(arguments).to_string(),
        None => "{}".to_owned(),
        Some(_) => return None,
    };
    Some(Call { name, arguments })
}

/// `<function=name><parameter=key>value</parameter>...</function>`. A value that is JSON is taken as such.
fn elements(text: &str) -> Option<Call> {
    let (name, mut rest) = text.strip_prefix("<function=")?.split_once('>')?;
    let mut arguments = Map::new();
    while let Some((_, behind)) = rest.split_once("<parameter=") {
        let (key, behind) = behind.split_once('>')?;
        let (value, behind) = behind.split_once("</parameter>")?;
        let value = value.strip_prefix('\n').unwrap_or(value);
        let value = value.strip_suffix('\n').unwrap_or(value);
        let value = serde_json::from_str(value).unwrap_or_else(|_| Value::String(value.to_owned()));
        arguments.insert(key.trim().to_owned(), value);
        rest = behind;
    }
    rest.contains("</function>")
        .then(|| Call { name: name.trim().to_owned(), arguments: Value::Object(arguments).to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(form: CallForm, text: &str) -> Option<(String, String)> {
        let calls = parse(form, text)?;
        assert_eq!(calls.len(), 1);
        calls.into_iter().next().map(|call| (call.name, call.arguments))
    }

    #[test]
    fn calls_in_every_form() {
        let wanted = Some(("add".to_owned(), r#"{"a":1,"b":"x"}"#.to_owned()));
        assert_eq!(one(CallForm::Tagged, "\n{\"name\": \"add\", \"arguments\": {\"a\": 1, \"b\": \"x\"}}\n"), wanted);
        assert_eq!(one(CallForm::List, r#"[{"name":"add","arguments":{"a":1,"b":"x"}}]"#), wanted);
        assert_eq!(one(CallForm::Bare, r#"{"name":"add","parameters":{"a":1,"b":"x"}}"#), wanted);
        let text = "<function=add>\n<parameter=a>\n1\n</parameter>\n<parameter=b>\nx\n</parameter>\n</function>";
        assert_eq!(one(CallForm::Elements, text), wanted);
        assert_eq!(one(CallForm::Tagged, r#"{"name":"now"}"#), Some(("now".into(), "{}".into())));
        let two = r#"{"name":"a","parameters":{}}; {"name":"b","parameters":{}}"#;
        assert_eq!(parse(CallForm::Bare, two).unwrap().len(), 2);
        let code = r#"{"name":"run","parameters":{"code":"{a};\nb"}}"#;
        assert_eq!(one(CallForm::Bare, code), Some(("run".into(), r#"{"code":"{a};\nb"}"#.into())));
    }

    #[test]
    fn what_is_no_call_is_none() {
        for text in
            ["", "hello", "{}", "{\"name\": 3}", "[]", "{\"name\":\"a\",\"arguments\":[1]}", "<function=a>", "[1]"]
        {
            for form in [CallForm::Tagged, CallForm::List, CallForm::Bare, CallForm::Elements] {
                assert_eq!(parse(form, text), None, "{form:?} {text:?}");
            }
        }
    }
}
