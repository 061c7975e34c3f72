//! The fields that ask for a form: OpenAI's, vLLM's of today and of before, llama.cpp's.

use super::{Grammar, GrammarKind};
use crate::error::ApiError;
use crate::fields::{FieldSpec, FieldTable, Fields, honoured, ignored, refused, wrong};
use serde_json::Value;

const STRUCTURED: &str = r#"{"type":["object","null"],"minProperties":1,"properties":{
    "json":{"type":["object","string","null"]},"json_object":{"enum":[true,null]},"regex":{"type":["string","null"]},
    "choice":{"type":["array","null"],"minItems":1,"items":{"type":"string"}},"grammar":{"type":["string","null"]}}}"#;

/// The fields of a form where nothing else is asked for in their names.
pub(crate) const FORMS: &[FieldSpec] = &[
    honoured("response_format", r#"{"type":["object","null"],"required":["type"]}"#),
    honoured("structured_outputs", STRUCTURED),
    honoured("guided_json", r#"{"type":["object","string","null"]}"#),
    honoured("guided_regex", r#"{"type":["string","null"]}"#),
    honoured("guided_choice", r#"{"type":["array","null"],"minItems":1,"items":{"type":"string"}}"#),
    honoured("guided_grammar", r#"{"type":["string","null"]}"#),
    honoured("grammar", r#"{"type":["string","null"]}"#),
    honoured("json_schema", r#"{"type":["object","string","null"]}"#),
    ignored("guided_decoding_backend", r#"{"type":["string","null"]}"#),
    refused("guided_whitespace_pattern", "JSON is spaced in one way", &[]),
    refused("grammar_lazy", "a grammar holds from the first token", &["false"]),
    refused("grammar_triggers", "a grammar holds from the first token", &["[]"]),
    refused("preserved_tokens", "special tokens are never text; ask for token ids", &["[]"]),
];

const FORMS_ALONE: FieldTable = &[FORMS];

const FORMAT: FieldTable = &[&[
    honoured("type", "{}"),
    honoured("json_schema", "{}"),
    // llama.cpp's place for the schema of a `json_object`.
    honoured("schema", "{}"),
    // A form's name is for its reader; the responses interface gives it back.
    honoured("name", "{}"),
    // Every form is kept to strictly.
    honoured("strict", "{}"),
    ignored("description", "{}"),
]];

const OUTPUTS: FieldTable = &[&[
    honoured("json", "{}"),
    honoured("json_object", "{}"),
    honoured("regex", "{}"),
    honoured("choice", "{}"),
    honoured("grammar", "{}"),
    refused("structural_tag", "ask for a grammar", &[]),
    refused("whitespace_pattern", "JSON is spaced in one way", &[]),
    refused("disable_additional_properties", "say it in the schema", &["false"]),
    ignored("disable_any_whitespace", "{}"),
    ignored("disable_fallback", "{}"),
]];

impl Grammar {
    /// The form that a body asks for which has the fields of [`FORMS`] alone.
    ///
    /// # Errors
    /// As [`Grammar::read`]; other fields.
    pub(crate) fn of_body(body: &[u8]) -> Result<Grammar, ApiError> {
        let mut fields = Fields::parse(body, FORMS_ALONE)?;
        let grammar = Grammar::read(&mut fields, &mut Vec::new())?;
        fields.finish()?;
        Ok(grammar)
    }

    /// The form that one of the fields of [`FORMS`] asks for. What changes nothing in them joins `ignored`.
    ///
    /// # Errors
    /// What is no form, and two of them.
    pub(crate) fn read(fields: &mut Fields, ignored: &mut Vec<String>) -> Result<Grammar, ApiError> {
        let mut found: Option<Grammar> = None;
        for field in FORMS.iter().map(|field| field.name) {
            // An empty grammar is llama.cpp's word for none.
            if field == "grammar" {
                fields.leave_out(field, &"".into());
            }
            let reads = !matches!(field, "guided_decoding_backend" | "guided_whitespace_pattern" | "preserved_tokens")
                && !field.starts_with("grammar_");
            let Some(value) = reads.then(|| fields.take(field)).flatten() else { continue };
            let grammar = match field {
                "response_format" => Grammar::of_response_format(field, value, ignored)?,
                "structured_outputs" => of_outputs(Fields::within(value, OUTPUTS, field)?, ignored)?,
                "guided_regex" => Grammar::new(GrammarKind::Regex(text(field, value)?), field),
                "guided_choice" => choice(field, value)?,
                "guided_grammar" | "grammar" => Grammar::new(GrammarKind::Text(text(field, value)?), field),
                _ => Grammar::of_schema(field, value)?,
            };
            if let Some(first) = found.as_ref().filter(|_| grammar.shape != GrammarKind::Free) {
                let what = format!("`{}` and `{}` exclude each other", grammar.field, first.field);
                return Err(ApiError::field(&grammar.field, what));
            }
            found = Some(grammar).filter(|grammar| grammar.shape != GrammarKind::Free).or(found);
        }
        Ok(found.unwrap_or_else(Grammar::free))
    }

    /// The form that `response_format` asks for, or what the responses interface calls `text.format`.
    ///
    /// # Errors
    /// What is no form.
    pub(crate) fn of_response_format(
        field: &str,
        format: Value,
        ignored: &mut Vec<String>,
    ) -> Result<Grammar, ApiError> {
        let mut format = Fields::within(format, FORMAT, field)?;
        let kind = format.text("type")?;
        let grammar = match kind.as_deref() {
            Some("text") => Grammar::free(),
            Some("json_object") => match format.take("schema") {
                Some(schema) => Grammar::of_schema(&format.at("schema"), schema)?,
                None => Grammar::new(GrammarKind::Object, field),
            },
            Some("json_schema") => {
                // The responses interface has the schema beside its type.
                let mut inner = match format.fields("json_schema", FORMAT)? {
                    Some(inner) => {
                        format.finish_into(ignored)?;
                        inner
                    }
                    None => format,
                };
                inner.text("name")?;
                inner.take("strict");
                let (place, schema) = (inner.at("schema"), inner.take("schema"));
                let schema = inner.need("schema", schema)?;
                inner.finish_into(ignored)?;
                return Grammar::of_schema(&place, schema);
            }
            _ => {
                let what = format!("`{field}.type`: expected text, json_object or json_schema");
                return Err(ApiError::field(field, what));
            }
        };
        format.finish_into(ignored)?;
        Ok(grammar)
    }

    /// JSON of a schema, which may be sent as its text.
    ///
    /// # Errors
    /// What is no schema.
    pub(crate) fn of_schema(field: &str, schema: Value) -> Result<Grammar, ApiError> {
        let schema = match schema {
            Value::String(text) => serde_json::from_str(&text)
                .map_err(|e| ApiError::field(field, format!("`{field}` is the text of no JSON: {e}")))?,
            other => other,
        };
        match schema {
            schema @ Value::Object(_) => Ok(Grammar::new(GrammarKind::Schema(schema), field)),
            other => Err(wrong(field, "a schema, which is an object", &other)),
        }
    }
}

fn text(field: &str, value: Value) -> Result<String, ApiError> {
    match value {
        Value::String(text) if !text.is_empty() => Ok(text),
        Value::String(_) => Err(ApiError::field(field, format!("`{field}` is empty"))),
        other => Err(wrong(field, "a string", &other)),
    }
}

fn choice(field: &str, value: Value) -> Result<Grammar, ApiError> {
    let Value::Array(list) = value else { return Err(wrong(field, "a list of strings", &value)) };
    if list.is_empty() {
        return Err(ApiError::field(field, format!("`{field}` is empty")));
    }
    let one = |(at, value)| text(&format!("{field}[{at}]"), value);
    let texts = list.into_iter().enumerate().map(one).collect::<Result<_, _>>()?;
    Ok(Grammar::new(GrammarKind::Choice(texts), field))
}

fn of_outputs(mut outputs: Fields, ignored: &mut Vec<String>) -> Result<Grammar, ApiError> {
    let mut found: Option<Grammar> = None;
    for name in ["json", "json_object", "regex", "choice", "grammar"] {
        let place = outputs.at(name);
        let Some(value) = outputs.take(name) else { continue };
        let grammar = match name {
            "json" => Grammar::of_schema(&place, value)?,
            "json_object" if value == Value::Bool(true) => Grammar::new(GrammarKind::Object, &place),
            "json_object" => return Err(wrong(&place, "true", &value)),
            "regex" => Grammar::new(GrammarKind::Regex(text(&place, value)?), &place),
            "choice" => choice(&place, value)?,
            _ => Grammar::new(GrammarKind::Text(text(&place, value)?), &place),
        };
        if let Some(first) = found.replace(grammar) {
            return Err(ApiError::field(&place, format!("`{place}` and `{}` exclude each other", first.field)));
        }
    }
    let missing = ApiError::field(outputs.place(), format!("`{}`: expected an object with one form", outputs.place()));
    outputs.finish_into(ignored)?;
    found.ok_or(missing)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(body: Value) -> Result<Grammar, ApiError> {
        Grammar::of_body(body.to_string().as_bytes())
    }

    #[test]
    fn each_name_of_a_form_is_that_form() {
        let schema = json!({"type": "integer"});
        for (body, shape) in [
            (json!({}), GrammarKind::Free),
            (json!({"response_format": {"type": "text"}, "grammar": ""}), GrammarKind::Free),
            (json!({"response_format": {"type": "json_object"}}), GrammarKind::Object),
            (
                json!({"response_format": {"type": "json_object", "schema": schema}}),
                GrammarKind::Schema(schema.clone()),
            ),
            (json!({"structured_outputs": {"json": schema}}), GrammarKind::Schema(schema.clone())),
            (json!({"structured_outputs": {"json": schema.to_string()}}), GrammarKind::Schema(schema.clone())),
            (json!({"structured_outputs": {"json_object": true}}), GrammarKind::Object),
            (json!({"structured_outputs": {"regex": "a+"}}), GrammarKind::Regex("a+".into())),
            (json!({"structured_outputs": {"choice": ["a"]}}), GrammarKind::Choice(vec!["a".into()])),
            (json!({"structured_outputs": {"grammar": "root ::= \"a\""}}), GrammarKind::Text("root ::= \"a\"".into())),
            (json!({"guided_json": schema}), GrammarKind::Schema(schema.clone())),
            (json!({"guided_regex": "a+"}), GrammarKind::Regex("a+".into())),
            (json!({"guided_choice": ["a", "b"]}), GrammarKind::Choice(vec!["a".into(), "b".into()])),
            (json!({"guided_grammar": "x"}), GrammarKind::Text("x".into())),
            (json!({"grammar": "x"}), GrammarKind::Text("x".into())),
            (json!({"json_schema": schema}), GrammarKind::Schema(schema.clone())),
        ] {
            assert_eq!(read(body.clone()).unwrap().shape, shape, "{body}");
        }
    }

    #[test]
    fn what_is_no_form_is_named() {
        for (body, param) in [
            (json!({"response_format": {"type": "yaml"}}), "response_format"),
            (json!({"response_format": {"type": "json_schema"}}), "response_format.schema"),
            (
                json!({"response_format": {"type": "json_schema", "json_schema": {"x": 1}}}),
                "response_format.json_schema.schema",
            ),
            (json!({"response_format": {"type": "text", "json_schema": {}}}), "response_format.json_schema"),
            (json!({"structured_outputs": {}}), "structured_outputs"),
            (json!({"structured_outputs": {"yaml": 1}}), "structured_outputs"),
            (json!({"structured_outputs": {"json_object": false}}), "structured_outputs.json_object"),
            (json!({"structured_outputs": {"choice": []}}), "structured_outputs.choice"),
            (json!({"structured_outputs": {"choice": [1]}}), "structured_outputs.choice[0]"),
            (json!({"structured_outputs": {"regex": "a", "json": {}}}), "structured_outputs.regex"),
            (json!({"structured_outputs": {"structural_tag": "{}"}}), "structured_outputs.structural_tag"),
            (json!({"guided_json": "{"}), "guided_json"),
            (json!({"guided_json": 3}), "guided_json"),
            (json!({"guided_regex": ""}), "guided_regex"),
            (json!({"grammar": "x", "json_schema": {}}), "json_schema"),
            (json!({"grammar_lazy": true}), "grammar_lazy"),
        ] {
            assert_eq!(read(body.clone()).unwrap_err().param.as_deref(), Some(param), "{body}");
        }
    }
}
