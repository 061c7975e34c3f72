//! Which grids and loops are tried.

/// What tilings may be. What is not said is left to the search.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Tilings {
    /// For inputs, the dimension that each axis of the grid may cut.
    pub input_maps: Option<Vec<[Option<u32>; 3]>>,
    /// For outputs, the dimension that each axis of the grid lays tiles along.
    pub output_maps: Option<Vec<[Option<u32>; 3]>>,
    /// The grids.
    pub grids: Option<Vec<[u32; 3]>>,
    /// The dimensions of inputs that the loop may cut; `None` for whole tiles.
    pub loop_dims: Option<Vec<Option<u32>>>,
    /// The numbers of iterations.
    pub loops: Option<Vec<u32>>,
}

/// Sizes of tiles along the last dimension.
const COLUMNS: [u32; 3] = [64, 128, 256];
/// Sizes of tiles along the dimension before it.
const ROWS: [u32; 2] = [64, 256];
/// Numbers of iterations.
const LOOPS: [u32; 3] = [4, 16, 64];

/// Which dimension of the output each axis of a grid lays its tiles along.
pub type Axes = [Option<u32>; 3];

impl Tilings {
    /// Grids for an output of this shape.
    pub(super) fn grids(&self, shape: &[u32]) -> Vec<([u32; 3], Axes)> {
        let rank = shape.len();
        let Some(last) = rank.checked_sub(1) else { return Vec::new() };
        let mut all: Vec<([u32; 3], Axes)> = Vec::new();
        if let Some(grids) = &self.grids {
            all.extend(grids.iter().flat_map(|&grid| axis_assignments(grid, rank as u32)));
        } else {
            let batch: u32 =
                shape[..rank.saturating_sub(2)].iter().try_fold(1u32, |n, &d| n.checked_mul(d)).unwrap_or(0);
            let of_batch =
                if rank >= 3 && batch > 1 { shape.iter().take(rank - 2).position(|&d| d == batch) } else { None };
            let along =
                |tile: u32, dim: usize| Some(shape[dim] / tile).filter(|n| *n > 1 && shape[dim].is_multiple_of(tile));
            let columns: Vec<u32> = COLUMNS.iter().filter_map(|&t| along(t, last)).chain([1]).collect();
            let rows: Vec<u32> =
                if rank >= 2 { ROWS.iter().filter_map(|&t| along(t, last - 1)).chain([1]).collect() } else { vec![1] };
            for &x in &columns {
                for &y in &rows {
                    let z = of_batch.map_or(1, |dim| shape[dim]);
                    let is = |n: u32, dim: usize| (n > 1).then_some(dim as u32);
                    let axes = [is(x, last), is(y, last.saturating_sub(1)), of_batch.and_then(|dim| is(z, dim))];
                    all.push(([x, y, z], axes));
                }
            }
        }
        all.retain(|(_, axes)| self.output_maps.as_ref().is_none_or(|maps| maps.contains(axes)));
        all
    }

    /// Numbers of iterations of a loop that cuts `size` elements; one iteration where it cuts nothing.
    pub(super) fn loops(&self, size: u32, nothing: bool) -> Vec<u32> {
        if nothing {
            let one = self.loops.as_ref().is_none_or(|loops| loops.contains(&1));
            return if one { vec![1] } else { Vec::new() };
        }
        let wanted = self.loops.as_deref().unwrap_or(&LOOPS);
        wanted.iter().copied().filter(|&n| n > 1 && size.is_multiple_of(n)).collect()
    }

    /// Whether an input may be cut so.
    pub(super) fn allows(&self, grid: Axes, by_loop: Option<u32>) -> bool {
        self.input_maps.as_ref().is_none_or(|maps| maps.contains(&grid))
            && self.loop_dims.as_ref().is_none_or(|dims| dims.contains(&by_loop))
    }
}

/// A grid with every way to lay its axes along dimensions of an output.
fn axis_assignments(grid: [u32; 3], rank: u32) -> Vec<([u32; 3], Axes)> {
    let mut ways: Vec<Axes> = vec![[None; 3]];
    for axis in (0..3).filter(|&axis| grid[axis] > 1) {
        ways = ways
            .into_iter()
            .flat_map(|way| {
                let free = (0..rank).filter(move |dim| !way.contains(&Some(*dim)));
                free.map(move |dim| {
                    let mut way = way;
                    way[axis] = Some(dim);
                    way
                })
            })
            .collect();
    }
    ways.into_iter().map(|way| (grid, way)).collect()
}
