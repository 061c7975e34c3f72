//! Kernels whose ranks are processes: each builds its own, and they agree on what all have to have before one of them runs.

use crate::builder::KernelBuilder;
use crate::config::KernelConfig;
use crate::error::PersistentError;
use crate::layers::ALLREDUCE;
use crate::tensor::TensorId;
use yirage_hal::Device;
use yirage_ir::hash::fnv128;
use yirage_ranks::RankGroup;

/// What all ranks have the same: what it is, and what this one has.
type Statement = Vec<(String, String)>;

impl KernelBuilder {
    /// Compares this rank's options, metadata and layers with those of the other ranks, which are processes that come to this at
    /// the same place. What they compute together is checked so before the first step: a device that is one of these ranks
    /// compiles and runs the kernel then.
    ///
    /// # Errors
    /// [`PersistentError::Option`] for another place among the processes than `world_size` and `mpi_rank` say;
    /// [`PersistentError::OtherRank`] with the first thing that differs from rank 0's; [`PersistentError::Ranks`] for ranks that do
    /// not come.
    pub fn meet(&self, group: &RankGroup) -> Result<(), PersistentError> {
        let config = &self.declared.config;
        if (config.world_size, config.mpi_rank as usize) != (group.ranks(), group.rank()) {
            let found = format!("{}, with mpi_rank {}", config.world_size, config.mpi_rank);
            let wanted = format!("this process is rank {} of {}", group.rank(), group.ranks());
            return Err(PersistentError::Option { option: "world_size", found, wanted });
        }
        let own = self.statement()?;
        let first = of_rank_0(group, &own)?;
        let differs = difference(&own, &first, group.rank());
        match (group.all_say(differs.is_none())?, differs) {
            (true, _) => Ok(()),
            (false, Some(why)) => Err(PersistentError::OtherRank(why)),
            (false, None) => Err(PersistentError::OtherRank("another rank differs from rank 0, and says how".into())),
        }
    }

    /// How many processes the ranks of the kernel are on a device; 1 where all of them are here.
    ///
    /// # Errors
    /// [`PersistentError::Unsupported`] for a rank whose others are neither joined nor the device's.
    pub(crate) fn processes(&self, device: &dyn Device) -> Result<u32, PersistentError> {
        let (world, rank, of) = (self.declared.config.world_size, self.declared.config.mpi_rank, device.target().ranks);
        if world == self.ranks {
            return Ok(1);
        }
        if world != of.max(1) {
            return Err(PersistentError::Unsupported {
                what: format!("rank {rank} of {world} processes, on a device that is one of {}", of.max(1)),
                why: "either start the processes, in Python by `python -m yirage.ranks -n N script.py` or by `mpirun -n N python \
                      script.py`, or join the ranks in one: KernelBuilder::of_ranks, in Python PersistentKernel.ranks"
                    .into(),
            });
        }
        if self.wires.iter().all(|wire| wire.method != ALLREDUCE) {
            return Err(PersistentError::Unsupported {
                what: format!("a kernel of {world} processes without {ALLREDUCE}"),
                why: "nothing of one rank would reach another; make kernels of one rank each, with world_size=1".into(),
            });
        }
        Ok(world)
    }

    fn statement(&self) -> Result<Statement, PersistentError> {
        let config = &self.declared.config;
        let mut made: Statement = config.lines().into_iter().map(|(name, word)| (name.to_owned(), word)).collect();
        // How a rank runs what all compute is its own business.
        let others =
            KernelConfig { mpi_rank: 0, num_workers: None, executor: None, profiler_spans: None, ..config.clone() };
        made.push(("the options".into(), format!("{others:?}")));
        made.push(("the metadata".into(), format!("{:032x}", fnv128(format!("{:?}", self.declared.meta).as_bytes()))));
        for (at, wire) in self.wires.iter().enumerate() {
            let sizes = |id: TensorId| Ok::<_, PersistentError>(format!("{:?}", self.of(id)?.tensor.dims));
            // Ranks have parts of different sizes of all but what they add.
            let summed = match wire.reads.first().filter(|_| wire.method == ALLREDUCE) {
                Some(read) => format!(" of {}", sizes(read.tensor)?),
                None => String::new(),
            };
            made.push((format!("layer {at}"), format!("{}{summed}", wire.method)));
        }
        Ok(made)
    }
}

/// What rank 0 has, on every rank.
fn of_rank_0(group: &RankGroup, own: &Statement) -> Result<Statement, PersistentError> {
    let text: String = own.iter().map(|(what, has)| format!("{what}\t{has}\n")).collect();
    let mut length = (text.len() as u64).to_le_bytes();
    group.share(&mut length)?;
    let mut bytes = text.into_bytes();
    bytes.resize(u64::from_le_bytes(length) as usize, 0);
    group.share(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    let line = |line: &str| line.split_once('\t').map(|(what, has)| (what.to_owned(), has.to_owned()));
    Ok(text.lines().filter_map(line).collect())
}

/// The first thing that a rank has otherwise than rank 0.
fn difference(own: &Statement, first: &Statement, rank: usize) -> Option<String> {
    for at in 0..own.len().max(first.len()) {
        let (here, there) = (own.get(at), first.get(at));
        if here == there {
            continue;
        }
        let what = here.or(there).map(|(what, _)| what.as_str()).unwrap_or_default();
        let has = |of: Option<&(String, String)>| of.map_or("nothing".to_owned(), |(_, has)| has.clone());
        return Some(format!(
            "{what} of rank {rank} is {}, of rank 0 {}: all ranks have the same",
            has(here),
            has(there)
        ));
    }
    None
}
