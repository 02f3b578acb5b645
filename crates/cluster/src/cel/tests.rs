use super::*;
use serde_json::json;

fn object() -> Value {
    json!({
        "metadata": {"name": "a", "generation": 3, "labels": {"app": "web", "a.b/c": "d"}},
        "spec": {"replicas": 3, "ratio": 0.5, "big": 18_446_744_073_709_551_615_u64, "none": null},
        "status": {"phase": "Running", "conditions": [
            {"type": "Ready", "status": "True"}, {"type": "Safe", "status": "False"},
        ]},
    })
}

fn answer(text: &str) -> Result<Value, CelError> {
    let object = object();
    Program::read(text)?
        .evaluate(&[("object", &object), ("path", &json!("/spec/replicas"))], Budget::new(50_000))
}

#[test]
fn expressions_have_the_values_that_the_api_server_finds() {
    for (text, expected) in [
        ("1 + 2 * 3 - 4 / 2 % 2", json!(7)),
        ("-9223372036854775808", json!(i64::MIN)),
        ("0x1F + 1", json!(32)),
        ("7u / 2u", json!(3)),
        ("1.5e1 * 2.0", json!(30.0)),
        ("-7 % 3", json!(-1)),
        ("1 == 1.0 && 1u == 1 && !(1 == 1.5) && 2 > 1.5", json!(true)),
        ("'1' == 1", json!(false)),
        ("'a' + \"b\" + r'\\n' + '\\n\\x41\\u00e9\\101'", json!("ab\\n\nA\u{e9}A")),
        ("'''a'b''' + \"\"\"c\"d\"\"\"", json!("a'bc\"d")),
        ("[1, 2] + [3]", json!([1, 2, 3])),
        ("{'a': 1, 'b': [true, null]}", json!({"a": 1, "b": [true, null]})),
        ("{'a': 1}.a + {'b': 2}['b']", json!(3)),
        ("[1, 2, 3][1]", json!(2)),
        ("2 in [1, 2] && !('x' in object.spec) && 'replicas' in object.spec", json!(true)),
        ("object.spec.replicas > 2 ? 'many' : 'few'", json!("many")),
        ("false ? 1 : true ? 2 : 3", json!(2)),
        (
            "has(object.spec.replicas) && !has(object.spec.absent) && has(object.spec.none)",
            json!(true),
        ),
        ("object.metadata.labels['a.b/c']", json!("d")),
        (
            "object.status.conditions.exists(c, c.type == 'Ready' && c.status == 'True')",
            json!(true),
        ),
        ("object.status.conditions.all(c, c.status == 'True')", json!(false)),
        ("object.status.conditions.exists_one(c, c.status == 'True')", json!(true)),
        ("object.status.conditions.filter(c, c.status == 'True').map(c, c.type)", json!(["Ready"])),
        ("object.status.conditions.map(c, c.status == 'True', c.type)", json!(["Ready"])),
        ("object.metadata.labels.exists(k, k.startsWith('a.'))", json!(true)),
        ("object.?status.?phase.orValue('')", json!("Running")),
        ("object.?absent.?phase.orValue('x')", json!("x")),
        ("object.status.conditions[?7].hasValue()", json!(false)),
        ("object.spec.big > 5", json!(true)),
        ("size('h\u{e9}') + size([1]) + 'abc'.size() + size({})", json!(6)),
        (
            "path.matches('^/spec/(replicas|x)$') && path.contains('rep') && path.endsWith('s')",
            json!(true),
        ),
        ("int('7') + int(2.9) + int(3u)", json!(12)),
        ("double('1.5') + double(1)", json!(2.5)),
        ("string(7) + string(true) + string(1.5)", json!("7true1.5")),
        (
            "'a,b'.split(',').join('-') + ' X '.trim().lowerAscii() + 'aa'.replace('a', 'b')",
            json!("a-bxbb"),
        ),
        // One side that decides is enough.
        ("object.absent.deep == 1 || true", json!(true)),
        ("object.absent.deep == 1 && false", json!(false)),
        ("[1, 'x'].exists(i, i > 'a' || i == 1)", json!(true)),
        ("1 // the rest is a comment", json!(1)),
        ("dyn([1]) == [1.0] && {'a': [1]} == {'a': [1]}", json!(true)),
    ] {
        assert_eq!(answer(text), Ok(expected), "{text}");
    }
}

#[test]
fn what_has_no_answer_is_said() {
    for (text, expected) in [
        ("object.spec.absent", "there is no absent"),
        ("object.metadata.labels[object.status.phase]", "there is no such key or item"),
        ("nothing", "there is no nothing"),
        ("1 / 0", "the result is no integer of 64 bits"),
        ("9223372036854775807 + 1", "the result is no integer of 64 bits"),
        ("1 + 1.0", "+ is not for an integer and a double"),
        ("'a' < 1", "a string and an integer have no order"),
        ("object.spec.replicas.x", "an integer has no fields"),
        ("[1][5]", "there is no such key or item"),
        ("int('x')", "int cannot read the string"),
        ("'a'.matches('(')", "the pattern is none"),
        ("!1", "! is not for an integer"),
        ("1 +", "at character 4: the expression ends here"),
        ("a b", "at character 3: unexpected \"b\""),
        ("f(1)", "at character 1: no function f of 1 arguments"),
        ("has(a)", "at character 1: has needs a field, such as has(object.spec)"),
        ("'a", "at character 1: a string that does not end"),
        ("a = b", "at character 3: unexpected '='"),
        ("9223372036854775808", "at character 1: not an integer of 64 bits"),
        ("", "at character 1: the expression ends here"),
        ("\u{e9}", "at character 1: unexpected '\u{e9}'"),
    ] {
        let error = answer(text).expect_err(text);
        assert_eq!(error.to_string(), expected, "{text}");
    }
    assert_eq!(
        Program::read("1").unwrap().holds(&[], &mut Budget::new(50_000)).unwrap_err().to_string(),
        "it is an integer and not true or false"
    );
}

#[test]
fn no_expression_hangs_or_ends_the_process() {
    let long: Vec<Value> = (0..1000).map(Value::from).collect();
    let list = Value::Array(long);
    let text = Value::String("a".repeat(100_000));
    let bombs = [
        "l.all(a, l.all(b, l.all(c, l.all(d, a + b + c + d >= 0))))".to_owned(),
        "l.map(a, l).map(b, b.map(c, l))".to_owned(),
        format!("t{}", ".replace('a', 'aaaaaaaa')".repeat(20)),
        format!("[0]{}", ".map(x, [x,x,x,x,x,x,x,x,x]).map(x, x + x)".repeat(20)),
        "l.all(a, t.matches('(a|b)*c') || true)".to_owned(),
        "l.all(a, t + t != t)".to_owned(),
    ];
    for bomb in bombs {
        let answer = Program::read(&bomb)
            .unwrap()
            .evaluate(&[("l", &list), ("t", &text)], Budget::new(50_000));
        assert!(
            answer.is_err() || answer.as_ref().is_ok_and(|it| it.to_string().len() < 1 << 20),
            "{bomb}"
        );
    }
    for (open, close) in [("(", ")"), ("[", "]"), ("!", ""), ("- ", ""), ("{1:", "}"), ("1?1:", "")]
    {
        let deep = format!("{}1{}", open.repeat(400), close.repeat(400));
        assert!(matches!(Program::read(&deep), Err(CelError::Syntax { .. })), "{open}");
    }
    for (count, reads) in [(190, true), (1000, false)] {
        for link in [".a", "+1", "[0]", ".size()"] {
            let read = Program::read(&format!("o{}", link.repeat(count.min(2000 / link.len()))));
            assert_eq!(read.is_ok(), reads, "{link}");
            assert!(
                read.is_err()
                    || read.unwrap().evaluate(&[("o", &json!({}))], Budget::new(50_000)).is_err()
            );
        }
    }
    assert_eq!(Program::read(&"1".repeat(3000)).unwrap_err(), CelError::TooLong);
}
