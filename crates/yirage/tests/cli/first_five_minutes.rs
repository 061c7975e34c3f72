//! The transcript of a newcomer's first five minutes, typed again by a shell in an empty home without a network.

use crate::docs::{commands, fits, page};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

/// Ends as the package client does where it reaches nothing.
const PYTHON: &str = "#!/bin/sh\necho 'ERROR: no matching distribution was found' >&2\nexit 1\n";

/// A program of this name that is found before the system's.
fn program(folder: &Path, name: &str, text: &str) {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// What a terminal shows of a command: both streams, with the home folder as a shell writes it.
fn shown(command: &str, home: &Path, programs: &Path) -> String {
    let own = Path::new(env!("CARGO_BIN_EXE_yirage")).parent().unwrap();
    let path = format!("{}:{}:/usr/bin:/bin", programs.display(), own.display());
    // Nothing of the user's own surroundings but where temporary files go. Nobody listens at the first port.
    let mut shell = Command::new("sh");
    shell.env_clear().envs(std::env::var_os("TMPDIR").map(|folder| ("TMPDIR", folder)));
    shell.env("HOME", home).env("PATH", path).env("HF_ENDPOINT", "http://127.0.0.1:1");
    let output = shell.args(["-c", &format!("{{ {command}; }} 2>&1")]).current_dir(home).output().unwrap();
    String::from_utf8(output.stdout).unwrap().replace(home.to_str().unwrap(), "~")
}

#[test]
fn the_transcript_is_what_a_newcomer_sees() {
    let (home, programs) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    program(programs.path(), "python3", PYTHON);
    let typed = commands(&page("first-five-minutes.md"));
    assert!(typed.len() >= 8, "only {} commands were found", typed.len());
    for (command, transcript) in typed {
        let shown = shown(&command, home.path(), programs.path());
        assert!(fits(&transcript, &shown), "{command}\nin the transcript:\n{transcript}\nis:\n{shown}");
    }
}
