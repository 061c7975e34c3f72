//! Fields of OpenAI's interface: what asks for nothing is taken, what changes nothing is named, what is wrong is refused
//! under the name that was sent. Each is one of a kind that clients send; the wants are those of OpenAI's reference.

use crate::support::{Answered, encoder, engine_options, ok, options, post, serve, serve_with, story};
use serde_json::{Value, json};
use std::net::SocketAddr;

fn with(base: &Value, more: &Value) -> Value {
    let mut body = base.clone();
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

fn chat() -> Value {
    json!({"model": "story", "messages": [{"role": "user", "content": "Hello"}], "max_tokens": 3, "temperature": 0})
}

fn text() -> Value {
    json!({"model": "story", "prompt": "Once upon a time", "max_tokens": 3, "temperature": 0})
}

fn answered(address: SocketAddr, path: &str, body: &Value) -> Answered {
    let answered = post(address, path, body);
    assert_eq!(answered.status, 200, "{path} {body}: {}", answered.text());
    answered
}

fn refused(address: SocketAddr, path: &str, body: &Value, param: &str) {
    let answered = post(address, path, body);
    assert_eq!(answered.status, 400, "{path} {body}: {}", answered.text());
    let error = &answered.json()["error"];
    assert_eq!(error["param"], param, "{path} {body}: {error}");
    assert_eq!(error["type"], "invalid_request_error", "{error}");
    assert!(error["message"].as_str().unwrap().len() > 10 && error.get("code").is_some(), "{error}");
}

#[test]
fn what_asks_for_nothing_is_taken_and_changes_nothing() {
    let server = serve();
    let address = server.address();
    let usual = ok(address, "/v1/chat/completions", &chat())["choices"].clone();
    for nothing in [
        json!({"logit_bias": {"foo": 0}}),
        json!({"logit_bias": {"foo": 0.0, "99999": 0, "5": 0}}),
        json!({"logit_bias": {}}),
        json!({"logit_bias": []}),
        json!({"logit_bias": [[5, 0]]}),
        json!({"logit_bias": null, "seed": null, "n": null, "stop": null, "user": null, "tools": null, "logprobs": null}),
        json!({"top_logprobs": 0}),
        json!({"logprobs": false, "top_logprobs": 0}),
        json!({"logprobs": false, "top_logprobs": null}),
        json!({"stop": []}),
        json!({"stop": ""}),
        json!({"stream_options": null}),
        json!({"stream_options": {}}),
        json!({"stream_options": {"include_usage": false, "include_obfuscation": false}}),
        json!({"stream": null, "stream_options": {"include_usage": null}}),
        json!({"modalities": ["text"]}),
        json!({"modalities": null}),
        json!({"tools": []}),
        json!({"tools": [], "tool_choice": "none"}),
        json!({"tool_choice": "none"}),
        json!({"parallel_tool_calls": true}),
        json!({"parallel_tool_calls": false}),
        json!({"response_format": {"type": "text"}}),
        json!({"response_format": null}),
        json!({"frequency_penalty": 0, "presence_penalty": 0}),
        json!({"frequency_penalty": null, "presence_penalty": null, "temperature": 0, "top_p": null}),
        json!({"functions": []}),
        json!({"functions": [], "function_call": "auto"}),
        json!({"function_call": "none"}),
        json!({"audio": null, "prediction": null, "web_search_options": null, "moderation": null}),
        json!({"store": false}),
        json!({"store": null, "metadata": null}),
        json!({"metadata": {}}),
        json!({"service_tier": "auto"}),
        json!({"service_tier": "default"}),
        json!({"verbosity": "medium"}),
        json!({"reasoning_effort": null}),
        json!({"reasoning_effort": "none"}),
    ] {
        let answered = answered(address, "/v1/chat/completions", &with(&chat(), &nothing));
        assert_eq!(answered.header("x-yirage-ignored"), None, "{nothing}");
        assert_eq!(answered.json()["choices"], usual, "{nothing}");
    }
    let usual = ok(address, "/v1/completions", &text())["choices"].clone();
    for nothing in [
        json!({"best_of": 0}),
        json!({"best_of": 1}),
        json!({"best_of": null, "echo": null, "suffix": null}),
        json!({"suffix": ""}),
        json!({"logprobs": false}),
        json!({"logprobs": null}),
        json!({"logit_bias": {"foo": 0}}),
        json!({"echo": false, "n": 1}),
        json!({"stream_options": {"include_usage": false}}),
        json!({"add_special_tokens": true, "parse_special": true}),
        json!({"user": null, "stop": null, "max_tokens": 3}),
    ] {
        let answered = answered(address, "/v1/completions", &with(&text(), &nothing));
        assert_eq!(answered.header("x-yirage-ignored"), None, "{nothing}");
        assert_eq!(answered.json()["choices"], usual, "{nothing}");
    }
    // As many as are wanted are the best of themselves.
    let two = ok(address, "/v1/completions", &with(&text(), &json!({"n": 2, "best_of": 2})));
    assert_eq!(two["choices"].as_array().unwrap().len(), 2);
}

#[test]
fn what_changes_nothing_is_named() {
    let server = serve();
    let function = json!([{"name": "f", "description": "d", "parameters": {"type": "object"}}]);
    for (more, names) in [
        (json!({"user": "user-1234"}), "user"),
        (json!({"store": true}), "store"),
        (json!({"service_tier": "flex"}), "service_tier"),
        (json!({"service_tier": "priority"}), "service_tier"),
        (json!({"verbosity": "low"}), "verbosity"),
        (json!({"audio": {"voice": "alloy", "format": "wav"}, "modalities": ["text"]}), "audio"),
        (json!({"web_search_options": {"search_context_size": "low"}}), "web_search_options"),
        (json!({"moderation": {"model": "m"}}), "moderation"),
        (json!({"prediction": {"type": "content", "content": "x"}}), "prediction"),
        (json!({"functions": function, "function_call": "none"}), "functions"),
        (json!({"stream_options": {"include_usage": true}}), "stream_options"),
        (json!({"stream_options": {"include_obfuscation": true}, "stream": false}), "stream_options"),
        (json!({"metadata": {"a": "b"}, "safety_identifier": "s"}), "metadata,safety_identifier"),
        (
            json!({"prompt_cache_key": "k", "prompt_cache_retention": "24h", "prompt_cache_options": {"mode": "implicit"}}),
            "prompt_cache_key,prompt_cache_options,prompt_cache_retention",
        ),
    ] {
        let answered = answered(server.address(), "/v1/chat/completions", &with(&chat(), &more));
        assert_eq!(answered.header("x-yirage-ignored"), Some(names), "{more}");
    }
    for (more, names) in [
        (json!({"user": "u"}), "user"),
        (json!({"stream_options": {"include_usage": true, "include_obfuscation": true}}), "stream_options"),
    ] {
        let answered = answered(server.address(), "/v1/completions", &with(&text(), &more));
        assert_eq!(answered.header("x-yirage-ignored"), Some(names), "{more}");
    }
}

#[test]
fn errors_name_the_field_that_was_sent() {
    let server = serve();
    let bare = json!({"model": "story", "messages": [{"role": "user", "content": "Hello"}]});
    for (more, param) in [
        (json!({"max_completion_tokens": -2}), "max_completion_tokens"),
        (json!({"max_completion_tokens": 1.5}), "max_completion_tokens"),
        (json!({"max_completion_tokens": "ten"}), "max_completion_tokens"),
        (json!({"max_completion_tokens": true}), "max_completion_tokens"),
        (json!({"max_tokens": -2}), "max_tokens"),
        (json!({"max_tokens": [1]}), "max_tokens"),
        (json!({"max_tokens": 5, "max_completion_tokens": -3}), "max_completion_tokens"),
        (json!({"logit_bias": {"foo": 1}}), "logit_bias"),
        (json!({"logit_bias": {"-5": -1}}), "logit_bias"),
        (json!({"logit_bias": {"foo": "0"}}), "logit_bias.foo"),
        (json!({"logit_bias": {"5": null}}), "logit_bias.5"),
        (json!({"logit_bias": [1]}), "logit_bias"),
        (json!({"reasoning_effort": "hard"}), "reasoning_effort"),
        (json!({"reasoning_effort": ""}), "reasoning_effort"),
        (json!({"reasoning_effort": 3}), "reasoning_effort"),
        (json!({"reasoning": {"effort": "extreme"}}), "reasoning.effort"),
        (json!({"user": 3}), "user"),
        (json!({"user": ["u"]}), "user"),
        (json!({"user": {"id": "u"}}), "user"),
        (json!({"safety_identifier": 1}), "safety_identifier"),
        (json!({"metadata": "a"}), "metadata"),
        (json!({"store": "yes"}), "store"),
        (json!({"service_tier": "fastest"}), "service_tier"),
        (json!({"verbosity": "loud"}), "verbosity"),
        (json!({"modalities": ["text", "audio"]}), "modalities"),
        (
            json!({"functions": [{"name": "f"}], "tools": [{"type": "function", "function": {"name": "g"}}]}),
            "functions",
        ),
        (json!({"functions": [{"name": "f"}], "function_call": {"name": "g"}}), "function_call"),
        (json!({"function_call": {"name": "f"}}), "function_call"),
        (json!({"functions": "f"}), "functions"),
        (json!({"stream_options": {"include_usage": "yes"}}), "stream_options.include_usage"),
        (json!({"stream_options": true}), "stream_options"),
        (json!({"n": 0}), "n"),
        (json!({"n": -1}), "n"),
        (json!({"n": 1.5}), "n"),
        (json!({"temperature": -1}), "temperature"),
        (json!({"temperature": null, "top_p": 1.5}), "top_p"),
        (json!({"presence_penalty": -2.5}), "presence_penalty"),
        (json!({"stop": [1]}), "stop"),
        (json!({"stop": {"a": 1}}), "stop"),
        (json!({"seed": "x"}), "seed"),
        (json!({"logprobs": 1}), "logprobs"),
        (json!({"logprobs": true, "top_logprobs": -1}), "top_logprobs"),
        (json!({"model": ["story"]}), "model"),
        (json!({"messages": []}), "messages"),
        (json!({"messages": null}), "messages"),
        (json!({"stream": "true"}), "stream"),
    ] {
        refused(server.address(), "/v1/chat/completions", &with(&bare, &more), param);
    }
    for (more, param) in [
        (json!({"suffix": "the end"}), "suffix"),
        (json!({"best_of": 2}), "best_of"),
        (json!({"best_of": 2, "n": 3}), "best_of"),
        (json!({"best_of": -1}), "best_of"),
        (json!({"best_of": "2"}), "best_of"),
        (json!({"logprobs": true}), "logprobs"),
        (json!({"logprobs": -1}), "logprobs"),
        (json!({"max_tokens": -2}), "max_tokens"),
        (json!({"user": 5}), "user"),
        (json!({"echo": "yes"}), "echo"),
        (json!({"add_special_tokens": 1}), "add_special_tokens"),
    ] {
        refused(server.address(), "/v1/completions", &with(&text(), &more), param);
    }
}

#[test]
fn a_limit_of_zero_is_an_answer_of_nothing() {
    let server = serve();
    let address = server.address();
    let messages = chat()["messages"].clone();
    for limit in [
        json!({"max_tokens": 0}),
        json!({"max_completion_tokens": 0}),
        json!({"max_tokens": 0, "max_completion_tokens": 0}),
        json!({"max_completion_tokens": 0, "n": 2}),
        json!({"max_completion_tokens": 0, "logprobs": true, "top_logprobs": 2}),
    ] {
        let mut body = with(&json!({"model": "story", "messages": messages}), &limit);
        let whole = ok(address, "/v1/chat/completions", &body);
        let choice = &whole["choices"][0];
        assert_eq!(
            (&choice["message"]["content"], &choice["finish_reason"]),
            (&json!(""), &json!("length")),
            "{whole}"
        );
        assert_eq!(whole["usage"]["completion_tokens"], 0);
        assert!(whole["usage"]["prompt_tokens"].as_u64().unwrap() > 0);
        body["stream"] = true.into();
        let events = post(address, "/v1/chat/completions", &body).events();
        assert_eq!(events.last().unwrap()["choices"][0]["finish_reason"], "length");
    }
    for (more, wanted) in [(json!({}), ""), (json!({"echo": true}), "Once upon a time")] {
        let body = with(&with(&text(), &json!({"max_tokens": 0})), &more);
        let whole = ok(address, "/v1/completions", &body);
        assert_eq!((&whole["choices"][0]["text"], &whole["usage"]["completion_tokens"]), (&json!(wanted), &json!(0)));
    }
}

/// LM Studio's and llama.cpp's clients say so of a limit that is none.
#[test]
fn a_limit_of_minus_one_is_as_many_as_fit() {
    let server = serve();
    let address = server.address();
    let usual = ok(address, "/v1/chat/completions", &with(&chat(), &json!({"max_tokens": null})));
    let found = ok(address, "/v1/chat/completions", &with(&chat(), &json!({"max_tokens": -1})));
    assert_eq!((&found["choices"], &found["usage"]), (&usual["choices"], &usual["usage"]));
    for limit in ["max_completion_tokens", "n_predict"] {
        let found = ok(address, "/v1/chat/completions", &with(&chat(), &json!({"max_tokens": null, limit: -1})));
        assert_eq!((&found["choices"], &found["usage"]), (&usual["choices"], &usual["usage"]), "{limit}");
    }
    let three = ok(address, "/v1/chat/completions", &with(&chat(), &json!({"max_tokens": null, "n_predict": 3})));
    assert_eq!(three["usage"]["completion_tokens"], 3);
    let found = ok(address, "/v1/completions", &with(&text(), &json!({"max_tokens": -1})));
    assert!(found["usage"]["completion_tokens"].as_u64().unwrap() > 16, "{found}");
    let input = json!({"model": "story", "input": "Hello", "temperature": 0, "store": false});
    let said = |limit| {
        ok(address, "/v1/responses", &with(&input, &json!({"max_output_tokens": limit})))["output_text"].clone()
    };
    assert_eq!(said(json!(-1)), said(Value::Null));
    let prompt = json!({"prompt": "Once upon a time", "temperature": 0});
    for limit in ["n_predict", "max_tokens"] {
        let found = ok(address, "/completion", &with(&prompt, &json!({limit: -1})));
        assert!(found["tokens_predicted"].as_u64().unwrap() > 16, "{found}");
    }
    let ollama = json!({"model": "story", "messages": chat()["messages"], "stream": false});
    let found = ok(address, "/api/chat", &with(&ollama, &json!({"options": {"num_predict": -1}})));
    assert!(found["eval_count"].as_u64().unwrap() > 16, "{found}");
}

/// vLLM's and llama.cpp's word for any seed.
#[test]
fn a_seed_of_minus_one_is_another_each_time() {
    let server = serve();
    let address = server.address();
    for (path, body) in [
        ("/v1/chat/completions", with(&chat(), &json!({"temperature": 1.5, "max_tokens": 24, "seed": -1}))),
        ("/v1/completions", with(&text(), &json!({"temperature": 1.5, "max_tokens": 24, "seed": -1}))),
        ("/completion", json!({"prompt": "Once", "temperature": 1.5, "n_predict": 24, "seed": -1})),
    ] {
        let said = || {
            let answer = ok(address, path, &body);
            let choice = &answer["choices"][0];
            [&choice["message"]["content"], &choice["text"], &answer["content"]].map(Value::to_string)
        };
        assert_ne!(said(), said(), "{path}");
    }
}

#[test]
fn a_token_whose_bias_is_false_never_comes() {
    let server = serve();
    let body = json!({"prompt": "Once upon a time", "n_predict": 1, "temperature": 0, "return_tokens": true});
    let first = ok(server.address(), "/completion", &body)["tokens"][0].clone();
    let body = with(&body, &json!({"logit_bias": [[first, false], [5, 0]]}));
    let other = ok(server.address(), "/completion", &body)["tokens"][0].clone();
    assert!(first.is_u64() && other.is_u64() && first != other, "{first} {other}");
}

/// Prompts are encoded as llama.cpp and vLLM encode them: the names of special tokens are those tokens.
#[test]
fn special_tokens_of_prompts_are_parsed_and_echoed() {
    let server = serve();
    let address = server.address();
    let ids = |more: Value| {
        let base = json!({"model": "story", "prompt": "a</s>b", "max_tokens": 0, "return_token_ids": true});
        ok(address, "/v1/completions", &with(&base, &more))["choices"][0]["prompt_token_ids"].clone()
    };
    let has = |ids: &Value, id: u32| ids.as_array().unwrap().iter().filter(|one| **one == id).count();
    // <s> is 1 and </s> is 2.
    let usual = ids(json!({}));
    assert_eq!((&usual[0], has(&usual, 2)), (&json!(1), 1), "{usual}");
    for same in [json!({"parse_special": null}), json!({"parse_special": true}), json!({"add_special_tokens": null})] {
        assert_eq!(ids(same.clone()), usual, "{same}");
    }
    assert_eq!(has(&ids(json!({"parse_special": false})), 2), 0);
    let without = ids(json!({"add_special_tokens": false}));
    assert_eq!((has(&without, 1), has(&without, 2)), (0, 1), "{without}");
    assert_eq!(has(&ids(json!({"prompt": "</s></s>x<s>"})), 2), 2);
    assert_eq!(has(&ids(json!({"prompt": ["x", "</s>"]})), 2), 0);
    // As llama.cpp's own path has it.
    let llama = ok(address, "/tokenize", &json!({"content": "a</s>b", "add_special": true, "parse_special": true}));
    assert_eq!(llama["tokens"], usual);
    // What is echoed is what was sent, and offsets are places in it.
    for prompt in ["a</s>b", "Once upon a time", "<s>", "Once</s> upon"] {
        let body =
            json!({"model": "story", "prompt": prompt, "max_tokens": 4, "temperature": 0, "echo": true, "logprobs": 0});
        let choice = ok(address, "/v1/completions", &body)["choices"][0].clone();
        let said = choice["text"].as_str().unwrap();
        assert!(said.starts_with(prompt), "{said:?}");
        let offsets: Vec<u64> =
            choice["logprobs"]["text_offset"].as_array().unwrap().iter().map(|at| at.as_u64().unwrap()).collect();
        assert_eq!(offsets.len(), choice["logprobs"]["tokens"].as_array().unwrap().len());
        assert!(offsets.windows(2).all(|pair| pair[0] <= pair[1]), "{offsets:?}");
        assert!(*offsets.last().unwrap() <= said.chars().count() as u64, "{offsets:?} of {said:?}");
    }
}

fn embedding(answer: &Value) -> Vec<f64> {
    answer["data"][0]["embedding"].as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect()
}

#[test]
fn dimensions_cut_and_give_the_length_one_again() {
    let server = serve_with(options(), vec![encoder("embed")]);
    let address = server.address();
    let base = json!({"model": "embed", "input": "a cat on a mat"});
    let whole = embedding(&ok(address, "/v1/embeddings", &base));
    let size = whole.len();
    for wanted in [1, 2, 3, size / 2, size - 1, size] {
        let short = embedding(&ok(address, "/v1/embeddings", &with(&base, &json!({"dimensions": wanted}))));
        let length = whole[..wanted].iter().map(|x| x * x).sum::<f64>().sqrt();
        assert_eq!(short.len(), wanted);
        for (a, b) in short.iter().zip(&whole) {
            assert!((a - b / length).abs() < 1e-5, "{a} {b} of {wanted}");
        }
        // ollama's path cuts in the same way.
        let ollama = ok(address, "/api/embed", &with(&base, &json!({"dimensions": wanted})));
        let first: Vec<f64> = ollama["embeddings"][0].as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect();
        assert_eq!(first, short);
    }
    let packed = ok(address, "/v1/embeddings", &with(&base, &json!({"dimensions": 3, "encoding_format": "base64"})));
    assert_eq!(packed["data"][0]["embedding"].as_str().unwrap().len(), 16);
    assert_eq!(embedding(&ok(address, "/v1/embeddings", &with(&base, &json!({"dimensions": null})))), whole);
    for wrong in [json!(0), json!(-1), json!(size + 1), json!(1.5), json!("3"), json!(true), json!(1_u64 << 40)] {
        refused(address, "/v1/embeddings", &with(&base, &json!({"dimensions": wrong})), "dimensions");
    }
    let far = post(address, "/v1/embeddings", &with(&base, &json!({"dimensions": size + 1}))).json();
    assert!(far["error"]["message"].as_str().unwrap().contains(&size.to_string()), "{far}");
}

#[test]
fn texts_of_nothing_have_no_embedding() {
    let server = serve_with(options(), vec![story(engine_options()), encoder("embed")]);
    let address = server.address();
    for (input, param) in [
        (json!(""), "input"),
        (json!([]), "input"),
        (json!([""]), "input"),
        (json!([[]]), "input"),
        (json!(["a", ""]), "input[1]"),
        (json!(["", "a", ""]), "input[0]"),
        (json!([[5], []]), "input[1]"),
        (json!(null), "input"),
        (json!(3.5), "input"),
        (json!({"text": "a"}), "input"),
        (json!([1, "a"]), "input[0]"),
        (json!([[1, -1]]), "input[0][1]"),
        (json!([99999]), "input"),
        (json!("word ".repeat(5000)), "input"),
    ] {
        refused(address, "/v1/embeddings", &json!({"model": "embed", "input": input}), param);
    }
    for format in [json!("hex"), json!("FLOAT"), json!(1), json!(["float"])] {
        let body = json!({"model": "embed", "input": "a", "encoding_format": format});
        refused(address, "/v1/embeddings", &body, "encoding_format");
    }
    refused(address, "/v1/embeddings", &json!({"model": "embed", "input": "a", "user": 1}), "user");
    // A blank is a text.
    for input in [json!(" "), json!([" ", "a"]), json!([5, 6]), json!([[5], [6, 7]])] {
        let answer = ok(address, "/v1/embeddings", &json!({"model": "embed", "input": input}));
        assert_eq!(answer["usage"]["prompt_tokens"], answer["usage"]["total_tokens"]);
        assert!(answer["usage"]["prompt_tokens"].as_u64().unwrap() > 0);
    }
    // ollama's server answers with no vector.
    for body in [json!({"model": "embed", "input": ""}), json!({"model": "embed", "input": []})] {
        assert_eq!(ok(address, "/api/embed", &body)["embeddings"], json!([]));
    }
    assert_eq!(ok(address, "/api/embeddings", &json!({"model": "embed", "prompt": ""}))["embedding"], json!([]));
}

/// What one interface calls by another name than another one is honoured, or refused by its name: left out it would give
/// another answer than was asked for.
#[test]
fn words_of_other_interfaces_are_never_lost() {
    let server = serve();
    let address = server.address();
    let messages = chat()["messages"].clone();
    let claude = json!({"messages": messages, "max_tokens": 2});
    let input = json!({"input": "Hello", "max_output_tokens": 2, "store": false});
    let ollama = json!({"messages": messages, "stream": false, "options": {"num_predict": 2}});
    let llama = json!({"prompt": "Once", "n_predict": 2});
    for (path, body, more, param) in [
        ("/v1/chat/completions", chat(), json!({"system": "be brief"}), "system"),
        ("/v1/chat/completions", chat(), json!({"stop_sequences": ["x"]}), "stop_sequences"),
        ("/v1/chat/completions", chat(), json!({"max_output_tokens": 1}), "max_output_tokens"),
        ("/v1/chat/completions", chat(), json!({"format": "json"}), "format"),
        ("/v1/chat/completions", chat(), json!({"options": {"temperature": 0}}), "options"),
        (
            "/v1/chat/completions",
            chat(),
            json!({"output_config": {"format": {"type": "json_schema"}}}),
            "output_config",
        ),
        ("/v1/chat/completions", chat(), json!({"input": "x"}), "input"),
        ("/v1/completions", text(), json!({"messages": messages}), "messages"),
        ("/v1/completions", text(), json!({"tools": [{"type": "function"}]}), "tools"),
        ("/v1/messages", claude.clone(), json!({"stop": ["x"]}), "stop"),
        ("/v1/messages", claude.clone(), json!({"response_format": {"type": "json_object"}}), "response_format"),
        ("/v1/messages", claude.clone(), json!({"guided_json": {"type": "object"}}), "guided_json"),
        ("/v1/messages", claude.clone(), json!({"seed": 5}), "seed"),
        ("/v1/messages", claude.clone(), json!({"n": 2}), "n"),
        ("/v1/responses", input.clone(), json!({"response_format": {"type": "json_object"}}), "response_format"),
        ("/v1/responses", input.clone(), json!({"max_tokens": 5}), "max_tokens"),
        ("/v1/responses", input.clone(), json!({"messages": messages}), "messages"),
        ("/v1/responses", input.clone(), json!({"stop": "x"}), "stop"),
        ("/v1/responses", input.clone(), json!({"system": "x"}), "system"),
        ("/api/chat", ollama.clone(), json!({"temperature": 0.5}), "temperature"),
        ("/api/chat", ollama.clone(), json!({"response_format": {"type": "json_object"}}), "response_format"),
        ("/api/chat", ollama.clone(), json!({"tool_choice": "required"}), "tool_choice"),
        ("/api/chat", ollama.clone(), json!({"options": {"max_tokens": 5}}), "options.max_tokens"),
        ("/api/chat", ollama.clone(), json!({"options": {"n_predict": 5}}), "options.n_predict"),
        ("/api/generate", json!({"prompt": "a", "stream": false}), json!({"max_tokens": 5}), "max_tokens"),
        ("/completion", llama.clone(), json!({"messages": messages}), "messages"),
        ("/completion", llama.clone(), json!({"format": {"type": "object"}}), "format"),
    ] {
        let answered = post(address, path, &with(&body, &more));
        assert_eq!(answered.status, 400, "{path} {more}: {}", answered.text());
        assert!(answered.text().contains(&format!("`{param}`")), "{path} {more}: {}", answered.text());
    }
    // The values that ask for nothing are taken, and what changes no answer is named.
    for (path, body) in [
        ("/v1/chat/completions", chat()),
        ("/v1/messages", claude),
        ("/v1/responses", input),
        ("/api/chat", ollama),
        ("/completion", llama),
    ] {
        let more =
            json!({"suffix": "", "best_of": 1, "input_extra": [], "raw": false, "functions": [], "keep_alive_for": 5});
        let answered = answered(address, path, &with(&body, &more));
        let ignored = answered.header("x-yirage-ignored").unwrap_or_default();
        assert!(ignored.split(',').any(|name| name == "keep_alive_for"), "{path}: {ignored}");
    }
}

/// Every interface looks at who is asking and at other hints as its makers' server does.
#[test]
fn hints_of_every_interface_are_checked() {
    let server = serve();
    let address = server.address();
    let messages = chat()["messages"].clone();
    let (claude, input) =
        (json!({"messages": messages, "max_tokens": 1}), json!({"input": "a", "max_output_tokens": 1}));
    for (path, body, more) in [
        ("/v1/responses", &input, json!({"user": 3})),
        ("/v1/responses", &input, json!({"safety_identifier": ["a"]})),
        ("/v1/responses", &input, json!({"prompt_cache_key": 1})),
        ("/v1/responses", &input, json!({"service_tier": "fastest"})),
        ("/v1/responses", &input, json!({"truncation": "some"})),
        ("/v1/responses", &input, json!({"max_tool_calls": "2"})),
        ("/v1/responses", &input, json!({"stream_options": 1})),
        ("/v1/responses", &input, json!({"reasoning": {"effort": "extreme"}})),
        ("/v1/messages", &claude, json!({"metadata": "a"})),
        ("/v1/messages", &claude, json!({"service_tier": "flex"})),
        ("/v1/messages", &claude, json!({"mcp_servers": {}})),
        ("/v1/messages", &claude, json!({"output_config": {"effort": "extreme"}})),
        ("/v1/messages", &claude, json!({"thinking": {"type": "sometimes"}})),
        ("/api/chat", &json!({"messages": messages}), json!({"think": "extreme"})),
        ("/api/chat", &json!({"messages": messages}), json!({"keep_alive": "soon"})),
    ] {
        let answered = post(address, path, &with(body, &more));
        assert_eq!(answered.status, 400, "{path} {more}: {}", answered.text());
    }
    for (path, body, more, named) in [
        ("/v1/responses", &input, json!({"user": "u", "service_tier": "auto", "truncation": "disabled"}), "user"),
        ("/v1/responses", &input, json!({"service_tier": "flex", "truncation": "auto"}), "service_tier,truncation"),
        ("/v1/messages", &claude, json!({"metadata": {"user_id": "u"}, "service_tier": "auto"}), "metadata"),
    ] {
        let answered = answered(address, path, &with(body, &more));
        assert_eq!(answered.header("x-yirage-ignored"), Some(named), "{path} {more}");
    }
}
