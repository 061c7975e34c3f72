//! What a persistent kernel reads of a step, in words: its launches, what they wait for, and where their pointers point to.

use std::collections::HashMap;
use yirage_hal::driver::{GridExtent, PersistentStep};
use yirage_ir::{Dims, Sym};

/// Words of a launch, and of what stands before all of them, as `persistent.cu` has them.
const LAUNCH_WORDS: usize = 16;
const HEADER_WORDS: usize = 4;

/// The table.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct StepTable {
    pub(crate) words: Vec<u32>,
    pub(crate) pointers: Vec<u64>,
}

/// A kernel of a step: its number, and how many of its groups a block runs at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct StepKernel {
    pub(super) number: u32,
    pub(super) at_once: u32,
}

/// The most blocks that have groups of a launch of the step.
///
/// # Errors
/// A launch whose groups cannot be counted.
pub(super) fn most_blocks(step: &PersistentStep, kernels: &HashMap<&str, StepKernel>) -> Result<u32, String> {
    let groups = |grid: &[GridExtent; 3], bucket: &Dims| {
        grid.iter().try_fold(1u32, |all, extent| all.checked_mul(extent.at(bucket)?))
    };
    step.launches.iter().try_fold(1, |most: u32, launch| {
        let name = &launch.launch.config.entry;
        let at_once = kernels.get(name.as_str()).map_or(1, |kernel| kernel.at_once);
        let all = groups(&launch.launch.grid, &step.bucket);
        all.map(|all| most.max(all.div_ceil(at_once)))
            .ok_or_else(|| format!("kernel `{name}` has more groups than are counted"))
    })
}

impl StepTable {
    /// The table of a step for so many blocks. `kernels` are its kernels by their names, `address` is where the bindings of a launch
    /// lie.
    pub(crate) fn new<E>(
        step: &PersistentStep,
        blocks: u32,
        kernels: &HashMap<&str, StepKernel>,
        mut address: impl FnMut(usize) -> Result<Vec<u64>, E>,
    ) -> Result<StepTable, E> {
        let launches = step.launches.len();
        let first_wait = HEADER_WORDS + launches * LAUNCH_WORDS;
        let mut words = vec![launches as u32, blocks, first_wait as u32, 0];
        let (mut waits, mut pointers) = (Vec::new(), Vec::new());
        for (number, launch) in step.launches.iter().enumerate() {
            let config = &launch.launch.config;
            let kernel =
                kernels.get(config.entry.as_str()).copied().unwrap_or(StepKernel { number: u32::MAX, at_once: 1 });
            words.push(kernel.number);
            words.push(u32::from(config.early_start));
            launch.launch.grid.iter().for_each(|extent| words.extend(extent_words(*extent)));
            words.extend([waits.len() as u32, launch.after.len() as u32, pointers.len() as u32, kernel.at_once, 0]);
            waits.extend_from_slice(&launch.after);
            pointers.extend(address(number)?);
        }
        words.extend(waits);
        Ok(StepTable { words, pointers })
    }
}

fn extent_words(extent: GridExtent) -> [u32; 3] {
    match extent {
        GridExtent::Fixed(groups) => [0, groups, 1],
        GridExtent::Of { size, times, per } => {
            let number = Sym::ALL.iter().position(|&known| known == size).unwrap_or(0) as u32;
            [number + 1, times, per]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use yirage_hal::driver::{BufferId, BufferSlice, KernelLaunch, ModuleId, PersistentLaunch};

    fn launch(entry: &str, size: Option<Sym>, after: &[u32]) -> PersistentLaunch {
        let first = size.map_or(GridExtent::Fixed(3), |size| GridExtent::Of { size, times: 5, per: 2 });
        let grid = [first, GridExtent::Fixed(2), GridExtent::Fixed(1)];
        PersistentLaunch {
            launch: KernelLaunch { grid, ..KernelLaunch::new(entry, Vec::new(), Vec::new()) },
            after: after.to_vec(),
        }
    }

    #[test]
    fn a_table_has_launches_and_then_what_they_wait_for() {
        let sizes = BufferSlice { buffer: BufferId(1), offset: 0, bytes: 16 };
        let bucket = Dims { tokens: 3, seqs: 1, blocks: 1, rows: 1 };
        let launches = vec![launch("a", None, &[]), launch("b", Some(Sym::Tokens), &[0])];
        let step = PersistentStep { module: ModuleId(1), sizes, bucket, launches };
        let kernel = |number, at_once| StepKernel { number, at_once };
        let kernels = HashMap::from([("a", kernel(0, 1)), ("b", kernel(1, 3))]);
        assert_eq!(most_blocks(&step, &kernels), Ok(6));
        let made = StepTable::new(&step, 7, &kernels, |number| Ok::<_, ()>(vec![number as u64 + 100])).unwrap();
        let first = [0, 0, 0, 3, 1, 0, 2, 1, 0, 1, 1, 0, 0, 0, 1, 0];
        let second = [1, 0, 1, 5, 2, 0, 2, 1, 0, 1, 1, 0, 1, 1, 3, 0];
        assert_eq!(made.words, [&[2, 7, 36, 0][..], &first, &second, &[0]].concat());
        assert_eq!(made.pointers, [100, 101]);
        let many = Dims { tokens: u32::MAX / 5, ..bucket };
        let said = most_blocks(&PersistentStep { bucket: many, ..step }, &kernels).map(|_| ()).err();
        assert!(said.is_none_or(|said| said.contains("kernel `b`")));
    }
}
