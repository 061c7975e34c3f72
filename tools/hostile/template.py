"""Hostile chat templates: deep trees, large texts, long loops, recursion, and damaged ordinary ones."""
import json

import base
from case import ANYTHING, Case, Family, Link

# How many times a construct is repeated; a template of 64 KiB is not large.
DEPTHS = [50, 500, 5000, 12_000]
OPERATORS = ["+", "-", "*", "~", "and", "or", "==", "<", "in", "//", "%", "**", "is defined and", "not in"]
FILTERS = ["trim", "upper", "lower", "string", "length", "list", "sort", "reverse", "tojson", "safe", "first", "last",
           "title",
           "escape", "urlencode", "unique", "items", "indent", "capitalize", "abs", "int", "float", "default('x')",
           "join"]


def depth(rng):
    return rng.choice(DEPTHS)


def operators(rng):
    operator = rng.choice(OPERATORS)
    return "{{ " + f" {operator} ".join(["1"] * depth(rng)) + " }}"


def unary(rng):
    return "{{ " + rng.choice(["not ", "- ", "-", "not not ", "+"]) * depth(rng) + "1 }}"


def filters(rng):
    return "{{ 'a'" + ("|" + rng.choice(FILTERS)) * depth(rng) + " }}"


def attributes(rng):
    return "{{ messages" + rng.choice([".x", ".x()", "['x']", "[0]", "[:]", "[::-1]", "[0:1]",
                                       "()"]) * depth(rng) + " }}"


def indices(rng):
    n = depth(rng)
    return "{{ " + "messages[" * n + "0" + "]" * n + " }}"


def ternary(rng):
    n = depth(rng)
    return rng.choice(["{{ " + "1 if 1 else " * n + "2 }}", "{{ " + "(" * n + "1" + " if 1 else 2)" * n + " }}"])


def tests(rng):
    return "{{ 1" + rng.choice([" is defined", " is not none", " is string", " is divisibleby 3"]) * depth(rng) + " }}"


def elifs(rng):
    return "{% if 0 %}" + "{% elif 0 %}x" * depth(rng) + "{% endif %}y"


def blocks(rng):
    n = depth(rng)
    begin, end = rng.choice([("{% if 1 %}", "{% endif %}"), ("{% for i in [1] %}", "{% endfor %}"),
                             ("{% set x %}", "{% endset %}"),
                             ("{% macro m() %}", "{% endmacro %}"), ("{% filter upper %}", "{% endfilter %}"),
                             ("{% call f() %}", "{% endcall %}"), ("{% with a=1 %}", "{% endwith %}"),
                             ("{% generation %}", "{% endgeneration %}"),
                             ("{% autoescape true %}", "{% endautoescape %}")])
    return begin * n + "x" + (end * n if rng.random() < 0.8 else "")


def brackets(rng):
    n = depth(rng)
    first, last = rng.choice(["()", "[]", ("{'a':", "}"), ("{", "}"), ("range(", ")"), ("(-", ")"), ("[1,", "]"),
                              ("m(a=", ")")])
    return "{{ " + first * n + "1" + last * n + " }}"


def widths(rng):
    n = rng.choice([10**5, 10**7, 10**8, 10**9, 10**10, 2**31, 2**63 - 1, 2**64, -1])
    return rng.choice([
        "{{ ''|indent(%d) }}", "{{ 'a\nb'|indent(%d, true) }}", "{{ '%%%ds'|format('x') }}", "{{ '%%0%dd'|format(1) }}",
        "{{ '%%.%df'|format(1.0) }}", "{{ 'x'|center(%d) }}", "{{ 'x'*%d }}", "{{ [1]*%d }}", "{{ 'x'.ljust(%d) }}",
        "{{ 'x'.rjust(%d) }}", "{{ 'x'.zfill(%d) }}", "{{ 'x'.center(%d) }}", "{{ range(%d)|list|length }}",
        "{{ range(%d)|join('xxxxxxxx') }}", "{{ messages|tojson(indent=%d) }}", "{{ 1.5|round(%d) }}",
        "{{ 'x y'|wordwrap(%d) }}",
        "{{ '{:%d}'.format('x') }}", "{{ lipsum(%d) }}", "{{ 2**%d }}", "{{ [1,2]|batch(%d, 'x')|list }}",
        "{{ [1]|slice(%d)|list }}",
        "{{ 'x'.expandtabs(%d) }}", "{{ '\t'.expandtabs(%d) }}", "{{ range(%d) | sum }}", "{{ 'a'|truncate(%d) }}"]) % n


def doubling(rng):
    n = rng.choice([10, 25, 32, 40, 64])
    return rng.choice([
        "{% set ns = namespace(s='x') %}{% for i in range(N) %}{% set ns.s = ns.s + ns.s %}{% endfor %}{{ ns.s|length }}",
        "{% set ns = namespace(s='x') %}{% for i in range(N) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}{{ ns.s }}",
        "{% set ns = namespace(s=[1]) %}{% for i in range(N) %}{% set ns.s = ns.s + ns.s %}{% endfor %}{{ ns.s|length }}",
        "{% set ns = namespace(s='xx') %}{% for i in range(N) %}{% set ns.s = ns.s|replace('x', 'xx') %}{% endfor %}{{ ns.s|length }}",
        "{% set ns = namespace(s='x') %}{% for i in range(N) %}{% set ns.s = [ns.s, ns.s]|join %}{% endfor %}{{ ns.s|length }}",
        "{% set ns = namespace(s='x') %}{% for i in range(N) %}{% set ns.s = '%s%s'|format(ns.s, ns.s) %}{% endfor %}{{ ns.s|length }}",
        "{% set ns = namespace(s='x') %}{% for i in range(N) %}{% set x %}{{ ns.s }}{{ ns.s }}{% endset %}{% set ns.s = x %}{% endfor %}",
        "{% set ns = namespace(s='&') %}{% for i in range(N) %}{% set ns.s = ns.s|escape|string %}{% endfor %}{{ ns.s|length }}",
        "{% set ns = namespace(s='\"') %}{% for i in range(N) %}{% set ns.s = ns.s|tojson %}{% endfor %}{{ ns.s|length }}",
        "{% set ns = namespace(s=[1]) %}{% for i in range(N) %}{% set ns.s = [ns.s, ns.s] %}{% endfor %}{{ ns.s|length }}{{ ns.s }}",
        "{% set ns = namespace(s='ab') %}{% for i in range(N) %}{% set ns.s = ns.s.replace('', ns.s) %}{% endfor %}{{ ns.s|length }}",
        "{% set ns = namespace(s='ab') %}{% for i in range(N) %}{% set ns.s = ns.s.join(ns.s) %}{% endfor %}{{ ns.s|length }}",
    ]).replace("N", str(n))


def captures(rng):
    n = rng.choice([10, 30, 60])
    out = "{% set a0 %}xxxxxxxxxx{% endset %}"
    for i in range(n):
        out += "{%% set a%d %%}{{ a%d }}{{ a%d }}{%% endset %%}" % (i + 1, i, i)
    return out + "{{ a%d|length }}" % n


def macros(rng):
    n = rng.choice([10, 30, 60])
    out = "{% macro m0() %}x{% endmacro %}"
    for i in range(n):
        out += "{%% macro m%d() %%}{{ m%d() }}{{ m%d() }}{%% endmacro %%}" % (i + 1, i, i)
    return out + "{{ m%d() }}" % n


def recursion(rng):
    return rng.choice([
        "{% macro m(n) %}{{ m(n + 1) }}{% endmacro %}{{ m(0) }}",
        "{% macro m(n) %}{{ m(n) ~ m(n) }}{% endmacro %}{{ m(0) }}",
        "{% macro a() %}{{ b() }}{% endmacro %}{% macro b() %}{{ a() }}{% endmacro %}{{ a() }}",
        "{% for x in [[1]] recursive %}{{ loop([[1]]) }}{% endfor %}",
        "{% macro m() %}{{ caller() }}{% endmacro %}{% macro r() %}{% call m() %}{{ r() }}{% endcall %}{% endmacro %}{{ r() }}",
        "{% macro m(n) %}{% for i in range(10) %}{{ m(n) }}{% endfor %}{% endmacro %}{{ m(0) }}",
        "{% set ns = namespace() %}{% set ns.a = ns %}{{ ns }}",
        "{% set ns = namespace() %}{% set ns.a = [ns] %}{{ ns|tojson }}",
        "{% set ns = namespace() %}{% set ns.a = {'b': ns} %}{{ ns == ns.a }}{{ ns.a|string }}",
        "{% include 'chat_template' %}", "{% extends 'x' %}", "{% import 'x' as y %}", "{{ self }}{{ self.x() }}"])


def deep_values(rng):
    n = rng.choice([100, 1000, 10_000, 90_000])
    return ("{% set ns = namespace(v=[]) %}{% for i in range(N) %}{% set ns.v = WRAP %}{% endfor %}{{ USE }}"
            .replace("N", str(n)).replace("WRAP", rng.choice(["[ns.v]", "{'a': ns.v}", "(ns.v,)", "namespace(a=ns.v)"]))
            .replace("USE", rng.choice(["ns.v", "ns.v|tojson", "ns.v == ns.v", "ns.v|string|length", "ns.v|length",
                                        "ns.v in [ns.v]",
                                        "[ns.v, ns.v]|sort|length", "[ns.v, ns.v]|unique|list|length", "ns.v < ns.v"])))


def loops(rng):
    work = rng.choice(["range(99999)|sum", "range(99999)|list|length", "range(99999)|sort|length",
                       "99999 in range(100000)|list",
                       "range(99999)|join|length", "range(9999)|map('string')|join|length",
                       "range(99999)|unique|list|length",
                       "('x' * 100000)|replace('x', 'y')|length", "range(99999)|reverse|list|last",
                       "'y' in 'x' * 100000",
                       "range(99999)|tojson|length", "range(9999)|groupby('x')|list|length",
                       "range(99999)|select('odd')|list|length",
                       "('a ' * 50000).split(' ')|length", "('a' * 100000).count('aa')",
                       "range(99999)|batch(2)|list|length",
                       "('x' * 100000)|upper|length", "range(99999)|max", "range(99999)|list == range(99999)|list"])
    return rng.choice([
        "{% for i in range(99999) %}{% if WORK %}{% endif %}{% endfor %}",
        "{% for i in range(99999) %}{{ WORK }}{% endfor %}",
        "{% for i in range(999) %}{% for j in range(999) %}{% set x = WORK %}{% endfor %}{% endfor %}",
        "{% set ns = namespace(n=0) %}{% for i in range(99999) %}{% set ns.n = ns.n + (WORK|string|length) %}{% endfor %}{{ ns.n }}",
    ]).replace("WORK", work)


def nested_loops(rng):
    n = rng.choice([2, 3, 6, 20])
    return "{% for i in range(9999) %}" * n + rng.choice(["", "x", "{{ i }}", "{% set y = i %}"]) + "{% endfor %}" * n


def large(rng):
    n = rng.choice([10**5, 10**6, 5 * 10**6])
    return rng.choice(["x" * n, "{{ 1 }}" * (n // 7), "{# " + "c" * n, "{{ '" + "s" * n + "'|length }}",
                       "{{ " + "v" * n + " }}",
                       "{% set x = [" + "1," * (n // 2) + "] %}{{ x|length }}",
                       "{% raw %}" + "{{" * (n // 2) + "{% endraw %}",
                       "{%- if x -%}\n" * (n // 14), "{{ x." + "a." * (n // 2) + "b }}", "{{ 1" + "0" * n + " }}",
                       "{{ 1e" + "9" * 20 + " }}", "{% if " + "1 and " * (n // 6) + "1 %}x{% endif %}"])


def strange(rng):
    return rng.choice([
        "{{ raise_exception('\x1b[31mred\x07') }}", "{{ raise_exception('x' * 10000000) }}", "\x1b[2J{{ '\x1b[31m' }}",
        "{{ 1/0 }}",
        "{{ 1//0 }}", "{{ 1%0 }}", "{{ -9223372036854775808 // -1 }}", "{{ 9223372036854775807 + 1 }}", "{{ 10**100 }}",
        "{{ (-9223372036854775807 - 1)|abs }}", "{{ 'a'[9223372036854775807] }}", "{{ 'a'[-9223372036854775808:] }}",
        "{{ 'abc'[::0] }}", "{{ [1,2,3][::-9223372036854775808] }}", "{{ strftime_now('%' * 1000) }}",
        "{{ strftime_now('%9999999999Y') }}",
        "{{ range(0, 10, 0) }}", "{{ range(-9223372036854775808, 9223372036854775807)|length }}", "{{ 1e308 * 1e308 }}",
        "{{ 'nan'|float|int }}", "{{ ('1' * 400)|int }}", "{{ '%c'|format(1114112) }}", "{{ '%s%s'|format('x') }}",
        "{{ '%'|format }}",
        "{{ '%*d'|format(1000000000, 1) }}", "{{ messages|map(attribute='a.b.c.d')|list }}", "{{ dict(**{'a': 1}) }}",
        "{{ x.__class__.__mro__ }}", "{% set messages.x = 1 %}", "{% for a, b, c in [[1,2]] %}{% endfor %}",
        "{{ [1,'a',none]|sort }}",
        "{{ messages|sort(attribute='content') }}", "{{ {}|dictsort }}", "{{ {[]: 1} }}", "{{ '\\x' }}",
        "{{ '\\ud800' }}", "{{ '\\u",
        "{{", "{%", "{#", "}}", "{% endfor %}", "{% if %}", "{% for %}", "{{ 'a' 'b' }}", "\0", "{{ loop }}",
        "{{ caller() }}"])


def damaged(rng):
    data = bytearray(base.TEMPLATE.encode())
    for _ in range(rng.choice([1, 2, 4, 8])):
        at = rng.randrange(len(data))
        match rng.randrange(4):
            case 0:
                data[at] = rng.randrange(256)
            case 1:
                del data[at:at + rng.randrange(1, 9)]
            case 2:
                data[at:at] = rng.choice([b"{{", b"}}", b"{%", b"%}", b"'", b"|", b"(", b")", b"[", b"-", b".",
                                          b"\xff", b"\n"])
            case _:
                data[at:at] = data[at:at + rng.randrange(1, 40)]
    return bytes(data)


MAKERS = [operators, operators, unary, filters, attributes, indices, ternary, tests, elifs, blocks, blocks, brackets,
          widths, widths,
          widths, doubling, doubling, captures, macros, recursion, deep_values, deep_values, loops, loops,
          nested_loops, large,
          strange, strange, strange, damaged, damaged]


def make(rng, folder, _work):
    maker = rng.choice(MAKERS)
    text = maker(rng)
    data = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
    llama = folder / "llama"
    files = {part: Link(str(llama / part)) for part in ("config.json", "model.safetensors", "tokenizer.json")}
    settings = base.tokenizer_config()
    del settings["chat_template"]
    if rng.random() < 0.6 or isinstance(text, bytes):
        files["chat_template.jinja"] = data
    else:
        settings["chat_template"] = text if rng.random() < 0.7 else [{"name": "default", "template": text}]
    files["tokenizer_config.json"] = json.dumps(settings).encode()
    if rng.random() < 0.1:
        return Case(f"inspect {maker.__name__}", ["inspect", "--model", "."], files)
    args = ["run", "--model", ".", "--prompt", "the cat", "-n", "2", "--json"]
    if rng.random() < 0.1:
        return Case(f"chat {maker.__name__}", ["chat", "--model", ".", "-n", "2", "--json"], files, ANYTHING,
                    stdin=b"the cat\nhello\n")
    return Case(maker.__name__, args, files, ANYTHING)


FAMILY = Family("template", 700, make)
