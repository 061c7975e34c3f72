//! Which row each box stands in, and the ways of edges through the rows between.

use super::super::diagram::{BoxKind, Diagram};
use super::{MAX_PLACES, Sized, TooLarge};

/// What stands in rows: boxes, and places where edges pass.
pub(super) struct DiagramRows {
    pub(super) vertices: Vec<Vertex>,
    /// The vertices of each row, from left to right.
    pub(super) rows: Vec<Vec<usize>>,
    /// Edges as the vertices they lead through, each in the row below the one before.
    pub(super) paths: Vec<EdgePath>,
}

/// A box, or none where an edge passes.
pub(super) struct Vertex {
    pub(super) shown: Option<Sized>,
    pub(super) row: usize,
}

impl Vertex {
    pub(super) fn width(&self) -> f64 {
        self.shown.as_ref().map_or(8.0, |shown| shown.width)
    }

    pub(super) fn height(&self) -> f64 {
        self.shown.as_ref().map_or(0.0, |shown| shown.height)
    }
}

/// An edge.
pub(super) struct EdgePath {
    pub(super) through: Vec<usize>,
    /// Where it begins and ends, from the middle of its boxes; none where that is to be chosen.
    pub(super) begin: Option<f64>,
    pub(super) end: Option<f64>,
}

/// Rows between an input and a reader from which on the input is shown again.
const FAR: usize = 3;

pub(super) fn rows(diagram: &Diagram, boxes: Vec<Sized>) -> Result<DiagramRows, TooLarge> {
    let count = boxes.len();
    let of_box = row_of_each(diagram);
    let mut vertices: Vec<Vertex> =
        boxes.into_iter().zip(&of_box).map(|(shown, &row)| Vertex { shown: Some(shown), row }).collect();
    let mut ways = Vec::with_capacity(diagram.edges.len());
    // Inputs that are shown again: the vertex nearest above each reader.
    let mut again: Vec<Vec<usize>> = (0..count).map(|at| vec![at]).collect();
    let mut edges: Vec<_> = diagram.edges.iter().collect();
    edges.sort_by_key(|edge| (of_box[edge.to], edge.to, edge.input));
    for edge in edges {
        let to = &vertices[edge.to];
        let end = to.shown.as_ref().and_then(|s| s.ins.as_ref()).map(|ins| ins[edge.input]);
        let row = to.row;
        let mut from = again[edge.from].last().copied().unwrap_or(edge.from);
        if row - vertices[from].row > FAR
            && let Some(copy) = repeated(&vertices[from], row - 1)
        {
            vertices.push(copy);
            from = vertices.len() - 1;
            again[edge.from].push(from);
        }
        let begin = vertices[from].shown.as_ref().and_then(|s| s.outs.as_ref()).map(|outs| outs[edge.output]);
        let mut through = vec![from];
        for between in vertices[from].row + 1..row {
            if vertices.len() >= MAX_PLACES {
                return Err(TooLarge { boxes: count });
            }
            vertices.push(Vertex { shown: None, row: between });
            through.push(vertices.len() - 1);
        }
        through.push(edge.to);
        ways.push(EdgePath { through, begin, end });
    }
    let last = vertices.iter().map(|v| v.row).max();
    let mut rows = vec![Vec::new(); last.map_or(0, |last| last + 1)];
    for (at, vertex) in vertices.iter().enumerate() {
        rows[vertex.row].push(at);
    }
    Ok(DiagramRows { vertices, rows, paths: ways })
}

/// An input's box once more, if it is one.
fn repeated(vertex: &Vertex, row: usize) -> Option<Vertex> {
    let shown = vertex.shown.as_ref().filter(|shown| shown.repeats)?;
    let copy = Sized { inside: None, ins: None, outs: None, ..*shown };
    Some(Vertex { shown: Some(copy), row })
}

/// Ops as high as their operands allow, inputs right above their first reader; the ports of a region at its border.
fn row_of_each(diagram: &Diagram) -> Vec<usize> {
    let mut row = vec![0usize; diagram.boxes.len()];
    // Boxes come in an order in which each stands behind what it reads.
    let mut above: Vec<Vec<usize>> = vec![Vec::new(); diagram.boxes.len()];
    let mut below = above.clone();
    for edge in &diagram.edges {
        above[edge.to].push(edge.from);
        below[edge.from].push(edge.to);
    }
    for at in 0..row.len() {
        let lowest = above[at].iter().map(|&from| row[from] + 1).max();
        let is_op = matches!(diagram.boxes[at].kind, BoxKind::Op | BoxKind::Region);
        // Row 0 is for inputs, also where an op reads none.
        row[at] = lowest.unwrap_or(usize::from(is_op));
    }
    let last = row.iter().copied().max();
    for at in 0..row.len() {
        let first_reader = below[at].iter().map(|&to| row[to]).min();
        match (diagram.boxes[at].kind, first_reader) {
            (BoxKind::StepInput | BoxKind::Weight | BoxKind::KvCache, Some(reader)) => row[at] = reader - 1,
            // What an op without operands makes is shown near its first reader as well.
            (BoxKind::Op, Some(reader)) if above[at].is_empty() => row[at] = reader - 1,
            (BoxKind::Port, None) if !above[at].is_empty() => row[at] = last.unwrap_or(row[at]),
            _ => {}
        }
    }
    row
}
