//! Chat renderings: of the golden models' own templates, of real templates against renderings made with Python's
//! jinja2, and the rules about sources, budgets and errors.

use crate::tokenizer_support::{column, header};
use serde_json::{Value as Json, json};
use yirage_model::chat::{ChatError, ChatInputs, ChatTemplate, TemplateSources, Templates};
use yirage_model::tokenizer::EncodeOptions;
use yirage_testkit::absent;
use yirage_testkit::json::read;
use yirage_testkit::rng::Rng;

fn render(source: &str, messages: &[Json]) -> Result<String, ChatError> {
    Ok(ChatTemplate::new("test", source)?.render(&ChatInputs::new(messages))?.text)
}

#[test]
#[ignore = "needs ../shared/golden, and smollm2-135m-instruct-q4_1.gguf in YIRAGE_MODELS"]
fn golden_conversations_render_and_encode_exactly() {
    let gguf = header(&absent::model("smollm2-135m-instruct-q4_1.gguf"));
    let source = gguf.get("tokenizer.chat_template").unwrap().as_str().unwrap();
    let template = ChatTemplate::new("smollm2", source).unwrap();
    let tokenizer = column("gguf:SmolLM2-135M-Instruct.Q4_1");
    let golden = read(&absent::shared("golden/smollm2.json"));
    let mut seen = 0;
    for case in golden["cases"].as_array().unwrap().iter().filter(|c| c["kind"] == "chat") {
        let messages = case["messages"].as_array().unwrap();
        let rendered = template.render(&ChatInputs::new(messages)).unwrap();
        assert_eq!(rendered.text, case["rendered_prompt"].as_str().unwrap());
        let options = EncodeOptions { add_special: !rendered.starts_with_bos, parse_special: true };
        let ids = tokenizer.encode(&rendered.text, options).unwrap();
        assert_eq!(json!(ids), case["prompt_ids"]);
        seen += 1;
    }
    assert!(seen > 0);
}

/// Renderings by Python's jinja2 (sandboxed, `trim_blocks`, `lstrip_blocks`, loop controls) of the same templates.
#[test]
fn renderings_equal_those_of_the_reference_engine() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let golden = read(&folder.join("chat.json"));
    for case in golden["cases"].as_array().unwrap() {
        let source = golden["templates"][case["template"].as_str().unwrap()].as_str().unwrap();
        check(source, case);
    }
}

/// The same for templates that are not ours to copy: `$YIRAGE_MODELS/chat_golden.json`, in the same form.
#[test]
#[ignore = "needs chat_golden.json in YIRAGE_MODELS"]
fn renderings_of_foreign_templates() {
    let golden = read(&absent::model("chat_golden.json"));
    for case in golden["cases"].as_array().unwrap() {
        let source = golden["templates"][case["template"].as_str().unwrap()].as_str().unwrap();
        check(source, case);
    }
}

fn check(source: &str, case: &Json) {
    let name = format!("{} / {}", case["template"], case["conversation"]);
    let messages = case["messages"].as_array().unwrap();
    let tools = case["tools"].as_array();
    let inputs = ChatInputs {
        tools: tools.map(Vec::as_slice),
        add_generation_prompt: case["add_generation_prompt"].as_bool().unwrap(),
        bos_token: case["bos_token"].as_str().unwrap(),
        eos_token: case["eos_token"].as_str().unwrap(),
        kwargs: case["kwargs"].as_object().cloned().unwrap_or_default(),
        ..ChatInputs::new(messages)
    };
    let found = ChatTemplate::new(&name, source).unwrap().render(&inputs);
    match (case["rendered"].as_str(), case["raised"].as_str()) {
        (Some(wanted), _) => assert_eq!(found.unwrap().text, wanted, "{name}"),
        (None, Some(message)) => match found.unwrap_err() {
            ChatError::Refused { message: found, .. } => assert_eq!(found, message, "{name}"),
            other => panic!("{name}: {other}"),
        },
        (None, None) => assert!(found.is_err(), "{name}: {found:?}"),
    }
}

/// Templates in the style of several families, with messages in the shape that each reads: the shapes are ours, the
/// renderings of them are jinja2's. Both are written by `tools/oracle/templates.py --golden`.
#[test]
fn conversations_reach_templates_in_the_shape_that_each_reads() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/templates");
    let conversations = read(&folder.join("conversations.json"));
    for case in read(&folder.join("rendered.json")).as_array().unwrap() {
        let name = format!("{} / {}", case["template"], case["conversation"]);
        let talks = conversations.as_array().unwrap();
        let talk = talks.iter().find(|talk| talk["name"] == case["conversation"]).unwrap();
        let source = std::fs::read_to_string(folder.join(case["template"].as_str().unwrap())).unwrap();
        let template = ChatTemplate::new(&name, &source).unwrap();
        let messages = template.capabilities().adapt(talk["messages"].as_array().unwrap());
        assert_eq!(json!(messages), case["messages"], "{name}");
        let tools = talk["tools"].as_array().map(|tools| template.capabilities().adapt_tools(tools.clone()));
        let (bos_token, eos_token) = ("<s>", "</s>");
        let inputs = ChatInputs { tools: tools.as_deref(), bos_token, eos_token, ..ChatInputs::new(&messages) };
        assert_eq!(template.render(&inputs).unwrap().text, case["rendered"].as_str().unwrap(), "{name}");
    }
}

/// Numbers as Python's `json` takes and gives them.
#[test]
fn numbers_keep_their_digits() {
    let cases = [
        ("12345678901234567890123", "12345678901234567890123"),
        ("-12345678901234567890123456789012345678901234567890", "-12345678901234567890123456789012345678901234567890"),
        ("18446744073709551616", "18446744073709551616"),
        ("-9223372036854775809", "-9223372036854775809"),
        ("170141183460469231731687303715884105728", "170141183460469231731687303715884105728"),
        ("-0", "0"),
        ("-0.0", "-0.0"),
        ("1e2", "100.0"),
        ("1E400", "Infinity"),
        ("0.10", "0.1"),
        ("1.2345678901234567890123", "1.2345678901234567"),
        ("1e16", "1e+16"),
    ];
    for (sent, wanted) in cases {
        let messages = [serde_json::from_str::<Json>(&format!(r#"{{"n": {sent}}}"#)).unwrap()];
        assert_eq!(render("{{ messages[0].n | tojson }}", &messages).unwrap(), wanted);
        let shown = if wanted == "Infinity" { "inf" } else { wanted };
        assert_eq!(render("{{ messages[0].n }}", &messages).unwrap(), shown);
    }
}

#[test]
fn an_empty_template_is_none() {
    for empty in ["", " ", "\n\t \n"] {
        let config = serde_json::to_vec(&json!({"chat_template": empty})).unwrap();
        let named = json!({"chat_template": [{"name": "default", "template": empty}]});
        let named = serde_json::to_vec(&named).unwrap();
        for sources in [
            TemplateSources { config: Some(&config), ..TemplateSources::default() },
            TemplateSources { config: Some(&named), ..TemplateSources::default() },
            TemplateSources { gguf: vec![(None, empty)], ..TemplateSources::default() },
            TemplateSources { jinja: Some(empty), ..TemplateSources::default() },
            TemplateSources { user: Some(empty), ..TemplateSources::default() },
        ] {
            assert_eq!(Templates::resolve(&sources).unwrap().choose(None, true).unwrap(), None);
        }
        let below = TemplateSources { jinja: Some(empty), gguf: vec![(None, "G")], ..TemplateSources::default() };
        assert_eq!(Templates::resolve(&below).unwrap().choose(None, false).unwrap(), Some(("default", "G")));
    }
}

#[test]
fn bos_written_by_the_template_is_reported() {
    let messages = [json!({"role": "user", "content": "hi"})];
    let inputs = ChatInputs { bos_token: "<s>", ..ChatInputs::new(&messages) };
    let with = ChatTemplate::new("t", "{{ bos_token }}x").unwrap().render(&inputs).unwrap();
    let without = ChatTemplate::new("t", "x{{ bos_token }}").unwrap().render(&inputs).unwrap();
    assert_eq!((with.starts_with_bos, without.starts_with_bos), (true, false));
}

#[test]
fn the_surroundings_templates_expect() {
    let messages = [json!({"role": "user", "content": " a<b "}), json!({"role": "assistant", "content": "x"})];
    let cases = [
        (
            "{% for m in messages %}\n    {% if loop.last %}{% break %}{% endif %}\n{{ m.content.strip() }}\n{% endfor %}",
            "a<b\n",
        ),
        ("{%- generation -%} kept {%- endgeneration %}!", "kept!"),
        ("{% set ns = namespace(n=0) %}{% for m in messages %}{% set ns.n = ns.n + 1 %}{% endfor %}{{ ns.n }}", "2"),
        ("{{ {'b': 1.0, 'a': [true, none, 'é<']} | tojson }}", r#"{"b": 1.0, "a": [true, null, "é<"]}"#),
        ("{{ [1] | tojson(indent=2) }}", "[\n  1\n]"),
        ("{{ {'a': true, 'b': none} }} {{ true }} {{ [1, 'x'] }}", "{'a': True, 'b': None} True [1, 'x']"),
        ("{{ strftime_now('%d %b %Y') }}", "01 Jan 1970"),
        (
            "{{ 'a|b'.split('|')[1] }}{{ 'abc'.startswith('ab') }}{% for k, v in {'q': 2}.items() %}{{ k }}{{ v }}{% endfor %}",
            "bTrueq2",
        ),
        ("{{ messages[0]['content'] | trim }}{{ nothing }}{{ messages[::-1][0].content }}", "a<bx"),
        ("{{ '%s-%s' % ('a', 1) if false else 'ok' }}", "ok"),
        ("{% macro f(x) %}<{{ x }}>{% endmacro %}{{ f('y') }}", "<y>"),
    ];
    for (source, wanted) in cases {
        assert_eq!(render(source, &messages).unwrap(), wanted, "{source}");
    }
}

#[test]
fn errors_name_template_line_and_reason() {
    let messages = [json!({"role": "user", "content": "hi"})];
    match render("\n\n{{ raise_exception('roles must alternate') }}", &messages).unwrap_err() {
        ChatError::Refused { line: 3, message, .. } => assert_eq!(message, "roles must alternate"),
        other => panic!("{other}"),
    }
    let syntax = render("ok\n{% if %}", &messages).unwrap_err();
    assert!(matches!(syntax, ChatError::Syntax { line: 2, .. }), "{syntax}");
    let undefined = render("{{ nothing.at.all }}", &messages).unwrap_err();
    assert!(matches!(undefined, ChatError::Render { line: 1, .. }), "{undefined}");
}

#[test]
fn hostile_templates_end_in_typed_errors() {
    let messages = [json!({"role": "user", "content": "hi"})];
    let endless = "{% for a in range(9999) %}{% for b in range(9999) %}{% for c in range(9999) %}{% endfor %}{% endfor %}{% endfor %}";
    assert!(matches!(render(endless, &messages).unwrap_err(), ChatError::Limit { .. }));
    let flood = format!("{{% for a in range(9999) %}}{}{{% endfor %}}", "x".repeat(100_000));
    assert!(matches!(render(&flood, &messages).unwrap_err(), ChatError::Limit { .. }));
    assert!(render("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", &messages).is_err());
    assert!(render(&"{% if a %}".repeat(5000), &messages).is_err());
    assert!(render(&"(".repeat(100_000), &messages).is_ok());
    assert!(render(&format!("{{{{ {} }}}}", "(".repeat(100_000)), &messages).is_err());
    assert!(render(&" ".repeat((1 << 20) + 1), &messages).is_err());
}

#[test]
fn mutated_templates_never_panic() {
    let source = "{%- for m in messages %}{{ '<|' + m['role'] + '|>' ~ (m.content | tojson) }}{%- endfor %}{% generation %}x{% endgeneration %}";
    let messages = [json!({"role": "user", "content": "hi"})];
    let mut rng = Rng::new(7);
    for _ in 0..4000 {
        let mut bytes = source.as_bytes().to_vec();
        for _ in 0..3 {
            let at = rng.index(bytes.len().max(1));
            match rng.below(3) {
                0 if !bytes.is_empty() => drop(bytes.remove(at)),
                1 => bytes.insert(at, *rng.choose(b"{}%-|('\"x")),
                _ => bytes.truncate(at.max(1)),
            }
        }
        let _any = render(&String::from_utf8_lossy(&bytes), &messages);
    }
}

#[test]
fn sources_win_in_the_documented_order() {
    let config =
        br#"{"chat_template": [{"name": "default", "template": "C"}, {"name": "tool_use", "template": "CT"}]}"#;
    let gguf = vec![(None, "G"), (Some("rag"), "GR")];
    let all = TemplateSources {
        user: Some("U"),
        jinja: Some("J"),
        additional: vec![("extra", "JE")],
        config: Some(config),
        gguf: gguf.clone(),
    };
    let pick = |sources: &TemplateSources<'_>, name: Option<&str>, tools: bool| {
        Templates::resolve(sources).unwrap().choose(name, tools).unwrap().map(|(_, source)| source.to_owned())
    };
    assert_eq!(pick(&all, None, false).unwrap(), "U");
    let without = TemplateSources { user: None, ..all.clone() };
    assert_eq!(pick(&without, None, false).unwrap(), "J");
    assert_eq!(pick(&without, None, true).unwrap(), "CT");
    assert_eq!(pick(&without, Some("extra"), true).unwrap(), "JE");
    assert_eq!(pick(&without, Some("rag"), false).unwrap(), "GR");
    let config_only =
        TemplateSources { config: Some(br#"{"chat_template": "S"}"#), gguf, ..TemplateSources::default() };
    assert_eq!(pick(&config_only, None, false).unwrap(), "S");
    assert_eq!(pick(&TemplateSources::default(), None, true), None);
    let unknown = Templates::resolve(&all).unwrap().choose(Some("nope"), false).unwrap_err();
    assert!(matches!(unknown, ChatError::Unknown { .. }));
    let broken = TemplateSources { config: Some(b"{"), ..TemplateSources::default() };
    assert!(matches!(Templates::resolve(&broken).unwrap_err(), ChatError::Source { .. }));
}
