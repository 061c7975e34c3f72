//! Test mode: all layers once, on a device, with what they wrote. For tests of single layers and of shapes of graphs.
//!
//! There is no engine: the rows of the tensors are the tokens of one pass. The last of them stands at `step`; what is before
//! the first is read from the caches that are attached.

use crate::builder::KernelBuilder;
use crate::caches::AppendedRows;
use crate::config::PromptLookup;
use crate::elements::KernelDType;
use crate::emit::{EmittedGraph, GraphPurpose, HostOutput, LayerOutput};
use crate::error::PersistentError;
use crate::lookup::{find_ngram, verify_greedy};
use crate::pass::{PassTokens, TestValues};
use crate::tensor::TensorId;
use crate::wire::LayerInput;
use std::collections::HashMap;
use std::sync::Arc;
use yirage_compile::{CompileOptions, compile, plan_weights};
use yirage_engine::limits::BLOCK;
use yirage_engine::sampling::{Sampler, SamplingParams, TokenCounts};
use yirage_hal::{Bindings, Device, Executor};
use yirage_ir::tensor::Data;
use yirage_ir::{Dims, ValueId, ValueSource};
use yirage_model::arch::StepGraph;

/// What a layer wrote.
#[derive(Clone, PartialEq, Debug)]
pub struct TestOutput {
    /// The tensor's name.
    pub name: String,
    /// Its sizes.
    pub dims: Vec<u32>,
    /// Its elements, row-major.
    pub values: TestValues,
}

/// What one pass of test mode gave.
#[derive(Clone, PartialEq, Debug)]
pub struct TestPass {
    /// Every tensor that a layer wrote, as it is after the last one.
    pub outputs: Vec<TestOutput>,
    /// What was appended to each cache that is attached.
    pub appended: Vec<AppendedRows>,
}

impl KernelBuilder {
    /// What [`KernelBuilder::run_test_pass`] gives of tensors that layers write.
    ///
    /// # Errors
    /// As [`KernelBuilder::run_test_pass`].
    pub fn run_test_mode(&self, device: &Arc<dyn Device>) -> Result<Vec<TestOutput>, PersistentError> {
        Ok(self.run_test_pass(device)?.outputs)
    }

    /// Runs all layers once and gives every tensor that a layer wrote, as it is after the last one. Attached tensors that
    /// layers read are given to them. The tokens are those of `num_new_tokens` of each request, or, where that metadata is
    /// absent, as many of the first request as the tensors have rows. The last of them stands at the request's `step`; where
    /// that is less than their number, the first stands at 0. A tensor that only a second half reads, such as those of
    /// `argmax_partial_layer`, is not among the outputs.
    ///
    /// # Errors
    /// Layers that do not fit each other, tensors with different numbers of rows, caches that are too small, and what compiler
    /// and device say.
    pub fn run_test_pass(&self, device: &Arc<dyn Device>) -> Result<TestPass, PersistentError> {
        let mut emitted = self.emit(GraphPurpose::Test, &**device)?;
        let last = self.last_writes();
        let mut wanted: Vec<ValueId> = Vec::new();
        for made in emitted.layer_outputs.iter().flatten() {
            match made {
                LayerOutput::One(value) | LayerOutput::Host(HostOutput::Drawn { logits: value, .. })
                    if !wanted.contains(value) =>
                {
                    wanted.push(*value);
                }
                _ => {}
            }
        }
        wanted.extend(emitted.caches.iter().flat_map(|cache| &cache.parts).filter_map(|part| part.appended));
        let pass = self.pass(&emitted)?;
        emitted.step.graph.outputs.extend(&wanted);
        let computed: HashMap<ValueId, TestValues> = if wanted.is_empty() {
            HashMap::new()
        } else {
            wanted.iter().copied().zip(self.execute(&emitted, &pass, &**device)?).collect()
        };
        let results = LayerTestResults { builder: self, emitted: &emitted, computed, pass: &pass };
        let mut outputs = Vec::new();
        for (tensor, layer, at) in last {
            let Some(values) = results.of(&emitted.layer_outputs[layer][at], device)? else { continue };
            let of = self.of(tensor)?;
            outputs.push(TestOutput { name: of.name.clone(), dims: of.tensor.dims.clone(), values });
        }
        let appended = self.appended(&emitted, &results.computed, &pass)?;
        Ok(TestPass { outputs, appended })
    }

    /// For each tensor that layers write: the last of them, and which of its outputs.
    fn last_writes(&self) -> Vec<(TensorId, usize, usize)> {
        let mut last: HashMap<TensorId, (usize, usize)> = HashMap::new();
        for (layer, wire) in self.wires.iter().enumerate() {
            last.extend(wire.writes.iter().enumerate().map(|(at, &tensor)| (tensor, (layer, at))));
        }
        let mut all: Vec<_> = last.into_iter().map(|(tensor, (layer, at))| (tensor, layer, at)).collect();
        all.sort_unstable();
        all
    }

    fn pass(&self, emitted: &EmittedGraph) -> Result<PassTokens, PersistentError> {
        let mut rows: Option<(u32, &str)> = None;
        for (wire, made) in self.wires.iter().zip(&emitted.layer_outputs) {
            let written = wire.writes.iter().zip(made).filter(|(_, made)| {
                !matches!(
                    made,
                    LayerOutput::Host(HostOutput::Guesses { .. } | HostOutput::Verified { .. })
                        | LayerOutput::Engine
                        | LayerOutput::Cached { .. }
                        | LayerOutput::Attended(_)
                )
            });
            for (&tensor, _) in written {
                let of = self.of(tensor)?;
                match rows {
                    None => rows = Some((of.rows(), &of.name)),
                    Some((known, name)) if known != of.rows() => {
                        let why =
                            format!("it has {} rows and `{name}` {known}: one pass has as many everywhere", of.rows());
                        return Err(PersistentError::Tensor { name: of.name.clone(), why });
                    }
                    Some(_) => {}
                }
            }
        }
        let tokens = rows.map_or(1, |(rows, _)| rows);
        let lengths = match self.declared.meta.num_new_tokens() {
            None => vec![tokens as usize],
            Some(new) => new.iter().map(|&n| usize::try_from(n).unwrap_or(0)).collect(),
        };
        let sum: usize = lengths.iter().sum();
        if sum != tokens as usize {
            let why = format!("{sum} tokens in all, and the tensors have {tokens} rows");
            return Err(PersistentError::Meta { name: "num_new_tokens".into(), why });
        }
        let steps = self.declared.meta.step().iter().map(|&step| usize::try_from(step).unwrap_or(0) + 1);
        let first: Vec<usize> = steps.zip(&lengths).map(|(known, &length)| known.saturating_sub(length)).collect();
        let longest = first.iter().zip(&lengths).map(|(first, length)| first + length).max().unwrap_or(1);
        if longest > self.declared.meta.max_seq_length() {
            let why = format!(
                "a pass of {longest} tokens of one request, whose row has {}",
                self.declared.meta.max_seq_length()
            );
            return Err(PersistentError::Meta { name: "tokens".into(), why });
        }
        if let Some((name, rows)) = emitted.shortest_table.as_ref().filter(|(_, rows)| *rows < longest) {
            let why = format!("it has {rows} positions, and the pass ends at {longest}: as many are wanted");
            return Err(PersistentError::Tensor { name: name.clone(), why });
        }
        let blocks = longest.div_ceil(BLOCK).max(1) as u32;
        let dims = Dims { tokens, seqs: lengths.len() as u32, blocks, rows: tokens };
        Ok(PassTokens { first, lengths, dims })
    }

    fn execute(
        &self,
        emitted: &EmittedGraph,
        pass: &PassTokens,
        device: &dyn Device,
    ) -> Result<Vec<TestValues>, PersistentError> {
        let StepGraph { graph, groups, kv_cache_group } = &emitted.step;
        let target = device.target();
        let weights = plan_weights(graph, &target)?;
        let mut bindings = Bindings::default();
        for entry in &weights.entries {
            let missing = || PersistentError::Tensor { name: entry.name.clone(), why: "it has no elements".into() };
            let bytes = emitted.weights.get(&entry.name).ok_or_else(missing)?;
            let mut sink = device.weight(entry)?;
            sink.write_rows(0, bytes)?;
            bindings.weights.insert(entry.name.clone(), sink.finish()?);
        }
        for (name, group) in kv_cache_group {
            if let Some(id) = graph.find(name) {
                let k_width = groups[*group].k_width();
                bindings.kv_caches.insert(name.clone(), device.kv_cache(graph.ty(id), k_width, pass.blocks())?);
            }
        }
        self.fill_caches(emitted, pass, device, &bindings)?;
        let plan = compile(graph, pass.dims, &target, &weights, &CompileOptions::new(self.declared.config.precision))?;
        let mut executor = Executor::new(device, &plan, &bindings)?;
        if let Some(kind) = self.declared.config.executor {
            executor.force(kind)?;
        }
        self.fill(&mut executor, emitted, pass)?;
        let outputs = executor.run(&pass.dims)?;
        let read = |index| {
            Ok(match outputs.tensor(index)?.data {
                Data::F32(values) => TestValues::Floats(values),
                Data::I32(values) => TestValues::Ints(values.into_iter().map(i64::from).collect()),
                other => {
                    let what = format!("an output of {other:.40?}");
                    return Err(PersistentError::Unsupported { what, why: "layers give numbers and indices".into() });
                }
            })
        };
        (0..graph.outputs.len()).map(read).collect()
    }

    fn fill(&self, executor: &mut Executor, emitted: &EmittedGraph, pass: &PassTokens) -> Result<(), PersistentError> {
        let StepGraph { graph, groups, .. } = &emitted.step;
        executor.set("ids", self.ids(None, emitted, pass)?);
        executor.set("positions", pass.positions().map(|p| p as i32));
        executor.set("seqs", pass.each().map(|(seq, _)| seq as i32));
        for group in 0..groups.len() {
            executor.set(&format!("slots.{group}"), pass.slots());
            executor.set(&format!("table.{group}"), pass.table());
        }
        for id in graph.inputs_of(ValueSource::StepInput) {
            let name = &graph.value(id).name;
            if let Some(tensor) = name.strip_prefix("ids.").and_then(|n| n.parse().ok()).map(TensorId) {
                executor.set(name, self.ids(Some(tensor), emitted, pass)?);
                continue;
            }
            let number = name.strip_prefix("in.").and_then(|n| n.parse().ok());
            let Some(tensor) = number.map(TensorId) else { continue };
            match self.attached(tensor)? {
                TestValues::Floats(values) => executor.set_floats(name, values),
                TestValues::Ints(values) => executor.set(name, values.into_iter().map(|x| x as i32)),
            }
        }
        Ok(())
    }

    /// The ids of the pass: those that an attached tensor has, one for each row or by request and position, else the tokens
    /// of the metadata. Where a table is read by them, each has a row there.
    fn ids(
        &self,
        given: Option<TensorId>,
        emitted: &EmittedGraph,
        pass: &PassTokens,
    ) -> Result<Vec<i32>, PersistentError> {
        let width = self.declared.meta.max_seq_length();
        let by_position = |all: &[i64]| pass.each().map(|(seq, position)| all[seq * width + position]).collect();
        let ids: Vec<i64> = match given {
            None => by_position(self.declared.meta.tokens()),
            Some(tensor) => match self.attached(tensor)? {
                TestValues::Ints(all) if all.len() == pass.dims.tokens as usize => all,
                TestValues::Ints(all) => by_position(&all),
                TestValues::Floats(_) => Vec::new(),
            },
        };
        for looked_up in emitted.looked_up.iter().filter(|of| of.ids == given) {
            let outside = |id: i64| !u32::try_from(id).is_ok_and(|id| id < looked_up.rows);
            let Some(at) = ids.iter().position(|&id| outside(id)) else { continue };
            let why = format!(
                "row {at} of the pass has the id {}, and `{}` has {} rows, counted from 0",
                ids[at], looked_up.table, looked_up.rows
            );
            return Err(match given {
                None => PersistentError::Meta { name: "tokens".into(), why },
                Some(tensor) => PersistentError::Tensor { name: self.of(tensor)?.name.clone(), why },
            });
        }
        // What is no id of a table is read by nothing.
        Ok(ids.into_iter().map(|id| i32::try_from(id).unwrap_or(-1)).collect())
    }

    /// The elements of an attached tensor.
    fn attached(&self, id: TensorId) -> Result<TestValues, PersistentError> {
        let of = self.of(id)?;
        let missing =
            || PersistentError::Tensor { name: of.name.clone(), why: "it is read and has no elements".into() };
        let data = of.tensor.data.as_ref().ok_or_else(missing)?;
        Ok(match of.tensor.elements {
            KernelDType::Floats(format) => {
                let mut values = vec![0f32; data.len() / format.info().row_bytes(1)];
                (format.info().decode)(data, &mut values);
                TestValues::Floats(values)
            }
            KernelDType::Float8E4M3 => {
                let why = "it is of 8-bit floats, which only weights are".into();
                return Err(PersistentError::Tensor { name: of.name.clone(), why });
            }
            KernelDType::Int32 => {
                let words = data.as_chunks::<4>().0.iter().copied();
                TestValues::Ints(words.map(|word| i64::from(i32::from_le_bytes(word))).collect())
            }
            KernelDType::Int64 => {
                TestValues::Ints(data.as_chunks::<8>().0.iter().copied().map(i64::from_le_bytes).collect())
            }
        })
    }
}

/// What became of each layer's outputs.
struct LayerTestResults<'a> {
    builder: &'a KernelBuilder,
    emitted: &'a EmittedGraph,
    computed: HashMap<ValueId, TestValues>,
    pass: &'a PassTokens,
}

impl LayerTestResults<'_> {
    /// None for what is no tensor of its own.
    fn of(&self, made: &LayerOutput, device: &Arc<dyn Device>) -> Result<Option<TestValues>, PersistentError> {
        Ok(match made {
            LayerOutput::One(value) => self.computed.get(value).cloned(),
            LayerOutput::Host(hosted) => Some(TestValues::Ints(self.hosted(hosted, device)?)),
            LayerOutput::Parts { .. }
            | LayerOutput::Logits(_)
            | LayerOutput::Cached { .. }
            | LayerOutput::Attended(_)
            | LayerOutput::Tokens
            | LayerOutput::Engine => None,
        })
    }

    fn hosted(&self, hosted: &HostOutput, device: &Arc<dyn Device>) -> Result<Vec<i64>, PersistentError> {
        match hosted {
            HostOutput::Guesses { lookup, tokens } => self.guesses(*lookup, *tokens),
            HostOutput::Verified { guesses, targets } => {
                let (rows, width) = self.rows(*guesses)?;
                let (guesses, targets) = (self.ints(*guesses, device)?, self.ints(*targets, device)?);
                let per_row = targets.len() / rows.max(1);
                let verified = guesses.chunks_exact(width.max(1)).zip(targets.chunks_exact(per_row.max(1)));
                let verified = verified.map(|(guesses, targets)| verify_greedy(guesses, targets));
                let few = || PersistentError::Layer {
                    layer: "target_verify_greedy_layer",
                    why: "a target is missing behind the last right guess: give one for each guess".into(),
                };
                let verified = verified.map(|of| of.map(|(right, next)| [right as i64, next]).ok_or_else(few));
                Ok(verified.collect::<Result<Vec<_>, _>>()?.concat())
            }
            HostOutput::Drawn { logits, params } => self.drawn(*logits, params, device),
        }
    }

    /// Guesses from the tokens that are attached, up to each request's last known one; from those of the metadata where what
    /// is given has no elements.
    fn guesses(&self, lookup: PromptLookup, tokens: TensorId) -> Result<Vec<i64>, PersistentError> {
        let meta = &self.builder.declared.meta;
        let of = self.builder.of(tokens)?;
        let given = match of.tensor.data {
            Some(_) => Some(self.builder.attached(tokens)?),
            None => None,
        };
        let (rows, width) = (of.rows() as usize, of.width() as usize);
        let wrong = |why: String| PersistentError::Tensor { name: of.name.clone(), why };
        let mut guesses = Vec::new();
        for row in 0..meta.requests() {
            let known = meta.known(row)?;
            let known = match &given {
                None => known,
                Some(TestValues::Ints(all)) if rows == meta.requests() && known.len() <= width => {
                    &all[row * width..][..known.len()]
                }
                Some(_) => {
                    let (count, dims) = (meta.requests(), &of.tensor.dims);
                    return Err(wrong(format!(
                        "it is {} {dims:?}, and request {row} of {count} has {} tokens: whole numbers [{count}, positions] \
                         are wanted",
                        of.tensor.elements,
                        known.len()
                    )));
                }
            };
            guesses.extend(find_ngram(known, lookup.ngram_size as usize, lookup.spec_length as usize));
        }
        Ok(guesses)
    }

    fn rows(&self, read: LayerInput) -> Result<(usize, usize), PersistentError> {
        let of = self.builder.of(read.tensor)?;
        Ok((of.rows() as usize, of.width() as usize))
    }

    fn ints(&self, read: LayerInput, device: &Arc<dyn Device>) -> Result<Vec<i64>, PersistentError> {
        let values = match read.by {
            None => Some(self.builder.attached(read.tensor)?),
            Some(layer) => {
                let at = self.builder.wires[layer].writes.iter().position(|&w| w == read.tensor);
                let made = at.and_then(|at| self.emitted.layer_outputs[layer].get(at));
                made.map(|made| self.of(made, device)).transpose()?.flatten()
            }
        };
        match values {
            Some(TestValues::Ints(values)) => Ok(values),
            _ => {
                let name = self.builder.of(read.tensor)?.name.clone();
                Err(PersistentError::Tensor { name, why: "tokens are wanted, and it has none".into() })
            }
        }
    }

    fn drawn(
        &self,
        logits: ValueId,
        params: &SamplingParams,
        device: &Arc<dyn Device>,
    ) -> Result<Vec<i64>, PersistentError> {
        let Some(TestValues::Floats(all)) = self.computed.get(&logits) else { return Ok(Vec::new()) };
        let width = all.len() / self.pass.dims.tokens.max(1) as usize;
        let mut sampler = Sampler::new(Arc::clone(device), 1);
        let counts = TokenCounts::new(&[]);
        let draw = |(row, (seq, position)): (&[f32], (usize, usize))| {
            let params = SamplingParams { choice: seq as u32, ..params.clone() }.checked(width)?;
            // The number of a draw is that of the position at which its token will stand.
            let sampled = sampler.sample(row, &params, &counts, None, position as u32 + 1)?;
            Ok(i64::from(sampled.token))
        };
        all.chunks_exact(width.max(1)).zip(self.pass.each()).map(draw).collect()
    }
}
