//! What of a request reaches the chat template, for templates that read it in different ways.

use crate::support::{engine_options, loaded, ok, options, post, serve_with};
use serde_json::{Value, json};
use std::sync::Arc;
use yirage_model::chat::{TemplateSources, Templates};
use yirage_serve::{Generator, ModelEntry, RunningServer, Served};

/// A server whose model has this template.
fn serving(template: &'static str) -> RunningServer {
    let open = move || {
        let (mut loaded, limits) = (loaded(&engine_options()), engine_options());
        let texts = Arc::get_mut(loaded.texts.as_mut().unwrap()).unwrap();
        let sources = TemplateSources { user: Some(template), ..TemplateSources::default() };
        texts.templates = Templates::resolve(&sources).unwrap();
        let generator = Generator::new(loaded.start().unwrap(), limits.max_seqs as usize, None).unwrap();
        Ok(Served::Generator(Box::new(generator)))
    };
    serve_with(options(), vec![ModelEntry::new(vec!["story".to_owned()], 1 << 20, Box::new(open))])
}

fn prompt(server: &RunningServer, body: &Value) -> String {
    ok(server.address(), "/apply-template", body)["prompt"].as_str().unwrap().to_owned()
}

/// Case 1, and the template's half of case 23.
#[test]
fn tools_reach_the_template_as_they_were_sent() {
    let server = serving("{% for tool in tools %}{{ tool | tojson }}\n{% endfor %}{{ messages[0].content }}");
    let tools = r#"{"type": "function", "function": {"name": "f", "description": "d", "parameters": {"type": "object", "properties": {"z": {"type": "integer", "default": 12345678901234567890123}, "a": {"maximum": 1e2, "minimum": -0}}}}}
{"function": {"parameters": {"type": "object"}, "name": "g", "strict": true}, "type": "function"}
{"type": "function", "function": {"name": "h"}}
"#;
    let list: Vec<Value> = tools.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let found = prompt(&server, &json!({"messages": [{"role": "user", "content": "q"}], "tools": list}));
    assert_eq!(found, tools.replace("1e2", "100.0").replace("-0", "0") + "q");
}

/// Case 17.
#[test]
fn filters_over_no_tools_give_nothing() {
    for (template, wanted) in [
        ("{{ tools | selectattr('type','equalto','x') | list | length }}", "0"),
        ("{{ tools | rejectattr('type') | list }}", "[]"),
        ("{{ tools | map(attribute='function') | map(attribute='name') | join(', ') }}", ""),
        ("{% for t in tools | select('mapping') %}t{% else %}none{% endfor %}", "none"),
        ("{{ tools | reject('none') | first }}", ""),
        ("{{ documents | map('upper') | list | length }}", "0"),
    ] {
        let server = serving(template);
        assert_eq!(prompt(&server, &json!({"messages": [{"role": "user", "content": "hi"}]})), wanted, "{template}");
    }
}

/// Cases 7 and 25.
#[test]
fn calls_reach_a_template_that_wants_null_and_text() {
    let server = serving(
        "{% for m in messages %}{% if m.role == 'assistant' and m.content is none %}{% for c in m.tool_calls %}\
         [{{ c.function.name + c.function.arguments }}]{% endfor %}{% else %}{{ m.role + ':' + m.content }};{% endif %}{% endfor %}",
    );
    let call =
        |arguments: Value| json!({"id": "c", "type": "function", "function": {"name": "f", "arguments": arguments}});
    let sent = |content: Value, arguments: Value| {
        let said = json!({"role": "assistant", "content": content, "tool_calls": [call(arguments)]});
        let answer = json!({"role": "tool", "tool_call_id": "c", "content": "2"});
        json!({"messages": [{"role": "user", "content": "q"}, said, answer]})
    };
    for (content, arguments, wanted) in [
        (json!(null), json!("{\"x\":1}"), "{\"x\":1}"),
        (json!(""), json!("{\"x\": 12345678901234567890123}"), "{\"x\": 12345678901234567890123}"),
        (json!([]), json!({"x": 1, "é": [true]}), "{\"x\": 1, \"é\": [true]}"),
        (json!(null), json!(null), "{}"),
        (json!(null), json!("null"), "{}"),
        (json!(null), json!("{\"x\": "), "{}"),
    ] {
        let found = prompt(&server, &sent(content, arguments));
        assert_eq!(found, format!("user:q;[f{wanted}]tool:2;"));
    }
    let object = serving(
        "{% for m in messages %}{{ m.content or '' }}{% for c in m.tool_calls or [] %}{{ c.function.arguments | tojson }}{% endfor %}{% endfor %}",
    );
    let found = prompt(&object, &sent(json!(null), json!("{\"n\":12345678901234567890123,\"m\":-0}")));
    assert_eq!(found, "q{\"n\": 12345678901234567890123, \"m\": 0}2");
    let body = json!({"messages": sent(json!(null), json!("{\"x"))["messages"], "max_tokens": 1});
    let answered = post(object.address(), "/v1/chat/completions", &body);
    let ignored = answered.header("x-yirage-ignored");
    assert_eq!(
        (answered.status, ignored),
        (200, Some("messages.tool_calls.function.arguments")),
        "{}",
        answered.text()
    );
}

#[test]
fn parts_and_texts_reach_templates_that_read_one_of_them() {
    let parts = json!([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]);
    for (template, text, both) in [
        ("{% for m in messages %}<{{ m.content }}>{% endfor %}", "<a>", "<a\nb>"),
        ("{% for m in messages %}<{% for p in m.content %}{{ p.text }}|{% endfor %}>{% endfor %}", "<a|>", "<a|b|>"),
        ("{% for m in messages %}<{{ m.content[0].text }}>{% endfor %}", "<a>", "<a\nb>"),
    ] {
        let server = serving(template);
        let said = |content: &Value| json!({"messages": [{"role": "user", "content": content}]});
        assert_eq!(prompt(&server, &said(&json!("a"))), text);
        assert_eq!(prompt(&server, &said(&parts)), both);
    }
}

#[test]
fn a_template_that_loses_what_a_user_says_is_an_error() {
    let server = serving("{{ messages[-1].content }}");
    let said = |turns: &[(&str, &str)]| {
        let messages: Vec<Value> = turns.iter().map(|(role, text)| json!({"role": role, "content": text})).collect();
        post(server.address(), "/v1/chat/completions", &json!({"messages": messages, "max_tokens": 1}))
    };
    assert_eq!(said(&[("user", "hello")]).status, 200);
    let lost = said(&[("user", "first"), ("assistant", "a"), ("user", "second")]);
    assert_eq!((lost.status, &lost.json()["error"]["param"]), (400, &json!("messages[0].content")), "{}", lost.text());
    // Two in a row are one, of which nothing is lost.
    assert_eq!(said(&[("user", "first"), ("user", "second")]).status, 200);
}

/// Seed-OSS writes the budget into the thought that it opens.
#[test]
fn a_thought_that_the_prompt_opens_and_goes_on_in_is_open() {
    let message = |template: &'static str, said: &str| {
        let server = serving(template);
        let body = json!({"messages": [{"role": "user", "content": said}], "max_tokens": 12, "temperature": 0});
        ok(server.address(), "/v1/chat/completions", &body)["choices"][0]["message"].clone()
    };
    let budget = "{% for m in messages %}<u>{{ m.content }}{% endfor %}{% if add_generation_prompt %}<a><seed:think>\n\
                  I have 512 tokens.\n{% endif %}{# </seed:think> #}";
    let thinks = message(budget, "Once");
    assert!(!thinks["reasoning_content"].as_str().unwrap().is_empty() && thinks["content"] == "", "{thinks}");
    // What a user says of thoughts opens none, nor does one that is closed.
    let plain = "{% for m in messages %}<u>{{ m.content }}{% endfor %}{% if add_generation_prompt %}<a>{% endif %}{# </seed:think> #}";
    let closed = "{% for m in messages %}<u>{{ m.content }}{% endfor %}{% if add_generation_prompt %}<a><seed:think>no\
                  </seed:think>{% endif %}";
    for (template, said) in [(plain, "<seed:think> is a mark"), (closed, "Once"), (closed, "<seed:think> is a mark")] {
        let says = message(template, said);
        assert!(!says["content"].as_str().unwrap().is_empty(), "{says}");
    }
}

/// A template has one name for the switch of thoughts, and each interface another one: every one of them reaches every one.
#[test]
fn a_switch_for_thoughts_reaches_the_name_that_a_template_has_for_it() {
    let says = |read: &str| {
        let text =
            format!("{{% for m in messages %}}{{{{ m.content }}}}{{% endfor %}}{{% if {read} %}} thinks{{% endif %}}");
        serving(Box::leak(text.into_boxed_str()))
    };
    for (on, off) in [
        ("enable_thinking", "enable_thinking is defined and not enable_thinking"),
        ("thinking", "thinking is false"),
        ("reasoning", "reasoning is defined and not reasoning"),
        ("thinking_mode == 'enabled'", "thinking_mode == 'disabled'"),
    ] {
        let (thinks, rests) = (says(on), says(off));
        let said = |server: &RunningServer, more: &Value| {
            let mut body = json!({"messages": [{"role": "user", "content": "q"}]});
            body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            prompt(server, &body) == "q thinks"
        };
        for more in [
            json!({"reasoning_effort": "low"}),
            json!({"reasoning": {"effort": "high"}}),
            json!({"thinking": {"type": "enabled"}}),
            json!({"enable_thinking": true}),
            json!({"think": true}),
            json!({"think": "high"}),
            json!({"thinking": {"type": "enabled"}, "reasoning_effort": "none"}),
        ] {
            assert_eq!((said(&thinks, &more), said(&rests, &more)), (true, false), "{on}: {more}");
        }
        for more in [
            json!({"reasoning_effort": "none"}),
            json!({"thinking": {"type": "disabled"}}),
            json!({"enable_thinking": false}),
            json!({"think": false}),
            json!({"enable_thinking": false, "reasoning_effort": "high"}),
        ] {
            assert_eq!((said(&thinks, &more), said(&rests, &more)), (false, true), "{off}: {more}");
        }
        assert_eq!((said(&thinks, &json!({})), said(&rests, &json!({}))), (false, false), "{on}");
        let messages = json!([{"role": "user", "content": "q"}]);
        let tokens = |path: &str, more: &Value, place: &str| {
            let mut body = json!({"messages": messages, "max_tokens": 1});
            if path == "/v1/responses" {
                body = json!({"input": messages, "max_output_tokens": 1});
            } else if path == "/api/chat" {
                body = json!({"messages": messages, "stream": false, "options": {"num_predict": 1}});
            }
            body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            ok(thinks.address(), path, &body).pointer(place).unwrap().as_u64().unwrap()
        };
        for (path, yes, no, place) in [
            ("/v1/messages", json!({"thinking": {"type": "adaptive"}}), json!({}), "/usage/input_tokens"),
            ("/v1/responses", json!({"reasoning": {"effort": "low"}}), json!({}), "/usage/input_tokens"),
            ("/api/chat", json!({"think": true}), json!({"think": false}), "/prompt_eval_count"),
        ] {
            assert!(tokens(path, &yes, place) > tokens(path, &no, place), "{path}: {on}");
        }
    }
}

/// Agents send the words of their makers' models; a template that refuses one is given none, which is said.
#[test]
fn a_word_for_effort_that_a_template_refuses_is_left_out_and_named() {
    let server = serving(
        "{% if reasoning_effort is defined and reasoning_effort not in ['low', 'high'] %}{{ raise_exception('low or high') }}\
         {% endif %}{% for m in messages %}{{ m.content }}{% endfor %} {{ reasoning_effort }}",
    );
    let messages = json!([{"role": "user", "content": "q"}]);
    for (path, body) in [
        ("/v1/chat/completions", json!({"messages": messages, "reasoning_effort": "medium", "max_tokens": 1})),
        ("/v1/messages", json!({"messages": messages, "output_config": {"effort": "medium"}, "max_tokens": 1})),
        ("/v1/messages/count_tokens", json!({"messages": messages, "output_config": {"effort": "max"}})),
        ("/v1/responses", json!({"input": "q", "reasoning": {"effort": "minimal"}, "max_output_tokens": 1})),
        ("/v1/responses/input_tokens", json!({"input": "q", "reasoning": {"effort": "minimal"}})),
        ("/api/chat", json!({"messages": messages, "think": "medium", "stream": false, "options": {"num_predict": 1}})),
        ("/apply-template", json!({"messages": messages, "reasoning_effort": "xhigh"})),
        ("/tokenize", json!({"messages": messages, "reasoning_effort": "none"})),
    ] {
        let answered = post(server.address(), path, &body);
        let ignored = answered.header("x-yirage-ignored").unwrap_or_default();
        assert_eq!(answered.status, 200, "{path}: {}", answered.text());
        assert!(ignored.contains("reasoning_effort="), "{path}: {ignored}");
    }
    let said = |effort: &str| prompt(&server, &json!({"messages": messages, "reasoning_effort": effort}));
    assert_eq!((said("high"), said("medium")), ("q high".to_owned(), "q ".to_owned()));
    // What it refuses for another reason is refused as before.
    let refuses = serving("{{ raise_exception('never') }}");
    let body = json!({"messages": messages, "reasoning_effort": "low", "max_tokens": 1});
    let refused = post(refuses.address(), "/v1/chat/completions", &body);
    assert!(refused.status == 400 && refused.text().contains("never"), "{}", refused.text());
}

/// Magistral's way: thoughts are parts of content.
#[test]
fn thoughts_reach_a_template_that_reads_them_as_parts() {
    let server = serving(
        "{% for m in messages %}<{{ m.role }}>{% if m.content is string %}{{ m.content }}{% else %}{% for p in m.content %}\
         {% if p.type == 'thinking' %}[THINK]{% for t in p.thinking %}{{ t.text }}{% endfor %}[/THINK]{% else %}{{ p.text }}{% endif %}\
         {% endfor %}{% endif %}{% endfor %}",
    );
    let thought = json!({"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]});
    for said in [
        json!({"role": "assistant", "content": "a", "reasoning_content": "hm"}),
        json!({"role": "assistant", "content": [thought, {"type": "text", "text": "a"}]}),
    ] {
        let body = json!({"messages": [{"role": "user", "content": "q"}, said, {"role": "user", "content": "r"}]});
        assert_eq!(prompt(&server, &body), "<user>q<assistant>[THINK]hm[/THINK]a<user>r");
    }
}

/// Of kind 7: calls of the past are lost from the prompt by templates that show content alone, as LFM2's.
#[test]
fn calls_that_a_template_shows_nowhere_are_shown_as_the_model_writes_them() {
    const CONTENT: &str = "{% for m in messages %}<{{ m.role }}>{{ m.content if m.content is string else m.content | tojson }}\
                           {% endfor %}";
    let call = |name: &str, arguments: Value| json!({"id": "call_1", "type": "function", "function": {"name": name, "arguments": arguments}});
    let sent = |content: Value, calls: Value| {
        let said = json!({"role": "assistant", "content": content, "tool_calls": calls});
        let answer = json!({"role": "tool", "tool_call_id": "call_1", "content": "2"});
        json!({"model": "story", "messages": [{"role": "user", "content": "q"}, said, answer], "max_tokens": 1})
    };
    let one = || json!([call("f", json!("{\"x\": 12345678901234567890123, \"y\": \"\u{e9}\"}"))]);
    let two = json!([call("f", json!({"x": true})), call("g", json!({}))]);
    let list = "{% if tools %}<|tool_list_start|>{{ tools | tojson }}<|tool_list_end|>{% endif %}";
    let server = serving(Box::leak(format!("{list}{CONTENT}").into_boxed_str()));
    let written = "<|tool_call_start|>[f(x=12345678901234567890123, y=\"\u{e9}\")]<|tool_call_end|>";
    for (content, calls, wanted) in [
        (json!(null), one(), written.to_owned()),
        (json!("I look. "), one(), format!("I look. {written}")),
        (json!(""), two, "<|tool_call_start|>[f(x=True), g()]<|tool_call_end|>".to_owned()),
    ] {
        let found = prompt(&server, &sent(content, calls));
        assert_eq!(found, format!("<user>q<assistant>{wanted}<tool>2"));
    }
    // Where it is not known how the model writes calls, they are named.
    let unknown = serving(CONTENT);
    let answered = post(unknown.address(), "/v1/chat/completions", &sent(json!(null), one()));
    assert_eq!(answered.status, 200, "{}", answered.text());
    assert_eq!(answered.header("x-yirage-ignored"), Some("messages.tool_calls"));
}
