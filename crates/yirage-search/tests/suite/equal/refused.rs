//! What is refused, and why.

use yirage_ir::{Graph, text};
use yirage_search::equal::{Certificate, Class, EqualityOptions, NotEqual, equivalent};

pub(crate) fn graph(text: &str) -> Graph {
    text::parse(text).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

pub(crate) fn compare(a: &str, b: &str) -> Result<Certificate, NotEqual> {
    equivalent(&graph(a), &graph(b), &EqualityOptions::default())
}

/// The classes of inputs on which a candidate is refused: the first one that is met.
fn refused_on(a: &str, b: &str) -> Class {
    match compare(a, b) {
        Err(NotEqual::Floating { class, .. }) => class,
        other => panic!("{other:?}"),
    }
}

const SOFTMAX: &str = "graph g {
  input %x: f32[4, 16]
  %m = reduce{kind=max, axes=\"[1]\", keep=true}(%x): f32[4, 1]
  %e = map{expr=\"exp(sub(x0, x1))\"}(%x, %m): f32[4, 16]
  %s = reduce{kind=sum, axes=\"[1]\", keep=true}(%e): f32[4, 1]
  %y = map{expr=\"div(x0, x1)\"}(%e, %s): f32[4, 16]
  output %y
}";

const BARE_SOFTMAX: &str = "graph g {
  input %x: f32[4, 16]
  %e = map{expr=\"exp(x0)\"}(%x): f32[4, 16]
  %s = reduce{kind=sum, axes=\"[1]\", keep=true}(%e): f32[4, 1]
  %y = map{expr=\"div(x0, x1)\"}(%e, %s): f32[4, 16]
  output %y
}";

#[test]
fn a_softmax_must_be_shifted_and_may_be() {
    assert_eq!(refused_on(SOFTMAX, BARE_SOFTMAX), Class::LargeLogits);
    compare(BARE_SOFTMAX, SOFTMAX).unwrap();
}

/// A normalisation of rows of `n`, by a variance that is `how`.
fn normalised(n: usize, how: &str) -> String {
    format!(
        "graph g {{
  input %x: f32[8, {n}]
  %m = reduce{{kind=mean, axes=\"[1]\", keep=true}}(%x): f32[8, 1]
  %c = map{{expr=\"sub(x0, x1)\"}}(%x, %m): f32[8, {n}]
  %q = reduce{{kind=mean_square, axes=\"[1]\", keep=true}}(%x): f32[8, 1]
  %d = reduce{{kind=mean_square, axes=\"[1]\", keep=true}}(%c): f32[8, 1]
  %v = map{{expr=\"{how}\"}}(%q, %m, %d): f32[8, 1]
  %y = map{{expr=\"mul(x0, rsqrt(add(x1, 1e-5)))\"}}(%c, %v): f32[8, {n}]
  output %y
}}"
    )
}

#[test]
fn a_variance_must_not_cancel() {
    for n in [16, 64, 768, 4096] {
        let good = normalised(n, "add(x2, mul(0.0, add(x0, x1)))");
        let bad = normalised(n, "add(sub(x0, mul(x1, x1)), mul(0.0, x2))");
        let class = refused_on(&good, &bad);
        assert!(matches!(class, Class::ConstantRows | Class::ConstantColumns), "{n}: {class}");
        compare(&bad, &good).unwrap();
    }
}

fn map_of(expr: &str) -> String {
    format!("graph g {{\n input %x: f32[4, 16]\n %y = map{{expr=\"{expr}\"}}(%x): f32[4, 16]\n output %y\n}}")
}

#[test]
fn rounding_that_is_added_is_refused_and_that_is_dropped_accepted() {
    let (plain, narrow) = (map_of("mul(x0, 3.0)"), map_of("mul(cast.f32(cast.bf16(x0)), 3.0)"));
    assert!(matches!(compare(&plain, &narrow), Err(NotEqual::Floating { .. })));
    compare(&narrow, &plain).unwrap();
}

#[test]
fn near_misses_are_refused() {
    let pairs = [
        ("mul(sqrt(x0), sqrt(x0))", "x0"),
        ("sqrt(mul(x0, x0))", "x0"),
        ("max(x0, 0.0)", "x0"),
        ("abs(x0)", "relu(x0)"),
        ("relu(x0)", "max(x0, 1e-6)"),
        ("mul(x0, 0.1)", "mul(x0, 0.10000001)"),
        ("silu(x0)", "gelu_erf(x0)"),
        ("exp(mul(x0, 2.0))", "mul(exp(x0), 2.0)"),
        ("select(lt(x0, 0.0), x0, 1.0)", "select(le(x0, 0.0), x0, 1.0)"),
        ("sub(x0, x0)", "mul(x0, 1e-9)"),
        ("log(exp(x0))", "mul(x0, 1.0)"),
    ];
    for (a, b) in pairs {
        let b = if b == "x0" { "mul(x0, 1.0)" } else { b };
        assert!(compare(&map_of(a), &map_of(b)).is_err(), "{a} and {b}");
    }
}

#[test]
fn what_has_no_value_is_refused() {
    let never = map_of("div(x0, sub(x0, x0))");
    assert!(matches!(compare(&never, &never), Err(NotEqual::Unsupported { .. })));
}

#[test]
fn graphs_must_be_called_alike() {
    let other_name = map_of("neg(x0)").replace("%x", "%z");
    let other_size = map_of("neg(x0)").replace("16", "8");
    let other_output = map_of("cast.bf16(neg(x0))").replace(": f32[4, 16]\n output", ": bf16[4, 16]\n output");
    for b in [&other_name, &other_size, &other_output] {
        assert!(matches!(compare(&map_of("neg(x0)"), b), Err(NotEqual::Interface(_))), "{b}");
    }
}

#[test]
fn masks_by_position_are_exact() {
    let masked = |scores: &str| {
        format!(
            "graph g {{
  input %x: f32[6, 6]
  %r = iota{{shape=\"[6, 6]\", axis=0}}(): i32[6, 6]
  %c = iota{{shape=\"[6, 6]\", axis=1}}(): i32[6, 6]
  %s = map{{expr=\"{scores}\"}}(%x, %r, %c): f32[6, 6]
  %m = reduce{{kind=max, axes=\"[1]\", keep=true}}(%s): f32[6, 1]
  %e = map{{expr=\"exp(sub(x0, x1))\"}}(%s, %m): f32[6, 6]
  %t = reduce{{kind=sum, axes=\"[1]\", keep=true}}(%e): f32[6, 1]
  %y = map{{expr=\"div(x0, x1)\"}}(%e, %t): f32[6, 6]
  output %y
}}"
        )
    };
    let causal = masked("select(le(x2, x1), x0, -inf)");
    compare(&causal, &masked("select(lt(x1, x2), -inf, x0)")).unwrap();
    assert!(compare(&causal, &masked("select(lt(x2, x1), x0, -inf)")).is_err());
    assert!(compare(&causal, &masked("select(le(x2, x1), x0, -1.0)")).is_err());
}

#[test]
fn what_no_machine_holds_is_refused_at_once() {
    let huge = |expr: &str| {
        format!(
            "graph g {{
  input %x: f32[4000000000, 16]
  %s = view{{form=\"slice(1:1:3999999999, 0:1:16)\"}}(%x): f32[3999999999, 16]
  %m = map{{expr=\"{expr}\"}}(%s): f32[3999999999, 16]
  %y = reduce{{kind=sum, axes=\"[0]\", keep=true}}(%m): f32[1, 16]
  output %y
}}"
        )
    };
    assert!(matches!(compare(&huge("neg(x0)"), &huge("neg(x0)")), Err(NotEqual::TooLarge { .. })));
}

#[test]
fn states_are_compared_after_the_step() {
    let append = |slots: &str, kept: &str| {
        graph(&format!(
            "graph g {{
  kv_cache %cache: f32[32, 1, 8]
  input %k: f32[Tokens, 4]
  input %v: f32[Tokens, 4]
  input %at: i32[Tokens]
  input %other: i32[Tokens]
  %y = map{{expr=\"add(x0, x1)\"}}(%k, %v): f32[Tokens, 4]
  %kept = kv_append{{kv_heads=1}}(%cache, {kept}, %{slots}): f32[32, 1, 8]
  output %y
}}"
        ))
    };
    let options = EqualityOptions::default();
    let original = append("at", "%k, %v");
    equivalent(&original, &original, &options).unwrap();
    for other in [append("other", "%k, %v"), append("at", "%v, %k")] {
        assert!(
            matches!(equivalent(&original, &other, &options), Err(NotEqual::Field { name, .. }) if name == "cache")
        );
    }
    let none = EqualityOptions { sizes: Vec::new(), ..options };
    assert!(matches!(equivalent(&original, &original, &none), Err(NotEqual::Unsupported { .. })));
}

#[test]
fn whole_numbers_of_large_ranges_are_equal_often_enough() {
    let choice = |test: &str| {
        format!(
            "graph g {{
  input %table: f32[5000, 2]
  input %a: i32[6]
  input %b: i32[6]
  %x = gather{{axis=0}}(%table, %a): f32[6, 2]
  %y = gather{{axis=0}}(%table, %b): f32[6, 2]
  %i = view{{form=\"reshape(6, 1)\"}}(%a): i32[6, 1]
  %j = view{{form=\"reshape(6, 1)\"}}(%b): i32[6, 1]
  %z = map{{expr=\"select({test}, x2, mul(x3, 2.0))\"}}(%i, %j, %x, %y): f32[6, 2]
  output %z
}}"
        )
    };
    compare(&choice("lt(x0, x1)"), &choice("lt(x0, x1)")).unwrap();
    assert!(matches!(compare(&choice("lt(x0, x1)"), &choice("le(x0, x1)")), Err(NotEqual::Field { .. })));
}
