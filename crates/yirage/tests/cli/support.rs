//! Running the program, and the small model.

use base64::Engine as _;
use serde_json::Value;
use std::fs::File;
use std::io::Write;
use std::path::Path;
#[cfg(target_os = "linux")]
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use yirage_testkit::vision;

/// A model of 21,000 parameters and 128 positions, without a tokenizer, that every clone has.
pub(crate) const TINY: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../yirage-model/tests/golden/tiny/gguf/llama/model.gguf");

/// What a run left.
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ran {
    /// Standard output as one JSON value; fails when the run failed or anything else is on standard output.
    pub(crate) fn json(&self) -> Value {
        assert_eq!(self.code, 0, "{}", self.err);
        assert!(self.out.ends_with('\n') && self.out.lines().count() == 1, "not one line: {:?}", self.out);
        serde_json::from_str(&self.out).unwrap_or_else(|e| panic!("{e}: {:?}", self.out))
    }
}

/// A run to come, away from the user's own settings and caches.
pub(crate) struct Run(Command, Option<String>, Option<File>);

/// A run with these arguments.
pub(crate) fn yirage(arguments: &[&str]) -> Run {
    away(Command::new(env!("CARGO_BIN_EXE_yirage")), arguments)
}

/// A run with these arguments under a limit of the shell: what follows `ulimit`.
#[cfg(unix)]
pub(crate) fn limited(limit: &str, arguments: &[&str]) -> Run {
    in_shell(&format!("ulimit {limit} && exec \"$0\" \"$@\""), arguments)
}

/// A run with these arguments and a redirection of the shell.
#[cfg(unix)]
pub(crate) fn redirected(redirection: &str, arguments: &[&str]) -> Run {
    in_shell(&format!("exec \"$0\" \"$@\" {redirection}"), arguments)
}

#[cfg(unix)]
fn in_shell(script: &str, arguments: &[&str]) -> Run {
    let mut shell = Command::new("sh");
    shell.args(["-c", script, env!("CARGO_BIN_EXE_yirage")]);
    away(shell, arguments)
}

fn away(mut command: Command, arguments: &[&str]) -> Run {
    command.args(arguments);
    for (name, _) in std::env::vars_os() {
        let ours = |n: &str| {
            n == "OPENAI_API_KEY"
                || n.starts_with("YIRAGE_")
                || n.starts_with("HF_")
                || n.to_ascii_lowercase().ends_with("_proxy")
        };
        if name.to_str().is_some_and(ours) {
            command.env_remove(name);
        }
    }
    let nowhere = std::env::temp_dir().join("yirage-test-no-such-folder");
    for name in ["HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME", "HF_HOME"] {
        command.env(name, &nowhere);
    }
    command.env("HF_HUB_OFFLINE", "1");
    // Tests of what is kept name a folder of their own.
    command.env("YIRAGE_WEIGHT_CACHE", "off");
    Run(command, None, None)
}

impl Run {
    pub(crate) fn env(mut self, name: &str, value: &str) -> Run {
        self.0.env(name, value);
        self
    }

    /// A variable that may be no text.
    pub(crate) fn env_os(mut self, name: &str, value: &std::ffi::OsStr) -> Run {
        self.0.env(name, value);
        self
    }

    /// Where it runs, and where files without a folder are written.
    pub(crate) fn current_dir(mut self, folder: &Path) -> Run {
        self.0.current_dir(folder);
        self
    }

    /// Starts it; what it says waits to be read.
    pub(crate) fn reading(mut self) -> Child {
        self.0.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        self.0.spawn().unwrap()
    }

    /// Starts it without waiting for its end; nobody reads what it says.
    pub(crate) fn started(mut self) -> Child {
        self.0.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        self.0.spawn().unwrap()
    }

    pub(crate) fn input(mut self, text: &str) -> Run {
        self.1 = Some(text.to_owned());
        self
    }

    /// Where its standard output goes instead of into [`Ran::out`].
    pub(crate) fn output(mut self, file: File) -> Run {
        self.2 = Some(file);
        self
    }

    pub(crate) fn ran(mut self) -> Ran {
        let out = self.2.map_or_else(Stdio::piped, Stdio::from);
        self.0.stdin(Stdio::piped()).stdout(out).stderr(Stdio::piped());
        let mut child = self.0.spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        // The program may end without reading.
        let _ = stdin.write_all(self.1.unwrap_or_default().as_bytes());
        drop(stdin);
        let output = child.wait_with_output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        let code = output.status.code().unwrap_or_else(|| panic!("ended by {}", output.status));
        Ran { code, out: text(output.stdout), err: text(output.stderr) }
    }

    pub(crate) fn json(self) -> Value {
        self.ran().json()
    }
}

/// The small model, in f32.
pub(crate) fn bedtime() -> String {
    path(&yirage_testkit::bedtime::f32())
}

/// A path as the command line takes it.
pub(crate) fn path(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}

/// The two pictures of the tiny models that read pictures, as files in a folder.
pub(crate) fn picture_files(folder: &Path) -> [String; 2] {
    pictures_of("llava", folder)
}

/// The pictures of a tiny model that reads them, as files in `folder`.
pub(crate) fn pictures_of(model: &str, folder: &Path) -> [String; 2] {
    let golden = vision::golden(model);
    ["first", "second"].map(|name| {
        let text = golden["pictures"][name].as_str().unwrap();
        let file = folder.join(format!("{name}.png"));
        std::fs::write(&file, base64::engine::general_purpose::STANDARD.decode(text).unwrap()).unwrap();
        path(&file)
    })
}

/// Ids as the command line takes them.
pub(crate) fn joined(ids: &Value) -> String {
    ids.as_array().unwrap().iter().map(Value::to_string).collect::<Vec<_>>().join(",")
}

pub(crate) fn keys(v: &Value) -> Vec<&str> {
    v.as_object().unwrap().keys().map(String::as_str).collect()
}

/// The project's root.
#[cfg(target_os = "linux")]
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The example of a plug-in in C: its folder, and what `YIRAGE_PLUGINS` says to load it as `software`.
#[cfg(target_os = "linux")]
pub(crate) fn software_device() -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let library = folder.path().join("libsoftware.so");
    let include = format!("-I{}", root().join("crates/yirage-plugin/include").display());
    let mut cc = Command::new("cc");
    let built = cc.args(["-shared", "-fPIC", &include, "-o"]).arg(&library);
    let built = built.arg(root().join("examples/plugin/software_device.c")).arg("-ldl").output().unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let named = format!("software={}", library.display());
    (folder, named)
}
