//! GET /openapi.json: what this server takes and answers, from the tables that requests are read by.

use crate::answers::{ErrorForm, SCHEMAS};
use crate::endpoints::{BodySchema, ENDPOINTS, Endpoint, EndpointResponse};
use crate::fields::{FieldSpec, Treatment};
use crate::reply;
use axum::response::Response;
use serde_json::{Map, Value, json};

/// What a client's request can be refused with, whatever the path.
const REFUSALS: &[(&str, &str)] = &[
    ("400", "The request makes no sense, or asks for what is not there; the error names the field"),
    ("401", "A key is wanted"),
    ("403", "This host or origin may not ask"),
    ("404", "There is no such model, response or path"),
    ("405", "The path is asked for by another method"),
    ("431", "The headers are too large"),
    ("503", "The model cannot be loaded now, its engine has stopped, or the server is about to end"),
];

/// What a request with a body can be refused with besides.
const OF_BODIES: &[(&str, &str)] = &[
    ("408", "The body did not come in time"),
    ("409", "The model is in use"),
    ("413", "The body is too large"),
    ("415", "The body is of a type that is not understood"),
    ("429", "Too much waits already; Retry-After says when to come again"),
];

/// The endpoint.
pub(crate) async fn json() -> Response {
    reply::json(&document())
}

fn document() -> Value {
    let mut paths = Map::new();
    for endpoint in ENDPOINTS {
        let path = paths.entry(endpoint.path).or_insert_with(|| json!({}));
        path[endpoint.method] = operation(endpoint);
    }
    let schemas: Map<String, Value> = SCHEMAS.iter().map(|(name, text)| ((*name).to_owned(), parsed(text))).collect();
    json!({
        "openapi": "3.1.0",
        "info": {"title": "yirage", "version": env!("CARGO_PKG_VERSION")},
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{}, {"key": []}],
    })
}

/// A schema from its text. A test reads all of them, so none is lost here.
fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| json!({}))
}

fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

fn operation(endpoint: &Endpoint) -> Value {
    let mut responses = Map::from_iter([("200".to_owned(), answer(endpoint.answer))]);
    let of_body = if endpoint.body.is_some() { OF_BODIES } else { &[] };
    let error = reference(ErrorForm::of(endpoint.path).schema());
    for (status, description) in REFUSALS.iter().chain(of_body) {
        let refusal = json!({"description": description, "content": {"application/json": {"schema": error}}});
        responses.insert((*status).to_owned(), refusal);
    }
    let mut operation = json!({"summary": endpoint.summary, "responses": responses});
    if endpoint.path.contains("{id}") {
        let id = json!({"name": "id", "in": "path", "required": true, "schema": {"type": "string", "minLength": 1}});
        operation["parameters"] = json!([id]);
    }
    if let Some(body) = &endpoint.body {
        let mut forms: Vec<Value> = body.forms.iter().map(schema).collect();
        let schema = if forms.len() == 1 { forms.remove(0) } else { json!({"anyOf": forms}) };
        operation["requestBody"] = json!({"required": true, "content": {"application/json": {"schema": schema}}});
    }
    operation
}

fn answer(of: EndpointResponse) -> Value {
    let text = json!({"schema": {"type": "string"}});
    let content = match of {
        EndpointResponse::Json(name) => json!({"application/json": {"schema": reference(name)}}),
        // A schema of the whole stream is one that no event has.
        EndpointResponse::Events(name) => {
            json!({"application/json": {"schema": reference(name)}, "text/event-stream": {}})
        }
        EndpointResponse::Lines(name) => {
            json!({"application/json": {"schema": reference(name)}, "application/x-ndjson": text})
        }
        EndpointResponse::Metrics => json!({"text/plain": text}),
        EndpointResponse::Bytes => {
            json!({"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}})
        }
    };
    json!({"description": "The answer", "content": content})
}

/// The schema of a body: all fields of its tables. Others change nothing.
fn schema(form: &BodySchema) -> Value {
    let mut properties = Map::new();
    for field in form.table.iter().copied().flatten() {
        properties.insert(field.name.to_owned(), property(field, form));
    }
    let object = json!({
        "type": "object",
        "required": form.needs,
        "properties": properties,
    });
    if form.list { json!({"type": "array", "items": object}) } else { object }
}

fn property(field: &FieldSpec, form: &BodySchema) -> Value {
    let nothing = json!({"description": "taken, and changes nothing here"});
    match field.treatment {
        Treatment::Refused(why, except) => {
            let values: Vec<Value> = except.iter().map(|text| parsed(text)).chain([Value::Null]).collect();
            json!({"enum": values, "description": format!("not supported: {why}")})
        }
        Treatment::Ignored => nothing,
        Treatment::Honoured if form.reads.is_some_and(|reads| !reads.contains(&field.name)) => nothing,
        Treatment::Honoured if form.needs.contains(&field.name) => parsed(field.schema),
        Treatment::Honoured => or_null(parsed(field.schema)),
    }
}

/// The schema, or null: a field that is null is one that is not there.
fn or_null(schema: Value) -> Value {
    let Value::Object(mut map) = schema else { return schema };
    match map.get("type").cloned() {
        Some(Value::String(one)) if one != "null" => drop(map.insert("type".into(), json!([one, "null"]))),
        Some(_) => {}
        None if map.is_empty() => {}
        None => return json!({"anyOf": [map, {"type": "null"}]}),
    }
    Value::Object(map)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_of_every_table_is_in_the_document() {
        let document = document();
        for endpoint in ENDPOINTS {
            let operation = &document["paths"][endpoint.path][endpoint.method];
            assert!(operation["responses"]["200"].is_object(), "{}", endpoint.path);
            let Some(body) = &endpoint.body else { continue };
            let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
            for (at, form) in body.forms.iter().enumerate() {
                let schema = if body.forms.len() == 1 { schema } else { &schema["anyOf"][at] };
                let properties = if form.list { &schema["items"]["properties"] } else { &schema["properties"] };
                for field in form.table.iter().copied().flatten() {
                    let known = serde_json::from_str::<Value>(field.schema).is_ok_and(|schema| schema.is_object());
                    assert!(known && properties[field.name].is_object(), "{} {}", endpoint.path, field.name);
                }
            }
        }
    }

    #[test]
    fn null_is_none_where_a_field_may_be_left_out() {
        assert_eq!(or_null(json!({"type": "string"})), json!({"type": ["string", "null"]}));
        assert_eq!(or_null(json!({"type": ["string", "null"]})), json!({"type": ["string", "null"]}));
        assert_eq!(or_null(json!({"enum": [1]})), json!({"anyOf": [{"enum": [1]}, {"type": "null"}]}));
        assert_eq!(or_null(json!({})), json!({}));
    }

    #[test]
    fn answers_have_a_schema() {
        for endpoint in ENDPOINTS {
            let (EndpointResponse::Json(name) | EndpointResponse::Events(name) | EndpointResponse::Lines(name)) =
                endpoint.answer
            else {
                continue;
            };
            assert!(SCHEMAS.iter().any(|(known, _)| *known == name), "{name}");
        }
    }
}
