//! Products with the experts each token has chosen: an expert's weights meet all its tokens at once.

use super::matmul_group::{MatmulInput, one_input, precision};
use super::operand_constraints::{floats, integers, packed, quantized};
use super::{BoundKernel, Kernel, not_for};
use crate::bind::{
    Binder, CpuRunContext, FloatRows, OutputRows, PackedWeight, QuantizedRows, ScratchBuffer, Site, WordArray,
};
use crate::walk::StageWork;
use std::ops::Range;
use yirage_cpu_kernels::activation::ActivationBufferLayout;
use yirage_cpu_kernels::linear::{self, Linear};
use yirage_cpu_kernels::pack::{BLOCK, PackedMatrix};
use yirage_hal::HalError;
use yirage_ir::op::NO_EXPERT;
use yirage_ir::{Op, RegionKind};
use yirage_plan::rules::OpRule;
use yirage_plan::{Partitioning, Stage, StageCondition};

impl Kernel {
    pub(super) const EXPERTS: Kernel = Kernel {
        name: "cpu/experts@1",
        regions: &[RegionKind::MatmulGroup],
        rules: || vec![OpRule::new("expert_linear", vec![[floats(), quantized()].concat(), packed(), integers()])],
        stages: &[
            Stage { partitioning: Partitioning::Static, when: StageCondition::FloatInput },
            Stage::always(Partitioning::Static),
            Stage::always(Partitioning::WorkQueue),
        ],
        scratch: true,
        bind,
    };
}

/// The rows that experts multiply, each by itself.
enum ExpertInputRows {
    /// As they were quantised.
    Quantized(QuantizedRows),
    /// Floats, and where they are staged in the form that the kernel reads.
    Floats(FloatRows, ScratchBuffer),
}

/// One stack of experts.
struct Stack {
    weight: PackedWeight,
    kernel: linear::Dispatch,
    rows: ExpertInputRows,
    chosen: WordArray<i32>,
    out: OutputRows<f32>,
    top_k: usize,
    shared: bool,
    /// The rows of experts that several tokens have chosen, together.
    gathered: ScratchBuffer,
}

/// The (token, rank) pairs that chose one expert.
struct ExpertTokenGroup {
    expert: usize,
    /// Of the pairs in order of their experts.
    pairs: Range<usize>,
}

/// Expert products that share an input.
struct ExpertMatmulGroup {
    x: MatmulInput,
    stacks: Vec<Stack>,
}

fn bind(binder: &mut Binder<'_>, n: usize) -> Result<Box<dyn BoundKernel>, HalError> {
    let sites = binder.sites(n)?;
    let first = one_input(sites.iter())?;
    let x = MatmulInput::of(first)?;
    let stacks = sites.iter().map(|site| stack(binder, &x, site)).collect::<Result<_, _>>()?;
    Ok(Box::new(ExpertMatmulGroup { x, stacks }))
}

fn stack(binder: &mut Binder<'_>, x: &MatmulInput, site: &Site) -> Result<Stack, HalError> {
    let Op::ExpertLinear(op) = site.op() else { return Err(not_for(Kernel::EXPERTS.name, site)) };
    let (tokens, top_k) = (x.most(binder.bucket()), op.top_k as usize);
    let parts = if op.shared { 1 } else { top_k };
    let weight = site.packed(1, site.stack(1)?)?;
    let matrix = weight.matrix();
    let wanted = precision(x.quantised(), matrix.format().info().block, binder.precision);
    let kernel = linear::Dispatch::new(binder.shared.isa, binder.variant, wanted, matrix.format());
    let kernel = kernel.map_err(|e| HalError::Load(e.to_string()))?;
    let row = kernel.layout(1, matrix.k()).bytes();
    let take =
        |binder: &mut Binder<'_>, rows: usize| binder.scratch.take(tokens.saturating_mul(rows).saturating_mul(row));
    let rows = match x {
        MatmulInput::Quantized(_) if parts > 1 && !matrix.k().is_multiple_of(2 * BLOCK) => {
            let k = matrix.k();
            return Err(HalError::Load(format!("quantised parts of {k} elements do not lie whole in a row")));
        }
        MatmulInput::Quantized(codes) => ExpertInputRows::Quantized(codes.clone()),
        MatmulInput::Floats(floats) => ExpertInputRows::Floats(floats.clone(), take(binder, parts)?),
    };
    let gathered = take(binder, top_k)?;
    let (chosen, out) = (site.array(2)?, site.out(0)?);
    Ok(Stack { weight, kernel, rows, chosen, out, top_k, shared: op.shared, gathered })
}

impl Stack {
    fn matrix(&self) -> &PackedMatrix {
        self.weight.matrix()
    }

    /// The layout of one row.
    fn one(&self) -> ActivationBufferLayout {
        self.kernel.layout(1, self.matrix().k())
    }

    /// Stages this worker's share of the rows.
    ///
    /// # Safety
    /// The input is whole; workers take disjoint rows.
    unsafe fn stage(&self, run: &CpuRunContext<'_>, tokens: usize, work: StageWork<'_>) {
        let ExpertInputRows::Floats(x, staged) = &self.rows else { return };
        let layout = self.one();
        let rows = tokens * if self.shared { 1 } else { self.top_k };
        for r in work.partition(rows) {
            // SAFETY: `stack` took scratch for the bucket's tokens, `slots` checked that there are no more.
            unsafe {
                let (x, out) = (x.first(run).add(r * layout.k()), staged.at(run, r * layout.bytes()));
                layout.store(run.isa, x, layout.k(), 0..1, out);
            }
        }
    }

    /// Brings the rows of each expert that several tokens have chosen together, as products of several tokens want them, and
    /// writes the results of experts that are none.
    ///
    /// # Safety
    /// Rows are staged and experts chosen; workers take disjoint pairs.
    unsafe fn gather(&self, run: &CpuRunContext<'_>, work: StageWork<'_>) {
        let count = self.matrix().count();
        // SAFETY: the router wrote the choice in an earlier step.
        let chosen = unsafe { self.chosen.all(run) };
        let (order, groups) = group(chosen, count);
        if order.len() < chosen.len() {
            let is_wrong = |&e: &i32| e != NO_EXPERT && usize::try_from(e).map_or(true, |e| e >= count);
            if let Some(p) = chosen.iter().position(is_wrong) {
                run.fail(format!("token {} chose expert {} of {count}", p / self.top_k, chosen[p]));
            }
            // SAFETY: what `Stack::gather` is promised.
            unsafe { self.clear(run, chosen, work) };
        }
        let one = self.one();
        let mine = work.partition(order.len());
        for g in groups.iter().filter(|g| g.pairs.len() > 1) {
            let layout = self.kernel.layout(g.pairs.len(), one.k());
            let (pairs, own) = (&order[g.pairs.clone()], |at: usize| mine.contains(&(g.pairs.start + at)));
            for (token, &pair) in pairs.iter().enumerate().filter(|(at, _)| own(*at)) {
                let to = self.gathered.at(run, g.pairs.start * one.bytes());
                // SAFETY: `stack` took scratch for every pair.
                unsafe { layout.copy_token(run.isa, self.row(run, pair as usize), token, to) };
            }
        }
    }

    /// Zeroes the results of experts that are none.
    ///
    /// # Safety
    /// Workers take disjoint pairs.
    unsafe fn clear(&self, run: &CpuRunContext<'_>, chosen: &[i32], work: StageWork<'_>) {
        let n = self.matrix().rows();
        for pair in work.partition(chosen.len()).filter(|&pair| chosen[pair] == NO_EXPERT) {
            // SAFETY: the op's type rule gives each pair `n` elements of the output, which `Site::out` bound whole.
            unsafe { self.out.first(run).add(pair * n).write_bytes(0, n) };
        }
    }

    /// The stored row of a pair: a shared input has one a token, else each pair has its own.
    fn row(&self, run: &CpuRunContext<'_>, pair: usize) -> *const u8 {
        let row = if self.shared { pair / self.top_k } else { pair };
        let at = row * self.one().bytes();
        match &self.rows {
            ExpertInputRows::Floats(_, staged) => staged.at(run, at).cast_const(),
            ExpertInputRows::Quantized(codes) => codes.first(run).wrapping_add(at).cast_const(),
        }
    }

    /// One expert's product with all rows that chose it.
    ///
    /// # Safety
    /// Rows are gathered; workers take disjoint panels.
    unsafe fn multiply(&self, run: &CpuRunContext<'_>, order: &[u32], g: &ExpertTokenGroup, panels: Range<usize>) {
        let (matrix, one) = (self.matrix(), self.one());
        let pairs = &order[g.pairs.clone()];
        let activations = match pairs {
            [pair] => self.row(run, *pair as usize),
            _ => self.gathered.at(run, g.pairs.start * one.bytes()).cast_const(),
        };
        let job = Linear {
            kernel: &self.kernel,
            weights: matrix,
            matrix: g.expert,
            layout: self.kernel.layout(pairs.len(), one.k()),
            activations,
            out: self.out.first(run),
            ldo: matrix.rows(),
            rows: Some(pairs),
        };
        // SAFETY: what `Stack::multiply` is promised; `Site::packed` and the op's type rule fit weight and output
        // together, `group` left out experts that do not exist.
        unsafe { linear::linear(&job, panels, 0..pairs.len()) };
    }
}

/// Pairs in order of the experts they chose, and for each expert that is chosen where its pairs stand. Pairs with an
/// expert that is none, or that does not exist, are left out.
fn group(chosen: &[i32], experts: usize) -> (Vec<u32>, Vec<ExpertTokenGroup>) {
    let expert = |p: u32| usize::try_from(chosen[p as usize]).unwrap_or(usize::MAX);
    let mut order: Vec<u32> = (0..chosen.len() as u32).filter(|&p| expert(p) < experts).collect();
    order.sort_by_key(|&p| (expert(p), p));
    let mut groups: Vec<ExpertTokenGroup> = Vec::new();
    for (at, &p) in order.iter().enumerate() {
        match groups.last_mut().filter(|g| g.expert == expert(p)) {
            Some(g) => g.pairs.end = at + 1,
            None => groups.push(ExpertTokenGroup { expert: expert(p), pairs: at..at + 1 }),
        }
    }
    (order, groups)
}

impl ExpertMatmulGroup {
    /// Pieces of all stacks: some panels of one expert each.
    ///
    /// # Safety
    /// Rows are gathered.
    unsafe fn multiply_all(&self, run: &CpuRunContext<'_>, work: StageWork<'_>) {
        let of = |s| {
            let s: &Stack = s;
            let m = s.matrix();
            // SAFETY: the router wrote the choice in an earlier step.
            let (order, groups) = group(unsafe { s.chosen.all(run) }, m.count());
            let step = (s.kernel.variant().group / m.panel_bytes().max(1)).clamp(1, m.panels().max(1));
            (s, order, groups, step, m.panels())
        };
        let stacks: Vec<_> = self.stacks.iter().map(of).collect();
        let counts: Vec<usize> =
            stacks.iter().map(|(_, _, g, step, panels)| g.len() * panels.div_ceil(*step)).collect();
        work.for_each_item(counts.iter().sum(), |some| {
            for piece in some {
                let (mut i, mut at) = (0, piece);
                while at >= counts[i] {
                    at -= counts[i];
                    i += 1;
                }
                let (s, order, groups, step, panels) = &stacks[i];
                let each = panels.div_ceil(*step);
                let first = at % each * step;
                // SAFETY: what `ExpertMatmulGroup::multiply_all` is promised; pieces are disjoint panels or experts;
                // `yirage_plan::VerifiedPlan` proves it of programs.
                unsafe { s.multiply(run, order, &groups[at / each], first..(first + step).min(*panels)) };
            }
        });
    }
}

impl BoundKernel for ExpertMatmulGroup {
    unsafe fn run(&self, stage: u32, run: &CpuRunContext<'_>, work: StageWork<'_>) {
        let tokens = run.size(self.x.rows());
        // SAFETY: what `BoundKernel::run` is promised; each stage ends before the next begins;
        // `yirage_plan::VerifiedPlan` proves it of programs.
        unsafe {
            match stage {
                0 => self.stacks.iter().for_each(|s| s.stage(run, tokens, work)),
                1 => self.stacks.iter().for_each(|s| s.gather(run, work)),
                _ => self.multiply_all(run, work),
            }
        }
    }
}
