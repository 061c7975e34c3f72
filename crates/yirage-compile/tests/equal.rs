//! What is refused and why, what a certificate says, and that the compiler's own rewrites are accepted.
#![allow(clippy::unwrap_used)] // a test may stop at anything unexpected

mod support;

use yirage_compile::equal::{Certificate, CertificateError, Class, EqualityOptions, NotEqual, equivalent};
use yirage_compile::{Options, PIPELINE};
use yirage_ir::{Graph, text};
use yirage_plan::Precision;

fn graph(text: &str) -> Graph {
    text::parse(text).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

fn compare(a: &str, b: &str) -> Result<Certificate, NotEqual> {
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
  slot %x: f32[4, 16]
  %m = reduce{kind=max, axes=\"[1]\", keep=true}(%x): f32[4, 1]
  %e = map{expr=\"exp(sub(x0, x1))\"}(%x, %m): f32[4, 16]
  %s = reduce{kind=sum, axes=\"[1]\", keep=true}(%e): f32[4, 1]
  %y = map{expr=\"div(x0, x1)\"}(%e, %s): f32[4, 16]
  output %y
}";

const BARE_SOFTMAX: &str = "graph g {
  slot %x: f32[4, 16]
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
  slot %x: f32[8, {n}]
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
    format!("graph g {{\n slot %x: f32[4, 16]\n %y = map{{expr=\"{expr}\"}}(%x): f32[4, 16]\n output %y\n}}")
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
  slot %x: f32[6, 6]
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

fn gated(rows: usize, width: usize, joined: bool) -> String {
    let head = format!(
        "graph g {{\n slot %x: f32[{rows}, {width}]\n weight %a: f32[{width}, {width}]\n weight %b: f32[{width}, {width}]\n"
    );
    let (w, two) = (width, 2 * width);
    let products = if joined {
        format!(
            " %w = concat{{axis=1}}(%a, %b): f32[{w}, {two}]
 %p = contract(%x, %w): f32[{rows}, {two}]
 %g = view{{form=\"slice(0:1:{rows}, 0:1:{w})\"}}(%p): f32[{rows}, {w}]
 %u = view{{form=\"slice(0:1:{rows}, {w}:1:{w})\"}}(%p): f32[{rows}, {w}]\n"
        )
    } else {
        format!(" %g = contract(%x, %a): f32[{rows}, {w}]\n %u = contract(%x, %b): f32[{rows}, {w}]\n")
    };
    format!("{head}{products} %y = map{{expr=\"mul(silu(x0), x1)\"}}(%g, %u): f32[{rows}, {w}]\n output %y\n}}")
}

#[test]
fn large_graphs_are_compared_at_a_sample() {
    let (a, b) = (gated(8, 4096, false), gated(8, 4096, true));
    let certificate = compare(&a, &b).unwrap();
    let field = &certificate.fields[0];
    assert!(0 < field.compared && field.compared < field.elements, "{certificate}");
    assert!(compare(&a, &b.replace("4096:1:4096)", "4095:1:4096)")).is_err());
    let few = EqualityOptions { work: 1000, ..EqualityOptions::default() };
    assert!(matches!(
        equivalent(&graph(&a), &graph(&b), &few),
        Err(NotEqual::TooLarge { needed: 1001.., budget: 1000, .. })
    ));
    let small = EqualityOptions { work: 1 << 20, ..EqualityOptions::default() };
    let all = equivalent(&graph(&gated(4, 32, false)), &graph(&gated(4, 32, true)), &small).unwrap();
    assert!(all.fields.iter().all(|f| f.compared == f.elements && f.false_accept_log2 < -40.0), "{all}");
}

#[test]
fn certificates_are_of_their_graphs_alone() {
    let (a, b) = (graph(&gated(4, 32, false)), graph(&gated(4, 32, true)));
    let certificate = equivalent(&a, &b, &EqualityOptions::default()).unwrap();
    assert_eq!(certificate, equivalent(&a, &b, &EqualityOptions::default()).unwrap());
    let text = certificate.to_string();
    let again: Certificate = text.parse().unwrap();
    assert_eq!(again, certificate);
    again.check(&a, &b).unwrap();
    assert!(matches!(again.check(&b, &a), Err(CertificateError::Foreign { which: "original", .. })));
    let newer = Certificate { version: again.version + 1, ..again };
    assert!(matches!(newer.check(&a, &b), Err(CertificateError::Version { .. })));
    assert_eq!(certificate.classes.len(), Class::ALL.len());
    assert!(certificate.classes.iter().all(|c| c.error <= c.bound && c.judged + c.open == 128));
    assert!(certificate.false_accept_log2() < -80.0, "{text}");
}

#[test]
fn damaged_certificates_are_refused() {
    let (a, b) = (gated(2, 4, false), gated(2, 4, true));
    let text = compare(&a, &b).unwrap().to_string();
    let lines: Vec<&str> = text.lines().collect();
    for at in 0..lines.len() {
        for damaged in ["nothing 1", "", "seed x", "class ordinary 1 2 3", "sizes 1 2 3 4 5", "field 1 2 3 4 5 NaN"] {
            let mut lines = lines.clone();
            lines[at] = damaged;
            assert!(lines.join("\n").parse::<Certificate>().is_err(), "line {at} `{damaged}`");
        }
    }
    assert!(format!("{text}{text}").parse::<Certificate>().is_err());
    assert!("x".repeat(1 << 17).parse::<Certificate>().is_err());
    assert!("".parse::<Certificate>().is_err());
}

#[test]
fn passes_give_equal_graphs() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/filetests");
    let target = support::target();
    for file in std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()) {
        let content = std::fs::read_to_string(&file).unwrap();
        let original = graph(content.split_once("--- ").unwrap().0);
        let mut lowered = original.clone();
        for pass in PIPELINE {
            lowered = (pass.run)(&lowered, &target, &Options::new(Precision::Exact)).unwrap();
        }
        equivalent(&original, &lowered, &EqualityOptions::default())
            .unwrap_or_else(|e| panic!("{}: {e}", file.display()));
    }
}
