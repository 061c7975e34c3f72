//! What makes a region tiled, as attributes: exact both ways.
//!
//! `{grid="[4, 1, 1]", loops=16, ins="[0 - - loop 1, - - -]", outs="[0 - -]", accumulate="[continue, rescaled 2]",
//! running="[]", reads="[1]"}`: a number is a dimension, `-` none.

use super::{Accumulate, TileIn, TileOut, Tiled};
use crate::attr::{AttrError, AttrValue, List, take};
use crate::graph::Graph;
use std::fmt;
use std::str::FromStr;

impl Tiled {
    /// Names and values of all but the block's graph.
    pub fn attrs(&self) -> Vec<(&'static str, String)> {
        let list = |items: &[u32]| List(items.to_vec()).to_string();
        vec![
            ("grid", list(&self.grid)),
            ("loops", self.loops.to_string()),
            ("ins", List(self.ins.clone()).to_string()),
            ("outs", List(self.outs.clone()).to_string()),
            ("accumulate", List(self.accumulators.clone()).to_string()),
            ("running", list(&self.running)),
            ("reads", list(&self.reads)),
        ]
    }

    /// The inverse of [`Tiled::attrs`].
    ///
    /// # Errors
    /// An attribute that is missing, unknown, or does not parse.
    pub fn from_attrs(mut list: Vec<(String, String)>, block: Graph) -> Result<Tiled, AttrError> {
        let grid: List<u32> = take(&mut list, "grid")?;
        let bad = |_| AttrError::Bad { name: "grid", value: grid.to_string() };
        let tiled = Tiled {
            grid: <[u32; 3]>::try_from(grid.0.as_slice()).map_err(bad)?,
            loops: take(&mut list, "loops")?,
            ins: take::<List<TileIn>>(&mut list, "ins")?.0,
            outs: take::<List<TileOut>>(&mut list, "outs")?.0,
            accumulators: take::<List<Accumulate>>(&mut list, "accumulate")?.0,
            running: take::<List<u32>>(&mut list, "running")?.0,
            reads: take::<List<u32>>(&mut list, "reads")?.0,
            block,
        };
        match list.pop() {
            Some((name, _)) => Err(AttrError::Unknown(name)),
            None => Ok(tiled),
        }
    }
}

impl AttrValue for List<TileIn> {}
impl AttrValue for List<TileOut> {}
impl AttrValue for List<Accumulate> {}

fn print_grid(grid: &[Option<u32>; 3]) -> String {
    grid.map(|dim| dim.map_or_else(|| "-".into(), |dim| dim.to_string())).join(" ")
}

fn parse_grid(text: &str) -> Result<[Option<u32>; 3], ()> {
    let dim = |word: &str| if word == "-" { Ok(None) } else { word.parse().map(Some).map_err(|_| ()) };
    let dims = text.split_whitespace().map(dim).collect::<Result<Vec<_>, ()>>()?;
    dims.try_into().map_err(|_| ())
}

impl fmt::Display for TileIn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&print_grid(&self.grid))?;
        self.by_loop.map_or(Ok(()), |dim| write!(f, " loop {dim}"))
    }
}

impl FromStr for TileIn {
    type Err = ();
    fn from_str(text: &str) -> Result<TileIn, ()> {
        let Some((grid, dim)) = text.split_once("loop") else {
            return Ok(TileIn { grid: parse_grid(text)?, by_loop: None });
        };
        Ok(TileIn { grid: parse_grid(grid)?, by_loop: Some(dim.trim().parse().map_err(|_| ())?) })
    }
}

impl fmt::Display for TileOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&print_grid(&self.grid))
    }
}

impl FromStr for TileOut {
    type Err = ();
    fn from_str(text: &str) -> Result<TileOut, ()> {
        Ok(TileOut { grid: parse_grid(text)? })
    }
}

impl fmt::Display for Accumulate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Accumulate::Sum => f.write_str("sum"),
            Accumulate::Max => f.write_str("max"),
            Accumulate::Rescaled { by } => write!(f, "rescaled {by}"),
            Accumulate::Continue => f.write_str("continue"),
        }
    }
}

impl FromStr for Accumulate {
    type Err = ();
    fn from_str(text: &str) -> Result<Accumulate, ()> {
        match text.split_once(' ') {
            None if text == "sum" => Ok(Accumulate::Sum),
            None if text == "max" => Ok(Accumulate::Max),
            None if text == "continue" => Ok(Accumulate::Continue),
            Some(("rescaled", by)) => Ok(Accumulate::Rescaled { by: by.trim().parse().map_err(|_| ())? }),
            _ => Err(()),
        }
    }
}
