//! What a certificate says, of which graphs, and that a damaged one is refused.

use super::refused::{compare, graph};
use yirage_search::equal::{Certificate, CertificateError, Class, EqualityOptions, NotEqual, equivalent};

fn gated(rows: usize, width: usize, joined: bool) -> String {
    let head = format!(
        "graph g {{\n input %x: f32[{rows}, {width}]\n weight %a: f32[{width}, {width}]\n weight %b: f32[{width}, {width}]\n"
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
fn names_do_not_count_but_which_input_is_which_does() {
    let of = |x: &str, y: &str, first: &str, second: &str| {
        let nodes = format!("%d = map{{expr=\"sub(x0, x1)\"}}(%{first}, %{second}): f32[4]");
        graph(&format!("graph g {{ input %{x}: f32[4] input %{y}: f32[4] {nodes} output %d }}"))
    };
    let (a, b) = (of("x", "y", "x", "y"), of("x", "y", "x", "y"));
    let certificate = equivalent(&a, &b, &EqualityOptions::default()).unwrap();
    certificate.check(&of("p", "q", "p", "q"), &of("p", "q", "p", "q")).unwrap();
    // The same two texts, of which one calls its inputs the other way round: p - q and q - p.
    let turned = of("q", "p", "q", "p");
    assert!(equivalent(&of("p", "q", "p", "q"), &turned, &EqualityOptions::default()).is_err());
    let refused = certificate.check(&of("p", "q", "p", "q"), &turned);
    assert!(matches!(refused, Err(CertificateError::Foreign { which: "candidate", .. })), "{refused:?}");
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
