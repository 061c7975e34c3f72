//! Conversations over a pipe.

use crate::serve::Serving;
use crate::support::{bedtime, path, picture_files, yirage};
use crate::template::templated;
use serde_json::Value;
use yirage_testkit::vision;

const GREEDY: &[&str] = &["--temperature", "0", "--max-tokens", "12", "--precision", "exact", "--quiet", "--json"];

fn replies(model: &str, input: &str) -> Vec<Value> {
    let ran = yirage(&[&["chat", "--model", model], GREEDY].concat()).input(input).ran();
    assert_eq!(ran.code, 0, "{}", ran.err);
    ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn each_turn_sees_the_ones_before() {
    let (_folder, model) = templated();
    let replies = replies(&model, "Hi\nAnd then?\n/clear\nHi\n/exit\nnever read\n");
    assert_eq!(replies.len(), 3);
    let length = |v: &Value| v["prompt_tokens"].as_array().unwrap().len();
    assert!(length(&replies[1]) > length(&replies[0]) + 12);
    assert_eq!(replies[0]["tokens"], replies[2]["tokens"], "a cleared conversation begins anew");
    assert!(replies[1]["cached_tokens"].as_u64().is_some());
}

#[test]
fn a_conversation_can_be_saved_and_continued() {
    let (folder, model) = templated();
    let file = folder.path().join("talk.json");
    let file = file.to_str().unwrap();
    let first = replies(&model, &format!("/system Be brief.\nHi\n/save {file}\nGo on\n"));
    let second = replies(&model, &format!("/load {file}\nGo on\n"));
    assert_eq!(first[1]["prompt_tokens"], second[0]["prompt_tokens"]);
    assert_eq!(first[1]["tokens"], second[0]["tokens"]);
}

#[test]
fn mistakes_do_not_end_the_conversation() {
    let model = bedtime();
    let input = "/nope\n/load no/such.json\n/again\nOnce\n";
    let ran = yirage(&["chat", "--model", &model, "--max-tokens", "4"]).input(input).ran();
    assert_eq!(ran.code, 0);
    for part in ["/nope", "no/such.json", "nothing to answer again", "no chat template"] {
        assert!(ran.err.contains(part), "{part}: {}", ran.err);
    }
    assert!(!ran.out.trim().is_empty());
}

/// A script sees by the exit code that something is missing, also with `--quiet`; the other messages are answered.
#[test]
fn messages_without_an_answer_are_counted() {
    let model = bedtime();
    let arguments = ["chat", "--model", &model, "--max-tokens", "4", "--context", "16", "--quiet"];
    let long = "Once upon a time there was a little girl who lived in a big house with a red door";
    let ran = yirage(&arguments).input(&format!("Once\n/clear\n{long}\n/clear\nOnce\n")).ran();
    assert_eq!((ran.code, ran.out.lines().count()), (1, 2), "{}", ran.err);
    assert!(ran.err.contains("exceed the context of 16"), "{}", ran.err);
    assert!(ran.err.contains("1 of 3 messages had no answer"), "{}", ran.err);
    let ran = yirage(&[&arguments[..], &["--json"]].concat()).input(long).ran();
    let errors: Vec<Value> = ran.err.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((ran.code, errors.len()), (1, 2), "{}", ran.err);
}

#[test]
fn what_outgrows_the_context_is_left_out() {
    let model = bedtime();
    let arguments = ["chat", "--model", &model, "--max-tokens", "20", "--context", "64", "--ignore-eos"];
    let ran = yirage(&arguments).input("Once upon a time\nThen\nThen\nThen\nThen\n").ran();
    assert!(ran.code == 0 && ran.err.contains("left out"), "{}", ran.err);
    assert!(!ran.err.contains("error"), "{}", ran.err);
}

/// What a model that reads pictures replies, its answers going on to their full length.
fn looking(arguments: &[&str], input: &str) -> Vec<Value> {
    let model = path(&vision::model("llava"));
    let ran = yirage(&[&["chat", "--model", &model, "--ignore-eos"], GREEDY, arguments].concat()).input(input).ran();
    assert_eq!(ran.code, 0, "{}", ran.err);
    ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn pictures_stand_in_front_of_the_message_that_follows_them() {
    let folder = tempfile::tempdir().unwrap();
    let [first, second] = picture_files(folder.path());
    let golden = vision::golden("llava");
    let case = |at: usize| (golden["cases"][at].clone(), golden["cases"][at]["text"].as_str().unwrap().to_owned());
    let ((one, about_one), (both, about_both)) = (case(0), case(1));
    let is = |reply: &Value, case: &Value| {
        assert_eq!((&reply["prompt_tokens"], &reply["tokens"]), (&case["ids"], &case["greedy"]));
    };
    let found =
        looking(&["--image", &first], &format!("{about_one}\n/clear\n/image {first}\n/image {second}\n{about_both}\n"));
    is(&found[0], &one);
    is(&found[1], &both);
    // A second message sees the pictures of the first one, whose tokens are cached by now.
    let input = format!("/image {first}\n/image {second}\n{about_both}\nAnd now?\n");
    let found = looking(&[], &input);
    is(&found[0], &both);
    let (before, behind) = (both["ids"].as_array().unwrap(), found[1]["prompt_tokens"].as_array().unwrap());
    assert_eq!(behind[..before.len()], before[..]);
    assert!(found[1]["cached_tokens"].as_u64().unwrap() > 0);
    // Ctrl-D, and another day: the file has the pictures by their paths.
    let file = path(&folder.path().join("talk.json"));
    let saved = looking(&[], &format!("/image {second}\nWhat?\n/save {file}\nAnd now?\n"));
    let again = looking(&[], &format!("/load {file}\nAnd now?\n"));
    assert_eq!((&saved[1]["prompt_tokens"], &saved[1]["tokens"]), (&again[0]["prompt_tokens"], &again[0]["tokens"]));
    std::fs::remove_file(&second).unwrap();
    let model = path(&vision::model("llava"));
    let ran = yirage(&["chat", "--model", &model]).input(&format!("/load {file}\n")).ran();
    assert!(ran.code == 0 && ran.err.contains("second.png"), "{} {}", ran.code, ran.err);
}

#[test]
fn a_picture_that_cannot_be_read_does_not_end_the_conversation() {
    let folder = tempfile::tempdir().unwrap();
    let [first, _] = picture_files(folder.path());
    let bad = path(&folder.path().join("bad.png"));
    std::fs::write(&bad, b"GIF89a").unwrap();
    let golden = vision::golden("llava");
    let (case, text) = (&golden["cases"][0], golden["cases"][0]["text"].as_str().unwrap());
    let model = path(&vision::model("llava"));
    // The name of the picture token in a text makes a place that no picture has.
    let input = format!("/image\n/image {bad}\n/image no/such.png\n/image {first}\nwhat is <image>?\n{text}\n");
    let arguments =
        ["chat", "--model", &model, "--ignore-eos", "--temperature", "0", "-n", "12", "--precision", "exact"];
    let ran = yirage(&[&arguments[..], &["--json"]].concat()).input(&input).ran();
    let said = ["/image needs the name of a file", "PNG, JPEG or WebP", "no/such.png", "2 places for 1 pictures"];
    for part in said.into_iter().chain(["pictures stand in front of the next message", "1 of 2 messages"]) {
        assert!(ran.err.contains(part), "{part}: {}", ran.err);
    }
    let reply: Value = serde_json::from_str(ran.out.trim()).unwrap();
    assert_eq!((ran.code, &reply["tokens"]), (1, &case["greedy"]));
    for (model, picture, code, words) in [(&bedtime(), &first, 3, "reads no pictures"), (&model, &bad, 1, "PNG, JPEG")]
    {
        let ran = yirage(&["chat", "--model", model, "--image", picture]).input("Once\n").ran();
        assert!(ran.code == code && ran.err.contains(words), "{} {}", ran.code, ran.err);
    }
}

#[test]
fn a_model_whose_pictures_are_not_read_still_talks_and_says_so() {
    let (folder, model) = (tempfile::tempdir().unwrap(), vision::model("llava"));
    for file in std::fs::read_dir(&model).unwrap().map(|file| file.unwrap().path()) {
        if !file.ends_with("preprocessor_config.json") {
            std::fs::copy(&file, folder.path().join(file.file_name().unwrap())).unwrap();
        }
    }
    let model = path(folder.path());
    let ran = yirage(&["chat", "--model", &model, "-n", "2", "--ignore-eos"]).input("Once\n/image a.png\n").ran();
    assert!(ran.code == 0 && !ran.out.trim().is_empty(), "{} {}", ran.code, ran.err);
    for part in ["pictures will be refused", "no preprocessor_config.json", "reads no pictures"] {
        assert!(ran.err.contains(part), "{part}: {}", ran.err);
    }
    let server = Serving::listening(&["serve", &model, "--port", "0", "--json"]);
    let text = r#"{"prompt": "Once", "max_tokens": 2}"#;
    let (status, answer) = server.ask("POST", "/v1/completions", "", text);
    assert_eq!(status, 200, "{answer}");
    let picture = "data:image/png;base64,iVBORw0KGgo=";
    let parts = format!(r#"[{{"type": "image_url", "image_url": {{"url": "{picture}"}}}}]"#);
    let body = format!(r#"{{"messages": [{{"role": "user", "content": {parts}}}]}}"#);
    let (status, answer) = server.ask("POST", "/v1/chat/completions", "", &body);
    assert!(status == 400 && answer.contains("reads no pictures"), "{status} {answer}");
    let told = server.ended().err;
    assert!(told.contains("pictures will be refused") && told.contains("no preprocessor_config.json"), "{told}");
    let ran = yirage(&["chat", "--model", &model, "--image", "a.png"]).input("Once\n").ran();
    assert!(ran.code == 1 && ran.err.contains("no preprocessor_config.json"), "{} {}", ran.code, ran.err);
}
