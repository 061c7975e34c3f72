//! A model that takes jobs.

use crate::answer::{AnswerEventStream, answer};
use crate::breakers::BreakerCache;
use crate::error::SessionError;
use crate::event::{FinishedAnswer, SessionEvent};
use crate::job::Job;
use crate::loaded::{LoadedEngine, LoadedVision};
use crate::open::OpenJobs;
use crate::pictures::PictureReader;
use crate::prefix_file::{self, ModelFingerprint, PrefixSize};
use crate::texts::TextProcessor;
use crate::worker::{self, COMMANDS, WorkerCommand, WorkerEngine};
use std::path::Path;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;
use yirage_engine::scheduler::{FinishReason, LogitsWanted};
use yirage_engine::{Embedding, Engine, ModelFacts, Request};
use yirage_model::GenerationConfig;

/// A model on a thread of its own. Every method may be called from any thread; dropped, it ends what runs and is unloaded.
pub struct ModelHandle {
    facts: ModelFacts,
    texts: Option<Arc<TextProcessor>>,
    pictures: Option<Arc<PictureReader>>,
    generation: GenerationConfig,
    ends: Vec<u32>,
    breakers: BreakerCache,
    commands: SyncSender<WorkerCommand>,
    open: OpenJobs,
    thread: Mutex<Option<JoinHandle<Result<WorkerEngine, String>>>>,
    /// What the thread died of, once somebody has met it.
    died: OnceLock<String>,
}

impl LoadedEngine {
    /// Gives the model to a thread, where it takes jobs from then on.
    ///
    /// # Errors
    /// [`SessionError::Thread`].
    pub fn start(self) -> Result<ModelHandle, SessionError> {
        let (facts, ends) = (self.engine.facts().clone(), self.ends());
        let LoadedEngine { engine, texts, generation, vision } = self;
        let (tower, pictures) = vision.map(|vision| (vision.tower, vision.reader)).unzip();
        let (commands, received) = sync_channel(COMMANDS);
        let of_thread = texts.clone();
        let thread = std::thread::Builder::new()
            .name("yirage-engine".into())
            .spawn(move || worker::run(WorkerEngine { engine, tower }, of_thread.as_deref(), &received))
            .map_err(SessionError::Thread)?;
        let thread = Mutex::new(Some(thread));
        Ok(ModelHandle {
            facts,
            texts,
            pictures,
            generation,
            ends,
            breakers: BreakerCache::default(),
            commands,
            open: OpenJobs::default(),
            thread,
            died: OnceLock::new(),
        })
    }
}

impl ModelHandle {
    /// What was loaded.
    pub fn facts(&self) -> &ModelFacts {
        &self.facts
    }

    /// Tokenizer and templates, where the model has them.
    pub fn texts(&self) -> Option<&TextProcessor> {
        self.texts.as_deref()
    }

    /// How pictures are read.
    ///
    /// # Errors
    /// [`SessionError::NoPictures`] of a model that reads none.
    pub fn pictures(&self) -> Result<&PictureReader, SessionError> {
        let none = || SessionError::NoPictures { model: self.facts.architecture.clone() };
        self.pictures.as_deref().ok_or_else(none)
    }

    /// What the model's makers suggest.
    pub fn generation(&self) -> &GenerationConfig {
        &self.generation
    }

    /// The ids that end a text.
    pub fn ends(&self) -> &[u32] {
        &self.ends
    }

    /// Takes a job. Whether the engine takes its request, too, is told by the answer's first event.
    ///
    /// # Errors
    /// [`SessionError::Busy`], [`SessionError::NoText`], [`SessionError::Stop`], [`SessionError::Gone`].
    pub fn submit(&self, mut job: Job) -> Result<AnswerEventStream, SessionError> {
        self.breakers.fill(&mut job.request, self.facts.vocabulary, self.texts());
        let matcher = worker::AnswerDetokenizer::matcher(&job, self.texts.is_some())?;
        let open = self.open.open()?;
        let (sink, answer) = answer();
        self.send(WorkerCommand::Add(Box::new(worker::SubmittedJob {
            job,
            matcher,
            sink,
            open,
            submitted: Instant::now(),
        })))?;
        Ok(answer)
    }

    /// Logits of every position of `ids`, in order.
    ///
    /// # Errors
    /// As [`ModelHandle::submit`], and whatever the answer ends with.
    pub fn forward(&self, ids: Vec<u32>) -> Result<Vec<Vec<f32>>, SessionError> {
        self.rows(Request { logits: Some(LogitsWanted::All), ..Request::greedy(ids, 0) })
    }

    /// What a request makes of each position.
    fn rows(&self, request: Request) -> Result<Vec<Vec<f32>>, SessionError> {
        let mut rows = Vec::with_capacity(request.prompt.len());
        for event in self.submit(Job::new(request))? {
            match event? {
                SessionEvent::Logits { logits: row, .. } | SessionEvent::Hidden { state: row, .. } => rows.push(row),
                SessionEvent::Finished(FinishedAnswer { reason: FinishReason::Error(why), .. }) => {
                    return Err(SessionError::Step { why });
                }
                _ => {}
            }
        }
        Ok(rows)
    }

    /// Hidden states of every position of `ids`, in order: those behind the final norm.
    ///
    /// # Errors
    /// As [`ModelHandle::forward`]; [`EngineError::NoHiddenStates`](yirage_engine::EngineError::NoHiddenStates) where the engine was
    /// loaded without them.
    pub fn hidden(&self, ids: Vec<u32>) -> Result<Vec<Vec<f32>>, SessionError> {
        self.rows(Request { hidden: Some(LogitsWanted::All), ..Request::greedy(ids, 0) })
    }

    /// A vector for the text of `ids`, made of its hidden states.
    ///
    /// # Errors
    /// As [`ModelHandle::hidden`].
    pub fn embed(&self, ids: Vec<u32>, how: Embedding) -> Result<Vec<f32>, SessionError> {
        let rows = self.hidden(ids)?;
        let pooled = rows.first().and_then(|first| how.of(&rows.concat(), first.len()));
        pooled.ok_or_else(|| SessionError::Step { why: "no hidden state came of it".into() })
    }

    /// Forgets the cached beginnings of prompts; those of answers that run stay until they end.
    ///
    /// # Errors
    /// [`SessionError::Gone`].
    pub fn reset_cache(&self) -> Result<(), SessionError> {
        self.between_steps(Engine::reset_cache)
    }

    /// Writes the longest beginning of `tokens` that the cache has, in whole blocks, to `path`; nothing is written where it
    /// has none. A file that is there is replaced. Answers that run wait meanwhile.
    ///
    /// # Errors
    /// [`SessionError::PrefixFile`], [`SessionError::Engine`], [`SessionError::Gone`].
    pub fn save_prefix(
        &self,
        path: &Path,
        model: ModelFingerprint,
        tokens: Vec<u32>,
        salt: Vec<u8>,
    ) -> Result<PrefixSize, SessionError> {
        let path = path.to_owned();
        self.between_steps(move |engine| prefix_file::write(engine, &path, model, &tokens, &salt))?
    }

    /// Puts the beginning of a file into the cache, and gives its tokens. Answers that run wait meanwhile.
    ///
    /// # Errors
    /// As [`ModelHandle::save_prefix`].
    pub fn restore_prefix(&self, path: &Path, model: ModelFingerprint) -> Result<(PrefixSize, Vec<u32>), SessionError> {
        let path = path.to_owned();
        self.between_steps(move |engine| prefix_file::read(engine, &path, model))?
    }

    /// The bytes of what [`ModelHandle::save_prefix`] writes, for another machine; none where the cache has nothing.
    ///
    /// # Errors
    /// As [`ModelHandle::save_prefix`].
    pub fn prefix_bytes(
        &self,
        model: ModelFingerprint,
        tokens: Vec<u32>,
        salt: Vec<u8>,
    ) -> Result<Vec<u8>, SessionError> {
        let to = Path::new("what another server asks for");
        self.between_steps(move |engine| prefix_file::bytes(engine, to, model, &tokens, &salt))?
    }

    /// Puts the beginning of such bytes into the cache for requests of this `salt`, and gives its positions. Errors name where
    /// they come `from`.
    ///
    /// # Errors
    /// As [`ModelHandle::restore_prefix`].
    pub fn restore_prefix_bytes(
        &self,
        from: &Path,
        bytes: Vec<u8>,
        model: ModelFingerprint,
        salt: Vec<u8>,
    ) -> Result<usize, SessionError> {
        let from = from.to_owned();
        let restored =
            self.between_steps(move |engine| prefix_file::read_bytes(engine, &from, &bytes, model, &salt))?;
        restored.map(|(size, _)| size.positions)
    }

    /// Positions of the longest beginning of `tokens` that the cache has for requests of this `salt`, and the bytes that all of
    /// them take in a file at most.
    ///
    /// # Errors
    /// [`SessionError::Engine`], [`SessionError::Gone`].
    pub fn cached_positions(&self, tokens: Vec<u32>, salt: Vec<u8>) -> Result<(usize, u64), SessionError> {
        let cached = self.between_steps(move |engine| {
            let bytes = prefix_file::most_bytes(engine, tokens.len());
            engine.cached_prefix(&tokens, &salt).map(|prefix| (prefix.positions(), bytes))
        })?;
        Ok(cached?)
    }

    /// Jobs that have not ended.
    pub fn open_jobs(&self) -> usize {
        self.open.count()
    }

    /// Calls `f` with the engine between two of its steps.
    ///
    /// # Errors
    /// [`SessionError::Gone`].
    pub fn between_steps<R: Send + 'static>(
        &self,
        f: impl FnOnce(&mut Engine) -> R + Send + 'static,
    ) -> Result<R, SessionError> {
        let (result, given) = sync_channel(1);
        self.send(WorkerCommand::Ask(Box::new(move |engine| {
            // Whoever asked waits for it; if not, nobody needs it.
            let _ = result.send(f(engine));
        })))?;
        given.recv().map_err(|_| self.thread_error())
    }

    /// What the engine's thread died of, where it has.
    pub fn death(&self) -> Option<String> {
        let ended = |thread: &JoinHandle<_>| thread.is_finished();
        let has_ended = self.thread.lock().unwrap_or_else(PoisonError::into_inner).as_ref().is_none_or(ended);
        has_ended.then(|| self.thread_error()).and_then(|gone| match gone {
            SessionError::Gone { why } => Some(why),
            _ => None,
        })
    }

    fn send(&self, command: WorkerCommand) -> Result<(), SessionError> {
        self.commands.send(command).map_err(|_| self.thread_error())
    }

    /// Why there is no thread any more.
    fn thread_error(&self) -> SessionError {
        let why = self.died.get_or_init(|| match self.join() {
            Some(Err(why)) => why,
            Some(Ok(_)) | None => "its thread has ended".into(),
        });
        SessionError::Gone { why: why.clone() }
    }

    fn join(&self) -> Option<Result<WorkerEngine, String>> {
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        Some(thread.join().unwrap_or_else(|panic| Err(worker::message_of(&*panic))))
    }

    /// Ends what runs and takes the engine off its thread.
    ///
    /// # Errors
    /// [`SessionError::Gone`] where it had ended before.
    pub fn stop(self) -> Result<LoadedEngine, SessionError> {
        self.send(WorkerCommand::Stop)?;
        let WorkerEngine { engine, tower } = match self.join() {
            Some(Ok(engine)) => engine,
            Some(Err(why)) => return Err(SessionError::Gone { why }),
            None => return Err(self.thread_error()),
        };
        let vision = tower.zip(self.pictures.clone()).map(|(tower, reader)| LoadedVision { tower, reader });
        Ok(LoadedEngine { engine, texts: self.texts.clone(), generation: self.generation.clone(), vision })
    }
}

impl Drop for ModelHandle {
    fn drop(&mut self) {
        // Where nobody takes it, the thread has ended already.
        let _ = self.commands.send(WorkerCommand::Stop);
        self.join();
    }
}
