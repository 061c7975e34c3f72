#!/usr/bin/env python3
"""Renders combinations of the language of chat templates with Python's jinja2 and with yirage, and says what differs.

Usage: pip install jinja2==3.1.6; cargo build -p yirage-model --example render_chat
       python3 tools/oracle/jinja_language.py [--program FILE] [--show 40] [--only WORD]

The cases are filters, tests, methods and operators times values of all kinds, format strings times values, and statements:
loops with their variables, namespaces, macros and their callers, blocks, control of white space. The environment is the one
of transformers (see templates.py). A text has to be the same, and what jinja2 refuses has to be refused. What differs on
purpose stands in DELIBERATE with its reason. Ends with 1 where anything else differs, or where a line of that table is met
by nothing.
"""

import argparse
import collections
import copy
import itertools
import pathlib
import re
import sys

from templates import ROOT, by_yirage, environment

# Expressions of values, of all kinds that a template meets.
VALUES = [
    "nothing", "none", "true", "false", "0", "1", "-3", "7", "10 ** 20", "1.0", "2.5", "-0.5", "1e16", "1.5e-7", "0.1 + 0.2",
    "''", "'a'", "'abc def'", "' Ab\\n c\\t'", "'42'", "'-7'", "'3.70'", "'0x1f'", "'<b a=\"1\">x</b> & \\'y\\''", "text", "long",
    "'ẞ ǅ ß ŉ İ'", "'1½²٣'", "'a,b,,c'", "'%s'", "'{}'", "[]", "[1]", "[3, 1, 2]", "['b', 'A', 'c', 'a']", "[1, 'a', none]",
    "[[1, 2], [3]]", "[1, 2.5, true]", "['x', 'x']", "()", "(1,)", "('a', 2)", "{}", "{'a': 1}", "{'b': [1], 'A': none, 'c': {'d': 2}}",
    "{1: 'x', 2.5: 'y'}", "rows", "rows[0]", "range(5)", "range(0)", "namespace(a=1)", "rows|map(attribute='n')",
]

SMALL = ["nothing", "none", "true", "0", "2", "-1", "2.5", "''", "'a'", "'abc'", "[]", "[1, 2]", "('a',)", "{}", "{'a': 1}"]

FILTERS = {
    "": ["abs", "capitalize", "count", "default", "dictsort", "e", "escape", "filesizeformat", "first", "float", "forceescape",
         "int", "items", "join", "last", "length", "list", "lower", "max", "min", "pprint", "reverse", "round", "safe", "sort",
         "string", "striptags", "sum", "title", "tojson", "trim", "unique", "upper", "urlencode", "urlize", "wordcount",
         "wordwrap", "xmlattr", "random", "center", "indent", "truncate", "d", "map", "select", "reject", "nofilter"],
    "attr": ["'a'", "'upper'", "'n'"],
    "batch": ["2", "3, 'x'", "0"],
    "center": ["9", "2", "10"],
    "default": ["'d'", "'d', true", "default_value=1", "none"],
    "dictsort": ["true", "false, 'value'", "reverse=true", "by='key'", "by='nope'"],
    "filesizeformat": ["true", "binary=true"],
    "float": ["1.5", "'x'"],
    "format": ["1", "'a', 2", "a=1"],
    "groupby": ["'n'", "'nope'", "0"],
    "indent": ["2", "2, true", "'> ', blank=true", "1, true, true"],
    "int": ["7", "0, 16", "default='x'", "0, 0", "0, 2"],
    "join": ["', '", "attribute='n'", "1", "d='-'"],
    "map": ["'upper'", "attribute='n'", "attribute='nope', default='-'", "'default', 1", "'join', '+'", "'string'"],
    "max": ["attribute='n'", "true"],
    "min": ["attribute='n'", "case_sensitive=true"],
    "reject": ["'none'", "'gt', 1"],
    "rejectattr": ["'n'", "'n', 'gt', 1"],
    "replace": ["'a', 'x'", "'a', 'x', 1", "'', '-'", "old='a', new='y'", "1, 2"],
    "round": ["1", "2, 'floor'", "0, 'ceil'", "-1", "method='nope'"],
    "select": ["'string'", "'odd'", "'defined'"],
    "selectattr": ["'n'", "'n', 'equalto', 2", "'s', 'defined'", "'s', 'in', ['a']"],
    "slice": ["2", "3, 'x'", "0"],
    "sort": ["true", "case_sensitive=true", "attribute='n'", "attribute='n,s'", "reverse=true"],
    "sum": ["attribute='n'", "start=10", "start=[]"],
    "tojson": ["indent=2", "ensure_ascii=true", "sort_keys=true", "separators=(',', ':')", "indent=none", "4"],
    "trim": ["'a'", "none", "'<>'"],
    "truncate": ["5", "9, true", "9, false, '…'", "3, leeway=0", "10, true, '', 0", "1"],
    "unique": ["true", "attribute='n'"],
    "urlize": ["10", "nofollow=true", "target='_blank'", "rel='x'"],
    "wordwrap": ["5", "5, false", "7, true, '|'", "width=4, break_long_words=false", "6, break_on_hyphens=false"],
    "xmlattr": ["false"],
}
# They give iterators, which are written by where they are in memory.
LAZY = {"batch", "items", "map", "reject", "rejectattr", "reverse", "select", "selectattr", "slice", "unique"}

TESTS = {
    "": ["boolean", "callable", "defined", "divisibleby", "escaped", "even", "false", "filter", "float", "integer", "iterable",
         "lower", "mapping", "none", "number", "odd", "sequence", "string", "test", "true", "undefined", "upper", "notest"],
    "divisibleby": ["2", "0", "2.5", "'a'"],
    "eq": ["1", "'a'", "none", "[]"], "ne": ["1", "nothing"], "gt": ["1", "'a'"], "lt": ["2.5"], "ge": ["1"], "le": ["1"],
    "equalto": ["1"], "greaterthan": ["0"], "lessthan": ["'b'"],
    "in": ["[1, 'a', none]", "'abc'", "{'a': 1}", "1", "nothing"], "sameas": ["none", "true", "1", "''"],
}

METHODS = {
    "text": {
        "": ["capitalize", "casefold", "center", "count", "expandtabs", "format", "isalnum", "isalpha", "isascii", "isdecimal",
             "isdigit", "isidentifier", "islower", "isnumeric", "isprintable", "isspace", "istitle", "isupper", "join", "lower",
             "lstrip", "rsplit", "rstrip", "split", "splitlines", "strip", "swapcase", "title", "upper", "nope", "encode"],
        "center": ["9", "8, '*'", "8, ''", "-1"], "count": ["'a'", "''", "'b', 1", "'a', 0, -1"],
        "endswith": ["'c'", "('c', 'f')", "'', 9", "''"], "expandtabs": ["4", "0", "tabsize=2"],
        "find": ["'b'", "''", "'c', 3", "'b', -4, -1", "'', 99"], "index": ["'b'", "'z'"], "join": ["['x', 'y']", "[1]", "'ab'", "{'k': 1}"],
        "ljust": ["9", "9, '.'"], "lstrip": ["'a '", "none"], "partition": ["','", "'b'", "''"], "removeprefix": ["'a'", "''"],
        "removesuffix": ["'c'", "''"], "replace": ["'a', 'x'", "'', '-'", "'a', '', 1", "'a', 'b', -1", "'', '.', 2"],
        "rfind": ["'b'", "''", "'a', 1"], "rindex": ["'b'"], "rjust": ["9", "9, '.'"], "rpartition": ["','", "'b'"],
        "rsplit": ["','", "none, 1", "' ', 1", "',', 0", "'', 1"], "rstrip": ["'f c'"], "split": ["','", "none, 1", "' ', 1", "',', 0", "''", "maxsplit=1"],
        "splitlines": ["true", "keepends=true"], "startswith": ["'a'", "('x', ' ')", "'b', 1", "1"], "strip": ["' a'", "''"],
        "translate": ["{97: 'x'}"], "zfill": ["6", "0"],
    },
    "dict": {"": ["copy", "items", "keys", "values", "get", "clear", "popitem", "nope"], "get": ["'a'", "'z', 1", "'z'", "1", "[]"],
             "pop": ["'a'"], "update": ["{}"], "setdefault": ["'a'"], "has_key": ["'a'"]},
    "list": {"": ["copy", "sort", "reverse", "nope"], "append": ["1"], "count": ["1", "'a'"], "index": ["1", "'z'", "1, 1"],
             "insert": ["0, 1"], "extend": ["[1]"], "pop": ["", "0"]},
    "number": {"": ["bit_length", "is_integer", "conjugate", "as_integer_ratio", "nope"]},
}

FORMATS = ["%s", "%r", "%d", "%5d|", "%-5d|", "%05d", "%+d", "% d", "%x", "%#x", "%X", "%o", "%#o", "%f", "%.2f", "%08.3f", "%e", "%.1e", "%g",
           "%.3g", "%G", "%c", "%5s|", "%-5s|", "%.2s", "%%", "%i", "%u", "%a", "%(a)s", "%*d", "%", "%y", "%s %s", "%5.1f|", "%-8r|"]
BRACES = ["{}", "{0}", "{!r}", "{!s}", "{!a}", "{:>5}|", "{:<5}|", "{:^5}|", "{:*^7}", "{:05}", "{:5}|", "{:d}", "{:+d}", "{: d}", "{:x}", "{:#x}", "{:X}",
          "{:b}", "{:#b}", "{:o}", "{:,}", "{:_}", "{:n}", "{:c}", "{:f}", "{:.2f}", "{:,.1f}", "{:e}", "{:.3g}", "{:g}", "{:%}", "{:.1%}", "{:s}",
          "{:.2}", "{:.2s}", "{:=+6d}", "{:08.3f}", "{:>{}}", "{0[0]}", "{0[a]}", "{0.a}", "{a}", "{", "}", "{{}}", "{:z}", "{1}", "{} {}"]
NUMBERS = ["0", "1", "-42", "1234567", "255", "2.5", "-0.000123456", "1e16", "123456.789", "true", "none", "'abc'", "'ä'", "[1]", "('x',)",
           "{'a': 'v'}", "nothing", "10 ** 20", "65"]

OPERATORS = ["+", "-", "*", "/", "//", "%", "**", "~", "==", "!=", "<", "<=", ">", ">=", "in", "not in", "and", "or", "is"]
SLICES = ["[0]", "[-1]", "[9]", "['a']", "[1:]", "[:-1]", "[::2]", "[::-1]", "[1:9]", "[9:1]", "[-2:]", "[:0]", "[1:3:2]", "[::0]", "['a':]", "[none:1]",
          "[2:0:-1]", "[:-9:-1]", ".a", ".0", ".a.b", "[1.5]", "[true]", "[none]", "[[1]]"]

LOOP = ["index", "index0", "revindex", "revindex0", "first", "last", "length", "depth", "depth0", "previtem", "nextitem", "cycle('x', 'y')",
        "changed(x)", "nope"]

STATEMENTS = r"""
{% for x in V %}[{{ x }}]{% else %}none{% endfor %}
{% for x in V if x %}{{ loop.index }}{{ x }},{% else %}none{% endfor %}
{% for a, b in V %}{{ a }}={{ b }};{% endfor %}
{% for x in V %}{% if loop.first %}{% continue %}{% endif %}{{ x }}{% if loop.index == 3 %}{% break %}{% endif %}{% else %}E{% endfor %}
{% for x in V recursive %}{{ x }}{% if x is iterable and x is not string %}({{ loop(x) }}){% endif %}{% endfor %}
{% for x in V|reverse %}{{ x }}{{ loop.length }}{% endfor %}
{% for k, v in V.items() %}{{ k }}:{{ v }}{{ ',' if not loop.last }}{% endfor %}
{% for k, v in V|items %}{{ k }}:{{ v }}{% endfor %}
{% for k, v in V|dictsort %}{{ k }}:{{ v }}{% endfor %}
{% for group in V|groupby('n') %}{{ group.grouper }}{{ group.list|length }}{{ group[0] }}{% endfor %}
{% for row in V|batch(2) %}{{ row }}{% endfor %}
{% for row in V|slice(2) %}{{ row }}{% endfor %}
{% set ns = namespace(n=0) %}{% for x in V %}{% set ns.n = ns.n + 1 %}{% set n = 5 %}{% endfor %}{{ ns.n }}{{ n }}
{% set ns = namespace(V) %}{{ ns.a }}
{% set a, b = V %}{{ a }}{{ b }}
{% set x %}{{ V }}!{% endset %}{{ x|upper }}{{ x|length }}
{% set x | upper | trim %} {{ V }} {% endset %}[{{ x }}]
{% if V %}yes{% elif V is none %}null{% elif V is undefined %}undef{% else %}no{% endif %}
{% with x = V, y = 2 %}{{ x }}{{ y }}{% endwith %}{{ x }}
{% filter upper %}{{ V }} end{% endfilter %}
{% macro m(a, b=2, c='x') %}{{ a }}-{{ b }}-{{ c }}{% endmacro %}{{ m(V) }}|{{ m(V, 1) }}|{{ m(a=V, c=3) }}|{{ m() }}
{% macro m() %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(V, 1, k=V) }}
{% macro m(a) %}<{{ caller(a) }}>{% endmacro %}{% call(x) m(V) %}{{ x }}!{% endcall %}
{% macro m(a) %}{{ a }}{% endmacro %}{{ m(*V) }}
{% macro m(a) %}{{ a }}{% endmacro %}{{ m(**V) }}
{% macro m(x) %}{{ x }}{% if x %}{{ m(x[1:]) }}{% endif %}{% endmacro %}{{ m(V) }}
{{ dict(V) }}
{{ dict(V, z=1) }}
{% set j = joiner(V) %}{{ j() }}{{ j() }}{{ j() }}
{% set c = cycler(V, 'b') %}{{ c.next() }}{{ c.current }}{{ c.next() }}{{ c.next() }}{{ c.reset() }}{{ c.current }}
{{ range(V)|list }}
{{ range(1, V)|list }}
{{ raise_exception(V) }}
{{ V if V else 'other' }}
{{ (V if false) is defined }}
{{ not V }}{{ V and 1 }}{{ V or 2 }}
{{ -V }}
{{ +V }}
{{ V ~ V ~ 1 }}
{{ [V, V] }}{{ {'k': V} }}{{ (V,) }}
{{ {V: 1} }}
{{ V is not none }}{{ V is defined and V is not string }}
{% do V %}x
{{ V() }}
{{ V.a }}
{{ V['a'] }}
{{ V|default('d')|string|length }}
{% for x in V %}{{ x if x is defined }}{{ loop.nextitem is defined }}{% endfor %}
{{ (V|string)[:3] }}{{ V|string|replace('a', 'b') }}
{% block b %}{{ V }}{% endblock %}
{% set x = V %}{% if true %}{% set x = 1 %}{% endif %}{{ x }}{% for i in [1] %}{% set x = 2 %}{% endfor %}{{ x }}
{{ V is eq(V) }}{{ V == V }}{{ V != V }}{{ V in [V] }}
{{ V|tojson|length }}
{{ strftime_now(V) }}
{% generation %}{{ V }}{% endgeneration %}
"""

# Pieces of which each three stand beside each other: what control of white space does.
PIECES = ["a", " ", "\n", "  \n", "\n  ", "\t", "{{ 1 }}", "{{- 1 }}", "{{ 1 -}}", "{{- 1 -}}", "{% if true %}x{% endif %}",
          "{%- if true %}x{%- endif %}", "{% if true -%} x {%- endif -%}", "  {% set v = 1 %}", "{%+ if true %} x{% endif +%}", "{# c #}", "{#- c -#}",
          "{% raw %}{{ x }}{% endraw %}", "{%- raw -%} {% x %} {%- endraw -%}", "{% for i in [1] %}\n{% endfor %}"]

# Single templates: what fits none of the above.
SINGLE = r"""
{{ 'a' 'b' }}
{{ "a\tb\x41\u00e4\U0001f600\'\"\\\q" }}
{{ 'a
b' }}
{{ 1_000 }}{{ 0x1f }}{{ 0b101 }}{{ 0o17 }}{{ 1e3 }}{{ 1.5E-3 }}{{ 1.0e+2 }}
{{ 1. }}
{{ .5 }}
{{ 1.real }}
{{ true }}{{ True }}{{ false }}{{ False }}{{ none }}{{ None }}
{{ 2 ** 3 ** 2 }}{{ -2 ** 2 }}{{ 2 ** -1 }}{{ (-2) ** 2 }}{{ 7 // -2 }}{{ -7 % 3 }}{{ 7 % -3 }}{{ 7.5 // 2 }}
{{ 1 < 2 < 3 }}{{ 1 < 3 > 2 }}{{ 1 == 1.0 == true }}{{ 'a' < 'b' <= 'b' }}
{{ not 1 == 2 }}{{ not (1 in [1]) }}{{ 1 + 2 ~ 3 * 4 }}{{ 1 if 2 else 3 if 4 else 5 }}
{{ 1 if 0 }}{{ [1, 2,] }}{{ (1, 2,) }}{{ {'a': 1,} }}{{ () }}{{ (1) }}
{{ 1, 2 }}
{{ [1, 2][0], 3 }}
{{ a.b.c is defined }}
{{ nothing.a.b is defined }}
{{ nothing.a is defined }}
{{ 'x' is not none and 1 is number }}
{{ 5 is divisibleby 5 and true }}{{ 4 is even or false }}{{ not 3 is even }}
{{ 'abc' is in 'abcd' }}{{ 1 is in [1] and 2 is not in [1] }}
{{ [1, 2, 3]|map('string')|join(',')|upper|length + 1 }}
{{ -1|abs }}{{ (-1)|abs }}{{ 2 + 3|string|length }}
{{ 'a'|upper ~ 'b'|upper }}
{{ ('a' ~ 'b')|upper }}
{% set a = b = 1 %}
{% set a %}x
{% if 1 %}
{% endif %}
{% for %}{% endfor %}
{% for x in %}{% endfor %}
{% for x in [1] %}
{{ }}
{{ 1
{{ 1 }
{% if true }x{% endif %}
{% unknown %}
{# open
{% raw %}{{ x
{{ "open }}
{{ 'a' | }}
{{ a b }}
{{ 1 + }}
{{ [1, }}
{{ {1} }}
{{ {'a' 1} }}
{{ f(a=1, 2) }}
{{ dict(a=1, a=2) }}
{{ x is }}
{{ x.1a }}
{{ loop }}
{{ loop.index }}
{{ self }}
{{ caller() }}
{{ super() }}
{{ range }}
{{ namespace().x is defined }}
{{ cycler() }}
{{ lipsum is defined }}
{{ [].append(1) }}
{{ {}.update({'a': 1}) }}
{{ ''.__class__ }}
{{ [].__class__.__name__ }}
{{ (1).__add__(2) }}
{{ x.__init__ is defined }}
{{ ''|attr('__class__') }}
{{ 'a'.format_map({}) }}
{{ '{x}'.format_map({'x': 1}) }}
{{ '{0.__class__}'.format(1) }}
{{ range(100001) }}
{{ range(100000)|length }}
{{ range(3, 0, -1)|list }}{{ range(0, 5, 2)|list }}{{ range(0) }}{{ range(3) }}
{{ range(1, 2, 0) }}
{{ range(3)[1] }}{{ range(5)[1:3]|list }}{{ 2 in range(3) }}{{ range(3) == range(3) }}{{ range(3)|length }}{{ range(3) is sequence }}
{% macro m(a, b) %}{{ a }}{{ b }}{% endmacro %}{{ m(1, 2, 3) }}
{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, a=2) }}
{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, x=2) }}
{% macro m(a=x) %}{% set x = 2 %}{{ a }}{% endmacro %}{% set x = 1 %}{{ m() }}
{% macro m() %}{{ x }}{% endmacro %}{% set x = 1 %}{{ m() }}{% set x = 2 %}{{ m() }}
{% macro m() %}{% set x = 9 %}{% endmacro %}{% set x = 1 %}{{ m() }}{{ x }}
{% macro a() %}{{ b() }}{% endmacro %}{% macro b() %}B{% endmacro %}{{ a() }}
{% macro m() %}{{ caller is defined }}{% endmacro %}{{ m() }}{% call m() %}{% endcall %}
{% macro m() %}{{ caller() }}{% endmacro %}{{ m() }}
{% macro m(x) %}{{ x }}{% endmacro %}{{ m.name }}{{ m.arguments }}{{ m.catch_kwargs }}{{ m.catch_varargs }}{{ m.caller }}
{% macro m(x) %}{{ x }}{% endmacro %}{{ m is callable }}{{ m is defined }}{{ [1, 2]|map('string')|list }}
{% for x in [1, 2] %}{% macro m() %}{{ x }}{% endmacro %}{{ m() }}{% endfor %}
{% for x in [1, 2] %}{% for y in [1, 2] %}{{ loop.index }}{{ loop.depth }}{% endfor %}{{ loop.index }}{% endfor %}
{% for x in [1, 2] %}{% set outer = loop %}{% for y in 'ab' %}{{ outer.index }}{{ loop.index }}{{ y }} {% endfor %}{% endfor %}
{% for x in [[1, [2]], [3]] recursive %}{{ loop.depth }}{% if x is iterable %}<{{ loop(x) }}>{% else %}{{ x }}{% endif %}{% endfor %}
{% for x in [1, 1, 2] %}{{ loop.changed(x) }}{% endfor %}
{% for x in [1, 2, 3] if x > 1 %}{{ loop.index }}/{{ loop.length }}{{ loop.previtem }}{% endfor %}
{% for x in [1, 2, 3] if loop.index > 1 %}{{ x }}{% endfor %}
{% for x in [3, 1] %}{% else %}e{% endfor %}{% for x in [] %}x{% else %}{{ x is defined }}{% endfor %}
{% for (a, (b, c)) in [(1, (2, 3))] %}{{ a }}{{ b }}{{ c }}{% endfor %}
{% for a, in [(1,)] %}{{ a }}{% endfor %}
{% set x = 1 %}{% for i in [1, 2] %}{{ x }}{% set x = 5 %}{{ x }}{% endfor %}{{ x }}
{% set ns = namespace(a=1, b=[]) %}{% set ns.c = 3 %}{{ ns.a }}{{ ns.c }}{{ ns.d is defined }}{{ ns['a'] }}{{ ns.b }}
{% set ns = namespace() %}{% for i in range(3) %}{% set ns.last = i %}{% endfor %}{{ ns.last }}
{% set d = {'a': 1} %}{% set d.a = 2 %}
{% set nope.a = 2 %}
{% with %}{% set x = 1 %}{{ x }}{% endwith %}{{ x is defined }}
{% with a = 1, b = a %}{{ b }}{% endwith %}
{% if true %}{% set x = 1 %}{% endif %}{{ x }}
{% filter upper|trim %} a {{ 'b' }} {% endfilter %}
{% filter replace('a', 'b') %}aaa{% endfilter %}
{% filter indent(2) %}a
b{% endfilter %}
{% call x() %}{% endcall %}
{% include 'x' %}
{% extends 'x' %}
{% import 'x' as y %}
{% autoescape true %}{{ '<' }}{% endautoescape %}
{% trans %}x{% endtrans %}
{% debug %}
{% break %}
{% continue %}
{% do [1] %}x
{% block a %}1{% endblock a %}{% block b %}2{% endblock %}
{% block a %}{% endblock %}{% block a %}{% endblock %}
{%- set x = 1 -%}  a  {%- if x -%}  b  {%- endif -%}  c
{{ '\n' }}|{{ "\r\n" }}|{{ '\u2028' }}
{{ 'a\\nb' }}{{ 'a\nb' }}
{{ 'ab'|list }}{{ {'a': 1}|list }}{{ 'ab'|first }}{{ 'ab'|last }}{{ [[1], [2, 3]]|map('length')|list }}
{{ [{'n': 1}, {}]|map(attribute='n')|list }}
{{ [{'n': {'m': 1}}]|map(attribute='n.m')|list }}{{ [[1, 2]]|map(attribute=1)|list }}{{ [[1, 2]]|map(attribute='1')|list }}
{{ {'a': 1}.items()|list }}{{ {'a': 1}.keys() }}{{ {'a': 1}.values() }}{{ {'a': 1}.items() }}
{{ {'items': 1}.items }}{{ {'items': 1}['items'] }}{{ {'get': 1}.get }}
{{ {'a': 1} == {'a': 1.0} }}{{ [1] == (1,) }}{{ 'a' == ['a'] }}{{ none == false }}{{ {'a': 1, 'b': 2} == {'b': 2, 'a': 1} }}
{{ [1, 2] + [3] }}{{ (1,) + (2,) }}{{ 'a' * 3 }}{{ [0] * 2 }}{{ 3 * 'a' }}{{ 'a' + 'b' }}
{{ [1] + (2,) }}
{{ {'a': 1} + {'b': 2} }}
{{ {'a': 1} | length }}{{ 'a' in {'a': 1} }}{{ 1 in {1: 2} }}{{ 1.0 in [1] }}{{ none in [none] }}{{ true in [1] }}
{{ 1e400 }}{{ -1e400 }}{{ 1e400 - 1e400 }}
{{ 0.1 }}{{ 1e15 }}{{ 1e16 }}{{ 1e-4 }}{{ 1e-5 }}{{ 100000000000000000000.0 }}{{ 5e-324 }}{{ 1.7976931348623157e308 }}
{{ 10 ** 15 }}{{ 2 ** 64 }}{{ 2 ** 100 }}{{ -(2 ** 63) }}{{ 7 / 2 }}{{ 6 / 2 }}{{ 2 ** 0.5 }}{{ 1 // 0.3 }}
{{ 1 / 0 }}
{{ 1 % 0 }}
{{ 1.0 // 0 }}
{{ 'abc' % 1 }}
{{ 'a%' % () }}
{{ '%s' % [1, 2] }}{{ '%s' % {'a': 1} }}{{ '%s and %s' % ('a', [1]) }}{{ '100%%' % () }}
{{ "it's" }}{{ ["it's"] }}{{ ['"'] }}{{ ['\'"'] }}{{ ['\\', '\n', '\x00', '\x7f', '\xa0', '\u200b', 'ä', '\U0001f600', '\ud7ff'] }}
{{ [1.0, true, none, 'x', (1,), {'a': []}]|string }}{{ [nothing] }}{{ {'a': nothing} }}
{{ [1, 2, 3]|random is number }}
{{ 'a'|escape|escape }}{{ '<'|e ~ '<' }}{{ '<'|safe|e }}{{ ('<'|e)|upper }}{{ '<'|forceescape|e }}{{ ['<'|e]|join('&') }}
{{ '<'|e + '<' }}{{ '%s'|e % '<' }}{{ '<'|e|length }}{{ '<a>'|striptags|e }}
{{ {'class': 'a b', 'x': none, 'y': nothing, 'n': 1, 'q': '"<'}|xmlattr }}|{{ {}|xmlattr }}|{{ {'a': 1}|xmlattr(false) }}
{{ {'a b': 1}|xmlattr }}
{{ {'a>': 1}|xmlattr }}
{{ 'see https://example.com/a?b=c, www.x.org. and (http://y.net) or me@mail.com mailto:a@b.cc ftp://no x.org'|urlize }}
{{ '<https://a.com> "http://b.org/" http://c.com/(d)'|urlize }}{{ 'https://example.com/long/path'|urlize(12, true) }}
{{ '<p>a <b>b</b>\n\n c</p><!-- x -->d &amp; &lt;e&gt; &nbsp;&#39;&copy;'|striptags }}
{{ 0|filesizeformat }}|{{ 1|filesizeformat }}|{{ 999|filesizeformat }}|{{ 1000|filesizeformat }}|{{ 1500000|filesizeformat }}|{{ 1024|filesizeformat(true) }}|{{ 10 ** 30|filesizeformat }}|{{ '2048'|filesizeformat(true) }}
{{ 'The quick-brown fox\njumped  over the lazy-dog and averyverylongword'|wordwrap(10) }}
{{ 'The quick-brown fox\njumped  over the lazy-dog and averyverylongword'|wordwrap(10, false, wrapstring='/') }}
{{ 'a-b-c d--e f - g'|wordwrap(3) }}|{{ '  lead and   gaps  '|wordwrap(6) }}|{{ 'x\n\ny'|wordwrap(5) }}|{{ ''|wordwrap }}
{{ 'a-b-c d--e'|wordwrap(3, break_on_hyphens=false) }}
{{ strftime_now('%Y-%m-%d %H:%M:%S %j %a %A %b %B %d %e %-d %I %p %y %Z %%') }}{{ strftime_now('') }}{{ strftime_now('%q') }}
{{ strftime_now('%-m/%-d %-H %-I %-M %-S %-y %-j %D %R %T %F %h %u %w %C %G %V %U %W %n%t%k%l%s%c%x%X%r') }}
{{ messages is undefined }}{{ tools is none }}
"""


def expressions():
    """All templates with the kind of case they are."""
    for value in VALUES:
        yield "value", "{{ %s }}" % value
        for name, arguments in FILTERS.items():
            for call in [f"{name}({given})" for given in arguments] if name else arguments:
                lazy = "|list" if (name or call) in LAZY else ""
                yield f"filter {name or call}", "{{ (%s)|%s%s }}" % (value, call, lazy)
        for name, arguments in TESTS.items():
            for call in [f"{name}({given})" for given in arguments] if name else arguments:
                yield f"test {name or call}", "{{ (%s) is %s }}" % (value, call)
        for of, methods in METHODS.items():
            for name, arguments in methods.items():
                for call in [f"{name}({given})" for given in arguments] if name else [f"{one}()" for one in arguments]:
                    yield f"method {call.split('(')[0]}", "{{ (%s).%s }}" % (value, call)
        for place in SLICES:
            yield "place", "{{ (%s)%s }}" % (value, place)
        for statement in STATEMENTS.strip("\n").split("\n"):
            yield "statement", statement.replace("V", f"({value})")
        for name in LOOP:
            yield "loop", "{%% for x in %s %%}{{ loop.%s }},{%% endfor %%}" % (value, name)
    for left, sign, right in itertools.product(SMALL, OPERATORS[:-1], SMALL):
        yield f"operator {sign}", "{{ (%s) %s (%s) }}" % (left, sign, right)
    for form, value in itertools.product(FORMATS, NUMBERS):
        yield "percent", "{{ '%s' %% %s }}" % (form, value if value.startswith(("(", "{")) else f"({value})")
    for form, value in itertools.product(BRACES, NUMBERS):
        yield "braces", "{{ '%s'.format(%s) }}" % (form, value)
    for three in itertools.product(PIECES, repeat=3):
        yield "white space", "".join(three)
    for single in re.split(r"\n(?=\{)", SINGLE.strip("\n")):
        yield "single", single


VARIABLES = {
    "text": "Grüße, “Welt” \U0001f600\n\tzwei  Zeilen\r\nx\x0by",
    "long": "The quick brown fox jumps over the lazy dog. " * 8,
    "rows": [{"n": 2, "s": "b", "t": None}, {"n": 1, "s": "A", "t": [1]}, {"n": 2, "s": "a"}],
}

# What differs on purpose: who sees it (a pattern of the template, one of jinja2's text or None where it refuses, one of
# ours or None), and why.
DELIBERATE = [
    (r"", r"(?i) at 0x[0-9a-f]+>", r"", "objects without a text of their own are written without where they are in memory"),
    (r"[( ](range\(|namespace\(|rows\|map)", r"(?i)r.?.?n.?ge\(|n.mesp|gener|^\d+$|^(True|False)$|-n-", r"",
     "a range is a list and written as one; namespaces and iterators are written without what is in them"),
    (r"range\(\d\)\)(\.copy|\|tojson)", None, r"", "a range is a list"),
    (r"\{\((range\(\d\)|rows\|map\(.*\))\): 1\}", r"", None, "a range is a list, and no key; nor is an iterator"),
    (r"\.get\(\[\]\)", None, r"^None$", "what is no key is in no dict"),
    (r"namespace\(\(\{1:", r"", None, "names of a namespace are texts"),
    (r"\)\[[^]]*:", r"^$", None, "jinja2 computes constants ahead, where a slice of what has no places is undefined; with variables "
     "it refuses them as well"),
    (r"\|(urlize|wordwrap|random)\b", r"", None, "filters of links, of lines and of chance, which no chat template has"),
    (r"\|pprint", r"", r"", "it is `repr`: keys are not sorted, lines not broken"),
    (r"\|truncate", r"^([\[({]|range\()", None, "only texts are cut"),
    (r"\|(batch|slice)\(0\)", r"", None, "rows of no length"),
    (r"\|urlencode", r"", r"", "lists and dicts are written as they are, and not as queries"),
    (r"\|urlencode", None, r"", "lists and dicts are written as they are, and not as queries"),
    (r"\|int\(0, 0\)", r"", None, "the base has to be said"),
    (r" is (filter|test|in)\b| in \(\{|\|unique", None, r"", "values that are no keys are in no dict, and may be compared"),
    (r"\.(istitle|encode|translate|bit_length|conjugate|as_integer_ratio|format_map)\(", r"", None, "methods that no chat template has"),
    (r"\.index\(1, 1\)", r"", None, "`index` of a list has one argument"),
    (r"", r"dict_(keys|values|items)\(", r"", "keys, values and items are lists"),
    (r"%[a*c]", r"", None, "formats that no chat template has"),
    (r"'\{:(05|,)\}'\.format", r"", r"", "formats that no chat template has"),
    (r"'\{:,\}'\.format", None, r"", "formats that no chat template has"),
    (r"\{(:[_ncz=]|0\.|!a|:\.2\})", r"", None, "formats that no chat template has"),
    (r"\{% do ", None, r"x", "the tag of jinja2's own extension `do`"),
    (r"1½²٣|ẞ ǅ|casefold", r"", r"", "characters are told apart as Rust does: all numbers are digits, and letters have no third case"),
    (r"\\ud7ff", r"", r"", "characters that are not assigned are written as they are"),
    (r"'%s'\) is (odd|even|divisibleby)", r"", None, "a text has no remainder"),
    (r"\*\* \(2\.5\)", r"j\)$", r"nan", "there are no complex numbers"),
    (r"\(nothing\) is callable", r"True", r"False", "what is not there cannot be called"),
    (r"\|groupby", r"", r"", "a group is a pair without names"),
    (r"autoescape|^\{\{ (self|lipsum)", r"", r"", "there is one template, which is not HTML"),
    (r"autoescape|^\{\{ (self|lipsum)", r"", None, "there is one template, which is not HTML"),
    (r"^\{% for a, in|block a %\}\{% endblock %\}\{% block a|dict\(a=1, a=2\)", None, r"", "taken, though jinja2 does not compile it"),
    (r"m\.arguments", r"", r"", "macros have no attributes but their name"),
    (r"strftime_now", r"", r"", "letters of weeks and of the locale stay as they are"),
    (r"\{\(nothing\): 1\}", r"", None, "what is not there is no key"),
    (r"__init__", r"", None, "nothing is within what is not there"),
    (r"^\{\{ 1\.real", r"", r"", "numbers have no attributes"),
    (r"&copy;", r"", None, "entities of HTML that XML does not have"),
]


def shown(text):
    return "refuses" if text is None else repr(text)


def excused(template, theirs, ours):
    for at, (which, wanted, found, _) in enumerate(DELIBERATE):
        fits = [(wanted, theirs), (found, ours)]
        if re.search(which, template) and all(
                (text is None) if form is None else text is not None and re.search(form, text) for form, text in fits):
            return at
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--program", type=pathlib.Path, default=ROOT / "target/debug/examples/render_chat")
    parser.add_argument("--show", type=int, default=40)
    parser.add_argument("--only", default="", help="cases whose kind has this word")
    args = parser.parse_args()
    env = environment()
    cases = [case for case in dict.fromkeys(expressions()) if args.only in case[0]]
    asked = [{"template": template, "messages": [], "kwargs": VARIABLES} for _, template in cases]
    counts, met, unexplained = collections.Counter(), collections.Counter(), collections.Counter()
    for (kind, template), found in zip(cases, by_yirage(args.program, asked)):
        ours = found.get("text")
        try:
            theirs = env.from_string(template).render(messages=[], tools=None, documents=None, bos_token="<s>", eos_token="</s>",
                                                      add_generation_prompt=True, **copy.deepcopy(VARIABLES))
        except Exception:  # what Python raises within a template is of any kind
            theirs = None
        if theirs == ours:
            counts["same" if ours is not None else "both refuse"] += 1
            continue
        at = excused(template, theirs, ours)
        if at is not None:
            met[at] += 1
            continue
        unexplained[kind] += 1
        if sum(unexplained.values()) <= args.show:
            print(f"{kind}: {template!r}\n  jinja2 {shown(theirs)}\n  yirage {shown(ours)} {found.get('error', '')}")
    for at, line in enumerate(DELIBERATE):
        if not args.only and not met[at]:
            unexplained[f"met by nothing: {line[0]}"] += 1
        print(f"on purpose, {met[at]}: {line[3]}")
    for kind, count in unexplained.most_common():
        print(f"{count} {kind}")
    print(f"{len(cases)} cases: {counts['same']} the same, {counts['both refuse']} refused by both, {sum(met.values())} differ on purpose, "
          f"{sum(unexplained.values())} differ")
    sys.exit(1 if unexplained else 0)


if __name__ == "__main__":
    main()
