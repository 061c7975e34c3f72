use crate::grammar::{Grammar, GrammarKind, Walked};
use crate::vocabulary::{BYTES, Vocabulary};
use serde_json::{Value, json};
use yirage_engine::sampling::TokenMask;

/// Answers of a schema that ended, of so many seeds; none may be stuck.
fn answers(schema: &Value, seeds: u64) -> Vec<Value> {
    let grammar = Grammar::new(GrammarKind::Schema(schema.clone()), "guided_json");
    let walked = grammar.walked(0..seeds, 1000).unwrap_or_else(|refused| panic!("{schema}: {refused:?}"));
    let of = |one| match one {
        Walked::Ended(text) => Some(serde_json::from_slice(&text).unwrap()),
        Walked::Cut(_) => None,
        Walked::Stuck(text) => panic!("{schema}: stuck behind {}", String::from_utf8_lossy(&text)),
    };
    walked.into_iter().filter_map(of).collect()
}

fn why_not(schema: Value) -> String {
    let grammar = Grammar::new(GrammarKind::Schema(schema.clone()), "response_format");
    let refused = grammar.compile_for(Vocabulary::of_bytes).err();
    refused.unwrap_or_else(|| panic!("{schema} is taken")).message
}

type Holds = fn(&Value) -> bool;

/// Each answer holds what the schema says, by expectations that are written for it.
fn all_hold(cases: Vec<(Value, Holds)>) {
    for (schema, holds) in cases {
        let found = answers(&schema, 40);
        assert!(!found.is_empty(), "{schema}");
        found.iter().for_each(|answer| assert!(holds(answer), "{schema}: {answer}"));
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or("?")
}

/// A property that is listed and fits a pattern left an answer with a comma and nothing that may follow (case 13 of the
/// public reports: llguidance#265, vllm#30730).
#[test]
fn patterns_without_further_names_leave_no_dead_end() {
    let score: Holds = |a| a["score"].as_i64().is_some_and(|n| (0..=100).contains(&n)) && a["t"].is_boolean();
    let base = |patterns: Value| {
        json!({
            "type": "object", "additionalProperties": false, "required": ["score", "t"], "patternProperties": patterns,
            "properties": {"score": {"type": "integer", "minimum": 0, "maximum": 100}, "t": {"type": "boolean"}},
        })
    };
    let open = |pattern: &str| json!({"type": "object", "properties": {"a": {"type": "null"}}, "patternProperties": {pattern: {"type": "null"}}});
    let nulls: Holds = |a| a.as_object().is_some_and(|map| map.values().all(Value::is_null));
    all_hold(vec![
        (base(json!({"^score$": {"type": "integer"}})), score),
        (base(json!({"^(score|t)$": true})), score),
        (base(json!({"^s(core)?$": {"type": "integer"}})), score),
        (base(json!({"^[st]$": {"type": ["boolean", "integer"]}})), score),
        (base(json!({"^score$": {"maximum": 7}})), |a| a["score"].as_i64().is_some_and(|n| (0..=7).contains(&n))),
        (base(json!({"^t$": {"const": true}, "^u$": false})), |a| a["t"] == true && a.get("u").is_none()),
        (open(".*"), nulls),
        (open(""), nulls),
        (open("^.*$"), nulls),
        (
            json!({"patternProperties": {".*": {"maximum": 5}, "^a": {"type": "integer"}}, "type": "object",
            "additionalProperties": false}),
            |a| {
                a.as_object().is_some_and(|map| {
                    map.iter().all(|(key, one)| {
                        one.as_f64().is_none_or(|n| n <= 5.0) && (!key.starts_with('a') || one.is_number())
                    })
                })
            },
        ),
        (json!({"patternProperties": {"^a": {"type": "integer"}, "b$": {"minimum": 3}}, "type": "object"}), |a| {
            a.as_object().is_some_and(|map| {
                map.iter().all(|(key, one)| {
                    (!key.starts_with('a') || one.is_number())
                        && (!key.ends_with('b') || one.as_f64().is_none_or(|n| n >= 3.0))
                })
            })
        }),
    ]);
}

/// Rules in lists of rules, as the grammars of editors have them: an object in so many alternatives, each with so many
/// properties that may be left out.
fn nested_rules(alternatives: usize, optional: usize, more: &Value, patterns: bool) -> Value {
    let rule = |kind: usize| {
        let names = (0..optional).map(|at| (format!("p{at}"), json!({"type": "string"})));
        let mut properties: serde_json::Map<String, Value> = names.collect();
        properties.insert("kind".into(), json!({"const": kind}));
        properties.insert("patterns".into(), json!({"$ref": "#/definitions/rules"}));
        let mut rule = json!({"type": "object", "properties": properties, "additionalProperties": more});
        if patterns {
            rule["patternProperties"] = json!({"^[0-9]+$": {"$ref": "#/definitions/rules"}});
        }
        rule
    };
    let rule = json!({"anyOf": (0..alternatives).map(rule).collect::<Vec<_>>()});
    json!({
        "type": "object", "properties": {"patterns": {"$ref": "#/definitions/rules"}}, "required": ["patterns"],
        "additionalProperties": false,
        "definitions": {"rule": rule, "rules": {"type": "array", "items": {"$ref": "#/definitions/rule"}}},
    })
}

/// An answer ended behind `{"patterns": [{` where the rules have more alternatives and properties than the library's row had
/// room for, which the first token does not show. What has no room now is refused.
#[test]
fn objects_of_many_alternatives_leave_no_dead_end() {
    let more = [json!(true), json!(false), json!({"$ref": "#/definitions/rule"})];
    for (alternatives, optional) in [(2, 64), (8, 32), (16, 16), (64, 4), (16, 32)] {
        for (more, patterns) in more.iter().flat_map(|more| [(more, false), (more, true)]) {
            assert!(!answers(&nested_rules(alternatives, optional, more, patterns), 8).is_empty());
        }
    }
    let why = why_not(nested_rules(128, 64, &json!(false), true));
    assert!(why.contains("more than 16384 symbols") && why.contains("fewer alternatives"), "{why}");
}

/// A token of many bytes leads through several rows of a parser's state, and each of many such tokens through rows of its
/// own, which are wide here.
#[test]
fn tokens_of_many_bytes_leave_wide_schemas_no_dead_end() {
    let names: Vec<String> = (0..40).map(|at| format!("p{at}")).collect();
    let rule = |kind: usize| {
        let own = (format!("own{kind}"), json!({"type": "null"}));
        let properties = names.iter().map(|name| (name.clone(), json!({"$ref": "#/$defs/rule"}))).chain([own]);
        let properties: serde_json::Map<String, Value> = properties.collect();
        json!({"type": "object", "properties": properties, "additionalProperties": false})
    };
    let schema = json!({"$ref": "#/$defs/rule", "$defs": {"rule": {"anyOf": (0..8).map(rule).collect::<Vec<_>>()}}});
    let bytes = (0..=u8::MAX).map(|byte| vec![byte]).chain([b"\xff<end>".to_vec()]);
    let opened = names.iter().map(|name| format!("{{\"{name}\": {{").into_bytes());
    let words: Vec<Vec<u8>> = bytes.chain(opened).collect();
    let vocabulary = Vocabulary::of_words(&words, BYTES, vec![BYTES]).unwrap();
    let grammar = Grammar::new(GrammarKind::Schema(schema), "guided_json");
    let compiled = grammar.compile_for(|| Ok(vocabulary.clone())).unwrap();
    for walked in compiled.walked(&vocabulary, 0..3, 60, &[]) {
        assert!(!matches!(walked, Walked::Stuck(_)), "{walked:?}");
    }
}

/// Whether a text, byte by byte, is what a schema takes.
pub(super) fn takes(schema: Value, text: &str) -> bool {
    let grammar = Grammar::new(GrammarKind::Schema(schema), "response_format");
    let mut held = grammar.compile_for(Vocabulary::of_bytes).unwrap().constraint().unwrap();
    text.bytes().all(|byte| {
        let mut allowed = TokenMask::none(257);
        held.fill(&mut allowed);
        held.accept(u32::from(byte));
        allowed.allows(u32::from(byte))
    })
}

/// A name by codes would be another one for the library, and the same for whoever reads the answer.
#[test]
fn names_are_written_in_one_way() {
    for schema in [
        json!({"type": "object", "properties": {"a": {"type": "integer"}}}),
        json!({"type": "object", "patternProperties": {"^a": {"type": "integer"}}}),
        json!({"type": "object", "required": ["a"], "allOf": [{"properties": {"a": {"type": "integer"}}}]}),
    ] {
        assert!(takes(schema.clone(), r#"{"a": 1"#) && !takes(schema, r#"{"\u0061"#));
    }
    assert!(takes(json!({"type": "object"}), r#"{"\u0001": 1"#));
}

/// Formats that nobody defines are annotations (case 15: pydantic's Path, SecretStr, bytes, IPvAnyAddress).
#[test]
fn unknown_formats_are_annotations() {
    for format in ["path", "password", "binary", "ipvanyaddress", "file-path", "byte", "int64", "color", "", "größe"]
    {
        let schema = json!({
            "type": "object", "properties": {"p": {"type": "string", "format": format, "maxLength": 5}}, "required": ["p"],
            "additionalProperties": false,
        });
        assert!(answers(&schema, 10).iter().all(|a| a["p"].as_str().is_some_and(|p| p.chars().count() <= 5)));
    }
    all_hold(vec![
        (json!({"type": "string", "format": "json-pointer"}), |a| text(a).is_empty() || text(a).starts_with('/')),
        (json!({"type": "string", "format": "ipv4"}), |a| text(a).split('.').count() == 4),
        (json!({"type": "integer", "format": "int32", "minimum": 0}), |a| a.as_u64().is_some()),
    ]);
}

/// Bounds at the ends of 64 bits and beyond (case 29: xgrammar#315, openai-openapi#382), which ended the process.
#[test]
fn integers_have_bounds_of_any_size() {
    let whole: Holds = |a| a.as_i64().is_some();
    let number = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    all_hold(vec![
        (number(r#"{"type": "integer", "minimum": -9223372036854775808, "maximum": 9223372036854775807}"#), whole),
        (number(r#"{"type": "integer", "minimum": -9223372036854775807}"#), |a| a.is_number()),
        (number(r#"{"type": "integer", "minimum": 0, "maximum": 18446744073709551615}"#), |a| a.as_u64().is_some()),
        (number(r#"{"type": "integer", "minimum": -1e40, "maximum": 1e40}"#), whole),
        (number(r#"{"type": "integer", "exclusiveMinimum": 9007199254740992, "maximum": 9007199254741000}"#), |a| {
            a.as_i64().is_some_and(|n| n > 9_007_199_254_740_992 && n <= 9_007_199_254_741_000)
        }),
        (number(r#"{"type": "integer", "minimum": 0.5, "maximum": 3.5}"#), |a| matches!(a.as_i64(), Some(1..=3))),
        (number(r#"{"type": "integer", "minimum": 1e2, "exclusiveMaximum": 102.0}"#), |a| {
            matches!(a.as_i64(), Some(100 | 101))
        }),
        (number(r#"{"type": "integer", "minimum": 10, "maximum": 30, "multipleOf": 7.0}"#), |a| {
            matches!(a.as_i64(), Some(14 | 21 | 28))
        }),
        (number(r#"{"type": ["integer", "null"], "minimum": -9223372036854775808}"#), |a| a.is_number() || a.is_null()),
    ]);
    for none in [
        r#"{"type": "integer", "minimum": 18446744073709551616}"#,
        r#"{"type": "integer", "maximum": -1e300, "minimum": -2e300}"#,
        r#"{"type": "integer", "multipleOf": 0}"#,
        r#"{"const": 9007199254740993}"#,
    ] {
        why_not(number(none));
    }
}

#[test]
fn counts_may_be_written_as_floats_and_defaults_said() {
    let schema = r#"{"type": "array", "items": {"type": "string", "minLength": 3.0, "maxLength": 3e0}, "minItems": 1.0,
        "maxItems": 2.0, "uniqueItems": false}"#;
    all_hold(vec![
        (serde_json::from_str(schema).unwrap(), |a| {
            a.as_array().is_some_and(|a| matches!(a.len(), 1 | 2) && a.iter().all(|s| text(s).chars().count() == 3))
        }),
        (json!({"type": "array", "items": {"enum": [1, 2, 1.0, "a"]}, "uniqueItems": true}), |a| {
            a.as_array().is_some_and(|a| a.len() <= 3 && a.iter().enumerate().all(|(at, one)| !a[..at].contains(one)))
        }),
        (
            json!({"type": "array", "items": {"$ref": "#/$defs/e"}, "uniqueItems": true, "$defs": {"e": {"enum": [1, 2]}}}),
            |a| [json!([]), json!([1]), json!([2]), json!([1, 2])].contains(a),
        ),
        (json!({"type": "array", "items": {"type": "boolean"}, "uniqueItems": true, "minItems": 2}), |a| {
            *a == json!([false, true])
        }),
    ]);
}

#[test]
fn references_of_all_spellings_are_followed() {
    let one: Holds = |a| *a == json!({"v": 7});
    let of = |name: &str, reference: &str| {
        json!({
            "$id": "http://x.example/root.json", "type": "object", "properties": {"v": {"$ref": reference}},
            "required": ["v"], "additionalProperties": false, "$defs": {name: {"const": 7, "$anchor": "n"}},
        })
    };
    all_hold(vec![
        (of("a b", "#/$defs/a%20b"), one),
        (of("a/b", "#/$defs/a~1b"), one),
        (of("a~b", "#/%24defs/a~0b"), one),
        (of("ä", "#/$defs/%C3%A4"), one),
        (of("x", "#n"), one),
        (of("x", "root.json#/$defs/x"), one),
        (of("x", "http://x.example/root.json#n"), one),
    ]);
    assert!(why_not(json!({"$ref": "http://elsewhere.example/x"})).contains("nothing is fetched"));
    assert!(why_not(json!({"$ref": "#/$defs/none"})).contains("$ref"));
}

#[test]
fn logic_is_kept() {
    let small = |more: Value| {
        let mut schema = json!({
            "type": "object", "additionalProperties": false,
            "properties": {"a": {"enum": [1, 2]}, "b": {"type": "boolean"}, "c": {"enum": ["x", "y"]}},
        });
        schema.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        schema
    };
    all_hold(vec![
        (small(json!({"dependentRequired": {"a": ["b"]}})), |a| a.get("a").is_none() || a.get("b").is_some()),
        (small(json!({"dependencies": {"a": ["b"], "c": {"required": ["a"]}}})), |a| {
            (a.get("a").is_none() || a.get("b").is_some()) && (a.get("c").is_none() || a.get("a").is_some())
        }),
        (
            small(
                json!({"if": {"properties": {"a": {"const": 1}}, "required": ["a"]}, "then": {"required": ["b"]}, "else": {"required": ["c"]}}),
            ),
            |a| {
                if a["a"] == 1 { a.get("b").is_some() } else { a.get("c").is_some() }
            },
        ),
        (small(json!({"not": {"required": ["a"]}})), |a| a.get("a").is_none()),
        (small(json!({"oneOf": [{"required": ["a"]}, {"required": ["b"]}]})), |a| {
            a.get("a").is_some() != a.get("b").is_some()
        }),
        (small(json!({"minProperties": 1})), |a| a.as_object().is_some_and(|a| !a.is_empty())),
        (small(json!({"minProperties": 1, "additionalProperties": true})), |a| {
            a.as_object().is_some_and(|a| !a.is_empty())
        }),
        (
            json!({"type": "object", "oneOf": [
                {"properties": {"a": {"const": 1}}, "required": ["a"], "additionalProperties": false},
                {"properties": {"b": {"const": 1}}, "required": ["b"], "additionalProperties": false},
            ]}),
            |a| *a == json!({"a": 1}) || *a == json!({"b": 1}),
        ),
        (json!({"enum": [1, 2, 3, "a"], "not": {"oneOf": [{"const": 1}, {"const": 2}, {"type": "string"}]}}), |a| {
            *a == 3
        }),
        (small(json!({"propertyNames": {"enum": ["a", "c"]}})), |a| a.get("b").is_none()),
        (small(json!({"propertyNames": {"pattern": "^[ab]"}})), |a| a.get("c").is_none()),
        (json!({"type": "string", "maxLength": 3, "not": {"enum": ["", "a", "ab"]}}), |a| {
            !["", "a", "ab"].contains(&text(a))
        }),
        (json!({"type": "integer", "minimum": 0, "maximum": 5, "not": {"const": 3.0}}), |a| *a != 3),
        (json!({"type": "array", "items": {"enum": [1, 2]}, "contains": {"const": 2}, "maxItems": 3}), |a| {
            a.as_array().is_some_and(|a| a.contains(&json!(2)))
        }),
        (
            json!({"allOf": [{"$ref": "#/$defs/a"}], "unevaluatedProperties": false, "type": "object",
            "$defs": {"a": {"properties": {"k": {"type": "null"}}}}}),
            |a| a.as_object().is_some_and(|a| a.keys().all(|k| k == "k")),
        ),
        (
            json!({"type": "null", "nullable": true, "title": 3, "x-any": {"type": 5}, "discriminator": {}}),
            Value::is_null,
        ),
    ]);
}

/// Each keyword that cannot be kept, and each budget, is named with its place.
#[test]
fn what_cannot_be_kept_is_named() {
    for (schema, named) in [
        (json!({"items": {"pattern": {}}}), "`pattern`"),
        (json!({"anyOf": [{"properties": {"a": {"minimum": "1"}}}]}), "#/anyOf/0/properties/a"),
        (json!({"exclusiveMaximum": null}), "`exclusiveMaximum`"),
        (json!({"$ref": ["x"]}), "`$ref`"),
        (json!({"type": "any"}), "`type`"),
        (json!({"minLength": -1}), "`minLength`"),
        (json!({"minItems": 1.5}), "`minItems`"),
        (json!({"minItems": 100_000}), "`minItems`"),
        (json!({"type": "array", "items": {"type": "integer"}, "uniqueItems": true}), "`uniqueItems`"),
        (json!({"not": {"pattern": "a"}}), "`pattern`"),
        (json!({"pattern": "a".repeat(9000)}), "`pattern`"),
        (json!({"const": "a".repeat(9000)}), "`const`"),
        (json!({"allOf": [{"multipleOf": 4_294_967_291_u64}, {"multipleOf": 0.001}]}), "`multipleOf`"),
        (json!({"$ref": "#"}), "cannot be enforced"),
        (json!({"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]}), "cannot be enforced"),
        (json!({"anyOf": [{"required": ["a"]}], "unevaluatedProperties": false}), "`unevaluatedProperties`"),
    ] {
        let why = why_not(schema.clone());
        assert!(why.contains(named) && !why.contains("backtrace"), "{schema}: {why}");
    }
}

/// What would overflow a stack, or take long, ends in a form or in a refusal.
#[test]
fn large_schemas_end_no_process() {
    let deep =
        |levels: usize, wrap: fn(Value) -> Value| (0..levels).fold(json!({"type": "integer"}), |one, _| wrap(one));
    let chain = |count: usize, of: fn(&str) -> Value| {
        let all = (0..count).map(|at| (format!("d{at}"), of(&format!("#/$defs/d{}", at + 1))));
        let mut all: serde_json::Map<String, Value> = all.collect();
        all.insert(format!("d{count}"), json!({"type": "null"}));
        json!({"$defs": all, "$ref": "#/$defs/d0"})
    };
    let product: Vec<Value> = (0..12)
        .map(|at| json!({"anyOf": (0..6).map(|value| json!({"properties": {format!("a{at}"): {"const": value}}})).collect::<Vec<_>>()}))
        .collect();
    let names = |count: usize| {
        let all: serde_json::Map<String, Value> = (0..count).map(|at| (format!("p{at}"), json!(true))).collect();
        json!({"type": "object", "properties": all})
    };
    for schema in [
        deep(60, |one| json!({"type": "array", "items": one})),
        deep(40, |one| json!({"type": "object", "properties": {"a": one}, "required": ["a"]})),
        deep(100, |one| json!({"not": one})),
        deep(60, |one| json!({"anyOf": [one, {"type": "null"}]})),
        chain(1900, |next| json!({"$ref": next})),
        chain(1900, |next| json!({"properties": {"a": {"$ref": next}}})),
        chain(60, |next| json!({"allOf": [{"$ref": next}, {"$ref": next}]})),
        chain(5000, |next| json!({"$ref": next})),
        json!({"allOf": product}),
        json!({"oneOf": product}),
        json!({"enum": (0..15_000).collect::<Vec<_>>()}),
        names(600),
        names(5000),
        json!({"type": "string", "pattern": "((((a{0,900}){0,900}){0,900}){0,900})"}),
        json!({"type": "string", "pattern": "(.*a){300}"}),
        json!({"type": "string", "pattern": "(".repeat(200)}),
        json!({"type": "string", "minLength": 1e300, "maxLength": 1e308}),
    ] {
        let grammar = Grammar::new(GrammarKind::Schema(schema), "response_format");
        if let Err(refused) = grammar.compile_for(Vocabulary::of_bytes) {
            assert_eq!(refused.status.as_u16(), 400);
            assert!(!refused.message.contains("please report"), "{}", refused.message);
        }
    }
}

/// A draft ignores the keywords of later ones: they may narrow what is written, and what they take is never what is left out.
#[test]
fn keywords_of_later_drafts_narrow_and_are_never_turned_round() {
    let of = |draft: &str, mut schema: Value| {
        schema["$schema"] = format!("http://json-schema.org/{draft}/schema#").into();
        schema
    };
    all_hold(vec![
        (of("draft-04", json!({"const": "a"})), |a| a == "a"),
        (of("draft-04", json!({"type": "integer", "exclusiveMinimum": 3, "maximum": 5})), |a| a == 4 || a == 5),
        (of("draft-04", json!({"if": {"const": 1}, "then": {"type": "null"}, "type": ["integer", "null"]})), |a| {
            a != 1
        }),
        (of("draft-06", json!({"oneOf": [{"const": "a"}, {"const": "b"}]})), |a| a == "a" || a == "b"),
        (of("draft-04", json!({"oneOf": [{"enum": ["a"]}, {"enum": ["b"]}]})), |a| a == "a" || a == "b"),
        // There `items` is said of the first ones as well, and one has to fit whatever `minContains` says.
        (
            of(
                "draft-07",
                json!({"type": "array", "prefixItems": [{"type": ["null", "boolean"]}], "items": {"type": "null"}}),
            ),
            |a| a.as_array().is_some_and(|list| list.iter().all(Value::is_null)),
        ),
        (of("draft-07", json!({"type": "array", "contains": {"type": "null"}, "minContains": 0})), |a| {
            a.as_array().is_some_and(|list| list.iter().any(Value::is_null))
        }),
    ]);
    for schema in [
        json!({"oneOf": [{"const": "a"}, {"const": "b"}]}),
        json!({"not": {"const": "a"}}),
        json!({"properties": {"a": {"oneOf": [{"const": "a", "title": "x"}, {"const": "b"}]}}}),
        json!({"not": {"exclusiveMinimum": 3}}),
    ] {
        let why = why_not(of("draft-04", schema.clone()));
        assert!(why.contains("is no keyword of draft-04") && why.contains("`$schema`"), "{schema}: {why}");
    }
    assert!(why_not(of("draft-04", json!({"not": {"const": "a"}}))).contains("write `enum` with one value"));
    // A schema within another says for itself whose keywords it has, and so do those it refers to.
    let within = |schema: Value| json!({"type": "object", "properties": {"a": of("draft-04", schema)}});
    assert!(why_not(within(json!({"not": {"const": "a"}}))).contains("is no keyword of draft-04"));
    let referred = json!({"not": {"$ref": "#/properties/a/definitions/b"}, "definitions": {"b": {"const": 1}}});
    assert!(why_not(within(referred)).contains("is no keyword of draft-04"));
    let around = json!({"not": {"const": "a"}, "properties": {"a": of("draft-04", json!({"enum": ["a"]}))}});
    all_hold(vec![(around, |a| a != "a")]);
    // Beside a reference nothing is said in those drafts, of a document of a newer one.
    let beside = json!({"$ref": "#/properties/a/definitions/b", "not": {}, "definitions": {"b": {"const": 1}}});
    all_hold(vec![(json!({"type": "object", "properties": {"a": of("draft-07", beside)}, "required": ["a"]}), |a| {
        a["a"] == 1
    })]);
}

/// A text of any length that has to hold a pattern somewhere never ended where nobody thought of the pattern.
#[test]
fn answers_end_where_a_pattern_is_looked_for() {
    for schema in [
        json!({"type": "string", "pattern": r"\.png$"}),
        json!({"type": "object", "required": ["version"], "properties": {"version": {"type": "string", "pattern": "1.0"}}}),
        json!({"type": "array", "minItems": 1, "maxItems": 1, "items": {"type": "string", "pattern": "^.*@example[.]org$"}}),
    ] {
        let ended = answers(&schema, 20).len();
        assert!(ended > 15, "{schema}: {ended} of 20 ended");
    }
}
