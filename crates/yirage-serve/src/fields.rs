//! The fields of a request's body: taken one by one into typed values; what nobody took is refused or reported.
//!
//! Tables say of each field of a protocol whether it is honoured, accepted without effect, or refused and why. Parsing, the
//! header that names ignored fields and /openapi.json read the same tables. Objects within a body are read the same way:
//! their fields are named with the place where they stand.
//!
//! Clients send new hints before any server knows them, so a field that no table has changes nothing and is named. One that
//! is nearly the name of a field which was meant is refused: leaving it out would change the answer.

use crate::answer_fields::changes_answers;
use crate::error::ApiError;
use serde_json::{Map, Value};
use std::cmp::Ordering;

/// What becomes of a field.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Treatment {
    /// It does what it says.
    Honoured,
    /// It is taken and changes nothing here, which the response says in a header.
    Ignored,
    /// It is refused for this reason, but for these values, as JSON, that ask for nothing.
    Refused(&'static str, &'static [&'static str]),
}

/// A field of a protocol.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FieldSpec {
    pub(crate) name: &'static str,
    /// Its JSON schema.
    pub(crate) schema: &'static str,
    pub(crate) treatment: Treatment,
}

/// A field that is honoured.
pub(crate) const fn honoured(name: &'static str, schema: &'static str) -> FieldSpec {
    FieldSpec { name, schema, treatment: Treatment::Honoured }
}

/// A field that changes nothing here.
pub(crate) const fn ignored(name: &'static str, schema: &'static str) -> FieldSpec {
    FieldSpec { name, schema, treatment: Treatment::Ignored }
}

/// A field that is refused unless its value asks for nothing.
pub(crate) const fn refused(name: &'static str, why: &'static str, except: &'static [&'static str]) -> FieldSpec {
    FieldSpec { name, schema: "{}", treatment: Treatment::Refused(why, except) }
}

/// The tables of one body: its own fields, and those it shares with others.
pub(crate) type FieldTable = &'static [&'static [FieldSpec]];

/// What is left of a body.
#[derive(Debug)]
pub(crate) struct Fields {
    left: Map<String, Value>,
    table: FieldTable,
    /// Where the object stands in the body; empty for the body itself.
    place: String,
}

impl Fields {
    /// The fields of a body.
    ///
    /// # Errors
    /// What is no JSON, or no object.
    pub(crate) fn parse(body: &[u8], table: FieldTable) -> Result<Fields, ApiError> {
        let value: Value = serde_json::from_slice(body).map_err(|e| {
            let (line, column) = (e.line(), e.column());
            ApiError::invalid(format!("the body is no JSON: {e} (line {line}, column {column})"))
        })?;
        match value {
            Value::Object(left) => Ok(Fields { left, table, place: String::new() }),
            other => Err(ApiError::invalid(format!("the body has to be an object, not {}", kind(&other)))),
        }
    }

    /// The fields of an object within a body, which stands at `place`.
    ///
    /// # Errors
    /// Another value.
    pub(crate) fn within(value: Value, table: FieldTable, place: &str) -> Result<Fields, ApiError> {
        match value {
            Value::Object(left) => Ok(Fields { left, table, place: place.to_owned() }),
            other => Err(wrong(place, "an object", &other)),
        }
    }

    /// The name of a field with the place of its object.
    pub(crate) fn at(&self, name: &str) -> String {
        if self.place.is_empty() { name.to_owned() } else { format!("{}.{name}", self.place) }
    }

    /// The error of a field, which `why` says.
    pub(crate) fn error(&self, name: &str, why: impl std::fmt::Display) -> ApiError {
        let place = self.at(name);
        let what = format!("`{place}`: {why}");
        ApiError::field(place, what)
    }

    /// Where the object stands.
    pub(crate) fn place(&self) -> &str {
        &self.place
    }

    /// Takes a field; null is none.
    pub(crate) fn take(&mut self, name: &str) -> Option<Value> {
        debug_assert!(self.table.iter().copied().flatten().any(|f| f.name == name), "{name} is in no table");
        self.left.remove(name).filter(|value| !value.is_null())
    }

    /// A copy of the numbers, and of the fields of `others`.
    pub(crate) fn numbers_and(&self, others: &[FieldSpec]) -> Fields {
        let is_one = |(name, value): &(&String, &Value)| value.is_number() || others.iter().any(|f| f.name == *name);
        let left = self.left.iter().filter(is_one).map(|(name, value)| (name.clone(), value.clone())).collect();
        Fields { left, table: self.table, place: self.place.clone() }
    }

    /// A field that stays where it is.
    pub(crate) fn peek(&self, name: &str) -> Option<&Value> {
        self.left.get(name)
    }

    /// Whether a field is there and not null.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.left.get(name).is_some_and(|value| !value.is_null())
    }

    /// Leaves a field out whose value asks for nothing.
    pub(crate) fn leave_out(&mut self, name: &str, value: &Value) {
        if self.left.get(name) == Some(value) {
            self.left.remove(name);
        }
    }

    /// Takes a field that has to be there.
    ///
    /// # Errors
    /// It is not.
    pub(crate) fn need<T>(&mut self, name: &str, value: Option<T>) -> Result<T, ApiError> {
        value.ok_or_else(|| {
            let place = self.at(name);
            ApiError::field(&place, format!("`{place}` is missing"))
        })
    }

    /// Takes a text.
    ///
    /// # Errors
    /// Another value.
    pub(crate) fn text(&mut self, name: &str) -> Result<Option<String>, ApiError> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(wrong(&self.at(name), "a string", &other)),
        }
    }

    /// Takes a switch.
    ///
    /// # Errors
    /// Another value.
    pub(crate) fn switch(&mut self, name: &str) -> Result<Option<bool>, ApiError> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::Bool(on)) => Ok(Some(on)),
            Some(other) => Err(wrong(&self.at(name), "true or false", &other)),
        }
    }

    /// Takes a number.
    ///
    /// # Errors
    /// Another value.
    pub(crate) fn number(&mut self, name: &str) -> Result<Option<f32>, ApiError> {
        let Some(value) = self.take(name) else { return Ok(None) };
        value.as_f64().map(|x| Some(x as f32)).ok_or_else(|| wrong(&self.at(name), "a number", &value))
    }

    /// Takes a whole number that fits into `T`.
    ///
    /// # Errors
    /// Another value.
    pub(crate) fn whole<T: TryFrom<i64>>(&mut self, name: &str, expected: &str) -> Result<Option<T>, ApiError> {
        let Some(value) = self.take(name) else { return Ok(None) };
        let number = whole_number(&value).and_then(|n| T::try_from(n).ok());
        number.map(Some).ok_or_else(|| wrong(&self.at(name), expected, &value))
    }

    /// Takes the most tokens that are wanted; -1, which LM Studio's and llama.cpp's clients send, is as many as fit.
    ///
    /// # Errors
    /// Another value.
    pub(crate) fn limit(&mut self, name: &str) -> Result<Option<u32>, ApiError> {
        self.leave_out(name, &Value::from(-1));
        self.whole(name, "a whole number from 0, or -1 for as many as fit")
    }

    /// Takes a list.
    ///
    /// # Errors
    /// Another value.
    pub(crate) fn list(&mut self, name: &str) -> Result<Option<Vec<Value>>, ApiError> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::Array(list)) => Ok(Some(list)),
            Some(other) => Err(wrong(&self.at(name), "a list", &other)),
        }
    }

    /// Takes an object.
    ///
    /// # Errors
    /// Another value.
    pub(crate) fn object(&mut self, name: &str) -> Result<Option<Map<String, Value>>, ApiError> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::Object(map)) => Ok(Some(map)),
            Some(other) => Err(wrong(&self.at(name), "an object", &other)),
        }
    }

    /// Takes the fields of an object.
    ///
    /// # Errors
    /// Another value.
    pub(crate) fn fields(&mut self, name: &str, table: FieldTable) -> Result<Option<Fields>, ApiError> {
        let place = self.at(name);
        Ok(self.object(name)?.map(|left| Fields { left, table, place }))
    }

    /// Takes one text or a list of them.
    ///
    /// # Errors
    /// Another value.
    pub(crate) fn texts(&mut self, name: &str) -> Result<Vec<String>, ApiError> {
        match self.take(name) {
            None => Ok(Vec::new()),
            Some(Value::String(text)) => Ok(vec![text]),
            Some(Value::Array(list)) => list
                .into_iter()
                .map(|item| match item {
                    Value::String(text) => Ok(text),
                    other => Err(wrong(&self.at(name), "a string or a list of strings", &other)),
                })
                .collect(),
            Some(other) => Err(wrong(&self.at(name), "a string or a list of strings", &other)),
        }
    }

    /// Takes a list of token ids.
    ///
    /// # Errors
    /// Another value.
    pub(crate) fn ids(&mut self, name: &str) -> Result<Option<Vec<u32>>, ApiError> {
        let place = self.at(name);
        self.list(name)?.map(|list| token_ids(&place, &list)).transpose()
    }

    /// Looks at what nobody took: the names that change nothing.
    ///
    /// # Errors
    /// A field that is refused, and one that is nearly the name of another.
    pub(crate) fn finish(self) -> Result<Vec<String>, ApiError> {
        let (names, unused) = self.rest()?;
        match unused.first() {
            None => Ok(names),
            Some(name) => {
                let what = format!("`{name}` has no effect beside the other fields; leave it out");
                Err(ApiError::field(name, what))
            }
        }
    }

    /// The same for the fields of an answer: one that another interface has, and that would change the answer, is refused
    /// rather than left out. The names that change nothing join `ignored`.
    ///
    /// # Errors
    /// As [`Fields::finish`]; such a field.
    pub(crate) fn finish_answer(self, ignored: &mut Vec<String>) -> Result<(), ApiError> {
        let is_known = |name: &str| self.table.iter().copied().flatten().any(|field| field.name == name);
        let lost = self.left.iter().find(|(name, value)| !is_known(name) && changes_answers(name, value));
        if let Some((name, _)) = lost {
            let place = self.at(name);
            let what = format!(
                "`{place}` is a field of another interface, and without it the answer would be another one; send this \
                 interface's own word for it, or leave it out"
            );
            return Err(ApiError { code: Some("unknown_parameter"), ..ApiError::field(place, what) });
        }
        self.finish_into(ignored)
    }

    /// The same where a table is used in part: what another endpoint, or an object of another type, would honour changes
    /// nothing here.
    ///
    /// # Errors
    /// As [`Fields::finish`].
    pub(crate) fn finish_part(self) -> Result<Vec<String>, ApiError> {
        let (mut names, unused) = self.rest()?;
        names.extend(unused.iter().map(|place| without_indices(place)));
        Ok(names)
    }

    /// The same for an object within a body, whose names that change nothing join `ignored`.
    ///
    /// # Errors
    /// As [`Fields::finish`].
    pub(crate) fn finish_into(self, ignored: &mut Vec<String>) -> Result<(), ApiError> {
        ignored.extend(self.finish()?);
        Ok(())
    }

    /// Names that change nothing, and names that would elsewhere. Of an object in a list the place in the list is left out.
    fn rest(mut self) -> Result<(Vec<String>, Vec<String>), ApiError> {
        let mut unused = Vec::new();
        let mut names = Vec::new();
        for (name, value) in std::mem::take(&mut self.left).into_iter().filter(|(_, value)| !value.is_null()) {
            let place = self.at(&name);
            let Some(field) = self.table.iter().copied().flatten().find(|field| field.name == name) else {
                if let Some(meant) = self.table.iter().copied().flatten().find(|field| is_nearly(&name, field.name)) {
                    let what = format!("`{place}` is no field that this server knows; did you mean `{}`?", meant.name);
                    return Err(ApiError { code: Some("unknown_parameter"), ..ApiError::field(place, what) });
                }
                names.push(without_indices(&place));
                continue;
            };
            match field.treatment {
                Treatment::Refused(why, except) => {
                    let text = value.to_string();
                    if !except.contains(&text.as_str()) {
                        return Err(ApiError::unsupported(&place, why));
                    }
                }
                Treatment::Ignored => names.push(without_indices(&place)),
                Treatment::Honoured => unused.push(place),
            }
        }
        Ok((names, unused))
    }
}

/// Whether a name is another one with a slip of the fingers: a letter too many, too few, another or two in the wrong
/// order. Short names are too near to each other to tell.
fn is_nearly(name: &str, known: &str) -> bool {
    const LETTERS: usize = 6;
    let (a, b): (Vec<char>, Vec<char>) = (name.chars().collect(), known.chars().collect());
    if a.len().min(b.len()) < LETTERS || a.len().abs_diff(b.len()) > 1 {
        return false;
    }
    let same = a.iter().zip(&b).take_while(|(a, b)| a == b).count();
    let (a, b) = (&a[same..], &b[same..]);
    match a.len().cmp(&b.len()) {
        Ordering::Less => *a == b[1..],
        Ordering::Greater => a[1..] == *b,
        Ordering::Equal if a.is_empty() => false,
        Ordering::Equal => a[1..] == b[1..] || a.len() > 1 && a[0] == b[1] && a[1] == b[0] && a[2..] == b[2..],
    }
}

/// A place without the numbers of list entries: `messages[3].content[0].text` is `messages.content.text`.
pub(crate) fn without_indices(place: &str) -> String {
    let mut pieces = place.split('[');
    let first = pieces.next().unwrap_or_default().to_owned();
    pieces.fold(first, |all, piece| all + piece.split_once(']').map_or(piece, |(_, behind)| behind))
}

/// A whole number, which may be written with a point as JSON Schema has it: some languages have one kind of numbers.
fn whole_number(value: &Value) -> Option<i64> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let written = || value.as_f64().filter(|x| x.fract() == 0.0 && x.abs() <= EXACT).map(|x| x as i64);
    value.as_i64().or_else(written)
}

/// Token ids of a list of numbers.
///
/// # Errors
/// Anything else in it, by its place.
pub(crate) fn token_ids(name: &str, list: &[Value]) -> Result<Vec<u32>, ApiError> {
    let id = |value: &Value| value.as_u64().and_then(|id| u32::try_from(id).ok());
    let mut ids = Vec::with_capacity(list.len());
    for (at, value) in list.iter().enumerate() {
        let place = || format!("{name}[{at}]");
        ids.push(id(value).ok_or_else(|| wrong(&place(), "a token id, a whole number below 2^32", value))?);
    }
    Ok(ids)
}

/// The error for a value of the wrong kind. What was sent is shown where it is short: it may be somebody's text.
pub(crate) fn wrong(name: &str, expected: &str, value: &Value) -> ApiError {
    let shown = match value {
        Value::Number(_) | Value::Bool(_) => value.to_string(),
        other => kind(other).to_owned(),
    };
    ApiError::field(name, format!("`{name}`: expected {expected}, not {shown}"))
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a truth value",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: FieldTable = &[&[
        honoured("a", "{}"),
        honoured("n", "{}"),
        ignored("user", "{}"),
        refused("audio", "there is no sound", &["[]", "false"]),
    ]];

    fn fields(text: &str) -> Fields {
        Fields::parse(text.as_bytes(), TABLE).unwrap()
    }

    #[test]
    fn what_nobody_took_is_ignored_refused_or_unknown() {
        assert_eq!(fields(r#"{"user": "u", "audio": [], "b": null}"#).finish().unwrap(), ["user"]);
        let refused = fields(r#"{"audio": {}}"#).finish().unwrap_err();
        assert_eq!(refused.param.as_deref(), Some("audio"));
        assert!(refused.message.contains("there is no sound"));
        assert_eq!(fields(r#"{"b": 1, "telemetry": {}}"#).finish().unwrap(), ["b", "telemetry"]);
        assert!(fields(r#"{"a": 1}"#).finish().is_err(), "a field that nobody looked at");
    }

    #[test]
    fn whole_numbers_may_have_a_point() {
        for (value, wanted) in [("3.0", Some(3)), ("2e2", Some(200)), ("-0.0", Some(0)), ("3.5", None), ("1e300", None)]
        {
            let found = fields(&format!("{{\"n\": {value}}}")).whole::<i32>("n", "a whole number");
            assert_eq!(found.ok().flatten(), wanted, "{value}");
        }
    }

    #[test]
    fn a_field_of_another_interface_that_changes_answers_is_refused() {
        for (body, lost) in [
            (r#"{"stop": ["x"]}"#, Some("stop")),
            (r#"{"system": "be brief"}"#, Some("system")),
            (r#"{"format": "json"}"#, Some("format")),
            (r#"{"stop": [], "format": null, "top_p": 1.0, "tools": []}"#, None),
            (r#"{"keep_alive": 5, "telemetry": {}}"#, None),
        ] {
            let refused = fields(body).finish_answer(&mut Vec::new()).err();
            assert_eq!(refused.and_then(|error| error.param).as_deref(), lost, "{body}");
        }
        let mut names = Vec::new();
        fields(r#"{"user": "u", "keep_alive": 5}"#).finish_answer(&mut names).unwrap();
        assert_eq!(names, ["user", "keep_alive"]);
    }

    #[test]
    fn what_is_nearly_a_name_is_refused() {
        const MEANT: FieldTable =
            &[&[honoured("temperature", "{}"), honoured("top_k", "{}"), honoured("max_tokens", "{}")]];
        for wrong in ["temprature", "temperatrue", "temperatures", "temperatura", "max_token", "max_tokns", "maxtokens"]
        {
            let body = serde_json::json!({"max_tokens": 1, wrong: 2}).to_string();
            let mut fields = Fields::parse(body.as_bytes(), MEANT).unwrap();
            fields.take("max_tokens");
            let error = fields.finish().unwrap_err();
            assert_eq!((error.code, error.param.as_deref()), (Some("unknown_parameter"), Some(wrong)));
            assert!(error.message.contains("did you mean"), "{}", error.message);
        }
        for other in ["top_a", "tok_k", "temperature_last", "max_tokens_to_sample", "heat", "client_metadata"] {
            let body = serde_json::json!({other: 2}).to_string();
            assert_eq!(Fields::parse(body.as_bytes(), MEANT).unwrap().finish().unwrap(), [other]);
        }
    }

    #[test]
    fn fields_within_are_named_with_their_place() {
        let within = |value| Fields::within(value, TABLE, "messages[3].content[0]").unwrap();
        let mut names = Vec::new();
        within(serde_json::json!({"user": "u"})).finish_into(&mut names).unwrap();
        assert_eq!(names, ["messages.content.user"]);
        assert_eq!(within(serde_json::json!({"b": 1})).finish().unwrap(), ["messages.content.b"]);
        assert_eq!(within(serde_json::json!({"a": 1})).finish_part().unwrap(), ["messages.content.a"]);
        let wrong = within(serde_json::json!({"a": 1})).text("a").unwrap_err();
        assert_eq!(wrong.param.as_deref(), Some("messages[3].content[0].a"));
    }

    #[test]
    fn values_of_the_wrong_kind_are_named() {
        let error = fields(r#"{"a": [1, "secret"]}"#).text("a").unwrap_err();
        assert_eq!((error.param.as_deref(), error.message.as_str()), (Some("a"), "`a`: expected a string, not a list"));
        assert!(fields(r#"{"a": 1.5}"#).whole::<u32>("a", "a whole number").is_err());
        assert!(fields(r#"{"a": -1}"#).whole::<u32>("a", "a whole number").is_err());
        assert_eq!(fields(r#"{"a": 7}"#).whole::<u32>("a", "a whole number").unwrap(), Some(7));
        assert_eq!(fields(r#"{"a": [1, -2]}"#).ids("a").unwrap_err().param.as_deref(), Some("a[1]"));
        assert!(fields(r#"{"a": null}"#).text("a").unwrap().is_none());
        for (sent, wanted) in
            [("-1", Some(None)), ("0", Some(Some(0))), ("7", Some(Some(7))), ("-2", None), ("1.5", None)]
        {
            assert_eq!(fields(&format!(r#"{{"n": {sent}}}"#)).limit("n").ok(), wanted, "{sent}");
        }
        for text in ["", "[]", "{", "{\"a\":1}x", "nul", "\u{7f}"] {
            assert!(Fields::parse(text.as_bytes(), TABLE).is_err(), "{text:?}");
        }
    }
}
