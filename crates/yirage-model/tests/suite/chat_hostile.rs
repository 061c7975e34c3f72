//! Templates that want the machine: each family ends in a typed error soon and in little memory. Large conversations
//! keep a wide margin to the same budgets.

use std::time::{Duration, Instant};

use serde_json::{Value as Json, json};
use yirage_model::chat::{ChatError, ChatInputs, ChatTemplate, TrialSteps};

/// Far above what a budget allows, far below a hang.
const DEADLINE: Duration = Duration::from_secs(60);

fn render(source: &str) -> Result<String, ChatError> {
    let messages = [json!({"role": "user", "content": "hi"})];
    let begun = Instant::now();
    let rendered = ChatTemplate::new("hostile", source).and_then(|t| t.render(&ChatInputs::new(&messages)));
    assert!(begun.elapsed() < DEADLINE, "{} took {:?}", &source[..source.len().min(80)], begun.elapsed());
    rendered.map(|rendered| rendered.text)
}

fn over_a_limit(source: &str) {
    match render(source) {
        Err(ChatError::Limit { .. }) => {}
        Err(other) => panic!("{}: {other}", &source[..source.len().min(80)]),
        Ok(text) => panic!("{}: {} bytes of text", &source[..source.len().min(80)], text.len()),
    }
}

/// A loop that runs `body` with the namespace `n` until a budget ends it.
fn looped(set: &str, body: &str) -> String {
    format!("{{% set n = namespace({set}) %}}{{% for i in range(99999) %}}{body}{{% endfor %}}")
}

#[test]
fn long_chains_do_not_overflow_the_stack() {
    let n = 10_000;
    for (head, link, tail) in [
        ("{{ 1", " + 1", " }}"),
        ("{{ 1", " * 1", " }}"),
        ("{{ 1", " and 1", " }}"),
        ("{{ 1", " ** 1", " }}"),
        ("{{ 1", "|abs", " }}"),
        ("{{ 1", " is odd", " }}"),
        ("{{ a", ".b", " }}"),
        ("{{ a", "[0]", " }}"),
        ("{{ a", "()", " }}"),
        ("{{ ", "1 if 0 else ", "1 }}"),
        ("{{ 1", " if 1", " }}"),
        ("{{ ", "not ", "1 }}"),
        ("{{ ", "-", "1 }}"),
        ("{{ ", "(", "1"),
        ("{{ ", "[", "1"),
        ("{{ ", "{1:", "1"),
        ("{{ ", "f(", "1"),
        ("{{ 1 ", "is eq ", "1 }}"),
        ("{% set ", "(", "a %}"),
        ("", "{% if 1 %}", ""),
        ("", "{% for a in b %}", ""),
        ("", "{% set a %}", ""),
        ("", "{% filter upper %}", ""),
        ("", "{% macro f() %}", ""),
        ("", "{% call f() %}", ""),
    ] {
        let source = format!("{head}{}{tail}", link.repeat(n));
        assert!(matches!(render(&source), Err(ChatError::Limit { .. } | ChatError::Syntax { .. })), "{head}{link}");
    }
    assert_eq!(render(&format!("{{% if 0 %}}{}x{{% endif %}}", "{% elif 0 %}".repeat(n))).unwrap(), "");
    assert_eq!(render(&format!("{{{{ 1 < 2{} }}}}", " < 3 > 2".repeat(n))).unwrap(), "True");
    assert_eq!(render(&format!("{{{{ 'a'{} }}}}", " ~ 'a'".repeat(n))).unwrap().len(), n + 1);
}

#[test]
fn what_would_be_huge_is_refused_before_it_is_made() {
    for source in [
        "{{ ''|indent(10000000000) }}{{ 'a'|indent(10000000000, true) }}",
        "{{ 'a'|replace('a', 'b' * 99999999)|replace('b', 'c' * 99999999) }}",
        "{{ ('a' * 99999).replace('', 'b' * 99999) }}",
        "{{ range(99999)|join('x' * 99999) }}",
        "{{ ('x' * 99999).join(['a'] * 99999) }}",
        "{{ 'a'.center(10000000000) }}",
        "{{ 'a'.ljust(10000000000) }}",
        "{{ 'a'.zfill(10000000000) }}",
        "{{ 'a'|center(10000000000) }}",
        "{{ '\\t'.expandtabs(10000000000) }}",
        "{{ '%10000000000d' % 1 }}",
        "{{ '{:>10000000000}'.format(1) }}",
        "{{ '%.10000000000f'|format(1.5) }}",
        "{{ 'abc' * 10000000000 }}",
        "{{ [1, 2] * 10000000000 }}",
        "{{ range(10000000000) }}",
        "{{ 1|tojson(indent=10000000000) }}",
        "{{ [1]|batch(10000000000, 'x')|list }}",
        "{{ [1]|slice(10000000000)|list }}",
        "{% set x %}{% for i in range(99999) %}{{ 'x' * 99999 }}{% endfor %}{% endset %}",
        "{% filter upper %}{% for i in range(99999) %}{{ 'x' * 99999 }}{% endfor %}{% endfilter %}",
        "{% macro f() %}{% for i in range(99999) %}{{ 'x' * 99999 }}{% endfor %}{% endmacro %}{{ f() }}",
        "{% macro f() %}{{ f(*range(99999)) }}{{ varargs }}{% endmacro %}{{ f() }}",
    ] {
        over_a_limit(source);
    }
    let spread = "*l,".repeat(3_000);
    over_a_limit(&format!(
        "{{% set l = range(99999) %}}{{% macro f() %}}{{{{ varargs }}}}{{% endmacro %}}{{{{ f({spread}) }}}}"
    ));
    for (set, body) in [
        ("s='ab'", "{% set n.s = n.s ~ n.s %}"),
        ("s='ab'", "{% set n.s = n.s + n.s %}"),
        ("s='ab'", "{% set n.s = n.s|replace('a', n.s) %}"),
        ("s='ab'", "{% set n.s = '%s%s' % (n.s, n.s) %}"),
        ("s='ab'", "{% set n.s = '{0}{0}'.format(n.s) %}"),
        ("s='ab'", "{% set n.s = [n.s, n.s]|join %}"),
        ("s=[1]", "{% set n.s = n.s + n.s %}"),
        ("s=[1]", "{% set n.s = [n.s, n.s]|sum(start=[]) %}"),
        ("s=[1]", "{% set n.s = [n.s, n.s] %}{{ n.s }}"),
        ("s=[1]", "{% set n.s = {'a': n.s, 'b': n.s} %}{{ n.s|tojson }}"),
    ] {
        over_a_limit(&looped(set, body));
    }
}

#[test]
fn what_would_take_long_is_ended() {
    for (set, body) in [
        ("", "{% if range(99999)|sum %}{% endif %}"),
        ("l=range(99999)", "{% if -1 in n.l %}{% endif %}"),
        ("l=range(99999)", "{% if n.l == range(99999) %}{% endif %}"),
        ("l=range(99999)|list", "{{ (n.l|sort(reverse=true))[0] }}"),
        ("l=range(99999)", "{% if n.l|unique|list %}{% endif %}"),
        ("l=range(99999)", "{% if n.l|map('string')|list %}{% endif %}"),
        ("l=range(99999)", "{{ n.l|max }}"),
        ("l=range(99999)", "{{ n.l.index(-1) if 0 }}{{ n.l.count(-1) }}"),
        ("l=range(99999)", "{{ n.l[::-1][0] }}"),
        ("s='ab' * 999999", "{{ n.s.count('b') }}"),
        ("s='ab' * 999999", "{{ n.s.find('c') }}{{ 'c' in n.s }}"),
        ("s='äb' * 999999", "{{ n.s[999998] }}{{ n.s|length }}"),
        ("s='ab' * 999999", "{{ n.s.strip('b' * 9999)|length }}"),
        ("s='ab' * 999999", "{{ n.s < n.s ~ 'a' }}"),
        ("s='ab' * 999999", "{{ n.s.split('a')|length }}"),
        ("s='ab' * 999999", "{{ n.s|upper|length }}"),
    ] {
        over_a_limit(&looped(set, body));
    }
    over_a_limit("{% for a in range(9999) %}{% for b in range(9999) %}{% endfor %}{% endfor %}");
    over_a_limit(&format!(
        "{{% set d = {{{}}} %}}{}",
        "1: 1,".repeat(9),
        looped("l=range(99999)", "{{ dict(n.l|map('string')|batch(2)|list)|length }}")
    ));
}

/// What a template is asked by trials costs what one rendering may cost, whatever it does in each of them.
#[test]
fn trials_share_their_steps() {
    let messages = [json!({"role": "user", "content": "hi"})];
    let trials = |source: &str| {
        let template = ChatTemplate::new("slow", source).unwrap();
        let steps = TrialSteps::default();
        let inputs = ChatInputs { trial: Some(&steps), ..ChatInputs::new(&messages) };
        let passed = (0..1_000).take_while(|_| template.render(&inputs).is_ok()).count();
        (passed, steps.are_spent(), template)
    };
    let slow = looped("a=0", "{% set n.a = n.a + 1 %}") + "{{ messages[0].content }}";
    let (passed, spent, template) = trials(&slow);
    assert!(passed < 10 && spent, "{passed} renderings of 99,999 turns");
    assert_eq!(trials(&slow).0, passed, "steps are the same everywhere");
    assert!(template.capabilities().calls, "what was not tried may be shown");
    // One that refuses takes its steps too.
    let refusing = ChatTemplate::new("refusing", &(slow + "{{ raise_exception('no') }}")).unwrap();
    let steps = TrialSteps::default();
    let inputs = ChatInputs { trial: Some(&steps), ..ChatInputs::new(&messages) };
    assert!((0..10).all(|_| refusing.render(&inputs).is_err()) && steps.are_spent());
    let (passed, spent, _) = trials("{{ messages[0].content }}");
    assert_eq!((passed, spent), (1_000, false));
}

#[test]
fn deep_values_and_recursion_are_bounded() {
    for (set, body) in [
        ("x=[]", "{% set n.x = [n.x] %}"),
        ("x=[]", "{% set n.x = (n.x,) %}"),
        ("x={}", "{% set n.x = {'a': n.x} %}"),
        ("x=''", "{% set n.x = joiner(n.x) %}"),
        ("x=''", "{% set n.x = cycler(n.x) %}"),
        ("x=''", "{% macro f() %}{% endmacro %}{% set n.x = [n.x, f] %}"),
        ("x=''", "{% for j in [n.x] %}{% set n.x = loop %}{% endfor %}"),
        ("x=''", "{% with y = n.x %}{% macro f() %}{% endmacro %}{% set n.x = f %}{% endwith %}"),
        ("x=[].count", "{% set n.x = [n.x].count %}"),
    ] {
        over_a_limit(&looped(set, body));
    }
    over_a_limit("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}");
    over_a_limit("{% macro f() %}{{ caller is defined }}{% call f() %}{% endcall %}{% endmacro %}{{ f() }}");
    over_a_limit("{% for x in [1] recursive %}{{ loop([x]) }}{% endfor %}");
    let chain = looped("x=none", "{% set n.x = namespace(x=n.x) %}");
    assert!(matches!(render(&chain), Ok(_) | Err(ChatError::Limit { .. })));
    let knot = "{% set n = namespace() %}{% set n.n = n %}{% set n.l = [n, n] %}{{ n.l }}{{ n.n.n.n.l|length }}";
    assert!(render(knot).unwrap().ends_with('2'));
}

#[test]
fn a_limit_names_template_line_and_number() {
    let error = render("x\n{{ 'a' * 10000000000 }}").unwrap_err();
    let wanted = "chat template `hostile`, line 2: memory of the rendering in bytes exceeds the limit of 134217728";
    assert_eq!(error.to_string(), wanted);
}

const USUAL: &str = "{%- macro show(value, depth=0) -%}{%- if value is mapping -%}{% for k, v in value.items() %}{{ '  ' * depth }}{{ k }}: {{ show(v, depth + 1) }}\n{% endfor %}{%- elif value is iterable and value is not string -%}{% for v in value %}{{ show(v, depth + 1) }},{% endfor %}{%- else -%}{{ value }}{%- endif -%}{%- endmacro -%}\
{%- set ns = namespace(last=-1, text='') -%}\
{%- for tool in tools -%}{{ tool | tojson(indent=2) }}{{ show(tool) }}{%- endfor -%}\
{%- for m in messages -%}{%- if m.role == 'user' -%}{%- set ns.last = loop.index0 -%}{%- endif -%}{%- endfor -%}\
{%- for m in messages -%}{%- set content = m.content | trim -%}\
{%- if '</think>' in content -%}{%- set content = content.split('</think>')[-1].lstrip('\n') -%}{%- endif -%}\
{{- '<|' ~ m.role ~ '|>' + content.replace('a', 'b') + '\n' -}}{%- set ns.text = content -%}{%- endfor -%}";

/// A conversation of 1,000 messages and 1 MB beside tools with 100 parameters takes a tenth of every budget at most:
/// ten of them in one template pass.
#[test]
fn large_conversations_keep_a_wide_margin() {
    let content = "words and more words, ".repeat(48);
    let roles = ["user", "assistant"];
    let messages: Vec<Json> = (0..1000).map(|i| json!({"role": roles[i % 2], "content": content})).collect();
    let properties: serde_json::Map<String, Json> = (0..100)
        .map(|i| {
            (format!("p{i}"), json!({"type": "object", "enum": ["a", "b"], "properties": {"x": {"type": "string"}}}))
        })
        .collect();
    let tool = json!({"type": "function", "function": {"name": "f", "parameters": {"properties": properties}}});
    let tools = vec![tool; 10];
    let inputs = ChatInputs { tools: Some(&tools), ..ChatInputs::new(&messages) };
    let once = ChatTemplate::new("usual", USUAL).unwrap().render(&inputs).unwrap().text;
    assert!(once.len() > 1_000_000, "{}", once.len());
    let ten = format!("{{% for again in range(10) %}}{USUAL}{{% endfor %}}");
    assert_eq!(ChatTemplate::new("usual", &ten).unwrap().render(&inputs).unwrap().text, once.repeat(10));
}
