//! That two graphs compute the same does not depend on which is named first, and what is said of a certificate.

use super::laws::{self, Sizes};
use super::refused::{compare, graph};
use yirage_ir::{DType, Graph};
use yirage_search::equal::{BothWays, EqualityOptions, NotEqual};

fn both(a: &Graph, b: &Graph) -> BothWays {
    BothWays::of(a, b, &EqualityOptions::default())
}

/// A sum of one input, beside one that nobody reads where there are two.
fn summed(inputs: &str, by: &str) -> String {
    format!("graph g {{ input %x: f32[4, 16] {inputs} %y = map{{expr=\"{by}\"}}(%x): f32[4, 16] output %y }}")
}

#[test]
fn neither_order_tells_more_than_the_other() {
    let pairs = [
        // One rounds more.
        (summed("", "mul(x0, 3.0)"), summed("", "mul(cast.f32(cast.bf16(x0)), 3.0)"), true),
        // One takes an input that it does not read.
        (summed("", "add(x0, x0)"), summed("input %z: f32[4, 16]", "mul(x0, 2.0)"), true),
        (summed("", "add(x0, x0)"), summed("", "mul(x0, 2.0)"), true),
        (summed("", "add(x0, x0)"), summed("", "mul(x0, x0)"), false),
        (summed("", "neg(x0)"), summed("", "neg(x0)").replace("%x", "%other"), false),
    ];
    for (a, b, equal) in pairs {
        let (there, back) = (both(&graph(&a), &graph(&b)), both(&graph(&b), &graph(&a)));
        assert_eq!((there.shown().is_ok(), back.shown().is_ok()), (equal, equal), "{a}\n{b}\n{there:?}\n{back:?}");
        assert_eq!((there.second_for_first, there.first_for_second), (back.first_for_second, back.second_for_first));
    }
}

#[test]
fn laws_hold_in_both_orders() {
    for law in laws::all() {
        let [a, b] = law.sides(Sizes { m: 3, k: 4, n: 5, h: 2 }, DType::F32);
        assert!(both(&b, &a).shown().is_ok(), "{}: {:?}", law.name, both(&b, &a).shown());
    }
}

#[test]
fn what_speaks_against_a_pair_is_what_speaks_against_the_second() {
    let (a, b) = (summed("", "add(x0, x0)"), summed("", "mul(x0, 3.0)"));
    let both = both(&graph(&a), &graph(&b));
    assert!(matches!(both.shown(), Err(NotEqual::Field { output: 0, .. })), "{both:?}");
}

#[test]
fn a_certificate_says_how_for_what_and_under_which_assumptions() {
    let certificate = compare(&summed("", "add(x0, x0)"), &summed("", "mul(x0, 2.0)")).unwrap();
    let words = certificate.in_words().join("\n");
    let bound = format!("at most 2^{:.1}", certificate.false_accept_log2());
    let wanted = [
        "method: ",
        "finite fields",
        "domain: sizes fixed",
        "128 of 128",
        &bound,
        "in floats: ",
        "ordinary",
        "assumed: ",
    ];
    for word in wanted {
        assert!(words.contains(word), "{word}: {words}");
    }
}
