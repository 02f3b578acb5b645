//! Hostile templates and values: an error that names template and line, on the
//! two mebibytes of stack that a test's thread has.

// Test code, though not in a #[test] function.
#![allow(clippy::unwrap_used)]

mod support;

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use catamaran_gotemplate::{
    Budget, Ctx, ErrorKind, Heap, MAX_VALUE_DEPTH, MissingKey, Seed, TemplateSet, Value, fmt,
};
use serde::de::DeserializeSeed as _;

const SMALL: Budget = Budget {
    steps: 2_000_000,
    output: 1 << 20,
    memory: 16 << 20,
    depth: 5_000,
    keys: 1,
    time: Duration::from_secs(20),
};

/// Renders and expects an error of a kind.
fn fails(text: &str, kind: ErrorKind, budget: Budget) -> String {
    let error = support::render_with(text, MissingKey::Zero, "{}", budget).unwrap_err();
    assert_eq!(error.kind(), kind, "{error}");
    error.to_string()
}

#[test]
fn a_loop_ends_with_the_steps() {
    let text = fails("\n{{range 1000000000}}{{end}}", ErrorKind::Steps, SMALL);
    assert_eq!(
        text,
        "template: case:2:8: executing \"case\" at <1000000000>: exceeded the limit of 2000000 steps"
    );
}

#[test]
fn output_is_bounded() {
    let text = fails("{{range 1000000000}}0123456789{{end}}", ErrorKind::Output, SMALL);
    assert!(text.contains("case:1:8") && text.contains("1048576 bytes"), "{text}");
    fails(r#"{{range 1000000}}{{printf "%1000d" 1}}{{end}}"#, ErrorKind::Output, SMALL);
}

#[test]
fn memory_is_bounded() {
    let longer = Budget { steps: 20_000_000, ..SMALL };
    fails(r#"{{range 1000000}}{{$x := printf "%1000d" 1}}{{end}}"#, ErrorKind::Memory, longer);
    let small = Budget { memory: 1 << 10, ..SMALL };
    fails(r#"{{$x := printf "%1000000d%[1]1000000d%[1]*[1]d" 1000000}}"#, ErrorKind::Memory, small);
    fails("{{$x := list}}{{range 1000000}}{{$x = list $x $x}}{{end}}", ErrorKind::Memory, SMALL);
}

#[test]
fn what_is_forgotten_makes_room() {
    let text = r#"{{$all := dict}}{{range $i, $_ := list 1 2 3}}{{range 20000}}{{$x := dict "a" (printf "%1000d" 1)}}{{$y := list $x $x}}{{end}}{{$all = dict "last" $i "before" $all}}{{end}}{{$all}}"#;
    let (budget, data) = (Budget { steps: 200_000_000, ..SMALL }, Value::Nil);
    let mut set = TemplateSet::new(Arc::new(support::functions()), MissingKey::Zero);
    set.parse("case", text).unwrap();
    let mut ctx = Ctx::new(budget, SystemTime::UNIX_EPOCH, 0);
    assert_eq!(set.execute(&mut ctx, "case", &data).unwrap_err().kind(), ErrorKind::Memory);
    let mut ctx = Ctx::new(budget, SystemTime::UNIX_EPOCH, 0);
    ctx.heap.seal();
    let out = set.execute_alone(&mut ctx, "case", &data).unwrap();
    assert_eq!(
        String::from_utf8_lossy(&out),
        "map[before:map[before:map[before:map[] last:0] last:1] last:2]"
    );
    assert!(ctx.heap.allocated() < SMALL.memory);
    // What is held counts, however it is held.
    let held = r#"{{$all := list}}{{range 100000}}{{$all = list $all (printf "%1000d" 1)}}{{end}}"#;
    set.parse("held", held).unwrap();
    let mut ctx = Ctx::new(budget, SystemTime::UNIX_EPOCH, 0);
    ctx.heap.seal();
    assert_eq!(set.execute_alone(&mut ctx, "held", &data).unwrap_err().kind(), ErrorKind::Memory);
}

#[test]
fn compiled_text_is_bounded() {
    let mut set = TemplateSet::new(Arc::new(support::functions()), MissingKey::Zero);
    let text = "\n".repeat(9) + &"{{.}}".repeat(100_000);
    let error = set.parse_within("case", text.as_str(), 1 << 20).unwrap_err();
    assert_eq!((error.kind(), error.places()[0].line), (ErrorKind::Memory, 10));
    assert!(set.parse_within("case", text.as_str(), 1 << 30).unwrap() > text.len());
    let many: Vec<String> = (0..2000).map(|n| format!("{{{{$v{n} := 1}}}}")).collect();
    let many = many.concat();
    assert!(set.parse("case", many).unwrap_err().to_string().contains("more than 1000 variables"));
}

#[test]
fn time_is_bounded() {
    let budget = Budget { steps: u64::MAX, time: Duration::from_millis(50), ..SMALL };
    fails("{{range 100000000000}}{{end}}", ErrorKind::Deadline, budget);
}

#[test]
fn templates_that_call_themselves() {
    let text = fails(
        "{{define \"r\"}}{{template \"r\"}}{{end}}\n{{template \"r\"}}",
        ErrorKind::Depth,
        SMALL,
    );
    assert!(text.contains("case:1:25"), "{text}");
    fails(r#"{{define "r"}}{{include "r" .}}{{end}}{{include "r" .}}"#, ErrorKind::Depth, SMALL);
    fails(r#"{{$t := "{{tpl . .}}"}}{{tpl $t $t}}"#, ErrorKind::Depth, SMALL);
    let deep = Budget::default();
    fails(r#"{{define "r"}}{{include "r" .}}{{end}}{{include "r" .}}"#, ErrorKind::Depth, deep);
}

#[test]
fn deep_includes_work_and_their_errors_stay_bounded() {
    let count = |fails: &str| {
        format!(
            r#"{{{{define "r"}}}}{{{{if .}}}}{{{{include "r" (slice . 1)}}}}{{{{else}}}}{fails}{{{{end}}}}{{{{end}}}}{{{{include "r" (printf "%3000d" 1)}}}}"#
        )
    };
    let out = support::render_with(&count("end"), MissingKey::Zero, "{}", Budget::default());
    assert_eq!(out.unwrap(), "end");
    let error = support::render_with(&count(r#"{{fail "x"}}"#), MissingKey::Zero, "{}", SMALL);
    let error = error.unwrap_err();
    assert_eq!(error.root_message(), "error calling fail: x");
    assert!(error.places().len() > 1000);
}

#[test]
fn nesting_in_the_source() {
    let parens = |n: usize| format!("{{{{{}1{}}}}}", "(".repeat(n), ")".repeat(n));
    let render = |text: &str| support::render(text, MissingKey::Zero, "{}");
    assert_eq!(render(&parens(300)).unwrap(), "1");
    let error = render(&parens(10_000)).unwrap_err().to_string();
    assert_eq!(error, "template: case:1: max expression depth exceeded");
    let nested = |open: &str, n: usize| format!("{}x{}", open.repeat(n), "{{end}}".repeat(n));
    assert_eq!(render(&nested("{{if 1}}", 10_000)).unwrap(), "x");
    assert_eq!(render(&nested("{{with 1}}", 10_000)).unwrap(), "x");
    assert_eq!(render(&nested("{{range 1}}", 10_000)).unwrap(), "x");
    let chain = format!("{{{{if 0}}}}{}x{{{{end}}}}", "{{else if 0}}".repeat(20_000));
    assert_eq!(render(&chain).unwrap(), "");
    let blocks = nested("{{block \"b\" 1}}", 3_000);
    assert!(render(&blocks).unwrap_err().to_string().contains("multiple definition"));
}

/// A context with a map that contains itself, and one with 2^26 paths.
fn knots() -> (Ctx, Value) {
    let mut ctx = Ctx::new(SMALL, SystemTime::UNIX_EPOCH, 0);
    let root = ctx.heap.new_map();
    ctx.heap.set(root, "knot", root);
    let mut wide = Value::from("leaf");
    for _ in 0..26 {
        let map = ctx.heap.new_map();
        ctx.heap.set(map, "a", wide.clone());
        ctx.heap.set(map, "b", wide);
        wide = map.into();
    }
    ctx.heap.set(root, "wide", wide);
    (ctx, root.into())
}

#[test]
fn values_that_contain_themselves() {
    for (text, kind) in [
        ("{{.knot}}", ErrorKind::Exec),
        ("{{print .knot}}", ErrorKind::Exec),
        ("{{printf \"%v\" .}}", ErrorKind::Exec),
        ("{{html .}}", ErrorKind::Exec),
        ("{{.wide}}", ErrorKind::Memory),
        ("{{eq .wide .wide | print}}", ErrorKind::Memory),
    ] {
        let (mut ctx, data) = knots();
        let mut set = TemplateSet::new(Arc::new(support::functions()), MissingKey::Zero);
        set.parse("case", text).unwrap();
        let error = set.execute(&mut ctx, "case", &data).unwrap_err();
        assert_eq!(error.kind(), kind, "{text}: {error}");
        assert!(error.to_string().starts_with("template: case:1:"), "{error}");
        let (mut ctx, data) = knots();
        set.parse("walk", "{{.knot.knot.knot.wide.a.b.a.a | len}}").unwrap();
        assert_eq!(set.execute(&mut ctx, "walk", &data).unwrap(), "2");
    }
}

#[test]
fn plain_data_is_bounded_in_depth() {
    let (ctx, data) = knots();
    let error = serde_json::to_string(&ctx.heap.view(&data)).unwrap_err();
    assert!(error.to_string().contains("max depth"));

    let nested = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
    let import = |text: &str| {
        let mut heap = Heap::new();
        let mut json = serde_json::Deserializer::from_str(text);
        json.disable_recursion_limit();
        let value = Seed::new(&mut heap).deserialize(&mut json)?;
        serde_json::to_string(&heap.view(&value))
    };
    let deepest = nested(MAX_VALUE_DEPTH);
    assert_eq!(import(&deepest).unwrap(), deepest);
    assert!(import(&nested(100_000)).is_err());

    let mut ctx = Ctx::new(Budget::default(), SystemTime::UNIX_EPOCH, 0);
    let mut json = serde_json::Deserializer::from_str(&deepest);
    json.disable_recursion_limit();
    let value = Seed::new(&mut ctx.heap).deserialize(&mut json).unwrap();
    assert_eq!(ctx.print(&value).unwrap(), deepest.as_str());
    let quoted = fmt::sprintf(&mut ctx, &"%#v|%q".into(), &[value.clone(), value]).unwrap();
    assert!(quoted.len() > MAX_VALUE_DEPTH * 10);
}

#[test]
fn plain_data_keeps_numbers_and_order() {
    let text = r#"{"b":1,"a":1.0,"c":[null,true,"x",-3,1.5],"10":18446744073709551615}"#;
    let mut heap = Heap::new();
    let mut json = serde_json::Deserializer::from_str(text);
    let value = Seed::new(&mut heap).deserialize(&mut json).unwrap();
    assert_eq!(
        serde_json::to_string(&heap.view(&value)).unwrap(),
        r#"{"10":1.8446744073709552e+19,"a":1.0,"b":1,"c":[null,true,"x",-3,1.5]}"#
    );
    let bytes = Value::Bytes([0, 255, 16, 32].as_slice().into());
    assert_eq!(serde_json::to_string(&heap.view(&bytes)).unwrap(), "\"AP8QIA==\"");
}
