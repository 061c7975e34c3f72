//! Calls of tools as a model writes them, through every protocol, whole and in parts. What the model says is forced by a
//! grammar, so that its text is known; marks may be special tokens.

use crate::support::{device, engine_options, ok, options, post, serve_with};
use serde_json::{Value, json};
use std::sync::Arc;
use yirage_engine::EngineOptions;
use yirage_model::Checkpoint;
use yirage_model::chat::{TemplateSources, Templates};
use yirage_serve::{Generator, ModelEntry, RunningServer, Served};
use yirage_session::LoadedEngine;
use yirage_testkit::bedtime;

/// A server whose model writes calls as `call` does, which has `c` for one of the past.
fn serving(call: &str) -> RunningServer {
    let source = format!(
        "{{% if tools %}}{{% for t in tools %}}{{{{ t.function.name }}}} {{% endfor %}}{{% endif %}}{{% for m in messages %}}\
         {{{{ m.role }}}}:{{% if m.tool_calls %}}{{% for c in m.tool_calls %}}{call}{{% endfor %}}{{% else %}}{{{{ m.content }}}}\
         {{% endif %}}{{% endfor %}}{{% if add_generation_prompt %}}assistant:{{% endif %}}{{# </think> #}}"
    );
    let open = move || {
        let limits = EngineOptions { context: Some(1024), ..engine_options() };
        let checkpoint = Checkpoint::open(bedtime::that_calls_tools()).unwrap();
        let mut loaded = LoadedEngine::load(&checkpoint, device(), &limits, &mut |_, _| {}).unwrap();
        let texts = Arc::get_mut(loaded.texts.as_mut().unwrap()).unwrap();
        let sources = TemplateSources { user: Some(&source), ..TemplateSources::default() };
        texts.templates = Templates::resolve(&sources).unwrap();
        Ok(Served::Generator(Box::new(
            Generator::new(loaded.start().unwrap(), limits.max_seqs as usize, None).unwrap(),
        )))
    };
    serve_with(options(), vec![ModelEntry::new(vec!["story".to_owned()], 1 << 20, Box::new(open))])
}

const GLM: &str = "<tool_call>{{ c.function.name }}{% for k, v in c.function.arguments.items() %}<arg_key>{{ k }}</arg_key>\
                   <arg_value>{{ v }}</arg_value>{% endfor %}</tool_call>";
const CODER: &str = "<tool_call><function={{ c.function.name }}>{% for k, v in c.function.arguments.items() %}<parameter={{ k }}>\
                     {{ v }}</parameter>{% endfor %}</function></tool_call>";
const SEED: &str = "<seed:tool_call><function={{ c.function.name }}>{% for k, v in c.function.arguments.items() %}\
                    <parameter={{ k }}>{{ v }}</parameter>{% endfor %}</function></seed:tool_call>";
const HERMES: &str = "<tool_call>{{ c.function | tojson }}</tool_call>";
const MISTRAL: &str = "[TOOL_CALLS]{{ c.function.name }}[ARGS]{{ c.function.arguments | tojson }}";

/// The ids of the marks that are special tokens: the last four of 512.
const CALL: &str = "<[508]>";
const ARGS: &str = "<[509]>";
const THINK: &str = "<[510]>";
const THOUGHT: &str = "<[511]>";

fn body(said: &str, more: &Value) -> Value {
    let properties = json!({"city": {"type": "string"}, "b": {"type": "boolean"}, "n": {"type": "integer"}});
    let parameters = json!({"type": "object", "properties": properties});
    let tool = json!({"type": "function", "function": {"name": "get_weather", "parameters": parameters}});
    let mut body = json!({
        "messages": [{"role": "user", "content": "Hi"}], "tools": [tool], "max_tokens": 300, "temperature": 0,
        "grammar": format!("start: {said}"),
    });
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

/// Content, thoughts, calls and the end of an answer, which is the same whole and in parts.
fn answer(server: &RunningServer, said: &str, more: &Value) -> (String, String, Vec<(String, String)>, String) {
    let mut body = body(said, more);
    let whole = ok(server.address(), "/v1/chat/completions", &body)["choices"][0].clone();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let function = |call: &Value| (text(&call["function"]["name"]), text(&call["function"]["arguments"]));
    let calls = whole["message"]["tool_calls"].as_array();
    let found = (
        text(&whole["message"]["content"]),
        text(&whole["message"]["reasoning_content"]),
        calls.into_iter().flatten().map(function).collect::<Vec<_>>(),
        text(&whole["finish_reason"]),
    );
    body["stream"] = true.into();
    let mut streamed = (String::new(), String::new(), Vec::<(String, String)>::new(), String::new());
    for event in post(server.address(), "/v1/chat/completions", &body).events() {
        let choice = &event["choices"][0];
        streamed.0 += &text(&choice["delta"]["content"]);
        streamed.1 += &text(&choice["delta"]["reasoning_content"]);
        streamed.3 += &text(&choice["finish_reason"]);
        for call in choice["delta"]["tool_calls"].as_array().into_iter().flatten() {
            let at = call["index"].as_u64().unwrap() as usize;
            if at == streamed.2.len() {
                assert!(call["id"].is_string());
                streamed.2.push(Default::default());
            }
            streamed.2[at].0 += &text(&call["function"]["name"]);
            streamed.2[at].1 += &text(&call["function"]["arguments"]);
        }
    }
    assert_eq!(streamed, found, "{said}");
    found
}

fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// Cases 5, 9, 23 and 27.
#[test]
fn calls_of_every_kind_come_whole_and_in_parts() {
    for (template, said, arguments) in [
        (
            GLM,
            "<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Paris</arg_value>\n</tool_call>",
            json!({"city": "Paris"}),
        ),
        (
            GLM,
            "<tool_call>get_weather<arg_key>n</arg_key><arg_value>12345678901234567890123</arg_value></tool_call>",
            serde_json::from_str(r#"{"n": 12345678901234567890123}"#).unwrap(),
        ),
        (
            CODER,
            "<tool_call>\n<function=get_weather>\n<parameter=city>\n42\n</parameter>\n<parameter=b>\nTrue\n</parameter>\n\
             </function>\n</tool_call>",
            json!({"city": "42", "b": true}),
        ),
        (CODER, "<function=get_weather>\n<parameter=n>\n7\n</parameter>\n</function>\n</tool_call>", json!({"n": 7})),
        (
            SEED,
            "<seed:tool_call>\n<function=get_weather>\n<parameter=city>Paris</parameter>\n</function>\n</seed:tool_call>",
            json!({"city": "Paris"}),
        ),
        (
            HERMES,
            "<tool_call>{\"name\": \"get_weather\", \"arguments\": {\"n\": 12345678901234567890123}}</tool_call>",
            serde_json::from_str(r#"{"n": 12345678901234567890123}"#).unwrap(),
        ),
        (
            HERMES,
            "<tool_call>{\"name\": \"get_weather\", \"arguments\": {\"n\": -0}}</tool_call>",
            serde_json::from_str(r#"{"n": -0}"#).unwrap(),
        ),
    ] {
        let server = serving(template);
        let (content, reasoning, calls, end) = answer(&server, &quoted(said), &json!({}));
        assert_eq!((content.as_str(), reasoning.as_str(), end.as_str()), ("", "", "tool_calls"), "{said}");
        let [(name, found)] = calls.as_slice() else { panic!("{said}: {calls:?}") };
        assert_eq!(name, "get_weather");
        assert_eq!(serde_json::from_str::<Value>(found).unwrap(), arguments, "{said}");
    }
}

/// Clients of the time before `tools` send `functions`, and read one call.
#[test]
fn functions_are_answered_by_one_call() {
    let server = serving(HERMES);
    let call =
        |city: &str| format!(r#"<tool_call>{{"name": "get_weather", "arguments": {{"city": "{city}"}}}}</tool_call>"#);
    let of_functions = |said: &str, more: &Value| {
        let mut body = body(said, more);
        let tools = body.as_object_mut().unwrap().remove("tools").unwrap();
        body["functions"] = json!([tools[0]["function"]]);
        body
    };
    for said in [call("Paris"), call("Paris") + &call("Rome")] {
        let mut body = of_functions(&quoted(&said), &json!({"function_call": "auto"}));
        let whole = ok(server.address(), "/v1/chat/completions", &body)["choices"][0].clone();
        let wanted = json!({"name": "get_weather", "arguments": "{\"city\": \"Paris\"}"});
        assert_eq!((&whole["message"]["function_call"], &whole["finish_reason"]), (&wanted, &json!("function_call")));
        assert!(whole["message"]["content"].is_null() && whole["message"]["tool_calls"].is_null(), "{whole}");
        body["stream"] = true.into();
        let (mut name, mut arguments, mut end) = (String::new(), String::new(), String::new());
        for event in post(server.address(), "/v1/chat/completions", &body).events() {
            let choice = &event["choices"][0];
            assert!(choice["delta"]["tool_calls"].is_null(), "{choice}");
            name += choice["delta"]["function_call"]["name"].as_str().unwrap_or_default();
            arguments += choice["delta"]["function_call"]["arguments"].as_str().unwrap_or_default();
            end += choice["finish_reason"].as_str().unwrap_or_default();
        }
        assert_eq!((json!({"name": name, "arguments": arguments}), end.as_str()), (wanted, "function_call"));
    }
    // One that has to come.
    let mut forced = of_functions("", &json!({"function_call": {"name": "get_weather"}}));
    forced.as_object_mut().unwrap().remove("grammar");
    let answered = post(server.address(), "/v1/chat/completions", &forced);
    assert_eq!(answered.status, 200, "{}", answered.text());
    assert_eq!(answered.json()["choices"][0]["message"]["function_call"]["name"], "get_weather");
    // The call and its answer come back in the next request.
    let history = json!({"messages": [
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": null, "function_call": {"name": "get_weather", "arguments": "{\"n\": 7}"}},
        {"role": "function", "name": "get_weather", "content": "sun"},
    ]});
    let prompt = ok(server.address(), "/apply-template", &history)["prompt"].as_str().unwrap().to_owned();
    let shown = r#"assistant:<tool_call>{"name": "get_weather", "arguments": {"n": 7}}</tool_call>tool:sun"#;
    assert!(prompt.contains(shown), "{prompt}");
}

/// Case 19: marks that are special tokens came before text that was held back for a stop string.
#[test]
fn marks_stand_where_they_were_written_whatever_is_held_back() {
    let server = serving(MISTRAL);
    let call = format!("{CALL} \"get_weather\" {ARGS} {}", quoted(r#"{"city": "Paris"}"#));
    let wanted = vec![("get_weather".to_owned(), r#"{"city": "Paris"}"#.to_owned())];
    for stop in [json!(null), json!(["Surely"]), json!(["zzz"]), json!(["Sure[TOOL_CALLS]"]), json!(["eget"])] {
        let found = answer(&server, &format!("\"Sure\" {call}"), &json!({"stop": stop}));
        assert_eq!(found, ("Sure".to_owned(), String::new(), wanted.clone(), "tool_calls".to_owned()), "{stop}");
    }
    for stop in [json!(null), json!(["hmm"]), json!(["Surely"]), json!(["mSure"])] {
        let said = format!("{THINK} \"hm\" {THOUGHT} \"Sure\" {call}");
        let found = answer(&server, &said, &json!({"stop": stop}));
        assert_eq!(found, ("Sure".to_owned(), "hm".to_owned(), wanted.clone(), "tool_calls".to_owned()), "{stop}");
    }
    // A stop string that comes ends the answer all the same.
    let (content, _, calls, end) = answer(&server, &format!("\"Surely\" {call}"), &json!({"stop": ["rely"]}));
    assert_eq!((content.as_str(), calls.len(), end.as_str()), ("Su", 0, "stop"));
}

/// The other protocols tell the same call.
#[test]
fn every_protocol_tells_the_call() {
    let server = serving(HERMES);
    let said = "<tool_call>{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\"}}</tool_call>";
    let forced = ok(server.address(), "/v1/chat/completions", &body(&quoted(said), &json!({})));
    assert_eq!(forced["choices"][0]["message"]["content"], Value::Null);
    let (only, some) = (json!({"parallel_tool_calls": false}), json!({}));
    let twice = quoted(&format!("{said}\n{said}"));
    assert_eq!(answer(&server, &twice, &only).2.len(), 1);
    assert_eq!(answer(&server, &twice, &some).2.len(), 2);
}

/// A client sees arguments grow: they come in many deltas, whatever the form, and together they are the whole.
#[test]
fn arguments_stream_as_they_are_written() {
    let city = "Paris, the capital of France, where the river is wide";
    let object = json!({"city": city}).to_string();
    let hermes = format!("<tool_call>{{\"name\": \"get_weather\", \"arguments\": {object}}}</tool_call>");
    let glm = format!("<tool_call>get_weather<arg_key>city</arg_key><arg_value>{city}</arg_value></tool_call>");
    let elements = format!("<function=get_weather><parameter=city>{city}</parameter></function>");
    for (template, said) in [
        (HERMES, quoted(&hermes)),
        (GLM, quoted(&glm)),
        (CODER, quoted(&format!("<tool_call>{elements}</tool_call>"))),
        (SEED, quoted(&format!("<seed:tool_call>{elements}</seed:tool_call>"))),
        (MISTRAL, format!("{CALL} \"get_weather\" {ARGS} {}", quoted(&object))),
    ] {
        let server = serving(template);
        let events = post(server.address(), "/v1/chat/completions", &body(&said, &json!({"stream": true}))).events();
        let parts = events
            .iter()
            .filter_map(|event| event["choices"][0]["delta"]["tool_calls"][0]["function"]["arguments"].as_str());
        let parts: Vec<&str> = parts.filter(|part| !part.is_empty()).collect();
        assert!(parts.len() > 5, "{template}: {parts:?}");
        assert_eq!(serde_json::from_str::<Value>(&parts.concat()).unwrap(), json!({"city": city}), "{template}");
    }
}

/// A conversation with two tools, of which one has to be called.
fn forced(more: &Value) -> Value {
    let weather = json!({"type": "object", "required": ["city"], "additionalProperties": false,
        "properties": {"city": {"type": "string", "enum": ["Paris", "Rome"]}, "n": {"enum": [1, 2]}}});
    let tool = |name: &str, parameters: Value| json!({"type": "function", "function": {"name": name, "parameters": parameters}});
    let mut body = json!({
        "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 600, "temperature": 1.5, "tool_choice": "required",
        "tools": [tool("get_weather", weather), tool("now", json!({"type": "object", "properties": {}, "additionalProperties": false}))],
    });
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

/// A model is held to its own form: its marks come as its tokens, and its parser reads what comes.
#[test]
fn calls_that_have_to_come_are_in_the_models_own_form() {
    for template in [GLM, CODER, SEED, HERMES, MISTRAL] {
        let server = serving(template);
        // That several may come the grammars of all forms show; this model likes to end behind one.
        let mut ended = 0;
        for seed in 0..8 {
            let body = forced(&json!({"seed": seed}));
            let answered = post(server.address(), "/v1/chat/completions", &body);
            assert_eq!((answered.status, answered.header("x-yirage-calls")), (200, None), "{}", answered.text());
            let choice = answered.json()["choices"][0].clone();
            if choice["finish_reason"] == "length" {
                continue;
            }
            assert_eq!((&choice["finish_reason"], &choice["message"]["content"]), (&json!("tool_calls"), &Value::Null));
            let calls = choice["message"]["tool_calls"].as_array().unwrap();
            ended += 1;
            assert!(!calls.is_empty(), "{choice}");
            for call in calls {
                let arguments: Value = serde_json::from_str(call["function"]["arguments"].as_str().unwrap()).unwrap();
                match call["function"]["name"].as_str().unwrap() {
                    "now" => assert_eq!(arguments, json!({}), "{choice}"),
                    "get_weather" => {
                        assert!(arguments["city"] == "Paris" || arguments["city"] == "Rome", "{choice}");
                        assert!(arguments.get("n").is_none_or(|n| *n == 1 || *n == 2), "{choice}");
                    }
                    other => panic!("{other}: {choice}"),
                }
            }
        }
        assert!(ended > 0, "{template}");
    }
}

#[test]
fn calls_that_the_models_form_cannot_hold_are_bare_json_and_it_is_told() {
    let server = serving(GLM);
    let schema = json!({"type": "object", "properties": {"a": {"type": "string", "pattern": "^(x|y)$"}}, "required": ["a"],
        "additionalProperties": false});
    let tool = json!({"type": "function", "function": {"name": "f", "parameters": schema}});
    for stream in [false, true] {
        let body = forced(
            &json!({"tools": [tool], "tool_choice": {"type": "function", "function": {"name": "f"}}, "stream": stream}),
        );
        let answered = post(server.address(), "/v1/chat/completions", &body);
        let told = answered.header("x-yirage-calls").unwrap_or_default().to_owned();
        assert!(told.starts_with("json; ") && told.contains("f: a: `pattern`"), "{told:?}");
        if !stream {
            let call = &answered.json()["choices"][0]["message"]["tool_calls"][0]["function"];
            assert!(["{\"a\": \"x\"}", "{\"a\": \"y\"}"].contains(&call["arguments"].as_str().unwrap()), "{call}");
        }
    }
    // A template that shows no form of calls.
    let server = serving("call {{ c.function.name }} with {{ c.function.arguments | length }} arguments");
    let answered = post(server.address(), "/v1/chat/completions", &forced(&json!({"parallel_tool_calls": false})));
    assert_eq!(answered.status, 200, "{}", answered.text());
    assert!(answered.header("x-yirage-calls").unwrap_or_default().contains("no form of calls"));
}

#[test]
fn tools_are_refused_where_calls_are_not_known() {
    let server = serving("call {{ c.function.name }} with {{ c.function.arguments | length }} arguments");
    let refused = post(server.address(), "/v1/chat/completions", &body("\"a\"", &json!({})));
    assert_eq!(refused.status, 400, "{}", refused.text());
    assert_eq!(refused.json()["error"]["param"], "tools");
}
