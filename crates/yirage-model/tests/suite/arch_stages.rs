//! Pipeline stages: a model that is cut computes what the whole does, each stage has what its layers read and no more, and
//! what cannot be cut is refused.

use crate::arch_support::{ArchRunner, load};
use std::collections::HashMap;
use yirage_ir::ValueSource;
use yirage_model::Checkpoint;
use yirage_model::arch::{Model, ModelOutput, PipelineStage};
use yirage_testkit::tiny;

const CONTEXT: u32 = 64;
/// A prompt in two chunks, and tokens one by one: beyond a block of the cache, and beyond the windows of those that have one.
const CHUNKS: [usize; 4] = [33, 5, 1, 1];

/// The numbers of stages that a model is tried with: up to one for each layer, and five at most.
fn counts(model: &Model) -> impl Iterator<Item = u32> {
    let layers = model.stages(1).unwrap()[0].layers.end;
    1..=layers.min(5)
}

/// The stages of a model, each with the name of what it reads.
struct StageChain(Vec<(Option<String>, ArchRunner)>);

impl StageChain {
    fn new(checkpoint: &Checkpoint, stages: Vec<PipelineStage>) -> StageChain {
        let runner = |stage: PipelineStage| {
            (stage.reads, ArchRunner::of_model(checkpoint, stage.model, CONTEXT).expect("a stage is a model"))
        };
        StageChain(stages.into_iter().map(runner).collect())
    }

    /// A step of all stages: the last one's logits.
    fn step(&mut self, ids: &[u32], rows: &[usize]) -> Vec<Vec<f32>> {
        let mut handed = Vec::new();
        for (reads, stage) in &mut self.0 {
            assert_eq!(handed.len(), usize::from(reads.is_some()));
            if let (Some(name), Some(rows)) = (reads, handed.pop()) {
                stage.give(name, rows);
            }
            handed = stage.outputs(ids, rows);
        }
        (0..rows.len()).map(|row| handed[0].row(row)).collect()
    }
}

#[test]
fn stages_give_the_logits_of_the_whole() {
    let ids: Vec<u32> = (0..CHUNKS.iter().sum::<usize>() as u32).map(|i| 3 + i * 37 % 90).collect();
    let mut chains = [0; 6];
    for name in tiny::staged() {
        let (checkpoint, model) = load(&tiny::model(name), CONTEXT).unwrap();
        for count in counts(&model) {
            let mut whole = ArchRunner::of_model(&checkpoint, model.clone(), CONTEXT).unwrap();
            let mut chain = StageChain::new(&checkpoint, model.stages(count).unwrap());
            let mut first = 0;
            for chunk in CHUNKS {
                let (ids, rows): (_, Vec<usize>) = (&ids[first..first + chunk], (0..chunk).collect());
                assert_eq!(chain.step(ids, &rows), whole.step(ids, &rows), "{name} in {count} stages, from {first}");
                first += chunk;
            }
            chains[count as usize] += 1;
        }
    }
    assert!(chains[2] == tiny::staged().count() && chains[3] > 30 && chains[4] > 10, "{chains:?}");
}

#[test]
fn layers_that_read_more_of_others_than_rows_are_in_one_stage() {
    for name in tiny::WHOLE {
        let (_, model) = load(&tiny::model(name), CONTEXT).unwrap();
        assert_eq!(model.stages(1).unwrap().len(), 1);
        let error = model.stages(2).err().map(|error| error.to_string()).unwrap_or_default();
        assert!(error.contains("expected f32 rows of tokens alone; run it on one rank"), "{name}: {error}");
    }
}

#[test]
fn a_stage_has_the_weights_and_caches_of_its_layers_alone() {
    for name in tiny::staged() {
        let (_, model) = load(&tiny::model(name), CONTEXT).unwrap();
        for count in counts(&model) {
            let stages = model.stages(count).unwrap();
            let mut holders: HashMap<&str, usize> = HashMap::new();
            for stage in &stages {
                let of =
                    |source| stage.model.graph.inputs_of(source).map(|id| stage.model.graph.value(id).name.as_str());
                let bound: Vec<&str> = stage.model.weights.iter().map(|weight| weight.name.as_str()).collect();
                let mut read: Vec<&str> = of(ValueSource::Weight).collect();
                read.sort_by_key(|name| bound.iter().position(|bound| bound == name));
                assert_eq!(bound, read, "{name}");
                let kept = stage.model.kv_cache_group.iter().map(|(name, _)| name.as_str());
                bound.into_iter().chain(kept).for_each(|name| *holders.entry(name).or_default() += 1);
            }
            let all = model.weights.iter().map(|weight| weight.name.as_str());
            for held in all.chain(model.kv_cache_group.iter().map(|(name, _)| name.as_str())) {
                let shared = held == "embed.w" || held.starts_with("rope.");
                let stages = holders.get(held).copied().unwrap_or_default();
                assert!(stages == 1 || (shared && stages > 1), "{name}: {stages} of {count} stages have {held}");
            }
            let ends: Vec<u32> = stages.iter().map(|stage| stage.layers.end).collect();
            let starts: Vec<u32> = stages.iter().map(|stage| stage.layers.start).collect();
            assert_eq!((starts[0], &starts[1..]), (0, &ends[..ends.len() - 1]), "{name}: each layer is of one stage");
        }
    }
}

#[test]
fn layers_are_shared_as_equally_as_they_can_be() {
    let (_, model) = load(&tiny::model("gemma3"), CONTEXT).unwrap();
    let layers = |count| model.stages(count).unwrap().into_iter().map(|stage| stage.layers).collect::<Vec<_>>();
    assert_eq!(layers(3), [0..3, 3..5, 5..7]);
    assert_eq!(layers(7), (0..7).map(|layer| layer..layer + 1).collect::<Vec<_>>());
}

#[test]
fn what_cannot_be_cut_is_refused_with_the_numbers() {
    let (_, model) = load(&tiny::model("llama"), CONTEXT).unwrap();
    let why = |model: &Model, count| model.stages(count).unwrap_err().to_string();
    for count in [0, 4, u32::MAX] {
        let said = format!("llama in {count} pipeline stages");
        let why = why(&model, count);
        assert!(why.contains(&said) && why.contains("it has 3 layers") && why.contains("use 1 to 3 stages"), "{why}");
    }
    let encoder = Model { output: ModelOutput::Hidden { width: 64 }, ..model.clone() };
    assert!(why(&encoder, 2).contains("it gives no logits"), "{}", why(&encoder, 2));
    // A value of the first layer that is wanted at the end would have to be handed on beside the rows.
    let mut two = model.clone();
    let early =
        two.graph.nodes.iter().find(|node| two.graph.value(node.outs[0]).name.starts_with("l0.")).unwrap().outs[0];
    two.graph.outputs.push(early);
    let why = why(&two, 2);
    assert!(why.contains("read 2 of the layers before") && why.contains("`l0.") && why.contains("one rank"), "{why}");
}
