//! Templates: text, actions, control structures.

use super::expr::Expressions;

/// A body of some statements.
pub fn body(make: &mut Expressions<'_>, depth: usize, in_range: bool) -> String {
    let count = 1 + make.dice.below(3);
    let before = make.variables.len();
    let text = (0..count).map(|_| statement(make, depth, in_range)).collect();
    make.variables.truncate(before);
    text
}

fn left(make: &mut Expressions<'_>) -> &'static str {
    make.dice.pick(&["{{", "{{ ", "{{ ", "{{- ", "{{-\n", "{{\t"])
}

fn right(make: &mut Expressions<'_>) -> &'static str {
    make.dice.pick(&["}}", " }}", " }}", " -}}", "\n-}}"])
}

fn action(make: &mut Expressions<'_>, inner: &str) -> String {
    let (left, right) = (left(make), right(make));
    format!("{left}{inner}{right}")
}

fn operand(make: &mut Expressions<'_>) -> String {
    const DOTS: &[&str] = &[
        ".",
        ".",
        "$",
        ".Values.str",
        ".Values.map.a",
        ".name",
        ".k",
        ".Values.deep.x.y.z",
        "$.Values.maps",
        ".missing.deep",
        "(.Values.deep).x",
        "(index .Values.maps 0).name",
        ".Chart.Name",
        "(dict \"a\" 1).a",
        "(list 1 2)",
        "1.5",
        "'x'",
        "0x1p4",
        "1i",
        "0b101",
        "0o17",
        "1_0",
        "\"s\"",
        "`r`",
        "true",
        "nil",
        ".Release.Name.x",
        "$.Values.list.x",
        "(.)",
        "((.Values).str)",
        "$x",
        "1e3",
        "'\\n'",
        "'\\u00e9'",
        "-0",
        "+1",
        "07",
        "09",
        "1.",
        ".5",
        "1e400",
        "99999999999999999999",
        "0x",
        "'ab'",
        "\"\\q\"",
    ];
    if make.dice.chance(50) { make.of("Any", 1).text } else { make.dice.pick(DOTS).into() }
}

fn pipeline(make: &mut Expressions<'_>, depth: usize) -> String {
    if make.dice.chance(35) {
        return operand(make);
    }
    let sort = make.dice.pick(&["Any", "Str", "Bool", "List", "Map", "Num", "Float"]);
    make.pipeline(sort, depth)
}

fn variable(make: &mut Expressions<'_>) -> String {
    if !make.variables.is_empty() && make.dice.chance(60) {
        return make.dice.choose(&make.variables).clone();
    }
    make.dice.pick(&["$x", "$y", "$long_name1"]).into()
}

fn statement(make: &mut Expressions<'_>, depth: usize, in_range: bool) -> String {
    match make.dice.below(if depth == 0 { 62 } else { 100 }) {
        0..14 => make
            .dice
            .pick(&[
                "text ",
                "\n",
                "  \n ",
                "{ ",
                "x",
                "<no value>",
                "\t",
                "}} ",
                "é",
                "\r\n",
                "{{{",
            ])
            .into(),
        14..40 => {
            let inner = pipeline(make, 1);
            action(make, &inner)
        }
        40..50 => assignment(make),
        50..54 => comment(make),
        54..58 if in_range => make
            .dice
            .pick(&["{{ break }}", "{{ continue }}", "{{break}}", "{{- continue -}}"])
            .into(),
        54..59 => mistake(make),
        59..62 => {
            let name =
                make.dice.pick(&["\"t1\"", "\"t2\"", "\"lib.hello\"", "\"lib.fails\"", "\"nope\""]);
            let data = operand(make);
            let inner = make.dice.pick(&["", " .", " $"]).to_owned();
            let inner = if make.dice.chance(40) { format!(" {data}") } else { inner };
            action(make, &format!("template {name}{inner}"))
        }
        62..74 => branch(make, depth, in_range),
        74..82 => with(make, depth, in_range),
        82..94 => range(make, depth),
        _ => {
            let data = pipeline(make, 0);
            let body = body(make, depth - 1, false);
            let number = make.dice.below(100);
            format!("{{{{ block \"b{number}\" {data} }}}}{body}{{{{ end }}}}")
        }
    }
}

fn comment(make: &mut Expressions<'_>) -> String {
    make.dice
        .pick(&[
            "{{/* c */}}",
            "{{- /* two\nlines */ -}}",
            "{{/* a */ -}}",
            "{{ /* spaced */ }}",
            "{{/* }} */}}",
            "{{/* open",
            "{{/**/}}",
        ])
        .into()
}

fn mistake(make: &mut Expressions<'_>) -> String {
    let all: &[&str] = &[
        "{{ end }}",
        "{{ else }}",
        "{{ .x",
        "{{ \"",
        "{{ break }}",
        "{{ nofunc 1 }}",
        "{{ $nope }}",
        "{{ . . }}",
        "{{ | }}",
        "{{ (1 }}",
        "{{ 1) }}",
        "{{}}",
        "{{ if }}{{ end }}",
        "{{ template }}",
        "{{ template 1 }}",
        "{{ define \"q\" }}",
        "{{ .x.}}",
        "{{ $x := }}",
        "{{ 1 | 2 }}",
        "{{ .a | .b }}",
        "{{ nil }}",
        "{{ range }}{{ end }}",
        "{{ else if 1 }}",
        "{{ ' }}",
        "{{ ` }}",
        "{{ \\ }}",
        "{{ @ }}",
        "{{ .1 }}",
        "{{ $x.y.z }}",
        "{{ \"a\".b }}",
        "{{ 1.x }}",
        "{{ nil.x }}",
        "{{ true.x }}",
        "{{ with $a, $b := 1 }}{{ end }}",
        "{{ range $a, $b, $c := . }}{{ end }}",
        "{{ $x, $y := 1 }}",
        "{{ with }}{{ end }}",
        "{{ block \"x\" }}{{ end }}",
        "{{ block }}{{ end }}",
        "{{ if 1 }}{{ else }}{{ else }}{{ end }}",
        "{{ print 1,2 }}",
        "{{ . := 1 }}",
        "{{ x := 1 }}",
        "{{ $ := 1 }}",
        "{{ (print) 1 }}",
        "{{ \"s\" 1 }}",
        "{{ print | \"s\" }}",
        "{{ - 1 }}",
        "{{-1}}",
        "{{1-}}",
        "{{- }}",
        "{{ -}}",
        "{{ 1 -}} ",
        "{{ 1-1 }}",
        "{{ .x-y }}",
        "{{ .é }}",
        "{{ a=1 }}",
        "{{ !true }}",
        "{{ if 1 }}{{ else with 2 }}{{ end }}",
        "{{ with 0 }}{{ else if 1 }}{{ end }}",
        "{{ range 2 }}{{ else if 1 }}{{ end }}",
        "{{ end",
        "{{ continue 1 }}",
        "{{ template \"t1\" . | print }}",
        "{{ if 1 }}",
        "{{ (. }}",
        "{{ ((1)) }}",
        "{{ () }}",
        "{{ $.Values.str | upper }}",
        "{{ print (1).x }}",
        "{{ .Values.str.x.y }}",
        "{{ 1 2 }}",
        "{{ $.Files.Get }}",
        "{{ .Values.list 1 }}",
        "{{ (.Files.Get \"a\" \"b\") }}",
        "{{ .Chart.Nope 1 }}",
        "{{ define \"in\" }}x{{ end }}",
    ];
    make.dice.pick(all).into()
}

fn assignment(make: &mut Expressions<'_>) -> String {
    let name = variable(make);
    let known = make.variables.contains(&name);
    let operator = if known && make.dice.chance(60) { "=" } else { ":=" };
    let value = pipeline(make, 1);
    if !known {
        make.variables.push(name.clone());
    }
    action(make, &format!("{name} {operator} {value}"))
}

fn condition(make: &mut Expressions<'_>) -> String {
    let value = if make.dice.chance(50) { make.pipeline("Bool", 1) } else { pipeline(make, 1) };
    if make.dice.chance(12) {
        let name = variable(make);
        make.variables.push(name.clone());
        return format!("{name} := {value}");
    }
    value
}

fn tail(make: &mut Expressions<'_>, depth: usize, in_range: bool, word: &str) -> String {
    let mut text = String::new();
    while make.dice.chance(25) {
        let inner = format!("else {word} {}", condition(make));
        text.push_str(&action(make, &inner));
        text.push_str(&body(make, depth, in_range));
    }
    if make.dice.chance(40) {
        text.push_str(&action(make, "else"));
        text.push_str(&body(make, depth, in_range));
    }
    text.push_str(&action(make, "end"));
    text
}

fn branch(make: &mut Expressions<'_>, depth: usize, in_range: bool) -> String {
    let before = make.variables.len();
    let head = format!("if {}", condition(make));
    let head = action(make, &head);
    let inner = body(make, depth - 1, in_range);
    let tail = tail(make, depth - 1, in_range, "if");
    make.variables.truncate(before);
    format!("{head}{inner}{tail}")
}

fn with(make: &mut Expressions<'_>, depth: usize, in_range: bool) -> String {
    let before = make.variables.len();
    let head = format!("with {}", condition(make));
    let head = action(make, &head);
    let inner = body(make, depth - 1, in_range);
    let tail = tail(make, depth - 1, in_range, "with");
    make.variables.truncate(before);
    format!("{head}{inner}{tail}")
}

fn range(make: &mut Expressions<'_>, depth: usize) -> String {
    let before = make.variables.len();
    let over = match make.dice.below(6) {
        0 => make
            .dice
            .pick(&[
                "2",
                "3",
                "0",
                "-1",
                "$.Values.int",
                "(int 2)",
                "(len \"ab\")",
                "1.5",
                "\"text\"",
            ])
            .into(),
        1 => make.of("Map", 1).text,
        2 => operand(make),
        _ => make.of("List", 1).text,
    };
    let head = match make.dice.below(6) {
        0 | 1 => format!("range {over}"),
        2 | 3 => {
            make.variables.push("$v".into());
            format!("range $v := {over}")
        }
        4 => {
            make.variables.extend(["$k".into(), "$v".into()]);
            format!("range $k, $v := {over}")
        }
        _ => {
            let first = variable(make);
            if make.dice.chance(50) {
                format!("range {first} = {over}")
            } else {
                format!("range {first}, {} = {over}", variable(make))
            }
        }
    };
    let head = action(make, &head);
    let inner = body(make, depth - 1, true);
    let otherwise = if make.dice.chance(30) {
        format!("{{{{ else }}}}{}", body(make, depth - 1, false))
    } else {
        String::new()
    };
    let end = action(make, "end");
    make.variables.truncate(before);
    format!("{head}{inner}{otherwise}{end}")
}
