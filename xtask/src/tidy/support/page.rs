//! The page's text.

use super::facts::{UnverifiedLevels, VerifiedCases, VerifiedDevice, VerifiedFile, VerifiedRun};
use std::collections::BTreeSet;
use std::fmt::Write;

const HEAD: &str = "# What has run where

`cargo xtask support` writes this page from the records in `docs/hardware/verified/` and from [`support.toml`](support.toml);
`cargo xtask tidy` checks it. A record is what `yirage verify` found on one device, in one build:
`yirage verify vulkan -o docs/hardware/verified/NAME.json` makes one ([the command](../cli.md#verify-a-backend-beside-the-reference)).

- **hardware**: it ran on the device itself.
- **software**: a processor played the device: a software driver of Vulkan, or an accelerator that is simulated. The same kernels
  gave these results, which says nothing of speed, nor of what a maker's compiler does to them.
- **emulated**: the tests ran under an emulator of the processor, or on a driver in software that runs the kernels' own text.
- **fake library**: the tests ran on a maker's libraries in software, which check every call and compute by themselves.
- **compiles**: the compiler accepts it, and nothing has run.
";

/// Most ops that are named where not all were asked for.
const NAMED: usize = 3;

const UNVERIFIED: &str = "
## Without a record

What ran before there were records, and what nothing here can run.

| backend | level | state | with what |
|---|---|---|---|
";

/// The page of these records and this list.
pub(super) fn text(records: &[VerifiedFile], list: &UnverifiedLevels) -> String {
    let mut page = HEAD.to_owned();
    if !records.is_empty() {
        verified(&mut page, records);
        models(&mut page, records);
        let how = "Cases that passed, of all, and the largest error as a share of what its tolerance allows. Those that a device \
                   refuses have no kernel there, which compiling says.";
        cases(&mut page, "Ops", how, records, |record| &record.suite.ops);
        let how = "A case counts under each format of weights, caches and activations that it reads.";
        cases(&mut page, "Formats", how, records, |record| &record.suite.formats);
    }
    page.push_str(UNVERIFIED);
    for entry in &list.level {
        let levels: Vec<String> = entry.level.iter().map(|level| format!("`{level}`")).collect();
        let levels = if levels.is_empty() { "–".to_owned() } else { levels.join(", ") };
        // Text cannot refuse more text, here and below.
        let _ = writeln!(page, "| {} | {levels} | {} | {} |", entry.backend, entry.state.words(), entry.with);
    }
    page
}

fn verified(page: &mut String, records: &[VerifiedFile]) {
    page.push_str("\n## With a record\n\n");
    page.push_str("| record | state | device | driver | passed | refused | wrong | when, commit |\n|---|---|---|---|---|---|---|---|\n");
    for VerifiedFile { name, record } in records {
        let VerifiedDevice { device, build, suite, date, .. } = record;
        let sum = |of: fn(&VerifiedCases) -> usize| suite.ops.iter().map(of).sum::<usize>();
        let all = sum(|op| op.passed + op.rounded + op.refused + op.failed);
        let rounded = sum(|op| op.rounded);
        let rounded = if rounded > 0 { format!(", {rounded} but for a rounding") } else { String::new() };
        let ways = match (&suite.only, suite.quick) {
            (Some(ops), _) if ops.len() > NAMED => format!(", of {} ops", ops.len()),
            (Some(ops), _) => format!(", of {} alone", ops.join(", ")),
            (None, true) => ", each in one way".to_owned(),
            (None, false) => String::new(),
        };
        let _ = writeln!(
            page,
            "| [{name}](verified/{name}.json) | {} | {} {} ({}) | {} | {} of {all}{rounded}{ways} | {} | {} | {}, {} |",
            if device.software { "software" } else { "hardware" },
            device.backend,
            device.name,
            device.arch,
            device.driver_version.as_deref().unwrap_or("–"),
            sum(|op| op.passed),
            sum(|op| op.refused),
            sum(|op| op.failed),
            date.split('T').next().unwrap_or(date),
            build.commit.as_deref().unwrap_or(&build.version),
        );
    }
}

fn models(page: &mut String, records: &[VerifiedFile]) {
    let with_models: Vec<_> =
        records.iter().filter_map(|file| Some((&file.name, file.record.model.as_ref()?))).collect();
    if with_models.is_empty() {
        return;
    }
    page.push_str("\n### A whole model\n\nBeside the same model in the exact precision: how far hidden states drift from layer to \
                   layer over the root of their mean square, the mean divergence of the next token in nats, and likeliest \
                   tokens that differ.\n\n| record | model, against | precision | largest drift | mean divergence | tokens that \
                   differ | verdict |\n|---|---|---|---|---|---|---|\n");
    for (name, model) in with_models {
        for run in &model.runs {
            let VerifiedRun { precision, kl_mean, different, .. } = run;
            let figure = |x: Option<f64>| x.map_or("infinite".to_owned(), scientific);
            let drift = run.drift.iter().try_fold(0.0, |most: f64, drift| drift.map(|drift| most.max(drift)));
            let verdict = match &run.error {
                Some(_) => "not computed",
                None if run.wrong.is_empty() => "right",
                None => "wrong",
            };
            let (drift, mean) = (figure(drift), figure(*kl_mean));
            let _ = writeln!(
                page,
                "| {name} | {}, {} | {precision} | {drift} | {mean} | {different} | {verdict} |",
                model.name, model.against
            );
        }
    }
}

fn scientific(number: f64) -> String {
    if number == 0.0 { "0".to_owned() } else { format!("{number:.1e}") }
}

/// A table with a row for each op or format, and a column for each record.
fn cases(
    page: &mut String,
    title: &str,
    how: &str,
    records: &[VerifiedFile],
    of: fn(&VerifiedDevice) -> &Vec<VerifiedCases>,
) {
    let names: Vec<&str> = records.iter().map(|file| file.name.as_str()).collect();
    let _ =
        write!(page, "\n### {title}\n\n{how}\n\n| | {} |\n|---{}|\n", names.join(" | "), "|---".repeat(names.len()));
    let rows: BTreeSet<&str> =
        records.iter().flat_map(|file| of(&file.record)).map(|cases| cases.name.as_str()).collect();
    for row in rows {
        let cell =
            |file: &VerifiedFile| of(&file.record).iter().find(|cases| cases.name == row).map_or("–".to_owned(), cell);
        let cells: Vec<String> = records.iter().map(cell).collect();
        let _ = writeln!(page, "| `{row}` | {} |", cells.join(" | "));
    }
}

/// Cases of an op or format on a device.
fn cell(cases: &VerifiedCases) -> String {
    let VerifiedCases { passed, rounded, refused, failed, error, .. } = cases;
    let all = passed + rounded + refused + failed;
    let also = |count: &usize, what: &str| if *count > 0 { format!(", {count} {what}") } else { String::new() };
    let share = match error {
        Some(error) if *rounded == 0 => error.of_tolerance.map_or(", infinite".into(), |share| format!(", {share:.2}")),
        _ => String::new(),
    };
    format!(
        "{passed} of {all}{share}{}{}{}",
        also(refused, "refused"),
        also(rounded, "rounded"),
        also(failed, "**wrong**")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECORD: &str = r#"{"schema": 1, "date": "2026-11-28T12:00:00Z",
        "build": {"version": "0.1.0", "commit": "abc"},
        "device": {"backend": "vulkan", "name": "llvmpipe", "arch": "vulkan 1.3", "driver_version": "Mesa 22", "software": true},
        "suite": {"quick": true, "only": null,
            "ops": [{"name": "linear", "passed": 3, "rounded": 0, "refused": 1, "failed": 0, "error": {"of_tolerance": 0.5}}],
            "formats": [{"name": "q4_0", "passed": 2, "rounded": 0, "refused": 0, "failed": 1, "error": {"of_tolerance": null}}]},
        "model": {"name": "stories", "against": "reference", "runs": [
            {"precision": "exact", "error": null, "drift": [1e-6, 2e-6], "kl_mean": 1e-9, "different": 0, "wrong": []}]}}"#;
    const LIST: &str = "[[level]]\nbackend = \"cpu\"\nlevel = [\"neon\"]\nstate = \"emulated\"\nwith = \"qemu\"\n\
                        [[level]]\nbackend = \"ascend\"\nstate = \"fake\"\nwith = \"its libraries in software\"\n";

    #[test]
    fn records_and_the_list_make_the_page() {
        let records = [VerifiedFile::parse("docs/hardware/verified/mesa.json", RECORD).unwrap()];
        let page = text(&records, &UnverifiedLevels::parse(LIST).unwrap());
        for line in [
            "| [mesa](verified/mesa.json) | software | vulkan llvmpipe (vulkan 1.3) | Mesa 22 | 3 of 4, each in one way | 1 | 0 | 2026-11-28, abc |",
            "| mesa | stories, reference | exact | 2.0e-6 | 1.0e-9 | 0 | right |",
            "| `linear` | 3 of 4, 0.50, 1 refused |",
            "| `q4_0` | 2 of 3, infinite, 1 **wrong** |",
            "| cpu | `neon` | emulated | qemu |",
            "| ascend | – | fake library | its libraries in software |",
        ] {
            assert!(page.lines().any(|l| l == line), "{line}\n{page}");
        }
        assert!(text(&[], &UnverifiedLevels::default()).ends_with("|---|---|---|---|\n"));
    }

    #[test]
    fn what_is_no_record_is_named() {
        let why = |path, text| VerifiedFile::parse(path, text).unwrap_err();
        assert!(why("verified/a.json", "{}").starts_with("verified/a.json: no result of"));
        let other = RECORD.replace("\"schema\": 1", "\"schema\": 2");
        assert_eq!(why("verified/a.json", &other), "verified/a.json: expected schema 1, got 2; verify anew");
        assert!(why("verified/a.txt", RECORD).contains("NAME.json"));
        assert!(UnverifiedLevels::parse("[[level]]\nstate = \"magic\"").is_err());
    }
}
