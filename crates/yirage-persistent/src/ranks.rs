//! Kernels of several ranks in one process ([`crate::processes`] has those of several): the layers of all ranks as one graph, in which an allreduce is a sum in the order of
//! ranks. Which parts of which weights a rank has is its builder's business.

use crate::builder::{KernelBuilder, Recorded};
use crate::config::KernelConfig;
use crate::declaration::KernelDeclaration;
use crate::error::PersistentError;
use crate::layers::ALLREDUCE;
use crate::notice::KernelNotice;
use crate::tensor::TensorId;
use crate::wire::{LayerInput, Wire};

/// The layers of one rank on their way into one kernel.
struct RankLayers {
    builder: KernelBuilder,
    /// Tensors of the ranks before it.
    base: u32,
    /// Which of its layers are in the kernel.
    included: Vec<bool>,
    /// Their places in it.
    positions: Vec<Option<usize>>,
}

/// What a tensor of a rank is called in the kernel of all ranks.
pub fn name_of_rank(rank: usize, name: &str) -> String {
    format!("rank{rank}.{name}")
}

impl KernelBuilder {
    /// The kernel of all ranks, which were built with the same options, metadata and layer methods, each with its own part of the
    /// weights. Rank 0 chooses the tokens. Tensors have their rank before their name from now on ([`name_of_rank`]):
    /// `rank1.embed_tokens`.
    ///
    /// # Errors
    /// [`PersistentError::Option`] for other than all ranks in order, or different options; [`PersistentError::Meta`] for
    /// different metadata; [`PersistentError::Layer`] where ranks have different layers.
    pub fn of_ranks(ranks: Vec<KernelBuilder>) -> Result<KernelBuilder, PersistentError> {
        check(&ranks)?;
        let first = &ranks[0].declared;
        let mut merged = KernelBuilder::new(first.config.clone(), first.meta.clone())?;
        let mut placed = Vec::with_capacity(ranks.len());
        for (at, mut builder) in ranks.into_iter().enumerate() {
            builder.notices().into_iter().for_each(|notice| merged.notices.tell(notice));
            let base = merged.declared.append(at, &builder.declared)?;
            let kept = layers_in_kernel(&builder.wires, at > 0);
            let places = vec![None; kept.len()];
            placed.push(RankLayers { builder, base, included: kept, positions: places });
        }
        let count = placed.len() as u32;
        if count > 1 {
            merged.notices.tell(KernelNotice::Ranks(count));
        }
        interleave(&mut merged, placed);
        merged.ranks = count;
        Ok(merged)
    }
}

fn check(ranks: &[KernelBuilder]) -> Result<(), PersistentError> {
    let count = ranks.len();
    let whole = |config: &KernelConfig| KernelConfig { mpi_rank: 0, ..config.clone() };
    for (at, rank) in ranks.iter().enumerate() {
        let config = &rank.declared.config;
        if config.world_size as usize != count || config.mpi_rank as usize != at {
            let found = format!("{}, with mpi_rank {}", config.world_size, config.mpi_rank);
            let wanted = format!("{count} builders are given: {count}, with mpi_rank {at} for this one, are wanted");
            return Err(PersistentError::Option { option: "world_size", found, wanted });
        }
        if whole(config) != whole(&ranks[0].declared.config) {
            let wanted = "the options of rank 0 but for mpi_rank are wanted".into();
            return Err(PersistentError::Option { option: "mpi_rank", found: at.to_string(), wanted });
        }
        if rank.declared.meta != ranks[0].declared.meta {
            let why = format!("rank {at} has another than rank 0, and all ranks run the same requests");
            return Err(PersistentError::Meta { name: "tokens".into(), why });
        }
        let longest = rank.wires.len().max(ranks[0].wires.len());
        for layer in 0..longest {
            let of = |rank: &KernelBuilder| rank.wires.get(layer).map_or("no layer", |wire| wire.method);
            let (own, wanted) = (of(rank), of(&ranks[0]));
            if own != wanted {
                let why =
                    format!("layer {layer} of rank {at} is {own}, of rank 0 {wanted}: ranks have the same layers");
                return Err(PersistentError::Layer { layer: "of_ranks", why });
            }
        }
    }
    if count == 0 {
        let wanted = "a builder for each rank is wanted".into();
        return Err(PersistentError::Option { option: "world_size", found: "0".into(), wanted });
    }
    Ok(())
}

/// Which layers of a rank are in the kernel: all of rank 0, and of the `others` those whose results a sum reads in the end.
fn layers_in_kernel(wires: &[Wire], others: bool) -> Vec<bool> {
    let mut kept = vec![!others; wires.len()];
    if others {
        for at in (0..wires.len()).rev() {
            let is_read = wires.iter().enumerate().any(|(reader, wire)| {
                (kept[reader] || wire.method == ALLREDUCE) && wire.reads.iter().any(|read| read.by == Some(at))
            });
            kept[at] = is_read && wires[at].method != ALLREDUCE;
        }
    }
    kept
}

/// Layer by layer, and rank by rank within each, so that a sum stands behind all that it reads.
fn interleave(merged: &mut KernelBuilder, mut ranks: Vec<RankLayers>) {
    let layers = ranks[0].builder.wires.len();
    for at in 0..layers {
        for rank in 0..ranks.len() {
            if !ranks[rank].included[at] {
                continue;
            }
            let wire = ranks[rank].builder.wires[at].clone();
            let reads = if wire.method == ALLREDUCE {
                (0..ranks.len()).flat_map(|of| resolved(&ranks, of, at)).collect()
            } else {
                resolved(&ranks, rank, at)
            };
            let base = ranks[rank].base;
            let writes = wire.writes.iter().map(|id| TensorId(id.0 + base)).collect();
            ranks[rank].positions[at] = Some(merged.wires.len());
            merged.wires.push(Wire { reads, writes, ..wire });
        }
    }
    let mut recorded: Vec<(usize, Recorded)> = Vec::new();
    for RankLayers { builder, base, positions: places, .. } in ranks {
        let own = builder.layers.into_iter().zip(places);
        recorded.extend(own.filter_map(|(of, place)| Some((place?, Recorded { base, ..of }))));
    }
    recorded.sort_by_key(|(place, _)| *place);
    merged.layers = recorded.into_iter().map(|(_, layer)| layer).collect();
}

/// What a layer of a rank reads in the kernel. A sum stands there once, in the place of rank 0's.
fn resolved(ranks: &[RankLayers], rank: usize, layer: usize) -> Vec<LayerInput> {
    let RankLayers { builder, base, positions: places, .. } = &ranks[rank];
    let of = |read: &LayerInput| match read.by {
        Some(by) if builder.wires[by].method == ALLREDUCE => {
            LayerInput { tensor: ranks[0].builder.wires[by].writes[0], by: ranks[0].positions[by] }
        }
        by => LayerInput { tensor: TensorId(read.tensor.0 + base), by: by.and_then(|by| places[by]) },
    };
    builder.wires[layer].reads.iter().map(of).collect()
}

impl KernelDeclaration {
    /// Adds the tensors of a rank: how many there were before.
    fn append(&mut self, rank: usize, other: &KernelDeclaration) -> Result<u32, PersistentError> {
        let base = self.tensors().count() as u32;
        for tensor in other.tensors() {
            self.add(&name_of_rank(rank, &tensor.name), tensor.tensor.clone(), tensor.kind.clone())?;
        }
        for (weight, scales) in other.scaled() {
            self.scale(TensorId(weight.0 + base), TensorId(scales.0 + base))?;
        }
        Ok(base)
    }
}
