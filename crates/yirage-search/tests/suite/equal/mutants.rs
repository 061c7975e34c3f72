//! Graphs with a mistake that plain floats show are refused. `YIRAGE_MUTANTS=20000` runs ten times as many.

use super::laws::{self, Sizes};
use super::{mutate, witness, workloads};
use yirage_ir::rng::Rng;
use yirage_ir::{DType, Graph, text};
use yirage_search::equal::{EqualityOptions, equivalent};

const FEW: usize = 2000;

fn graphs() -> Vec<(String, Graph)> {
    let sizes = [Sizes { m: 3, k: 4, n: 5, h: 2 }, Sizes { m: 4, k: 4, n: 4, h: 4 }];
    let sides = |law: laws::Law| {
        sizes.into_iter().flat_map(move |s| law.sides(s, DType::F32).map(|graph| (law.name.to_string(), graph)))
    };
    let mut all: Vec<(String, Graph)> = laws::all().into_iter().flat_map(sides).collect();
    // As many as the laws: they are what is rewritten.
    for _ in 0..all.len() / workloads::ALL.len() {
        all.extend(
            workloads::ALL.iter().map(|text| text::parse(text).unwrap()).map(|graph| (graph.name.clone(), graph)),
        );
    }
    all
}

#[test]
fn mutants_are_refused() {
    let wanted = std::env::var("YIRAGE_MUTANTS").map_or(FEW, |n| n.parse().unwrap());
    let (graphs, mut rng) = (graphs(), Rng::new(19));
    let (mut told_apart, mut drawn, mut missed) = (0, 0u64, Vec::new());
    while told_apart < wanted {
        drawn += 1;
        assert!(drawn < 20 * wanted as u64 + 1000, "{told_apart} of {drawn} mutants are told apart");
        let (name, graph) = rng.choose(&graphs);
        let Some((what, mutant)) = mutate::mutate(graph, &mut rng) else { continue };
        if !witness::tells_apart(graph, &mutant, drawn) {
            continue;
        }
        told_apart += 1;
        if equivalent(graph, &mutant, &EqualityOptions::default()).is_ok() {
            missed.push(format!("{name}: {what}\n{}{}", text::print(graph), text::print(&mutant)));
        }
    }
    let list = format!("{} of {told_apart} mutants are accepted\n{}", missed.len(), missed.join("\n"));
    let share = 1.0 - missed.len() as f64 / told_apart as f64;
    assert!(share >= 0.9995, "{list}");
    #[allow(clippy::print_stderr)] // each miss is told, also where there are few enough
    {
        eprintln!("{list}");
    }
}
