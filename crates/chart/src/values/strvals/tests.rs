use super::*;
use serde_json::json;

type Read = fn(&str, &mut Map<String, Value>) -> Result<(), StrvalsError>;

fn run(read: Read, under: Value, line: &str) -> Result<Value, String> {
    let Value::Object(mut values) = under else { panic!("no table") };
    read(line, &mut values).map_err(|error| error.to_string())?;
    Ok(Value::Object(values))
}

#[track_caller]
fn all_equal(read: Read, cases: &[(&str, Value)]) {
    for (line, expected) in cases {
        assert_eq!(run(read, json!({}), line).as_ref(), Ok(expected), "{line}");
    }
}

#[test]
fn typed_lines() {
    all_equal(
        parse_into,
        &[
            ("", json!({})),
            ("a=b", json!({"a": "b"})),
            (
                "a=1,b=true,c=NULL,d=False,e=0",
                json!({"a": 1, "b": true, "c": null, "d": false, "e": 0}),
            ),
            ("a=-1,b=+1,c=-0", json!({"a": -1, "b": 1, "c": 0})),
            (
                "a=01,b=1.5,c=1e3,d=0x1,e=1_0",
                json!({"a": "01", "b": "1.5", "c": "1e3", "d": "0x1", "e": "1_0"}),
            ),
            ("a=9223372036854775808", json!({"a": "9223372036854775808"})),
            ("a=", json!({"a": ""})),
            ("a=,b=1", json!({"a": "", "b": 1})),
            ("a= b ", json!({"a": " b "})),
            ("a.b.c=1,a.b.d=2", json!({"a": {"b": {"c": 1, "d": 2}}})),
            (r"a\.b=1,c\,d=2,e=x\,y", json!({"a.b": 1, "c,d": 2, "e": "x,y"})),
            (r"a=\1", json!({"a": 1})),
            ("a=b=c", json!({"a": "b=c"})),
            ("=1", json!({})),
            ("a={}", json!({"a": [""]})),
            ("a={1,x,null}", json!({"a": [1, "x", null]})),
            ("a={1},b=2", json!({"a": [1], "b": 2})),
            (r"a={1\,2,\}}", json!({"a": ["1,2", "}"]})),
            ("a[0]=1,a[1]=2", json!({"a": [1, 2]})),
            ("a[2]=1", json!({"a": [null, null, 1]})),
            ("a[1].b=1,a[0].c=2", json!({"a": [{"c": 2}, {"b": 1}]})),
            ("a[0][1]=x", json!({"a": [[null, "x"]]})),
            ("a[0][0]=1,a[0][1]=2", json!({"a": [[1, 2]]})),
            ("a[0]={1,2}", json!({"a": [[1, 2]]})),
            ("a[0].b[0].c=1", json!({"a": [{"b": [{"c": 1}]}]})),
            ("a[0]=", json!({"a": [""]})),
            ("a=ü,ö.ä=1", json!({"a": "ü", "ö": {"ä": 1}})),
        ],
    );
}

#[test]
fn lines_that_end_early_are_no_fault() {
    all_equal(
        parse_into,
        &[
            ("a[", json!({})),
            ("a[0", json!({})),
            ("a[0]", json!({"a": []})),
            ("a[0][", json!({"a": []})),
            ("a.", json!({})),
            ("a.b.", json!({})),
            ("a=1,b[", json!({"a": 1})),
            ("a[0].b=", json!({"a": []})),
            ("a[0].b=1,a[0].c=", json!({"a": [{"b": 1, "c": ""}]})),
            ("a=1,", json!({"a": 1})),
        ],
    );
}

#[test]
fn lines_go_over_what_is_there() {
    let under = json!({"a": {"b": 1.0}, "l": [1.0, {"x": 1.0}], "s": "t", "e": {}});
    let line = "a.c=2,l[1].y=2,l[0].z=3,s=u,e.f=1";
    let expected = json!({"a": {"b": 1.0, "c": 2}, "l": [{"z": 3}, {"x": 1.0, "y": 2}], "s": "u", "e": {"f": 1}});
    assert_eq!(run(parse_into, under, line), Ok(expected));
}

#[test]
fn other_kinds_of_lines() {
    all_equal(
        parse_into_text,
        &[
            ("a=1,b=true,c=null", json!({"a": "1", "b": "true", "c": "null"})),
            ("a={1,2},b[0]=3", json!({"a": ["1", "2"], "b": ["3"]})),
        ],
    );
    all_equal(
        parse_into_literal,
        &[
            (r"a=b,c={d}\,e=f", json!({"a": r"b,c={d}\,e=f"})),
            ("a.b[1].c=1,2", json!({"a": {"b": [null, {"c": "1,2"}]}})),
            ("a,b=1", json!({"a,b": "1"})),
            ("a=", json!({"a": ""})),
        ],
    );
    all_equal(
        parse_into_json,
        &[
            (r#"a=1,b="x,y",c={"d":[1,2]}"#, json!({"a": 1.0, "b": "x,y", "c": {"d": [1.0, 2.0]}})),
            ("a=,b= ,c=null", json!({"a": null, "b": null, "c": null})),
            // Half of a surrogate pair is no character, a pair is one, and what is escaped is none.
            (
                r#"a="\ud800é\udc00",b="\ud83d\ude00\\ud800",c="\ud83d\ud83d\ude00""#,
                json!({"a": "\u{fffd}é\u{fffd}", "b": "😀\\ud800", "c": "\u{fffd}😀"}),
            ),
            ("a[0]=true , b=false", json!({"a": [true], " b": false})),
            (r#"a.b= {"c": 1} , d = 2"#, json!({"a": {"b": {"c": 1.0}}, " d ": 2.0})),
        ],
    );
    let mut values = Map::new();
    let mut read = |path: &str| match path {
        "missing" => Err("open missing: no such file or directory".to_owned()),
        path => Ok(format!("text of {path}")),
    };
    parse_into_files("a=x,b={y,z},c=", &mut values, &mut read).unwrap();
    assert_eq!(
        Value::from(values),
        json!({"a": "text of x", "b": ["text of y", "text of z"], "c": ""})
    );
    let fault = parse_into_files("a=missing", &mut Map::new(), &mut read).unwrap_err();
    assert_eq!(fault.to_string(), "open missing: no such file or directory");
}

#[test]
fn faults_have_helms_texts() {
    let under = json!({"s": "t", "n": 1, "f": 1.0, "z": null, "l": [1], "m": {}});
    let cases = [
        ("a", r#"key "a" has no value"#),
        ("a.b", r#"key "b" has no value"#),
        ("a,b=1", r#"key "a" has no value (cannot end with ,)"#),
        ("a.=1", r#"key map "a" has no value"#),
        ("a={1", "list must terminate with '}'"),
        ("a[x]=1", r#"error parsing index: strconv.Atoi: parsing "x": invalid syntax"#),
        ("a[]=1", r#"error parsing index: strconv.Atoi: parsing "": invalid syntax"#),
        (
            "a[99999999999999999999]=1",
            r#"error parsing index: strconv.Atoi: parsing "99999999999999999999": value out of range"#,
        ),
        ("a[-1]=1", "negative -1 index not allowed"),
        ("a[65537]=1", "index of 65537 is greater than maximum supported index of 65536"),
        ("a[0]xy=1", "unexpected data at end of array index: ['x' 'y']"),
        (r#"a[0]'"\\=1"#, r#"unexpected data at end of array index: ['\'' '"' '\\']"#),
        (
            "s.a=1",
            "unable to parse key: interface conversion: interface {} is string, not map[string]interface {}",
        ),
        (
            "z.a=1",
            "unable to parse key: interface conversion: interface {} is nil, not map[string]interface {}",
        ),
        (
            "l.a=1",
            "unable to parse key: interface conversion: interface {} is []interface {}, not map[string]interface {}",
        ),
        (
            "n[0]=1",
            "unable to parse key: interface conversion: interface {} is int64, not []interface {}",
        ),
        (
            "f[0]=1",
            "unable to parse key: interface conversion: interface {} is float64, not []interface {}",
        ),
        (
            "m[0]=1",
            "unable to parse key: interface conversion: interface {} is map[string]interface {}, not []interface {}",
        ),
        (
            "l[0][0]=1",
            "unable to parse key: interface conversion: interface {} is int64, not []interface {}",
        ),
    ];
    for (line, expected) in cases {
        assert_eq!(run(parse_into, under.clone(), line), Err(expected.to_owned()), "{line}");
    }
    for bad in ["a=x", "a=tru", "a={", "a=\"", "a=1 2"] {
        assert!(run(parse_into_json, json!({}), bad).is_err(), "{bad}");
    }
}

#[test]
fn cve_2022_23524_depth_has_limits() {
    let deep = |names: usize| format!("{}a=1", "a.".repeat(names));
    assert!(run(parse_into, json!({}), &deep(MAX_NAMES)).is_ok());
    assert!(
        run(parse_into, json!({}), &deep(MAX_NAMES + 1))
            .unwrap_err()
            .contains("nested level of 30")
    );
    for line in ["a[0]".to_owned() + &"[0]".repeat(100_000) + "=1", "a[0].".repeat(100_000) + "a=1"]
    {
        assert!(run(parse_into, json!({}), &line).unwrap_err().contains("levels deep"));
    }
}

#[test]
fn cve_2022_36055_an_index_does_not_allocate_the_list() {
    for index in ["2147483647", "9223372036854775807", "65537"] {
        for parse in [parse_into, parse_into_text, parse_into_json] {
            let error = run(parse, json!({}), &format!("a[{index}]=1")).unwrap_err();
            assert!(error.contains("greater than maximum supported index of 65536"), "{error}");
        }
    }
}

#[test]
fn a_line_fills_lists_up_to_a_limit() {
    let line = |lists: usize| -> String {
        (0..lists).map(|list| format!("a{list}[65000]=x")).collect::<Vec<_>>().join(",")
    };
    assert!(run(parse_into, json!({}), &line(15)).is_ok());
    assert_eq!(
        run(parse_into, json!({}), &line(500)),
        Err("the lists of the line have more than 1000000 items in all".to_owned())
    );
    let again = "a[0][60000]=x,".repeat(3000);
    assert!(run(parse_into, json!({}), &again).is_ok());
}
