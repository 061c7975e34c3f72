//! What a register may be: the vocabulary of computations.

use crate::place::{KernelMemory, Register, Variable};
use crate::scalar::{ScalarConst, ScalarType};

macro_rules! functions {
    ($(#[$about:meta])* $kind:ident { $($(#[$doc:meta])* $variant:ident = $name:literal),* $(,)? }) => {
        $(#[$about])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum $kind { $($(#[$doc])* $variant),* }

        impl $kind {
            /// All of them.
            pub const ALL: &'static [$kind] = &[$($kind::$variant),*];

            /// The name in text forms.
            pub fn name(self) -> &'static str {
                match self { $($kind::$variant => $name),* }
            }

            /// The inverse of the name.
            pub fn parse(name: &str) -> Option<$kind> {
                $kind::ALL.iter().copied().find(|f| f.name() == name)
            }
        }
    };
}

functions! {
    /// A function of one register, whose type it keeps.
    UnaryFunction {
        /// `-x`, of f32 and i32.
        Neg = "neg",
        /// `|x|`, of f32 and i32.
        Abs = "abs",
        /// All bits turned, of i32 and u32; the other one, of bool.
        Not = "not",
        /// The square root, of f32.
        Sqrt = "sqrt",
        /// The largest whole number that is not above, of f32.
        Floor = "floor",
        /// The nearest whole number, ties to even, of f32.
        Round = "round",
        /// How many bits are 1, of u32.
        CountOnes = "count_ones",
    }
}

functions! {
    /// A function of two registers of one type.
    BinaryFunction {
        /// `a + b`.
        Add = "add",
        /// `a - b`.
        Sub = "sub",
        /// `a * b`.
        Mul = "mul",
        /// `a / b`; of whole numbers cut off, where b is not 0.
        Div = "div",
        /// What `a / b` leaves, of whole numbers, where b is not 0.
        Rem = "rem",
        /// The smaller. Of f32 neither may be NaN.
        Min = "min",
        /// The larger. Of f32 neither may be NaN.
        Max = "max",
        /// Bits of both, of whole numbers and bools.
        And = "and",
        /// Bits of either, of whole numbers and bools.
        Or = "or",
        /// Bits of one, of whole numbers and bools.
        Xor = "xor",
        /// `a << b`, b below 32, of u32.
        ShiftLeft = "shl",
        /// `a >> b` with zeros, b below 32, of u32.
        ShiftRight = "shr",
        /// `a < b`: a bool.
        Less = "lt",
        /// `a <= b`: a bool.
        LessEqual = "le",
        /// `a == b`: a bool.
        Equal = "eq",
        /// `a != b`: a bool.
        NotEqual = "ne",
    }
}

functions! {
    /// What the threads of a subgroup make together of a register each. All threads of the group come to it.
    SubgroupFunction {
        /// The sum, of all types but bool; of f32 in an order of the device's own.
        Add = "add",
        /// The largest.
        Max = "max",
        /// The smallest.
        Min = "min",
    }
}

impl BinaryFunction {
    /// Whether it gives a bool of what it compares.
    pub fn compares(self) -> bool {
        use BinaryFunction::{Equal, Less, LessEqual, NotEqual};
        matches!(self, Less | LessEqual | Equal | NotEqual)
    }
}

/// What a register is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Computation {
    /// A constant.
    Const(ScalarConst),
    /// The thread's number in its group: u32.
    Thread,
    /// The group's number along an axis (0, 1 or 2) of the grid: u32.
    Group(u8),
    /// The thread's number in its subgroup: u32.
    SubgroupLane,
    /// How many threads a subgroup has: u32.
    SubgroupSize,
    /// What a variable holds now.
    Get(Variable),
    /// An element of memory.
    Load(KernelMemory, Register),
    /// A function of one.
    Unary(UnaryFunction, Register),
    /// A function of two.
    Binary(BinaryFunction, Register, Register),
    /// The second where the first, a bool, is true, and the third where not. Both are computed.
    Select(Register, Register, Register),
    /// The number as another type: whole numbers and bools become the nearest float, ties to even; floats are cut off to
    /// whole numbers, which must be in the range of the type; whole numbers keep their bits; a bool is 0 or 1, and of a whole
    /// number whether it is not 0. No float becomes a bool.
    Convert(ScalarType, Register),
    /// The same 32 bits as another type.
    Bitcast(ScalarType, Register),
    /// The f16 in the low or, where the flag is set, the high half of a u32: f32, exactly.
    UnpackHalf(Register, bool),
    /// Two f32 as f16, to nearest, ties to even, the first in the low half: u32.
    PackHalf(Register, Register),
    /// What a subgroup makes of it.
    Subgroup(SubgroupFunction, Register),
    /// What the thread of this number in the subgroup has of the first. All threads of the group come to it.
    SubgroupShuffle(Register, Register),
}

impl Computation {
    /// Whether it is the same whenever and wherever the same registers are at hand.
    pub fn is_pure(&self) -> bool {
        !matches!(
            self,
            Computation::Get(_) | Computation::Load(..) | Computation::Subgroup(..) | Computation::SubgroupShuffle(..)
        )
    }

    /// The registers that it reads.
    pub fn operands(&self) -> impl Iterator<Item = Register> {
        let all: [Option<Register>; 3] = match *self {
            Computation::Const(_)
            | Computation::Thread
            | Computation::Group(_)
            | Computation::SubgroupLane
            | Computation::SubgroupSize
            | Computation::Get(_) => [None; 3],
            Computation::Load(_, a)
            | Computation::Unary(_, a)
            | Computation::Convert(_, a)
            | Computation::Bitcast(_, a)
            | Computation::UnpackHalf(a, _)
            | Computation::Subgroup(_, a) => [Some(a), None, None],
            Computation::Binary(_, a, b) | Computation::PackHalf(a, b) | Computation::SubgroupShuffle(a, b) => {
                [Some(a), Some(b), None]
            }
            Computation::Select(a, b, c) => [Some(a), Some(b), Some(c)],
        };
        all.into_iter().flatten()
    }
}
