//! Stop strings and ids against a definition by plain search.

use yirage_engine::limits::{MAX_STOP_BYTES, MAX_STOP_IDS, MAX_STOP_STRINGS};
use yirage_engine::text::{StopError, StopHit, StopMatcher};
use yirage_testkit::rng::Rng;

fn matcher(strings: &[&str], ids: &[u32]) -> StopMatcher {
    StopMatcher::new(strings, ids).expect("valid stops")
}

/// Pushes pieces as tokens 100, 101, ...; the text emitted by each, and the end.
fn run(matcher: &mut StopMatcher, pieces: &[&str]) -> (Vec<String>, Option<StopHit>) {
    let mut hit = None;
    let mut texts = Vec::new();
    for (token, piece) in pieces.iter().enumerate() {
        let emitted = matcher.push(100 + token as u32, piece);
        texts.push(emitted.text);
        hit = hit.or(emitted.hit);
    }
    (texts, hit)
}

#[test]
fn without_stops_nothing_is_held_back() {
    let mut plain = matcher(&[], &[]);
    assert_eq!(run(&mut plain, &["a", "", "bc"]), (vec!["a".into(), String::new(), "bc".into()], None));
    assert_eq!(plain.finish("d").text, "d");
}

#[test]
fn a_stop_string_may_span_tokens_and_nothing_of_it_is_emitted() {
    let mut stop = matcher(&["</end>"], &[]);
    let (texts, hit) = run(&mut stop, &["one </", "en", "d", "> two", "three"]);
    assert_eq!(texts, ["one ", "", "", "", ""]);
    assert_eq!(hit, Some(StopHit::Text(0)));
    let after = stop.finish("rest");
    assert_eq!((after.text.as_str(), after.hit), ("", None));
}

#[test]
fn text_that_turns_out_harmless_is_released_at_once() {
    let mut stop = matcher(&["</end>"], &[]);
    assert_eq!(run(&mut stop, &["a</", "e", "x</e"]), (vec!["a".into(), String::new(), "</ex".into()], None));
    assert_eq!(stop.pending_bytes(), 3);
    assert_eq!(stop.finish("").text, "</e");
}

#[test]
fn a_failed_beginning_may_contain_the_beginning_of_the_real_one() {
    let mut stop = matcher(&["aab"], &[]);
    assert_eq!(
        run(&mut stop, &["a", "a", "a", "b"]),
        (vec!["".into(), "".into(), "a".into(), "".into()], Some(StopHit::Text(0)))
    );
}

#[test]
fn the_string_that_is_complete_first_wins_and_the_longest_among_those() {
    let (texts, hit) = run(&mut matcher(&["bcde", "bc"], &[]), &["abcde"]);
    assert_eq!((texts[0].as_str(), hit), ("a", Some(StopHit::Text(1))));
    let (texts, hit) = run(&mut matcher(&["c", "abc", "bc"], &[]), &["xabc"]);
    assert_eq!((texts[0].as_str(), hit), ("x", Some(StopHit::Text(1))));
    let (_, hit) = run(&mut matcher(&["end", "end"], &[]), &["end"]);
    assert_eq!(hit, Some(StopHit::Text(0)));
}

#[test]
fn a_stop_id_releases_held_text_and_drops_its_own() {
    let mut stop = matcher(&["###"], &[2, 7]);
    assert_eq!(stop.push(1, "text #").text, "text ");
    let end = stop.push(7, "<eos>");
    assert_eq!((end.text.as_str(), end.hit), ("#", Some(StopHit::Id(7))));
    assert_eq!(stop.push(1, "more"), Default::default());
    assert_eq!(stop.finish("more"), Default::default());
}

#[test]
fn what_the_detokeniser_had_left_may_complete_a_stop_string() {
    let mut stop = matcher(&["\u{1F600}!"], &[]);
    assert_eq!(stop.push(1, "hi \u{1F600}").text, "hi ");
    let end = stop.finish("!");
    assert_eq!((end.text.as_str(), end.hit), ("", Some(StopHit::Text(0))));
}

#[test]
fn characters_are_never_split() {
    // Both characters begin with the same bytes, so the first is held by its bytes but must be emitted whole.
    let mut stop = matcher(&["\u{4E2D}\u{6587}", "\u{4E2E}"], &[]);
    let (texts, hit) = run(&mut stop, &["\u{4E2D}", "\u{4E2F}", "\u{4E2D}\u{6587}"]);
    assert_eq!(texts, ["", "\u{4E2D}\u{4E2F}", ""]);
    assert_eq!(hit, Some(StopHit::Text(0)));
}

#[test]
fn stops_are_checked() {
    let none: [u32; 0] = [];
    let error = |strings: &[&str]| StopMatcher::new(strings, &none).expect_err("invalid stops");
    assert_eq!(error(&["a", ""]), StopError::EmptyString { index: 1 });
    assert_eq!(error(&vec!["a"; MAX_STOP_STRINGS + 1]), StopError::TooManyStrings { count: MAX_STOP_STRINGS + 1 });
    let long = "x".repeat(MAX_STOP_BYTES + 1);
    assert_eq!(error(&[&long]), StopError::LongString { index: 0, bytes: MAX_STOP_BYTES + 1 });
    let ids = vec![0; MAX_STOP_IDS + 1];
    let error = StopMatcher::new::<&str>(&[], &ids).expect_err("too many");
    assert_eq!(error, StopError::TooManyIds { count: MAX_STOP_IDS + 1 });
}

fn random_text(rng: &mut Rng, length: usize) -> String {
    (0..length).map(|_| *rng.choose(&['a', 'b', '\u{E9}', '\u{EA}'])).collect()
}

/// The definition: the first byte at which some stop string is complete ends the text, at the longest one's beginning.
fn expected(text: &str, stops: &[String]) -> (usize, Option<usize>) {
    for end in 1..=text.len() {
        let complete = |stop: &&String| text.as_bytes()[..end].ends_with(stop.as_bytes());
        if let Some(longest) = stops.iter().filter(complete).map(String::len).max() {
            let index = stops.iter().position(|stop| complete(&stop) && stop.len() == longest);
            return (end - longest, index);
        }
    }
    (text.len(), None)
}

#[test]
fn any_cut_into_pieces_gives_the_text_of_the_definition() {
    let mut rng = Rng::new(1);
    let mut stopped = 0;
    for _ in 0..20_000 {
        let length = rng.index(40);
        let text = random_text(&mut rng, length);
        let count = rng.index(4);
        let stops: Vec<String> = (0..count)
            .map(|_| {
                let length = 1 + rng.index(6);
                random_text(&mut rng, length)
            })
            .collect();
        let (end, index) = expected(&text, &stops);
        let mut matcher = StopMatcher::new(&stops, &[]).expect("valid stops");
        let mut output = String::new();
        let mut hit = None;
        let mut rest = text.as_str();
        while !rest.is_empty() && hit.is_none() {
            let cut = rest.char_indices().map(|(at, _)| at).nth(rng.index(6)).unwrap_or(rest.len());
            let emitted = matcher.push(1, &rest[..cut]);
            rest = &rest[cut..];
            output.push_str(&emitted.text);
            hit = emitted.hit;
            // What is held is a beginning of a stop string and no more than that.
            let seen = &text[..text.len() - rest.len()];
            let held = &seen[seen.len() - matcher.pending_bytes()..];
            assert!(held.is_empty() || stops.iter().any(|stop| stop.len() > held.len() && stop.starts_with(held)));
        }
        if hit.is_none() {
            output.push_str(&matcher.finish("").text);
        }
        assert_eq!((output.as_str(), hit), (&text[..end], index.map(StopHit::Text)), "{text:?} {stops:?}");
        stopped += usize::from(hit.is_some());
    }
    assert!((4_000..19_000).contains(&stopped), "{stopped}");
}

/// Case 19 of the public reports: a mark overtook text that was held back for a stop string.
#[test]
fn a_mark_stands_behind_what_was_held_back_and_is_no_part_of_a_stop() {
    for (stops, pieces, wanted) in [
        (&["Surely"][..], &["Su", "re"][..], "Sure"),
        (&["hmm"], &["hm"], "hm"),
        (&["Surely", "e[CALL]"], &["Sure"], "Sure"),
        (&["[CALL]"], &["a"], "a"),
        (&["aab"], &["aa", "a"], "aaa"),
        (&[], &["a"], "a"),
    ] {
        let mut matcher = matcher(stops, &[7]);
        let mut text: String = run(&mut matcher, pieces).0.concat();
        let emitted = matcher.push_mark(50, "", "[CALL]");
        text.push_str(&emitted.text);
        assert_eq!((text.as_str(), emitted.hit), (&*format!("{wanted}[CALL]"), None), "{stops:?}");
        // What stood before the mark is no beginning of a stop any more.
        assert_eq!(matcher.push(51, "ly").text + &matcher.finish("").text, "ly");
    }
    let mut ended = matcher(&["Surely"], &[7]);
    assert_eq!(ended.push(100, "Sure").text, "");
    let emitted = ended.push_mark(7, "", "[END]");
    assert_eq!((emitted.text.as_str(), emitted.hit), ("Sure", Some(StopHit::Id(7))));
    assert_eq!(ended.push_mark(50, "x", "[CALL]").text, "");
    let mut stopped = matcher(&["ab"], &[]);
    stopped.push(100, "xa");
    let emitted = stopped.push_mark(50, "b", "[CALL]");
    assert_eq!((emitted.text.as_str(), emitted.hit), ("", Some(StopHit::Text(0))));
}
