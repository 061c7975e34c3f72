//! `yirage backend optimize`: which settings suit a device, and why.

use crate::console::Console;
use crate::failure::CliFailure;
use crate::options::{ConfigEditor, Layers};
use crate::settings::DeviceSettings;
use serde_json::{Value, json};
use yirage_advisor::{Advice, Hardware, Setting, advise};

/// Runs the command.
///
/// # Errors
/// Whatever is wrong with options or the configuration file.
pub(crate) fn run(layers: &Layers, console: &Console) -> Result<(), CliFailure> {
    let info = DeviceSettings::resolve(layers)?.info(layers)?;
    let advice = advise(&Hardware::from(&info));
    let written = if layers.switch("apply")? { Some(apply(&advice, layers)?) } else { None };
    if console.json {
        let settings: Vec<Value> = advice.settings.iter().map(|s| of_setting(s, layers)).collect();
        let path = written.as_ref().map(|kept| kept.path());
        return console.value(&json!({
            "backend": info.backend,
            "device": info.ordinal,
            "settings": settings,
            "notes": advice.notes,
            "written": path,
        }));
    }
    console.line(&format!("advice for {} {}: {}", info.backend, info.ordinal, info.name))?;
    for Setting { name, value, reason } in &advice.settings {
        let whose = if layers.knows(name) { "" } else { " (of persistent kernels, no option)" };
        console.line(&format!("    {name} = {value}{whose}: {reason}"))?;
    }
    for note in &advice.notes {
        console.line(&format!("    {note}"))?;
    }
    match written {
        Some(kept) => console.line(&format!("kept in {}", kept.path().display())),
        None => {
            console.note("nothing was changed; --apply keeps the options for later starts");
            Ok(())
        }
    }
}

fn of_setting(Setting { name, value, reason }: &Setting, layers: &Layers) -> Value {
    json!({"name": name, "value": value, "reason": reason, "option": layers.knows(name)})
}

/// Keeps what is an option.
fn apply(advice: &Advice, layers: &Layers) -> Result<ConfigEditor, CliFailure> {
    let mut kept = ConfigEditor::open(layers)?;
    for Setting { name, value, .. } in advice.settings.iter().filter(|s| layers.knows(s.name)) {
        kept.set(name, &value.parse::<i64>().map_or_else(|_| value.as_str().into(), Into::into))?;
    }
    kept.write()?;
    Ok(kept)
}
