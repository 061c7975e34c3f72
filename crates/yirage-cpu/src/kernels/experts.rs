//! Products with the experts each token has chosen: an expert's weights meet all its tokens at once.

use super::products::{Input, one_input, precision};
use super::ways::{codes, floats, integers, packed};
use super::{BoundKernel, Kernel, not_for};
use crate::activation::Layout;
use crate::bind::{Array, Binder, Codes, FloatRows, Out, Packed, Run, Scratch, Site};
use crate::linear::{self, Linear};
use crate::pack::{BLOCK, PackedMatrix};
use crate::walk::Work;
use std::ops::Range;
use yirage_hal::HalError;
use yirage_ir::{Op, RegionKind};
use yirage_plan::rules::OpRule;
use yirage_plan::{Sharing, Stage, When};

pub(super) const KERNEL: Kernel = Kernel {
    name: "cpu/experts@1",
    regions: &[RegionKind::Products],
    rules: || vec![OpRule::new("expert_linear", vec![[floats(), codes()].concat(), packed(), integers()])],
    stages: &[
        Stage { sharing: Sharing::Shares, when: When::FloatInput },
        Stage::always(Sharing::Shares),
        Stage::always(Sharing::Drained),
    ],
    scratch: true,
    bind,
};

/// The rows that experts multiply, each by itself.
enum Rows {
    /// As they were quantised.
    Codes(Codes),
    /// Floats, and where they are staged in the form that the kernel reads.
    Floats(FloatRows, Scratch),
}

/// One stack of experts.
struct Stack {
    weight: Packed,
    kernel: linear::Dispatch,
    rows: Rows,
    chosen: Array<i32>,
    out: Out<f32>,
    top_k: usize,
    shared: bool,
    /// The rows of experts that several tokens have chosen, together.
    gathered: Scratch,
}

/// The (token, rank) pairs that chose one expert.
struct Group {
    expert: usize,
    /// Of the pairs in order of their experts.
    pairs: Range<usize>,
}

/// Expert products that share an input.
struct Experts {
    x: Input,
    stacks: Vec<Stack>,
}

fn bind(binder: &mut Binder<'_>, n: usize) -> Result<Box<dyn BoundKernel>, HalError> {
    let sites = binder.sites(n)?;
    let first = one_input(sites.iter())?;
    let x = Input::of(first)?;
    let stacks = sites.iter().map(|site| stack(binder, &x, site)).collect::<Result<_, _>>()?;
    Ok(Box::new(Experts { x, stacks }))
}

fn stack(binder: &mut Binder<'_>, x: &Input, site: &Site) -> Result<Stack, HalError> {
    let Op::ExpertLinear(op) = site.op() else { return Err(not_for(KERNEL.name, site)) };
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
        Input::Codes(_) if parts > 1 && !matrix.k().is_multiple_of(2 * BLOCK) => {
            let k = matrix.k();
            return Err(HalError::Load(format!("quantised parts of {k} elements do not lie whole in a row")));
        }
        Input::Codes(codes) => Rows::Codes(codes.clone()),
        Input::Floats(floats) => Rows::Floats(floats.clone(), take(binder, parts)?),
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
    fn one(&self) -> Layout {
        self.kernel.layout(1, self.matrix().k())
    }

    /// Stages this worker's share of the rows.
    ///
    /// # Safety
    /// The input is whole; workers take disjoint rows.
    unsafe fn stage(&self, run: &Run<'_>, tokens: usize, work: Work<'_>) {
        let Rows::Floats(x, staged) = &self.rows else { return };
        let layout = self.one();
        let rows = tokens * if self.shared { 1 } else { self.top_k };
        for r in work.share(rows) {
            // SAFETY: `stack` took scratch for the bucket's tokens, `slots` checked that there are no more.
            unsafe {
                let (x, out) = (x.first(run).add(r * layout.k()), staged.at(run, r * layout.bytes()));
                layout.store(run.isa, x, layout.k(), 0..1, out);
            }
        }
    }

    /// Brings the rows of each expert that several tokens have chosen together, as products of several tokens want them.
    ///
    /// # Safety
    /// Rows are staged and experts chosen; workers take disjoint pairs.
    unsafe fn gather(&self, run: &Run<'_>, work: Work<'_>) {
        let count = self.matrix().count();
        // SAFETY: the router wrote the choice in an earlier step.
        let chosen = unsafe { self.chosen.all(run) };
        let (order, groups) = group(chosen, count);
        if order.len() < chosen.len() {
            let wrong = chosen.iter().position(|&e| usize::try_from(e).map_or(true, |e| e >= count));
            let p = wrong.unwrap_or(0);
            run.fail(format!("token {} chose expert {} of {count}", p / self.top_k, chosen[p]));
        }
        let one = self.one();
        let mine = work.share(order.len());
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

    /// The stored row of a pair: a shared input has one a token, else each pair has its own.
    fn row(&self, run: &Run<'_>, pair: usize) -> *const u8 {
        let row = if self.shared { pair / self.top_k } else { pair };
        let at = row * self.one().bytes();
        match &self.rows {
            Rows::Floats(_, staged) => staged.at(run, at).cast_const(),
            Rows::Codes(codes) => codes.first(run).wrapping_add(at).cast_const(),
        }
    }

    /// One expert's product with all rows that chose it.
    ///
    /// # Safety
    /// Rows are gathered; workers take disjoint panels.
    unsafe fn multiply(&self, run: &Run<'_>, order: &[u32], g: &Group, panels: Range<usize>) {
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
        // SAFETY: the caller's contract; `Site::packed` and the op's type rule fit weight and output together, `group` left
        // out experts that do not exist.
        unsafe { linear::linear(&job, panels, 0..pairs.len()) };
    }
}

/// Pairs in order of the experts they chose, and for each expert that is chosen where its pairs stand. Pairs with an
/// expert that does not exist are left out.
fn group(chosen: &[i32], experts: usize) -> (Vec<u32>, Vec<Group>) {
    let expert = |p: u32| usize::try_from(chosen[p as usize]).unwrap_or(usize::MAX);
    let mut order: Vec<u32> = (0..chosen.len() as u32).filter(|&p| expert(p) < experts).collect();
    order.sort_by_key(|&p| (expert(p), p));
    let mut groups: Vec<Group> = Vec::new();
    for (at, &p) in order.iter().enumerate() {
        match groups.last_mut().filter(|g| g.expert == expert(p)) {
            Some(g) => g.pairs.end = at + 1,
            None => groups.push(Group { expert: expert(p), pairs: at..at + 1 }),
        }
    }
    (order, groups)
}

impl Experts {
    /// Pieces of all stacks: some panels of one expert each.
    ///
    /// # Safety
    /// Rows are gathered.
    unsafe fn multiply_all(&self, run: &Run<'_>, work: Work<'_>) {
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
        work.drain(counts.iter().sum(), |some| {
            for piece in some {
                let (mut i, mut at) = (0, piece);
                while at >= counts[i] {
                    at -= counts[i];
                    i += 1;
                }
                let (s, order, groups, step, panels) = &stacks[i];
                let each = panels.div_ceil(*step);
                let first = at % each * step;
                // SAFETY: the caller's contract; pieces are disjoint panels or experts.
                unsafe { s.multiply(run, order, &groups[at / each], first..(first + step).min(*panels)) };
            }
        });
    }
}

impl BoundKernel for Experts {
    unsafe fn run(&self, stage: u32, run: &Run<'_>, work: Work<'_>) {
        let tokens = run.size(self.x.rows());
        // SAFETY: the caller's contract; each stage ends before the next begins.
        unsafe {
            match stage {
                0 => self.stacks.iter().for_each(|s| s.stage(run, tokens, work)),
                1 => self.stacks.iter().for_each(|s| s.gather(run, work)),
                _ => self.multiply_all(run, work),
            }
        }
    }
}
