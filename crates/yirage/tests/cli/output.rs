//! Standard output that takes nothing, and what never reaches a terminal raw.

use crate::support::{TINY, redirected, yirage};
use std::fs::File;

/// Commands that print something without needing more than a small model.
const COMMANDS: [&[&str]; 12] = [
    &["run", TINY, "--prompt-ids", "1", "-n", "2"],
    &["logits", TINY, "--ids", "1"],
    &["perplexity", TINY, "--ids", "1,2"],
    &["inspect", TINY],
    &["list"],
    &["cache", "list"],
    &["devices"],
    &["doctor"],
    &["explain", TINY],
    &["completions", "bash"],
    &["config", "explain"],
    &["--help"],
];

#[cfg(target_os = "linux")]
#[test]
fn a_full_standard_output_is_an_error_of_every_command() {
    for command in COMMANDS {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let ran = yirage(command).output(full).ran();
        assert_eq!(ran.code, 1, "{command:?}: {}", ran.err);
        assert!(ran.err.contains("standard output: No space left"), "{command:?}: {}", ran.err);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_standard_output_that_never_was_is_an_error_of_every_command() {
    for command in COMMANDS {
        let ran = redirected(">&-", command).ran();
        assert_eq!(ran.code, 1, "{command:?}: {}", ran.err);
        assert!(ran.err.contains("standard output: it was closed"), "{command:?}: {}", ran.err);
    }
}

/// As `| head` does: nobody has to hear of it.
#[cfg(unix)]
#[test]
fn a_reader_that_went_away_ends_every_command_without_a_word() {
    for command in COMMANDS {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let ran = yirage(&[command, &["-q"][..usize::from(command != ["--help"])]].concat())
            .output(File::from(std::os::fd::OwnedFd::from(writer)))
            .ran();
        assert_eq!((ran.code, ran.err.as_str()), (141, ""), "{command:?}");
    }
}

#[test]
fn control_characters_of_files_are_spelt_out() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tiny.gguf");
    let mut bytes = std::fs::read(TINY).unwrap();
    // The value of `general.architecture`, behind its length of five.
    let at = bytes.windows(13).position(|w| w == b"\x05\0\0\0\0\0\0\0llama").unwrap() + 8;
    bytes[at..at + 5].copy_from_slice(b"\x1b[31m");
    std::fs::write(&path, bytes).unwrap();
    for command in ["inspect", "run"] {
        let ran = yirage(&[command, path.to_str().unwrap()]).ran();
        let all = format!("{}{}", ran.out, ran.err);
        assert!(!all.contains('\u{1b}') && all.contains("[31m"), "{command}: {all:?}");
    }
    let ran = yirage(&["run", "no/such\u{1b}[2J.gguf"]).ran();
    assert!(ran.code != 0 && !ran.err.contains('\u{1b}'), "{:?}", ran.err);
}
