//! llama.cpp's samplers by the fields of every protocol that has them, and decoders that give vectors and scores.

use crate::support::{Answered, encoder, get, ok, options, post, serve, serve_with};
use serde_json::{Value, json};
use std::net::SocketAddr;
use yirage_testkit::{encoders, json as numbers};

const PROMPT: &str = "Once upon a time";

fn completion(address: SocketAddr, more: &Value) -> Answered {
    let mut body = json!({"prompt": PROMPT, "n_predict": 24, "temperature": 1.5, "seed": 3, "return_tokens": true, "ignore_eos": true});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let answered = post(address, "/completion", &body);
    assert_eq!(answered.status, 200, "{more}: {}", answered.text());
    answered
}

fn tokens(address: SocketAddr, more: &Value) -> Value {
    completion(address, more).json()["tokens"].clone()
}

/// Each field changes the answer, and the same in OpenAI's protocols and ollama's.
#[test]
fn every_sampler_changes_the_answer() {
    let server = serve();
    let address = server.address();
    let plain = tokens(address, &json!({}));
    for (base, more) in [
        (json!({}), json!({"samplers": ["top_k"], "top_k": 3})),
        (json!({}), json!({"xtc_probability": 1, "xtc_threshold": 0.01})),
        (json!({"xtc_probability": 1}), json!({"xtc_threshold": 0.01})),
        (json!({}), json!({"typical_p": 0.3})),
        (json!({}), json!({"top_n_sigma": 0.5})),
        (json!({}), json!({"dynatemp_range": 1.4})),
        (json!({"dynatemp_range": 1.4}), json!({"dynatemp_exponent": 4})),
        (json!({}), json!({"mirostat": 1})),
        (json!({}), json!({"mirostat": 2})),
        (json!({"mirostat": 2}), json!({"mirostat_tau": 1})),
        (json!({"mirostat": 2, "mirostat_tau": 2}), json!({"mirostat_eta": 1})),
    ] {
        let mut both = base.clone();
        both.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        assert_ne!(tokens(address, &base), tokens(address, &both), "{more}");
        assert_eq!(tokens(address, &both), tokens(address, &both), "{both}: the same seed");
        let openai = json!({"prompt": PROMPT, "max_tokens": 24, "temperature": 1.5, "seed": 3, "ignore_eos": true});
        let text = |more: &Value| {
            let mut body = openai.clone();
            body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            ok(address, "/v1/completions", &body)["choices"][0]["text"].clone()
        };
        assert_eq!(text(&both), completion(address, &both).json()["content"], "{both}");
    }
    assert_eq!(tokens(address, &json!({"typical_p": 1.0, "mirostat": 0, "top_n_sigma": -1})), plain);
    let ollama = |more: Value| {
        let mut options = json!({"num_predict": 24, "temperature": 1.5, "seed": 3});
        options.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let body = json!({"model": "story", "prompt": PROMPT, "raw": true, "stream": false, "options": options});
        ok(address, "/api/generate", &body)["response"].clone()
    };
    assert_ne!(ollama(json!({"mirostat": 2, "mirostat_tau": 1})), ollama(json!({})));
    assert_ne!(ollama(json!({"typical_p": 0.3})), ollama(json!({})));
}

#[test]
fn dry_ends_repetitions_over_what_its_breakers_leave() {
    let server = serve();
    let address = server.address();
    let said = "Tom saw a cat. Tom saw a cat. Tom saw a cat. Tom saw";
    let of = |more: Value| {
        let mut body = json!({"prompt": said, "temperature": 0});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        tokens(address, &body)
    };
    let plain = of(json!({}));
    let dry = |more: Value| {
        let mut body = json!({"dry_multiplier": 4, "dry_allowed_length": 1, "dry_penalty_last_n": -1});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        of(body)
    };
    assert_ne!(dry(json!({})), plain);
    assert_eq!(dry(json!({"dry_penalty_last_n": 0})), plain);
    assert_ne!(dry(json!({"dry_sequence_breakers": [" "]})), dry(json!({"dry_sequence_breakers": []})));
    assert_ne!(dry(json!({"dry_base": 20, "dry_multiplier": 0.1})), dry(json!({"dry_multiplier": 0.1})));
}

/// What is not read is named, what makes no sense refused, and the host's tokens are counted.
#[test]
fn what_is_not_read_is_named_and_what_the_host_chose_is_counted() {
    let server = serve();
    let address = server.address();
    for (more, names) in [
        (json!({"mirostat": 2, "top_k": 5}), Some("top_k")),
        (json!({"mirostat_tau": 3}), Some("mirostat_tau")),
        (json!({"samplers": ["top_k", "infill", "temperature"]}), Some("samplers")),
        (json!({"samplers": ["top_k"], "min_p": 0.1, "temperature": 1}), Some("min_p")),
        (json!({"xtc_probability": 0.5, "xtc_threshold": 0.2}), None),
    ] {
        assert_eq!(completion(address, &more).header("x-yirage-ignored"), names, "{more}");
    }
    for (more, param) in [
        (json!({"samplers": ["top_q"]}), "samplers"),
        (json!({"mirostat": 3}), "mirostat"),
        (json!({"typical_p": 0}), "typical_p"),
        (json!({"dry_base": 0.5}), "dry_base"),
        (json!({"dry_allowed_length": -1}), "dry_allowed_length"),
        (json!({"xtc_probability": "often"}), "xtc_probability"),
    ] {
        let mut body = json!({"prompt": "a", "n_predict": 1});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let refused = post(address, "/completion", &body);
        assert_eq!(refused.status, 400, "{more}: {}", refused.text());
        assert!(refused.text().contains(param), "{}", refused.text());
    }
    let counted = || {
        let page = get(address, "/metrics");
        let line =
            page.text().lines().find(|line| line.starts_with("yirage_host_sampled_tokens_total{")).unwrap().to_owned();
        line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()
    };
    let before = counted();
    tokens(address, &json!({"typical_p": 0.9}));
    assert_eq!(counted() - before, 24);
    tokens(address, &json!({}));
    assert_eq!(counted() - before, 24, "the device chose these");
}

/// Qwen3's embedder and reranker, in the server's interfaces.
#[test]
fn decoders_give_vectors_and_scores() {
    let models = vec![encoder("qwen3-embedding"), encoder("qwen3-reranker")];
    let server = serve_with(options(), models);
    let address = server.address();
    let close = |found: &Value, wanted: &Value| {
        let (found, wanted) = (numbers::floats(found), numbers::floats(wanted));
        assert!(
            found.len() == wanted.len() && found.iter().zip(&wanted).all(|(a, b)| (a - b).abs() < 1e-5),
            "{found:?}"
        );
    };
    let golden = encoders::golden("qwen3-embedding");
    for case in golden["cases"].as_array().unwrap().iter().filter(|case| case["text"] != "") {
        let body = json!({"model": "qwen3-embedding", "input": case["text"], "prompt_name": case["prompt"]});
        close(&ok(address, "/v1/embeddings", &body)["data"][0]["embedding"], &case["vector"]);
    }
    let golden = encoders::golden("qwen3-reranker");
    for case in golden["cases"].as_array().unwrap() {
        let body = json!({"model": "qwen3-reranker", "query": case["query"], "documents": [case["text"]],
            "instruction": case["instruction"]});
        close(&json!([ok(address, "/v1/rerank", &body)["results"][0]["relevance_score"]]), &json!([case["score"]]));
    }
    let unknown =
        post(address, "/v1/embeddings", &json!({"model": "qwen3-embedding", "input": "a", "prompt_name": "x"}));
    assert!(unknown.status == 400 && unknown.json()["error"]["param"] == "prompt_name", "{}", unknown.text());
}
