//! Products of one input with several weights of any formats, and what becomes of their results.

use super::epilogue::{Epilogue, Ready};
use super::ways::{codes, elements, floats, packed};
use super::{BoundKernel, Kernel, not_for};
use crate::activation::{Form, Layout, TOKEN_TILE};
use crate::bind::{Binder, Codes, FloatRows, Out, Packed, Run, Scratch, Site, Whole};
use crate::isa::Isa;
use crate::linear::pieces::{self, Cut, Panels, Part};
use crate::linear::{self, Linear, Variant};
use crate::memory::prefetch;
use crate::pack::{PANEL_ROWS, PackedMatrix};
use crate::walk::Work;
use std::ops::Range;
use yirage_hal::HalError;
use yirage_ir::region::Chain;
use yirage_ir::{Dim, Dims, Op, RegionKind};
use yirage_plan::rules::OpRule;
use yirage_plan::{Precision, Sharing, Stage, When};

pub(super) const KERNEL: Kernel = Kernel {
    name: "cpu/products@1",
    regions: &[RegionKind::Products],
    rules,
    stages: &[Stage { sharing: Sharing::Shares, when: When::FloatInput }, Stage::always(Sharing::Drained)],
    scratch: true,
    bind,
};

/// Of groups each reads its own part of a row, which quantised rows do not have apart.
fn rules() -> Vec<OpRule> {
    vec![
        OpRule::new("linear", vec![floats(), packed()]),
        OpRule::new("linear", vec![codes(), packed()]).when("groups", 1),
        OpRule::new("map", vec![elements()]),
        OpRule::new("view", vec![elements()]),
    ]
}

/// What products read.
#[derive(Clone)]
pub(super) enum Input {
    /// Floats, which are staged in the form that each kernel reads.
    Floats(FloatRows),
    /// Activations that an op before has quantised.
    Codes(Codes),
}

impl Input {
    /// The first input of a product.
    pub(super) fn of(site: &Site) -> Result<Input, HalError> {
        Ok(if site.is_quantised(0) { Input::Codes(site.codes(0)?) } else { Input::Floats(site.float_rows(0)?) })
    }

    /// Whether it is quantised.
    pub(super) fn quantised(&self) -> bool {
        matches!(self, Input::Codes(_))
    }

    /// The dimension that its rows run over.
    pub(super) fn rows(&self) -> Dim {
        match self {
            Input::Floats(x) => x.rows(),
            Input::Codes(x) => x.rows(),
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
    Codes(Codes),
    /// Staged, by number.
    Staged(usize),
}

/// One weight's part.
struct Product {
    weight: Packed,
    kernel: linear::Dispatch,
    groups: usize,
    /// Numbers of a row of the result.
    width: usize,
    results: Results,
    activations: Activations,
}

/// What becomes of a product's results.
enum Results {
    /// They are what it makes.
    Made(Out<f32>),
    /// More is computed of them.
    Further(Box<Epilogue>),
}

impl Product {
    fn matrix(&self) -> &PackedMatrix {
        self.weight.matrix()
    }

    /// What more is computed in a run.
    fn epilogue(&self, run: &Run<'_>) -> Option<Ready<'_>> {
        match &self.results {
            Results::Made(_) => None,
            Results::Further(epilogue) => Some(epilogue.ready(run)),
        }
    }
}

/// An input form to make before multiplying.
struct Staging {
    form: Form,
    groups: usize,
    scratch: Scratch,
}

/// Products that share an input.
struct Products {
    x: Input,
    staging: Vec<Staging>,
    products: Vec<Product>,
    variant: Variant,
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
pub(super) fn one_input(sites: &[Site]) -> Result<&Site, HalError> {
    let first = sites.first().ok_or_else(|| HalError::Load("a region without products".into()))?;
    match sites.iter().find(|site| !site.shares_input(first)) {
        None => Ok(first),
        Some(other) => Err(HalError::Load(format!("`{}` reads another input than its region", other.op().name()))),
    }
}

fn bind(binder: &mut Binder<'_>, n: usize) -> Result<Box<dyn BoundKernel>, HalError> {
    let node = binder.whole(n)?;
    let chains = node.chains()?;
    let product = |(output, chain): (usize, &Chain)| node.product(output, chain);
    let sites = chains.iter().enumerate().map(product).collect::<Result<Vec<_>, _>>()?;
    let first = one_input(&sites)?;
    let mut made =
        Products { x: Input::of(first)?, staging: Vec::new(), products: Vec::new(), variant: binder.variant };
    for (output, (site, chain)) in sites.iter().zip(chains).enumerate() {
        let product = made.product(binder, &node, (output, chain), site)?;
        made.products.push(product);
    }
    Ok(Box::new(made))
}

impl Products {
    fn product(
        &mut self,
        binder: &mut Binder<'_>,
        node: &Whole,
        (output, chain): (usize, &Chain),
        site: &Site,
    ) -> Result<Product, HalError> {
        let Op::Linear(op) = site.op() else { return Err(not_for(KERNEL.name, site)) };
        let groups = op.groups as usize;
        let weight = site.packed(1, groups)?;
        let matrix = weight.matrix();
        let wanted = precision(self.x.quantised(), matrix.format().info().block, binder.precision);
        let kernel = linear::Dispatch::new(binder.shared.isa, self.variant, wanted, matrix.format());
        let kernel = kernel.map_err(|e| HalError::Load(e.to_string()))?;
        let activations = match &self.x {
            Input::Codes(codes) => Activations::Codes(codes.clone()),
            Input::Floats(_) => Activations::Staged(self.stage(binder, kernel.form(), groups, matrix.k())?),
        };
        let width = groups.saturating_mul(matrix.rows());
        let results = match Epilogue::bind(binder, node, output, chain, (self.x.rows(), width))? {
            Some(epilogue) => Results::Further(Box::new(epilogue)),
            None => Results::Made(site.out(0)?),
        };
        Ok(Product { weight, kernel, groups, width, results, activations })
    }

    /// Scratch for the input in `form`, shared by all products that read it so.
    fn stage(&mut self, binder: &mut Binder<'_>, form: Form, groups: usize, k: usize) -> Result<usize, HalError> {
        if let Some(i) = self.staging.iter().position(|s| s.form == form && s.groups == groups) {
            return Ok(i);
        }
        let tokens = self.x.most(binder.bucket());
        let scratch = binder.scratch.take(groups.saturating_mul(Layout::new(form, tokens, k).bytes()))?;
        self.staging.push(Staging { form, groups, scratch });
        Ok(self.staging.len() - 1)
    }

    /// Makes this worker's share of tokens in each form.
    ///
    /// # Safety
    /// The input is whole; workers take disjoint tokens.
    unsafe fn fill_staging(&self, run: &Run<'_>, isa: Isa, tokens: usize, share: Range<usize>) {
        let Input::Floats(x) = &self.x else { return };
        let width = x.width();
        for s in &self.staging {
            let layout = Layout::new(s.form, tokens, width / s.groups);
            for g in 0..s.groups {
                // SAFETY: `Products::stage` took scratch for the bucket's tokens, `slots` checked that there are no more.
                unsafe {
                    let x = x.first(run).add(g * layout.k());
                    layout.store(isa, x, width, share.clone(), s.scratch.at(run, g * layout.bytes()));
                }
            }
        }
    }

    /// Asks for the activations of one token. They were made by another worker as often as not, lie in its caches then,
    /// and are too few for the hardware to see what is coming.
    fn fetch(&self, run: &Run<'_>) {
        match (&self.x, self.products.first()) {
            (Input::Codes(codes), Some(p)) => Layout::new(Form::Q8, 1, p.matrix().k()).fetch(codes.first(run)),
            (Input::Codes(_), None) => {}
            (Input::Floats(x), _) => {
                for s in &self.staging {
                    let layout = Layout::new(s.form, 1, x.width() / s.groups);
                    (0..s.groups).for_each(|g| layout.fetch(s.scratch.at(run, g * layout.bytes())));
                }
            }
        }
    }

    /// One weight's panels times all tokens.
    ///
    /// # Safety
    /// The activations are whole; workers take disjoint panels.
    unsafe fn multiply(&self, run: &Run<'_>, p: &Product, tokens: usize, part: &Part) {
        let matrix = p.matrix();
        let layout = p.kernel.layout(tokens, matrix.k());
        let out = match &p.results {
            Results::Made(out) => out.first(run),
            Results::Further(epilogue) => epilogue.results(run),
        };
        for g in 0..p.groups {
            let activations = match &p.activations {
                Activations::Codes(codes) => codes.first(run),
                Activations::Staged(i) => self.staging[*i].scratch.at(run, g * layout.bytes()),
            };
            let job = Linear {
                kernel: &p.kernel,
                weights: matrix,
                matrix: g,
                layout,
                activations: activations.cast_const(),
                out: out.wrapping_add(g * matrix.rows()),
                ldo: p.width,
                rows: None,
            };
            // SAFETY: the caller's contract; `Site::packed` and the op's type rule fit weight, input and output together.
            unsafe { linear::linear(&job, part.panels.clone(), part.tokens.clone()) };
        }
    }
}

/// Bytes of weights that a waiting worker fetches before it may use them: a part of a second-level cache.
const WARM_BYTES: usize = 128 << 10;
/// Of these at each look at what it waits for.
const WARM_STEP: usize = 256;

impl Products {
    /// All products, cut for `workers`.
    fn cut(&self, tokens: usize, workers: usize) -> impl Iterator<Item = Cut> + Clone + use<'_> {
        let panels = |p: &Product| Panels { count: p.matrix().panels(), bytes: p.matrix().panel_bytes() };
        let panels = self.products.iter().map(panels);
        pieces::cut(panels, &self.variant, tokens, workers)
    }

    /// The columns of the result that some panels of a product make: of each group the same part.
    fn columns(product: &Product, panels: &Range<usize>) -> impl Iterator<Item = Range<usize>> + use<> {
        let rows = product.matrix().rows();
        let (from, to) = (panels.start * PANEL_ROWS, (panels.end * PANEL_ROWS).min(rows));
        (0..product.groups).map(move |g| g * rows + from..g * rows + to)
    }
}

impl BoundKernel for Products {
    unsafe fn run(&self, stage: u32, run: &Run<'_>, work: Work<'_>) {
        let tokens = run.size(self.x.rows());
        if stage == 0 {
            // SAFETY: the caller's contract; workers take disjoint tokens.
            return unsafe { self.fill_staging(run, run.isa, tokens, work.share(tokens)) };
        }
        if tokens == 1 {
            self.fetch(run);
        }
        let cut = self.cut(tokens, work.workers);
        let epilogues: Vec<Option<Ready<'_>>> = self.products.iter().map(|p| p.epilogue(run)).collect();
        let multiply = |some: Range<usize>| {
            for part in pieces::parts(cut.clone(), some) {
                let product = &self.products[part.matrix];
                // SAFETY: pieces of different workers are disjoint, and so are the rows and columns of the result.
                unsafe {
                    self.multiply(run, product, tokens, &part);
                    if let Some(epilogue) = &epilogues[part.matrix] {
                        for columns in Products::columns(product, &part.panels) {
                            epilogue.run(run.isa, part.tokens.clone(), columns);
                        }
                    }
                }
            }
        };
        if work.drains() && pieces::is_even(&self.variant, tokens) {
            multiply(pieces::even(cut.clone(), work.worker, work.workers));
        } else {
            work.drain(pieces::total(cut.clone()), multiply);
        }
    }

    /// Fetches the weights that this worker begins with. At few tokens memory is what a step waits for, and it is idle
    /// while another worker is busy with a row.
    fn waiting(&self, stage: u32, run: &Run<'_>, work: Work<'_>, look: u32) {
        let tokens = run.size(self.x.rows());
        let mut at = look as usize * WARM_STEP;
        if stage == 0 || tokens > TOKEN_TILE || at >= WARM_BYTES {
            return;
        }
        let cut = self.cut(tokens, work.workers);
        let first = match pieces::is_even(&self.variant, tokens) {
            true => pieces::even(cut.clone(), work.worker, work.workers),
            false => work.first(pieces::total(cut.clone())),
        };
        for part in pieces::parts(cut, first) {
            let matrix = self.products[part.matrix].matrix();
            let bytes = part.panels.len() * matrix.panel_bytes();
            if at < bytes {
                return prefetch(matrix.panel(0, part.panels.start).wrapping_add(at), WARM_STEP.min(bytes - at));
            }
            at -= bytes;
        }
    }
}
