//! Texts of form 1 (graphs, plans, graphs as JSON, plan files) rewritten in the words of form 2.
//!
//! Knows the words that changed and where they stand, and nothing of what a text means: what comes out is for the program to
//! read or to refuse. A file that says none of these words stays as it is, byte by byte.

mod sealed;

pub(crate) const USAGE: &str =
    "       cargo xtask migrate-text FILE..   graphs, plans and plan files of text form 1, rewritten in form 2\n";

/// What declares an input of a graph.
const DECLARATIONS: [(&str, &str); 2] = [("slot", "input"), ("state", "kv_cache")];
/// How a kernel's stage is divided among workers, and for which nodes it runs.
const STAGES: [(&str, &str); 3] = [("shares", "static"), ("drained", "work_queue"), ("nostate", "no_kv_cache")];
/// A field of a graph as JSON: its name, the old value, the new one.
const FIELDS: [[&str; 3]; 4] = [
    ["\"yirage-graph\"", "1", "2"],
    ["\"kind\"", "\"slot\"", "\"input\""],
    ["\"kind\"", "\"state\"", "\"kv_cache\""],
    ["\"region\"", "\"products\"", "\"matmul_group\""],
];

/// Rewrites files in their places.
///
/// # Errors
/// No file is named, or one cannot be read or written.
#[expect(clippy::print_stdout, reason = "a command line tool talks to its terminal")]
pub(crate) fn run(paths: &[String]) -> Result<(), String> {
    if paths.is_empty() {
        return Err(format!("no file is named\n{USAGE}"));
    }
    for path in paths {
        let old = std::fs::read(path).map_err(|error| format!("{path}: {error}"))?;
        let new = migrated(&old);
        if new == old {
            println!("{path}: says nothing in form 1");
            continue;
        }
        std::fs::write(path, new).map_err(|error| format!("{path}: {error}"))?;
        println!("{path}: rewritten");
    }
    Ok(())
}

/// A file in form 2: sealed, or a text, or a source that quotes texts.
fn migrated(file: &[u8]) -> Vec<u8> {
    sealed::migrated(file).unwrap_or_else(|| body(file))
}

/// A text in form 2.
fn body(text: &[u8]) -> Vec<u8> {
    let text = regions(&declarations(text));
    let lines: Vec<Vec<u8>> = text.split(|&byte| byte == b'\n').map(plan_line).collect();
    fields(lines.join(&b'\n'))
}

/// Declarations, `slot %x`, also where a source has one right behind an escaped end of line.
fn declarations(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() + text.len() / 8);
    let mut at = 0;
    while at < text.len() {
        let before = &text[..at];
        let begins = before.ends_with(b"\\n") || !before.last().is_some_and(|&byte| is_word(byte) || byte == b'%');
        let declared = DECLARATIONS.iter().find(|(old, _)| begins && declares(&text[at..], old));
        match declared {
            Some((old, new)) => {
                out.extend_from_slice(new.as_bytes());
                at += old.len();
            }
            None => {
                out.push(text[at]);
                at += 1;
            }
        }
    }
    out
}

/// Whether a text begins with this word and a value's name, or with what a source puts in the place of one.
fn declares(text: &[u8], word: &str) -> bool {
    let name = text.strip_prefix(word.as_bytes()).map(<[u8]>::trim_ascii_start);
    name.and_then(|name| name.strip_prefix(b"%"))
        .is_some_and(|name| name.first().is_some_and(|&byte| is_word(byte) || byte == b'{'))
}

/// Whether a name may have the byte.
fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_.-+".contains(&byte)
}

/// Groups of matmuls, and the graph within each, which is called as its kind is.
fn regions(text: &[u8]) -> Vec<u8> {
    let (region, graph) = (("region products", "region matmul_group"), ("graph products", "graph matmul_group"));
    let mut out = Vec::new();
    let mut rest = text;
    let mut within = false;
    while let Some(at) = find(rest, region.0) {
        out.extend(first(&rest[..at], graph, within));
        out.extend_from_slice(region.1.as_bytes());
        (rest, within) = (&rest[at + region.0.len()..], true);
    }
    out.extend(first(rest, graph, within));
    out
}

/// The text with the first `old` replaced, where there is one and it is `wanted`.
fn first(text: &[u8], (old, new): (&str, &str), wanted: bool) -> Vec<u8> {
    match find(text, old).filter(|_| wanted) {
        Some(at) => [&text[..at], new.as_bytes(), &text[at + old.len()..]].concat(),
        None => text.to_vec(),
    }
}

fn find(text: &[u8], part: &str) -> Option<usize> {
    text.windows(part.len()).position(|window| window == part.as_bytes())
}

/// A line of a plan, also where a comment shows one; any other as it is.
fn plan_line(line: &[u8]) -> Vec<u8> {
    let Ok(text) = std::str::from_utf8(line) else { return line.to_vec() };
    let mut words: Vec<String> = text.split(' ').map(str::to_owned).collect();
    let comment = words.iter().take_while(|word| word.is_empty() || word.starts_with("//")).count();
    match &mut words[comment..] {
        [word, _, offset, ..] if word == "place" && offset.starts_with("offset=") => *word = "placement".into(),
        [word, step, _, partition, ..] if word == "task" && step.starts_with("step=") => {
            *partition = match partition.strip_prefix("share=") {
                Some(which) => format!("partition={which}"),
                None if partition == "drain" => "work_queue".into(),
                None => return line.to_vec(),
            };
        }
        [word, name, _, stages @ ..] if word == "kernel" && name.contains('@') => {
            *name = name.replace("/products@", "/matmul_group@");
            stages.iter_mut().for_each(|stage| *stage = self::stage(stage));
        }
        _ => return line.to_vec(),
    }
    words.join(" ").into_bytes()
}

/// A stage of a kernel: `shares?float`.
fn stage(word: &str) -> String {
    let renamed =
        |part: &str| STAGES.iter().find(|(old, _)| *old == part).map_or(part.to_owned(), |(_, new)| (*new).into());
    word.split('?').map(renamed).collect::<Vec<_>>().join("?")
}

/// Fields of a graph as JSON, where a text has one.
fn fields(text: Vec<u8>) -> Vec<u8> {
    if find(&text, FIELDS[0][0]).is_none() {
        return text;
    }
    FIELDS.iter().fold(text, |text, field| with_field(&text, field))
}

fn with_field(text: &[u8], [name, old, new]: &[&str; 3]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = find(rest, name) {
        let (before, behind) = rest.split_at(at + name.len());
        out.extend_from_slice(before);
        let value = behind.trim_ascii_start().strip_prefix(b":").unwrap_or(behind).trim_ascii_start();
        let is_old = value.strip_prefix(old.as_bytes()).filter(|end| !end.first().is_some_and(u8::is_ascii_digit));
        rest = match is_old {
            Some(end) => {
                out.extend_from_slice(&behind[..behind.len() - value.len()]);
                out.extend_from_slice(new.as_bytes());
                end
            }
            None => behind,
        };
    }
    out.extend_from_slice(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &str = "graph layer {
  slot %x: f32[Tokens, 64]
  slot %slots: i32[Tokens]
  weight %state: q4_0[64, 64]
  state %kv: bf16[32, 2, 32]
  %y = region products(%x, %state): f32[Tokens, 64]
    graph products {
      slot %x: f32[Tokens, 64]
      weight %state: q4_0[64, 64]
      output %x
    }
  %slot = map{expr=\"silu(x0)\"}(%y): f32[Tokens, 64] // a slot of its own
  output %slot, %state
}
";
    const NEW: &str = "graph layer {
  input %x: f32[Tokens, 64]
  input %slots: i32[Tokens]
  weight %state: q4_0[64, 64]
  kv_cache %kv: bf16[32, 2, 32]
  %y = region matmul_group(%x, %state): f32[Tokens, 64]
    graph matmul_group {
      input %x: f32[Tokens, 64]
      weight %state: q4_0[64, 64]
      output %x
    }
  %slot = map{expr=\"silu(x0)\"}(%y): f32[Tokens, 64] // a slot of its own
  output %slot, %state
}
";

    fn text(of: &str) -> String {
        String::from_utf8(migrated(of.as_bytes())).unwrap()
    }

    #[test]
    fn a_graph_of_form_1_is_one_of_form_2() {
        assert_eq!((text(OLD).as_str(), text(NEW).as_str()), (NEW, NEW));
    }

    #[test]
    fn a_plan_of_form_1_is_one_of_form_2() {
        let plan = "kernel cpu/products@1 avx2 shares?float drained scratch
kernel cpu/attention@1 avx2 shares?nostate rows
place 7 offset=0 bytes=64
task step=0 stage=0 share=0/2 signals=0
task step=0 stage=1 drain waits=0:1 signals=0
";
        let wanted = "kernel cpu/matmul_group@1 avx2 static?float work_queue scratch
kernel cpu/attention@1 avx2 static?no_kv_cache rows
placement 7 offset=0 bytes=64
task step=0 stage=0 partition=0/2 signals=0
task step=0 stage=1 work_queue waits=0:1 signals=0
";
        assert_eq!((text(plan).as_str(), text(wanted).as_str()), (wanted, wanted));
    }

    #[test]
    fn a_graph_as_json_is_one_of_version_2() {
        let of = |version, input, cache| {
            format!(
                r#"{{"yirage-graph": {version}, "graph": {{"name": "slot", "inputs": [{{"kind": {input}}}, {{"kind":{cache}}}], "nodes": []}}}}"#
            )
        };
        let (old, new) = (of(1, "\"slot\"", "\"state\""), of(2, "\"input\"", "\"kv_cache\""));
        assert_eq!((text(&old), text(&new)), (new.clone(), new.clone()));
        // Another program's kinds are its own.
        let other = r#"{"kind": "slot"}"#;
        assert_eq!(text(other), other);
        assert_eq!(text(r#"{"yirage-graph": 12}"#), r#"{"yirage-graph": 12}"#);
    }

    #[test]
    fn a_source_keeps_what_is_no_text() {
        let source =
            "let a = state % 7 + slot; // the state is a slot\nparse(\"graph g {{\\nslot %{name}: f32[2]\");\n";
        let wanted =
            "let a = state % 7 + slot; // the state is a slot\nparse(\"graph g {{\\ninput %{name}: f32[2]\");\n";
        assert_eq!(text(source), wanted);
    }

    #[test]
    fn bytes_that_are_no_text_stay() {
        let bytes = [0xff, b'\n', 0xfe, b'p', b'l', 0x80];
        assert_eq!(migrated(&bytes), bytes);
    }
}
