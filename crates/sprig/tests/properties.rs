//! What cannot be compared with Helm: randomness, the clock and budgets.

#![allow(clippy::unwrap_used)] // helpers of tests are tests

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use catamaran_gotemplate::{Budget, Ctx, Error, MissingKey, TemplateSet};

fn render_with(template: &str, seed: u64, budget: Budget) -> Result<String, Error> {
    let mut set = TemplateSet::new(Arc::new(catamaran_sprig::registry()), MissingKey::Zero);
    set.parse("t", template)?;
    let clock = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
    let mut ctx = Ctx::new(budget, clock, seed);
    let data = ctx.heap.new_map();
    Ok(set.execute(&mut ctx, "t", &data.into())?.to_str_lossy().into_owned())
}

fn render(template: &str) -> String {
    render_with(template, 7, Budget::default()).unwrap()
}

#[test]
fn the_same_seed_gives_the_same_text_and_another_seed_another() {
    let template =
        r#"{{ randAlphaNum 40 }} {{ uuidv4 }} {{ randBytes 16 }} {{ shuffle "abcdefghijklmnop" }}"#;
    let first = render_with(template, 1, Budget::default()).unwrap();
    assert_eq!(first, render_with(template, 1, Budget::default()).unwrap());
    assert_ne!(first, render_with(template, 2, Budget::default()).unwrap());
}

/// A function, and which characters it may give.
type Wanted = (&'static str, fn(u8) -> bool);

#[test]
fn random_texts_have_their_length_and_characters() {
    let cases: [Wanted; 4] = [
        ("randAlphaNum", |byte| byte.is_ascii_alphanumeric()),
        ("randAlpha", |byte| byte.is_ascii_alphabetic()),
        ("randNumeric", |byte| byte.is_ascii_digit()),
        ("randAscii", |byte| (b' '..=b'~').contains(&byte)),
    ];
    for (name, wanted) in cases {
        let text = render(&format!("{{{{ {name} 500 }}}}"));
        assert_eq!(text.len(), 500, "{name}");
        assert!(text.bytes().all(wanted), "{name}: {text}");
        assert_eq!(render(&format!("{{{{ {name} -1 }}}}")), "");
    }
}

#[test]
fn random_numbers_stay_in_their_range() {
    let text = render("{{ range until 200 }}{{ randInt 3 6 }} {{ end }}");
    assert!(text.split_whitespace().all(|number| ["3", "4", "5"].contains(&number)), "{text}");
    assert!(render_with("{{ randInt 3 3 }}", 1, Budget::default()).is_err());
}

#[test]
fn a_uuid_has_its_version_and_variant() {
    let text = render("{{ uuidv4 }}");
    assert_eq!(text.len(), 36);
    assert_eq!(text.as_bytes()[14], b'4');
    assert!(matches!(text.as_bytes()[19], b'8' | b'9' | b'a' | b'b'), "{text}");
}

#[test]
fn now_is_the_clock_of_the_rendering() {
    assert_eq!(render("{{ now | unixEpoch }}"), "1700000000");
    assert_eq!(
        render(r#"{{ now.UTC.Format "2006-01-02T15:04:05Z07:00" }}"#),
        "2023-11-14T22:13:20Z"
    );
    assert_eq!(render(r#"{{ ago (now | dateModify "-90s") }}"#), "1m30s");
    assert_eq!(render(r#"{{ dateInZone "15:04" "no date" "UTC" }}"#), "22:13");
}

#[test]
fn a_stored_password_is_one() {
    let line = render(r#"{{ htpasswd "me" "secret" }}"#);
    let stored = line.strip_prefix("me:$2a$10$").map(|_| &line[3..]).unwrap();
    assert!(bcrypt::verify("secret", stored).unwrap());
    assert_eq!(render(r#"{{ htpasswd "a:b" "x" }}"#), "invalid username: a:b");
}

#[test]
fn what_would_be_too_much_ends_before_it_is_made() {
    let budget = Budget { memory: 8 << 20, steps: 2_000_000, ..Budget::default() };
    for template in [
        "{{ repeat 1000000000 \"x\" }}",
        "{{ until 1000000000 }}",
        "{{ untilStep 0 9223372036854775807 1 }}",
        "{{ seq 1000000000 }}",
        "{{ indent 1000000000 \"x\" }}",
        "{{ randAlphaNum 1000000000 }}",
        "{{ randBytes 1000000000 }}",
        "{{ replace \"\" (repeat 100000 \"y\") (repeat 10000 \"x\") }}",
        "{{ regexReplaceAll \"x\" (repeat 10000 \"x\") (repeat 100000 \"y\") }}",
        "{{ join (repeat 1000000 \",\") (until 1000) }}",
        "{{ wrapWith 1 (repeat 10000 \"-\") (repeat 100000 \"x\") }}",
        "{{ $d := dict }}{{ range until 40 }}{{ $d = dict \"a\" $d \"b\" $d }}{{ end }}{{ deepCopy $d }}",
        "{{ $d := dict }}{{ range until 40 }}{{ $d = dict \"a\" $d \"b\" $d }}{{ end }}{{ toYaml $d }}",
        "{{ $d := dict }}{{ range until 40 }}{{ $d = dict \"a\" $d \"b\" $d }}{{ end }}{{ toToml $d }}",
        "{{ fromToml (repeat 100000 (printf \"[[%s]]\\n\" (repeat 60 \"a.\") | replace \".]\" \"]\")) }}",
        "{{ $d := dict }}{{ $e := dict }}{{ range until 40 }}{{ $d = dict \"a\" $d \"b\" $d }}{{ $e = dict \"a\" $e \"b\" $e }}{{ end }}{{ deepEqual $d $e }}",
    ] {
        let error = render_with(template, 1, budget).expect_err(template);
        assert!(error.kind().is_budget(), "{template}: {error}");
    }
}

#[test]
fn a_map_that_contains_itself_is_an_error_or_nothing() {
    let cyclic = "{{ $d := dict }}{{ $_ := set $d \"d\" $d }}";
    for call in ["mustToJson $d", "mustToYaml $d", "mustToToml $d", "deepCopy $d"] {
        assert!(
            render_with(&format!("{cyclic}{{{{ {call} }}}}"), 1, Budget::default()).is_err(),
            "{call}"
        );
    }
    assert_eq!(render(&format!("{cyclic}{{{{ toYaml $d }}}}{{{{ toJson $d }}}}")), "");
}

#[test]
fn toml_that_nests_without_end_is_an_error_in_the_map() {
    for text in ["a = [", "a = {b = "] {
        let text = format!("{{{{ (fromToml (cat (repeat 5000 {text:?} | nospace))).Error }}}}");
        assert!(render(&text).starts_with("toml: line 1"), "{text}");
    }
    let cases = [
        r#"{{ (fromToml (printf "a = %s" (repeat 100000 "["))).Error }}"#,
        r#"{{ (fromToml (printf "a = %s" (repeat 100000 "{a="))).Error }}"#,
        r#"{{ (fromToml (printf "a = %s" (repeat 100000 "{a=["))).Error }}"#,
        r#"{{ (fromToml (printf "%sa = 1" (repeat 100000 "a."))).Error }}"#,
        r#"{{ (fromToml (printf "[%sa]" (repeat 100000 "a."))).Error }}"#,
    ];
    for call in cases {
        let text = render(call);
        assert!(text.ends_with("exceeded max depth"), "{call}: {text}");
    }
}

#[test]
fn what_nests_nearly_too_deep_is_read_and_written() {
    let list = "{{ $l := list }}{{ range until 380 }}{{ $l = list $l }}{{ end }}";
    assert!(render(&format!(r#"{list}{{{{ toToml (dict "a" $l) }}}}"#)).ends_with("]\n"));
    let map = r#"{{ $d := dict "x" 1 }}{{ range until 380 }}{{ $d = dict "a" $d }}{{ end }}"#;
    assert!(render(&format!("{map}{{{{ toToml (fromToml (toToml $d)) }}}}")).ends_with("x = 1\n"));
    let brackets = r#"{{ $t := printf "a = %s1%s" (repeat 99 "{a=[") (repeat 99 "]}") }}"#;
    assert!(render(&format!("{brackets}{{{{ toToml (fromToml $t) }}}}")).ends_with("a = [1]\n"));
}

#[test]
fn every_function_of_helm_is_known() {
    let functions = catamaran_sprig::registry();
    assert_eq!(functions.names().count(), 251 - 3, "all but include, tpl and lookup");
}
