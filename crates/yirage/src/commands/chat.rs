//! `yirage chat`: a conversation.
//!
//! The whole conversation is the prompt of each answer; the engine's prefix cache spares computing it again. When it
//! outgrows the context, the oldest exchanges are left out, which is said.

use super::answer::show;
use super::chat_input::{ChatCommand, HELP, Lines};
use super::chat_turn::{ChatTurn, ShownPicture, conversation};
use crate::console::Console;
use crate::failure::{self, CliFailure};
use crate::generate::{GenerationJob, generate};
use crate::interrupt::Interrupt;
use crate::options::Layers;
use crate::session::Session;
use crate::settings::{ResolvedSampling, template};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::Instant;
use yirage_engine::sampling::SamplingParams;
use yirage_engine::scheduler::FinishReason;
use yirage_mmap::read_text;
use yirage_model::chat::ChatTemplate;
use yirage_session::{PlacedPicture, message};

/// Room for an answer that is kept when nobody says how long it may be.
const LEAST_ANSWER: usize = 64;
/// Longest conversation that is read from a file, in bytes.
const MAX_BYTES: u64 = 64 << 20;

/// Runs the command.
///
/// # Errors
/// Whatever is wrong with options, model or device. What goes wrong with one answer is shown, and the conversation
/// goes on; where nobody sits at a terminal, [`CliFailure::Other`] at its end says how many messages had no answer.
pub(crate) fn run(layers: &Layers, console: &Console, started: Instant) -> Result<(), CliFailure> {
    let interrupt = Interrupt::install()?;
    let max_tokens = layers.number("max-tokens", "a whole number below 2^32", |_| true)?;
    let ignore_ends = layers.switch("ignore-eos")?;
    ResolvedSampling::check(layers)?;
    let session = Session::load_talk(layers, console, started)?;
    let choosing = ResolvedSampling::resolve(layers, session.model.generation())?;
    choosing.notes().iter().for_each(|note| console.note(note));
    let template = template(session.texts("another model, or `yirage run --prompt-ids`")?, layers)?;
    if template.is_none() {
        console.note("no chat template is applied: the model continues the text as it is");
    }
    let mut chat = ChatSession {
        stop_ids: if ignore_ends { Vec::new() } else { session.model.ends().to_vec() },
        session,
        template,
        parse_special: layers.maybe_switch("parse-special")?,
        system: layers.text("system").map(str::to_owned).filter(|s| !s.is_empty()),
        turns: Vec::new(),
        shown: Vec::new(),
        max_tokens,
        stops: layers.texts("stop").to_vec(),
        sampling: choosing.params,
    };
    layers.texts("image").iter().try_for_each(|file| chat.show(file.into()))?;
    let mut lines = Lines::open()?;
    if lines.is_terminal() {
        console.note("type a message; /help shows what can be done besides, /exit or Ctrl-D leaves");
    }
    let (mut asked, mut unanswered) = (0, 0);
    while let Some(input) = lines.next_input()? {
        if input == ChatCommand::Exit {
            break;
        }
        let wants_answer = matches!(input, ChatCommand::Say(_) | ChatCommand::Again);
        asked += usize::from(wants_answer);
        match chat.obey(input, console, &interrupt) {
            Err(failure @ CliFailure::Closed(_)) => return Err(failure),
            Err(failure) => {
                failure::report(&failure, console.json);
                unanswered += usize::from(wants_answer);
            }
            Ok(()) => {}
        }
    }
    chat.session.write_profile(console)?;
    chat.session.settle(console)?;
    if unanswered > 0 && !lines.is_terminal() {
        return Err(CliFailure::Other(format!("{unanswered} of {asked} messages had no answer; see above")));
    }
    Ok(())
}

/// A conversation and how it is held.
struct ChatSession {
    session: Session,
    template: Option<ChatTemplate>,
    parse_special: Option<bool>,
    system: Option<String>,
    /// What user (even places) and model (odd places) said.
    turns: Vec<ChatTurn>,
    /// Pictures for the next message.
    shown: Vec<ShownPicture>,
    stop_ids: Vec<u32>,
    max_tokens: Option<u32>,
    stops: Vec<String>,
    sampling: SamplingParams,
}

impl ChatSession {
    fn obey(&mut self, input: ChatCommand, console: &Console, interrupt: &Interrupt) -> Result<(), CliFailure> {
        match input {
            ChatCommand::Say(text) => {
                self.turns.push(ChatTurn { pictures: std::mem::take(&mut self.shown), text });
                self.answer(console, interrupt)
            }
            ChatCommand::Again => {
                if self.turns.len() < 2 {
                    console.note("there is nothing to answer again");
                    return Ok(());
                }
                self.turns.pop();
                // Another answer needs other random numbers.
                self.sampling.seed = self.sampling.seed.wrapping_add(1);
                self.answer(console, interrupt)
            }
            ChatCommand::Clear => {
                self.turns.clear();
                self.shown.clear();
                Ok(())
            }
            ChatCommand::Image(path) => self.show(path),
            ChatCommand::System(text) => {
                self.system = Some(text).filter(|t| !t.is_empty());
                Ok(())
            }
            ChatCommand::Save(path) => self.save(&path),
            ChatCommand::Load(path) => self.load(&path),
            ChatCommand::Help => {
                console.note(HELP);
                Ok(())
            }
            ChatCommand::Unknown(why) => {
                console.note(&why);
                Ok(())
            }
            ChatCommand::Exit => Ok(()),
        }
    }

    /// Reads a picture for the next message.
    fn show(&mut self, path: PathBuf) -> Result<(), CliFailure> {
        let picture = self.session.model.pictures()?.open(&path)?;
        self.shown.push(ShownPicture { path, picture });
        Ok(())
    }

    /// Answers the last turn. A failure takes that turn back; its pictures wait for the next message.
    fn answer(&mut self, console: &Console, interrupt: &Interrupt) -> Result<(), CliFailure> {
        let result = self.try_answer(console, interrupt);
        if result.is_err()
            && let Some(turn) = self.turns.pop()
            && !turn.pictures.is_empty()
        {
            self.shown.splice(..0, turn.pictures);
            console.note("its pictures stand in front of the next message; /clear forgets them");
        }
        result
    }

    fn try_answer(&mut self, console: &Console, interrupt: &Interrupt) -> Result<(), CliFailure> {
        let (prompt, pictures) = self.fitting_prompt(console)?;
        let asked = GenerationJob {
            prompt: prompt.clone(),
            pictures,
            max_tokens: self.max_tokens,
            stop_ids: self.stop_ids.clone(),
            stops: self.stops.clone(),
            sampling: self.sampling.clone(),
        };
        let stream = !console.json;
        let answer = generate(&self.session.model, asked, interrupt, &mut |piece| {
            if stream { console.text(piece) } else { Ok(()) }
        })?;
        show(console, &self.session.name, &prompt, &answer, self.session.load_ms, true)?;
        if let FinishReason::Error(why) = answer.end.reason {
            return Err(CliFailure::Other(why));
        }
        self.turns.push(ChatTurn { pictures: Vec::new(), text: answer.text.unwrap_or_default() });
        Ok(())
    }

    /// The prompt of the conversation, its oldest exchanges left out until there is room for an answer.
    fn fitting_prompt(&mut self, console: &Console) -> Result<(Vec<u32>, Vec<PlacedPicture>), CliFailure> {
        let context = self.session.model.facts().context as usize;
        let room = self.max_tokens.map_or(LEAST_ANSWER, |n| n as usize);
        let mut left_out = 0;
        loop {
            let (prompt, pictures) = self.prompt()?;
            if prompt.len() + room <= context || self.turns.len() <= 2 {
                if left_out > 0 {
                    let what = "oldest messages left out: the conversation exceeds the context of";
                    console.note(&format!("{left_out} {what} {context} tokens"));
                }
                return Ok((prompt, pictures));
            }
            self.turns.drain(..2);
            left_out += 2;
        }
    }

    /// The tokens of the conversation, and the pictures in it.
    fn prompt(&self) -> Result<(Vec<u32>, Vec<PlacedPicture>), CliFailure> {
        let texts = self.session.texts("`yirage run --prompt-ids`")?;
        let ids = match &self.template {
            Some(template) => texts.encode_chat(template, &self.messages(ChatTurn::content))?,
            None => {
                let turns = self.turns.iter().map(|turn| turn.text.as_str());
                let all: String = self.system.iter().map(String::as_str).chain(turns).collect();
                texts.encode_raw(&all, self.parse_special)?
            }
        };
        let pictures: Vec<_> =
            self.turns.iter().flat_map(|turn| &turn.pictures).map(|shown| shown.picture.clone()).collect();
        match pictures.is_empty() {
            true => Ok((ids, Vec::new())),
            false => Ok(self.session.model.pictures()?.place(&ids, pictures)?),
        }
    }

    /// The conversation's messages, the content of each turn as `content` gives it.
    fn messages(&self, content: fn(&ChatTurn) -> Value) -> Vec<Value> {
        let system = self.system.iter().map(|s| message("system", s));
        let role = |i: usize| if i.is_multiple_of(2) { "user" } else { "assistant" };
        let turn = |(i, turn): (usize, &ChatTurn)| json!({"role": role(i), "content": content(turn)});
        system.chain(self.turns.iter().enumerate().map(turn)).collect()
    }

    fn save(&self, path: &Path) -> Result<(), CliFailure> {
        let text = format!("{:#}\n", json!({"messages": self.messages(ChatTurn::kept)}));
        std::fs::write(path, text).map_err(|e| CliFailure::io(path, e))
    }

    fn load(&mut self, path: &Path) -> Result<(), CliFailure> {
        let wrong = |why: String| CliFailure::Other(format!("{}: no conversation: {why}", path.display()));
        let text = read_text(path, MAX_BYTES)?;
        let value: Value = serde_json::from_str(&text).map_err(|e| wrong(e.to_string()))?;
        let (system, turns) = conversation(&value).map_err(wrong)?;
        // Nothing is changed where one picture cannot be read.
        let read = |turn: (Vec<PathBuf>, String)| -> Result<ChatTurn, CliFailure> {
            let one = |path: PathBuf| -> Result<ShownPicture, CliFailure> {
                Ok(ShownPicture { picture: self.session.model.pictures()?.open(&path)?, path })
            };
            Ok(ChatTurn { pictures: turn.0.into_iter().map(one).collect::<Result<_, _>>()?, text: turn.1 })
        };
        self.turns = turns.into_iter().map(read).collect::<Result<_, _>>()?;
        self.system = system;
        Ok(())
    }
}
