//! Prompts that one server computes and another goes on from.

use crate::support::{engine_options, get, loaded, options, post, serve_with};
use serde_json::{Value, json};
use std::net::SocketAddr;
use yirage_engine::EngineOptions;
use yirage_model::Checkpoint;
use yirage_plan::Precision;
use yirage_serve::{Generator, ModelEntry, PrefillServer, RunningServer, Served};
use yirage_session::ModelFingerprint;
use yirage_testkit::bedtime;

const WORDS: &str = "Once upon a time there was a little bear who lived in the deep forest with his mother and his father, and \
                     every day he went to the river to look at the fish and the birds and the stones.";

/// A server of the story model; long prompts are computed by another one, if that is said.
fn server(engine: EngineOptions, prefill: Option<PrefillServer>) -> RunningServer {
    let open = move || {
        let model = loaded(&engine).start().unwrap();
        let fingerprint = ModelFingerprint::of(&Checkpoint::open(bedtime::f32()).unwrap()).unwrap();
        let generator = Generator::new(model, engine.max_seqs as usize, None).unwrap().with_fingerprint(fingerprint);
        Ok(Served::Generator(Box::new(match &prefill {
            Some(server) => generator.with_prefill_server(server.clone()),
            None => generator,
        })))
    };
    serve_with(options(), vec![ModelEntry::new(vec!["story".to_owned()], 1 << 20, Box::new(open))])
}

fn prefill_at(address: SocketAddr) -> Option<PrefillServer> {
    Some(PrefillServer::new(&format!("http://{address}"), 32, None).unwrap())
}

/// The text after a prompt, and tokens of it that were cached.
fn answer(server: &RunningServer, prompt: &str, more: &Value) -> (String, u64) {
    let mut body = json!({"prompt": prompt, "max_tokens": 12, "temperature": 0, "seed": 3});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let answered = post(server.address(), "/v1/completions", &body);
    assert_eq!(answered.status, 200, "{}", answered.text());
    let answer = answered.json();
    let cached = answer["usage"]["prompt_tokens_details"]["cached_tokens"].as_u64().unwrap_or(0);
    (answer["choices"][0]["text"].as_str().unwrap().to_owned(), cached)
}

/// Tokens that came over, and prompts that did not.
fn figures(server: &RunningServer) -> (u64, u64) {
    let page = get(server.address(), "/metrics");
    let figure = |name: &str| {
        let line = page.text().lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{name}"));
        line.rsplit(' ').next().unwrap().parse::<f64>().unwrap() as u64
    };
    (figure("yirage_prefilled_elsewhere_tokens_total{"), figure("yirage_prefills_elsewhere_failed_total{"))
}

#[test]
fn an_answer_goes_on_from_what_another_server_has_computed() {
    let prefilling = server(engine_options(), None);
    let decoding = server(engine_options(), prefill_at(prefilling.address()));
    let alone = server(engine_options(), None);
    let plain = json!({});
    let (text, _) = answer(&alone, WORDS, &plain);
    let (first, cached) = answer(&decoding, WORDS, &plain);
    let (tokens, failed) = figures(&decoding);
    assert_eq!((first.as_str(), failed), (text.as_str(), 0));
    assert!(tokens >= 32 && cached == tokens, "{tokens} came over, {cached} cached");
    // What is cached is not asked for again, and neither is a short prompt.
    assert_eq!(answer(&decoding, WORDS, &plain).0, text);
    answer(&decoding, "Once", &plain);
    assert_eq!(figures(&decoding), (tokens, 0));
    // Callers with caches of their own share nothing, here and there.
    let salted = json!({"cache_salt": "mine"});
    assert_eq!(answer(&decoding, WORDS, &salted).0, text);
    assert_eq!(figures(&decoding), (2 * tokens, 0));
    // Drawn tokens, several answers and a conversation too.
    let drawn = json!({"temperature": 1.0, "n": 2, "cache_salt": "other"});
    assert_eq!(answer(&decoding, WORDS, &drawn).0, answer(&alone, WORDS, &drawn).0);
    assert_eq!(figures(&decoding), (3 * tokens, 0));
}

#[test]
fn what_another_server_cannot_compute_is_computed_here() {
    let alone = server(engine_options(), None);
    let (text, _) = answer(&alone, WORDS, &json!({}));
    // Nobody there.
    let gone = server(engine_options(), None);
    let address = gone.address();
    gone.stop().unwrap();
    // The same model by other numbers: what it has computed would be others.
    let other = server(EngineOptions { precision: Precision::Exact, ..engine_options() }, None);
    // A server with no such model.
    let model = ModelEntry::new(vec!["tale".to_owned()], 1, Box::new(|| Err("it is not opened".into())));
    let without = serve_with(options(), vec![model]);
    for address in [address, other.address(), without.address()] {
        let decoding = server(engine_options(), prefill_at(address));
        assert_eq!(answer(&decoding, WORDS, &json!({})).0, text);
        assert_eq!(figures(&decoding), (0, 1));
    }
}

#[test]
fn a_prompt_for_another_server_is_checked_as_any_other() {
    let server = server(engine_options(), None);
    for wrong in [json!({}), json!({"tokens": []}), json!({"tokens": [9_999_999]}), json!({"tokens": vec![5; 4000]})] {
        let refused = post(server.address(), "/prefill", &wrong);
        assert!(refused.status == 400 && refused.json()["error"]["message"].is_string(), "{}", refused.text());
    }
    let short = post(server.address(), "/prefill", &json!({"tokens": [5, 6]}));
    assert_eq!((short.status, short.body.len()), (200, 0), "less than a block");
    let whole = post(server.address(), "/prefill", &json!({"tokens": vec![5; 70], "cache_salt": "a"}));
    assert_eq!(whole.header("content-type"), Some("application/octet-stream"));
    assert!(whole.body.starts_with(b"YIRAGEKV"));
}
