//! The order within each row: few crossing edges, by moving vertices to the mean of their neighbours (the barycentre
//! method of Sugiyama, Tagawa and Toda), as often as it helps.

use super::rows::DiagramRows;

/// Ways up and down.
const SWEEPS: usize = 24;

pub(super) fn ordered(mut rows: DiagramRows) -> DiagramRows {
    let neighbours = Neighbours::of(&rows);
    let mut best = rows.rows.clone();
    let mut fewest = crossings(&rows.rows, &neighbours);
    let mut now = best.clone();
    for sweep in 0..SWEEPS {
        if fewest == 0 {
            break;
        }
        let down = sweep % 2 == 0;
        let side = if down { &neighbours.above } else { &neighbours.below };
        let mut place = places(&now, side.len());
        let order: Vec<usize> = if down { (0..now.len()).collect() } else { (0..now.len()).rev().collect() };
        for row in order {
            let mean = |v: usize| match side[v].as_slice() {
                [] => place[v] as f64,
                all => all.iter().map(|&n| place[n] as f64).sum::<f64>() / all.len() as f64,
            };
            let mut keyed: Vec<(f64, usize)> = now[row].iter().map(|&v| (mean(v), v)).collect();
            keyed.sort_by(|a, b| a.0.total_cmp(&b.0));
            now[row] = keyed.into_iter().map(|(_, v)| v).collect();
            now[row].iter().enumerate().for_each(|(at, &v)| place[v] = at);
        }
        let count = crossings(&now, &neighbours);
        if count < fewest {
            (fewest, best) = (count, now.clone());
        }
    }
    rows.rows = best;
    rows
}

/// The neighbours of each vertex in the rows beside its own.
struct Neighbours {
    above: Vec<Vec<usize>>,
    below: Vec<Vec<usize>>,
}

impl Neighbours {
    fn of(rows: &DiagramRows) -> Neighbours {
        let mut all = Neighbours { above: vec![Vec::new(); rows.vertices.len()], below: Vec::new() };
        all.below = all.above.clone();
        for pair in rows.paths.iter().flat_map(|way| way.through.windows(2)) {
            all.below[pair[0]].push(pair[1]);
            all.above[pair[1]].push(pair[0]);
        }
        all
    }
}

fn places(rows: &[Vec<usize>], vertices: usize) -> Vec<usize> {
    let mut place = vec![0; vertices];
    rows.iter().for_each(|row| row.iter().enumerate().for_each(|(at, &v)| place[v] = at));
    place
}

/// Pairs of edges that cross: for each edge from left to right, those before it that end further right.
fn crossings(rows: &[Vec<usize>], neighbours: &Neighbours) -> usize {
    let place = places(rows, neighbours.below.len());
    let mut count = 0;
    for pair in rows.windows(2) {
        // A binary indexed tree of how many edges have ended at each place.
        let mut tree = vec![0usize; pair[1].len() + 1];
        let mut before = 0;
        for &v in &pair[0] {
            let mut ends: Vec<usize> = neighbours.below[v].iter().map(|&n| place[n]).collect();
            ends.sort_unstable();
            for &end in &ends {
                let (mut at, mut left) = (end + 1, 0);
                while at > 0 {
                    left += tree[at];
                    at &= at - 1;
                }
                count += before - left;
            }
            for end in ends {
                let mut at = end + 1;
                while at < tree.len() {
                    tree[at] += 1;
                    at += at & at.wrapping_neg();
                }
                before += 1;
            }
        }
    }
    count
}
