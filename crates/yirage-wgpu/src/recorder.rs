//! Commands on their way to the device: recorded one after the other, and submitted together.
//!
//! Launches that follow each other are one pass. What a launch writes and the next one reads is waited for between them, by
//! the interface's own rules; so the queue runs in its order.

use crate::clock::TimestampBatch;
use crate::limits::{MOST_RECORDED, MOST_TIMESTAMPS};
use crate::memory::BufferRange;
use crate::timeline::SubmissionTimeline;
use crate::transfers::StagingBuffer;
use std::sync::Arc;
use yirage_hal::driver::DriverError;

/// A command with all that it needs, as often as it is wanted.
#[derive(Clone, Debug)]
pub(crate) enum RecordedCommand {
    /// Runs a kernel.
    Dispatch { pipeline: wgpu::ComputePipeline, group: wgpu::BindGroup, grid: [u32; 3] },
    /// Copies whole words to another buffer.
    Copy { from: BufferRange, to: BufferRange },
    /// Makes whole words zero.
    Clear(BufferRange),
}

/// The host's end of the queue.
pub(crate) struct Recorder {
    device: wgpu::Device,
    queue: wgpu::Queue,
    timeline: Arc<SubmissionTimeline>,
    // A pass ends before what it is a pass of.
    pass: Option<OpenPass>,
    encoder: Option<wgpu::CommandEncoder>,
    /// Commands since the last submission.
    recorded: u32,
    /// Buffers that the host reads when what is recorded has run.
    staged: Vec<Arc<StagingBuffer>>,
    timestamps: Option<Arc<TimestampBatch>>,
}

/// Launches that follow each other.
struct OpenPass {
    pass: wgpu::ComputePass<'static>,
    pipeline: Option<wgpu::ComputePipeline>,
}

impl Recorder {
    pub(crate) fn new(device: wgpu::Device, queue: wgpu::Queue, timeline: Arc<SubmissionTimeline>) -> Recorder {
        Recorder {
            device,
            queue,
            timeline,
            pass: None,
            encoder: None,
            recorded: 0,
            staged: Vec::new(),
            timestamps: None,
        }
    }

    /// Records a command.
    pub(crate) fn record(&mut self, command: &RecordedCommand) {
        match command {
            RecordedCommand::Dispatch { pipeline, group, grid: [x, y, z] } => {
                let OpenPass { pass, pipeline: set } = self.pass();
                if set.as_ref() != Some(pipeline) {
                    pass.set_pipeline(pipeline);
                    *set = Some(pipeline.clone());
                }
                pass.set_bind_group(0, group, &[]);
                pass.dispatch_workgroups(*x, *y, *z);
            }
            RecordedCommand::Copy { from, to } => self.copy(from, &to.buffer, to.offset),
            RecordedCommand::Clear(range) => {
                self.encoder().clear_buffer(&range.buffer, range.offset, Some(range.bytes))
            }
        }
        self.recorded += 1;
        if self.recorded >= MOST_RECORDED {
            self.flush();
        }
    }

    fn copy(&mut self, from: &BufferRange, to: &wgpu::Buffer, offset: u64) {
        self.encoder().copy_buffer_to_buffer(&from.buffer, from.offset, to, offset, from.bytes);
    }

    /// Records a copy of whole words to a buffer that the host reads later.
    pub(crate) fn download(&mut self, from: &BufferRange, to: &Arc<StagingBuffer>) {
        self.copy(from, to.buffer(), 0);
        self.recorded += 1;
        self.staged.push(to.clone());
    }

    /// Submits a write of whole words, behind what is recorded: a write comes before everything that is submitted after it.
    pub(crate) fn upload(&mut self, bytes: &[u8], to: &wgpu::Buffer, offset: u64) {
        if self.recorded > 0 {
            self.flush();
        }
        self.queue.write_buffer(to, offset, bytes);
    }

    /// Records a timestamp: the batch that it is in, and its place there.
    pub(crate) fn timestamp(
        &mut self,
        batch: impl FnOnce() -> Result<TimestampBatch, DriverError>,
        set: &wgpu::QuerySet,
    ) -> Result<(Arc<TimestampBatch>, u32), DriverError> {
        if self.timestamps.as_ref().is_some_and(|batch| batch.count() >= MOST_TIMESTAMPS) {
            self.flush();
        }
        let batch = match &self.timestamps {
            Some(batch) => batch.clone(),
            None => self.timestamps.insert(Arc::new(batch()?)).clone(),
        };
        let place = batch.add();
        self.encoder().write_timestamp(set, place);
        self.recorded += 1;
        Ok((batch, place))
    }

    /// Submits what is recorded.
    fn flush(&mut self) -> wgpu::SubmissionIndex {
        if let Some(batch) = self.timestamps.take() {
            batch.resolve(self.encoder());
            self.staged.push(batch.staging());
        }
        self.pass = None;
        self.recorded = 0;
        let submission = self.queue.submit(self.encoder.take().map(wgpu::CommandEncoder::finish));
        let value = self.timeline.next();
        for staged in self.staged.drain(..) {
            staged.map(&self.timeline, value);
        }
        submission
    }

    /// Submits what is recorded, and a signal behind it.
    pub(crate) fn signal(&mut self) -> u64 {
        let submission = self.flush();
        let value = self.timeline.signal(submission);
        let timeline = self.timeline.clone();
        self.queue.on_submitted_work_done(move || timeline.reach(value));
        value
    }

    /// The pass that launches go into.
    fn pass(&mut self) -> &mut OpenPass {
        let Recorder { device, encoder, pass, .. } = self;
        pass.get_or_insert_with(|| {
            let encoder = encoder.get_or_insert_with(|| new_encoder(device));
            let pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default()).forget_lifetime();
            OpenPass { pass, pipeline: None }
        })
    }

    /// The encoder, with no pass open.
    fn encoder(&mut self) -> &mut wgpu::CommandEncoder {
        self.pass = None;
        let device = &self.device;
        self.encoder.get_or_insert_with(|| new_encoder(device))
    }
}

fn new_encoder(device: &wgpu::Device) -> wgpu::CommandEncoder {
    device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default())
}
