//! `yirage chat`: a conversation.
//!
//! The whole conversation is the prompt of each answer; the engine's prefix cache spares computing it again. When it
//! outgrows the context, the oldest exchanges are left out, which is said.

use super::answer::show;
use super::chat_input::{ChatCommand, HELP, Lines};
use crate::console::Console;
use crate::failure::{self, CliFailure};
use crate::generate::{GenerationJob, generate};
use crate::interrupt::Interrupt;
use crate::options::Layers;
use crate::session::Session;
use crate::settings::{ResolvedSampling, template};
use serde_json::{Value, json};
use std::path::Path;
use std::time::Instant;
use yirage_engine::sampling::SamplingParams;
use yirage_engine::scheduler::FinishReason;
use yirage_mmap::read_text;
use yirage_model::chat::ChatTemplate;
use yirage_session::message;

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
    let session = Session::load(layers, console, started)?;
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
        max_tokens,
        stops: layers.texts("stop").to_vec(),
        sampling: choosing.params,
    };
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
    turns: Vec<String>,
    stop_ids: Vec<u32>,
    max_tokens: Option<u32>,
    stops: Vec<String>,
    sampling: SamplingParams,
}

impl ChatSession {
    fn obey(&mut self, input: ChatCommand, console: &Console, interrupt: &Interrupt) -> Result<(), CliFailure> {
        match input {
            ChatCommand::Say(text) => {
                self.turns.push(text);
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
                Ok(())
            }
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

    /// Answers the last turn. A failure takes that turn back.
    fn answer(&mut self, console: &Console, interrupt: &Interrupt) -> Result<(), CliFailure> {
        let result = self.try_answer(console, interrupt);
        if result.is_err() {
            self.turns.pop();
        }
        result
    }

    fn try_answer(&mut self, console: &Console, interrupt: &Interrupt) -> Result<(), CliFailure> {
        let prompt = self.fitting_prompt(console)?;
        let asked = GenerationJob {
            prompt: prompt.clone(),
            pictures: Vec::new(),
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
        self.turns.push(answer.text.unwrap_or_default());
        Ok(())
    }

    /// The prompt of the conversation, its oldest exchanges left out until there is room for an answer.
    fn fitting_prompt(&mut self, console: &Console) -> Result<Vec<u32>, CliFailure> {
        let context = self.session.model.facts().context as usize;
        let room = self.max_tokens.map_or(LEAST_ANSWER, |n| n as usize);
        let mut left_out = 0;
        loop {
            let prompt = self.prompt()?;
            if prompt.len() + room <= context || self.turns.len() <= 2 {
                if left_out > 0 {
                    let what = "oldest messages left out: the conversation exceeds the context of";
                    console.note(&format!("{left_out} {what} {context} tokens"));
                }
                return Ok(prompt);
            }
            self.turns.drain(..2);
            left_out += 2;
        }
    }

    fn prompt(&self) -> Result<Vec<u32>, CliFailure> {
        let texts = self.session.texts("`yirage run --prompt-ids`")?;
        match &self.template {
            Some(template) => Ok(texts.encode_chat(template, &self.messages())?),
            None => {
                let all: String = self.system.iter().chain(&self.turns).map(String::as_str).collect();
                Ok(texts.encode_raw(&all, self.parse_special)?)
            }
        }
    }

    fn messages(&self) -> Vec<Value> {
        let system = self.system.iter().map(|s| message("system", s));
        let turn = |(i, text): (usize, &String)| message(if i % 2 == 0 { "user" } else { "assistant" }, text);
        system.chain(self.turns.iter().enumerate().map(turn)).collect()
    }

    fn save(&self, path: &Path) -> Result<(), CliFailure> {
        let text = format!("{:#}\n", json!({"messages": self.messages()}));
        std::fs::write(path, text).map_err(|e| CliFailure::io(path, e))
    }

    fn load(&mut self, path: &Path) -> Result<(), CliFailure> {
        let wrong = |why: String| CliFailure::Other(format!("{}: no conversation: {why}", path.display()));
        let text = read_text(path, MAX_BYTES)?;
        let value: Value = serde_json::from_str(&text).map_err(|e| wrong(e.to_string()))?;
        let (system, turns) = conversation(&value).map_err(wrong)?;
        (self.system, self.turns) = (system, turns);
        Ok(())
    }
}

/// The system message and the turns of a saved conversation.
fn conversation(value: &Value) -> Result<(Option<String>, Vec<String>), String> {
    let messages = value["messages"].as_array().ok_or("there is no list called messages")?;
    let mut system = None;
    let mut turns = Vec::new();
    for (i, m) in messages.iter().enumerate() {
        let (role, content) = (m["role"].as_str().unwrap_or_default(), m["content"].as_str());
        let content = content.ok_or_else(|| format!("message {i} has no text called content"))?.to_owned();
        let expected = if turns.len() % 2 == 0 { "user" } else { "assistant" };
        match role {
            "system" if i == 0 => system = Some(content),
            _ if role == expected => turns.push(content),
            _ => return Err(format!("message {i} is of {role:?} where {expected:?} speaks")),
        }
    }
    if turns.len() % 2 == 1 { Err("the last message has no answer".into()) } else { Ok((system, turns)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn saved_conversations_are_checked() {
        let of = |list: &[(&str, &str)]| {
            let messages: Vec<Value> = list.iter().map(|(role, text)| message(role, text)).collect();
            conversation(&json!({"messages": messages}))
        };
        let good = of(&[("system", "s"), ("user", "u"), ("assistant", "a")]);
        assert_eq!(good, Ok((Some("s".into()), vec!["u".into(), "a".into()])));
        assert_eq!(of(&[]), Ok((None, vec![])));
        assert!(of(&[("user", "u")]).unwrap_err().contains("no answer"));
        assert!(of(&[("user", "u"), ("user", "v")]).unwrap_err().contains("message 1"));
        assert!(of(&[("user", "u"), ("assistant", "a"), ("system", "s")]).is_err());
        assert!(conversation(&json!({"messages": [{"role": "user"}]})).is_err());
        assert!(conversation(&json!(7)).is_err());
    }
}
