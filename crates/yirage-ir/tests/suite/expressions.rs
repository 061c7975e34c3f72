//! Expressions: their text, their one form, what they compute when put into each other, and how far off they may be.

use yirage_ir::expr::{Bounded, Func, MAX_TERMS, Scalar, Term};
use yirage_ir::rng::Rng;
use yirage_ir::{DType, Expr, Format};

const FLOATS: [f32; 12] =
    [0.0, -0.0, 1.0, -1.5, 0.1, 3e38, -1e-40, 1e-45, 7.25, f32::INFINITY, f32::NEG_INFINITY, f32::NAN];

/// An expression of floats that reads `inputs` inputs.
fn random(rng: &mut Rng, inputs: u32) -> Expr {
    let mut pool: Vec<Expr> = (0..inputs).map(Expr::input).collect();
    for _ in 0..1 + rng.below(10) {
        let pick = |rng: &mut Rng, pool: &[Expr]| rng.choose(pool).clone();
        let made = match (rng.below(8), *rng.choose(Func::ALL)) {
            (0, _) => Expr::constant(*rng.choose(&FLOATS)),
            (1, _) => pick(rng, &pool).cast((*rng.choose(&[Format::F16, Format::BF16])).into()),
            (2, _) => pick(rng, &pool).cast(DType::I32).cast(DType::F32),
            (_, Func::Less | Func::LessEqual | Func::Equal | Func::NotEqual | Func::Select) => {
                let [a, b, c, d] = std::array::from_fn(|_| pick(rng, &pool));
                Expr::call(Func::Select, &[Expr::call(Func::Less, &[a, b]), c, d])
            }
            (_, func) => {
                let args: Vec<Expr> = (0..func.arity()).map(|_| pick(rng, &pool)).collect();
                Expr::call(func, &args)
            }
        };
        pool.push(made);
    }
    let last = pool[pool.len() - 1].clone();
    (0..inputs).fold(last, |e, i| Expr::call(Func::Add, &[e, Expr::input(i)]))
}

fn values(rng: &mut Rng, inputs: u32) -> Vec<Scalar> {
    let value = |rng: &mut Rng| if rng.one_in(4) { *rng.choose(&FLOATS) } else { 4.0 * rng.signed_f32() };
    (0..inputs).map(|_| value(rng).into()).collect()
}

#[test]
fn texts_round_trip() {
    let mut rng = Rng::new(1);
    for _ in 0..3000 {
        let inputs = 1 + rng.below(4) as u32;
        let expr = random(&mut rng, inputs);
        expr.infer(&vec![DType::F32; inputs as usize]).unwrap();
        let text = expr.to_string();
        assert_eq!(text.parse::<Expr>().unwrap(), expr, "{text}");
    }
    for value in FLOATS {
        let scalar = Scalar::from(value);
        assert_eq!(scalar.to_string().parse::<Scalar>().unwrap(), scalar, "{value}");
        let expr = Expr::call(Func::Add, &[Expr::input(0), Expr::constant(value)]);
        assert_eq!(expr.to_string().parse::<Expr>().unwrap(), expr);
    }
    // Of all NaN there is one.
    let odd = Expr::constant(Scalar::F32(f32::from_bits(0xffc0_1234).into()));
    assert_eq!(odd, Expr::constant(f32::NAN));
}

#[test]
fn equal_expressions_print_equally() {
    let short: Expr = "sub(exp(x1), exp(x0))".parse().unwrap();
    for other in [
        "a = exp(x0); b = exp(x1); sub(b, a)",
        "unread = log(x2); t9 = exp(x1); sub(t9, exp(x0))",
        "sub( exp(x1),exp(x0) )",
    ] {
        let expr: Expr = other.parse().unwrap();
        assert_eq!((&expr, expr.to_string()), (&short, short.to_string()), "{other}");
    }
    // Put together in another order.
    let outer: Expr = "a = neg(x1); sub(x0, a)".parse().unwrap();
    let put = outer.substitute(|i| Expr::call(Func::Exp, &[Expr::input(i)]));
    assert_eq!(put, "sub(exp(x0), neg(exp(x1)))".parse().unwrap());
}

#[test]
fn substituting_is_evaluating_one_after_the_other() {
    let mut rng = Rng::new(2);
    for _ in 0..2000 {
        let (outer, inner) = (random(&mut rng, 2), [random(&mut rng, 3), random(&mut rng, 2)]);
        let ins = values(&mut rng, 3);
        let between = inner.each_ref().map(|e| e.eval(&ins));
        let at_once = outer.substitute(|i| inner[i as usize].clone());
        let (a, b) = (at_once.eval(&ins), outer.eval(&between));
        assert_eq!(a, b, "{outer} of {} and {} at {ins:?}", inner[0], inner[1]);
    }
}

#[test]
fn what_is_no_expression_is_an_error() {
    let deep = format!("{}x0{}", "neg(".repeat(100_000), ")".repeat(100_000));
    let wide: String = (0..100_000).map(|i| format!("t{i} = add(x0, {i}.0); ")).collect();
    // Each name is the square of the one before: 2^60 reads of x0 if written out.
    let doubled: String = (1..60).map(|i| format!("t{i} = mul(t{}, t{0}); ", i - 1)).collect();
    let doubled = format!("t0 = square(x0); {doubled} t59");
    let parsed: Expr = doubled.parse().unwrap();
    assert!(parsed.terms().len() < 70 && parsed.to_string().len() < 2000);
    for text in [
        "",
        ";",
        "x",
        "x-1",
        "x99999999999",
        "y",
        "add(x0)",
        "add(x0, x1, x2)",
        "add(x0 x1)",
        "add(x0, x1",
        "add x0",
        "neg(x0))",
        "neg(x0) neg(x0)",
        "t = neg(x0)",
        "t = neg(x0);",
        "= neg(x0); x0",
        "x1 = neg(x0); x1",
        "1.0 = x0; x0",
        "t = x0; t = x1; t",
        "a b = x0; x0",
        "cast.f99(x0)",
        "cast.(x0)",
        "cast.f32(x0, x1)",
        "nosuch(x0)",
        "1e",
        "--1",
        "select()",
        ",",
        "(x0)",
        "neg(,)",
        "\u{e9}(x0)",
        &deep,
        &wide,
    ] {
        assert!(text.parse::<Expr>().is_err(), "`{text:.60}` is an expression");
    }
    let f32s = |n| vec![DType::F32; n];
    for (text, inputs) in [
        ("add(x0, x2)", f32s(3)),
        ("x16", f32s(17)),
        ("x4294967295", f32s(1)),
        ("cast.q4_k(x0)", f32s(1)),
        ("cast.i8(x0)", f32s(1)),
        ("x0", vec![DType::Stored(Format::Q4_K)]),
        ("x0", vec![DType::I8]),
        ("neg(x0)", vec![DType::U32]),
        ("exp(x0)", vec![DType::I32]),
        ("add(x0, x1)", vec![DType::F32, DType::I32]),
        ("add(x0, 1.0)", vec![DType::I32]),
        ("select(x0, x0, x0)", f32s(1)),
        ("lt(x0, x0)", vec![DType::Bool]),
    ] {
        let expr: Expr = text.parse().unwrap();
        assert!(expr.infer(&inputs).is_err(), "{text} of {inputs:?}");
    }
    let many = (0..MAX_TERMS).fold(Expr::input(0), |e, _| Expr::call(Func::Neg, &[e]));
    assert!(many.infer(&f32s(1)).is_err() && many.to_string().parse::<Expr>().is_err());
}

#[test]
fn spoilt_texts_never_panic() {
    let mut rng = Rng::new(3);
    let pieces =
        ["x0", "x1", "add(", ")", ", ", "; ", "t0 = ", "cast.f16(", "1.5", "-inf", "NaN", "3i", "lt(", "=", "\u{3bb}"];
    for _ in 0..20_000 {
        let text: String = (0..rng.below(14)).map(|_| *rng.choose(&pieces)).collect();
        if let Ok(expr) = text.parse::<Expr>() {
            assert_eq!(expr.to_string().parse::<Expr>().unwrap(), expr, "{text}");
            let _ = expr.infer(&[DType::F32, DType::I32]);
        }
    }
}

/// A device that is as far off as each function may be.
fn device(expr: &Expr, ins: &[Scalar], rng: &mut Rng) -> f64 {
    let mut values: Vec<Scalar> = Vec::new();
    for term in expr.terms() {
        let value = match *term {
            Term::Input(i) => ins[i as usize],
            Term::Const(value) => value,
            Term::Cast(to, x) => values[x as usize].cast(to),
            Term::Call(func, args) => {
                let args: Vec<Expr> =
                    args[..func.arity()].iter().map(|&a| Expr::constant(values[a as usize])).collect();
                let value = Expr::call(func, &args).eval(&[]);
                let (abs, rel) = func.tolerance();
                // Which zero these give is left open.
                let open = matches!(func, Func::Min | Func::Max | Func::Clamp | Func::Relu);
                let value = match value {
                    Scalar::F32(x) if open && x.0 == 0.0 && rng.below(2) == 0 => Scalar::from(-x.0),
                    value => value,
                };
                let off = 0.9 * f64::from(rng.signed_f32()) * (abs + rel * value.as_f64().abs());
                if off.is_finite() && off != 0.0 { Scalar::from((value.as_f64() + off) as f32) } else { value }
            }
        };
        values.push(value);
    }
    values[values.len() - 1].as_f64()
}

#[test]
fn a_device_stays_within_the_bound() {
    let mut rng = Rng::new(4);
    let (mut known, mut exact) = (0, 0);
    for _ in 0..20_000 {
        let inputs = 1 + rng.below(3) as u32;
        let (expr, ins) = (random(&mut rng, inputs), values(&mut rng, inputs));
        let bounded: Vec<Bounded> = ins.iter().map(|&x| x.into()).collect();
        let bound = expr.bound(&bounded);
        assert_eq!(bound.value, expr.eval(&ins), "{expr}");
        if bound.within == f64::INFINITY {
            continue;
        }
        known += 1;
        exact += usize::from(bound.within == 0.0);
        let (got, want) = (device(&expr, &ins, &mut rng), bound.value.as_f64());
        let same = got == want || (got.is_nan() && want.is_nan());
        assert!(same || (got - want).abs() <= bound.within, "{expr} at {ins:?}: {got}, {bound:?}");
    }
    assert!(known > 12_000 && exact < known, "{known} known, {exact} exact");
}

#[test]
fn nobody_divides_by_a_zero_whose_sign_is_open() {
    let expr: Expr = "recip(mul(add(x0, relu(x2)), x1))".parse().unwrap();
    let zero: Bounded = Scalar::from(-0.0f32).into();
    assert_eq!(expr.bound(&[zero, zero, zero]).within, f64::INFINITY);
    let expr: Expr = "recip(div(relu(x0), x1))".parse().unwrap();
    let two: Bounded = Scalar::from(2.0f32).into();
    assert_eq!(expr.bound(&[zero, two]).within, f64::INFINITY);
}
