//! Functions of single elements.

use super::builder::{KernelGraph, KernelGraphResult, operands, sizes};
use super::error::GraphError;
use yirage_ir::expr::Func;
use yirage_ir::{Expr, ValueId};

macro_rules! unary {
    ($($(#[$doc:meta])* $name:ident = $func:ident;)*) => {
        impl KernelGraph {
            $($(#[$doc])*
            ///
            /// # Errors
            /// A value that is not of this graph.
            pub fn $name(&mut self, a: ValueId) -> KernelGraphResult {
                self.map(stringify!($name), Expr::unary(Func::$func), &[a])
            })*
        }
    };
}

unary! {
    /// `e^A`.
    exp = Exp;
    /// `A / (1 + e^-A)`.
    silu = Silu;
    /// `A / 2 (1 + erf(A / sqrt 2))`.
    gelu = GeluErf;
    /// `max(A, 0)`; NaN stays.
    relu = Relu;
    /// The square root; NaN below 0.
    sqrt = Sqrt;
    /// `A * A`.
    square = Square;
    /// `1 / (1 + e^-A)`.
    sigmoid = Sigmoid;
    /// The natural logarithm; NaN below 0, minus infinity of 0.
    log = Log;
}

macro_rules! binary {
    ($($(#[$doc:meta])* $name:ident = $func:ident;)*) => {
        impl KernelGraph {
            $($(#[$doc])*
            ///
            /// # Errors
            /// Operands of different ranks or element types, and sizes that differ where neither is 1.
            pub fn $name(&mut self, a: ValueId, b: ValueId) -> KernelGraphResult {
                self.meet(stringify!($name), a, b)?;
                self.map(stringify!($name), Expr::binary(Func::$func), &[a, b])
            })*
        }
    };
}

binary! {
    /// `A + B`; a size of 1 meets any other.
    add = Add;
    /// `A - B`; a size of 1 meets any other.
    sub = Sub;
    /// `A * B`; a size of 1 meets any other.
    mul = Mul;
    /// `A / B`; a size of 1 meets any other.
    div = Div;
    /// `A` to the power `B`; a size of 1 meets any other.
    pow = Pow;
}

impl KernelGraph {
    /// `min(max(A, min_val), max_val)`: `max_val` everywhere where it is the smaller bound.
    ///
    /// # Errors
    /// A value that is not of this graph; a bound that is NaN.
    pub fn clamp(&mut self, a: ValueId, min_val: f32, max_val: f32) -> KernelGraphResult {
        for (argument, bound) in [("min_val", min_val), ("max_val", max_val)] {
            if bound.is_nan() {
                return Err(GraphError::Argument { what: "clamp", argument, given: "NaN".into(), wanted: "a number" });
            }
        }
        let bounds = [Expr::input(0), Expr::constant(min_val), Expr::constant(max_val)];
        self.map("clamp", Expr::call(Func::Clamp, &bounds), &[a])
    }

    /// `A * scalar`. The scalar is an f32, whatever A's elements are.
    ///
    /// # Errors
    /// A value that is not of this graph.
    pub fn mul_scalar(&mut self, a: ValueId, scalar: f32) -> KernelGraphResult {
        let expr = Expr::call(Func::Mul, &[Expr::input(0), Expr::constant(scalar)]);
        self.map("mul_scalar", expr, &[a])
    }

    /// The larger of A and B, element by element; NaN where one is NaN.
    pub(super) fn larger(&mut self, a: ValueId, b: ValueId) -> KernelGraphResult {
        self.meet("max", a, b)?;
        self.map("max", Expr::binary(Func::Max), &[a, b])
    }

    /// Checks that two operands meet element by element.
    fn meet(&self, what: &'static str, a: ValueId, b: ValueId) -> Result<(), GraphError> {
        let (x, y) = (self.ty(what, a)?, self.ty(what, b)?);
        if x.shape.len() != y.shape.len() {
            return Err(operands(what, &[x, y], "equal ranks wanted; dimensions of size 1 are written out"));
        }
        let apart = |(m, n): (&u32, &u32)| m != n && *m != 1 && *n != 1;
        match sizes(x).iter().zip(&sizes(y)).position(apart) {
            Some(dim) => Err(operands(what, &[x, y], format!("equal sizes or 1 wanted along dimension {dim}"))),
            None => Ok(()),
        }
    }
}
