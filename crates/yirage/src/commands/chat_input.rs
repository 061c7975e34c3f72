//! What is typed into a conversation: lines, blocks of lines, and commands.

use crate::failure::CliFailure;
use rustyline::DefaultEditor;
use rustyline::error::ReadlineError;
use std::io::{self, BufRead, IsTerminal};
use std::path::{Path, PathBuf};

/// Begins and ends a block of lines.
const FENCE: &str = "\"\"\"";

/// What the user wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ChatCommand {
    /// Say this to the model.
    Say(String),
    /// Show the commands.
    Help,
    /// Forget the conversation.
    Clear,
    /// Set the system message; an empty one removes it.
    System(String),
    /// Write the conversation to a file.
    Save(PathBuf),
    /// Read a conversation from a file.
    Load(PathBuf),
    /// Show the model the picture in a file, in front of the next message.
    Image(PathBuf),
    /// Answer the last message again.
    Again,
    /// Leave.
    Exit,
    /// Not understood; the text says why.
    Unknown(String),
}

/// What `/help` shows.
pub(super) const HELP: &str = "\
/system TEXT  set the system message (without text: remove it)
/image FILE   show a picture with the next message
/again        answer the last message again
/clear        forget the conversation
/save FILE    write the conversation to a file, as JSON
/load FILE    read a conversation back
/exit         leave (also Ctrl-D)
A line that ends in \\ goes on in the next; \"\"\" begins and ends a block of lines. Ctrl-C ends an answer.";

impl ChatCommand {
    /// Understands a whole message.
    fn parse(text: &str) -> ChatCommand {
        let trimmed = text.trim();
        if !trimmed.starts_with('/') {
            return ChatCommand::Say(text.to_owned());
        }
        let (word, rest) = trimmed.split_once(char::is_whitespace).unwrap_or((trimmed, ""));
        let rest = rest.trim();
        let file = |make: fn(PathBuf) -> ChatCommand| match rest {
            "" => ChatCommand::Unknown(format!("{word} needs the name of a file")),
            name => make(name.into()),
        };
        match word {
            "/help" | "/?" => ChatCommand::Help,
            "/clear" => ChatCommand::Clear,
            "/system" => ChatCommand::System(rest.to_owned()),
            "/save" => file(ChatCommand::Save),
            "/load" => file(ChatCommand::Load),
            "/image" => file(ChatCommand::Image),
            "/again" => ChatCommand::Again,
            "/exit" | "/quit" | "/bye" => ChatCommand::Exit,
            _ => ChatCommand::Unknown(format!("{word} is no command; /help shows all")),
        }
    }
}

/// Where lines come from.
pub(super) enum Lines {
    /// A terminal, with editing and history.
    Terminal(Box<DefaultEditor>, Option<PathBuf>),
    /// A file or pipe.
    Plain(io::Lines<io::StdinLock<'static>>),
}

impl Lines {
    /// Standard input, with editing where it is a terminal.
    ///
    /// # Errors
    /// [`CliFailure::Other`] when the terminal cannot be used.
    pub(super) fn open() -> Result<Lines, CliFailure> {
        if !io::stdin().is_terminal() {
            return Ok(Lines::Plain(io::stdin().lock().lines()));
        }
        let mut editor = DefaultEditor::new().map_err(|e| CliFailure::Other(format!("the terminal: {e}")))?;
        let history = history_file();
        if let Some(path) = &history {
            // There is none yet at the first time.
            let _ = editor.load_history(path);
        }
        Ok(Lines::Terminal(Box::new(editor), history))
    }

    /// Whether somebody sits there and sees what goes wrong.
    pub(super) fn is_terminal(&self) -> bool {
        matches!(self, Lines::Terminal(..))
    }

    /// The next thing the user wants; `None` at the end of input.
    ///
    /// # Errors
    /// [`CliFailure::Other`] for input that cannot be read.
    pub(super) fn next_input(&mut self) -> Result<Option<ChatCommand>, CliFailure> {
        let mut next = |first: bool| self.line(if first { "> " } else { ". " });
        let Some(text) = message(&mut next)? else { return Ok(None) };
        if let Lines::Terminal(editor, _) = self {
            // A line that cannot be remembered is no reason to stop.
            let _ = editor.add_history_entry(text.as_str());
        }
        Ok(Some(ChatCommand::parse(&text)))
    }

    fn line(&mut self, prompt: &str) -> Result<Option<String>, CliFailure> {
        match self {
            Lines::Plain(lines) => {
                lines.next().transpose().map_err(|e| CliFailure::Other(format!("standard input: {e}")))
            }
            Lines::Terminal(editor, _) => match editor.readline(prompt) {
                Ok(line) => Ok(Some(line)),
                Err(ReadlineError::Interrupted) => Ok(Some(String::new())),
                Err(ReadlineError::Eof) => Ok(None),
                Err(e) => Err(CliFailure::Other(format!("the terminal: {e}"))),
            },
        }
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        if let Lines::Terminal(editor, Some(path)) = self {
            // History is a convenience: nobody needs to hear that it could not be kept.
            let _ = path.parent().map(std::fs::create_dir_all);
            let _ = editor.save_history(path);
        }
    }
}

fn history_file() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty());
    let state = set("XDG_STATE_HOME").map(PathBuf::from);
    let state = state.or_else(|| Some(Path::new(&set("HOME")?).join(".local/state")))?;
    Some(state.join("yirage/history"))
}

/// One message from lines: a block, a line with its continuations, or a single line. Blank messages are passed over.
fn message(next: &mut dyn FnMut(bool) -> Result<Option<String>, CliFailure>) -> Result<Option<String>, CliFailure> {
    loop {
        let Some(line) = next(true)? else { return Ok(None) };
        let text = match line.trim().strip_prefix(FENCE) {
            Some(rest) => block(rest, next)?,
            None => continued(line, next)?,
        };
        if !text.trim().is_empty() {
            return Ok(Some(text));
        }
    }
}

fn block(first: &str, next: &mut dyn FnMut(bool) -> Result<Option<String>, CliFailure>) -> Result<String, CliFailure> {
    if let Some(whole) = first.strip_suffix(FENCE) {
        return Ok(whole.to_owned());
    }
    let mut lines: Vec<String> = if first.is_empty() { Vec::new() } else { vec![first.to_owned()] };
    while let Some(line) = next(false)? {
        if let Some(last) = line.trim_end().strip_suffix(FENCE) {
            if !last.is_empty() {
                lines.push(last.to_owned());
            }
            break;
        }
        lines.push(line);
    }
    Ok(lines.join("\n"))
}

fn continued(
    first: String,
    next: &mut dyn FnMut(bool) -> Result<Option<String>, CliFailure>,
) -> Result<String, CliFailure> {
    let mut text = first;
    while let Some(open) = text.strip_suffix('\\') {
        text = format!("{open}\n{}", next(false)?.unwrap_or_default());
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(text: &str) -> Vec<String> {
        let mut lines = text.lines().map(str::to_owned);
        let mut next = |_: bool| Ok(lines.next());
        std::iter::from_fn(|| message(&mut next).unwrap()).collect()
    }

    #[test]
    fn lines_blocks_and_continuations() {
        assert_eq!(messages("one\n\n  \ntwo"), ["one", "two"]);
        assert_eq!(messages("a \\\nb\\\nc\nd"), ["a \nb\nc", "d"]);
        assert_eq!(messages("\"\"\"\n one\n\ntwo\n\"\"\"\nx"), [" one\n\ntwo", "x"]);
        assert_eq!(messages("\"\"\"a\nb\"\"\"\n\"\"\"c\"\"\""), ["a\nb", "c"]);
        assert_eq!(messages("\"\"\"\nunended"), ["unended"]);
        assert_eq!(messages("ends in \\"), ["ends in \n"]);
    }

    #[test]
    fn commands() {
        assert_eq!(ChatCommand::parse("hello /clear"), ChatCommand::Say("hello /clear".into()));
        assert_eq!(ChatCommand::parse(" /clear "), ChatCommand::Clear);
        assert_eq!(ChatCommand::parse("/system Be brief."), ChatCommand::System("Be brief.".into()));
        assert_eq!(ChatCommand::parse("/save a b.json"), ChatCommand::Save("a b.json".into()));
        assert_eq!(ChatCommand::parse("/image a b.png"), ChatCommand::Image("a b.png".into()));
        assert!(matches!(ChatCommand::parse("/load"), ChatCommand::Unknown(why) if why.contains("file")));
        assert!(matches!(ChatCommand::parse("/nope"), ChatCommand::Unknown(why) if why.contains("/nope")));
    }
}
