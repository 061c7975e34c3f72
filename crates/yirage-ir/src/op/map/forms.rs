//! The expressions of models, by name.

use super::Map;
use crate::expr::{Expr, Func};

fn of_input(func: Func, c: f32) -> Expr {
    Expr::call(func, &[Expr::input(0), Expr::constant(c)])
}

impl Map {
    /// A function of as many inputs as it has arguments.
    pub fn of(func: Func) -> Map {
        let args: Vec<Expr> = (0..func.arity() as u32).map(Expr::input).collect();
        Map { expr: Expr::call(func, &args) }
    }

    /// `x * c`.
    pub fn scale(c: f32) -> Map {
        Map { expr: of_input(Func::Mul, c) }
    }

    /// `tanh(x / c) * c`: nearly x where x is small, never past c.
    pub fn softcap(c: f32) -> Map {
        let tanh = Expr::call(Func::Tanh, &[of_input(Func::Div, c)]);
        Map { expr: Expr::call(Func::Mul, &[tanh, Expr::constant(c)]) }
    }

    /// `1 / sqrt(x + c)`.
    pub fn inverse_root(c: f32) -> Map {
        let root = Expr::call(Func::Sqrt, &[of_input(Func::Add, c)]);
        Map { expr: Expr::call(Func::Recip, &[root]) }
    }

    /// `func(gate) * up`: a gated linear unit (Shazeer, 2020).
    pub fn gated(func: Func) -> Map {
        Map { expr: Expr::call(Func::Mul, &[Expr::unary(func), Expr::input(1)]) }
    }

    /// `(up + 1) * gate * sigmoid(1.702 gate)`, the gate at most 7 and up within 7 of 0 (gpt-oss).
    pub fn clipped_gate() -> Map {
        let seven = Expr::constant(7.0);
        let gate = Expr::call(Func::Min, &[Expr::input(0), seven.clone()]);
        let up = Expr::call(Func::Clamp, &[Expr::input(1), Expr::constant(-7.0), seven]);
        let open = Expr::call(Func::Mul, &[gate.clone(), Expr::constant(1.702)]);
        let above = Expr::call(Func::Add, &[up, Expr::constant(1.0)]);
        let product = Expr::call(Func::Mul, &[above, gate]);
        Map { expr: Expr::call(Func::Mul, &[product, Expr::call(Func::Sigmoid, &[open])]) }
    }
}
