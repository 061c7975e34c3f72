use super::*;
use crate::chat::ChatTemplate;

fn reads(source: &str) -> Capabilities {
    ChatTemplate::new("test", source).unwrap().capabilities().clone()
}

/// A template whose assistant writes `inner` for each message, and that shows every content as it is.
fn of_messages(inner: &str) -> String {
    format!("{{% for m in messages %}}<{{{{ m.role }}}}>{inner}{{% endfor %}}")
}

const CALLS: &str = "{% for c in m.tool_calls or [] %}{{ c.function.name }}";

/// Case 7: whether null stays null.
#[test]
fn null_is_kept_where_it_is_shown_as_nothing() {
    let calls = format!("{CALLS}{{{{ c.function.arguments }}}}{{% endfor %}}");
    for (content, beside, alone) in [
        ("{{ m.content }}", false, false),
        ("{{ m['content'] + '' }}", false, false),
        ("{{ m.content | trim }}", false, false),
        ("{% if m.content %}{{ m.content }}{% endif %}", true, true),
        ("{{ m.content or '' }}", true, true),
        ("{% if m.content is not none %}{{ m.content }}{% endif %}", true, true),
        ("{% if not m.tool_calls %}{{ m.content }}{% endif %}", true, false),
        (
            "{% if m.content is none and not m.tool_calls %}{{ raise_exception('no') }}{% endif %}{{ m.content or '' }}",
            true,
            false,
        ),
        ("{{ '' if m.content is none else m.content }}", true, true),
        ("{{ m.content if m.content is string else m.content | tojson }}", false, false),
    ] {
        let found = reads(&of_messages(&format!("{content}{calls}")));
        assert_eq!((found.null_beside_calls, found.null_alone), (beside, alone), "{content}");
        assert!(found.empty_beside_calls, "{content}");
    }
    let strict =
        of_messages(&format!("{{% if m.content is none %}}{calls}{{% else %}}{{{{ m.content }}}}{{% endif %}}"));
    let found = reads(&strict);
    assert!(found.null_beside_calls && !found.empty_beside_calls);
    let call = json!({"function": {"name": "f", "arguments": "{}"}});
    for empty in [json!(""), Json::Null] {
        let sent = [json!({"role": "assistant", "content": empty, "tool_calls": [call]})];
        assert_eq!(found.adapt(&sent)[0]["content"], Json::Null);
    }
    let said = [json!({"role": "assistant", "content": "hm", "tool_calls": [call]})];
    assert_eq!(found.adapt(&said)[0]["content"], "hm");
}

#[test]
fn content_is_given_as_it_is_read() {
    let text = ContentSupport { text: true, part: false, parts: false };
    let part = ContentSupport { text: false, part: true, parts: false };
    let parts = ContentSupport { text: false, part: true, parts: true };
    let both = ContentSupport { text: true, part: true, parts: true };
    let first = ContentSupport { text: true, part: true, parts: false };
    for (content, wanted) in [
        ("{{ m.content }}", text),
        ("{{ m.content | trim }}", text),
        ("{{ '>' + m['content'] }}", text),
        ("{{ m.content | tojson }}", text),
        (
            "{{ ' \"text\" ' }}{% if m.content is string %}{{ m.content }}{% else %}{% for p in m.content %}{{ p.text }}{% endfor %}{% endif %}",
            both,
        ),
        ("{% for p in m.content %}{{ p.text }}{% endfor %}", parts),
        ("{{ m.content[0].text }}", part),
        ("{{ m.content if m.content is string else m.content[0].text }}", first),
        ("{{ m.content | map(attribute='text') | join }}", parts),
        (
            "{% if m.content is string %}{{ m.content }}{% else %}{% for p in m.content %}{{ p['text'] }}{% endfor %}{% endif %}",
            both,
        ),
    ] {
        let found = reads(&of_messages(content));
        assert_eq!((found.user, found.system, found.assistant), (wanted, wanted, wanted), "{content}");
    }
    let mixed = "{% for m in messages %}{% if m.role == 'system' %}{{ m.content[0].text }}{% else %}{{ m.content }}{% endif %}{% endfor %}";
    let found = reads(mixed);
    assert_eq!((found.system, found.user), (part, text));
    let list = json!([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]);
    assert_eq!(text.shape(&list, false), "a\nb");
    assert_eq!(both.shape(&list, false), list);
    assert_eq!(parts.shape(&json!("a"), false), json!([{"type": "text", "text": "a"}]));
    assert_eq!(both.shape(&json!("a"), false), "a");
    assert_eq!(first.shape(&list, false), "a\nb");
    assert_eq!(part.shape(&list, false), json!([{"type": "text", "text": "a\nb"}]));
}

#[test]
fn arguments_are_given_as_they_are_read() {
    for (arguments, wanted) in [
        ("{{ c.function.arguments }}", ToolArgumentsFormat::Text),
        ("{{ 'x' + c['function']['arguments'] }}", ToolArgumentsFormat::Text),
        ("{{ c.function.arguments.strip() }}", ToolArgumentsFormat::Text),
        ("{{ c.function.arguments | tojson }}", ToolArgumentsFormat::Object),
        ("{{ c.function | tojson }}", ToolArgumentsFormat::Object),
        ("{% for k, v in c.function.arguments.items() %}{{ k }}={{ v }}{% endfor %}", ToolArgumentsFormat::Object),
        (
            "{% for k in c.function.arguments %}{{ k }}{{ c.function.arguments[k] }}{% endfor %}",
            ToolArgumentsFormat::Object,
        ),
        (
            "{% if c.function.arguments is string %}{{ c.function.arguments }}{% else %}{{ c.function.arguments | tojson }}{% endif %}",
            ToolArgumentsFormat::Object,
        ),
        (
            "{% if c.function.arguments is mapping %}{{ raise_exception('text') }}{% endif %}{{ c.function.arguments }}",
            ToolArgumentsFormat::Text,
        ),
        ("", ToolArgumentsFormat::Object),
    ] {
        let source = of_messages(&format!("{{{{ m.content or '' }}}}{CALLS}{arguments}{{% endfor %}}"));
        assert_eq!(reads(&source).arguments, wanted, "{arguments}");
    }
    let sent = json!({"n": 12345678901234567890123_u128, "é": ["a", {}]});
    assert_eq!(ToolArgumentsFormat::Text.shape(&sent), r#"{"n": 12345678901234567890123, "é": ["a", {}]}"#);
    assert_eq!(ToolArgumentsFormat::Text.shape(&json!("{ }")), "{ }");
    assert_eq!(ToolArgumentsFormat::Object.shape(&json!(sent.to_string())), sent);
    assert_eq!(ToolArgumentsFormat::Object.shape(&json!("{ }")), json!({}));
}

#[test]
fn thoughts_have_the_name_that_is_read() {
    for (thoughts, wanted) in [
        ("{{ m.reasoning_content }}", "reasoning_content"),
        ("{{ m.reasoning }}", "reasoning"),
        ("{% if m.thinking %}{{ m.thinking }}{% endif %}", "thinking"),
        ("{% if m.role == 'assistant' and m.tool_calls and m.thinking %}{{ m.thinking }}{% endif %}", "thinking"),
        ("{{ m.get('reasoning', '') }}", "reasoning"),
        ("{% if loop.last and m.reasoning is defined %}{{ m.reasoning }}{% endif %}", "reasoning"),
        ("{{ m.reasoning_content or m.thinking }}", "reasoning_content"),
        ("", "reasoning_content"),
    ] {
        let found = reads(&of_messages(&format!("{{{{ m.content }}}}{thoughts}")));
        assert_eq!(found.thoughts, wanted, "{thoughts}");
        let sent = [json!({"role": "assistant", "content": "a", "reasoning_content": "hm"})];
        assert_eq!(found.adapt(&sent)[0][wanted], "hm");
    }
}

/// Magistral's template, in its two makers' ways.
#[test]
fn thoughts_are_parts_of_content_where_they_are_read_so() {
    let list = "{% for b in p.thinking %}{{ b.text }}{% endfor %}";
    for (inner, part) in
        [(list, Some(ThoughtPart::List)), ("{{ p.thinking + '' }}", Some(ThoughtPart::Text)), ("", None)]
    {
        let source = of_messages(&format!(
            "{{% if m.content is string %}}{{{{ m.content }}}}{{% else %}}{{% for p in m.content %}}{{% if p.type == 'text' %}}\
                 {{{{ p.text }}}}{{% elif p.type == 'thinking' %}}[THINK]{inner}[/THINK]{{% endif %}}{{% endfor %}}{{% endif %}}"
        ));
        let template = ChatTemplate::new("test", &source).unwrap();
        let found = template.capabilities();
        assert_eq!(found.thought_part, part, "{inner}");
        if part.is_none() {
            continue;
        }
        let parts = json!([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]);
        for (content, shown) in [(json!("a"), "a"), (parts, "ab"), (Json::Null, ""), (json!(""), "")] {
            let sent = [json!({"role": "assistant", "content": content, "reasoning_content": "hm"})];
            let messages = found.adapt(&sent);
            let text = template.render(&ChatInputs { add_generation_prompt: false, ..ChatInputs::new(&messages) });
            assert_eq!(text.unwrap().text, format!("<assistant>[THINK]hm[/THINK]{shown}"), "{content}");
        }
        let plain = [json!({"role": "assistant", "content": "a"})];
        assert_eq!(found.adapt(&plain), plain);
    }
}

#[test]
fn parameters_are_put_in_where_a_template_cannot_do_without() {
    let strict = "{% for t in tools %}{% for p in t.function.parameters.properties.items() %}{% endfor %}{% endfor %}";
    let bare = || vec![json!({"type": "function", "function": {"name": "f"}})];
    let filled = json!({"type": "function", "function": {"name": "f", "parameters": no_arguments()}});
    assert_eq!(reads(strict).adapt_tools(bare()), [filled]);
    assert_eq!(reads("{{ tools | tojson }}").adapt_tools(bare()), bare());
}

#[test]
fn descriptions_are_put_in_where_a_template_cannot_do_without() {
    let of_tools = |inner: &str| format!("{{% for t in tools %}}{inner}{{% endfor %}}{{{{ messages[0].content }}}}");
    let of_parameters = of_tools(
        "{% for k, p in t.function.parameters.properties.items() %}{{ k + ': ' + p.description }}{% endfor %}",
    );
    let nested = json!({"type": "object", "properties": {"y": {"type": "array", "items": {"type": "object", "properties": {"z": {}}}}}});
    let properties = json!({"x": {"type": "string", "description": "kept"}, "o": nested});
    let function = json!({"name": "f", "parameters": {"type": "object", "properties": properties}});
    let bare = || vec![json!({"type": "function", "function": function})];
    for source in [of_tools("{{ '// ' + t.function.description }}"), of_parameters] {
        let found = reads(&source).adapt_tools(bare());
        let function = &found[0]["function"];
        assert_eq!((&function["description"], &function["name"]), (&json!(""), &json!("f")), "{source}");
        let properties = &function["parameters"]["properties"];
        let inner = &properties["o"]["properties"]["y"];
        let said = [&properties["x"], &properties["o"], inner, &inner["items"]["properties"]["z"]];
        assert_eq!(said.map(|of| of["description"].as_str()), [Some("kept"), Some(""), Some(""), Some("")]);
    }
    for source in ["{{ tools | tojson }}", "{% for t in tools %}{{ t.function.description }}{% endfor %}"] {
        assert_eq!(reads(source).adapt_tools(bare()), bare(), "{source}");
    }
}

/// Mistral's templates, whose clients give other ids, and ollama's none.
#[test]
fn ids_of_calls_are_as_short_as_a_template_wants_them() {
    let checked = "{% if m.role == 'assistant' %}{% for c in m.tool_calls or [] %}{% if c.id is not defined or c.id | length != 9 %}\
                       {{ raise_exception('nine letters') }}{% endif %}{{ c.function.name + c.id }}{{ c.function.arguments }}{% endfor %}\
                       {% elif m.role == 'tool' %}{% if m.tool_call_id is not defined or m.tool_call_id | length != 9 %}\
                       {{ raise_exception('nine letters') }}{% endif %}{{ m.tool_call_id }}{% endif %}{{ m.content or '' }}";
    let template = ChatTemplate::new("test", &of_messages(checked)).unwrap();
    assert!(template.capabilities().short_call_ids);
    let call = |id: Option<&str>| json!({"id": id, "type": "function", "function": {"name": "f", "arguments": {}}});
    let answer = |id: Option<&str>| json!({"role": "tool", "tool_call_id": id, "content": "r"});
    let drop_null = |mut of: Json| {
        of.as_object_mut().unwrap().retain(|_, value| !value.is_null());
        of
    };
    for ids in [[Some("call_1"), Some("toolu_01A")], [Some("a1B2c3D4e"), Some("é")], [None, None]] {
        let calls: Vec<Json> = ids.iter().map(|id| drop_null(call(*id))).collect();
        let said = json!({"role": "assistant", "content": "", "tool_calls": calls});
        let answers = ids.iter().map(|id| drop_null(answer(*id)));
        let messages: Vec<Json> = [said].into_iter().chain(answers).collect();
        let adapted = template.capabilities().adapt(&messages);
        let of_call = |at: usize| adapted[0]["tool_calls"][at]["id"].as_str().unwrap().to_owned();
        let of_answer = |at: usize| adapted[1 + at]["tool_call_id"].as_str().unwrap().to_owned();
        assert_eq!((of_call(0), of_call(1)), (of_answer(0), of_answer(1)), "{ids:?}");
        assert_ne!(of_call(0), of_call(1), "{ids:?}");
        assert!(ids[0] != Some("a1B2c3D4e") || of_call(0) == "a1B2c3D4e");
        assert!(template.render(&ChatInputs::new(&adapted)).is_ok(), "{ids:?}");
        assert_eq!(adapted, template.capabilities().adapt(&messages), "the same each time");
    }
    let free = reads(&of_messages("{{ m.content }}"));
    assert!(!free.calls && template.capabilities().calls && reads(&of_messages("{{ m | tojson }}")).calls);
    let sent = [json!({"role": "assistant", "content": "", "tool_calls": [call(Some("call_1"))]})];
    assert!(!free.short_call_ids && free.adapt(&sent)[0]["tool_calls"][0]["id"] == "call_1");
}

/// Codex sends two messages of the system and two of the user, Claude Code a text behind a tool's answer.
#[test]
fn messages_are_put_together_where_a_template_takes_them_no_other_way() {
    let refuse = |when: &str| format!("{{% if {when} %}}{{{{ raise_exception('no') }}}}{{% endif %}}");
    let shown = "<{{ m.role }}>{{ m.content or '' }}";
    let of = |inner: &str| format!("{{% for m in messages %}}{inner}{shown}{{% endfor %}}");
    let previous = "not loop.first and m.role == 'user' and loop.previtem.role ==";
    let say = |role: &str, text: &str| json!({"role": role, "content": text});
    let agent = [
        say("system", "s"),
        say("developer", "d"),
        say("user", "e"),
        say("user", "q"),
        say("assistant", "a"),
        say("system", "l"),
        say("user", "r"),
    ];
    for (source, wanted) in [
        (of(""), "<system>s<developer>d<user>e<user>q<assistant>a<system>l<user>r"),
        (
            of(&refuse("m.role in ['system', 'developer'] and not loop.first")),
            "<system>s\n\nd<user>e<user>q<assistant>a<user>l<user>r",
        ),
        (
            of(&(refuse("m.role in ['system', 'developer'] and not loop.first")
                + &refuse(&format!("{previous} 'user'")))),
            "<system>s\n\nd<user>e\n\nq<assistant>a<user>l\n\nr",
        ),
        (
            of(&(refuse("m.role in ['system', 'developer']") + &refuse(&format!("{previous} 'user'")))),
            "<user>s\n\nd\n\ne\n\nq<assistant>a<user>l\n\nr",
        ),
        // The first of several is shown alone, and nothing is refused.
        (
            "{% if messages[0].role == 'system' %}<system>{{ messages[0].content }}{% endif %}{% for m in messages %}\
                 {% if m.role in ['user', 'assistant'] %}<{{ m.role }}>{{ m.content }}{% endif %}{% endfor %}"
                .to_owned(),
            "<system>s\n\nd<user>e<user>q<assistant>a<user>l<user>r",
        ),
    ] {
        let template = ChatTemplate::new("test", &source).unwrap();
        let messages = template.capabilities().adapt(&agent);
        let text = template.render(&ChatInputs { add_generation_prompt: false, ..ChatInputs::new(&messages) });
        assert_eq!(text.unwrap().text, wanted, "{source}");
    }
    let call = json!({"id": "c", "function": {"name": "f", "arguments": {}}});
    let said = json!({"role": "assistant", "content": "t", "thinking": "hm", "tool_calls": [call]});
    let answered = json!({"role": "tool", "tool_call_id": "c", "content": "2"});
    let agent = [say("user", "q"), said, answered, say("user", "n")];
    let calls = "{% for c in m.tool_calls or [] %}[{{ c.function.name }}{{ c.function.arguments | tojson }}]{% endfor %}{{ m.thinking or '' }}";
    for (refused, wanted) in [
        ("false".to_owned(), "<user>q[f{}]hm<assistant>t<tool>2<user>n"),
        (format!("{previous} 'tool'"), "<user>q[f{}]hm<assistant>t<tool>2\n\nn"),
        ("m.tool_calls and m.thinking and m.content".to_owned(), "<user>q[f{}]hm\n\nt<assistant><tool>2<user>n"),
    ] {
        let template = ChatTemplate::new("test", &of(&(refuse(&refused) + calls))).unwrap();
        let messages = template.capabilities().adapt(&agent);
        let text = template.render(&ChatInputs { add_generation_prompt: false, ..ChatInputs::new(&messages) });
        assert_eq!(text.unwrap().text, wanted, "{refused}");
    }
}

#[test]
fn a_template_that_fails_at_everything_is_given_what_most_read() {
    let found = reads("{{ raise_exception('no') }}");
    assert_eq!((found.arguments, found.thoughts), (ToolArgumentsFormat::Object, "reasoning_content"));
    let list = json!([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]);
    let sent = [json!({"role": "user", "content": list}), json!({"role": "assistant", "content": null}), json!(3)];
    let wanted = [json!({"role": "user", "content": "a\nb"}), json!({"role": "assistant", "content": ""}), json!(3)];
    assert_eq!(found.adapt(&sent), wanted);
}
