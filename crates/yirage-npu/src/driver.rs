//! The driver: a device with its memory, one stream, and operations that are sequences of operators or evaluated on the host.

use crate::buffers::NpuBuffers;
use crate::host_evaluation::{self, NamedBlocks};
use crate::limits::{DRAIN, IN_FLIGHT};
use crate::lowering::{OperatorSupport, lower};
use crate::node_operation::{NodeOperand, NodeOperation, NodeTable};
use crate::operands::OperandMemory;
use crate::operators::OperatorSequence;
use crate::pinned::{NpuDownload, PinnedPool};
use crate::queue::{HeldByStream, NpuQueue};
use crate::range::NpuRange;
use crate::runtime::{AcceleratorRuntime, MakerCollective};
use crate::status::{refused, unsupported};
use crate::step_dims::StepDims;
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use yirage_collectives::{CollectiveWay, RankCollectives, collective_operands};
use yirage_hal::HostMemory;
use yirage_hal::driver::{
    Binding, BufferId, BufferSlice, CollectiveCall, Download, Driver, DriverError, MemoryCommand, ModuleId,
    OperationCall, OperationId, OperationLibrary, PreparedOperation, STEP_SIZES_BYTES, StepCommand, sizes_of_block,
};
use yirage_ir::{Dims, Op};

/// The driver of one device.
pub struct NpuDriver {
    // In the order in which they go away: the stream before what it may still have, and all of them keep the runtime.
    steps: NpuQueue,
    pinned: Arc<PinnedPool>,
    host: Mutex<NpuHostState>,
    nodes: Arc<NodeTable>,
    counters: Arc<OperationCounters>,
    support: OperatorSupport,
    /// The group that the device is a rank of.
    rank: Option<RankCollectives>,
    runtime: Arc<dyn AcceleratorRuntime>,
}

/// What the host has of the device.
#[derive(Default)]
struct NpuHostState {
    buffers: NpuBuffers,
    dims: StepDims,
    operations: HashMap<u64, Arc<PreparedNode>>,
    last_id: u64,
}

/// A node that was prepared for its operands.
struct PreparedNode {
    node: Arc<NodeOperation>,
    on_host: bool,
}

/// Operations that have run so far, by who computed them.
#[derive(Default)]
pub(crate) struct OperationCounters {
    by_operators: AtomicU64,
    on_host: AtomicU64,
}

/// Operations that have run, by who computed them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OperationCounts {
    /// Nodes that operators of the library computed.
    pub by_operators: u64,
    /// Nodes that the host evaluated, because the library has no operator for them.
    pub on_host: u64,
}

impl OperationCounters {
    pub(crate) fn counts(&self) -> OperationCounts {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        OperationCounts { by_operators: of(&self.by_operators), on_host: of(&self.on_host) }
    }
}

impl NpuDriver {
    /// The driver of a runtime's device, whose library of kernels describes nodes in `nodes`, and which is a rank where it is one.
    pub(crate) fn new(
        runtime: Arc<dyn AcceleratorRuntime>,
        support: OperatorSupport,
        nodes: Arc<NodeTable>,
        counters: Arc<OperationCounters>,
        rank: Option<RankCollectives>,
    ) -> Result<NpuDriver, DriverError> {
        let steps = NpuQueue::new(&runtime)?;
        Ok(NpuDriver { steps, pinned: Arc::default(), host: Mutex::default(), nodes, counters, support, rank, runtime })
    }

    fn host(&self) -> MutexGuard<'_, NpuHostState> {
        self.host.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until everything that was submitted has run.
    fn drain(&self) -> Result<(), DriverError> {
        let value = self.steps.signal()?;
        self.wait_for(value, DRAIN)
    }

    /// Waits for a value: as a rank it hears meanwhile of what goes wrong among the others.
    fn wait_for(&self, value: u64, deadline: Duration) -> Result<(), DriverError> {
        match &self.rank {
            Some(rank) => {
                let waited = rank.wait(deadline, |deadline| self.steps.wait(value, deadline));
                waited.map_err(|error| self.steps.lose(error))
            }
            None => self.steps.wait(value, deadline),
        }
    }

    /// Submits: bytes of the host to a range that is as long.
    fn write(&self, bytes: &[u8], to: NpuRange) -> Result<(), DriverError> {
        if bytes.is_empty() {
            return Ok(());
        }
        let piece = self.pinned.take(&self.runtime, bytes.len(), bytes)?;
        let memory = piece.memory()?;
        self.steps.submit([Box::new(piece.in_use()) as HeldByStream], |stream| stream.upload(memory, to))
    }

    /// Submits: bytes of a range to the host.
    fn read(&self, from: NpuRange) -> Result<Box<NpuDownload>, DriverError> {
        let piece = self.pinned.take(&self.runtime, from.bytes(), &[])?;
        if from.bytes() > 0 {
            let memory = piece.memory()?;
            self.steps.submit([Box::new(piece.in_use()) as HeldByStream], |stream| stream.download(from, memory))?;
        }
        Ok(Box::new(NpuDownload { piece, bytes: from.bytes() }))
    }

    /// The sizes of a step: as the host has uploaded them, or read back.
    fn dims(&self, sizes: BufferSlice) -> Result<Dims, DriverError> {
        let (known, range) = {
            let host = self.host();
            (host.dims.at(sizes), host.buffers.range("operation", sizes)?)
        };
        if let Some(dims) = known {
            return Ok(dims);
        }
        let download = self.read(range)?;
        self.drain()?;
        let record = download.take();
        let block: [u8; STEP_SIZES_BYTES as usize] =
            record.bytes().try_into().map_err(|_| refused("operation", "its first binding is no block of sizes"))?;
        Ok(sizes_of_block(&block))
    }

    fn run(&self, call: &OperationCall) -> Result<(), DriverError> {
        let found = self.host().operations.get(&call.operation.0).cloned();
        let missing = || refused("operation", format!("there is no operation {}", call.operation.0));
        let prepared = found.ok_or_else(missing)?;
        let sizes = call.bindings.first().ok_or_else(|| refused("operation", "it is bound to no sizes"))?;
        let dims = self.dims(sizes.slice)?;
        let (bindings, workspace) = {
            let host = self.host();
            let range = |slice| host.buffers.range("operation", slice);
            (ranges(&host.buffers, &call.bindings)?, call.workspace.map(range).transpose()?)
        };
        if prepared.on_host {
            self.counters.on_host.fetch_add(1, Ordering::Relaxed);
            return self.evaluate(&prepared.node, &dims, &bindings);
        }
        self.counters.by_operators.fetch_add(1, Ordering::Relaxed);
        let backwards = || refused("operation", format!("`{}` has no operators at {dims:?}", prepared.node.op.name()));
        let sequence = lower(&prepared.node, &dims, self.support).ok_or_else(backwards)?;
        let memory = OperandMemory { bindings: &bindings, workspace };
        let working = workspace.and_then(|range| range.behind(sequence.temporary_bytes));
        let calls = &sequence.calls;
        self.steps.submit([], |stream| calls.iter().try_for_each(|call| stream.operator(call, &memory, working)))
    }

    /// Takes part in what the group does.
    fn collective(&self, call: &CollectiveCall) -> Result<(), DriverError> {
        let Some(rank) = &self.rank else {
            let what = format!("`{}` with other devices", call.op.name());
            return Err(unsupported(what, "this backend computes with one device at a time"));
        };
        let [from, to] = collective_operands(call)?;
        let (from, to) = {
            let mut host = self.host();
            host.dims.forget(to.buffer);
            (host.buffers.range("collective", from)?, host.buffers.range("collective", to)?)
        };
        let runtime = self.runtime.clone();
        let attach = move || runtime.stay().map_err(|error| error.to_string());
        let way = rank.way(call, [from.address(), to.address()], attach).map_err(|error| self.steps.lose(error))?;
        match way {
            CollectiveWay::Host => self.through_the_host(rank, call, from, to),
            CollectiveWay::Copy => self.steps.submit([], |stream| stream.copy(from, to)),
            CollectiveWay::Maker(communicator, kind, elements) => {
                let in_use: HeldByStream = Box::new(communicator.clone());
                let gives_to_all =
                    matches!(&call.op, Op::Broadcast(op) if op.root as usize == communicator.seat().rank);
                self.steps.submit([in_use], |stream| {
                    if gives_to_all {
                        stream.copy(from, to)?;
                    }
                    let call = MakerCollective { communicator: &communicator, kind, elements };
                    stream.collective(call)?.map_err(|error| rank.ended(&error))
                })
            }
        }
    }

    /// A collective by the host's memory: it waits for the stream, and for the other ranks.
    fn through_the_host(
        &self,
        rank: &RankCollectives,
        call: &CollectiveCall,
        from: NpuRange,
        to: NpuRange,
    ) -> Result<(), DriverError> {
        let given = self.read_all(vec![from])?;
        let got = rank.meet(call, &given.concat()).map_err(|error| self.steps.lose(error))?;
        if got.len() != to.bytes() {
            return Err(refused("collective", format!("{} bytes are got for {}", got.len(), to.bytes())));
        }
        self.write(&got, to)
    }

    /// Evaluates a node on the host, between waits.
    fn evaluate(&self, node: &NodeOperation, dims: &Dims, bindings: &[NpuRange]) -> Result<(), DriverError> {
        let short = |bytes: u64| refused("host", format!("a binding of `{}` is shorter than {bytes}", node.op.name()));
        let part = |operand: &NodeOperand| {
            let bytes = host_evaluation::operand_bytes(operand, dims);
            let range = bindings.get(operand.binding).and_then(|range| range.first(bytes));
            range.ok_or_else(|| short(bytes))
        };
        let paged = host_evaluation::paged_inputs(node);
        let whole = node.inputs.iter().enumerate().filter(|&(at, _)| paged.is_none_or(|(cache, _)| at != cache));
        let ranges = whole.map(|(_, operand)| part(operand)).collect::<Result<Vec<_>, DriverError>>()?;
        let mut inputs = self.read_all(ranges)?;
        let mut node = Cow::Borrowed(node);
        if let Some((cache, table)) = paged {
            let (operand, missing) = (&node.inputs[cache], || refused("host", "it has no cache of blocks"));
            let named =
                NamedBlocks::of(inputs.get(table - 1).ok_or_else(missing)?, operand.blocks.ok_or_else(missing)?);
            let (range, bytes) = (part(operand)?, operand.ty.storage_bytes(dims) as u64);
            let block = |&block: &u32| range.behind(u64::from(block) * bytes).and_then(|behind| behind.first(bytes));
            let blocks = named.blocks.iter().map(|at| block(at).ok_or_else(missing)).collect::<Result<Vec<_>, _>>()?;
            node.to_mut().inputs[cache].blocks = Some(named.blocks.len() as u32);
            inputs[table - 1] = named.table;
            inputs.insert(cache, self.read_all(blocks)?.concat());
        }
        let given: Vec<&[u8]> = inputs.iter().map(Vec::as_slice).collect();
        let outputs = host_evaluation::evaluate(&node, dims, &given)?;
        node.outputs.iter().zip(&outputs).try_for_each(|(operand, bytes)| self.write(bytes, part(operand)?))
    }

    /// What lies in ranges, once everything that was submitted has run.
    fn read_all(&self, ranges: Vec<NpuRange>) -> Result<Vec<Vec<u8>>, DriverError> {
        let downloads = ranges.into_iter().map(|range| self.read(range)).collect::<Result<Vec<_>, DriverError>>()?;
        self.drain()?;
        Ok(downloads.into_iter().map(|download| download.take().bytes().to_vec()).collect())
    }

    /// Bytes that a sequence wants to work in, its temporaries among them.
    fn workspace(&self, sequence: &OperatorSequence, bindings: &[NpuRange]) -> Result<u64, DriverError> {
        let memory = OperandMemory { bindings, workspace: None };
        let each = sequence.calls.iter().map(|call| self.runtime.wanted_workspace(call, &memory));
        let most = each.collect::<Result<Vec<u64>, DriverError>>()?.into_iter().max();
        Ok(sequence.temporary_bytes + most.unwrap_or(0))
    }
}

fn ranges(buffers: &NpuBuffers, bindings: &[Binding]) -> Result<Vec<NpuRange>, DriverError> {
    bindings.iter().map(|binding| buffers.range("operation", binding.slice)).collect()
}

impl Driver for NpuDriver {
    fn alloc(&self, bytes: u64) -> Result<BufferId, DriverError> {
        let first = self.host().buffers.alloc(&self.runtime, bytes);
        match first {
            Err(DriverError::OutOfMemory { .. }) => {
                // Memory may be on its way back.
                self.drain()?;
                self.host().buffers.alloc(&self.runtime, bytes)
            }
            done => done,
        }
    }

    fn free(&self, buffer: BufferId) {
        let memory = {
            let mut host = self.host();
            host.dims.forget(buffer);
            host.buffers.remove(buffer)
        };
        if let Some(memory) = memory {
            self.steps.retire(Box::new(memory));
        }
    }

    fn submit(&self, command: StepCommand) -> Result<(), DriverError> {
        match command {
            StepCommand::Operation(call) => self.run(&call),
            StepCommand::Memory(MemoryCommand::Copy { from, to }) => {
                let mut host = self.host();
                host.dims.forget(to.buffer);
                let (from, to) = (host.buffers.range("copy", from)?, host.buffers.range("copy", to)?);
                if to.bytes() == 0 && from.bytes() == 0 {
                    return Ok(());
                }
                self.steps.submit([], |stream| stream.copy(from, to))
            }
            StepCommand::Memory(MemoryCommand::Fill { slice, byte }) => {
                let mut host = self.host();
                host.dims.forget(slice.buffer);
                let range = host.buffers.range("fill", slice)?;
                if range.bytes() == 0 {
                    return Ok(());
                }
                self.steps.submit([], |stream| stream.fill(range, byte))
            }
            StepCommand::Launch(_) => {
                Err(unsupported("a kernel of ours", "this backend computes by operators of the vendor's library"))
            }
            StepCommand::Collective(call) => self.collective(&call),
        }
    }

    fn upload(&self, from: Arc<dyn HostMemory>, to: BufferSlice) -> Result<(), DriverError> {
        let (bytes, range) = (from.bytes(), self.host().buffers.range("upload", to)?);
        if bytes.len() != range.bytes() {
            return Err(refused("upload", format!("{} bytes are given for {}", bytes.len(), range.bytes())));
        }
        self.host().dims.uploaded(bytes, to);
        self.write(bytes, range)
    }

    fn download(&self, from: BufferSlice) -> Result<Box<dyn Download>, DriverError> {
        let range = self.host().buffers.range("download", from)?;
        Ok(self.read(range)?)
    }

    /// There is no code but that of no kernel: operators are the vendor's.
    fn module(&self, code: &[u8]) -> Result<ModuleId, DriverError> {
        if !code.is_empty() {
            return Err(unsupported("code of kernels", "this backend computes by operators of the vendor's library"));
        }
        Ok(ModuleId(0))
    }

    fn unload(&self, _: ModuleId) {}

    fn operations(&self) -> Option<&dyn OperationLibrary> {
        Some(self)
    }

    fn signal(&self) -> Result<u64, DriverError> {
        self.steps.signal()
    }

    fn reached(&self) -> Result<u64, DriverError> {
        self.steps.reached()
    }

    fn wait(&self, value: u64, deadline: Duration) -> Result<(), DriverError> {
        self.wait_for(value, deadline)
    }

    fn in_flight(&self) -> usize {
        IN_FLIGHT
    }
}

impl OperationLibrary for NpuDriver {
    fn prepare(&self, descriptor: &[u8], bindings: &[Binding]) -> Result<PreparedOperation, DriverError> {
        let node = self.nodes.take(descriptor)?;
        let ranges = ranges(&self.host().buffers, bindings)?;
        // Most wants the largest step; but a library may choose another way for the least.
        let least = Dims { tokens: 1, seqs: 1, blocks: 1, rows: 1 };
        let sequences = [node.largest, least].map(|dims| lower(&node, &dims, self.support).filter(|_| !node.on_host));
        let (on_host, workspace) = match sequences {
            [Some(largest), Some(least)] => {
                (false, self.workspace(&largest, &ranges)?.max(self.workspace(&least, &ranges)?))
            }
            _ => (true, 0),
        };
        let mut host = self.host();
        host.last_id += 1;
        let id = host.last_id;
        host.operations.insert(id, Arc::new(PreparedNode { node, on_host }));
        Ok(PreparedOperation { id: OperationId(id), workspace })
    }

    fn release(&self, operation: OperationId) {
        self.host().operations.remove(&operation.0);
    }
}

impl Drop for NpuDriver {
    fn drop(&mut self) {
        if !self.steps.end() {
            // The stream may still come to what lies there.
            let host = self.host.get_mut().unwrap_or_else(PoisonError::into_inner);
            std::mem::forget(std::mem::take(&mut host.buffers));
        }
    }
}
