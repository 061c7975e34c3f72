//! From recorded layers to a graph: of a step, whose step inputs an engine fills, or of all layers once for test mode.
//!
//! In a step's graph the last layers before the logits are computed of the wanted rows alone; in test mode every row is.

use crate::config::PromptLookup;
use crate::declaration::KernelDeclaration;
use crate::elements::KernelDType;
use crate::error::PersistentError;
use crate::origin::{TensorPart, WeightOrigin};
use crate::sampling_mode::SamplingMode;
use crate::tensor::{DeclaredTensor, TensorId, TensorSource};
use crate::wire::{LayerInput, Wire, rows_alone};
use std::collections::HashMap;
use std::sync::Arc;
use yirage_engine::sampling::SamplingParams;
use yirage_ir::op::{AllGather, Concat, Cut, Gather, Map, TopK, View, ViewForm};
use yirage_ir::{DType, Dim, Op, Sym, Type, ValueId};
use yirage_model::arch::{KvCacheInputs, KvCacheSpec, StepGraph, StepGraphBuilder};

/// What a layer made of a tensor that it writes.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum LayerOutput {
    /// A value of the graph.
    One(ValueId),
    /// Values that would be interleaved in so many groups if they were one.
    Parts { values: Vec<ValueId>, groups: u32 },
    /// Logits that stand for their largest value or its index.
    Logits(ValueId),
    /// A cache of compressed rows, as it is behind the rows of the step.
    Cached { kv: ValueId, table: ValueId },
    /// What attention gives, before its second half has read it.
    Attended(ValueId),
    /// The next tokens, which the engine chooses and writes.
    Tokens,
    /// What the engine keeps for itself.
    Engine,
    /// What the host makes, in test mode alone.
    Host(HostOutput),
}

/// What the host makes of a layer in test mode.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum HostOutput {
    /// Guesses of each request from these tokens.
    Guesses { lookup: PromptLookup, tokens: TensorId },
    /// What of guesses is right.
    Verified { guesses: LayerInput, targets: LayerInput },
    /// Draws from rows of logits.
    Drawn { logits: ValueId, params: SamplingParams },
}

/// What the graph is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum GraphPurpose {
    /// The steps of an engine.
    Steps,
    /// One pass over all layers.
    Test,
}

/// The cache of a layer: the state that has it in a graph, and the tensors that are attached for it.
#[derive(Clone, Debug)]
pub(crate) struct LayerCache {
    pub(crate) state: String,
    /// A block of the state.
    pub(crate) block: Type,
    pub(crate) kv_heads: u32,
    /// Keys and values, or both as one row.
    pub(crate) parts: Vec<CachePart>,
}

/// A tensor of a cache.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CachePart {
    pub(crate) tensor: TensorId,
    /// The rows that a pass appends, where it has elements to write them into.
    pub(crate) appended: Option<ValueId>,
}

/// A table whose rows stand for ids: those of a tensor, or the tokens of the step.
pub(crate) struct TableLookup {
    pub(crate) ids: Option<TensorId>,
    pub(crate) table: String,
    pub(crate) rows: u32,
}

/// A graph under construction.
pub(crate) struct LayerEmitter<'a> {
    pub(crate) declared: &'a KernelDeclaration,
    wires: &'a [Wire],
    pub(crate) step: StepGraphBuilder,
    purpose: GraphPurpose,
    /// Processes that the ranks are; 1 where all of them are in this one.
    processes: u32,
    layer: usize,
    /// What is added to the numbers of tensors that a layer knows.
    pub(crate) base: u32,
    ops: usize,
    layer_outputs: Vec<Vec<LayerOutput>>,
    /// Which layers are computed of the wanted rows.
    on_rows: Vec<bool>,
    gathered: HashMap<ValueId, ValueId>,
    origins: Vec<WeightOrigin>,
    weights: HashMap<String, Arc<[u8]>>,
    caches: Vec<LayerCache>,
    looked_up: Vec<TableLookup>,
    shortest_table: Option<(String, usize)>,
    embedded: Option<(String, u32)>,
    logits: Option<ValueId>,
    choice: Option<SamplingMode>,
    lookup: Option<PromptLookup>,
}

/// The graph of all layers.
pub(crate) struct EmittedGraph {
    pub(crate) step: StepGraph,
    pub(crate) layer_outputs: Vec<Vec<LayerOutput>>,
    pub(crate) origins: Vec<WeightOrigin>,
    pub(crate) weights: HashMap<String, Arc<[u8]>>,
    /// The cache of each layer that has one.
    pub(crate) caches: Vec<LayerCache>,
    /// What is read by ids.
    pub(crate) looked_up: Vec<TableLookup>,
    /// The table of a rotary embedding that has the fewest positions.
    pub(crate) shortest_table: Option<(String, usize)>,
    /// The table of the embedding, and its rows.
    pub(crate) embedded: Option<(String, u32)>,
    pub(crate) logits: Option<ValueId>,
    pub(crate) choice: Option<SamplingMode>,
    pub(crate) lookup: Option<PromptLookup>,
}

impl<'a> LayerEmitter<'a> {
    /// Before the first layer, of a rank that is one of so many processes.
    pub(crate) fn new(
        declared: &'a KernelDeclaration,
        wires: &'a [Wire],
        purpose: GraphPurpose,
        processes: u32,
    ) -> LayerEmitter<'a> {
        let on_rows = match purpose {
            GraphPurpose::Steps => rows_alone(wires),
            GraphPurpose::Test => vec![false; wires.len()],
        };
        LayerEmitter {
            declared,
            wires,
            step: StepGraphBuilder::new("kernel"),
            purpose,
            processes,
            layer: 0,
            base: 0,
            ops: 0,
            layer_outputs: Vec::new(),
            on_rows,
            gathered: HashMap::new(),
            origins: Vec::new(),
            weights: HashMap::new(),
            caches: Vec::new(),
            looked_up: Vec::new(),
            shortest_table: None,
            embedded: None,
            logits: None,
            choice: None,
            lookup: None,
        }
    }

    /// A tensor by the number that the layer knows.
    pub(crate) fn of(&self, id: TensorId) -> Result<&'a DeclaredTensor, PersistentError> {
        self.declared.of(self.own(id))
    }

    /// The number of a tensor in the kernel.
    pub(crate) fn own(&self, id: TensorId) -> TensorId {
        TensorId(id.0 + self.base)
    }

    /// A layer made this; the next one begins.
    pub(crate) fn end_layer(&mut self, made: Vec<LayerOutput>) {
        self.layer_outputs.push(made);
        self.layer += 1;
    }

    /// The graph of all layers.
    ///
    /// # Errors
    /// Parts that cannot be one, where they have to be for test mode.
    pub(crate) fn finish(mut self) -> Result<EmittedGraph, PersistentError> {
        if self.purpose == GraphPurpose::Test {
            self.join_all()?;
        }
        Ok(EmittedGraph {
            step: self.step.finish(),
            layer_outputs: self.layer_outputs,
            origins: self.origins,
            weights: self.weights,
            caches: self.caches,
            looked_up: self.looked_up,
            shortest_table: self.shortest_table,
            embedded: self.embedded,
            logits: self.logits,
            choice: self.choice,
            lookup: self.lookup,
        })
    }
}

impl LayerEmitter<'_> {
    fn wrong<T>(&self, why: String) -> Result<T, PersistentError> {
        let layer = self.wires.get(self.layer).map_or("run_test_mode", |wire| wire.method);
        Err(PersistentError::Layer { layer, why })
    }

    /// How many tensors the layer reads.
    pub(crate) fn reads(&self) -> usize {
        self.wires.get(self.layer).map_or(0, |wire| wire.reads.len())
    }

    /// Read `i` of the layer.
    pub(crate) fn tensor(&self, i: usize) -> Result<LayerInput, PersistentError> {
        let read = self.wires.get(self.layer).and_then(|wire| wire.reads.get(i)).copied();
        read.map_or_else(|| self.wrong(format!("it has no read {i}")), Ok)
    }

    /// What was made of read `i` of the layer; of the wanted rows, where the layer is computed of these.
    pub(crate) fn input_value(&mut self, i: usize) -> Result<LayerOutput, PersistentError> {
        let read = self.tensor(i)?;
        let Some(by) = read.by else { return Ok(LayerOutput::One(self.outside(read.tensor)?)) };
        let writes = &self.wires[by].writes;
        let at = writes.iter().position(|&w| w == read.tensor);
        let Some(made) = at.and_then(|at| self.layer_outputs[by].get(at)).cloned() else {
            return self.wrong("it reads what was never made".into());
        };
        let here = self.on_rows[self.layer] || self.wires[self.layer].chooses;
        if !here || self.on_rows[by] || self.purpose == GraphPurpose::Test {
            return Ok(made);
        }
        Ok(match made {
            LayerOutput::One(value) => LayerOutput::One(self.wanted(value)?),
            LayerOutput::Logits(value) => LayerOutput::Logits(self.wanted(value)?),
            LayerOutput::Parts { values, groups } => {
                let values = values.into_iter().map(|value| self.wanted(value)).collect::<Result<_, _>>()?;
                LayerOutput::Parts { values, groups }
            }
            made => made,
        })
    }

    fn wanted(&mut self, value: ValueId) -> Result<ValueId, PersistentError> {
        if let Some(&known) = self.gathered.get(&value) {
            return Ok(known);
        }
        let rows = self.step.rows()?;
        let wanted = self.op("wanted", Gather { axis: 0 }, &[value, rows])?;
        self.gathered.insert(value, wanted);
        Ok(wanted)
    }

    /// Read `i` of the layer as one value.
    pub(crate) fn read(&mut self, i: usize) -> Result<ValueId, PersistentError> {
        let made = self.input_value(i)?;
        self.joined(made)
    }

    /// The parts of read `i`: in each of so many groups so many shares each.
    pub(crate) fn parts<const N: usize>(
        &mut self,
        i: usize,
        shares: [u32; N],
        groups: u32,
    ) -> Result<[ValueId; N], PersistentError> {
        let made = self.input_value(i)?;
        if let LayerOutput::Parts { values, .. } = &made {
            let widths: Vec<u32> = values.iter().map(|&v| self.width_of(v)).collect();
            if let Some(parts) = values.first_chunk::<N>().filter(|_| values.len() == N) {
                let unit = widths[0] / shares[0].max(1);
                if widths.iter().zip(shares).all(|(&w, share)| Some(w) == unit.checked_mul(share)) {
                    return Ok(*parts);
                }
            }
            return self
                .wrong(format!("parts of {widths:?} elements are given, {N} in the ratio {shares:?} are wanted"));
        }
        let x = self.joined(made)?;
        let (width, outer) = (self.width_of(x), self.step.graph.ty(x).shape[0]);
        let whole: u32 = shares.iter().sum();
        let Some(unit) = whole.checked_mul(groups).filter(|&n| n > 0 && width.is_multiple_of(n)).map(|n| width / n)
        else {
            return self.wrong(format!("rows of {width} do not divide into {groups} groups of {shares:?} shares"));
        };
        let grouped = self.reshaped(x, vec![outer, Dim::Const(groups), Dim::Const(whole * unit)])?;
        let mut parts = [x; N];
        let mut start = 0;
        for (part, share) in parts.iter_mut().zip(shares) {
            let size = share * unit;
            let cuts =
                vec![Cut::whole(outer), Cut::whole(Dim::Const(groups)), Cut { start, step: 1, size: Dim::Const(size) }];
            let cut = self.op("cut", View { form: ViewForm::Slice(cuts) }, &[grouped])?;
            *part = self.reshaped(cut, vec![outer, Dim::Const(groups * size)])?;
            start += size;
        }
        Ok(parts)
    }

    /// Read `i` of each rank, in their order: of ranks in this process they are reads of their own, of others they are gathered.
    pub(crate) fn of_all_ranks(&mut self) -> Result<Vec<ValueId>, PersistentError> {
        if self.processes == 1 {
            return (0..self.reads()).map(|i| self.read(i)).collect();
        }
        let x = self.read(0)?;
        let (width, rows) = (self.width_of(x), self.step.graph.ty(x).shape[0]);
        let all = self.op("gathered", AllGather { ranks: self.processes }, &[x])?;
        let part = |rank: u32| {
            let own = Cut { start: rank * width, step: 1, size: Dim::Const(width) };
            View { form: ViewForm::Slice(vec![Cut::whole(rows), own]) }
        };
        (0..self.processes).map(|rank| self.op("part", part(rank), &[all])).collect()
    }

    /// Read `i`, which stands for a cache: its state, and the table of its blocks.
    pub(crate) fn cached(&mut self, i: usize) -> Result<[ValueId; 2], PersistentError> {
        match self.input_value(i)? {
            LayerOutput::Cached { kv, table } => Ok([kv, table]),
            _ => self.wrong(format!("its read {i} stands for no cache")),
        }
    }

    /// Read `i`, which is a half of attention: its results.
    pub(crate) fn attended(&mut self, i: usize) -> Result<ValueId, PersistentError> {
        match self.input_value(i)? {
            LayerOutput::Attended(value) => Ok(value),
            _ => self.wrong(format!("its read {i} is no half of attention")),
        }
    }

    /// Parts as one value: interleaved in their groups.
    pub(crate) fn joined(&mut self, made: LayerOutput) -> Result<ValueId, PersistentError> {
        match made {
            LayerOutput::One(value) | LayerOutput::Logits(value) => Ok(value),
            LayerOutput::Parts { values, groups } => {
                let (outer, widths) =
                    (self.step.graph.ty(values[0]).shape[0], values.iter().map(|&v| self.width_of(v)));
                let widths: Vec<u32> = widths.collect();
                let of = |w: &u32| vec![outer, Dim::Const(groups), Dim::Const(w / groups)];
                let shapes: Vec<Vec<Dim>> = widths.iter().map(of).collect();
                let grouped = values.into_iter().zip(shapes).map(|(value, shape)| self.reshaped(value, shape));
                let grouped = grouped.collect::<Result<Vec<_>, _>>()?;
                let joined = self.op("joined", Concat { axis: 2 }, &grouped)?;
                self.reshaped(joined, vec![outer, Dim::Const(widths.iter().sum())])
            }
            LayerOutput::Cached { .. } => {
                self.wrong("it reads a cache, which only layers of latent attention read".into())
            }
            LayerOutput::Attended(_) => {
                self.wrong("it reads halves of attention, which only the reducing layer reads".into())
            }
            LayerOutput::Tokens | LayerOutput::Engine | LayerOutput::Host(_) => {
                self.wrong("it reads tokens or guesses, which are the engine's in a step".into())
            }
        }
    }

    fn reshaped(&mut self, x: ValueId, shape: Vec<Dim>) -> Result<ValueId, PersistentError> {
        self.op("shaped", View { form: ViewForm::Reshape(shape) }, &[x])
    }

    fn width_of(&self, value: ValueId) -> u32 {
        self.step.graph.ty(value).width().map_or(1, |w| w as u32)
    }

    /// What is several is one, so that it can be an output.
    fn join_all(&mut self) -> Result<(), PersistentError> {
        let mut all = std::mem::take(&mut self.layer_outputs);
        for made in all.iter_mut().flatten() {
            if matches!(made, LayerOutput::Parts { .. }) {
                *made = LayerOutput::One(self.joined(made.clone())?);
            }
        }
        self.layer_outputs = all;
        Ok(())
    }

    /// Read `i` unchanged. What comes from outside is copied, since an input is no output.
    pub(crate) fn same(&mut self, i: usize) -> Result<LayerOutput, PersistentError> {
        match self.tensor(i)?.by {
            Some(_) => self.input_value(i),
            None => {
                let x = self.read(i)?;
                Ok(LayerOutput::One(self.op("same", Map::scale(1.0), &[x])?))
            }
        }
    }

    /// A tensor that comes from outside: only test mode has one.
    fn outside(&mut self, id: TensorId) -> Result<ValueId, PersistentError> {
        let of = self.declared.of(id)?;
        if self.purpose == GraphPurpose::Steps {
            return self.wrong(format!("`{}` is attached, and only test mode reads activations from outside", of.name));
        }
        let dtype = match of.tensor.elements {
            KernelDType::Floats(_) => DType::F32,
            KernelDType::Int32 => DType::I32,
            KernelDType::Float8E4M3 => {
                return self.wrong(format!("`{}` is of 8-bit floats: attach float32 and quantise it", of.name));
            }
            KernelDType::Int64 => return self.wrong(format!("`{}` is int64, int32 is read here", of.name)),
        };
        let ty = Type::new(dtype, [Dim::Sym(Sym::Tokens), Dim::Const(of.width())]);
        Ok(self.step.step_input(&format!("in.{}", id.0), ty)?)
    }

    /// The ids by which a layer of so many rows reads those of a table: in test mode the ones that its `input` has, where it
    /// has any, and the tokens of the step otherwise.
    pub(crate) fn ids_of(&mut self, input: TensorId, rows: u32, table: TensorId) -> Result<ValueId, PersistentError> {
        let of = self.of(input)?;
        if self.reads() > 0 {
            let made = self.input_value(0)?;
            if self.purpose == GraphPurpose::Steps {
                // Guesses are among the tokens of a step.
                return match made {
                    LayerOutput::Host(HostOutput::Guesses { .. }) | LayerOutput::Engine | LayerOutput::Tokens => {
                        Ok(self.step.ids()?)
                    }
                    _ => self.wrong(format!(
                        "`{}` is written by a layer, and the ids of a step are its tokens: only test mode reads others",
                        of.name
                    )),
                };
            }
            let x = self.joined(made)?;
            let ty = self.step.graph.ty(x).clone();
            if ty.dtype != DType::I32 || self.width_of(x) != 1 {
                return self.wrong(format!("`{}` is {ty}: an id for each row is wanted", of.name));
            }
            return self.reshaped(x, vec![ty.shape[0]]);
        }
        let reads = self.purpose == GraphPurpose::Test && of.tensor.data.is_some();
        if reads {
            self.check_ids(of, rows)?;
        }
        let ids = reads.then(|| self.own(input));
        let table = self.of(table)?;
        self.looked_up.push(TableLookup { ids, table: table.name.clone(), rows: table.rows() });
        Ok(match ids {
            None => self.step.ids()?,
            Some(own) => self.step.per_token(&format!("ids.{}", own.0))?,
        })
    }

    /// Whether attached ids say which row each of so many rows is.
    fn check_ids(&self, of: &DeclaredTensor, rows: u32) -> Result<(), PersistentError> {
        let (dims, meta) = (&of.tensor.dims, &self.declared.meta);
        let (requests, positions) = (meta.requests(), meta.max_seq_length());
        let count = dims.iter().try_fold(1u32, |n, &m| n.checked_mul(m));
        let tokens = dims.iter().map(|&n| n as usize).eq([requests, positions]);
        let whole = matches!(of.tensor.elements, KernelDType::Int32 | KernelDType::Int64);
        if whole && (count == Some(rows) || tokens) {
            return Ok(());
        }
        self.wrong(format!(
            "`{}` is {} {dims:?}: int32 or int64 with an id for each of {rows} rows, or [{requests}, {positions}] tokens, are \
             wanted",
            of.name, of.tensor.elements
        ))
    }

    /// Says that the state that was asked for last is the cache that these tensors are attached for, to which these rows are
    /// appended.
    pub(crate) fn keep(
        &mut self,
        kv_heads: u32,
        block: Type,
        rows: &[(TensorId, ValueId)],
    ) -> Result<(), PersistentError> {
        let mut parts = Vec::with_capacity(rows.len());
        for &(tensor, value) in rows {
            let tensor = self.own(tensor);
            let written = self.purpose == GraphPurpose::Test && self.declared.of(tensor)?.tensor.data.is_some();
            // A value of its own: what else reads the rows is computed as without it.
            let appended = if written { Some(self.op("kept", Map::scale(1.0), &[value])?) } else { None };
            parts.push(CachePart { tensor, appended });
        }
        let Some((state, _)) = self.step.kv_caches().last() else { return self.wrong("it has no cache".into()) };
        self.caches.push(LayerCache { state: state.clone(), block, kv_heads, parts });
        Ok(())
    }

    /// Says that rows of this weight stand for tokens.
    pub(crate) fn embeds(&mut self, weight: TensorId) -> Result<(), PersistentError> {
        let of = self.of(weight)?;
        let (name, rows) = (of.name.clone(), of.rows());
        let fewer = self.embedded.as_ref().is_none_or(|(_, known)| rows < *known);
        if fewer {
            self.embedded = Some((name, rows));
        }
        Ok(())
    }

    /// The whole of a weight.
    pub(crate) fn weight(&mut self, id: TensorId) -> Result<ValueId, PersistentError> {
        self.part_of(id, TensorPart::Whole)
    }

    /// A weight's matrices as one, each below the one before.
    pub(crate) fn stacked(&mut self, id: TensorId) -> Result<ValueId, PersistentError> {
        let of = self.of(id)?;
        match of.tensor.dims[..] {
            [count, n, k] => {
                let rows = count.checked_mul(n);
                let rows = rows.map_or_else(|| self.wrong("its rows are too many".into()), Ok)?;
                self.bound(id, TensorPart::Whole, Some(vec![rows, k]))
            }
            _ => self.wrong(format!("`{}` is {:?}, matrices are wanted", of.name, of.tensor.dims)),
        }
    }

    /// A weight as one row without a leading size of 1.
    pub(crate) fn vector(&mut self, id: TensorId) -> Result<ValueId, PersistentError> {
        let of = self.of(id)?;
        match of.tensor.dims[..] {
            [n] | [1, n] => self.bound(id, TensorPart::Whole, Some(vec![n])),
            _ => self.wrong(format!("`{}` is {:?}, one row is wanted", of.name, of.tensor.dims)),
        }
    }

    /// A table of a rotary embedding with so many columns, which covers every position.
    pub(crate) fn table(&mut self, id: TensorId, columns: u32) -> Result<ValueId, PersistentError> {
        let table = self.part_of(id, TensorPart::Table { columns })?;
        let rows = self.step.graph.ty(table).shape[0].as_const().unwrap_or(0);
        let wanted = self.declared.config.max_seq_length as usize;
        if rows < wanted && self.purpose == GraphPurpose::Steps {
            let name = self.of(id)?.name.clone();
            return self
                .wrong(format!("`{name}` has {rows} positions, max_seq_length is {wanted}: as many are wanted"));
        }
        if self.shortest_table.as_ref().is_none_or(|(_, known)| rows < *known) {
            self.shortest_table = Some((self.of(id)?.name.clone(), rows));
        }
        Ok(table)
    }

    /// A part of a weight.
    pub(crate) fn part_of(&mut self, id: TensorId, part: TensorPart) -> Result<ValueId, PersistentError> {
        self.bound(id, part, None)
    }

    fn bound(&mut self, id: TensorId, part: TensorPart, shape: Option<Vec<u32>>) -> Result<ValueId, PersistentError> {
        let label = match part {
            TensorPart::Whole => String::new(),
            TensorPart::Rows { index, of } => format!(".{index}of{of}"),
            TensorPart::Table { columns } => format!(".table{columns}"),
        };
        let vector = if shape.is_some() { ".row" } else { "" };
        let name = format!("w{}{label}{vector}", self.own(id).0);
        if let Some(known) = self.step.bound_weight(&name) {
            return Ok(known);
        }
        let id = self.own(id);
        let of = self.declared.of(id)?;
        if !matches!(of.kind, TensorSource::Attached) {
            return self.wrong(format!("`{}` is read as a weight and is not attached", of.name));
        }
        let scales = self.declared.scales_of(id)?;
        let weight = part.of(&of.name, &of.tensor, scales.map(|of| (of.name.as_str(), &of.tensor)))?;
        let shape = shape.unwrap_or(weight.shape);
        let value = self.step.weight(&name, Type::new(DType::Stored(weight.format), shape))?;
        let scales = scales.map(|of| of.name.clone());
        self.origins.push(WeightOrigin { name: name.clone(), tensor: of.name.clone(), scales, part });
        self.weights.insert(name, weight.bytes);
        Ok(value)
    }

    /// The cache of one layer, and its group's slot mapping and block table.
    pub(crate) fn kv_cache(&mut self, group: KvCacheSpec, block: Type) -> Result<[ValueId; 3], PersistentError> {
        let name = format!("kv.{}", self.step.kv_caches().len());
        let KvCacheInputs { cache, slot_mapping, block_table } = self.step.kv_cache(name, block, group)?;
        match slot_mapping {
            Some(slots) => Ok([cache, slots, block_table]),
            None => self.wrong("its cache group keeps recurrent states, which have no keys".into()),
        }
    }

    /// Adds an op with one output.
    pub(crate) fn op(&mut self, what: &str, op: impl Into<Op>, ins: &[ValueId]) -> Result<ValueId, PersistentError> {
        let name = self.name(what);
        Ok(self.step.graph.op(&name, op, ins)?)
    }

    /// Adds an op with two outputs.
    pub(crate) fn pair(
        &mut self,
        what: &str,
        op: impl Into<Op>,
        ins: &[ValueId],
    ) -> Result<[ValueId; 2], PersistentError> {
        let names = [self.name(what), self.name(what)];
        let made = self.step.graph.op_multi(&[&names[0], &names[1]], op, ins)?;
        match made[..] {
            [first, second] => Ok([first, second]),
            _ => self.wrong(format!("`{what}` has {} outputs", made.len())),
        }
    }

    fn name(&mut self, what: &str) -> String {
        self.ops += 1;
        format!("l{}.{what}.{}", self.layer, self.ops)
    }

    /// Guesses in each step from now on.
    pub(crate) fn look_up(&mut self, lookup: PromptLookup) {
        self.lookup = Some(lookup);
    }

    /// The next tokens from the layer's first read, which are logits.
    pub(crate) fn choose(&mut self, choice: SamplingMode) -> Result<LayerOutput, PersistentError> {
        let same = self.same(0)?;
        let logits = self.joined(same)?;
        if self.purpose == GraphPurpose::Test {
            return Ok(match choice {
                SamplingMode::Greedy => {
                    LayerOutput::One(self.pair("argmax", TopK { k: 1, largest: true, sorted: true }, &[logits])?[1])
                }
                SamplingMode::Sampled(params) => LayerOutput::Host(HostOutput::Drawn { logits, params }),
            });
        }
        if self.choice.is_some() {
            return self.wrong("another layer chooses the tokens already: a kernel has one that does".into());
        }
        (self.logits, self.choice) = (Some(logits), Some(choice));
        Ok(LayerOutput::Tokens)
    }
}
