//! Whole and streamed answers say the same, whatever they are cut at: the parts of a stream, put together as the clients of
//! each protocol do, are the whole answer to the last field.
//!
//! What OpenAI's interface has is the rule for an answer that was cut before any text: `content` is an empty text where
//! nothing was said, and null where there are calls alone. Anthropic's has no block then, responses no message.
#![allow(clippy::print_stdout)] // says how many pairs agree

use crate::support::{Answered, engine_options, ok, options, post, serve_with, story_with};
use serde_json::{Map, Value, json};
use std::net::SocketAddr;

/// Forms of calls and thoughts, each as a template that writes both.
const TEMPLATES: &[&str] = &[
    crate::support::TEMPLATE,
    // No thoughts, and marks around each message.
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}{% if tools %}<tool_call>\
     {{ tools | tojson }}{% endif %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}",
    // Thoughts that the prompt has opened.
    "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}{% if tools %}<tool_call>{{ tools | tojson }}{% endif %}\
     {% if add_generation_prompt %}assistant:<think>\n{% endif %}{# </think> #}",
];

/// A stream's objects, whatever its framing.
fn objects(answered: &Answered) -> Vec<Value> {
    assert_eq!(answered.status, 200, "{}", answered.text());
    let lines = answered.text().lines().map(|line| line.strip_prefix("data: ").unwrap_or(line));
    lines.filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// Adds a delta as OpenAI's libraries do: texts grow, what is null or missing changes nothing, lists go by `index`.
fn add(whole: &mut Value, delta: &Value) {
    match (whole, delta) {
        (Value::String(text), Value::String(more)) => text.push_str(more),
        (Value::Object(whole), Value::Object(delta)) => {
            for (name, value) in delta {
                match whole.get_mut(name) {
                    Some(place) if !place.is_null() => match name.as_str() {
                        "index" | "type" | "id" => *place = value.clone(),
                        _ => add(place, value),
                    },
                    _ => drop(whole.insert(name.clone(), value.clone())),
                }
            }
        }
        (Value::Array(whole), Value::Array(delta)) => {
            for part in delta {
                match whole.iter_mut().find(|known| known["index"] == part["index"]) {
                    Some(known) => add(known, part),
                    None => whole.push(part.clone()),
                }
            }
        }
        (_, Value::Null) => {}
        (whole, delta) => *whole = delta.clone(),
    }
}

fn without(mut value: Value, names: &[&str]) -> Value {
    if let Some(object) = value.as_object_mut() {
        object.retain(|name, _| !names.contains(&name.as_str()));
        object.values_mut().for_each(|inner| *inner = without(inner.take(), names));
    }
    if let Some(list) = value.as_array_mut() {
        list.iter_mut().for_each(|inner| *inner = without(inner.take(), names));
    }
    value
}

/// Each choice of a conversation: its message and its end.
fn of_chat(objects: &[Value]) -> Value {
    let mut choices = Map::new();
    for choice in objects.iter().flat_map(|object| object["choices"].as_array().unwrap()) {
        let place = choices.entry(choice["index"].to_string()).or_insert_with(|| json!({"message": {}}));
        let said = if choice["message"].is_object() { &choice["message"] } else { &choice["delta"] };
        add(&mut place["message"], said);
        if !choice["finish_reason"].is_null() {
            (place["end"], place["stop"]) = (choice["finish_reason"].clone(), choice["stop_reason"].clone());
        }
    }
    // What a whole answer says besides.
    without(choices.into(), &["refusal", "index", "id"])
}

fn of_completions(objects: &[Value]) -> Value {
    let mut choices = Map::new();
    for choice in objects.iter().flat_map(|object| object["choices"].as_array().unwrap()) {
        let place = choices.entry(choice["index"].to_string()).or_insert_with(|| json!({"text": ""}));
        add(&mut place["text"], &choice["text"]);
        if !choice["finish_reason"].is_null() {
            place["end"] = choice["finish_reason"].clone();
        }
    }
    choices.into()
}

/// Blocks and the end of a message; arguments as the object that their text is, which may be cut.
fn of_message(objects: &[Value]) -> Value {
    if objects[0]["type"] == "message" {
        let [message] = objects else { panic!("{objects:?}") };
        let content = without(message["content"].clone(), &["id"]);
        return json!({"content": content, "end": message["stop_reason"], "out": message["usage"]["output_tokens"]});
    }
    let (mut blocks, mut whole) = (Vec::<Value>::new(), json!({}));
    let mut arguments = String::new();
    for event in objects {
        match event["type"].as_str().unwrap() {
            "content_block_start" => blocks.push(without(event["content_block"].clone(), &["id"])),
            "content_block_delta" => {
                let (block, delta) = (blocks.last_mut().unwrap(), &event["delta"]);
                for name in ["text", "thinking"] {
                    add(&mut block[name], &delta[name]);
                }
                let block = block.as_object_mut().unwrap();
                block.retain(|_, value| !value.is_null());
                arguments.push_str(delta["partial_json"].as_str().unwrap_or_default());
            }
            "content_block_stop" => {
                if blocks.last().unwrap()["type"] == "tool_use" {
                    blocks.last_mut().unwrap()["input"] = serde_json::from_str(&arguments).unwrap_or(json!({}));
                }
                arguments.clear();
            }
            "message_delta" => {
                (whole["end"], whole["out"]) =
                    (event["delta"]["stop_reason"].clone(), event["usage"]["output_tokens"].clone());
            }
            _ => {}
        }
    }
    whole["content"] = blocks.into();
    whole
}

/// The items of a response: from its last event, from those that ended items, and from a whole answer.
fn of_response(objects: &[Value]) -> Value {
    let names = &["id", "call_id"];
    let kept =
        |response: &Value| json!({"output": without(response["output"].clone(), names), "status": response["status"]});
    if objects[0]["object"] == "response" {
        return kept(&objects[0]);
    }
    let last = kept(&objects.last().unwrap()["response"]);
    let ended = objects.iter().filter(|event| event["type"] == "response.output_item.done");
    let ended: Vec<Value> = ended.map(|event| without(event["item"].clone(), names)).collect();
    assert_eq!(last["output"], Value::from(ended), "the last event says other items than the others");
    last
}

fn of_llamacpp(objects: &[Value]) -> Value {
    let mut answers = Map::new();
    let all = objects.iter().flat_map(|one| one.as_array().cloned().unwrap_or_else(|| vec![one.clone()]));
    for part in all {
        let place =
            answers.entry(part["index"].to_string()).or_insert_with(|| json!({"content": "", "probabilities": []}));
        add(&mut place["content"], &part["content"]);
        let more = part["completion_probabilities"].as_array().cloned().unwrap_or_default();
        place["probabilities"].as_array_mut().unwrap().extend(more);
        if part["stop"] == true {
            (place["end"], place["tokens"]) = (part["stop_type"].clone(), part["tokens_predicted"].clone());
        }
    }
    answers.into()
}

fn of_ollama(objects: &[Value]) -> Value {
    let mut whole = json!({"content": "", "thinking": "", "calls": []});
    for part in objects {
        let said = if part["message"].is_object() { &part["message"] } else { part };
        let text = if said["content"].is_string() { &said["content"] } else { &said["response"] };
        assert!(text.is_string(), "a part without its text: {part}");
        add(&mut whole["content"], text);
        add(&mut whole["thinking"], &said["thinking"]);
        whole["calls"].as_array_mut().unwrap().extend(said["tool_calls"].as_array().cloned().unwrap_or_default());
        if part["done"] == true {
            (whole["end"], whole["tokens"]) = (part["done_reason"].clone(), part["eval_count"].clone());
        }
    }
    whole
}

type Together = fn(&[Value]) -> Value;

/// The same question in every protocol, for so many tokens.
fn questions(tokens: u32, seed: u32, thinks: bool, called: bool) -> Vec<(&'static str, Value, Together)> {
    let messages = json!([{"role": "user", "content": "Tell me of the sea."}]);
    let parameters = json!({"type": "object", "properties": {"city": {"type": "string"}, "n": {"type": "integer"}},
        "required": ["city"], "additionalProperties": false});
    let mut chat = json!({"messages": messages, "max_tokens": tokens, "seed": seed, "n": 2, "stop": ["the sea and"]});
    let mut claude = json!({"messages": messages, "max_tokens": tokens, "temperature": 0});
    let mut responses = json!({"input": messages, "max_output_tokens": tokens, "store": false, "temperature": 0});
    let options = json!({"num_predict": tokens.max(1), "seed": seed});
    let mut ollama = json!({"messages": messages, "options": options});
    if thinks {
        chat["reasoning_effort"] = "low".into();
        chat["thinking_token_budget"] = (tokens / 2).into();
        claude["thinking"] = json!({"type": "enabled", "budget_tokens": tokens / 2});
        responses["reasoning"] = json!({"effort": "low"});
        ollama["think"] = true.into();
    }
    if called {
        let function = json!({"name": "weather", "description": "d", "parameters": parameters});
        chat["tools"] = json!([{"type": "function", "function": function}]);
        chat["tool_choice"] = "required".into();
        claude["tools"] = json!([{"name": "weather", "input_schema": parameters}]);
        claude["tool_choice"] = json!({"type": "any"});
        responses["tools"] = json!([{"type": "function", "name": "weather", "parameters": parameters}]);
        responses["tool_choice"] = "required".into();
        ollama["tools"] = chat["tools"].clone();
    }
    let mut all: Vec<(&'static str, Value, Together)> = vec![
        ("/v1/chat/completions", chat, of_chat),
        ("/v1/messages", claude, of_message),
        ("/v1/responses", responses, of_response),
        ("/api/chat", ollama, of_ollama),
    ];
    if !thinks && !called {
        let prompts = json!(["Once upon", "In the sea"]);
        all.push((
            "/v1/completions",
            json!({"prompt": prompts, "max_tokens": tokens, "seed": seed, "n": 2}),
            of_completions,
        ));
        let llama = json!({"prompt": prompts, "n_predict": tokens, "seed": seed, "n_probs": 2, "n_cmpl": 2});
        all.push(("/completion", llama, of_llamacpp));
        all.push(("/api/generate", json!({"prompt": "Once", "raw": true, "options": options}), of_ollama));
    }
    all
}

fn pair(address: SocketAddr, path: &str, body: &Value, together: Together) -> (Value, Value) {
    let (mut whole, mut streamed) = (body.clone(), body.clone());
    (whole["stream"], streamed["stream"]) = (false.into(), true.into());
    let whole = together(&[ok(address, path, &whole)]);
    (whole, together(&objects(&post(address, path, &streamed))))
}

#[test]
fn whole_and_streamed_answers_say_the_same_wherever_they_are_cut() {
    let (mut pairs, mut before_text, mut calls_alone) = (0, 0, 0);
    for template in TEMPLATES {
        let server = serve_with(options(), vec![story_with(engine_options(), template)]);
        for tokens in [0, 1, 2, 3, 5, 9, 24, 60] {
            for (thinks, called) in [(false, false), (true, false), (false, true), (true, true)] {
                for (path, body, together) in questions(tokens, tokens + 1, thinks, called) {
                    let (whole, streamed) = pair(server.address(), path, &body, together);
                    assert_eq!(whole, streamed, "{path} {body}");
                    pairs += 1;
                    for message in whole.as_object().unwrap().values().filter(|_| path == "/v1/chat/completions") {
                        let (content, calls) = (&message["message"]["content"], &message["message"]["tool_calls"]);
                        assert!(content.is_string() || content.is_null() && calls.is_array(), "{body}: {message}");
                        before_text += usize::from(content == "");
                        calls_alone += usize::from(content.is_null());
                    }
                }
            }
        }
    }
    println!("{pairs} pairs agree; {before_text} answers without text, {calls_alone} of calls alone");
    assert!(pairs > 400 && before_text > 20 && calls_alone > 0, "{pairs} {before_text} {calls_alone}");
}
