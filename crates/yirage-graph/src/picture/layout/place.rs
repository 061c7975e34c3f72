//! Where in its row each vertex stands: as near to its neighbours above and below as the order and the widths allow, in
//! the sense of least squares (isotonic regression by pooling adjacent violators, Ayer et al., 1955).

use super::rows::{DiagramRows, EdgePath};
use super::{DiagramLayout, GAP, PositionedBox};

/// Room between boxes beside each other, and between edges.
const BESIDE: f64 = 22.0;
const BESIDE_EDGE: f64 = 8.0;
/// Ways up and down.
const SWEEPS: usize = 20;
/// How often long edges are straightened in the end, and how much that counts beside boxes that stay where they are.
const STRAIGHTENED: usize = 3;
const STIFF: f64 = 20.0;

pub(super) fn position_boxes(rows: DiagramRows) -> DiagramLayout {
    let mut middle = begun(&rows);
    let links = Links::of(&rows);
    for sweep in 0..SWEEPS {
        let last = sweep + 4 >= SWEEPS;
        let order: Vec<usize> =
            if sweep % 2 == 0 { (0..rows.rows.len()).collect() } else { (0..rows.rows.len()).rev().collect() };
        for row in order {
            let side = if last { NeighbourSide::Both } else { [NeighbourSide::Above, NeighbourSide::Below][sweep % 2] };
            settle(&rows, row, &mut middle, |v, middle| wish(v, &links, side, middle));
        }
    }
    for _ in 0..STRAIGHTENED {
        straighten(&rows, &mut middle);
    }
    let left = (0..rows.vertices.len()).map(|v| middle[v] - rows.vertices[v].width() / 2.0).fold(f64::MAX, f64::min);
    middle.iter_mut().for_each(|x| *x -= left);
    finished(rows, &middle)
}

/// Side by side.
fn begun(rows: &DiagramRows) -> Vec<f64> {
    let mut middle = vec![0.0; rows.vertices.len()];
    for row in &rows.rows {
        let mut right = 0.0;
        for &v in row {
            let width = rows.vertices[v].width();
            middle[v] = right + width / 2.0;
            right += width + BESIDE;
        }
    }
    middle
}

#[derive(Clone, Copy)]
enum NeighbourSide {
    Above,
    Below,
    Both,
}

/// An edge to a neighbour: the neighbour, the place that makes the edge upright from the neighbour's middle, its weight.
type WeightedLink = (usize, f64, f64);

struct Links {
    above: Vec<Vec<WeightedLink>>,
    below: Vec<Vec<WeightedLink>>,
}

impl Links {
    fn of(rows: &DiagramRows) -> Links {
        let mut links = Links { above: vec![Vec::new(); rows.vertices.len()], below: Vec::new() };
        links.below = links.above.clone();
        for way in &rows.paths {
            let steps = way.through.len() - 1;
            for (step, pair) in way.through.windows(2).enumerate() {
                let (begin, end) =
                    (if step == 0 { way.begin } else { None }, if step + 1 == steps { way.end } else { None });
                let apart = begin.unwrap_or(0.0) - end.unwrap_or(0.0);
                // Long edges are straight in the middle (Gansner et al., 1993).
                let passes = pair.iter().filter(|&&v| rows.vertices[v].shown.is_none()).count();
                let weight = [1.0, 2.0, 8.0][passes];
                links.below[pair[0]].push((pair[1], -apart, weight));
                links.above[pair[1]].push((pair[0], apart, weight));
            }
        }
        links
    }
}

/// Moves where a long edge passes to the middle one of these places, where there is room.
fn straighten(rows: &DiagramRows, middle: &mut [f64]) {
    let mut wanted: Vec<(f64, f64)> = middle.iter().map(|&x| (x, 1.0)).collect();
    for way in &rows.paths {
        let passes = &way.through[1..way.through.len() - 1];
        let mut places: Vec<f64> = passes.iter().map(|&v| middle[v]).collect();
        places.sort_by(f64::total_cmp);
        if let Some(&median) = places.get(places.len() / 2) {
            passes.iter().for_each(|&v| wanted[v] = (median, STIFF));
        }
    }
    (0..rows.rows.len()).for_each(|row| settle(rows, row, middle, |v, _| wanted[v]));
}

/// Moves the vertices of a row as near as can be to where each is wished, by how much.
fn settle(rows: &DiagramRows, row: usize, middle: &mut [f64], wish: impl Fn(usize, &[f64]) -> (f64, f64)) {
    let row = &rows.rows[row];
    let mut offset = 0.0;
    let mut before: Option<usize> = None;
    // Runs that move together: the mean of what they want, its weight, how many.
    let mut runs: Vec<(f64, f64, usize)> = Vec::new();
    let mut offsets = Vec::with_capacity(row.len());
    for &v in row {
        if let Some(u) = before.replace(v) {
            let edges = rows.vertices[u].shown.is_none() && rows.vertices[v].shown.is_none();
            let gap = if edges { BESIDE_EDGE } else { BESIDE };
            offset += (rows.vertices[u].width() + rows.vertices[v].width()) / 2.0 + gap;
        }
        offsets.push(offset);
        let (wanted, weight) = wish(v, middle);
        runs.push((wanted - offset, weight, 1));
        while let [.., (a, wa, na), (b, wb, nb)] = runs[..]
            && a > b
        {
            runs.truncate(runs.len() - 2);
            runs.push(((a * wa + b * wb) / (wa + wb), wa + wb, na + nb));
        }
    }
    let places = runs.iter().flat_map(|&(mean, _, count)| std::iter::repeat_n(mean, count));
    for ((&v, offset), mean) in row.iter().zip(offsets).zip(places) {
        middle[v] = mean + offset;
    }
}

/// Where a vertex would stand by its neighbours on one side, by the others where it has none there, and how much.
fn wish(v: usize, links: &Links, side: NeighbourSide, middle: &[f64]) -> (f64, f64) {
    let (first, other): (&[WeightedLink], &[WeightedLink]) = match side {
        NeighbourSide::Above => (&links.above[v], &links.below[v]),
        NeighbourSide::Below => (&links.below[v], &links.above[v]),
        NeighbourSide::Both => (&links.above[v], &links.below[v]),
    };
    let both = matches!(side, NeighbourSide::Both) || first.is_empty();
    let (mut sum, mut weights) = (0.0, 0.0);
    for &(n, apart, weight) in first.iter().chain(if both { other } else { &[] }) {
        sum += (middle[n] + apart) * weight;
        weights += weight;
    }
    if weights == 0.0 { (middle[v], 0.1) } else { (sum / weights, weights) }
}

fn finished(rows: DiagramRows, middle: &[f64]) -> DiagramLayout {
    let heights: Vec<f64> =
        rows.rows.iter().map(|row| row.iter().map(|&v| rows.vertices[v].height()).fold(0.0, f64::max)).collect();
    let mut tops = Vec::with_capacity(heights.len());
    let mut height = 0.0;
    for h in &heights {
        tops.push(height);
        height += h + GAP;
    }
    let begins = spread(&rows, middle, |way| way.through[0], |way| way.through[1], |way| way.begin);
    let ends = spread(&rows, middle, |way| *last(way), |way| way.through[way.through.len() - 2], |way| way.end);
    let edge = |(at, way): (usize, &EdgePath)| {
        let mut points = Vec::with_capacity(2 * way.through.len());
        for (step, &v) in way.through.iter().enumerate() {
            let vertex = &rows.vertices[v];
            let (top, full) = (tops[vertex.row], heights[vertex.row]);
            let half = (full - vertex.height()) / 2.0;
            match step {
                0 => points.extend([(begins[at], top + full - half), (begins[at], top + full)]),
                _ if step + 1 == way.through.len() => points.extend([(ends[at], top), (ends[at], top + half)]),
                _ => points.extend([(middle[v], top), (middle[v], top + full)]),
            }
        }
        points
    };
    let edges: Vec<Vec<(f64, f64)>> = rows.paths.iter().enumerate().map(edge).collect();
    let right = rows.vertices.iter().zip(middle).map(|(v, x)| x + v.width() / 2.0).fold(0.0, f64::max);
    let place = |(vertex, x): (super::rows::Vertex, &f64)| {
        let (row, shown) = (vertex.row, vertex.shown?);
        let top = tops[row] + (heights[row] - shown.height) / 2.0;
        let (width, height) = (shown.width, shown.height);
        Some(PositionedBox { shows: shown.shows, left: x - width / 2.0, top, width, height, inside: shown.inside })
    };
    let boxes = rows.vertices.into_iter().zip(middle).filter_map(place).collect();
    DiagramLayout { width: right, height: (height - GAP).max(0.0), boxes, edges }
}

fn last(way: &EdgePath) -> &usize {
    &way.through[way.through.len() - 1]
}

/// Where the ends of edges lie along the side of a box: where the box says, else spread in the order of what the edges
/// lead to, so that they do not cross.
fn spread(
    rows: &DiagramRows,
    middle: &[f64],
    own: impl Fn(&EdgePath) -> usize,
    next: impl Fn(&EdgePath) -> usize,
    fixed: impl Fn(&EdgePath) -> Option<f64>,
) -> Vec<f64> {
    let mut at_box: Vec<Vec<usize>> = vec![Vec::new(); rows.vertices.len()];
    rows.paths.iter().enumerate().for_each(|(at, way)| at_box[own(way)].push(at));
    let mut out = vec![0.0; rows.paths.len()];
    for (v, mut ways) in at_box.into_iter().enumerate() {
        ways.sort_by(|&a, &b| middle[next(&rows.paths[a])].total_cmp(&middle[next(&rows.paths[b])]));
        let (count, width) = (ways.len() as f64, rows.vertices[v].width());
        for (n, way) in ways.into_iter().enumerate() {
            let apart = fixed(&rows.paths[way]).unwrap_or(width * ((n + 1) as f64 / (count + 1.0) - 0.5));
            out[way] = middle[v] + apart;
        }
    }
    out
}
