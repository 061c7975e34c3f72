//! Every rule finds something in its own cases, and what it makes is equal, by the ops' references on random shapes.

use std::collections::HashMap;
use yirage_ir::rng::Rng;
use yirage_ir::tensor::Data;
use yirage_ir::{Dims, Graph, Tensor, interp, text, verify};
use yirage_search::{RULES, rewrites};

/// Sizes in place of the letters of a case.
fn sized(case: &str, rng: &mut Rng) -> String {
    let mut sizes: HashMap<&str, String> = HashMap::new();
    for name in ["B", "M", "K", "N"] {
        sizes.insert(name, (2 + rng.below(7)).to_string());
    }
    let mut out = String::new();
    let mut word = String::new();
    for c in case.chars().chain(['\n']) {
        if c.is_ascii_alphanumeric() || c == '_' {
            word.push(c);
            continue;
        }
        out.push_str(sizes.get(word.as_str()).map_or(word.as_str(), String::as_str));
        word.clear();
        out.push(c);
    }
    out
}

fn inputs(graph: &Graph, rng: &mut Rng) -> HashMap<String, Tensor> {
    let of = |&id: &yirage_ir::ValueId| {
        let ty = graph.ty(id);
        let shape: Vec<usize> = ty.shape.iter().map(|d| d.get(&Dims::default())).collect();
        let values: Vec<f32> = (0..shape.iter().product()).map(|_| rng.signed_f32()).collect();
        let bytes: Vec<u8> = values.into_iter().flat_map(f32::to_le_bytes).collect();
        (graph.value(id).name.clone(), Tensor::from_memory(ty, &Dims::default(), &bytes))
    };
    graph.inputs.iter().map(of).collect()
}

fn floats(t: &Tensor) -> &[f32] {
    let Data::F32(values) = &t.data else { panic!("floats wanted") };
    values
}

#[test]
fn what_a_rule_makes_is_equal() {
    let mut rng = Rng::new(19);
    for rule in RULES {
        for case in rule.cases {
            for _ in 0..8 {
                let source = sized(case, &mut rng);
                let graph = text::parse(&source).unwrap_or_else(|e| panic!("{}: {e}\n{source}", rule.name));
                let made = rewrites(&graph, rule).unwrap();
                assert!(!made.is_empty(), "{} finds nothing in {source}", rule.name);
                let given = inputs(&graph, &mut rng);
                let want = interp::evaluate(&graph, &mut given.clone()).unwrap();
                for rewritten in made {
                    verify(&rewritten).unwrap();
                    let got = interp::evaluate(&rewritten, &mut given.clone()).unwrap();
                    assert_eq!(want.len(), got.len());
                    for (want, got) in want.iter().zip(&got) {
                        assert_eq!(want.shape, got.shape);
                        for (a, b) in floats(want).iter().zip(floats(got)) {
                            let within = 2e-5 * (1.0 + a.abs());
                            let shown = text::print(&rewritten);
                            assert!((a - b).abs() <= within, "{}: {a} and {b}\n{source}\n{shown}", rule.name);
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn rules_have_names_of_their_own_and_say_what_they_do() {
    let names: std::collections::BTreeSet<&str> = RULES.iter().map(|rule| rule.name).collect();
    assert_eq!(names.len(), RULES.len());
    assert!(RULES.iter().all(|rule| !rule.law.is_empty() && !rule.cases.is_empty()));
}
