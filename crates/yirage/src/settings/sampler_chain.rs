//! The samplers of the host, by llama.cpp's options.

use crate::failure::CliFailure;
use crate::options::Layers;
use yirage_engine::sampling::{
    DrySettings, DynamicTemperature, MirostatSettings, SamplerChain, SamplerStage, StageName, XtcSettings,
};

/// Reads the options.
///
/// # Errors
/// [`CliFailure::Usage`] naming the option.
pub(super) fn sampler_chain(layers: &Layers) -> Result<SamplerChain, CliFailure> {
    let number = |name: &str, words: &str, least: f32, most: f32| {
        let allowed = |x: &f32| x.is_finite() && (least..=most).contains(x);
        Ok::<f32, CliFailure>(layers.number::<f32>(name, words, allowed)?.unwrap_or(least))
    };
    let share = |name: &str| number(name, "a number from 0 to 1", 0.0, 1.0);
    let hundred = |name: &str| number(name, "a number from 0 to 100", 0.0, 100.0);
    Ok(SamplerChain {
        order: order(layers)?,
        dry: dry(layers, hundred("dry-multiplier")?)?,
        xtc: XtcSettings { probability: share("xtc-probability")?, threshold: share("xtc-threshold")? },
        typical_p: number("typical", "a number above 0, at most 1", f32::MIN_POSITIVE, 1.0)?,
        // -1 is llama.cpp's word for none.
        top_n_sigma: number("top-nsigma", "a number from 0, or -1 for all", -1.0, f32::MAX)?.max(0.0),
        dynamic_temperature: DynamicTemperature {
            range: hundred("dynatemp-range")?,
            exponent: hundred("dynatemp-exp")?,
        },
        mirostat: MirostatSettings {
            version: layers.choice("mirostat")?.parse().unwrap_or(0),
            tau: hundred("mirostat-ent")?,
            eta: share("mirostat-lr")?,
        },
    })
}

/// The samplers that are named, with `;` between them as llama.cpp has it.
fn order(layers: &Layers) -> Result<Option<Vec<StageName>>, CliFailure> {
    let Some(names) = layers.text("samplers") else { return Ok(None) };
    let names = names.split(';').map(str::trim).filter(|name| !name.is_empty());
    SamplerStage::list(names).map(Some).map_err(|why| CliFailure::Usage(format!("{}: {why}", layers.label("samplers"))))
}

fn dry(layers: &Layers, multiplier: f32) -> Result<DrySettings, CliFailure> {
    let usual = DrySettings::default();
    let given = layers.texts("dry-sequence-breaker");
    let breakers = match given {
        [] => usual.sequence_breakers,
        given => given.iter().filter(|text| *text != "none").cloned().collect(),
    };
    let base = layers.number::<f32>("dry-base", "a number from 1 to 100", |x| (1.0..=100.0).contains(x))?;
    let last = layers.number::<i64>("dry-penalty-last-n", "a whole number from 0, or -1 for all tokens", |n| {
        (-1..=i64::from(u32::MAX)).contains(n)
    })?;
    Ok(DrySettings {
        multiplier,
        base: base.unwrap_or(usual.base),
        allowed_length: layers
            .number("dry-allowed-length", "a whole number from 0", |_| true)?
            .unwrap_or(usual.allowed_length),
        last_tokens: last.map_or(usual.last_tokens, |n| u32::try_from(n).ok()),
        sequence_breakers: breakers,
        ..usual
    })
}
