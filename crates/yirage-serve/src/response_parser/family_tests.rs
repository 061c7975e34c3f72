//! Which form a template's calls are in: templates of our own in each maker's style.

use super::OutputFormat;
use super::frame::{ArgumentSyntax, CallFrame};
use yirage_model::chat::ChatTemplate;

/// Arguments as elements: what stands before each key, between key and value, and behind the value.
fn elements(open: &str, between: &str, close: &str) -> String {
    format!(
        "{{% for k, v in c.function.arguments.items() %}}{open}{{{{ k }}}}{between}{{{{ v if v is string else v | tojson }}}}\
         {close}{{% endfor %}}"
    )
}

/// How each maker's template writes a call `c` of the past.
fn written() -> Vec<(&'static str, String)> {
    let name = "{{ c.function.name }}";
    let json = "{{ c.function.arguments if c.function.arguments is string else c.function.arguments | tojson }}";
    let coder = elements("<parameter=", ">\n", "\n</parameter>\n");
    vec![
        ("hermes", format!("<tool_call>\n{{\"name\": \"{name}\", \"arguments\": {json}}}\n</tool_call>")),
        ("hermes", "<tool_call>\n{{ c.function | tojson }}\n</tool_call>".to_owned()),
        ("glm", {
            let pairs = elements("<arg_key>", "</arg_key>\n<arg_value>", "</arg_value>\n");
            format!("<tool_call>{name}\n{pairs}</tool_call>")
        }),
        ("glm", {
            let pairs = elements("<arg_key>", "</arg_key><arg_value>", "</arg_value>");
            format!("<tool_call>{name}{pairs}</tool_call>")
        }),
        ("qwen3_coder", format!("<tool_call>\n<function={name}>\n{coder}</function>\n</tool_call>")),
        ("seed_oss", format!("<seed:tool_call>\n<function={name}>\n{coder}</function>\n</seed:tool_call>")),
        ("minimax_m2", {
            let pairs = elements("<parameter name=\"", "\">", "</parameter>\n");
            format!("<minimax:tool_call>\n<invoke name=\"{name}\">\n{pairs}</invoke>\n</minimax:tool_call>")
        }),
        ("hunyuan3", {
            let pairs = elements(
                "<arg_key:opensource>",
                "</arg_key:opensource>\n<arg_value:opensource>",
                "</arg_value:opensource>\n",
            );
            let call = format!("<tool_call:opensource>{name}<tool_sep:opensource>\n{pairs}</tool_call:opensource>\n");
            format!("<tool_calls:opensource>\n{call}</tool_calls:opensource>")
        }),
        ("gigachat3", format!("<|function_call|>{{\"name\": \"{name}\", \"arguments\": {json}}}<|message_sep|>\n\n")),
        ("gigachat3", format!("<|message_sep|>\n\nfunction call<|role_sep|>\n{{\"name\": \"{name}\", \"arguments\": {json}}}")),
        ("solar_open", {
            let call = format!("{{{{ c.id }}}}<|tool_call:name|>{name}<|tool_call:args|>{json}<|tool_call:end|>");
            format!("<|tool_calls|><|tool_call:begin|>{call}<|calls|>")
        }),
        (
            "deepseek_v3",
            "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>{{ c.type }}<｜tool▁sep｜>{{ c.function.name }}{{ '\\n```json\\n' + \
             c.function.arguments + '\\n```' }}<｜tool▁call▁end｜><｜tool▁calls▁end｜>"
                .to_owned(),
        ),
        (
            "deepseek_v31",
            format!("<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>{name}<｜tool▁sep｜>{json}<｜tool▁call▁end｜><｜tool▁calls▁end｜>"),
        ),
        ("kimi_k2", {
            let call = "<|tool_call_begin|>{{ c.id }}<|tool_call_argument_begin|>";
            format!("<|tool_calls_section_begin|>{call}{json}<|tool_call_end|><|tool_calls_section_end|>")
        }),
        ("mistral", "[TOOL_CALLS][{{ c.function | tojson }}]</s>".to_owned()),
        ("mistral", format!("[TOOL_CALLS]{name}[CALL_ID]{{{{ c.id }}}}[ARGS]{json}</s>")),
        ("mistral", {
            let nine = "{% if c.id | length != 9 %}{{ raise_exception('nine letters') }}{% endif %}";
            format!("{nine}[TOOL_CALLS]{name}[ARGS]{json}</s>")
        }),
        ("granite", "<|tool_call|>[{{ c.function | tojson }}]".to_owned()),
        ("nemotron", "<TOOLCALL>[{{ c.function | tojson }}]</TOOLCALL>".to_owned()),
        ("apertus", format!("<|tools_prefix|>[{{\"{name}\": {json}}}]<|tools_suffix|>")),
        ("llama3", format!("{{\"name\": \"{name}\", \"parameters\": {json}}}<|eot_id|>")),
        ("llama_pythonic", {
            let pairs = "{% for k, v in c.function.arguments.items() %}{{ k }}={{ v | tojson }}{% if not loop.last %}, {% endif %}\
                         {% endfor %}";
            format!("[{name}({pairs})]<|eot|>")
        }),
        ("lfm2", {
            let pairs = "{% for k, v in c.function.arguments.items() %}{{ k }}={{ v | tojson }}{% if not loop.last %}, {% endif %}\
                         {% endfor %}";
            format!("<|tool_call_start|>[{name}({pairs})]<|tool_call_end|>")
        }),
        ("functionary_v31", format!("<function={name}>{json}</function><|eot_id|>")),
        ("functionary_v32", format!(">>>{name}\n{json}")),
        ("command_r7b", {
            let call = format!("{{\"tool_call_id\": \"0\", \"tool_name\": \"{name}\", \"parameters\": {json}}}");
            format!("<|START_ACTION|>[\n    {call}\n]<|END_ACTION|>")
        }),
        ("gemma4", {
            let pairs = "{% for k, v in c.function.arguments.items() %}{{ k }}:{% if v is string %}<|\"|>{{ v }}<|\"|>{% else %}\
                         {{ v }}{% endif %}{% if not loop.last %},{% endif %}{% endfor %}";
            format!("<|tool_call>call:{name}{{{{ '{{' }}}}{pairs}{{{{ '}}' }}}}<tool_call|>")
        }),
        ("harmony", format!("<|start|>assistant to=functions.{name}<|channel|>commentary json<|message|>{json}<|call|>")),
    ]
}

fn name(source: &str) -> Option<&'static str> {
    let template = ChatTemplate::new("test", source).unwrap();
    let (family, _) = OutputFormat::by(source, &|inputs| template.render(&inputs).ok().map(|rendered| rendered.text));
    family.calls.map(super::family::Calls::name)
}

#[test]
fn a_form_is_the_one_that_reads_the_call_which_the_template_writes() {
    for (form, call) in written() {
        let source = format!(
            "{{% if tools %}}[tools]{{{{ tools | tojson }}}}{{% endif %}}{{% for m in messages %}}[{{{{ m.role }}}}]\
             {{% if m.tool_calls %}}{{% for c in m.tool_calls %}}{call}{{% endfor %}}{{% else %}}{{{{ m.content }}}}{{% endif %}}\
             {{% endfor %}}"
        );
        assert_eq!(name(&source), Some(form), "{source}");
    }
}

/// A template of messages in ChatML, in which a call is written so.
fn chatml(call: &str, between: &str, before: &str, behind: &str) -> Option<CallFrame> {
    let source = format!(
        "{{% if tools %}}[tools]{{{{ tools | tojson }}}}{{% endif %}}{{% for m in messages %}}<|im_start|>{{{{ m.role }}}}\n\
         {{% if m.tool_calls %}}{before}{{% for c in m.tool_calls %}}{call}{{% if not loop.last %}}{between}{{% endif %}}\
         {{% endfor %}}{behind}{{% else %}}{{{{ m.content }}}}{{% endif %}}<|im_end|>\n{{% endfor %}}\
         {{% if add_generation_prompt %}}<|im_start|>assistant\n<think>\n{{% endif %}}{{# </think> #}}"
    );
    let template = ChatTemplate::new("test", &source).unwrap();
    OutputFormat::by(&source, &|inputs| template.render(&inputs).ok().map(|rendered| rendered.text)).1
}

#[test]
fn calls_that_have_to_come_are_written_as_the_template_writes_them() {
    let name = "{{ c.function.name }}";
    let json = "{{ c.function.arguments if c.function.arguments is string else c.function.arguments | tojson }}";
    let texts = |frame: &CallFrame| {
        let CallFrame { first, between, next, last, .. } = frame.clone();
        [first, between, next.unwrap_or_default(), last]
    };
    let spaced = format!("<tool_call>{{\"name\":\"{name}\",\"arguments\":{json}}}</tool_call>");
    let frame = chatml(&spaced, "", "", "").unwrap();
    let wanted =
        ["<tool_call>{\"name\":\"", "\",\"arguments\":", "}</tool_call><tool_call>{\"name\":\"", "}</tool_call>"];
    assert_eq!(texts(&frame), wanted);
    let kimi = format!("<|tool_call_begin|>{{{{ c.id }}}}<|tool_call_argument_begin|>{json}<|tool_call_end|>");
    let frame = chatml(&kimi, "", "<|tool_calls_section_begin|>", "<|tool_calls_section_end|>").unwrap();
    let wanted = [
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.",
        ":\u{1}<|tool_call_argument_begin|>",
        "<|tool_call_end|><|tool_call_begin|>functions.",
        "<|tool_call_end|><|tool_calls_section_end|>",
    ];
    assert_eq!(texts(&frame), wanted);
    let ids = format!("[TOOL_CALLS]{name}[CALL_ID]{{{{ c.id }}}}[ARGS]{json}");
    let frame = chatml(&ids, "", "", "").unwrap();
    assert_eq!(texts(&frame), ["[TOOL_CALLS]", "[CALL_ID]\u{2}[ARGS]", "[TOOL_CALLS]", ""]);
    let glm = format!(
        "{{{{ '\\n' }}}}<tool_call>{name}{}</tool_call>",
        elements("<arg_key>", "</arg_key><arg_value>", "</arg_value>")
    );
    let frame = chatml(&glm, "", "", "").unwrap();
    assert_eq!(texts(&frame), ["\n<tool_call>", "", "</tool_call>\n<tool_call>", "</tool_call>"]);
    let ArgumentSyntax::Elements(element) = &frame.arguments else { panic!("{frame:?}") };
    let parts = [&element.open, &element.text, &element.json, &element.close];
    assert_eq!(parts, ["<arg_key>", "</arg_key><arg_value>", "</arg_key><arg_value>", "</arg_value>"]);
    let pairs = "{% for k, v in c.function.arguments.items() %}{{ k }}={{ v | tojson }}{% if not loop.last %}, {% endif %}{% endfor %}";
    let frame = chatml(&format!("{name}({pairs})"), ", ", "<|tool_call_start|>[", "]<|tool_call_end|>").unwrap();
    assert_eq!(texts(&frame), ["<|tool_call_start|>[", "(", "), ", ")]<|tool_call_end|>"]);
    // One call is all that this one writes.
    let single = format!(
        "{{% if m.tool_calls | length > 1 %}}{{{{ raise_exception('one') }}}}{{% endif %}}{{\"name\": \"{name}\", \"parameters\": {json}}}"
    );
    let frame = chatml(&single, "", "", "").unwrap();
    assert_eq!(
        (texts(&frame), frame.next),
        (["{\"name\": \"", "\", \"parameters\": ", "", "}"].map(str::to_owned), None)
    );
}

#[test]
fn a_template_that_writes_no_calls_is_taken_at_its_word() {
    let of = |word: &str| {
        let shown = "{% if tools %}{{ tools | tojson }}".to_owned() + word + "{% endif %}";
        name(&(shown + "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}"))
    };
    for (word, form) in [
        ("call by <tool_call>{\"name\": ...}</tool_call>", Some("hermes")),
        ("call by <tool_call><function=f><parameter=p>v</parameter></function></tool_call>", Some("qwen3_coder")),
        ("call by <tool_call>f<arg_key>k</arg_key>", Some("glm")),
        ("call by [TOOL_CALLS]", Some("mistral")),
        ("<|im_system|>tool_declare<|im_middle|>", Some("kimi_k2")),
        ("Environment: ipython", Some("llama3")),
        ("List of tools: [{\"name\": ...}]", Some("lfm2")),
        ("use them well", None),
    ] {
        assert_eq!(of(word), form, "{word}");
    }
    // One that writes calls in a form that nobody knows is not.
    let strange = "{% if tools %}{{ tools | tojson }} <tool_call>{% endif %}{% for m in messages %}{{ m.content }}\
                   {% for c in m.tool_calls or [] %}<tool_call>]<[{{ c.function.name }}]<[{{ c.function.arguments }}{% endfor %}{% endfor %}";
    assert_eq!(name(strange), None);
    let elements = "{% for m in messages %}{{ m.content }}{% for c in m.tool_calls or [] %}<function name=\"{{ c.function.name }}\">\
                    {% for k, v in c.function.arguments.items() %}<param name=\"{{ k }}\">{{ v }}</param>{% endfor %}</function>\
                    {% endfor %}{% endfor %}{% if tools %}{{ tools | tojson }} <function= <parameter={% endif %}";
    assert_eq!(name(elements), None);
    let silent = "{% if tools %}<tool_call>{% endif %}{% for m in messages %}{{ m.content }}{% endfor %}";
    assert_eq!(name(silent), None, "a template that shows no tool calls none");
    assert_eq!(name("{% for m in messages %}{{ m.content }}<tool_call>{% endfor %}"), None);
}
