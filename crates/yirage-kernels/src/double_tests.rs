//! Numbers of 64 bits in words, against those of processors, by the interpreter.

use crate::double::*;
use crate::wide::Wide;
use yirage_kir::interpret::{InterpretedKernel, InterpreterSettings};
use yirage_kir::{BufferAccess, BufferOwnership};
use yirage_kir::{KernelWriter, Register, ScalarType};

/// What a function of two numbers gives on a device.
fn run(of: impl FnOnce(&mut KernelWriter, Wide, Wide) -> Wide, a: u64, b: u64) -> u64 {
    let mut w = KernelWriter::new("two", 1);
    let words = w.buffer("words", ScalarType::U32, BufferAccess::ReadWrite, BufferOwnership::Own);
    let [a_low, a_high, b_low, b_high] = [0, 1, 2, 3].map(|at| {
        let at = w.u32(at);
        w.load(words, at)
    });
    let made = of(&mut w, [a_low, a_high], [b_low, b_high]);
    for (at, word) in (4..).zip(made) {
        let at = w.u32(at);
        w.store(words, at, word);
    }
    let mut words = [a as u32, (a >> 32) as u32, b as u32, (b >> 32) as u32, 0, 0];
    let kernel = InterpretedKernel::new(w.finish()).unwrap();
    kernel.run([1; 3], &mut [&mut words], &InterpreterSettings::default()).unwrap();
    u64::from(words[4]) | u64::from(words[5]) << 32
}

fn numbers() -> Vec<f64> {
    let mut numbers = vec![0.0, 1.0, 0.5, 3.0, f64::from(1.1f32), 1e-30, 1e9, 1.0 / 3.0, 0.1, 1.0 - 2f64.powi(-53)];
    let mut bits = 0x9e37_79b9_7f4a_7c15u64;
    for _ in 0..40 {
        bits = bits.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let exponent = 1023 - (bits >> 20 & 31) + 8;
        numbers.push(f64::from_bits(exponent << 52 | bits >> 12));
    }
    numbers
}

#[test]
fn doubles_are_rounded_as_processors_round_them() {
    for a in numbers() {
        for b in numbers() {
            let (x, y) = (a.to_bits(), b.to_bits());
            let of = |bits: u64| f64::from_bits(bits);
            assert_eq!(of(run(add, x, y)), a + b, "{a:e} + {b:e}");
            assert_eq!(of(run(mul, x, y)), a * b, "{a:e} * {b:e}");
            if b <= a {
                assert_eq!(of(run(sub, x, y)), a - b, "{a:e} - {b:e}");
            }
        }
    }
}

#[test]
fn numbers_become_others_as_processors_make_them() {
    for a in numbers() {
        let bits = a.to_bits();
        let none = |x: u64| x;
        assert_eq!(run(|w, a, _| ceil(w, a), bits, 0), a.ceil() as u64, "{a:e}");
        assert_eq!(f64::from_bits(run(|w, a, _| of_wide(w, a), bits, 0)), none(bits) as f64, "{bits}");
        let narrow = run(|w, a, _| [w_bits(w, a), a[1]], bits, 0) as u32;
        assert_eq!(f32::from_bits(narrow), a as f32, "{a:e}");
        let wide = f32::from_bits(a.abs().to_bits() as u32 & 0x3fff_ffff | 0x2000_0000);
        let made = run(
            |w, a, _| {
                let x = w.bitcast(ScalarType::F32, a[0]);
                of_f32(w, x)
            },
            u64::from(wide.to_bits()),
            0,
        );
        assert_eq!(f64::from_bits(made), f64::from(wide), "{wide:e}");
        if a >= 1.0 {
            let made = f64::from_bits(run(|w, a, _| crate::double_log::ln(w, a), bits, 0));
            assert!((made - a.ln()).abs() <= 2e-16 * a.ln(), "ln {a:e}: {made:e}, {:e}", a.ln());
        }
    }
}

fn w_bits(w: &mut KernelWriter, a: Double) -> Register {
    let x = to_f32(w, a);
    w.bitcast(ScalarType::U32, x)
}
