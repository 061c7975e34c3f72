//! /openapi.json keeps its word: real answers and errors have the schemas that it promises.

use crate::support::{self, encoder, engine_options, get, options, post, serve_with, story};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use yirage_engine::EngineOptions;
use yirage_serve::{RunningServer, body_paths};

/// As much of JSON Schema (2020-12) as the document uses. A keyword that is not here is an error, so none is passed over.
fn fits(schema: &Value, value: &Value, root: &Value) -> Result<(), String> {
    let wrong = |what: &str| Err(format!("{what}: {value} is not of {schema}"));
    for (keyword, of) in schema.as_object().unwrap() {
        match keyword.as_str() {
            "$ref" => fits(root.pointer(&of.as_str().unwrap()[1..]).unwrap(), value, root)?,
            "anyOf" if !of.as_array().unwrap().iter().any(|one| fits(one, value, root).is_ok()) => {
                return wrong("anyOf");
            }
            "enum" if !of.as_array().unwrap().contains(value) => return wrong("enum"),
            "const" if of != value => return wrong("const"),
            "type" if !has_type(of, value) => return wrong("type"),
            "required" => {
                let missing = of.as_array().unwrap().iter().find(|name| value.get(name.as_str().unwrap()).is_none());
                if let (Some(name), true) = (missing, value.is_object()) {
                    return wrong(&format!("{name} is missing"));
                }
            }
            "properties" => {
                for (name, inner) in of.as_object().unwrap() {
                    value.get(name).map_or(Ok(()), |value| fits(inner, value, root))?;
                }
            }
            "additionalProperties" => {
                let known = schema.get("properties").and_then(Value::as_object);
                let others = value.as_object().into_iter().flatten();
                let mut others = others.filter(|(name, _)| known.is_none_or(|known| !known.contains_key(*name)));
                others.try_for_each(|(_, value)| fits(of, value, root))?;
            }
            "items" => value.as_array().into_iter().flatten().try_for_each(|one| fits(of, one, root))?,
            "minItems" if value.as_array().is_some_and(|list| (list.len() as u64) < of.as_u64().unwrap()) => {
                return wrong("minItems");
            }
            "maxItems" if value.as_array().is_some_and(|list| list.len() as u64 > of.as_u64().unwrap()) => {
                return wrong("maxItems");
            }
            "minimum" if value.as_f64().is_some_and(|number| number < of.as_f64().unwrap()) => return wrong("minimum"),
            "minProperties" if value.as_object().is_some_and(|map| (map.len() as u64) < of.as_u64().unwrap()) => {
                return wrong("minProperties");
            }
            "maximum" if value.as_f64().is_some_and(|number| number > of.as_f64().unwrap()) => return wrong("maximum"),
            "exclusiveMinimum" if value.as_f64().is_some_and(|number| number <= of.as_f64().unwrap()) => {
                return wrong("exclusiveMinimum");
            }
            "minLength" if value.as_str().is_some_and(|text| (text.chars().count() as u64) < of.as_u64().unwrap()) => {
                return wrong("minLength");
            }
            "anyOf" | "enum" | "const" | "type" | "minItems" | "maxItems" | "minProperties" => {}
            "minimum" | "maximum" | "exclusiveMinimum" | "minLength" | "description" => {}
            other => return wrong(&format!("the keyword {other} is not known here")),
        }
    }
    Ok(())
}

fn has_type(of: &Value, value: &Value) -> bool {
    let is = |name: &Value| match name.as_str().unwrap() {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("{other} is no type"),
    };
    of.as_array().map_or_else(|| is(of), |several| several.iter().any(is))
}

fn server() -> RunningServer {
    // The template writes a tool's whole schema into the prompt.
    let engine = EngineOptions { context: Some(512), ..engine_options() };
    serve_with(options(), vec![story(engine), encoder("embed"), encoder("score")])
}

/// A body for each path that takes one, and answers it.
fn bodies() -> Vec<(&'static str, Value)> {
    let messages = json!([{"role": "user", "content": "a"}]);
    let schema = json!({"type": "object", "properties": {"x": {"enum": [1, 2]}}, "required": ["x"],
        "additionalProperties": false});
    let function = json!({"name": "f", "parameters": schema});
    let tool = json!({"type": "function", "function": function});
    let short = json!({"num_predict": 4});
    vec![
        (
            "/v1/chat/completions",
            json!({"model": "story", "messages": messages, "max_tokens": 4, "n": 2, "logprobs": true,
            "top_logprobs": 2, "return_token_ids": true}),
        ),
        (
            "/v1/chat/completions",
            json!({"model": "story", "messages": messages, "max_tokens": 100, "tools": [tool],
            "tool_choice": "required", "parallel_tool_calls": false}),
        ),
        (
            "/v1/completions",
            json!({"model": "story", "prompt": ["a", "b"], "max_tokens": 4, "logprobs": 2, "echo": true,
            "return_token_ids": true}),
        ),
        ("/v1/responses", json!({"model": "story", "input": "a", "max_output_tokens": 4})),
        ("/v1/responses/input_tokens", json!({"model": "story", "input": "a"})),
        ("/v1/embeddings", json!({"model": "embed", "input": ["a", "b"]})),
        ("/v1/embeddings", json!({"model": "embed", "input": "a", "encoding_format": "base64"})),
        ("/v1/rerank", json!({"model": "score", "query": "a", "documents": ["b", "c"]})),
        ("/v1/score", json!({"model": "score", "text_1": "a", "text_2": ["b", "c"]})),
        ("/v1/messages", json!({"model": "story", "messages": messages, "max_tokens": 4})),
        (
            "/v1/messages",
            json!({"model": "story", "messages": messages, "max_tokens": 100, "tool_choice": {"type": "any"},
            "tools": [{"name": "f", "input_schema": schema}]}),
        ),
        ("/v1/messages/count_tokens", json!({"model": "story", "messages": messages})),
        ("/completion", json!({"model": "story", "prompt": "a", "n_predict": 4, "return_tokens": true})),
        ("/tokenize", json!({"model": "story", "content": "a cat", "with_pieces": true})),
        ("/tokenize", json!({"model": "story", "prompt": "a cat", "return_token_strs": true})),
        ("/tokenize", json!({"model": "story", "messages": messages})),
        ("/detokenize", json!({"model": "story", "tokens": [5, 6]})),
        ("/apply-template", json!({"model": "story", "messages": messages})),
        ("/lora-adapters", json!([])),
        ("/models/load", json!({"model": "story"})),
        ("/models/unload", json!({"model": "score"})),
        ("/api/show", json!({"model": "story"})),
        ("/api/pull", json!({"model": "story", "stream": false})),
        ("/api/chat", json!({"model": "story", "messages": messages, "stream": false, "options": short})),
        ("/api/chat", json!({"model": "story"})),
        ("/api/generate", json!({"model": "story", "prompt": "a", "stream": false, "options": short})),
        ("/api/embed", json!({"model": "embed", "input": ["a", "b"]})),
        ("/api/embeddings", json!({"model": "embed", "prompt": "a"})),
    ]
}

#[test]
fn answers_have_the_schemas_of_the_document() {
    let server = server();
    let document = get(server.address(), "/openapi.json").json();
    let promised = |path: &str, method: &str, status: u16| {
        document["paths"][path][method]["responses"][status.to_string()]["content"]["application/json"]["schema"]
            .clone()
    };
    let mut tried = BTreeSet::new();
    for (path, body) in bodies() {
        let answered = post(server.address(), path, &body);
        assert_eq!(answered.status, 200, "{path} {body}: {}", answered.text());
        let taken = &document["paths"][path]["post"]["requestBody"]["content"]["application/json"]["schema"];
        fits(taken, &body, &document).unwrap_or_else(|why| panic!("the body of {path}: {why}"));
        fits(&promised(path, "post", 200), &answered.json(), &document).unwrap_or_else(|why| panic!("{path}: {why}"));
        tried.insert(path);
    }
    let erased = post(server.address(), "/slots/0?action=erase", &json!({}));
    fits(&promised("/slots/{id}", "post", 200), &erased.json(), &document).unwrap_or_else(|why| panic!("slots: {why}"));
    tried.insert("/slots/{id}");
    // Bytes have no schema; another test reads them.
    tried.insert("/prefill");
    // The model has no tokens to fill in between texts, and this server loads no adapters: another test's does.
    let left: Vec<&str> = body_paths().filter(|path| !tried.contains(path)).collect();
    assert_eq!(left, ["/infill", "/v1/load_lora_adapter", "/v1/unload_lora_adapter"]);
    for (path, methods) in document["paths"].as_object().unwrap() {
        if methods.get("get").is_none() || path == "/metrics" || path.starts_with("/v1/responses") {
            continue;
        }
        let answered = get(server.address(), &path.replace("{id}", "story"));
        fits(&promised(path, "get", 200), &answered.json(), &document).unwrap_or_else(|why| panic!("{path}: {why}"));
    }
}

#[test]
fn responses_that_are_kept_have_the_schemas_of_the_document() {
    let server = server();
    let document = get(server.address(), "/openapi.json").json();
    let schema = json!({"$ref": "#/components/schemas/Response"});
    let body = json!({"model": "story", "input": "a", "max_output_tokens": 200, "background": true});
    let begun = post(server.address(), "/v1/responses", &body).json();
    fits(&schema, &begun, &document).unwrap();
    let at = format!("/v1/responses/{}", begun["id"].as_str().unwrap());
    fits(&schema, &get(server.address(), &at).json(), &document).unwrap();
    fits(&schema, &post(server.address(), &format!("{at}/cancel"), &json!({})).json(), &document).unwrap();
    let forgotten = support::raw(server.address(), &support::request("DELETE", &at, &[], b"")).json();
    fits(&json!({"$ref": "#/components/schemas/Forgotten"}), &forgotten, &document).unwrap();
}

#[test]
fn errors_have_the_schemas_of_the_document() {
    let server = server();
    let document = get(server.address(), "/openapi.json").json();
    for path in body_paths() {
        for body in [json!([[]]), json!({"model": "nobody", "name": "nobody"}), json!({"model": 3}), json!({"x": 1})] {
            let refused = post(server.address(), path, &body);
            assert!((400..500).contains(&refused.status), "{path} {body}: {}", refused.text());
            let responses = &document["paths"][path]["post"]["responses"];
            let schema = &responses[refused.status.to_string()]["content"]["application/json"]["schema"];
            assert!(schema.is_object(), "{path} does not say that it answers {}", refused.status);
            fits(schema, &refused.json(), &document).unwrap_or_else(|why| panic!("{path} {body}: {why}"));
        }
    }
}

#[test]
fn a_body_that_the_document_refuses_is_refused() {
    let server = server();
    let document = get(server.address(), "/openapi.json").json();
    let mut tried = BTreeSet::new();
    // A value of a wrong kind in the place of each field.
    for (path, body) in bodies().into_iter().filter(|(path, _)| tried.insert(*path)) {
        let schema = &document["paths"][path]["post"]["requestBody"]["content"]["application/json"]["schema"];
        let Some(properties) = schema["properties"].as_object() else { continue };
        for (name, property) in properties {
            for value in [json!({"$": [{}]}), json!([[{}]]), json!(-77.5), json!(true)] {
                if fits(property, &value, &document).is_ok() {
                    continue;
                }
                let mut changed = body.clone();
                changed[name] = value;
                let answered = post(server.address(), path, &changed);
                assert!((400..500).contains(&answered.status), "{path} {changed}: {}", answered.text());
            }
        }
    }
}
