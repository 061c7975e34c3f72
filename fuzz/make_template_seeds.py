"""Writes hostile chat templates as seeds: every family once, small enough to be mutated.

    python3 fuzz/make_template_seeds.py

`crates/yirage-model/tests/suite/chat_hostile.rs` has the same families at the size that hurts.
"""

import pathlib

FOLDER = pathlib.Path(__file__).parent / "corpus" / "chat_template"

FAMILIES = {
    "chain_operators": "{{ 1" + " + 1" * 60 + " }}{{ 'a'" + " ~ 'b'" * 60 + " }}",
    "chain_filters": "{{ 'a'" + "|upper|lower" * 30 + " }}",
    "chain_attributes": "{{ x" + ".a" * 60 + " }}{{ messages" + "[0]" * 60 + " }}",
    "chain_ternaries": "{{ " + "1 if 0 else " * 40 + "2 }}",
    "chain_elif": "{% if 0 %}" + "{% elif 0 %}" * 60 + "{% endif %}",
    "chain_signs": "{{ " + "not " * 60 + "1 }}{{ " + "-" * 60 + "1 }}",
    "nest_brackets": "{{ " + "(" * 50 + "1" + ")" * 50 + " }}{{ " + "[" * 50 + "]" * 50 + " }}",
    "nest_blocks": "{% if 1 %}" * 40 + "x" + "{% endif %}" * 40,
    "wide_indent": "{{ ''|indent(10000000000) }}{{ 'a\nb'|indent(9999, true, true) }}",
    "wide_fields": "{{ '%9999999999d' % 1 }}{{ '{:>99999999}'.format(1) }}{{ '%.999999999f'|format(1.5) }}",
    "wide_pads": "{{ 'a'.center(9999999999) }}{{ 'a'.ljust(999999999) }}{{ 'a'|center(99999999) }}{{ '7'.zfill(10**12) }}",
    "many_replace": "{{ ('a' * 5000).replace('', 'b' * 5000) }}{{ ('a' * 5000)|replace('a', 'b' * 50000) }}",
    "many_join": "{{ range(90000)|join('x' * 90000) }}{{ ('x' * 90000).join(['a', 'b'] * 9000) }}",
    "double_text": "{% set n = namespace(s='ab') %}{% for i in range(60) %}{% set n.s = n.s ~ n.s %}{% endfor %}",
    "double_list": "{% set n = namespace(s=[1]) %}{% for i in range(60) %}{% set n.s = n.s + n.s %}{% endfor %}",
    "multiply": "{{ 'abc' * 10**12 }}{{ [1] * 10**12 }}{{ 9 ** 9 ** 9 }}{{ 2 ** 127 }}{{ 10**30 * 10**30 }}",
    "capture": "{% set s %}{% for i in range(9999) %}{{ 'x' * 99999 }}{% endfor %}{% endset %}",
    "sum_loop": "{% for i in range(99999) %}{% if range(99999)|sum %}{% endif %}{% endfor %}",
    "search_loop": "{% set l = range(99999) %}{% for i in l %}{% if -1 in l %}{% endif %}{% endfor %}",
    "sort_loop": "{% for i in range(99999) %}{{ range(99999)|sort(reverse=true)|unique|first }}{% endfor %}",
    "deep_value": "{% set n = namespace(x=[]) %}{% for i in range(99999) %}{% set n.x = [n.x] %}{% endfor %}{{ n.x }}",
    "deep_dict": "{% set n = namespace(x={}) %}{% for i in range(300) %}{% set n.x = {'a': n.x} %}{% endfor %}{{ n.x|tojson }}",
    "shared_value": "{% set n = namespace(x=[1]) %}{% for i in range(60) %}{% set n.x = [n.x, n.x] %}{% endfor %}{{ n.x }}",
    "equal_shared": "{% set n = namespace(x=[1], y=[1]) %}{% for i in range(60) %}{% set n.x = [n.x, n.x] %}"
                    "{% set n.y = [n.y, n.y] %}{% endfor %}{{ n.x == n.y }}{{ n.x < n.y }}",
    "cycle": "{% set n = namespace() %}{% set n.n = n %}{% set n.l = [n, {'n': n}] %}{{ n }}{{ n.l }}{{ n.l|tojson }}",
    "chain_namespaces": "{% set a = namespace(n=none) %}{% for i in range(9999) %}{% set b = namespace(n=a.n) %}"
                        "{% set a.n = b %}{% endfor %}",
    "chain_joiners": "{% set n = namespace(j='') %}{% for i in range(9999) %}{% set n.j = joiner(n.j) %}{% endfor %}",
    "macro_self": "{% macro f(x) %}{{ f(x + 1) }}{% endmacro %}{{ f(0) }}",
    "macro_caller": "{% macro f() %}{% call f() %}{{ caller() }}{% endcall %}{{ caller() }}{% endmacro %}{{ f() }}",
    "macro_spread": "{% macro f() %}{{ varargs|length }}{{ kwargs }}{% endmacro %}{{ f(*range(9999), **{'a': 1}) }}",
    "loop_self": "{% for x in [1] recursive %}{{ loop([x]) }}{% endfor %}",
    "loop_changed": "{% for x in [1, 1, 2] %}{{ loop.changed(loop, [loop]) }}{{ loop.cycle(1, 2) }}{% endfor %}",
    "map_of_maps": "{{ [[[1]]]|map('map', 'map', 'string')|list }}{{ range(9)|map('replace', '', 'x' * 9999)|join }}",
    "group": "{{ messages|groupby('role') }}{{ messages|map(attribute='content.0.text')|select|list }}"
             "{{ tools[0]|dictsort(by='value') }}{{ range(10)|batch(3, '-')|list }}{{ range(10)|slice(3)|list }}",
    "split": "{{ ('a ' * 99999).split(' ')|length }}{{ ('ab' * 9999)|list|length }}{{ 'a,b,c'.rsplit(',', 1) }}",
    "format": "{{ '%s %5.2f %x %r %(a)s' % (1, 2, 3, 4) }}{{ '{0[a]} {b!r:>9}'.format({'a': 1}, b='x') }}",
    "numbers": "{{ 1 / 0 if false }}{{ 7 // -2 }}{{ -7 % 3 }}{{ 1e308 * 10 }}{{ 2 ** -1 }}{{ 3.7|round(99999) }}{{ 5|round }}",
    "slices": "{{ 'abc'[::-1] }}{{ [1, 2, 3][-99:99:2] }}{{ 'äöü'[1:] }}{{ range(9)[::0] }}{{ 'a'[10**30] }}",
    "white": "a\n  {%- if 1 -%}  b  {%+ endif +%}\n {# c -#} \n {% raw %} {{ }} {%- endraw -%} z",
    "dates": "{{ strftime_now('%Y %q %-d %') }}{{ strftime_now('%Y' * 9999) }}",
    "json": "{{ messages|tojson(indent=4, sort_keys=true, separators=(',', ':'), ensure_ascii=true) }}{{ 1|tojson(indent=10**9) }}",
}


def main():
    for name, source in FAMILIES.items():
        (FOLDER / f"{name}.jinja").write_text(source, encoding="utf-8")


main()
