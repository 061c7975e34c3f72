//! Which files of a repository are the model that was asked for. Pure: names in, names out.

use crate::HubError;
use std::collections::BTreeMap;

/// The quantisation taken when none is named.
const PREFERRED: &str = "q4_k_m";
/// Files that go with safetensors, by name; templates in their folder go as well.
const COMPANIONS: &[&str] = &[
    "config.json",
    "generation_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.json",
    "merges.txt",
    "tokenizer.model",
    "tekken.json",
    "chat_template.jinja",
    "chat_template.json",
    "model.safetensors.index.json",
];

/// The files of one model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RepoFileSelection {
    /// One GGUF, in order of its parts.
    Gguf(Vec<String>),
    /// Safetensors with what belongs to them.
    Safetensors(Vec<String>),
}

impl RepoFileSelection {
    /// The names, in the order to fetch them.
    pub(crate) fn files(&self) -> &[String] {
        match self {
            Self::Gguf(files) | Self::Safetensors(files) => files,
        }
    }
}

/// Chooses among `files` of `repo`.
///
/// A GGUF wins over safetensors. Among several, `quant` decides (a file's whole name or the quantisation in it, in any
/// capitals); without it [`PREFERRED`], or the only one there is.
///
/// # Errors
/// Nothing, or more than one thing, answers; the message lists what could be named.
pub(crate) fn select(repo: &str, files: &[String], quant: Option<&str>) -> Result<RepoFileSelection, HubError> {
    let models = complete_ggufs(files);
    if models.is_empty() {
        return match quant {
            None => safetensors(repo, files),
            Some(quant) => Err(no_such_quant(repo, quant, &models)),
        };
    }
    let wanted = quant.unwrap_or(PREFERRED).to_ascii_lowercase();
    let mut matching: Vec<&String> = models.keys().filter(|name| is_file(name, &wanted)).collect();
    for separators in [&['-', '.', '/'][..], &['_']] {
        if matching.is_empty() {
            matching = models.keys().filter(|name| ends_with_label(name, &wanted, separators)).collect();
        }
    }
    if matching.is_empty() && quant.is_none() {
        matching = models.keys().collect();
    }
    match matching.as_slice() {
        [one] => Ok(RepoFileSelection::Gguf(models[*one].clone())),
        [] => Err(no_such_quant(repo, quant.unwrap_or(PREFERRED), &models)),
        several => Err(HubError::Ambiguous { repo: repo.to_owned(), choices: labels(several) }),
    }
}

fn no_such_quant(repo: &str, quant: &str, models: &BTreeMap<String, Vec<String>>) -> HubError {
    let mut choices = labels(&models.keys().collect::<Vec<_>>());
    if choices.is_empty() {
        choices.push("no GGUF".to_owned());
    }
    HubError::NoSuchQuant { repo: repo.to_owned(), quant: quant.to_owned(), choices }
}

/// Models in GGUF by name without `.gguf` and part numbers; split ones only with all their parts.
fn complete_ggufs(files: &[String]) -> BTreeMap<String, Vec<String>> {
    let mut models: BTreeMap<String, BTreeMap<u32, String>> = BTreeMap::new();
    let mut part_counts: BTreeMap<String, u32> = BTreeMap::new();
    for file in files {
        let lower = file.to_ascii_lowercase();
        let Some(stem) = lower.ends_with(".gguf").then(|| &file[..file.len() - ".gguf".len()]) else { continue };
        if lower.contains("mmproj") || lower.contains("imatrix") {
            continue;
        }
        let (name, part, count) = split_part(stem).unwrap_or((stem, 1, 1));
        models.entry(name.to_owned()).or_default().insert(part, file.clone());
        part_counts.insert(name.to_owned(), count);
    }
    let complete = |name: &str, parts: &BTreeMap<u32, String>| {
        let count = part_counts.get(name).copied().unwrap_or(0);
        count as usize == parts.len() && parts.keys().copied().eq(1..=count)
    };
    models
        .into_iter()
        .filter(|(name, parts)| complete(name, parts))
        .map(|(name, parts)| (name, parts.into_values().collect()))
        .collect()
}

/// `name-00002-of-00005` as (`name`, 2, 5).
fn split_part(stem: &str) -> Option<(&str, u32, u32)> {
    let (head, count) = stem.rsplit_once("-of-")?;
    let (name, part) = head.rsplit_once('-')?;
    let number =
        |text: &str| (text.len() == 5 && text.bytes().all(|digit| digit.is_ascii_digit())).then(|| text.parse());
    Some((name, number(part)?.ok()?, number(count)?.ok()?))
}

/// Whether `wanted` is this file's name, with or without folder and extension.
fn is_file(name: &str, wanted: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let wanted = wanted.strip_suffix(".gguf").unwrap_or(wanted);
    name == wanted || name.rsplit('/').next() == Some(wanted)
}

/// Whether a name ends in the quantisation `wanted` after one of `separators`, or lies in a folder called so.
fn ends_with_label(name: &str, wanted: &str, separators: &[char]) -> bool {
    let name = name.to_ascii_lowercase();
    let ends = name.strip_suffix(wanted).is_some_and(|rest| rest.ends_with(separators));
    ends || name.rsplit('/').nth(1) == Some(wanted)
}

/// What a user would write to name each: the quantisation where it tells them apart, else the file's name.
fn labels(names: &[&String]) -> Vec<String> {
    let label = |name: &str| {
        let base = name.rsplit('/').next().unwrap_or(name);
        base.rsplit(['-', '.']).next().unwrap_or(base).to_owned()
    };
    let short: Vec<String> = names.iter().map(|name| label(name)).collect();
    let told_apart = |text: &str| short.iter().filter(|other| other.eq_ignore_ascii_case(text)).count() == 1;
    short.iter().zip(names).map(|(text, name)| if told_apart(text) { text.clone() } else { (*name).clone() }).collect()
}

/// Safetensors at the top of the repository, complete, with config and companions.
fn safetensors(repo: &str, files: &[String]) -> Result<RepoFileSelection, HubError> {
    let none = || HubError::NoModel { repo: repo.to_owned(), files: files.len(), left_out: Vec::new() };
    let at_top = |file: &&String| !file.contains('/');
    let mut weights: Vec<String> =
        files.iter().filter(at_top).filter(|file| file.ends_with(".safetensors")).cloned().collect();
    if weights.iter().any(|file| file.starts_with("model")) {
        weights.retain(|file| file.starts_with("model"));
    }
    weights.sort();
    let has_config = files.iter().any(|file| file == "config.json");
    if weights.is_empty() || !has_config || !all_parts_there(&weights) {
        return Err(none());
    }
    let template = |file: &str| file.starts_with("additional_chat_templates/") && file.ends_with(".jinja");
    let mut chosen: Vec<String> =
        files.iter().filter(|file| COMPANIONS.contains(&file.as_str()) || template(file)).cloned().collect();
    chosen.extend(weights);
    Ok(RepoFileSelection::Safetensors(chosen))
}

/// Whether weights that count their parts are all there.
fn all_parts_there(weights: &[String]) -> bool {
    weights.iter().all(|file| match split_part(file.trim_end_matches(".safetensors")) {
        None => true,
        Some((name, _, count)) => {
            let same = weights.iter().filter_map(|other| split_part(other.trim_end_matches(".safetensors")));
            same.filter(|(other, _, total)| *other == name && *total == count).count() == count as usize
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pick(files: &[&str], quant: Option<&str>) -> Result<Vec<String>, HubError> {
        let files: Vec<String> = files.iter().map(|file| (*file).to_owned()).collect();
        select("o/r", &files, quant).map(|selection| selection.files().to_vec())
    }

    #[test]
    fn a_quant_in_any_capitals_and_any_separator() {
        let files = ["README.md", "m-Q4_K_M.gguf", "m.Q8_0.gguf", "f16/m-f16.gguf", "IQ4_XS/m.gguf", "mmproj-F16.gguf"];
        assert_eq!(pick(&files, Some("q8_0")).unwrap(), ["m.Q8_0.gguf"]);
        assert_eq!(pick(&files, Some("F16")).unwrap(), ["f16/m-f16.gguf"]);
        assert_eq!(pick(&files, Some("iq4_xs")).unwrap(), ["IQ4_XS/m.gguf"]);
        assert_eq!(pick(&files, Some("m.q8_0.gguf")).unwrap(), ["m.Q8_0.gguf"]);
        assert_eq!(pick(&files, None).unwrap(), ["m-Q4_K_M.gguf"], "the preferred one");
    }

    #[test]
    fn no_quant_takes_the_only_one_or_lists() {
        assert_eq!(pick(&["a-Q6_K.gguf"], None).unwrap(), ["a-Q6_K.gguf"]);
        let error = pick(&["a-Q6_K.gguf", "a-Q8_0.gguf"], None).unwrap_err().to_string();
        assert!(error.contains("Q6_K, Q8_0"), "{error}");
        let error = pick(&["a-Q4_K_M.gguf", "b-Q4_K_M.gguf"], None).unwrap_err().to_string();
        assert!(error.contains("a-Q4_K_M, b-Q4_K_M"), "{error}");
        let error = pick(&["a-Q6_K.gguf"], Some("q2_k")).unwrap_err().to_string();
        assert!(error.contains("q2_k") && error.contains("Q6_K"), "{error}");
        assert!(pick(&["a-Q5_K_M.gguf", "a-K_M.gguf"], Some("k_m")).is_ok(), "a label matches as a whole");
    }

    #[test]
    fn split_files_come_whole_and_in_order() {
        let parts = ["q/m-Q8_0-00002-of-00003.gguf", "q/m-Q8_0-00001-of-00003.gguf", "q/m-Q8_0-00003-of-00003.gguf"];
        let mut sorted = parts;
        sorted.sort_unstable();
        assert_eq!(pick(&parts, Some("Q8_0")).unwrap(), sorted);
        assert!(matches!(pick(&parts[..2], Some("Q8_0")), Err(HubError::NoSuchQuant { .. })), "a part is missing");
        assert!(matches!(pick(&["m-00001-of-99999.gguf"], None), Err(HubError::NoModel { .. })));
        assert!(matches!(pick(&["m-00000-of-00000.gguf"], None), Err(HubError::NoModel { .. })));
    }

    #[test]
    fn safetensors_with_their_companions() {
        let files = [
            "config.json",
            "README.md",
            "tokenizer.json",
            "consolidated.safetensors",
            "model-00001-of-00002.safetensors",
            "model-00002-of-00002.safetensors",
            "additional_chat_templates/tool.jinja",
            "onnx/model.safetensors",
        ];
        let chosen = pick(&files, None).unwrap();
        assert_eq!(
            chosen,
            [
                "config.json",
                "tokenizer.json",
                "additional_chat_templates/tool.jinja",
                "model-00001-of-00002.safetensors",
                "model-00002-of-00002.safetensors"
            ]
        );
        let error = pick(&files[..5], None).unwrap_err();
        assert!(matches!(error, HubError::NoModel { files: 5, .. }), "{error}");
        assert!(matches!(pick(&files, Some("q4_0")), Err(HubError::NoSuchQuant { .. })));
        assert!(matches!(pick(&[], None), Err(HubError::NoModel { files: 0, .. })));
    }
}
