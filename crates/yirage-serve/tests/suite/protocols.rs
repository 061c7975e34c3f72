//! The other protocols: Anthropic's, OpenAI's responses, llama.cpp's, vLLM's, ollama's; vectors and scores.

use crate::support::{
    Answered, encoder, engine_options, get, ok, options, post, raw, request, serve, serve_with, story,
};
use serde_json::{Value, json};
use yirage_serve::{RunningServer, ServeOptions};
use yirage_testkit::json::floats;
use yirage_testkit::{bedtime, encoders};

/// Name and object of each event.
fn named(answered: &Answered) -> Vec<(String, Value)> {
    assert_eq!(answered.status, 200, "{}", answered.text());
    let frames = answered.text().split("\n\n").filter(|frame| !frame.is_empty());
    let one = |frame: &str| {
        let (name, data) = frame.split_once('\n').unwrap();
        let data = data.strip_prefix("data: ").unwrap();
        (name.strip_prefix("event: ").unwrap().to_owned(), serde_json::from_str(data).unwrap())
    };
    frames.map(one).collect()
}

fn lines(answered: &Answered) -> Vec<Value> {
    assert_eq!(answered.status, 200, "{}", answered.text());
    assert_eq!(answered.header("content-type"), Some("application/x-ndjson"));
    answered.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn anthropic_messages_whole_and_in_parts() {
    let server = serve();
    let body = json!({
        "model": "story", "max_tokens": 20, "temperature": 0, "system": [{"type": "text", "text": "Tell stories."}],
        "messages": [{"role": "user", "content": [{"type": "text", "text": "Hello"}]}],
    });
    let whole = ok(server.address(), "/v1/messages", &body);
    assert_eq!((&whole["type"], &whole["role"]), (&json!("message"), &json!("assistant")));
    let text = whole["content"][0]["text"].as_str().unwrap();
    assert_eq!((&whole["content"][0]["type"], &whole["usage"]["output_tokens"]), (&json!("text"), &json!(20)));
    assert_eq!((&whole["stop_reason"], &whole["stop_sequence"]), (&json!("max_tokens"), &Value::Null));
    let mut streamed = body.clone();
    streamed["stream"] = true.into();
    let events = named(&post(server.address(), "/v1/messages", &streamed));
    let names: Vec<&str> = events.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names[..2], ["message_start", "content_block_start"]);
    assert_eq!(names[names.len() - 3..], ["content_block_stop", "message_delta", "message_stop"]);
    let deltas = events.iter().filter_map(|(_, event)| event["delta"]["text"].as_str());
    assert_eq!(deltas.collect::<String>(), text);
    assert!(events.iter().all(|(name, event)| event["type"] == **name));
    // A stop is named.
    let mut stopped = body.clone();
    stopped["stop_sequences"] = json!([text[4..7]]);
    let stopped = ok(server.address(), "/v1/messages", &stopped);
    assert_eq!((&stopped["stop_reason"], &stopped["stop_sequence"]), (&json!("stop_sequence"), &json!(text[4..7])));
    // What counts counts the same.
    let mut counted = body.clone();
    ["max_tokens", "temperature"].iter().for_each(|name| drop(counted.as_object_mut().unwrap().remove(*name)));
    let counted = ok(server.address(), "/v1/messages/count_tokens", &counted);
    let usage = &whole["usage"];
    let read = usage["cache_read_input_tokens"].as_u64().unwrap();
    assert_eq!(counted["input_tokens"].as_u64().unwrap(), usage["input_tokens"].as_u64().unwrap() + read);
    // Errors have Anthropic's form.
    let refused = post(server.address(), "/v1/messages", &json!({"model": "story", "messages": []}));
    assert_eq!((refused.status, &refused.json()["type"]), (400, &json!("error")));
    assert_eq!(refused.json()["error"]["type"], "invalid_request_error");
}

#[test]
fn tools_reach_the_template_in_every_protocol() {
    let server = serve();
    let function = json!({"name": "add", "description": "adds", "parameters": {"type": "object", "properties": {}}});
    let chat = json!({
        "model": "story", "max_tokens": 4, "messages": [{"role": "user", "content": "Hello"}],
        "tools": [{"type": "function", "function": function}],
    });
    let prompt = ok(server.address(), "/apply-template", &chat)["prompt"].as_str().unwrap().to_owned();
    assert!(prompt.contains("tools <tool_call>") && prompt.contains("\"add\""), "{prompt}");
    let tokens =
        |body: &Value| ok(server.address(), "/v1/chat/completions", body)["usage"]["prompt_tokens"].as_u64().unwrap();
    let with = tokens(&chat);
    let mut strict = chat.clone();
    strict["tools"][0]["function"]["strict"] = true.into();
    let strict = post(server.address(), "/v1/chat/completions", &strict);
    assert_eq!((strict.status, strict.header("x-yirage-ignored")), (200, Some("tools.strict")));
    let mut none = chat.clone();
    none["tool_choice"] = "none".into();
    assert!(tokens(&none) < with, "tools that are not to be called are not shown");
    let responses = json!({
        "model": "story", "max_output_tokens": 4, "input": "Hello",
        "tools": [{"type": "function", "name": "add", "description": "adds", "parameters": function["parameters"]}],
    });
    assert_eq!(ok(server.address(), "/v1/responses", &responses)["usage"]["input_tokens"].as_u64().unwrap(), with);
    let messages = json!({
        "model": "story", "messages": [{"role": "user", "content": "Hello"}],
        "tools": [{"name": "add", "description": "adds", "input_schema": function["parameters"]}],
    });
    assert_eq!(ok(server.address(), "/v1/messages/count_tokens", &messages)["input_tokens"].as_u64().unwrap(), with);
    let ollama = json!({"model": "story", "stream": false, "options": {"num_predict": 4}, "messages": chat["messages"], "tools": chat["tools"]});
    assert_eq!(ok(server.address(), "/api/chat", &ollama)["prompt_eval_count"].as_u64().unwrap(), with);
    // Variables of the template.
    let styled = json!({"model": "story", "messages": chat["messages"], "chat_template_kwargs": {"style": "grand"}});
    assert!(ok(server.address(), "/apply-template", &styled)["prompt"].as_str().unwrap().contains("grand"));
    let thinking = json!({"model": "story", "messages": chat["messages"], "reasoning_effort": "high"});
    assert!(ok(server.address(), "/apply-template", &thinking)["prompt"].as_str().unwrap().contains("<think>"));
}

#[test]
fn responses_are_kept_and_gone_on_from() {
    let server = serve();
    let body = json!({"model": "story", "input": "Hello", "instructions": "Tell stories.", "max_output_tokens": 12, "temperature": 0, "metadata": {"a": "b"}});
    let first = ok(server.address(), "/v1/responses", &body);
    assert_eq!((&first["object"], &first["status"]), (&json!("response"), &json!("incomplete")));
    assert_eq!(first["incomplete_details"]["reason"], "max_output_tokens");
    assert_eq!(first["metadata"]["a"], "b");
    let text = first["output"][0]["content"][0]["text"].as_str().unwrap();
    let id = first["id"].as_str().unwrap();
    let path = format!("/v1/responses/{id}");
    assert_eq!(get(server.address(), &path).json()["output"], first["output"]);
    // Going on from it is the same as sending all of it.
    let mut next = json!({"model": "story", "input": "And then?", "previous_response_id": id, "max_output_tokens": 8, "temperature": 0});
    let next_answer = ok(server.address(), "/v1/responses", &next);
    let all = json!([{"role": "user", "content": "Hello"}, {"role": "assistant", "content": text}, {"role": "user", "content": "And then?"}]);
    let sent = ok(
        server.address(),
        "/v1/responses",
        &json!({"model": "story", "input": all, "max_output_tokens": 8, "temperature": 0}),
    );
    assert_eq!(next_answer["output"][0]["content"], sent["output"][0]["content"]);
    assert_eq!(next_answer["usage"]["input_tokens"], sent["usage"]["input_tokens"]);
    // In parts.
    next["stream"] = true.into();
    let events = named(&post(server.address(), "/v1/responses", &next));
    for (at, (name, event)) in events.iter().enumerate() {
        assert_eq!((&event["type"], &event["sequence_number"]), (&json!(name), &json!(at)));
    }
    let deltas = events.iter().filter(|(name, _)| name == "response.output_text.delta");
    let streamed: String = deltas.map(|(_, event)| event["delta"].as_str().unwrap()).collect();
    assert_eq!(streamed, next_answer["output"][0]["content"][0]["text"].as_str().unwrap());
    let names: Vec<&str> = events.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        names[..4],
        ["response.created", "response.in_progress", "response.output_item.added", "response.content_part.added"]
    );
    let last = &names[names.len() - 4..];
    assert_eq!(
        last,
        ["response.output_text.done", "response.content_part.done", "response.output_item.done", "response.incomplete"]
    );
    // Forgotten, and never kept.
    let gone = raw(server.address(), &request("DELETE", &path, &[], b""));
    assert_eq!(gone.json()["deleted"], true);
    assert_eq!(get(server.address(), &path).status, 404);
    let mut unkept = body.clone();
    unkept["store"] = false.into();
    let unkept = ok(server.address(), "/v1/responses", &unkept);
    assert_eq!(get(server.address(), &format!("/v1/responses/{}", unkept["id"].as_str().unwrap())).status, 404);
    next["previous_response_id"] = unkept["id"].clone();
    let missing = post(server.address(), "/v1/responses", &next);
    assert_eq!((missing.status, &missing.json()["error"]["param"]), (404, &json!("previous_response_id")));
}

#[test]
fn responses_have_the_log_probabilities_of_conversations() {
    let server = serve();
    let mut body = json!({
        "model": "story", "input": "Hello", "max_output_tokens": 8, "temperature": 0, "top_logprobs": 2,
        "include": ["message.output_text.logprobs"],
    });
    let whole = post(server.address(), "/v1/responses", &body);
    assert_eq!(whole.header("x-yirage-ignored"), None);
    let whole = whole.json();
    let chat = json!({
        "model": "story", "messages": [{"role": "user", "content": "Hello"}], "max_tokens": 8, "temperature": 0,
        "logprobs": true, "top_logprobs": 2,
    });
    let of_chat = ok(server.address(), "/v1/chat/completions", &chat)["choices"][0]["logprobs"]["content"].clone();
    assert_eq!(of_chat.as_array().unwrap().len(), 8);
    assert_eq!((&whole["output"][0]["content"][0]["logprobs"], &whole["top_logprobs"]), (&of_chat, &json!(2)));
    // In parts they go with the text that they made.
    body["stream"] = true.into();
    let events = named(&post(server.address(), "/v1/responses", &body));
    let of = |kind: &str| -> Vec<Value> {
        let of_kind = events.iter().filter(|(name, _)| name == kind);
        of_kind.flat_map(|(_, event)| event["logprobs"].as_array().unwrap().clone()).collect()
    };
    assert_eq!(Value::from(of("response.output_text.done")), of_chat);
    assert_eq!(Value::from(of("response.output_text.delta")), of_chat);
    // Nobody asked for them; what else can be included is of tools that are not here.
    let plain =
        json!({"model": "story", "input": "Hello", "max_output_tokens": 2, "include": ["reasoning.encrypted_content"]});
    let plain = post(server.address(), "/v1/responses", &plain);
    assert_eq!(plain.header("x-yirage-ignored"), Some("include"));
    assert_eq!(plain.json()["output"][0]["content"][0]["logprobs"], json!([]));
}

#[test]
fn llamacpp_and_vllm() {
    let server = serve();
    let address = server.address();
    let ids = ok(address, "/tokenize", &json!({"content": "Once upon a time"}))["tokens"].clone();
    let with =
        ok(address, "/tokenize", &json!({"content": "Once upon a time", "add_special": true, "with_pieces": true}));
    assert_eq!(with["tokens"].as_array().unwrap().len(), ids.as_array().unwrap().len() + 1);
    let vllm =
        ok(address, "/tokenize", &json!({"model": "story", "prompt": "Once upon a time", "return_token_strs": true}));
    assert_eq!(vllm["count"].as_u64().unwrap() as usize, ids.as_array().unwrap().len() + 1);
    assert_eq!((&vllm["max_model_len"], vllm["token_strs"].is_array()), (&json!(256), true));
    let chat = json!({"model": "story", "messages": [{"role": "user", "content": "Hello"}]});
    assert!(ok(address, "/tokenize", &chat)["count"].as_u64().unwrap() > 3);
    let text = ok(address, "/detokenize", &json!({"tokens": ids}));
    assert_eq!((&text["content"], &text["prompt"]), (&json!("Once upon a time"), &json!("Once upon a time")));
    assert_eq!(post(address, "/detokenize", &json!({"tokens": [99999]})).status, 400);
    assert_eq!(ok(address, "/apply-template", &chat)["prompt"], "user: Hello\nassistant:");
    let props = get(address, "/props").json();
    assert_eq!((&props["total_slots"], &props["default_generation_settings"]["n_ctx"]), (&json!(4), &json!(256)));
    assert_eq!(get(address, "/props?model=org%2Fstory").status, 200);
    assert_eq!(get(address, "/slots").json().as_array().unwrap().len(), 4);
    assert_eq!(post(address, "/slots/0?action=save", &json!({"filename": "a"})).status, 501);
    let mut body = json!({"prompt": "Once upon a time", "n_predict": 12, "temperature": 0, "return_tokens": true});
    let whole = ok(address, "/completion", &body);
    assert_eq!((&whole["stop_type"], &whole["tokens_predicted"]), (&json!("limit"), &json!(12)));
    assert_eq!(whole["tokens"].as_array().unwrap().len(), 12);
    body["stream"] = true.into();
    let streamed = post(address, "/completion", &body);
    let events: Vec<Value> = streamed
        .text()
        .split("\n\n")
        .filter_map(|f| f.strip_prefix("data: "))
        .map(|f| serde_json::from_str(f).unwrap())
        .collect();
    let text: String = events.iter().map(|event| event["content"].as_str().unwrap()).collect();
    assert_eq!(text, whole["content"].as_str().unwrap());
    assert_eq!((&events[0]["stop"], &events.last().unwrap()["stop"]), (&json!(false), &json!(true)));
}

#[test]
fn several_prompts_of_llamacpp_have_an_answer_each() {
    let server = serve();
    let address = server.address();
    let ids = ok(address, "/tokenize", &json!({"content": "Once upon", "add_special": true}))["tokens"].clone();
    let mut mixed = ids.as_array().unwrap().clone();
    mixed.push(json!(" a time"));
    let one = |prompt: &Value| {
        let body = json!({"prompt": prompt, "n_predict": 6, "temperature": 0});
        ok(address, "/completion", &body)["content"].clone()
    };
    let prompts = json!(["Once upon a time", "In the deep forest", ids, mixed, {"prompt_string": "A bear"}]);
    let alone: Vec<Value> = prompts.as_array().unwrap().iter().map(|prompt| one(&json!([prompt]))).collect();
    assert_eq!(one(&json!("Once upon a time")), alone[0]);
    let mut body = json!({"prompt": prompts, "n_predict": 6, "temperature": 0, "n_cmpl": 2, "id_slot": 0});
    let answered = post(address, "/completion", &body);
    assert_eq!(answered.header("x-yirage-ignored"), Some("id_slot"));
    let all = answered.json();
    let all = all.as_array().unwrap();
    assert_eq!(all.len(), 10);
    for (at, answer) in all.iter().enumerate() {
        assert_eq!((&answer["index"], &answer["content"]), (&json!(at), &alone[at / 2]));
        assert_eq!((&answer["stop"], &answer["tokens_predicted"]), (&json!(true), &json!(6)));
    }
    body["stream"] = true.into();
    let streamed = post(address, "/completion", &body);
    let events = streamed.text().split("\n\n").filter_map(|frame| frame.strip_prefix("data: "));
    let events: Vec<Value> = events.map(|data| serde_json::from_str(data).unwrap()).collect();
    for (at, answer) in all.iter().enumerate() {
        let mine = events.iter().filter(|event| event["index"] == at);
        assert_eq!(mine.clone().filter(|event| event["stop"] == true).count(), 1, "{at}");
        let text: String = mine.map(|event| event["content"].as_str().unwrap()).collect();
        assert_eq!(text, answer["content"].as_str().unwrap());
    }
    // Fields that are wanted are those of each.
    body["stream"] = false.into();
    body["response_fields"] = json!(["index"]);
    let shown: Vec<Value> = (0..10).map(|at| json!({"index": at})).collect();
    assert_eq!(ok(address, "/completion", &body), Value::from(shown));
    for wrong in
        [json!([]), json!(["a", 1.5]), json!([null]), json!({"prompt_string": "a", "multimodal_data": ["aGk="]})]
    {
        assert_eq!(post(address, "/completion", &json!({"prompt": wrong})).status, 400, "{wrong}");
    }
}

#[test]
fn probabilities_of_llamacpp_are_those_of_completions() {
    let server = serve();
    let address = server.address();
    let mut body =
        json!({"prompt": "Once upon a time", "n_predict": 6, "temperature": 0, "n_probs": 3, "return_tokens": true});
    let whole = ok(address, "/completion", &body);
    let found = whole["completion_probabilities"].as_array().unwrap();
    let same =
        json!({"model": "story", "prompt": "Once upon a time", "max_tokens": 6, "temperature": 0, "logprobs": 3});
    let same = ok(address, "/v1/completions", &same)["choices"][0]["logprobs"].clone();
    assert_eq!(found.len(), 6);
    for (at, entry) in found.iter().enumerate() {
        assert_eq!(entry["id"], whole["tokens"][at]);
        assert_eq!((&entry["token"], &entry["logprob"]), (&same["tokens"][at], &same["token_logprobs"][at]));
        let top = entry["top_logprobs"].as_array().unwrap();
        assert_eq!(top.len(), 3);
        for one in top {
            assert_eq!(same["top_logprobs"][at][one["token"].as_str().unwrap()], one["logprob"]);
            assert!(one["id"].is_u64() && one["bytes"].is_array(), "{one}");
        }
    }
    body["stream"] = true.into();
    let streamed = post(address, "/completion", &body);
    let events = streamed.text().split("\n\n").filter_map(|frame| frame.strip_prefix("data: "));
    let told = events.flat_map(|data| {
        let event: Value = serde_json::from_str(data).unwrap();
        event["completion_probabilities"].as_array().cloned().unwrap_or_default()
    });
    assert_eq!(told.collect::<Vec<_>>(), *found);
    body["n_probs"] = json!(129);
    let refused = post(address, "/completion", &body);
    assert_eq!((refused.status, &refused.json()["error"]["param"]), (400, &json!("n_probs")));
    let plain = ok(address, "/completion", &json!({"prompt": "Once", "n_predict": 2, "n_probs": 0}));
    assert!(plain.get("completion_probabilities").is_none(), "{plain}");
}

#[test]
fn items_that_are_kept_are_referred_to_by_their_names() {
    let server = serve();
    let address = server.address();
    let hello = json!({"type": "message", "role": "user", "content": "Hello", "id": "own_1"});
    let first = ok(address, "/v1/responses", &json!({"input": [hello], "max_output_tokens": 8, "temperature": 0}));
    let said = &first["output"][0];
    let (question, limit) = (json!({"role": "user", "content": "And then?"}), 6);
    let of = |input: Value| json!({"input": input, "max_output_tokens": limit, "temperature": 0});
    let whole = ok(address, "/v1/responses", &of(json!([hello, said, question])));
    let name = |id: &Value| json!({"type": "item_reference", "id": id});
    let referred = of(json!([name(&json!("own_1")), name(&said["id"]), question]));
    let named = ok(address, "/v1/responses", &referred);
    assert_eq!(
        (&named["output_text"], &named["usage"]["input_tokens"]),
        (&whole["output_text"], &whole["usage"]["input_tokens"])
    );
    // The type may be left out; what counts counts the same; and what was referred to is listed whole.
    let mut untyped = referred.clone();
    untyped["input"][1].as_object_mut().unwrap().remove("type");
    assert_eq!(ok(address, "/v1/responses", &untyped)["output_text"], whole["output_text"]);
    let count = json!({"input": referred["input"]});
    assert_eq!(ok(address, "/v1/responses/input_tokens", &count)["input_tokens"], whole["usage"]["input_tokens"]);
    let path = format!("/v1/responses/{}/input_items?order=asc", named["id"].as_str().unwrap());
    assert_eq!(get(address, &path).json()["data"][1]["content"], said["content"]);
    let gone = post(address, "/v1/responses", &of(json!([name(&json!("msg_none")), question])));
    assert_eq!((gone.status, &gone.json()["error"]["param"]), (404, &json!("input")), "{}", gone.text());
}

#[test]
fn documents_and_summaries_reach_the_model_and_what_is_no_text_is_refused() {
    let server = serve();
    let address = server.address();
    let tokens = |messages: &Value| {
        let body = json!({"model": "story", "messages": messages});
        ok(address, "/v1/messages/count_tokens", &body)["input_tokens"].as_u64().unwrap()
    };
    let of = |block: Value| json!([{"role": "user", "content": [block, {"type": "text", "text": "?"}]}]);
    let text = |data: &str| json!({"type": "text", "media_type": "text/plain", "data": data});
    let short = tokens(&of(json!({"type": "document", "source": text("a bear")})));
    assert!(tokens(&of(json!({"type": "document", "source": text("a bear in the deep forest")}))) > short);
    let found =
        json!({"type": "search_result", "source": "s", "title": "t", "content": [{"type": "text", "text": "a bear"}]});
    for block in [found, json!({"type": "document", "title": "T", "context": "C", "source": text("a bear")})] {
        let answered = post(address, "/v1/messages", &json!({"max_tokens": 2, "messages": of(block)}));
        assert_eq!((answered.status, answered.header("x-yirage-ignored")), (200, None), "{}", answered.text());
    }
    let cited = json!({"type": "document", "source": text("a"), "citations": {"enabled": true}});
    let answered = post(address, "/v1/messages", &json!({"max_tokens": 2, "messages": of(cited)}));
    assert_eq!(answered.header("x-yirage-ignored"), Some("messages.content.citations"));
    for source in [
        json!({"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="}),
        json!({"type": "url", "url": "https://a.example/b.pdf"}),
        json!({"type": "file", "file_id": "file_1"}),
        json!({"type": "content", "content": [{"type": "image", "source": {}}]}),
    ] {
        let block = json!({"type": "document", "source": source});
        let answered = post(address, "/v1/messages", &json!({"max_tokens": 2, "messages": of(block)}));
        assert_eq!(answered.status, 400, "{source}");
    }
    // A summary stands for what came before it.
    let summary = json!({"type": "compaction", "content": "a bear"});
    let long = "Once upon a time there was a little bear who lived in the deep forest.";
    let whole = json!([{"role": "user", "content": long}, {"role": "assistant", "content": [summary]}, {"role": "user", "content": "?"}]);
    let short = json!([{"role": "user", "content": "a bear"}, {"role": "user", "content": "?"}]);
    assert_eq!(tokens(&whole), tokens(&short));
    // A prompt is put into the cache by asking for nothing.
    let nothing =
        ok(address, "/v1/messages", &json!({"max_tokens": 0, "messages": of(json!({"type": "text", "text": long}))}));
    assert_eq!((&nothing["content"], &nothing["stop_reason"]), (&json!([]), &json!("max_tokens")));
}

#[test]
fn ollama() {
    let server = serve();
    let address = server.address();
    // What Copilot (0.6.4) and Codex (0.13.4) want at least.
    let version = get(address, "/api/version").json()["version"].as_str().unwrap().to_owned();
    let numbers: Vec<u32> = version.split('.').map(|number| number.parse().unwrap()).collect();
    assert!(numbers >= vec![0, 13, 4], "{version}");
    assert_eq!(get(address, "/api/tags").json()["models"][0]["name"], "story");
    let chat = json!({"model": "story:latest", "messages": [{"role": "user", "content": "Hello"}], "options": {"num_predict": 12, "seed": 3, "num_gpu": 1}});
    let streamed = post(address, "/api/chat", &chat);
    assert_eq!(streamed.header("x-yirage-ignored"), Some("options.num_gpu"));
    let parts = lines(&streamed);
    let text: String = parts.iter().map(|part| part["message"]["content"].as_str().unwrap()).collect();
    let last = parts.last().unwrap();
    assert_eq!(
        (&last["done"], &last["done_reason"], &last["eval_count"]),
        (&json!(true), &json!("length"), &json!(12))
    );
    let mut whole = chat.clone();
    whole["stream"] = false.into();
    assert_eq!(ok(address, "/api/chat", &whole)["message"]["content"], text);
    let generate = json!({"model": "story", "prompt": "Once upon a time", "raw": true, "stream": false, "options": {"num_predict": 9, "temperature": 0}});
    let raw = ok(address, "/api/generate", &generate)["response"].clone();
    let same = ok(
        address,
        "/v1/completions",
        &json!({"model": "story", "prompt": "Once upon a time", "max_tokens": 9, "temperature": 0}),
    );
    assert_eq!(raw, same["choices"][0]["text"]);
    let show = ok(address, "/api/show", &json!({"model": "story"}));
    assert_eq!(show["capabilities"], json!(["completion", "tools", "thinking"]));
    assert_eq!(show["size"], 1 << 20);
    assert_eq!(get(address, "/api/ps").json()["models"].as_array().unwrap().len(), 1);
    let long = post(
        address,
        "/api/chat",
        &json!({"model": "story", "messages": chat["messages"], "options": {"num_ctx": 9000}}),
    );
    assert_eq!((long.status, long.header("x-yirage-ignored")), (200, Some("options.num_ctx")), "{}", long.text());
    // How long it stays is what the last request said.
    let expires = || get(address, "/api/ps").json()["models"][0]["expires_at"].as_str().unwrap().to_owned();
    assert!(expires().starts_with("9999"));
    ok(address, "/api/generate", &json!({"model": "story", "keep_alive": "1h30m"}));
    assert!(!expires().starts_with("9999"));
    ok(address, "/api/generate", &json!({"model": "story", "keep_alive": -1}));
    assert!(expires().starts_with("9999"));
    assert_eq!(post(address, "/api/generate", &json!({"model": "story", "keep_alive": "soon"})).status, 400);
    // Unloaded, and loaded again by the next request.
    let unloaded = ok(address, "/api/generate", &json!({"model": "story", "keep_alive": 0}));
    assert_eq!(unloaded["done_reason"], "unload");
    assert_eq!(get(address, "/api/ps").json()["models"], json!([]));
    assert_eq!(ok(address, "/api/chat", &whole)["message"]["content"], text);
}

#[test]
fn models_that_are_served_are_pulled_and_none_is_changed() {
    let server = serve();
    let address = server.address();
    assert_eq!(ok(address, "/api/pull", &json!({"model": "story", "stream": false})), json!({"status": "success"}));
    for name in
        [json!({"model": "story"}), json!({"name": "story:latest"}), json!({"model": "org/story", "insecure": false})]
    {
        let answered = post(address, "/api/pull", &name);
        let states = lines(&answered);
        assert_eq!(states.first().unwrap()["status"], "pulling manifest", "{name}");
        assert_eq!(states.last().unwrap()["status"], "success", "{name}");
        assert!(states.iter().all(|state| state["completed"] == state["total"]), "{name}");
    }
    for (name, wanted) in
        [("llama3.2", "yirage pull llama3.2"), ("story:7b", "yirage serve story:7b"), ("", "not served")]
    {
        let refused = post(address, "/api/pull", &json!({"model": name}));
        assert_eq!(refused.status, 404, "{name}");
        assert!(refused.json()["error"].as_str().unwrap().contains(wanted), "{}", refused.text());
    }
    assert_eq!(post(address, "/api/pull", &json!({})).status, 400);
    for path in ["/api/push", "/api/create", "/api/copy"] {
        assert_eq!(post(address, path, &json!({"model": "story"})).status, 501, "{path}");
    }
    assert_eq!(raw(address, &request("DELETE", "/api/delete", &[], b"{\"model\": \"story\"}")).status, 501);
    let listed = get(address, "/api/tags").json()["models"][0].clone();
    assert_eq!((&listed["size"], &listed["name"]), (&json!(1 << 20), &json!("story")));
}

#[test]
fn a_model_is_shown_with_what_its_files_say() {
    let checkpoint = yirage_model::Checkpoint::open(bedtime::f32()).unwrap();
    let described = story(engine_options()).described(yirage_serve::Description::of(&checkpoint));
    let server = serve_with(options(), vec![described]);
    let address = server.address();
    let count: u64 = checkpoint.tensors().map(|tensor| tensor.elements() as u64).sum();
    // Before it is loaded, too.
    let listed = get(address, "/api/tags").json()["models"][0]["details"].clone();
    assert_eq!((&listed["format"], &listed["quantization_level"]), (&json!("gguf"), &json!("F32")));
    assert_eq!(listed["parameter_size"], format!("{}K", (count as f64 / 1e3).round()));
    let shown = ok(address, "/api/show", &json!({"model": "story"}));
    let information = &shown["model_info"];
    assert_eq!((&shown["details"], &information["general.parameter_count"]), (&listed, &json!(count)));
    let architecture = information["general.architecture"].as_str().unwrap();
    assert_eq!(information[format!("{architecture}.context_length")], 256);
    assert!(information[format!("{architecture}.embedding_length")].as_u64().unwrap() > 0, "{information}");
    assert!(shown["modified_at"].as_str().unwrap().ends_with('Z'));
}

fn with_encoders() -> RunningServer {
    serve_with(options(), vec![story(engine_options()), encoder("embed"), encoder("score")])
}

#[test]
fn embeddings_are_those_of_an_independent_implementation() {
    let server = with_encoders();
    let golden = encoders::golden("embed");
    let cases: Vec<&Value> = golden["cases"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|case| case["text"].as_str().is_some_and(|t| !t.is_empty()))
        .collect();
    let texts: Vec<&Value> = cases.iter().map(|case| &case["text"]).collect();
    let body = json!({"model": "embed", "input": texts});
    let answer = ok(server.address(), "/v1/embeddings", &body);
    for (row, case) in answer["data"].as_array().unwrap().iter().zip(&cases) {
        // The model's files may ask for vectors of length 1: directions are compared.
        let (a, b) = (floats(&row["embedding"]), floats(&case["mean"]));
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let cosine = dot(&a, &b) / (dot(&a, &a) * dot(&b, &b)).sqrt();
        assert!(cosine > 0.99999, "{cosine} for {}", case["text"]);
    }
    let packed =
        ok(server.address(), "/v1/embeddings", &json!({"model": "embed", "input": texts, "encoding_format": "base64"}));
    let first = packed["data"][0]["embedding"].as_str().unwrap();
    let length = answer["data"][0]["embedding"].as_array().unwrap().len();
    assert_eq!(first.trim_end_matches('=').len(), (length * 4 * 8).div_ceil(6));
    let ollama = ok(server.address(), "/api/embed", &json!({"model": "embed", "input": texts}));
    assert_eq!(ollama["embeddings"][0], answer["data"][0]["embedding"]);
    for (body, param) in [
        (json!({"model": "story", "input": "a"}), "model"),
        (json!({"model": "score", "input": "a"}), "model"),
        (json!({"model": "embed", "input": "a", "dimensions": 3000}), "dimensions"),
        (json!({"model": "embed", "input": "word ".repeat(5000)}), "input"),
        (json!({"model": "embed"}), "input"),
    ] {
        let refused = post(server.address(), "/v1/embeddings", &body);
        assert_eq!((refused.status, &refused.json()["error"]["param"]), (400, &json!(param)), "{}", refused.text());
    }
    let chat = json!({"model": "embed", "messages": [{"role": "user", "content": "a"}]});
    assert_eq!(post(server.address(), "/v1/chat/completions", &chat).status, 400);
}

#[test]
fn texts_are_ranked() {
    let server = with_encoders();
    let documents = ["an answer", "another one", "something else"];
    let body = json!({"model": "score", "query": "a question", "documents": documents});
    let ranked = ok(server.address(), "/v1/rerank", &body);
    let results = ranked["results"].as_array().unwrap();
    let scores: Vec<f64> = results.iter().map(|result| result["relevance_score"].as_f64().unwrap()).collect();
    assert!(scores.windows(2).all(|pair| pair[0] >= pair[1]) && scores.len() == 3, "{scores:?}");
    let scored =
        ok(server.address(), "/score", &json!({"model": "score", "text_1": "a question", "text_2": documents}));
    for result in results {
        let at = result["index"].as_u64().unwrap() as usize;
        assert_eq!(result["relevance_score"], scored["data"][at]["score"]);
        assert_eq!(result["document"]["text"], documents[at]);
    }
    let mut best = body.clone();
    (best["top_n"], best["return_documents"]) = (1.into(), false.into());
    let best = ok(server.address(), "/rerank", &best);
    assert_eq!(
        best["results"],
        json!([{"index": results[0]["index"], "relevance_score": results[0]["relevance_score"]}])
    );
}

#[test]
fn models_make_room_for_each_other() {
    let one = ServeOptions { memory: Some(3 << 19), ..options() };
    let server = serve_with(one, vec![story(engine_options()), encoder("embed")]);
    let address = server.address();
    let loaded = || {
        let list = get(address, "/v1/models").json();
        let of =
            |model: &Value| (model["status"]["value"] == "loaded").then(|| model["id"].as_str().unwrap().to_owned());
        list["data"].as_array().unwrap().iter().filter_map(of).collect::<Vec<_>>()
    };
    assert_eq!(loaded(), Vec::<String>::new());
    let text = json!({"model": "story", "prompt": "Once", "max_tokens": 2});
    ok(address, "/v1/completions", &text);
    assert_eq!(loaded(), ["story", "org/story"]);
    ok(address, "/v1/embeddings", &json!({"model": "embed", "input": "a"}));
    assert_eq!(loaded(), ["embed"]);
    ok(address, "/v1/completions", &text);
    assert_eq!(loaded(), ["story", "org/story"]);
    ok(address, "/models/unload", &json!({"model": "story"}));
    assert_eq!(loaded(), Vec::<String>::new());
    ok(address, "/models/load", &json!({"model": "embed"}));
    assert_eq!(loaded(), ["embed"]);
}
