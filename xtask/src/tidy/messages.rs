//! One style of messages: each variant of each error type begins in lower case, ends without a stop, says what it holds, says
//! what to do or what was expected, and speaks to people who know none of our words.
//!
//! What is looked at is the text of every `#[error(...)]` in the crates' sources; what a variant's `why` says is not known here,
//! so a message with a cause is believed to say by that what to do.

use super::{RepoFile, RepoTree, TidyFinding};

/// Words that say nothing, and what to say.
const EMPTY: &[(&str, &str)] = &[
    ("invalid", "say what was expected and what came"),
    ("illegal", "say what was expected and what came"),
    ("failed to", "say what cannot be done"),
    ("unexpected error", "say which"),
    ("oops", "say what happened"),
];

/// Words of the glossary that those who meet an error need not know.
const OURS: &[&str] = &[
    "region",
    "lowering",
    "operand constraint",
    "epilogue",
    "prologue",
    "certificate",
    "buffer offset",
    "arena",
    "static partition",
    "work-queue",
    "captured graph",
    "fence",
    "work item",
    "task program",
    "verified plan",
];

/// Files whose messages may use one of them, with the reason. None is to be added.
const SPOKEN: &[(&str, &str, &str)] = &[
    ("crates/yirage-search/src/equal/error.rs", "certificate", "it is the file that the message is about"),
    ("crates/yirage-ir/src/region/tiled/unroll.rs", "region", "who writes tiled regions by hand reads it"),
];

/// Names of fields that tell a cause, in whose words a remedy stands.
const CAUSES: &[&str] = &[
    "0", "action", "allowed", "detail", "dump", "message", "names", "problem", "reason", "said", "source", "what",
    "why",
];

/// What begins a remedy behind a colon or a comma.
const REMEDIES: &[&str] = &[
    "add", "ask", "begin", "call", "check", "choose", "commit", "convert", "copy", "cut", "encode", "free", "give",
    "install", "join", "load", "lower", "make", "move", "name", "open", "pass", "raise", "read", "save", "search",
    "send", "set", "split", "start", "stop", "take", "try", "use", "wait", "write",
];

/// What says what was expected, which is what to give.
const EXPECTED: &[&str] = &[
    "are needed",
    "at least",
    "at most",
    "expected",
    "is needed",
    "must be",
    "the most",
    "to be",
    "wanted",
    "which are",
];

/// Files of whose messages some say no remedy, with the reason. None is to be added.
const UNHELPED: &[(&str, &str)] = &[
    ("crates/yirage-advisor/src/error.rs", "who stopped it knows"),
    ("crates/yirage-compile/src/error.rs", "both were made by the program: its facts are what is reported"),
    ("crates/yirage-conformance/src/vm.rs", "who writes plans reads it, and it names the task"),
    ("crates/yirage-cpu-kernels/src/attention/mod.rs", "no step that the scheduler makes meets it"),
    ("crates/yirage-cpu-kernels/src/general/operand.rs", "no plan that was proved meets it"),
    ("crates/yirage-cpu-kernels/src/pack/mod.rs", "no plan of weights meets it"),
    ("crates/yirage-cpu-kernels/src/recurrent/mod.rs", "no step that the scheduler makes meets it"),
    ("crates/yirage-cpu/src/pool/mod.rs", "it is a mistake of the program, named"),
    ("crates/yirage-engine/src/prefix_error.rs", "the file is of another model, which its caller names"),
    ("crates/yirage-engine/src/sampling/error.rs", "one names the range; the others are mistakes of the program"),
    ("crates/yirage-graph/src/kernel_graph/error.rs", "it names the call that is missing"),
    ("crates/yirage-hub/src/error.rs", "what the repository holds is all there is"),
    ("crates/yirage-ir/src/attr.rs", "the position in the text is told around it"),
    ("crates/yirage-ir/src/graph.rs", "it is a mistake of the program, named"),
    ("crates/yirage-ir/src/op/lower.rs", "it answers a question, and is no failure"),
    ("crates/yirage-ir/src/region/tiled/unroll.rs", "it answers whether a region can be unrolled, and is no failure"),
    ("crates/yirage-kir/src/interpret/fault.rs", "who writes kernels reads it, and it names the access"),
    ("crates/yirage-mmap/src/lib.rs", "the machine's own limits"),
    ("crates/yirage-model/src/flaw.rs", "part of the message of the file, which says what to do"),
    ("crates/yirage-model/src/tokenizer/error.rs", "the file lacks it, and is named"),
    ("crates/yirage-packed/src/error.rs", "it is a mistake of the program, named"),
    ("crates/yirage-packed/src/text_store.rs", "the limit is named, and nothing is lost but a kept text"),
    ("crates/yirage-probe/src/error.rs", "said of a library that is left alone; the doctor tells what to do"),
    ("crates/yirage-registry/src/error.rs", "the reasons of all backends follow"),
    ("crates/yirage-scheduler/src/error.rs", "mistakes of the program that commits steps, named"),
    ("crates/yirage-scheduler/src/kv/error.rs", "the scheduler's to answer: it preempts"),
    ("crates/yirage-search/src/equal/error.rs", "it answers a question: where the graphs differ"),
    ("crates/yirage-search/src/lib.rs", "it is a mistake of the program, named"),
    ("crates/yirage-serve/src/server.rs", "no command gives it none"),
    ("crates/yirage-session/src/error.rs", "no model has as many"),
    ("crates/yirage/src/failure.rs", "who interrupted it knows"),
];

/// Fields that a message need not show, with the reason.
const UNSAID: &[(&str, &str, &str)] =
    &[("crates/yirage-hal/src/backend.rs", "present", "it decides whether the message is shown at all")];

pub(super) fn check(tree: &RepoTree, findings: &mut Vec<TidyFinding>) {
    let mut used = vec![false; SPOKEN.len()];
    let mut unhelped = vec![false; UNHELPED.len()];
    for file in tree.files.iter().filter(|file| is_source(file)) {
        for message in messages(file) {
            let mut found = |what: String| findings.push(TidyFinding::new(&file.path, message.line, what));
            style(&message, &mut found);
            if !helps(&message) {
                match UNHELPED.iter().position(|(path, _)| *path == file.path) {
                    Some(at) => unhelped[at] = true,
                    None => {
                        found("it says neither what was expected nor what to do: add `; ` and what to do".to_owned())
                    }
                }
            }
            for word in OURS.iter().filter(|word| has_word(&message.text, word)) {
                match SPOKEN.iter().position(|(path, spoken, _)| *path == file.path && spoken == word) {
                    Some(at) => used[at] = true,
                    None => found(format!("`{word}` is a word of ours: say it so that nobody needs the glossary")),
                }
            }
            for field in message.fields.iter().filter(|field| !has_word(&message.shown, field)) {
                if !UNSAID.iter().any(|(path, unsaid, _)| *path == file.path && unsaid == field) {
                    found(format!("`{field}` is known and not said: show it in the message"));
                }
            }
        }
    }
    for ((path, word, _), _) in SPOKEN.iter().zip(used).filter(|((path, ..), used)| !used && tree.file(path).is_some())
    {
        let message = format!("its messages have no `{word}`: take it off the list in xtask/src/tidy/messages.rs");
        findings.push(TidyFinding::new(path, 0, message));
    }
    for ((path, _), _) in UNHELPED.iter().zip(unhelped).filter(|((path, _), used)| !used && tree.file(path).is_some()) {
        let message = "all its messages say what to do: take it off the list in xtask/src/tidy/messages.rs";
        findings.push(TidyFinding::new(path, 0, message));
    }
}

fn is_source(file: &RepoFile) -> bool {
    file.is_rust() && file.path.starts_with("crates/") && file.path.contains("/src/")
}

/// The message of a variant, or of an error that is a struct.
struct ErrorMessage {
    line: usize,
    text: String,
    /// What is put into the text: the names between its braces, and what follows it.
    shown: String,
    /// Named fields, without the error that is the source.
    fields: Vec<String>,
}

fn style(message: &ErrorMessage, found: &mut impl FnMut(String)) {
    let mut letters = message.text.chars();
    if letters.next().is_some_and(char::is_uppercase) && letters.next().is_some_and(char::is_lowercase) {
        found("a message begins in lower case: it stands behind others".to_owned());
    }
    if message.text.ends_with(['.', '!']) {
        found("a message ends without a stop: others stand behind it".to_owned());
    }
    for (word, say) in EMPTY.iter().filter(|(word, _)| has_word(&message.text.to_lowercase(), word)) {
        found(format!("`{word}` says nothing: {say}"));
    }
}

/// Whether a message says what to do or what was expected, or has a cause that may.
fn helps(message: &ErrorMessage) -> bool {
    let verb =
        |rest: &str| REMEDIES.iter().any(|verb| rest.strip_prefix(verb).is_some_and(|rest| rest.starts_with(' ')));
    message.text.contains("; ")
        || [": ", ", ", "or ", ". "].iter().any(|mark| message.text.split(mark).skip(1).any(verb))
        || EXPECTED.iter().any(|words| has_word(&message.text, words))
        || CAUSES.iter().any(|cause| has_word(&message.shown, cause))
}

fn messages(file: &RepoFile) -> Vec<ErrorMessage> {
    // What tests define nobody is told.
    let told = file.text.split("\n#[cfg(test)]\nmod ").next().unwrap_or_default();
    let each = told.match_indices("#[error(").filter_map(|(at, opener)| {
        let from = at + opener.len();
        let end = from + closing(&file.text[from..], '(', ')')?;
        let whole = &file.text[from..end];
        let raw = quoted(whole)?;
        let behind = &whole[whole.find('"')? + raw.len() + 2..];
        let named = raw.split('{').skip(1).filter_map(|part| part.split(['}', ':']).next());
        let shown = named.chain([behind]).collect::<Vec<_>>().join(" ");
        let text = joined(raw);
        let line = file.text[..at].matches('\n').count() + 1;
        let fields = fields(file.text[end + 1..].strip_prefix(']')?);
        Some(ErrorMessage { line, text, shown, fields })
    });
    each.collect()
}

/// Where the bracket ends that is open at the start, brackets in texts left out.
fn closing(text: &str, opener: char, closer: char) -> Option<usize> {
    let (mut open, mut in_text, mut escaped) = (1, false, false);
    for (at, letter) in text.char_indices() {
        match letter {
            _ if escaped => escaped = false,
            '\\' if in_text => escaped = true,
            '"' => in_text = !in_text,
            _ if in_text => {}
            _ if letter == opener => open += 1,
            _ if letter == closer => open -= 1,
            _ => {}
        }
        if open == 0 {
            return Some(at);
        }
    }
    None
}

/// The first text between quotation marks.
fn quoted(text: &str) -> Option<&str> {
    let text = &text[text.find('"')? + 1..];
    let mut escaped = false;
    let end = text.find(|letter| {
        let ends = letter == '"' && !escaped;
        escaped = letter == '\\' && !escaped;
        ends
    })?;
    Some(&text[..end])
}

/// A text whose lines end with a backslash, as it is.
fn joined(text: &str) -> String {
    let mut lines = text.split("\\\n");
    let first = lines.next().unwrap_or_default().to_owned();
    lines.fold(first, |all, line| all + line.trim_start())
}

/// Named fields of the variant or struct behind the attribute.
fn fields(behind: &str) -> Vec<String> {
    let code = behind.lines().map(str::trim).filter(|line| !line.starts_with("//")).collect::<Vec<_>>().join("\n");
    let mut rest = code.trim_start();
    while rest.starts_with("#[") {
        let Some(end) = closing(&rest[2..], '[', ']') else { return Vec::new() };
        rest = rest[2 + end + 1..].trim_start();
    }
    let Some(open) = rest.find(['{', '(', ',', ';', '}']).filter(|open| rest[*open..].starts_with('{')) else {
        return Vec::new();
    };
    // An enum's attribute is of all its variants.
    if rest[..open].contains("enum ") {
        return Vec::new();
    }
    let Some(end) = closing(&rest[open + 1..], '{', '}') else { return Vec::new() };
    let mut found = Vec::new();
    let mut is_source = false;
    for line in rest[open + 1..][..end].lines() {
        let line = line.trim().trim_start_matches("pub ");
        is_source |= line.starts_with("#[source]") || line.starts_with("#[from]");
        let name = line.split(':').next().unwrap_or_default();
        let is_name = !name.is_empty() && name.chars().all(|letter| letter.is_alphanumeric() || letter == '_');
        if line.contains(": ") && is_name {
            if !is_source && name != "source" {
                found.push(name.to_owned());
            }
            is_source = false;
        }
    }
    found
}

/// Whether a word stands in a text, with no letter beside it.
fn has_word(text: &str, word: &str) -> bool {
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
    text.match_indices(word).any(|(at, _)| {
        let (before, behind) = (text[..at].chars().next_back(), text[at + word.len()..].chars().next());
        !before.is_some_and(is_part) && !behind.is_some_and(is_part)
    })
}

#[cfg(test)]
mod tests {
    use super::super::run;
    use super::{RepoFile, check, messages};

    fn found(text: &str) -> Vec<String> {
        run(check, &[("crates/a/src/error.rs", text)])
    }

    const GOOD: &str = r#"
#[derive(Debug, Error)]
pub enum RowsError {
    /// Too many.
    #[error("expected at most {most} rows, got {rows}; \
        give fewer ({})", most.min(rows))]
    Rows {
        /// How many there are.
        rows: usize,
        /// The most.
        most: usize,
        /// What was read.
        #[source]
        cause: std::io::Error,
    },
    #[error("KV cache: {0}")]
    Cache(String),
    #[error(transparent)]
    Other(#[from] Other),
}
"#;

    #[test]
    fn messages_of_the_style_are_passed() {
        assert_eq!(found(GOOD), [""; 0]);
        let file = RepoFile { path: "crates/a/src/error.rs".into(), text: GOOD.into() };
        let all = messages(&file);
        assert_eq!(all.iter().map(|one| one.line).collect::<Vec<_>>(), [5, 16]);
        assert_eq!(all[0].text, "expected at most {most} rows, got {rows}; give fewer ({})");
        assert_eq!(all[0].fields, ["rows", "most"]);
    }

    #[test]
    fn each_mistake_is_found_in_any_variant() {
        for (good, bad, what) in [
            ("\"expected at", "\"Expected at", "lower case"),
            ("KV cache: {0}", "KV cache: {0}.", "without a stop"),
            ("expected at most {most} rows", "invalid rows, {most}", "says nothing"),
            ("KV cache", "the arena", "word of ours"),
            ("expected at most {most} rows, got {rows}; \\\n        give", "{most} rows, {rows} and", "what to do"),
        ] {
            let text = GOOD.replace(good, bad);
            assert_ne!(text, GOOD);
            let lines = found(&text);
            assert!(matches!(&lines[..], [one] if one.contains(what)), "{bad}: {lines:?}");
        }
        let lines = found(&GOOD.replace("got {rows}", "got more").replace(", most.min(rows)", ", most"));
        assert!(matches!(&lines[..], [one] if one.contains("`rows` is known and not said")), "{lines:?}");
    }
}
