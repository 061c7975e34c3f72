"""Writes the golden renderings of the language that chat templates are written in, by Python's jinja2.

    python3 -m pip install jinja2==3.1.6
    python3 crates/yirage-model/tests/golden/make_chat_language.py

The environment is the one transformers sets up for chat templates.
"""

import json
import pathlib

import jinja2
from jinja2.ext import loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment

MESSAGES = [
    {"role": "system", "content": " Be brief. "},
    {"role": "user", "content": "Grüße, “Welt”\n<b>&'\""},
    {"role": "assistant", "content": None, "tool_calls": [
        {"id": "c1", "function": {"name": "add", "arguments": {"a": 1, "b": [2.5, None, True]}}}]},
    {"role": "tool", "content": [{"type": "text", "text": "3"}, {"type": "image"}], "tool_call_id": "c1"},
]

# One expression or template each; what Python refuses has to be refused.
CASES = r"""
{{ none|selectattr('type','equalto','x')|list|length }}|{{ nothing|selectattr('a')|list }}|{{ none|rejectattr('a')|list }}|{{ none|select('string')|list }}
{{ none|reject('none')|list }}|{{ nothing|select|list }}|{{ none|map(attribute='x')|list }}|{{ none|map('upper')|join(',') }}|{{ 0|map('abs')|list }}|{{ false|select|first }}
{{ none|map|list }}|{{ none|selectattr|list }}|{{ ''|selectattr('x')|list }}|{{ {}|map('upper')|list }}|{{ none|select('string')|map('upper')|join }}
{% for x in none|select %}{{ x }}{% else %}nothing{% endfor %}|{{ nothing|join }}|{{ nothing|list }}|{{ nothing|length }}|{{ nothing|sum }}|{{ nothing|sort }}|{{ nothing|first }}
{{ none|list }}
{{ none|length }}
{{ none|join }}
{{ none|first }}
{{ none|last }}
{{ none|sum }}
{{ none|sort }}
{{ none|unique|list }}
{{ none|groupby('a') }}
{{ none|max }}
{{ none|dictsort }}
{{ none|items|list }}
{{ none|reverse|list }}
{{ 1|map('abs')|list }}
{{ true|select|list }}
{{ [1]|map('abs')|length }}
{{ [1]|select + [2] }}
{{ [1]|select|last }}
{{ [1]|select|tojson }}
{{ 'x' if []|select }}|{{ 'x' if none|map('upper') }}|{{ 'x' if nothing|unique }}|{{ [1]|select is sequence }}|{{ [1]|select is iterable }}|{{ (none|select)[0] }}
{{ ([1]|select)[1:] }}
{% set s = [1, 2, 3]|select %}{{ s|first }}{{ s|list }}{{ s|list }}|{% set s = [1, 2]|map('abs') %}{{ 1 in s }}{% for x in s %}{{ x }}{% endfor %}
{{ [1, 2, 3]|reverse|list }}|{{ [1, 2, 3]|select|reverse }}|{{ (1, 2)|reverse|first }}|{{ {'a': 1}|items|list }}|{{ nothing|items|list }}
{{ 'abc'|sort(attribute='a') }}|{{ 'abc'|join(',', 'a') }}|{{ [1, 2]|slice(2, 'x')|list }}
{{ none|indent }}
{{ nothing|int }}
{{ nothing|float }}
{{ 1.5 is odd }}|{{ 2.0 is even }}|{{ none|safe|length }}
{{ '\x7f\x80\xa0é😀\u2028\x1f\b\f/'|tojson(ensure_ascii=true) }}|{{ '\x7f\x80\xa0é😀\u2028\x1f\b\f/'|tojson }}|{{ {'\x7f': '\x7f'}|tojson(ensure_ascii=true) }}
{{ '<'|safe ~ '<' }}|{{ '<' ~ '<'|safe }}|{{ ('<' ~ '<'|safe) + '<' }}|{{ '<'|safe + '<' }}|{{ '<' + '<'|safe }}|{{ '<'|safe + '<'|safe + '&' }}|{{ '<'|e + '<' }}
{{ '<a>'|safe|upper + '<' }}|{{ '<A>'|safe|lower + '<' }}|{{ '<a>'|safe|capitalize + '<' }}|{{ ' <a> '|safe|trim + '<' }}|{{ 'a'|safe|center(5) + '<' }}|{{ '<a>'|safe|string + '<' }}
{{ 'a b'|safe|title + '<' }}|{{ '<a>'|safe|replace('a', '<') + '<' }}|{{ ['<'|safe, '<']|join('&') + '<' }}|{{ ['<', 'b']|join('&'|safe) + '<' }}|{{ '<a>b'|safe|striptags + '<' }}|{{ '<'|safe|urlencode + '<' }}|{{ '<'|safe|tojson + '<' }}
{{ '<'|safe|e }}|{{ '<'|safe|forceescape }}|{{ '<'|e|e|e }}|{{ '<'|forceescape|forceescape }}|{{ ('<'|e)|safe + '<' }}|{{ none|safe + '<' }}|{{ 1|safe + '<' }}|{{ nothing|safe + '<' }}|{{ [1]|safe + '<' }}
{{ '<'|safe is escaped }}|{{ '<' is escaped }}|{{ '<'|e is escaped }}|{{ ('<'|safe + '') is escaped }}|{{ ('<'|safe ~ '') is escaped }}|{{ '<'|safe is string }}|{{ '<'|safe == '<' }}|{{ {'<': 1}['<'|safe] }}|{{ '<' in ['<'|safe] }}|{{ '<'|safe is sameas('<') }}
{{ ('<ab>'|safe)[0] + '<' }}|{{ ('<ab>'|safe)[1:] + '<' }}|{{ ('<ab>'|safe)[::-1] + '<' }}|{{ '<ab>'|safe|first + '<' }}|{{ '<ab>'|safe|last + '<' }}|{{ '<ab>'|safe|reverse + '<' }}|{{ ('<b'|safe|list)[0] + '<' }}|{% for c in '<b'|safe %}{{ c + '<' }}{% endfor %}
{{ '<'|safe * 2 + '<' }}|{{ 2 * '<'|safe + '<' }}|{{ ('<'|safe)|length }}|{{ ['<'|safe] }}|{{ {'a': '<'|safe} }}|{{ ('<'|safe,) }}|{{ '<\'>'|safe|pprint }}
{{ '<%s>'|safe % '<' }}|{{ '<%s>'|safe % ('<'|safe) }}|{{ '%s %s'|safe % ('<', '&'|safe) }}|{{ '%(a)s'|safe % {'a': '<'} }}|{{ '%s'|safe % ['<'] }}|{{ '%r'|safe % '<' }}|{{ '%5s|'|safe % '<' }}|{{ '%.2s'|safe % '<' }}|{{ '%s' % ('<'|safe) + '<' }}
{{ '%d'|safe % 3 }}|{{ '%d'|safe % '5' }}|{{ '%03d'|safe % 2.5 }}|{{ '%.1f'|safe % '2.5' }}|{{ '%d %s'|safe % (1, '<') }}|{{ '%s'|safe % none }}|{{ '%s'|safe % nothing }}|{{ '%s'|safe % {'<': 1} }}|{{ '%g'|safe % true }}
{{ '%x'|safe % 3 }}
{{ '%d'|safe % 'a' }}
{{ '%s'|safe % () }}
{{ '%s'|safe % (1, 2) }}
{{ '<'|safe + 1 }}
{{ 1 + '<'|safe }}
{{ '<'|safe + nothing }}
{{ '%s<'|safe|format('<') }}|{{ '%(a)s<'|safe|format(a='<') + '<' }}|{{ '%s<'|format('<'|safe) + '<' }}|{{ '{}<'|safe|string }}
{{ '{}<'|safe.format('<') }}
{{ ('{}<'|safe).format('<') }}|{{ ('{}<'|safe).format('<'|safe) }}|{{ ('{!r}'|safe).format('<') }}|{{ ('{!s}'|safe).format('<'|safe) }}|{{ ('{:>4}'|safe).format('<') }}|{{ ('{a[b]}'|safe).format(a={'b': '<'}) }}|{{ ('{:.1f}'|safe).format(2.55) }}|{{ '{}'.format('<'|safe) + '<' }}|{{ '{!r}'.format('<'|safe) }}|{{ '{:>3}'.format('<'|safe) }}
{{ ('{:>4}'|safe).format('<'|safe) }}
{{ ('{}'|safe).format([1, '<']) }}|{{ ('{}'|safe).format(none) }}|{{ ('{{}}<'|safe).format() + '<' }}
{{ ('<,'|safe).join(['<', 'b'|safe, 1]) }}|{{ '<,'.join(['<'|safe, 'b']) + '<' }}|{{ ('<'|safe).join([]) + '<' }}|{{ ('<'|safe).join('a<') }}
{{ ('<a,b>'|safe).split(',')[1] + '<' }}|{{ ('a b'|safe).rsplit(none, 1)[0] + '<' }}|{{ ('<\nb'|safe).splitlines()[0] + '<' }}|{{ ('<a>'|safe).partition('a')[2] + '<' }}|{{ ('<a>'|safe).rpartition('a') }}|{{ '<a>'.partition('a'|safe)[1] + '<' }}
{{ ('aba'|safe).replace('a', '<') + '<' }}|{{ ('aba'|safe).replace('a', '<'|safe, 1) }}|{{ 'aba'.replace('a', '<'|safe) + '<' }}|{{ ('a'|safe).ljust(3, '.') + '<' }}|{{ ('a'|safe).rjust(3) + '<' }}|{{ ('a'|safe).center(3) + '<' }}|{{ ('7'|safe).zfill(3) + '<' }}
{{ ('a'|safe).ljust(3, '<') }}
{{ (' <a '|safe).strip() + '<' }}|{{ ('<a'|safe).lstrip('<') + '<' }}|{{ ('<a'|safe).rstrip('a') + '<' }}|{{ ('<a'|safe).removeprefix('<') + '<' }}|{{ ('<a'|safe).removesuffix('a') + '<' }}|{{ ('<a'|safe).title() + '<' }}|{{ ('<a'|safe).swapcase() + '<' }}|{{ ('<a'|safe).upper() + '<' }}|{{ ('\ta'|safe).expandtabs(2) + '<' }}|{{ ('A'|safe).casefold() + '<' }}|{{ ('<a'|safe).capitalize() + '<' }}
{{ ('<a'|safe).startswith('<') }}|{{ ('<a'|safe).find('a') }}|{{ ('<a'|safe).count('a') }}|{{ ('a1'|safe).isalnum() }}|{{ 'a'|safe in 'ab' }}|{{ 'a' in 'ab'|safe }}|{{ 'a'|safe < 'b' }}
{{ ('&lt;a&gt; &amp;'|safe).unescape() + '<' }}|{{ ('<b>&lt; a</b>'|safe).striptags() + '<' }}|{{ ('x'|safe).escape('<') }}|{{ ('x'|safe).escape('<'|safe) + '<' }}
{{ 'x'.unescape() }}
{{ 'x'.escape('<') }}
{{ ('a<\nb'|safe)|indent(2) + '<' }}|{{ ('a<\nb'|safe)|indent('<', true) + '<' }}|{{ 'a<\nb\n\nc'|indent('<'|safe) + '<' }}|{{ 'a<\nb'|indent('<'|safe, true) + '<' }}|{{ 'a<\nb'|indent('<'|safe, true, true) + '<' }}|{{ 'a<\nb'|indent('<'|safe, false, true) + '<' }}|{{ ('a\n\nb'|safe)|indent(2, blank=true) + '<' }}
{{ ('a<b c d e f'|safe)|truncate(6, true, '<', 0) + '<' }}|{{ 'a<b c d e f'|truncate(6, true, '<'|safe, 0) + '<' }}|{{ ('a<b c'|safe)|truncate(50) + '<' }}|{{ 'a<b c d e f'|truncate(6, false, '<', 0) + '<' }}
{{ {'a': '<'|safe, 'b<'|safe: '<', 'c<': 1}|xmlattr + '<' }}
{{ ['<'|safe, 'a']|map('upper')|list }}|{{ ['<', 'a']|map('safe')|list }}|{{ ['b', 'A'|safe, 'a']|sort }}|{{ ['a'|safe, 'a', 'A']|unique|list }}|{{ ['b'|safe, 'a']|min }}|{{ ['<'|safe]|first + '<' }}|{{ ['<'|safe, '<']|select('escaped')|list|length }}
{% set x %}{{ '<'|safe }}{% endset %}{{ x + '<' }}|{% set x | safe %}<{% endset %}{{ x + '<' }}|{% set x = '<'|safe %}{{ x + '<' }}|{% macro m(a) %}{{ a + '<' }}{% endmacro %}{{ m('<'|safe) + '<' }}|{% filter safe %}<{% endfilter %}|{% set ns = namespace(x='<'|safe) %}{% set ns.x = ns.x + '<' %}{{ ns.x }}
{{ messages[1].content|safe + messages[1].content }}|{{ (messages[1].content|e) + '<' }}|{{ (messages|tojson|safe)[:20] + '"' }}|{{ ('a' if 1 else 'b')|safe + '"' }}|{{ ('<'|safe or '') + '<' }}|{{ nothing|default('<'|safe) + '<' }}|{{ '<'|safe|default('x', true) + '<' }}|{{ '5'|safe|int + 1 }}
{{ 1 + 2 * 3 ** 2 // 4 % 5 - -1 }}|{{ 7 / 2 }}|{{ -7 // 2 }}|{{ -7 % 3 }}|{{ 7.5 // 2 }}|{{ -7.5 % 2 }}|{{ 2 ** -1 }}
{{ -2 ** 2 }}|{{ 2 ** 3 ** 2 }}|{{ -1|abs }}|{{ 1 ~ 2 + 3 }}|{{ 'a' ~ 1 ~ none ~ 1.0 ~ true ~ nothing }}
{{ 10 ** 20 }}|{{ 1e16 }}|{{ 1.5e-7 }}|{{ 0.1 + 0.2 }}|{{ 1_000 }}|{{ 5 == 5.0 }}|{{ true + true }}|{{ 1 == true }}
{{ 'a' < 'b' }}|{{ [1, 2] < [1, 3] }}|{{ 1 < 2 < 3 }}|{{ 3 > 2 > 2 }}|{{ 1 in [1] }}|{{ 'a' not in 'bc' }}|{{ not 1 in [2] }}
{{ [] or 'x' }}|{{ 0 and 1 }}|{{ 'a' if 0 }}|{{ 'a' if 1 else 'b' if 1 else 'c' }}|{{ not none }}
{{ (1,) }}|{{ (1, 2) }}|{{ () }}|{{ [1, 'a', none, 1.5] }}|{{ {'a': [1], 2: (3,)} }}|{{ "it's" }}|{{ ["it's", 'q"', 'n\n\t\\'] }}
{{ 'abc'[0] }}|{{ 'abc'[-1] }}|{{ 'abc'[9] }}|{{ 'abcdef'[1:5:2] }}|{{ 'abc'[::-1] }}|{{ [1, 2, 3][-2:] }}|{{ (1, 2, 3)[:2] }}|{{ 'äöü'[1:] }}
{{ messages[0].role }}|{{ messages[0]['role'] }}|{{ messages[-1].content[0].text }}|{{ messages[0].nope }}|{{ messages[9] }}
{{ messages[2].tool_calls[0].function.arguments.items()|list }}|{{ messages[0].items is callable }}|{{ {'items': 1}['items'] }}
{{ nothing.a }}
{{ messages[9].role }}
{{ nothing + 1 }}
{{ 1 + 'a' }}
{{ 'a' + 1 }}
{{ none + 'a' }}
{{ nothing() }}
{{ 1 < 'a' }}
{{ 1 / 0 }}
{{ 1 in 2 }}
{{ 1 in 'abc' }}
{{ messages.append(1) }}
{{ {'a': 1}.update({'b': 2}) }}
{{ nothing is defined }}|{{ messages is defined }}|{{ none is none }}|{{ 1 is number }}|{{ true is number }}|{{ true is integer }}|{{ 1.0 is float }}
{{ 'a' is string }}|{{ [] is sequence }}|{{ {} is mapping }}|{{ 'a' is iterable }}|{{ 1 is iterable }}|{{ {} is sequence }}|{{ 3 is odd }}|{{ 4 is even }}
{{ 4 is divisibleby 2 }}|{{ 4 is divisibleby(3) }}|{{ 1 is eq 1 }}|{{ 1 is sameas 1 }}|{{ 1 is in [1] }}|{{ 1 is not in [1] }}|{{ 'A' is upper }}|{{ 'a1' is lower }}|{{ 1 is ne 2 }}|{{ 2 is gt 1 }}
{{ 'x' is filter }}|{{ 'upper' is filter }}|{{ true is boolean }}|{{ 1 is true }}|{{ false is false }}|{{ nothing is undefined }}
{{ 'a b'|upper }}|{{ 'A B'|lower }}|{{ 'hello wORLD'|capitalize }}|{{ "hello it's o-k (x)"|title }}|{{ ' a '|trim }}|{{ 'xxaxx'|trim('x') }}|{{ 'a'|center(6) }}|{{ 'ab'|center(5) }}
{{ 'a\nb\n\nc'|indent }}|{{ 'a\nb\n\nc'|indent(2, true) }}|{{ 'a\nb\n\nc'|indent('> ', blank=true) }}|{{ 'a\n'|indent(2) }}
{{ 'aaa'|replace('a', 'b') }}|{{ 'aaa'|replace('a', 'b', 2) }}|{{ 'aaa'.replace('a', 'b', 1) }}|{{ 'ab'.replace('', '-') }}
{{ 'foo bar baz qux'|truncate(9) }}|{{ 'foo bar baz qux'|truncate(9, true) }}|{{ 'foo bar baz qux'|truncate(11) }}|{{ 'foo bar baz qux'|truncate(9, end='', leeway=0) }}
{{ 'a b c'|wordcount }}|{{ 'a/b ä&c'|urlencode }}|{{ '<a href="x">\'&'|escape }}|{{ '<'|e }}|{{ '<'|safe }}|{{ 1|string + '2' }}
{{ [1, 2]|join }}|{{ [1, 2]|join(', ') }}|{{ 'abc'|join('-') }}|{{ messages|join('|', attribute='role') }}|{{ {'a': 1, 'b': 2}|join(',') }}
{{ [3, 1, 2]|sort }}|{{ ['b', 'A', 'c']|sort }}|{{ ['b', 'A', 'c']|sort(case_sensitive=true) }}|{{ [1, 2]|sort(reverse=true) }}|{{ messages|sort(attribute='role')|map(attribute='role')|list }}
{{ [1, 2, 3]|first }}|{{ [1, 2, 3]|last }}|{{ []|first }}|{{ 'abc'|first }}|{{ [1, 2]|length }}|{{ 'äö'|count }}|{{ {'a': 1}|length }}|{{ 'abc'|reverse }}|{{ [1, 2]|reverse|list }}
{{ [1, 2, 3]|sum }}|{{ [1, 2]|sum(start=10) }}|{{ [[1], [2]]|sum(start=[]) }}|{{ [1, 5, 2]|max }}|{{ ['b', 'A']|min }}|{{ [1, 1, 2]|unique|list }}|{{ ['a', 'A']|unique|list }}
{{ messages|map(attribute='role')|list }}|{{ messages|map('length')|list }}|{{ ['a']|map('upper')|join }}|{{ ['1', 'x']|map('int', 7)|list }}|{{ messages|map(attribute='nope', default='-')|list }}
{{ messages|selectattr('role', 'equalto', 'user')|list|length }}|{{ messages|rejectattr('content')|map(attribute='role')|list }}|{{ [0, 1, 2]|select|list }}|{{ [1, 2, 3]|select('odd')|list }}|{{ [1, 2, 3]|reject('gt', 1)|list }}
{{ messages|selectattr('tool_calls', 'defined')|map(attribute='role')|list }}|{{ messages|selectattr('role', 'in', ['user', 'tool'])|list|length }}
{% for role, group in [{'r': 'b', 'v': 1}, {'r': 'a', 'v': 2}, {'r': 'b', 'v': 3}]|groupby('r') %}{{ role }}:{{ group|map(attribute='v')|join(',') }};{% endfor %}
{% for row in range(7)|batch(3, '-') %}{{ row|join(',') }};{% endfor %}|{% for row in range(7)|slice(3) %}{{ row|join(',') }};{% endfor %}|{% for row in range(7)|slice(3, 'x') %}{{ row|join(',') }};{% endfor %}
{{ {'b': 1, 'A': 2}|dictsort }}|{{ {'b': 1, 'A': 2}|dictsort(true) }}|{{ {'b': 1, 'A': 2}|dictsort(by='value') }}|{{ {'b': 1, 'A': 2}|dictsort(reverse=true) }}|{{ {'a': 1}|items|list }}|{{ {'a': 1}|list }}
{{ nothing|default('d') }}|{{ ''|default('d') }}|{{ ''|default('d', true) }}|{{ none|d('x') }}|{{ none|default('x', boolean=true) }}
{{ '3'|int }}|{{ 'x'|int }}|{{ '3.7'|int }}|{{ 3.9|int }}|{{ '0x1f'|int(0, 16) }}|{{ '3.5'|float }}|{{ 'x'|float(1.0) }}|{{ 3|float }}|{{ -3|abs }}|{{ 2.5|round }}|{{ 3.5|round }}|{{ 2.675|round(2) }}|{{ 3.14159|round(2) }}|{{ 1.1|round(0, 'ceil') }}|{{ 1.9|round(0, 'floor') }}|{{ 7|round }}
{{ messages[2]|tojson }}|{{ messages[1]|tojson }}|{{ {'b': 1, 'a': 'ä'}|tojson(sort_keys=true) }}|{{ [1, {'a': []}]|tojson(indent=2) }}|{{ {'a': 'ä'}|tojson(ensure_ascii=true) }}|{{ [1, 2]|tojson(separators=(',', ':')) }}|{{ {}|tojson(indent=1) }}|{{ (1, 2)|tojson }}|{{ {1: 2, none: 3, true: 4}|tojson }}
{{ nothing|tojson }}
{{ 'abc'|nofilter }}
{{ 1 is notest }}
{{ '%s is %d and %5.2f%%' % ('x', 3, 2.5) }}|{{ '%s' % 'a' }}|{{ '%-5s|%5s|%05d|%+d|%x|%o' % ('a', 'b', 42, 7, 255, 8) }}|{{ '%(a)s' % {'a': 1} }}|{{ '%r' % 'a' }}|{{ '%s %s'|format('a', 1) }}|{{ '%.2s' % 'abc' }}
{{ '%s' % (1, 2) }}
{{ '%d' % 'a' }}
{{ '{} {}'.format('a', 1) }}|{{ '{0} {1} {0}'.format('a', 'b') }}|{{ '{x}'.format(x=1) }}|{{ '{:>5}|{:<5}|{:^5}|{:*^7}'.format('a', 'b', 'c', 'd') }}|{{ '{:05d} {:,} {:.2f} {:x} {:+}'.format(42, 1234567, 3.14159, 255, 3) }}|{{ '{{}} {!r}'.format('a') }}|{{ '{0[a]}'.format({'a': 1}) }}|{{ '{:.1%}'.format(0.256) }}|{{ '{}'.format(1.0) }}
{{ 'a,b,c'.split(',') }}|{{ ' a  b '.split() }}|{{ 'a b c'.split(' ', 1) }}|{{ 'a b c'.split(none, 1) }}|{{ 'a,b,c'.rsplit(',', 1) }}|{{ ' a  b  c '.rsplit(none, 1) }}|{{ ''.split(',') }}|{{ ''.split() }}|{{ 'a\nb\r\nc\n'.splitlines() }}|{{ 'a\nb'.splitlines(true) }}
{{ 'a.b.c'.partition('.') }}|{{ 'a.b.c'.rpartition('.') }}|{{ 'abc'.partition('x') }}|{{ 'abc'.rpartition('x') }}|{{ 'abc'.removeprefix('a') }}|{{ 'abc'.removesuffix('c') }}|{{ 'abc'.removesuffix('x') }}
{{ ' a '.strip() }}|{{ ' a '.lstrip() }}|{{ ' a '.rstrip() }}|{{ 'xaxx'.strip('x') }}|{{ 'abcba'.rstrip('ab') }}|{{ '\n\ta'.lstrip('\n') }}
{{ 'abc'.startswith('a') }}|{{ 'abc'.endswith(('x', 'c')) }}|{{ 'abc'.startswith('b', 1) }}|{{ 'abcabc'.find('c') }}|{{ 'abcabc'.rfind('c') }}|{{ 'abc'.find('x') }}|{{ 'abcabc'.find('a', 1) }}|{{ 'aXbX'.count('X') }}|{{ 'abc'.index('b') }}|{{ 'abc'.count('') }}
{{ 'abc'.index('x') }}
{{ 'hello World'.title() }}|{{ "it's".title() }}|{{ 'hello World'.capitalize() }}|{{ 'aBc'.swapcase() }}|{{ 'ABC'.lower() }}|{{ 'straße'.upper() }}|{{ 'ABC'.casefold() }}
{{ 'ab'.center(5) }}|{{ 'abc'.center(6) }}|{{ 'a'.ljust(3) }}|{{ 'a'.rjust(3, '.') }}|{{ '-42'.zfill(5) }}|{{ 'a\tb'.expandtabs(4) }}|{{ '-'.join(['a', 'b']) }}
{{ 'abc'.isalpha() }}|{{ '12'.isdigit() }}|{{ 'a1'.isalnum() }}|{{ ' '.isspace() }}|{{ 'ab'.islower() }}|{{ 'AB'.isupper() }}|{{ ''.isalpha() }}|{{ 'ä'.isascii() }}
{{ {'a': 1}.get('a') }}|{{ {'a': 1}.get('b') }}|{{ {'a': 1}.get('b', 2) }}|{{ {'a': 1}.keys()|list }}|{{ {'a': 1}.values()|list }}|{{ [1, 2, 1].count(1) }}|{{ [1, 2].index(2) }}|{{ (1, 2).index(2) }}|{{ 1.0.is_integer() }}
{{ 'abc'.nope }}|{{ messages.nope is defined }}
{{ 'abc'.nope() }}
{% for i in range(3) %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.previtem }}{{ loop.nextitem }}{{ loop.cycle('a', 'b') }};{% endfor %}
{% for i in [1, 1, 2] %}{{ loop.changed(i) }}{% endfor %}|{% for i in [] %}x{% else %}empty{% endfor %}|{% for i in range(9) if i is odd %}{{ loop.index }}:{{ i }} {% endfor %}|{% for i in nothing %}x{% endfor %}
{% for i in range(9) %}{% if i == 2 %}{% continue %}{% endif %}{% if i == 5 %}{% break %}{% endif %}{{ i }}{% else %}none{% endfor %}
{% for k, v in {'a': 1, 'b': 2}.items() %}{{ k }}{{ v }}{% endfor %}|{% for (a, b), c in [((1, 2), 3)] %}{{ a }}{{ b }}{{ c }}{% endfor %}|{% for c in 'äb' %}{{ c }},{% endfor %}|{% for k in {'a': 1} %}{{ k }}{% endfor %}
{% for a, b in [(1, 2, 3)] %}{% endfor %}
{% for i in 5 %}{% endfor %}
{% for x in [1, [2, [3]]] recursive %}{{ loop.depth }}{% if x is iterable %}({{ loop(x) }}){% else %}{{ x }}{% endif %}{% endfor %}
{% set x = 1 %}{% for i in [1] %}{% set x = 2 %}{{ x }}{% endfor %}{{ x }}|{% if true %}{% set y = 3 %}{% endif %}{{ y }}|{% set a, b = 1, 2 %}{{ a }}{{ b }}
{% set ns = namespace(a=1, b=[]) %}{% for i in range(3) %}{% set ns.a = ns.a + i %}{% set ns.b = ns.b + [i] %}{% endfor %}{{ ns.a }}{{ ns.b }}{{ ns.c is defined }}|{% set ns.d = 1 %}{{ ns.d }}|{{ namespace({'q': 1}).q }}
{% set d = {} %}{% set d.a = 1 %}
{% set x %}a{{ 1 }}b{% endset %}{{ x }}|{% set x | upper | replace('A', 'c') %}a{% endset %}{{ x }}|{% filter upper %}a{{ 'b' }}{% endfilter %}|{% with a = 1, b = 2 %}{{ a + b }}{% endwith %}{{ a is defined }}
{% macro f(a, b=2, c=a) %}{{ a }}-{{ b }}-{{ c }}{% endmacro %}{{ f(1) }}|{{ f(1, 3) }}|{{ f(b=5, a=4) }}|{{ f() }}|{{ f.name }}
{% macro f(a) %}{{ a }}{{ varargs }}{{ kwargs }}{% endmacro %}{{ f(1, 2, 3, x=4) }}|{{ f(*[1, 2], **{'y': 5}) }}
{% macro f(a) %}{% endmacro %}{{ f(1, 2) }}
{% macro f(a) %}{% endmacro %}{{ f(b=2) }}
{% macro f(a) %}{% endmacro %}{{ f(1, a=2) }}
{% macro f() %}<{{ caller() }}>{% endmacro %}{% call f() %}in{{ messages|length }}{% endcall %}|{% macro g() %}{{ caller(1, 2) }}{% endmacro %}{% call(a, b) g() %}{{ a }}{{ b }}{% endcall %}
{% set x = 1 %}{% macro f() %}{{ x }}{% endmacro %}{% set x = 2 %}{{ f() }}|{% for i in [7] %}{% macro h() %}{{ i }}{% endmacro %}{{ h() }}{% endfor %}
{% macro f(n) %}{{ n }}{% if n > 0 %}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(3) }}
{% set c = cycler('a', 'b') %}{{ c.next() }}{{ c.next() }}{{ c.next() }}{{ c.current }}|{% set j = joiner('; ') %}{{ j() }}a{{ j() }}b|{{ dict(a=1) }}|{{ dict([('x', 1)]) }}|{{ range(2, 8, 3)|list }}|{{ range(3, 0, -1)|list }}
{{ range(0, 10, 0) }}
a{#- c -#} b {#+ d #} e|{%- if true %} f {%- endif %} g
line 1\n  {% if true %}\n    in\n  {% endif %}\nline 2\n  {%+ if true %}x{% endif %}\n  {{ 1 }}\n\n{% if true -%}\n   y\n{%- endif %}\n{# c #}\nz\n
{% raw %}{{ x }}{% if %}{% endraw %}|{{ '{{ }}' }}|{{ {'a': {'b': {}}} }}|{{ "a" "b" }}|{{ 'a\'b\x41\u00e9\101\q' }}
{% if messages %}a{% elif x %}b{% else %}c{% endif %}|{% if 0 %}a{% elif 1 %}b{% endif %}|{% if not messages[0].x %}n{% endif %}
{% block b %}x{% endblock %}|{% block c scoped %}y{% endblock c %}
{{ messages[0] }}|{{ messages[3] }}|{{ [nothing, 1.0, 1e100, 'ä\x00\x7f\u200b'] }}
{{ raise_exception('no: ' ~ 1) }}
{% if true %}
{% endfor %}
{{ 1 + }}
{{ a b }}
{% set true = 1 %}
{% break %}
{% include 'x' %}
{% nosuch %}
{{ 'a }}
{{ (1 }}
{{ 'abc' is not string }}|{{ 1 if nothing is not defined else 2 }}|{{ 'x' if messages is defined and messages else 'y' }}|{{ not nothing is defined }}
{{ [1, 2, 3]|map('string')|join('+') ~ '!' }}|{{ -1|string }}|{{ 1.5|string|length }}|{{ (1 + 2)|string }}|{{ 'a'|upper ~ 'b'|upper }}|{{ 'a' + 'b'|upper }}
{{ messages|length > 2 and messages[0].role == 'system' }}|{{ 'a' in messages[0] }}|{{ 'role' in messages[0] }}|{{ messages[0].content.strip().split(' ')[0]|lower }}
{% for m in messages %}{% if m.content is string %}S{% elif m.content is none %}N{% elif m.content is iterable %}I{% endif %}{% if loop.nextitem is defined %},{% endif %}{% endfor %}
{{ loop is defined }}|{{ caller is defined }}|{{ varargs is defined }}
{{ 1 .__class__ }}|{{ messages.__class__ is defined }}
{{ true }}{{ True }}{{ none }}{{ None }}{{ false }}|{{ 'tRue' }}|{{ 3.0 }}|{{ 3.10 }}|{{ 100000000000000000000.0 }}|{{ -0.0 }}
{{ ' a b  c '.split(none, 1) }}|{{ ' a b '.split(none, 0) }}|{{ 'abc'.find('', 9) }}|{{ 'abc'.count('', 9) }}|{{ 'a\x00'.isprintable() }}|{{ 'ä '.isprintable() }}
{{ 'aaa'|replace(old='a', new='b') }}|{{ '%(a)s'|format(a=1) }}|{{ 7|round(-1) }}|{{ -25|round(-1) }}|{{ -0.5|round(0, 'ceil') }}|{{ 5 is divisibleby(2.5) }}
{{ '%e %.2E %g %.3g %g %G' % (12345.678, 0.00012, 0.5, 1234567, 1e-7, 1e20) }}|{{ '{:e} {:.1e} {:g} {:.3g}'.format(1, 2.5, 1e16, 3.14159) }}|{{ '{:,}'.format(1234567.5) }}
{{ '%s' % nothing }}|{{ 'a' % [1] }}|{{ 'a' % nothing }}
{{ '{:>5}'.format(none) }}
{{ '{:s}'.format(1) }}
{{ '{:.2}'.format(1) }}
{{ '%x' % 1.5 }}
{% for i in [1] %}{% continue %}{% else %}none{% endfor %}|{% for i in [1, 2] %}{% if loop.first %}{% continue %}{% endif %}{{ i }}{% else %}none{% endfor %}|{% for i in [1] %}{% break %}{% else %}none{% endfor %}
{{ 'a\r\nb\x0bc\n'|indent(2) }}|{{ {'class': 'a"b', 'x': none, 'n': 1}|xmlattr }}|{{ {'a': 1}|xmlattr(false) }}|{{ '<p>a <!-- > -->&amp; <b>b</b>\n c &#39;&lt;'|striptags }}
{{ 1|filesizeformat }}|{{ 0|filesizeformat }}|{{ 999999|filesizeformat }}|{{ 1536|filesizeformat(true) }}|{{ '2e30'|filesizeformat }}
{{ {'a b': 1}|xmlattr }}
{{ 12|truncate }}
{{ {'a': 1}|dictsort(by='x') }}
{{ dict(nothing) }}
{{ cycler() }}
"""

# In the style of published templates.
TEMPLATES = [r"""
{{- '<s>' }}
{%- if not date_string is defined %}
    {%- set date_string = "26 Jul 2024" %}
{%- endif %}
{%- set tools = [{"type": "function", "function": {"name": "add", "parameters": {"a": {"type": "int"}}}}] %}
{%- if messages[0]['role'] == 'system' %}
    {%- set system_message = messages[0]['content']|trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set system_message = "" %}
{%- endif %}
{{- "<|start|>system<|end|>\n\n" }}
{%- if builtin_tools is defined %}
    {{- "Tools: " + builtin_tools | reject('equalto', 'code') | join(", ") + "\n\n"}}
{%- endif %}
{%- for t in tools %}
    {{- t | tojson(indent=4) }}
    {{- "\n\n" }}
{%- endfor %}
{{- "Today: " + date_string + "\n" + system_message }}
{%- for message in messages %}
    {%- if not (message.role == 'ipython' or message.role == 'tool' or 'tool_calls' in message) %}
        {{- '<|start|>' + message['role'] + '<|end|>\n\n'+ message['content'] | trim + '<|eot|>' }}
    {%- elif 'tool_calls' in message %}
        {%- if not message.tool_calls|length == 1 %}
            {{- raise_exception("only single tool calls") }}
        {%- endif %}
        {%- set tool_call = message.tool_calls[0].function %}
        {{- '{"name": "' + tool_call.name + '", "parameters": ' }}
        {{- tool_call.arguments | tojson }}
        {{- "}<|eot|>" }}
    {%- elif message.role == "tool" or message.role == "ipython" %}
        {%- if message.content is mapping or message.content is iterable %}
            {{- message.content | tojson }}
        {%- else %}
            {{- message.content }}
        {%- endif %}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|start|>assistant<|end|>\n\n' }}
{%- endif %}
""", r"""
{%- set ns = namespace(multi_step_tool=true, last_query_index=messages|length - 1) %}
{%- for message in messages[::-1] %}
    {%- set index = (messages|length - 1) - loop.index0 %}
    {%- if ns.multi_step_tool and message.role == "user" and message.content is string and not(message.content.startswith('<tool_response>') and message.content.endswith('</tool_response>')) %}
        {%- set ns.multi_step_tool = false %}
        {%- set ns.last_query_index = index %}
    {%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- if message.content is string %}
        {%- set content = message.content %}
    {%- else %}
        {%- set content = '' %}
    {%- endif %}
    {%- if (message.role == "user") or (message.role == "system" and not loop.first) %}
        {{- '<|im_start|>' + message.role + '\n' + content + '<|im_end|>' + '\n' }}
    {%- elif message.role == "assistant" %}
        {%- set reasoning_content = '' %}
        {%- if message.reasoning_content is string %}
            {%- set reasoning_content = message.reasoning_content %}
        {%- else %}
            {%- if '</think>' in content %}
                {%- set reasoning_content = content.split('</think>')[0].rstrip('\n').split('<think>')[-1].lstrip('\n') %}
                {%- set content = content.split('</think>')[-1].lstrip('\n') %}
            {%- endif %}
        {%- endif %}
        {%- if loop.index0 > ns.last_query_index %}
            {%- if loop.last or (not loop.last and reasoning_content) %}
                {{- '<|im_start|>' + message.role + '\n<think>\n' + reasoning_content.strip('\n') + '\n</think>\n\n' + content.lstrip('\n') }}
            {%- else %}
                {{- '<|im_start|>' + message.role + '\n' + content }}
            {%- endif %}
        {%- endif %}
        {%- for tool_call in message.tool_calls or [] %}
            {%- if (loop.first and content) or (not loop.first) %}{{- '\n' }}{%- endif %}
            {%- if tool_call.function %}{%- set tool_call = tool_call.function %}{%- endif %}
            {{- '<tool_call>\n{"name": "' }}{{- tool_call.name }}{{- '", "arguments": ' }}
            {%- if tool_call.arguments is string %}{{- tool_call.arguments }}{%- else %}{{- tool_call.arguments | tojson }}{%- endif %}
            {{- '}\n</tool_call>' }}
        {%- endfor %}
        {{- '<|im_end|>\n' }}
    {%- elif message.role == "tool" %}
        {%- if loop.first or (messages[loop.index0 - 1].role != "tool") %}{{- '<|im_start|>user' }}{%- endif %}
        {%- for part in message.content %}{{ part.text if part.type == 'text' else '<' ~ part['type'] ~ '>' }}{% endfor %}
        {%- if loop.last or (messages[loop.index0 + 1].role != "tool") %}{{- '<|im_end|>\n' }}{%- endif %}
    {%- endif %}
{%- endfor %}
{%- if enable_thinking is defined and enable_thinking is false %}{{- '<think>\n\n</think>\n\n' }}{%- endif %}
""", r"""
{%- macro render_type(spec, required, nullable=false) -%}
    {%- if spec.type == "array" -%}
        {%- if spec['items'] -%}
            {%- if spec['items']['type'] == "string" -%}{{- "string[]" }}
            {%- elif spec['items']['type'] in ("number", "integer") -%}{{- "number[]" }}
            {%- else -%}
                {%- set inner = render_type(spec['items'], required) -%}
                {%- if inner == "object | object" or inner|length > 50 -%}{{- "any[]" }}{%- else -%}{{- inner + "[]" }}{%- endif -%}
            {%- endif -%}
            {%- if spec.nullable -%}{{- " | null" }}{%- endif -%}
        {%- else -%}{{- "any[]" }}{%- endif -%}
    {%- elif spec.type is defined and spec.type is iterable and spec.type is not string and spec.type is not mapping and spec.type[0] is defined -%}
        {{- spec.type | join(" | ") }}
    {%- elif spec.oneOf -%}
        {%- for variant in spec.oneOf -%}
            {{- render_type(variant, required) -}}
            {%- if variant.description %}{{- "// " + variant.description }}{%- endif -%}
            {%- if not loop.last %}{{- " | " }}{% endif -%}
        {%- endfor -%}
    {%- elif spec.type == "string" -%}
        {%- if spec.enum -%}{{- '"' + spec.enum|join('" | "') + '"' -}}{%- else -%}{{- "string" }}{%- endif -%}
    {%- elif spec.type == "object" -%}
        {{- "{\n" }}
        {%- for name, sub in spec.properties.items() -%}
            {{- name -}}{%- if name not in (spec.required or []) -%}{{- "?" -}}{%- endif -%}{{- ": " }}
            {{- render_type(sub, spec.required or []) }}
            {%- if not loop.last -%}{{- ", " }}{%- endif -%}
        {%- endfor -%}
        {{- "\n}" }}
    {%- else -%}{{- "any" }}{%- endif -%}
{%- endmacro -%}
{%- set spec = {"type": "object", "required": ["a"], "properties": {"a": {"type": "string", "enum": ["x", "y"]},
    "b": {"type": "array", "items": {"type": "object", "properties": {"c": {"type": ["string", "null"]}}}},
    "d": {"type": "array", "items": {"type": "integer"}, "nullable": true},
    "e": {"oneOf": [{"type": "string", "description": "words"}, {"type": "number"}]}}} -%}
{{- render_type(spec, []) }}
""", r"""
{% macro line(name, value='') %}
{{ name }}={{ value }}
{% endmacro %}
{%- for message in messages recursive -%}
  {{ line(loop.index ~ '/' ~ loop.length, message.role) }}
  {%- if message.role not in ['system', 'user', 'assistant', 'tool'] %}{{ raise_exception('odd role') }}{% endif %}
{%- else -%}
  nothing
{%- endfor %}
{%- set parts = messages | selectattr('content', 'string') | map(attribute='content') | map('trim') | list %}
{{ parts | length }} {{ parts | join(' / ') }}
{%- set ns = namespace(out='') %}
{%- for p in parts if p %}{% set ns.out = ns.out ~ loop.index ~ p[:3] %}{% endfor %}
{{ ns.out }}
"""]


def environment():
    env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols])

    def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    def raise_exception(message):
        raise jinja2.exceptions.TemplateError(message)

    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    return env


def rendered(source):
    try:
        return environment().from_string(source).render(messages=MESSAGES, add_generation_prompt=True)
    except Exception:
        return None


def main():
    sources = [line.replace("\\n", "\n") if line.startswith("line 1") else line for line in CASES.strip().split("\n")]
    sources += TEMPLATES
    cases = [{"source": source, "rendered": rendered(source)} for source in sources]
    golden = {"note": "Python's jinja2 " + jinja2.__version__ + "; written by make_chat_language.py",
              "messages": MESSAGES, "cases": cases}
    path = pathlib.Path(__file__).with_name("chat_language.json")
    path.write_text(json.dumps(golden, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


main()
