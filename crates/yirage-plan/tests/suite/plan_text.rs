//! The text form of plans: what is printed is read back, and words of the form before are refused by name.

use yirage_plan::text;

const PLAN: &str = "plan cpu x86_64/avx2 workers=2
precision fast
bucket tokens=8 seqs=1 blocks=1 rows=1
arena 4096
kernel cpu/matmul_group@1 avx2 static?float work_queue scratch
kernel cpu/attention@1 avx2 static?no_kv_cache rows
placement 1 offset=0 bytes=256
step node=0 kernel=0 phase=0
program steps counters=1
task step=0 stage=0 partition=0/2 signals=0
task step=0 stage=1 work_queue waits=0:1 signals=0
queue 0 1
graph g {
  input %x: f32[Tokens, 8]
  %y = map{expr=\"silu(x0)\"}(%x): f32[Tokens, 8]
  output %y
}
";

#[test]
fn what_is_printed_is_read_back() {
    assert_eq!(text::print(&text::parse(PLAN).unwrap()), PLAN);
}

#[test]
fn plans_of_text_form_1_are_refused_with_the_remedy() {
    for (line, new, old) in [
        (5, "static?float", "shares"),
        (5, "work_queue scratch", "drained"),
        (6, "no_kv_cache", "nostate"),
        (7, "placement", "place"),
        (10, "partition=", "share"),
        (11, "work_queue waits", "drain"),
        (14, "input", "slot"),
    ] {
        let end = new.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(new.len());
        let changed = PLAN.replacen(new, &format!("{old}{}", &new[end..]), 1);
        let error = text::parse(&changed).unwrap_err();
        assert_eq!(error.line, line, "{error}");
        let says = format!("`{old}` is a word of text form 1, form 2 says `{}`", &new[..end]);
        assert!(error.what.contains(&says) && error.what.contains("cargo xtask migrate-text FILE"), "{error}");
    }
    let unknown = text::parse(&PLAN.replacen("placement", "plaice", 1)).unwrap_err();
    assert_eq!(unknown.to_string(), "plan, line 7: cannot read `plaice 1 offset=0 bytes=256`");
}
