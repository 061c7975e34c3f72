//! A vision tower on a device: pictures in, rows of embeddings out. A picture is one step by itself, so its rows are the
//! same bytes whatever else is computed.

use crate::embedded::{EmbeddedError, EmbeddingRows};
use crate::error::EngineError;
use crate::load::{DeviceSizes, LoadProgressFn, bind_weights, check};
use crate::memory::LoadBytes;
use crate::options::EngineOptions;
use crate::packed::Notice;
use crate::variants::{self, ModelMatmuls};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::sync::Arc;
use yirage_compile::{CompileOptions, compile, plan_weights};
use yirage_hal::{Device, Executor, HalError};
use yirage_ir::{Dims, ValueSource};
use yirage_model::arch::{PatchGrid, PictureMarkup, VisionModel, build_tower, picture_token};
use yirage_model::{Checkpoint, RawConfig};

/// The output of a tower's graph.
const OUTPUT: usize = 0;

/// Red, green and blue.
const CHANNELS: usize = 3;

/// Pictures whose rows are kept: those of a conversation come again with each turn.
const MAX_KEPT: usize = 16;

/// A picture as a tower reads it.
#[derive(Clone, PartialEq, Debug)]
pub struct Picture {
    /// Pixels of a row.
    pub width: u32,
    /// Rows.
    pub height: u32,
    /// All numbers of red, then of green, then of blue, row by row from the top.
    pub values: Vec<f32>,
}

/// A vision tower on a device.
pub struct VisionTower {
    grid: PatchGrid,
    markup: PictureMarkup,
    width: u32,
    token: u32,
    bytes: LoadBytes,
    executor: Executor,
    notices: Vec<Notice>,
    /// The rows of the latest pictures, the last used one at the end.
    kept: Vec<([u8; 32], Arc<EmbeddingRows>)>,
}

impl VisionTower {
    /// Loads the vision tower of the model of `checkpoint`; none where it has none that is known.
    ///
    /// # Errors
    /// As [`Engine::load`](crate::Engine::load).
    pub fn load(
        checkpoint: &Checkpoint,
        device: &dyn Device,
        options: &EngineOptions,
        progress: LoadProgressFn,
    ) -> Result<Option<VisionTower>, EngineError> {
        let config = RawConfig::load(checkpoint)?;
        let Some(token) = picture_token(&config)? else { return Ok(None) };
        let VisionModel { model, grid, markup, width } = build_tower(checkpoint, &config)?;
        let target = device.target();
        let weights = plan_weights(&model.graph, &target)?;
        let bucket = Dims { tokens: grid.rows(), seqs: 1, blocks: 1, rows: grid.embeddings() };
        let plan = compile(&model.graph, bucket, &target, &weights, &CompileOptions::new(options.precision))?;
        let sizes = DeviceSizes::new(device, &model, &weights)?;
        let of = |id| plan.graph.ty(id).bytes(&plan.bucket) as u64;
        let slots = plan.graph.inputs_of(ValueSource::StepInput).map(of).fold(0, u64::saturating_add);
        let outputs = plan.graph.outputs.iter().map(|&id| of(id)).fold(0, u64::saturating_add);
        let bytes = LoadBytes {
            weights: sizes.weights.values().copied().fold(0, u64::saturating_add),
            cache: 0,
            arena: plan.arena,
            tables: slots.saturating_add(outputs),
        };
        check(&bytes, device)?;
        let mut bindings = bind_weights(checkpoint, device, &model, &weights, HashMap::new(), progress)?;
        let mut notices = Vec::new();
        let products = ModelMatmuls { plan: &weights, precision: options.precision, bytes: bytes.weights };
        variants::bind(device, products, &mut bindings, &options.tuning, &mut notices)?;
        let mut executor = Executor::new(device, &plan, &bindings)?;
        options.executor.map_or(Ok(()), |kind| executor.force(kind))?;
        Ok(Some(VisionTower { grid, markup, width, token, bytes, executor, notices, kept: Vec::new() }))
    }

    /// The token of a prompt that stands for a row of a picture.
    pub fn token(&self) -> u32 {
        self.token
    }

    /// What a picture's place in a prompt becomes.
    pub fn markup(&self) -> PictureMarkup {
        self.markup
    }

    /// Rows of a picture.
    pub fn rows(&self) -> u32 {
        self.grid.embeddings()
    }

    /// Memory predicted before the load.
    pub fn bytes(&self) -> LoadBytes {
        self.bytes
    }

    /// What became known of the kernels' variant since the last call.
    pub fn notices(&mut self) -> Vec<Notice> {
        std::mem::take(&mut self.notices)
    }

    /// The rows of a picture.
    ///
    /// # Errors
    /// [`EngineError::Embedded`] for another size than the tower's, and for rows that are no numbers; what the device says.
    pub fn embed(&mut self, picture: &Picture) -> Result<Arc<EmbeddingRows>, EngineError> {
        let (side, numbers) = (self.grid.side, picture.values.len());
        let whole = CHANNELS * side as usize * side as usize;
        if (picture.width, picture.height, numbers) != (side, side, whole) {
            let (width, height) = (picture.width, picture.height);
            return Err(EmbeddedError::Picture { width, height, numbers, side }.into());
        }
        let key = key(picture);
        if let Some(at) = self.kept.iter().position(|(kept, _)| *kept == key) {
            let found = self.kept.remove(at);
            self.kept.push(found.clone());
            return Ok(found.1);
        }
        let rows = Arc::new(EmbeddingRows::new(key, self.width, self.run(picture)?)?);
        if self.kept.len() == MAX_KEPT {
            self.kept.remove(0);
        }
        self.kept.push((key, rows.clone()));
        Ok(rows)
    }

    fn run(&mut self, picture: &Picture) -> Result<Vec<f32>, HalError> {
        let (grid, executor) = (self.grid, &mut self.executor);
        let rows = grid.rows() as i32;
        let class = usize::from(grid.class_row);
        let blank = class * grid.patch_numbers() as usize;
        executor.set_floats("patches", std::iter::repeat_n(0.0, blank).chain(patches(grid, picture)));
        executor.set_floats("class", (0..rows).map(|row| if row < class as i32 { 1.0 } else { 0.0 }));
        executor.set("positions", 0..rows);
        executor.set("seqs", (0..rows).map(|_| 0));
        for (slot, read) in grid.read() {
            executor.set(&slot, read);
        }
        let dims = Dims { tokens: grid.rows(), seqs: 1, blocks: 0, rows: grid.embeddings() };
        Ok(executor.run(&dims)?.floats(OUTPUT)?.to_vec())
    }
}

/// The numbers of each patch, row by row of patches: channel, row, column.
fn patches(grid: PatchGrid, picture: &Picture) -> impl Iterator<Item = f32> + '_ {
    let (across, patch, side) = (grid.across() as usize, grid.patch as usize, grid.side as usize);
    let places = (0..across).flat_map(move |y| (0..across).map(move |x| (y * patch, x * patch)));
    places.flat_map(move |(top, left)| {
        let lines = (0..CHANNELS).flat_map(move |c| (0..patch).map(move |y| (c * side + top + y) * side + left));
        lines.flat_map(move |at| picture.values[at..at + patch].iter().copied())
    })
}

/// The name of a picture's rows.
fn key(picture: &Picture) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(b"yirage picture");
    picture.values.iter().for_each(|x| hash.update(x.to_le_bytes()));
    hash.finalize().into()
}
