//! The engine's thread: takes commands, runs steps, and gives each answer its events.

mod answer_detokenizer;
mod running;

use crate::answer::AnswerSink;
use crate::error::SessionError;
use crate::job::Job;
use crate::open::OpenJob;
use crate::pictures::PlacedPicture;
use crate::texts::TextProcessor;
pub(crate) use answer_detokenizer::AnswerDetokenizer;
use running::ActiveAnswer;
use std::any::Any;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::Instant;
use yirage_engine::scheduler::{FinishReason, SeqId};
use yirage_engine::text::StopMatcher;
use yirage_engine::{EmbeddedSpan, Engine, EngineError, Event, Request, VisionTower};

/// Commands that may wait for the engine's next step, and are taken between two steps. Whoever sends more waits.
pub(crate) const COMMANDS: usize = 256;

/// What the thread runs.
pub(crate) struct WorkerEngine {
    pub(crate) engine: Engine,
    /// What makes rows of pictures.
    pub(crate) tower: Option<VisionTower>,
}

/// What the thread is told.
pub(crate) enum WorkerCommand {
    Add(Box<SubmittedJob>),
    Ask(Box<dyn FnOnce(&mut Engine) + Send>),
    Stop,
}

/// A job that was not looked at yet.
pub(crate) struct SubmittedJob {
    pub(crate) job: Job,
    pub(crate) matcher: StopMatcher,
    pub(crate) sink: AnswerSink,
    pub(crate) open: OpenJob,
    pub(crate) submitted: Instant,
}

/// What a panic said.
pub(crate) fn message_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "a panic without words".into())
}

/// Runs the engine until it is told to stop, and gives it back; every answer that is open then ends.
///
/// # Errors
/// What ended the engine by itself, which every open answer is told, too.
pub(crate) fn run(
    WorkerEngine { engine, tower }: WorkerEngine,
    texts: Option<&TextProcessor>,
    commands: &Receiver<WorkerCommand>,
) -> Result<WorkerEngine, String> {
    let mut worker = Worker { engine, tower, texts, running: HashMap::new() };
    let ended = catch_unwind(AssertUnwindSafe(|| worker.run(commands)));
    let why = match ended {
        Ok(Ok(())) => None,
        Ok(Err(why)) => Some(why),
        Err(panic) => Some(message_of(&*panic)),
    };
    let told = why.clone().unwrap_or_else(|| "the model was unloaded".into());
    worker.running.drain().for_each(|(_, running)| running.fail(SessionError::Gone { why: told.clone() }));
    match why {
        None => Ok(WorkerEngine { engine: worker.engine, tower: worker.tower }),
        Some(why) => Err(why),
    }
}

struct Worker<'t> {
    engine: Engine,
    tower: Option<VisionTower>,
    texts: Option<&'t TextProcessor>,
    running: HashMap<SeqId, ActiveAnswer<'t>>,
}

impl<'t> Worker<'t> {
    fn run(&mut self, commands: &Receiver<WorkerCommand>) -> Result<(), String> {
        loop {
            if !self.take(commands) {
                return Ok(());
            }
            self.cancel();
            let began = Instant::now();
            let events = self.engine.step().map_err(|e| e.to_string())?;
            self.admitted(began);
            if events.is_empty() && self.engine.is_idle() && !self.running.is_empty() {
                return Err("the engine stopped without ending its answers; please report this".into());
            }
            self.deliver(events);
        }
    }

    /// Takes the commands that are here; waits for one where there is nothing to compute. False when it is to stop.
    fn take(&mut self, commands: &Receiver<WorkerCommand>) -> bool {
        for _ in 0..COMMANDS {
            let command = if self.running.is_empty() && self.engine.is_idle() {
                match commands.recv() {
                    Ok(command) => command,
                    Err(_) => return false,
                }
            } else {
                match commands.try_recv() {
                    Ok(command) => command,
                    Err(TryRecvError::Empty) => return true,
                    Err(TryRecvError::Disconnected) => return false,
                }
            };
            match command {
                WorkerCommand::Add(new) => self.add(*new),
                WorkerCommand::Ask(ask) => ask(&mut self.engine),
                WorkerCommand::Stop => return false,
            }
        }
        true
    }

    fn add(&mut self, new: SubmittedJob) {
        let SubmittedJob { job, matcher, sink, open, submitted } = new;
        let (deadline, marks) = (job.deadline, job.marks.clone());
        match self.admit(job) {
            Err(error) => sink.fail(error),
            Ok(seq) => {
                let texting = self.texts.map(|texts| AnswerDetokenizer::new(texts, matcher, marks));
                self.running.insert(seq, ActiveAnswer::new(sink, texting, open, submitted, deadline));
            }
        }
    }

    fn admit(&mut self, job: Job) -> Result<SeqId, SessionError> {
        let request = self.with_pictures(job.request, &job.pictures)?;
        Ok(match job.constraint {
            Some(constraint) => self.engine.add_constrained(request, constraint)?,
            None => self.engine.add(request)?,
        })
    }

    /// The request with the rows of its pictures. Answers that run wait while they are made.
    fn with_pictures(&mut self, request: Request, pictures: &[PlacedPicture]) -> Result<Request, SessionError> {
        if pictures.is_empty() {
            return Ok(request);
        }
        let none = || SessionError::NoPictures { model: self.engine.facts().architecture.clone() };
        let tower = self.tower.as_mut().ok_or_else(none)?;
        let mut span = |placed: &PlacedPicture| -> Result<EmbeddedSpan, EngineError> {
            Ok(EmbeddedSpan { at: placed.at, rows: tower.embed(&placed.picture)? })
        };
        let embedded = pictures.iter().map(&mut span).collect::<Result<_, _>>()?;
        Ok(Request { embedded, ..request })
    }

    /// Notes what the step that began then admitted. A step is planned when it begins, and computes its prompts after that.
    fn admitted(&mut self, began: Instant) {
        for seq in self.engine.take_admitted() {
            if let Some(running) = self.running.get_mut(&seq) {
                running.admit(began);
            }
        }
    }

    /// Ends what nobody wants any more, and what has come to a stop string.
    fn cancel(&mut self) {
        let now = Instant::now();
        let ended = self.running.iter().filter_map(|(seq, running)| Some((*seq, running.wants_end(now)?)));
        let ended: Vec<(SeqId, FinishReason)> = ended.collect();
        let events = ended.into_iter().filter_map(|(seq, reason)| self.engine.finish(seq, reason));
        let events: Vec<Event> = events.collect();
        self.deliver(events);
    }

    fn deliver(&mut self, events: Vec<Event>) {
        for event in events {
            let (Event::Token { seq, .. }
            | Event::PromptLogprobs { seq, .. }
            | Event::Logits { seq, .. }
            | Event::Hidden { seq, .. }
            | Event::RopeScaled { seq, .. }
            | Event::Finished { seq, .. }) = event;
            match event {
                Event::Finished { reason, usage, gain, .. } => {
                    if let Some(running) = self.running.remove(&seq) {
                        running.finish(reason, usage, gain);
                    }
                }
                event => {
                    if let Some(running) = self.running.get_mut(&seq) {
                        running.give(event);
                    }
                }
            }
        }
    }
}
