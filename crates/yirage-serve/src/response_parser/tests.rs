//! Answers in every form, cut in every way.

use super::family::Calls;
use super::thoughts::ThoughtMarks;
use super::{DeclaredTools, OutputFormat, ResponseParser, ResponsePiece, ToolCall, forms};
use crate::tools::Tool;
use serde_json::{Value, json};

/// What an answer comes to.
#[derive(Debug, Default, PartialEq)]
struct ParsedAnswer {
    content: String,
    reasoning: String,
    calls: Vec<ToolCall>,
}

fn declared() -> DeclaredTools {
    let parameters = json!({
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "integer"}, "wet": {"type": "boolean"}},
    });
    let tool = |name: &str| Tool::new("tools", name, None, parameters.clone(), false).unwrap();
    DeclaredTools::new(&[tool("weather"), tool("now")])
}

fn family(form: &str, thoughts: Option<&str>) -> OutputFormat {
    let calls = match form {
        "" => None,
        "harmony" => Some(Calls::Harmony),
        name => Some(Calls::Form(forms::all().find(|form| form.name == name).unwrap())),
    };
    OutputFormat { calls, thoughts: thoughts.map(|close| ThoughtMarks::of(close).unwrap()) }
}

/// The answer that a text is, however it is cut.
fn answer(family: &OutputFormat, within: bool, text: &str) -> ParsedAnswer {
    answer_for(&declared(), family, within, text)
}

/// The same with other tools.
fn answer_for(tools: &DeclaredTools, family: &OutputFormat, within: bool, text: &str) -> ParsedAnswer {
    let of = |cuts: &[&str]| {
        let mut parser = ResponseParser::new(family, within, tools.clone());
        let mut pieces: Vec<ResponsePiece> = cuts.iter().flat_map(|cut| parser.push(cut)).collect();
        pieces.extend(parser.finish());
        let mut answer = ParsedAnswer::default();
        for piece in pieces {
            match piece {
                ResponsePiece::Content(text) => answer.content.push_str(&text),
                ResponsePiece::Reasoning(text) => answer.reasoning.push_str(&text),
                ResponsePiece::Call(part) => ToolCall::add(&mut answer.calls, part),
            }
        }
        answer
    };
    let whole = of(&[text]);
    let letters: Vec<String> = text.chars().map(String::from).collect();
    assert_eq!(of(&letters.iter().map(String::as_str).collect::<Vec<_>>()), whole, "{text:?} by letters");
    for at in (0..=text.len()).filter(|at| text.is_char_boundary(*at)) {
        assert_eq!(of(&[&text[..at], &text[at..]]), whole, "{text:?} cut at {at}");
    }
    whole
}

fn calls(answer: &ParsedAnswer) -> Vec<(String, Value)> {
    let one = |call: &ToolCall| {
        assert!(call.ended, "{call:?}");
        (call.name.clone(), serde_json::from_str(&call.arguments).unwrap_or_else(|e| panic!("{e}: {call:?}")))
    };
    answer.calls.iter().map(one).collect()
}

fn weather(days: u32) -> (String, Value) {
    ("weather".to_owned(), json!({"city": "Zürich \"Oerlikon\"", "days": days}))
}

/// A form, an answer of two calls in it with text before, and what is said there.
const TWO: &[(&str, &str, &str)] = &[
    (
        "hermes",
        "Well. <tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Zürich \\\"Oerlikon\\\"\", \"days\": 1}}\n\
         </tool_call>\n<tool_call>\n{\"arguments\": {\"days\": 2, \"city\": \"Zürich \\\"Oerlikon\\\"\"}, \"name\": \
         \"weather\"}\n</tool_call>",
        "Well. ",
    ),
    (
        "mistral",
        "Well.[TOOL_CALLS][{\"name\": \"weather\", \"arguments\": {\"city\": \"Zürich \\\"Oerlikon\\\"\", \"days\": 1}}, \
         {\"name\": \"weather\", \"arguments\": {\"city\": \"Zürich \\\"Oerlikon\\\"\", \"days\": 2}}]",
        "Well.",
    ),
    (
        "mistral",
        "Well.[TOOL_CALLS]weather[ARGS]{\"city\": \"Zürich \\\"Oerlikon\\\"\", \"days\": 1}[TOOL_CALLS]weather[CALL_ID]a1B2c3D4e\
         [ARGS]{\"city\": \"Zürich \\\"Oerlikon\\\"\", \"days\": 2}",
        "Well.",
    ),
    (
        "glm",
        "Well.\n<tool_call>weather\n<arg_key>city</arg_key>\n<arg_value>Zürich \"Oerlikon\"</arg_value>\n<arg_key>days</arg_key>\n\
         <arg_value>1</arg_value>\n</tool_call>\n<tool_call>weather<arg_key>city</arg_key><arg_value>Zürich \"Oerlikon\"\
         </arg_value><arg_key>days</arg_key><arg_value>2</arg_value></tool_call>",
        "Well.\n",
    ),
    (
        "longcat",
        "Well.<longcat_tool_call>weather\n<longcat_arg_key>city</longcat_arg_key>\n<longcat_arg_value>Zürich \"Oerlikon\"\
         </longcat_arg_value>\n<longcat_arg_key>days</longcat_arg_key>\n<longcat_arg_value>1</longcat_arg_value>\n\
         </longcat_tool_call>\n<longcat_tool_call>weather\n<longcat_arg_key>city</longcat_arg_key>\n<longcat_arg_value>Zürich \
         \"Oerlikon\"</longcat_arg_value>\n<longcat_arg_key>days</longcat_arg_key>\n<longcat_arg_value>2</longcat_arg_value>\n\
         </longcat_tool_call>",
        "Well.",
    ),
    (
        "qwen3_coder",
        "Well.\n<tool_call>\n<function=weather>\n<parameter=city>\nZürich \"Oerlikon\"\n</parameter>\n<parameter=days>\n1\n\
         </parameter>\n</function>\n</tool_call>\n<tool_call>\n<function=weather>\n<parameter=city>\nZürich \"Oerlikon\"\n\
         </parameter>\n<parameter=days>\n2\n</parameter>\n</function>\n</tool_call>",
        "Well.\n",
    ),
    (
        "qwen3_coder",
        "Well.\n<function=weather>\n<parameter=city>\nZürich \"Oerlikon\"\n</parameter>\n<parameter=days>\n1\n</parameter>\n\
         </function>\n</tool_call>\n<function=weather>\n<parameter=city>\nZürich \"Oerlikon\"\n</parameter>\n\
         <parameter=days>\n2\n</parameter>\n</function>",
        "Well.\n",
    ),
    (
        "seed_oss",
        "Well.<seed:tool_call>\n<function=weather>\n<parameter=city>Zürich \"Oerlikon\"</parameter>\n<parameter=days>1</parameter>\n\
         </function>\n<function=weather>\n<parameter=city>Zürich \"Oerlikon\"</parameter>\n<parameter=days>2</parameter>\n\
         </function>\n</seed:tool_call>",
        "Well.",
    ),
    (
        "minimax_m2",
        "Well.\n<minimax:tool_call>\n<invoke name=\"weather\">\n<parameter name=\"city\">Zürich \"Oerlikon\"</parameter>\n\
         <parameter name=\"days\">1</parameter>\n</invoke>\n<invoke name=\"weather\">\n<parameter name=\"city\">Zürich \
         \"Oerlikon\"</parameter>\n<parameter name=\"days\">2</parameter>\n</invoke>\n</minimax:tool_call>",
        "Well.\n",
    ),
    (
        "hunyuan3",
        "Well.\n<tool_calls:opensource>\n<tool_call:opensource>weather<tool_sep:opensource>\n\
         <arg_key:opensource>city</arg_key:opensource>\n<arg_value:opensource>Zürich \"Oerlikon\"</arg_value:opensource>\n\
         <arg_key:opensource>days</arg_key:opensource>\n<arg_value:opensource>1</arg_value:opensource>\n\
         </tool_call:opensource>\n<tool_call:opensource>weather<tool_sep:opensource>\n\
         <arg_key:opensource>city</arg_key:opensource>\n<arg_value:opensource>Zürich \"Oerlikon\"</arg_value:opensource>\n\
         <arg_key:opensource>days</arg_key:opensource>\n<arg_value:opensource>2</arg_value:opensource>\n\
         </tool_call:opensource>\n</tool_calls:opensource>",
        "Well.\n",
    ),
    (
        "gigachat3",
        "Well.<|function_call|>{\"name\": \"weather\", \"arguments\": {\"city\": \"Zürich \\\"Oerlikon\\\"\", \"days\": 1}}\
         <|message_sep|>\n\n<|function_call|>{\"name\": \"weather\", \"arguments\": {\"city\": \"Zürich \\\"Oerlikon\\\"\", \
         \"days\": 2}}<|message_sep|>",
        "Well.",
    ),
    (
        "solar_open",
        "Well.<|tool_calls|><|tool_call:begin|>functions.weather:0<|tool_call:name|>weather<|tool_call:args|>{\"city\": \"Zürich \
         \\\"Oerlikon\\\"\", \"days\": 1}<|tool_call:end|><|tool_call:begin|>functions.weather:1<|tool_call:name|>weather\
         <|tool_call:args|>{\"city\": \"Zürich \\\"Oerlikon\\\"\", \"days\": 2}<|tool_call:end|><|calls|>",
        "Well.",
    ),
    (
        "deepseek_dsml",
        "Well.\n\n<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"weather\">\n<｜DSML｜parameter name=\"city\" string=\"true\">Zürich \
         \"Oerlikon\"</｜DSML｜parameter>\n<｜DSML｜parameter name=\"days\" string=\"false\">1</｜DSML｜parameter>\n\
         </｜DSML｜invoke>\n<｜DSML｜invoke name=\"weather\">\n<｜DSML｜parameter name=\"city\" string=\"true\">Zürich \"Oerlikon\"\
         </｜DSML｜parameter>\n<｜DSML｜parameter name=\"days\" string=\"false\">2</｜DSML｜parameter>\n</｜DSML｜invoke>\n\
         </｜DSML｜function_calls>",
        "Well.\n\n",
    ),
    (
        "deepseek_v3",
        "Well.<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>weather\n```json\n{\"city\": \"Zürich \\\"Oerlikon\\\"\", \
         \"days\": 1}\n```<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>function<｜tool▁sep｜>weather\n```json\n{\"city\": \"Zürich \
         \\\"Oerlikon\\\"\", \"days\": 2}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
        "Well.",
    ),
    (
        "deepseek_v31",
        "Well.<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>weather<｜tool▁sep｜>{\"city\": \"Zürich \\\"Oerlikon\\\"\", \"days\": 1}\
         <｜tool▁call▁end｜><｜tool▁call▁begin｜>weather<｜tool▁sep｜>{\"city\": \"Zürich \\\"Oerlikon\\\"\", \"days\": 2}\
         <｜tool▁call▁end｜><｜tool▁calls▁end｜>",
        "Well.",
    ),
    (
        "kimi_k2",
        "Well.<|tool_calls_section_begin|><|tool_call_begin|>functions.weather:0<|tool_call_argument_begin|>{\"city\": \"Zürich \
         \\\"Oerlikon\\\"\", \"days\": 1}<|tool_call_end|><|tool_call_begin|>functions.weather:1<|tool_call_argument_begin|>\
         {\"city\": \"Zürich \\\"Oerlikon\\\"\", \"days\": 2}<|tool_call_end|><|tool_calls_section_end|>",
        "Well.",
    ),
    (
        "tool_calls",
        "Well.\n<tool_calls>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Zürich \\\"Oerlikon\\\"\", \"days\": 1}}\n\
         {\"name\": \"weather\", \"arguments\": {\"city\": \"Zürich \\\"Oerlikon\\\"\", \"days\": 2}}\n</tool_calls>",
        "Well.\n",
    ),
    (
        "tool_calls",
        "Well.\n<tool_calls>\n<tool_call>weather\n```json\n{\"city\": \"Zürich \\\"Oerlikon\\\"\", \"days\": 1}\n```\n\
         </tool_call>\n<tool_call>function<tool_sep>weather\n```json\n{\"city\": \"Zürich \\\"Oerlikon\\\"\", \"days\": 2}\n```\n\
         </tool_call>\n</tool_calls>",
        "Well.\n",
    ),
    (
        "granite",
        "Well.<|tool_call|>[{\"name\": \"weather\", \"arguments\": {\"city\": \"Zürich \\\"Oerlikon\\\"\", \"days\": 1}}, \
         {\"arguments\": {\"city\": \"Zürich \\\"Oerlikon\\\"\", \"days\": 2}, \"name\": \"weather\"}]<|/tool_call|>",
        "Well.",
    ),
    (
        "nemotron",
        "Well.<TOOLCALL>[{\"name\": \"weather\", \"arguments\": {\"city\": \"Zürich \\\"Oerlikon\\\"\", \"days\": 1}}, \
         {\"name\": \"weather\", \"arguments\": {\"city\": \"Zürich \\\"Oerlikon\\\"\", \"days\": 2}}]</TOOLCALL>",
        "Well.",
    ),
    (
        "lfm2",
        "Well.<|tool_call_start|>[weather(city='Zürich \"Oerlikon\"', days=1), weather(days=2, city=\"Zürich \\\"Oerlikon\\\"\")]\
         <|tool_call_end|>",
        "Well.",
    ),
    (
        "olmo3",
        "Well.<function_calls>weather(city='Zürich \"Oerlikon\"', days=1)\nweather(city='Zürich \"Oerlikon\"', days=2)\
         </function_calls>",
        "Well.",
    ),
    (
        "function_gemma",
        "Well.<start_function_call>call:weather{city:<escape>Zürich \"Oerlikon\"<escape>,days:1}<end_function_call>\
         <start_function_call>call:weather{days:2,city:<escape>Zürich \"Oerlikon\"<escape>}<end_function_call>",
        "Well.",
    ),
    (
        "gemma4",
        "Well.<|tool_call>call:weather{city:<|\"|>Zürich \"Oerlikon\"<|\"|>,days:1}<tool_call|><|tool_call>call:weather\
         {city:<|\"|>Zürich \"Oerlikon\"<|\"|>,days:2}<tool_call|>",
        "Well.",
    ),
    (
        "command_r7b",
        "Well.<|START_ACTION|>[\n    {\"tool_call_id\": \"0\", \"tool_name\": \"weather\", \"parameters\": {\"city\": \"Zürich \
         \\\"Oerlikon\\\"\", \"days\": 1}},\n    {\"tool_call_id\": \"1\", \"tool_name\": \"weather\", \"parameters\": {\"city\": \
         \"Zürich \\\"Oerlikon\\\"\", \"days\": 2}}\n]<|END_ACTION|>",
        "Well.",
    ),
    (
        "command_r",
        "Well.\nAction: ```json\n[\n    {\n        \"tool_name\": \"weather\",\n        \"parameters\": {\"city\": \"Zürich \
         \\\"Oerlikon\\\"\", \"days\": 1}\n    },\n    {\"tool_name\": \"weather\", \"parameters\": {\"city\": \"Zürich \
         \\\"Oerlikon\\\"\", \"days\": 2}}\n]```",
        "Well.\n",
    ),
    (
        "apertus",
        "Well.<|tools_prefix|>[{\"weather\": {\"city\": \"Zürich \\\"Oerlikon\\\"\", \"days\": 1}}, {\"weather\": {\"city\": \
         \"Zürich \\\"Oerlikon\\\"\", \"days\": 2}}]<|tools_suffix|>",
        "Well.",
    ),
    (
        "internlm",
        "Well.<|action_start|><|plugin|>\n{\"name\": \"weather\", \"parameters\": {\"city\": \"Zürich \\\"Oerlikon\\\"\", \
         \"days\": 1}}<|action_end|>\n<|action_start|><|plugin|>\n{\"name\": \"weather\", \"parameters\": {\"city\": \"Zürich \
         \\\"Oerlikon\\\"\", \"days\": 2}}<|action_end|>",
        "Well.",
    ),
    (
        "functionary_v31",
        "Well.<function=weather>{\"city\": \"Zürich \\\"Oerlikon\\\"\", \"days\": 1}</function>\n<function=weather>{\"city\": \
         \"Zürich \\\"Oerlikon\\\"\", \"days\": 2}</function>",
        "Well.",
    ),
    (
        "functionary_v32",
        "all\nWell.>>>weather\n{\"city\": \"Zürich \\\"Oerlikon\\\"\", \"days\": 1}>>>weather\n{\"city\": \"Zürich \
         \\\"Oerlikon\\\"\", \"days\": 2}",
        "Well.",
    ),
    (
        "functionary_v32",
        "weather\n{\"city\": \"Zürich \\\"Oerlikon\\\"\", \"days\": 1}>>>weather\n{\"city\": \"Zürich \\\"Oerlikon\\\"\", \
         \"days\": 2}>>>all\nWell.",
        "Well.",
    ),
    (
        "llama3",
        "{\"name\": \"weather\", \"parameters\": {\"city\": \"Zürich \\\"Oerlikon\\\"\", \"days\": 1}}; {\"name\": \"weather\", \
         \"parameters\": \"{\\\"city\\\": \\\"Zürich \\\\\\\"Oerlikon\\\\\\\"\\\", \\\"days\\\": 2}\"}",
        "",
    ),
    (
        "llama_pythonic",
        "[weather(city=\"Zürich \\\"Oerlikon\\\"\", days=1), weather(city='Zürich \"Oerlikon\"', days=2)]",
        "",
    ),
    (
        "json_list",
        "[{\"name\": \"weather\", \"arguments\": {\"city\": \"Zürich \\\"Oerlikon\\\"\", \"days\": 1}}, {\"name\": \"weather\", \
         \"arguments\": {\"city\": \"Zürich \\\"Oerlikon\\\"\", \"days\": 2}}]",
        "",
    ),
    (
        "harmony",
        "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>Well.<|end|><|start|>assistant\
         <|channel|>commentary to=functions.weather <|constrain|>json<|message|>{\"city\": \"Zürich \\\"Oerlikon\\\"\", \"days\": 1}\
         <|call|><|start|>assistant to=functions.weather<|channel|>commentary json<|message|>{\"city\": \"Zürich \
         \\\"Oerlikon\\\"\", \"days\": 2}<|call|>",
        "Well.",
    ),
];

#[test]
fn calls_in_every_form() {
    for form in forms::all().map(|form| form.name) {
        assert!(TWO.iter().any(|(name, ..)| *name == form), "{form} is not tried");
    }
    for (form, text, said) in TWO {
        let answer = answer(&family(form, None), false, text);
        assert_eq!(calls(&answer), [weather(1), weather(2)], "{form}: {answer:?}");
        assert_eq!(answer.content, *said, "{form}");
    }
}

#[test]
fn what_an_answers_end_cuts_off_is_no_text() {
    for (form, text, said) in TWO {
        let at = text.find("rlikon").unwrap();
        let answer = answer(&family(form, None), false, &text[..at]);
        let begun = answer.calls.first().is_some_and(|call| call.name == "weather" && !call.ended);
        assert!(begun, "{form}: {answer:?}");
        assert!(answer.content.trim_end() == said.trim_end() || answer.content.is_empty(), "{form}: {answer:?}");
    }
}

#[test]
fn values_have_the_types_of_their_schema() {
    let coder = "<tool_call>\n<function=weather>\n<parameter=city>\n42\n</parameter>\n<parameter=wet>\nTrue\n</parameter>\n\
                 </function>\n</tool_call>";
    let found = answer(&family("qwen3_coder", None), false, coder);
    assert_eq!(calls(&found), [("weather".to_owned(), json!({"city": "42", "wet": true}))]);
    let long = "12345678901234567890123";
    let tagged =
        format!("<tool_call>\n{{\"name\": \"weather\", \"arguments\": {{\"days\": {long}, \"x\": -0}}}}\n</tool_call>");
    let found = answer(&family("hermes", None), false, &tagged);
    assert_eq!(found.calls[0].arguments, format!("{{\"days\": {long}, \"x\": -0}}"));
    let glm = format!("<tool_call>weather\n<arg_key>days</arg_key>\n<arg_value>{long}</arg_value>\n</tool_call>");
    assert_eq!(answer(&family("glm", None), false, &glm).calls[0].arguments, format!("{{\"days\": {long}}}"));
}

/// One argument `v` as each form that writes bare text has it.
const BARE: &[(&str, &str)] = &[
    ("qwen3_coder", "<tool_call>\n<function=f>\n<parameter=v>\n{}\n</parameter>\n</function>\n</tool_call>"),
    ("seed_oss", "<seed:tool_call>\n<function=f>\n<parameter=v>{}</parameter>\n</function>\n</seed:tool_call>"),
    ("glm", "<tool_call>f\n<arg_key>v</arg_key>\n<arg_value>{}</arg_value>\n</tool_call>"),
    (
        "longcat",
        "<longcat_tool_call>f\n<longcat_arg_key>v</longcat_arg_key>\n<longcat_arg_value>{}</longcat_arg_value>\n\
         </longcat_tool_call>",
    ),
    (
        "minimax_m2",
        "<minimax:tool_call>\n<invoke name=\"f\">\n<parameter name=\"v\">{}</parameter>\n</invoke>\n</minimax:tool_call>",
    ),
];

/// Kind of case 9: what bare text is, its schema says, in every form and however the schema says it.
#[test]
fn bare_text_is_what_its_schema_says() {
    let cases = [
        (r#"{"type": "string"}"#, "42", r#""42""#),
        (r#"{"type": "string"}"#, "true", r#""true""#),
        (r#"{"type": "string"}"#, "null", r#""null""#),
        (r#"{"type": "string"}"#, "{\"a\": 1}", r#""{\"a\": 1}""#),
        (r#"{"type": "string"}"#, "007", r#""007""#),
        (r#"{"enum": ["1", "2"]}"#, "1", r#""1""#),
        (r#"{"const": "7"}"#, "7", r#""7""#),
        (r##"{"$ref": "#/$defs/s"}"##, "42", r#""42""#),
        (r#"{"allOf": [{"type": "string"}, {"minLength": 1}]}"#, "42", r#""42""#),
        (r#"{"type": "boolean"}"#, "False", "false"),
        (r#"{"type": "boolean"}"#, "TRUE", "true"),
        (r#"{"type": ["boolean", "null"]}"#, "None", "null"),
        (r#"{"anyOf": [{"type": "boolean"}, {"type": "null"}]}"#, "True", "true"),
        (r#"{"anyOf": [{"type": "integer"}, {"type": "null"}]}"#, "42", "42"),
        (r##"{"$ref": "#/$defs/b"}"##, "True", "true"),
        (r#"{"type": "integer"}"#, "42", "42"),
        (r#"{"type": "number"}"#, "1.50", "1.50"),
        (r#"{"type": "array", "items": {"type": "string"}}"#, "[\"1\"]", r#"["1"]"#),
        (r#"{"type": "object"}"#, "{\"a\": \"1\"}", r#"{"a": "1"}"#),
    ];
    for (schema, said, wanted) in cases {
        let schema: Value = serde_json::from_str(schema).unwrap();
        let parameters = json!({"type": "object", "properties": {"v": schema},
            "$defs": {"s": {"type": "string"}, "b": {"type": "boolean"}}});
        let tools = DeclaredTools::new(&[Tool::new("tools", "f", None, parameters, false).unwrap()]);
        for (form, text) in BARE {
            let found = answer_for(&tools, &family(form, None), false, &text.replace("{}", said));
            let wanted: Value = serde_json::from_str(&format!("{{\"v\": {wanted}}}")).unwrap();
            assert_eq!(calls(&found), [("f".to_owned(), wanted)], "{form}: {said} of {schema}");
        }
    }
}

/// Kind of case 23: numbers keep their digits in every form, whatever a float would make of them.
#[test]
fn numbers_keep_their_digits_in_every_form() {
    let mut tried = 0;
    for number in ["12345678901234567890123", "-9223372036854775809", "0.1000000000000000055", "1e400", "-0", "1.0"] {
        for (form, text, _) in TWO {
            let at = text.rfind('2').unwrap();
            let text = format!("{}{number}{}", &text[..at], &text[at + 1..]);
            let found = answer(&family(form, None), false, &text);
            let arguments = &found.calls[1].arguments;
            assert!(found.calls[1].ended && arguments.contains(&format!("\"days\": {number}")), "{form}: {arguments}");
            tried += 1;
        }
    }
    assert!(tried > 150, "{tried}");
}

#[test]
fn calls_without_arguments() {
    for (form, text) in [
        ("hermes", "<tool_call>{\"name\": \"now\"}</tool_call>"),
        ("glm", "<tool_call>now\n</tool_call>"),
        ("glm", "<tool_call>now</tool_call>"),
        ("qwen3_coder", "<tool_call>\n<function=now>\n</function>\n</tool_call>"),
        ("seed_oss", "<seed:tool_call>\n<function=now>\n</function>\n</seed:tool_call>"),
        ("minimax_m2", "<minimax:tool_call>\n<invoke name=\"now\">\n</invoke>\n</minimax:tool_call>"),
        ("lfm2", "<|tool_call_start|>[now()]<|tool_call_end|>"),
        ("llama3", "{\"name\": \"now\", \"parameters\": {}}"),
        ("llama3", "<|python_tag|>{\"name\": \"now\", \"parameters\": null}"),
        ("gemma4", "<|tool_call>call:now{}<tool_call|>"),
        ("harmony", "<|channel|>commentary to=functions.now<|message|>{}<|call|>"),
        ("harmony", "<|channel|>commentary to=functions.now<|message|><|call|>"),
    ] {
        let found = answer(&family(form, None), false, text);
        assert_eq!(calls(&found), [("now".to_owned(), json!({}))], "{form}: {text}");
        assert_eq!(found.content, "", "{form}: {text}");
    }
}

#[test]
fn what_is_no_call_is_text() {
    for (form, text) in [
        ("hermes", "a <tool_call>b</tool_call>c"),
        ("hermes", "a <tool_call>b"),
        ("hermes", "<tool_call>{\"nme\": 1}</tool_call>"),
        ("llama3", "{ not a call"),
        ("llama3", "{\"name\": \"Bob\", \"age\": 3}"),
        ("llama3", "plain"),
        ("llama_pythonic", "[1] says the first note"),
        ("json_list", "[{\"name\": \"Bob\"}]"),
        ("qwen3_coder", "use <function=f to call"),
        ("glm", "<tool_call> is a mark"),
        ("mistral", "[TOOL_CALLS] is a mark"),
        ("command_r", "Action: run!"),
        ("functionary_v31", "a <function=b c>"),
    ] {
        let found = answer(&family(form, None), false, text);
        assert_eq!((found.content.as_str(), found.calls.len()), (text, 0), "{form}");
    }
}

#[test]
fn thoughts_are_cut_off() {
    let think = family("", Some("</think>"));
    let of = |text: &str| {
        let found = answer(&think, false, text);
        (found.reasoning, found.content)
    };
    let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
    assert_eq!(of("<think>\na b\n</think>\n\nyes ß"), pair("a b", "yes ß"));
    assert_eq!(of("no thought <think>"), pair("", "no thought <think>"));
    assert_eq!(of("<think>never ends"), pair("never ends", ""));
    assert_eq!(of("<thin"), pair("", "<thin"));
    let opened = answer(&think, true, "\nopen</think>said");
    assert_eq!((opened.reasoning.as_str(), opened.content.as_str()), ("open", "said"));
    assert_eq!(answer(&family("", None), false, "<think>a</think>").content, "<think>a</think>");
    for (form, marks, text) in [
        ("mistral", "[/THINK]", "[THINK]hm[/THINK]Well.[TOOL_CALLS]now[ARGS]{}"),
        (
            "seed_oss",
            "</seed:think>",
            "<seed:think>hm</seed:think>Well.<seed:tool_call><function=now></function></seed:tool_call>",
        ),
        ("gemma4", "<channel|>", "<|channel>thought\nhm<channel|>Well.<|tool_call>call:now{}<tool_call|>"),
        ("glm", "</think>", "<think>hm</think>\nWell.<tool_call>now</tool_call>"),
        ("llama3", "</think>", "<think>hm</think>{\"name\": \"now\", \"parameters\": {}}"),
        (
            "harmony",
            "</think>",
            "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>Well.<|end|>\
                     <|start|>assistant<|channel|>commentary to=functions.now<|message|>{}",
        ),
    ] {
        let found = answer(&family(form, Some(marks)), false, text);
        assert_eq!(calls(&found).len(), 1, "{form}: {found:?}");
        assert_eq!(found.reasoning, "hm", "{form}: {found:?}");
        assert!(["Well.", ""].contains(&found.content.as_str()), "{form}: {found:?}");
    }
}
