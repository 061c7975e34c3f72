//! Where everything lies: boxes in rows, edges from row to row.
//!
//! A diagram is laid out on its own, its regions before it. Rows come from the longest way to each box, their order from
//! crossing edges, the places in a row from the boxes above and below.

mod order;
mod place;
mod rows;

use super::diagram::{Box, BoxKind, Diagram};
use thiserror::Error;

/// Most places that the boxes and edges of one diagram may take in its rows.
pub const MAX_PLACES: usize = 1 << 18;

/// A graph whose picture would be too large.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error(
    "the picture would have {boxes} boxes and edges through more than {MAX_PLACES} places; the DOT form has no limit"
)]
pub struct TooLarge {
    /// Boxes of the diagram that is too large.
    pub boxes: usize,
}

/// A diagram with places, from its own top left corner.
pub(super) struct DiagramLayout {
    pub(super) width: f64,
    pub(super) height: f64,
    /// Those of the diagram's boxes, and boxes that show an input again near a reader.
    pub(super) boxes: Vec<PositionedBox>,
    /// Each a line through these points.
    pub(super) edges: Vec<Vec<(f64, f64)>>,
}

/// A box with its place.
pub(super) struct PositionedBox {
    /// Which box of the diagram.
    pub(super) shows: usize,
    pub(super) left: f64,
    pub(super) top: f64,
    pub(super) width: f64,
    pub(super) height: f64,
    pub(super) inside: Option<DiagramLayout>,
}

/// Width of a character of the title and of the lines below it, in the fonts of the picture.
pub(super) const TITLE: f64 = 7.3;
pub(super) const SMALL: f64 = 6.1;
/// Height of a line.
pub(super) const LINE: f64 = 15.0;
/// Room around the inside of a frame, and for its title.
pub(super) const PAD: f64 = 14.0;
pub(super) const HEAD: f64 = 22.0;
/// Room between rows.
pub(super) const GAP: f64 = 34.0;

/// A box whose size is known.
pub(super) struct Sized {
    pub(super) shows: usize,
    pub(super) width: f64,
    pub(super) height: f64,
    pub(super) inside: Option<DiagramLayout>,
    /// Where edges begin and end, from the middle of the box; none where they spread over its side.
    pub(super) ins: Option<Vec<f64>>,
    pub(super) outs: Option<Vec<f64>>,
    /// An input that may be shown again near its readers.
    pub(super) repeats: bool,
}

/// The layout of a diagram, whose ports are its first and last row if it is the inside of a region.
pub(super) fn layout(diagram: &Diagram) -> Result<DiagramLayout, TooLarge> {
    let boxes = diagram.boxes.iter().enumerate().map(|(at, shown)| sized(at, shown)).collect::<Result<Vec<_>, _>>()?;
    let rows = rows::rows(diagram, boxes)?;
    let rows = order::ordered(rows);
    Ok(place::position_boxes(rows))
}

fn sized(at: usize, shown: &Box) -> Result<Sized, TooLarge> {
    let repeats = matches!(shown.kind, BoxKind::StepInput | BoxKind::Weight | BoxKind::KvCache);
    let Some(inside) = &shown.inside else {
        let title = shown.title.chars().count() as f64 * TITLE;
        let lines = shown.lines.iter().map(|line| line.chars().count() as f64 * SMALL);
        let width = lines.fold(title, f64::max).max(24.0) + 20.0;
        let height = match shown.kind {
            BoxKind::Port => LINE + 4.0,
            _ => LINE * (1 + shown.lines.len()) as f64 + 10.0,
        };
        return Ok(Sized { shows: at, width, height, inside: None, ins: None, outs: None, repeats });
    };
    let laid = layout(&inside.diagram)?;
    let title = shown.title.chars().count() as f64 * TITLE + 2.0 * PAD;
    let (width, height) = ((laid.width + 2.0 * PAD).max(title), laid.height + HEAD + PAD);
    // The inside lies in the middle of the frame.
    let middle = |port: &usize| {
        let place = laid.boxes.iter().find(|place| place.shows == *port);
        place.map_or(0.0, |place| place.left + place.width / 2.0 - laid.width / 2.0)
    };
    let (ins, outs) = (inside.ins.iter().map(middle).collect(), inside.outs.iter().map(middle).collect());
    Ok(Sized { shows: at, width, height, inside: Some(laid), ins: Some(ins), outs: Some(outs), repeats })
}
