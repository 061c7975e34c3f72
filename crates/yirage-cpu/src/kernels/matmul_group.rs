//! Products of one input with several weights of any formats, and what becomes of their results.

use super::epilogue::{BlockSize, BoundEpilogue, Epilogue, EpilogueBlocks, EpilogueTarget};
use super::operand_constraints::{elements, floats, packed, quantized};
use super::{BoundKernel, Kernel, not_for};
use crate::bind::{
    Binder, CpuRunContext, FloatRows, OutputRows, PackedWeight, QuantizedRows, ScratchBuffer, Site, Whole,
};
use crate::walk::StageWork;
use std::ops::Range;
use yirage_cpu_kernels::activation::{ActivationBufferLayout, ActivationEncoding, TOKEN_TILE};
use yirage_cpu_kernels::isa::Isa;
use yirage_cpu_kernels::linear::work_items::{self, MatmulWorkItem, MatrixPartition, Panels};
use yirage_cpu_kernels::linear::{self, Linear, MatmulVariant};
use yirage_cpu_kernels::memory::prefetch;
use yirage_cpu_kernels::pack::{PANEL_ROWS, PackedMatrix};
use yirage_hal::HalError;
use yirage_ir::expr::MAX_INPUTS;
use yirage_ir::region::FusedChain;
use yirage_ir::{Dim, Dims, Op, RegionKind};
use yirage_plan::rules::OpRule;
use yirage_plan::{Partitioning, Precision, Stage, StageCondition};

impl Kernel {
    pub(super) const MATMUL_GROUP: Kernel = Kernel {
        name: "cpu/matmul_group@1",
        regions: &[RegionKind::MatmulGroup],
        rules,
        stages: &[
            Stage { partitioning: Partitioning::Rows, when: StageCondition::FloatInput },
            Stage::always(Partitioning::WorkQueue),
        ],
        scratch: true,
        bind,
    };
}

/// Of groups each reads its own part of a row, which quantised rows do not have apart.
fn rules() -> Vec<OpRule> {
    vec![
        OpRule::new("linear", vec![floats(), packed()]),
        OpRule::new("linear", vec![quantized(), packed()]).when("groups", 1),
        OpRule::new("map", vec![elements()]),
        OpRule::new("view", vec![elements()]),
    ]
}

/// What products read.
#[derive(Clone)]
pub(super) enum MatmulInput {
    /// Floats, which are staged in the form that each kernel reads.
    Floats(FloatRows),
    /// Activations that an op before has quantised.
    Quantized(QuantizedRows),
}

impl MatmulInput {
    /// The first input of a product.
    pub(super) fn of(site: &Site) -> Result<MatmulInput, HalError> {
        Ok(if site.is_quantised(0) {
            MatmulInput::Quantized(site.quantized(0)?)
        } else {
            MatmulInput::Floats(site.float_rows(0)?)
        })
    }

    /// Whether it is quantised.
    pub(super) fn quantised(&self) -> bool {
        matches!(self, MatmulInput::Quantized(_))
    }

    /// The dimension that its rows run over.
    pub(super) fn rows(&self) -> Dim {
        match self {
            MatmulInput::Floats(x) => x.rows(),
            MatmulInput::Quantized(x) => x.rows(),
        }
    }

    /// Its rows at most.
    pub(super) fn most(&self, bucket: &Dims) -> usize {
        self.rows().get(bucket)
    }
}

/// Where a product finds its activations.
enum Activations {
    /// As they were quantised.
    Quantized(QuantizedRows),
    /// Staged, by number.
    Staged(usize),
}

/// One weight's part.
struct WeightMatmul {
    weight: PackedWeight,
    kernel: linear::Dispatch,
    activations: Activations,
}

/// An output, and the products that it is made of.
struct MatmulOutput {
    matmuls: Vec<WeightMatmul>,
    /// Those of all products: as many in each.
    panels: Panels,
    groups: usize,
    /// Numbers of a row of each product's result.
    width: usize,
    results: MatmulResults,
}

/// What becomes of products' results.
enum MatmulResults {
    /// They are the output.
    Out(OutputRows<f32>),
    /// More is computed of them.
    Further(Box<Epilogue>),
}

/// Where products write in a run, and what becomes of it.
enum MatmulDestination<'a> {
    /// The output itself.
    Out(*mut f32),
    /// At this place what the output is computed of.
    Whole(*mut f32, BoundEpilogue<'a>),
    /// In blocks of this size what the output is computed of.
    Blocks(&'a EpilogueBlocks, BlockSize, BoundEpilogue<'a>),
}

impl WeightMatmul {
    fn matrix(&self) -> &PackedMatrix {
        self.weight.matrix()
    }
}

impl MatmulOutput {
    /// Where its products write in a run of so many tokens.
    fn ends(&self, run: &CpuRunContext<'_>, variant: &MatmulVariant, tokens: usize) -> MatmulDestination<'_> {
        let epilogue = match &self.results {
            MatmulResults::Out(out) => return MatmulDestination::Out(out.first(run)),
            MatmulResults::Further(epilogue) => epilogue,
        };
        match epilogue.target(run) {
            EpilogueTarget::Whole(out) => MatmulDestination::Whole(out, epilogue.ready(run, 1, self.width)),
            EpilogueTarget::Blocks(blocks) => {
                // Many tokens go over panels of which those of all products stay in the cache together.
                let few = tokens <= TOKEN_TILE;
                let most = if few { usize::MAX } else { variant.group / self.panels.bytes.max(1) };
                let size = blocks.size(tokens, most);
                MatmulDestination::Blocks(blocks, size, epilogue.ready(run, self.matmuls.len(), size.columns()))
            }
        }
    }

    /// The first column of the output that a group makes.
    fn first_column(&self, group: usize) -> usize {
        self.width / self.groups * group
    }

    /// The columns of the output that some panels of a group make.
    fn columns(&self, group: usize, panels: &Range<usize>) -> Range<usize> {
        let (first, end) = (self.first_column(group), self.first_column(group + 1));
        first + panels.start * PANEL_ROWS..end.min(first + panels.end * PANEL_ROWS)
    }
}

/// An input form to make before multiplying.
struct Staging {
    form: ActivationEncoding,
    groups: usize,
    scratch: ScratchBuffer,
}

/// Products that share an input.
struct CpuMatmulGroup {
    x: MatmulInput,
    staging: Vec<Staging>,
    outputs: Vec<MatmulOutput>,
    variant: MatmulVariant,
}

/// The precision at which a product of this input runs: quantised inputs decide it; float inputs of block-quantised
/// weights mean exact de-quantisation.
pub(super) fn precision(quantised: bool, block: usize, wanted: Precision) -> Precision {
    match (quantised, block) {
        (true, _) => Precision::Fast,
        (false, 1) => wanted,
        (false, _) => Precision::Exact,
    }
}

/// The first of products that all read its input.
pub(super) fn one_input<'a>(mut sites: impl Iterator<Item = &'a Site>) -> Result<&'a Site, HalError> {
    let first = sites.next().ok_or_else(|| HalError::Load("a region without products".into()))?;
    match sites.find(|site| !site.shares_input(first)) {
        None => Ok(first),
        Some(other) => Err(HalError::Load(format!("`{}` reads another input than its region", other.op().name()))),
    }
}

fn bind(binder: &mut Binder<'_>, n: usize) -> Result<Box<dyn BoundKernel>, HalError> {
    let node = binder.whole(n)?;
    let chains = node.chains()?;
    let products = |(output, chain): (usize, &FusedChain)| node.matmul_sites(output, chain);
    let sites = chains.iter().enumerate().map(products).collect::<Result<Vec<_>, _>>()?;
    let first = one_input(sites.iter().flatten())?;
    let mut all = CpuMatmulGroup {
        x: MatmulInput::of(first)?,
        staging: Vec::new(),
        outputs: Vec::new(),
        variant: binder.variant,
    };
    for (output, (sites, chain)) in sites.iter().zip(chains).enumerate() {
        let made = all.bind_output(binder, &node, (output, chain), sites)?;
        all.outputs.push(made);
    }
    Ok(Box::new(all))
}

impl CpuMatmulGroup {
    fn bind_output(
        &mut self,
        binder: &mut Binder<'_>,
        node: &Whole,
        (output, chain): (usize, &FusedChain),
        sites: &[Site],
    ) -> Result<MatmulOutput, HalError> {
        let no_product = || HalError::Load(format!("output {output} comes of no product"));
        let first = sites.first().ok_or_else(no_product)?;
        let Op::Linear(op) = first.op() else { return Err(not_for(Kernel::MATMUL_GROUP.name, first)) };
        let groups = op.groups as usize;
        let products =
            sites.iter().map(|site| self.bind_matmul(binder, site, groups)).collect::<Result<Vec<_>, _>>()?;
        let matrix = products.first().ok_or_else(no_product)?.matrix();
        let (columns, count) = (matrix.rows(), matrix.panels());
        let bytes = products.iter().map(|product| product.matrix().panel_bytes()).sum();
        if let Some(other) = products.iter().map(|product| product.matrix().rows()).find(|rows| *rows != columns) {
            return Err(HalError::Load(format!("output {output} joins products of {columns} and of {other} columns")));
        }
        let width = groups.saturating_mul(columns);
        let results = match Epilogue::bind(binder, node, output, chain, (self.x.rows(), width))? {
            Some(epilogue) => MatmulResults::Further(Box::new(epilogue)),
            None => MatmulResults::Out(first.out(0)?),
        };
        Ok(MatmulOutput { matmuls: products, panels: Panels { count, bytes }, groups, width, results })
    }

    fn bind_matmul(&mut self, binder: &mut Binder<'_>, site: &Site, groups: usize) -> Result<WeightMatmul, HalError> {
        let weight = site.packed(1, groups)?;
        let matrix = weight.matrix();
        let wanted = precision(self.x.quantised(), matrix.format().info().block, binder.precision);
        let kernel = linear::Dispatch::new(binder.shared.isa, self.variant, wanted, matrix.format());
        let kernel = kernel.map_err(|e| HalError::Load(e.to_string()))?;
        let activations = match &self.x {
            MatmulInput::Quantized(codes) => Activations::Quantized(codes.clone()),
            MatmulInput::Floats(_) => Activations::Staged(self.stage(binder, kernel.form(), groups, matrix.k())?),
        };
        Ok(WeightMatmul { weight, kernel, activations })
    }

    /// Scratch for the input in `form`, shared by all products that read it so.
    fn stage(
        &mut self,
        binder: &mut Binder<'_>,
        form: ActivationEncoding,
        groups: usize,
        k: usize,
    ) -> Result<usize, HalError> {
        if let Some(i) = self.staging.iter().position(|s| s.form == form && s.groups == groups) {
            return Ok(i);
        }
        let tokens = self.x.most(binder.bucket());
        let scratch =
            binder.scratch.take(groups.saturating_mul(ActivationBufferLayout::new(form, tokens, k).bytes()))?;
        self.staging.push(Staging { form, groups, scratch });
        Ok(self.staging.len() - 1)
    }

    /// Makes this worker's share of tokens in each form.
    ///
    /// # Safety
    /// The input is whole; workers take disjoint tokens.
    unsafe fn fill_staging(&self, run: &CpuRunContext<'_>, isa: Isa, tokens: usize, share: Range<usize>) {
        let MatmulInput::Floats(x) = &self.x else { return };
        let width = x.width();
        for s in &self.staging {
            let layout = ActivationBufferLayout::new(s.form, tokens, width / s.groups);
            for g in 0..s.groups {
                // SAFETY: `CpuMatmulGroup::stage` took scratch for the bucket's tokens, `slots` checked that there are no more.
                unsafe {
                    let x = x.first(run).add(g * layout.k());
                    layout.store(isa, x, width, share.clone(), s.scratch.at(run, g * layout.bytes()));
                }
            }
        }
    }

    /// Asks for the activations of one token. They were made by another worker as often as not, lie in its caches then,
    /// and are too few for the hardware to see what is coming.
    fn fetch(&self, run: &CpuRunContext<'_>) {
        match (&self.x, self.outputs.first().and_then(|made| made.matmuls.first())) {
            (MatmulInput::Quantized(codes), Some(p)) => {
                ActivationBufferLayout::new(ActivationEncoding::Q8, 1, p.matrix().k()).fetch(codes.first(run))
            }
            (MatmulInput::Quantized(_), None) => {}
            (MatmulInput::Floats(x), _) => {
                for s in &self.staging {
                    let layout = ActivationBufferLayout::new(s.form, 1, x.width() / s.groups);
                    (0..s.groups).for_each(|g| layout.fetch(s.scratch.at(run, g * layout.bytes())));
                }
            }
        }
    }

    /// Some panels of a group of a product times some tokens; `out` is the place of row 0 and of the group's column 0, rows
    /// are `stride` apart.
    ///
    /// # Safety
    /// The activations are whole; the results of these panels and tokens have places, which nobody else uses.
    unsafe fn multiply(
        &self,
        run: &CpuRunContext<'_>,
        (product, group): (&WeightMatmul, usize),
        part: &MatmulWorkItem,
        (out, stride): (*mut f32, usize),
    ) {
        let matrix = product.matrix();
        let layout = product.kernel.layout(run.size(self.x.rows()), matrix.k());
        let activations = match &product.activations {
            Activations::Quantized(codes) => codes.first(run),
            Activations::Staged(i) => self.staging[*i].scratch.at(run, group * layout.bytes()),
        };
        let job = Linear {
            kernel: &product.kernel,
            weights: matrix,
            matrix: group,
            layout,
            activations: activations.cast_const(),
            out,
            ldo: stride,
            rows: None,
        };
        // SAFETY: what `CpuMatmulGroup::multiply` is promised; `Site::packed` and the op's type rule fit weight, input
        // and output together.
        unsafe { linear::linear(&job, part.panels.clone(), part.tokens.clone()) };
    }

    /// Some panels of all products of an output times some tokens, and what becomes of them.
    ///
    /// # Safety
    /// As for [`CpuMatmulGroup::multiply`], for the output's elements of these panels and tokens; `worker` is this thread's
    /// number.
    unsafe fn compute_output(
        &self,
        run: &CpuRunContext<'_>,
        made: &MatmulOutput,
        ends: &MatmulDestination<'_>,
        part: &MatmulWorkItem,
        worker: usize,
    ) {
        for group in 0..made.groups {
            let multiply = |out: &*mut f32| {
                let place = (out.wrapping_add(made.first_column(group)), made.width);
                // SAFETY: what `CpuMatmulGroup::compute_output` is promised; `yirage_plan::VerifiedPlan` proves it of
                // programs.
                made.matmuls.iter().for_each(|product| unsafe { self.multiply(run, (product, group), part, place) });
            };
            match ends {
                MatmulDestination::Out(out) => multiply(out),
                MatmulDestination::Whole(out, ready) => {
                    multiply(out);
                    let columns = made.columns(group, &part.panels);
                    // SAFETY: what `CpuMatmulGroup::compute_output` is promised; `yirage_plan::VerifiedPlan` proves it
                    // of programs.
                    unsafe { ready.run(run.isa, part.tokens.clone(), columns, &[]) };
                }
                MatmulDestination::Blocks(blocks, size, ready) => size.cut(part).for_each(|block| {
                    // SAFETY: what `CpuMatmulGroup::compute_output` is promised; a block is a part of the part;
                    // `yirage_plan::VerifiedPlan` proves it of programs.
                    unsafe { self.compute_block(run, (made, group), (blocks, *size, ready), &block, worker) };
                }),
            }
        }
    }

    /// One block of several products, and what becomes of it.
    ///
    /// # Safety
    /// As for [`CpuMatmulGroup::compute_output`].
    unsafe fn compute_block(
        &self,
        run: &CpuRunContext<'_>,
        (made, group): (&MatmulOutput, usize),
        (blocks, size, ready): (&EpilogueBlocks, BlockSize, &BoundEpilogue<'_>),
        part: &MatmulWorkItem,
        worker: usize,
    ) {
        let (stride, columns) = (size.columns(), made.columns(group, &part.panels));
        let mut first = [std::ptr::null(); MAX_INPUTS];
        for ((number, product), first) in made.matmuls.iter().enumerate().zip(&mut first) {
            let block = blocks.first(run, worker, number);
            let row = part.tokens.start * stride;
            // SAFETY: `EpilogueBlocks::size` gives blocks that the worker's own memory has room for.
            unsafe {
                let out = block.wrapping_sub(row + part.panels.start * PANEL_ROWS);
                self.multiply(run, (product, group), part, (out, stride));
            }
            *first = block.wrapping_sub(row + columns.start).cast_const().cast();
        }
        // SAFETY: what `CpuMatmulGroup::compute_block` is promised; `yirage_plan::VerifiedPlan` proves it of programs.
        unsafe { ready.run(run.isa, part.tokens.clone(), columns, &first[..made.matmuls.len()]) };
    }
}

/// Bytes of weights that a waiting worker fetches before it may use them: a part of a second-level cache.
const WARM_BYTES: usize = 128 << 10;
/// Of these at each look at what it waits for.
const WARM_STEP: usize = 256;

impl CpuMatmulGroup {
    /// All products, cut for `workers`.
    fn cut(&self, tokens: usize, workers: usize) -> impl Iterator<Item = MatrixPartition> + Clone + use<'_> {
        work_items::cut(self.outputs.iter().map(|made| made.panels), &self.variant, tokens, workers)
    }
}

impl BoundKernel for CpuMatmulGroup {
    unsafe fn run(&self, stage: u32, run: &CpuRunContext<'_>, work: StageWork<'_>) {
        let tokens = run.size(self.x.rows());
        if stage == 0 {
            // SAFETY: what `BoundKernel::run` is promised; workers take disjoint tokens; `yirage_plan::VerifiedPlan`
            // proves it of programs.
            return unsafe { self.fill_staging(run, run.isa, tokens, work.partition(tokens)) };
        }
        if tokens == 1 {
            self.fetch(run);
        }
        let cut = self.cut(tokens, work.workers);
        let ends: Vec<MatmulDestination<'_>> =
            self.outputs.iter().map(|made| made.ends(run, &self.variant, tokens)).collect();
        let multiply = |some: Range<usize>| {
            for part in work_items::parts(cut.clone(), some) {
                // SAFETY: pieces of different workers are disjoint, and so are the rows and columns of the result.
                unsafe { self.compute_output(run, &self.outputs[part.matrix], &ends[part.matrix], &part, work.worker) };
            }
        };
        if work.uses_queue() && work_items::is_even(&self.variant, tokens) {
            multiply(work_items::even(cut.clone(), work.worker, work.workers));
        } else {
            work.for_each_item(work_items::total(cut.clone()), multiply);
        }
    }

    /// Fetches the weights that this worker begins with. At few tokens memory is what a step waits for, and it is idle
    /// while another worker is busy with a row.
    fn waiting(&self, stage: u32, run: &CpuRunContext<'_>, work: StageWork<'_>, look: u32) {
        let tokens = run.size(self.x.rows());
        let mut at = look as usize * WARM_STEP;
        if stage == 0 || tokens > TOKEN_TILE || at >= WARM_BYTES {
            return;
        }
        let cut = self.cut(tokens, work.workers);
        let first = match work_items::is_even(&self.variant, tokens) {
            true => work_items::even(cut.clone(), work.worker, work.workers),
            false => work.first(work_items::total(cut.clone())),
        };
        let matrices =
            |part: MatmulWorkItem| self.outputs[part.matrix].matmuls.iter().map(move |p| (p.matrix(), part.clone()));
        for (matrix, part) in work_items::parts(cut, first).flat_map(matrices) {
            let bytes = part.panels.len() * matrix.panel_bytes();
            if at < bytes {
                return prefetch(matrix.panel(0, part.panels.start).wrapping_add(at), WARM_STEP.min(bytes - at));
            }
            at -= bytes;
        }
    }
}
