//! How kernels go about products: what differs in speed from processor to processor, and never in bytes.

use crate::isa::{Isa, IsaError};
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// The choices of a device, as text in the form of [`MatmulVariant::NAMES`], such as `fetch=8K,many=pairs,share=drained`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct MatmulVariant {
    /// How many bytes ahead of the weights in use others are asked for, with few tokens; with 0 the hardware is left alone.
    pub fetch: usize,
    /// The same with many tokens.
    pub stream: usize,
    /// Tokens up to which a tile is cut into powers of two, whose sums the registers hold.
    pub few: usize,
    /// The same with weights of more than 6 bits.
    pub few8: usize,
    /// Panels that few tokens meet in turns, each a stream of memory.
    pub panels: usize,
    /// Where the operands of a full tile are that comes alone; [`TokenTileKernel::Winograd`] is `Pairs` here, and refused in a text.
    pub lone: TokenTileKernel,
    /// Where those of several full tiles are.
    pub many: TokenTileKernel,
    /// Full tiles of tokens that meet a panel before the next panel.
    pub together: usize,
    /// Bytes of weights that are read from memory together and then serve all tokens from the second-level cache.
    pub group: usize,
    /// Bytes of weights that a worker takes at once with few tokens.
    pub piece: usize,
    /// How the pieces of a product are shared.
    pub share: MatmulSchedule,
}

/// Where the operands of full tiles of tokens are that meet a panel, with AVX-512 and 8-bit activations.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum TokenTileKernel {
    /// The codes of two tiles of rows in registers, sums in the first-level cache: a number of a token is loaded for two
    /// products. For processors that start more products in a cycle than they load.
    Pairs,
    /// The codes of one tile of rows and all sums in registers, numbers of tokens as memory operands.
    Single,
    /// The codes of a tile of rows and the numbers of tokens in the matrix registers of AMX, sums in vector registers.
    Matrix,
    /// Half the multiplications and additions in their place, with codes of 4 bits and one scale a block; `Pairs` with
    /// others.
    Winograd,
}

/// How the pieces of a product are shared among workers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum MatmulSchedule {
    /// Workers take pieces from a list until it is empty.
    Dynamic,
    /// Each worker has an even part, in the order of memory.
    Static,
}

/// Why a text is no variant.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum VariantError {
    /// No such choice.
    #[error("`{0}` is none of the choices {names}", names = MatmulVariant::NAMES.join(", "))]
    Name(String),
    /// A value that the choice does not have.
    #[error("{name}={value}: {allowed}")]
    Value {
        /// The choice.
        name: &'static str,
        /// What was given.
        value: String,
        /// What it may be.
        allowed: &'static str,
    },
}

/// Most tiles of tokens that meet a panel together: how much room there is for their sums.
pub(crate) const MOST_TOGETHER: usize = 4;

/// Most panels that few tokens meet in turns: how much room there is for their sums.
pub(crate) const MOST_PANELS: usize = 2;

/// What all levels begin with.
const COMMON: MatmulVariant = MatmulVariant {
    fetch: 0,
    stream: 0,
    few: 4,
    few8: 7,
    panels: 1,
    lone: TokenTileKernel::Pairs,
    many: TokenTileKernel::Pairs,
    together: MOST_TOGETHER,
    group: 256 << 10,
    piece: 64 << 10,
    share: MatmulSchedule::Dynamic,
};

const DISTANCE: &str = "a multiple of 64 bytes, 64K at most, as in 8K";
const FEW: &str = "4 to 15 tokens";
const PANELS: &str = "1 or 2 panels";
const TOGETHER: &str = "1 to 4 tiles";
const BYTES: &str = "4K to 16384K bytes";

impl MatmulVariant {
    /// The choices, in the order of a text.
    pub const NAMES: [&'static str; 11] =
        ["fetch", "stream", "few", "few8", "panels", "lone", "many", "together", "group", "piece", "share"];

    /// What suits the processors of a level that nobody has measured. On Zen 3 (AVX2) distances of 1 to 4 KiB are equally
    /// good; on Zen 5 (AVX-512) 8 to 16 KiB are, with 2 KiB four tokens do half as much, with nothing a third.
    pub fn of_level(isa: Isa) -> MatmulVariant {
        let distance = match isa.vectors() {
            Isa::Avx512 => 8 << 10,
            Isa::Avx2 => 2 << 10,
            // Kernels of other levels ask for nothing.
            _ => 0,
        };
        let many = if isa == Isa::Amx { TokenTileKernel::Matrix } else { TokenTileKernel::Pairs };
        MatmulVariant { fetch: distance, stream: distance, many, ..COMMON }
    }

    /// This one with the choices that `text` makes, `NAME=VALUE` with commas between them.
    ///
    /// # Errors
    /// [`VariantError`]: the first choice that does not exist, or value that it does not have.
    pub fn with(mut self, text: &str) -> Result<MatmulVariant, VariantError> {
        for choice in text.split(',').map(str::trim).filter(|choice| !choice.is_empty()) {
            let (name, value) = choice.split_once('=').unwrap_or((choice, ""));
            let known = MatmulVariant::NAMES.into_iter().find(|n| *n == name.trim());
            self.set(known.ok_or_else(|| VariantError::Name(name.trim().to_owned()))?, value.trim())?;
        }
        Ok(self)
    }

    /// Checks that this CPU has what the choices compute with.
    ///
    /// # Errors
    /// [`IsaError::Unavailable`].
    pub fn require(&self) -> Result<(), IsaError> {
        if self.many == TokenTileKernel::Matrix || self.lone == TokenTileKernel::Matrix {
            Isa::Amx.require()?;
        }
        Ok(())
    }

    fn set(&mut self, name: &'static str, value: &str) -> Result<(), VariantError> {
        let bad = |allowed| VariantError::Value { name, value: value.to_owned(), allowed };
        let number = |least: usize, most: usize, step: usize, allowed| {
            let number = bytes(value).filter(|n| (least..=most).contains(n) && n.is_multiple_of(step));
            number.ok_or_else(|| bad(allowed))
        };
        match name {
            "fetch" => self.fetch = number(0, 64 << 10, 64, DISTANCE)?,
            "stream" => self.stream = number(0, 64 << 10, 64, DISTANCE)?,
            "few" => self.few = number(4, 15, 1, FEW)?,
            "few8" => self.few8 = number(4, 15, 1, FEW)?,
            "panels" => self.panels = number(1, MOST_PANELS, 1, PANELS)?,
            "lone" => match value.parse() {
                Ok(TokenTileKernel::Winograd) | Err(()) => return Err(bad("pairs, single or matrix")),
                Ok(lone) => self.lone = lone,
            },
            "many" => self.many = value.parse().map_err(|()| bad("pairs, single, matrix or winograd"))?,
            "together" => self.together = number(1, MOST_TOGETHER, 1, TOGETHER)?,
            "group" => self.group = number(4 << 10, 16 << 20, 1, BYTES)?,
            "piece" => self.piece = number(4 << 10, 16 << 20, 1, BYTES)?,
            _ => self.share = value.parse().map_err(|()| bad("drained or static"))?,
        }
        Ok(())
    }
}

/// A number of bytes, or of KiB with a `K` behind it.
fn bytes(text: &str) -> Option<usize> {
    match text.strip_suffix('K') {
        Some(kib) => kib.parse::<usize>().ok()?.checked_mul(1024),
        None => text.parse().ok(),
    }
}

/// [`bytes`] as text.
struct ByteSize(usize);

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            n if n > 0 && n.is_multiple_of(1024) => write!(f, "{}K", n / 1024),
            n => write!(f, "{n}"),
        }
    }
}

impl fmt::Display for MatmulVariant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let share = if self.share == MatmulSchedule::Dynamic { "drained" } else { "static" };
        write!(
            f,
            "fetch={},stream={},few={},few8={},panels={},lone={},many={},together={},group={},piece={},share={share}",
            ByteSize(self.fetch),
            ByteSize(self.stream),
            self.few,
            self.few8,
            self.panels,
            self.lone,
            self.many,
            self.together,
            ByteSize(self.group),
            ByteSize(self.piece)
        )
    }
}

impl fmt::Display for TokenTileKernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TokenTileKernel::Pairs => "pairs",
            TokenTileKernel::Single => "single",
            TokenTileKernel::Matrix => "matrix",
            TokenTileKernel::Winograd => "winograd",
        })
    }
}

impl FromStr for TokenTileKernel {
    type Err = ();

    fn from_str(text: &str) -> Result<TokenTileKernel, ()> {
        match text {
            "pairs" => Ok(TokenTileKernel::Pairs),
            "single" => Ok(TokenTileKernel::Single),
            "matrix" => Ok(TokenTileKernel::Matrix),
            "winograd" => Ok(TokenTileKernel::Winograd),
            _ => Err(()),
        }
    }
}

impl FromStr for MatmulSchedule {
    type Err = ();

    fn from_str(text: &str) -> Result<MatmulSchedule, ()> {
        match text {
            "drained" => Ok(MatmulSchedule::Dynamic),
            "static" => Ok(MatmulSchedule::Static),
            _ => Err(()),
        }
    }
}
