//! Hostile templates.

use crate::case::{Case, End, file, folder, limit, template};

const STEPS: &str = "steps";
const MEMORY: &str = "memory limit";
const OUTPUT: &str = "output limit";

/// What never ends, but for a limit.
pub fn endless() -> Vec<Case> {
    vec![
        template(
            "a template that runs itself",
            r#"{{ define "r" }}{{ template "r" . }}{{ end }}{{ template "r" . }}"#,
            End::Error("exceeded maximum template depth (100000)"),
        ),
        template(
            "a template that includes itself",
            r#"{{ define "r" }}{{ include "r" . }}{{ end }}{{ include "r" . }}"#,
            End::Error("error calling include"),
        ),
        template(
            "templates that include one another",
            (0..200)
                .map(|n| {
                    format!(
                        "{{{{ define \"r{n}\" }}}}{{{{ include \"r{}\" . }}}}{{{{ end }}}}",
                        (n + 1) % 200
                    )
                })
                .collect::<String>()
                + "{{ include \"r0\" . }}",
            End::Somehow,
        ),
        template(
            "tpl that emits tpl",
            r#"{{ $t := "{{ tpl .t . }}" }}{{ tpl $t (dict "t" $t) }}"#,
            End::Limit("nested templates", "c/templates/a.yaml:1"),
        ),
        template(
            "tpl that emits ever longer tpl",
            r#"{{ $t := "{{ tpl (print .t \"x\") (dict \"t\" (print .t \"x\")) }}" }}{{ tpl $t (dict "t" $t) }}"#,
            End::Somehow,
        ),
        template(
            "tpl that defines and runs itself",
            r#"{{ tpl "{{ define \"x\" }}{{ tpl \"{{ template \\\"x\\\" . }}\" . }}{{ end }}{{ template \"x\" . }}" . }}"#,
            End::Somehow,
        ),
        template(
            "loops in loops",
            "{{ range until 100000 }}{{ range until 100000 }}{{ end }}{{ end }}",
            limit(STEPS),
        ),
        template("a range over a number", "{{ range 1000000000 }}{{ end }}", limit(STEPS)),
        template("until 1e9", "{{ until 1000000000 }}", limit("steps")),
        template(
            "keys without end",
            "{{ range until 1000000 }}{{ $k := genPrivateKey \"rsa\" }}{{ end }}",
            limit("keys"),
        ),
        template(
            "authorities without end",
            "{{ range until 1000000 }}{{ $k := genCA \"x\" 1 }}{{ end }}",
            limit("keys"),
        ),
        template(
            "hashes without end",
            "{{ range until 1000000 }}{{ $k := htpasswd \"x\" \"y\" }}{{ end }}",
            limit("keys"),
        ),
    ]
}

/// What grows and grows.
pub fn growing() -> Vec<Case> {
    vec![
        template("a hundred megabytes of output", "a: |\n{{ range 1600000 }}  0123456789012345678901234567890123456789012345678901234567890\n{{ end }}", End::Limit("exceeded the", "c/templates/a.yaml:")),
        template("one long text printed often", r#"a: {{ $x := repeat 1000000 "x" }}{{ range 100 }}{{ $x }}{{ end }}"#, limit(OUTPUT)),
        template("doubling", r#"{{ $x := "x" }}{{ range until 60 }}{{ $x = print $x $x }}{{ end }}"#, limit(MEMORY)),
        template("doubling by printf", r#"{{ $x := "x" }}{{ range until 60 }}{{ $x = printf "%s%s" $x $x }}{{ end }}"#, limit(MEMORY)),
        template("doubling by cat", r#"{{ $x := "x" }}{{ range until 60 }}{{ $x = cat $x $x $x $x }}{{ end }}"#, limit(MEMORY)),
        template("doubling by quote", r#"{{ $x := "\"" }}{{ range until 60 }}{{ $x = quote $x }}{{ end }}"#, limit(MEMORY)),
        template("doubling by toJson", r#"{{ $x := "<" }}{{ range until 60 }}{{ $x = toJson (list $x $x) }}{{ end }}"#, limit("exceeded the")),
        template("doubling by urlquery", r#"{{ $x := "%" }}{{ range until 60 }}{{ $x = urlquery $x $x }}{{ end }}"#, limit(MEMORY)),
        template("doubling by replace", r#"{{ $x := "xx" }}{{ range until 60 }}{{ $x = replace "x" $x $x }}{{ end }}"#, limit(MEMORY)),
        template("doubling by lists", "{{ $x := list 1 2 }}{{ range until 60 }}{{ $x = concat $x $x }}{{ end }}", limit("exceeded the")),
        template("a list of itself, over and over", "{{ $x := list }}{{ range until 10000000 }}{{ $x = append $x (dict \"a\" $x) }}{{ end }}", End::Somehow),
        template("ever more keys", "{{ $d := dict }}{{ range $i, $_ := until 1000000 }}{{ $_ := set $d (print $i) $i }}{{ end }}", End::Somehow),
        template("ever more keys of a text", "{{ $d := dict }}{{ range 1000000 }}{{ $_ := set $d (print . (repeat 1000 \"x\")) . }}{{ end }}", limit("exceeded the")),
        template("includes whose output is included", (0..60).map(|n| format!("{{{{ define \"d{n}\" }}}}{{{{ include \"d{0}\" . }}}}{{{{ include \"d{0}\" . }}}}{{{{ end }}}}", n + 1)).collect::<String>() + "{{ define \"d60\" }}0123456789{{ end }}{{ include \"d0\" . }}", End::Somehow),
        template("many different texts for tpl", r#"{{ range $i, $_ := until 1000000 }}{{ $x := tpl (printf "{{ %d }}{{ .a.b.c }}" $i) (dict "a" (dict "b" (dict "c" 1))) }}{{ end }}"#, End::Somehow),
        template("one long text for tpl", r#"{{ tpl (repeat 1000000 "{{.}}") 1 }}"#, limit(MEMORY)),
        template("a long line of variables", (0..100_000).map(|n| format!("{{{{$v{n}:=1}}}}")).collect::<String>(), End::Error("more than 1000 variables")),
        template("a large template of nothing but code", "{{.}}".repeat(900_000), End::Limit(MEMORY, "c/templates/a.yaml:1")),
        template("documents without end", "a: 1\n---\n".repeat(200_000), End::Error("50000 documents")),
    ]
}

/// Maps in themselves, and maps with 2^26 paths.
pub fn knots() -> Vec<Case> {
    const KNOT: &str = "{{ $d := dict \"l\" (list) }}{{ $_ := set $d \"d\" $d }}{{ $_ := set $d \"l\" (list $d $d) }}";
    const WIDE: &str =
        "{{ $w := dict }}{{ range until 26 }}{{ $w = dict \"a\" $w \"b\" $w }}{{ end }}";
    const OTHER: &str =
        "{{ $v := dict }}{{ range until 26 }}{{ $v = dict \"a\" $v \"b\" $v }}{{ end }}";
    let knot = |call: &str, end: End| {
        template(&format!("in itself: {call}"), format!("{KNOT}a: {{{{ {call} }}}}"), end)
    };
    let wide = |call: &str, end: End| {
        template(&format!("2^26 paths: {call}"), format!("{WIDE}{OTHER}a: {{{{ {call} }}}}"), end)
    };
    let mut cases = vec![
        // Helm prints nothing where JSON finds the cycle.
        knot("toYaml $d", End::Prints("a:")),
        knot("toJson $d", End::Prints("a:")),
        knot("toYamlPretty $d", End::Somehow),
        knot("toPrettyJson $d", End::Prints("a:")),
        knot("toToml $d", End::Somehow),
        knot("eq $d $d", End::Somehow),
        knot("deepEqual $d $d", End::Prints("a: true")),
        knot("merge (dict) $d | len", End::Prints("a: 2")),
        knot("mergeOverwrite (dict \"d\" (dict \"d\" (dict))) $d | len", End::Prints("a: 2")),
        knot("has $d (list $d)", End::Prints("a: true")),
        knot("keys $d | len", End::Prints("a: 2")),
        knot("dig \"d\" \"d\" \"d\" \"x\" $d | len", End::Prints("a: 2")),
        knot("uniq (list $d $d) | len", End::Prints("a: 1")),
        wide("deepEqual $w $v", limit(STEPS)),
        wide("has $w (list $v)", limit(STEPS)),
        wide("toYaml $w", limit(STEPS)),
        wide("toJson $w", limit(STEPS)),
        wide("toToml $w", End::Somehow),
        wide("print $w", limit("memory")),
        wide("sha256sum (toString $w)", limit("memory")),
        wide("quote $w", limit("memory")),
        wide("deepCopy $w | len", limit("limit")),
        wide("merge $w $v | len", End::Somehow),
        wide("mergeOverwrite (deepCopy (dict \"a\" (dict))) $w | len", End::Prints("a: 2")),
        wide("eq $w $v", End::Somehow),
    ];
    for call in [
        "print $d",
        "printf \"%v\" $d",
        "sha256sum (toString $d)",
        "quote $d",
        "html $d",
        "deepCopy $d",
        "mustToJson $d",
        "join \",\" (list $d)",
        "sortAlpha (list $d)",
        "fail (print $d)",
    ] {
        cases.push(knot(call, End::Error("")));
    }
    let ranged = format!(
        "{KNOT}{{{{ define \"r\" }}}}{{{{ range . }}}}{{{{ if kindIs \"map\" . }}}}{{{{ include \"r\" . }}}}{{{{ end }}}}{{{{ end }}}}{{{{ end }}}}{{{{ include \"r\" $d }}}}"
    );
    cases.push(template(
        "in itself: walked by a template",
        ranged,
        End::Error("error calling include"),
    ));
    cases
}

/// Calls that would allocate or loop for long.
const ONCE: &[&str] = &[
    "repeat 1000000000 \"x\"",
    "untilStep 0 9223372036854775807 1",
    "seq 1000000000",
    "seq 0 -1 -1000000000",
    "indent 1000000000 \"x\"",
    "nindent 100000 (repeat 100000 \"\\n\")",
    "randAlphaNum 1000000000",
    "randBytes 1000000000",
    "randAscii 100000000",
    "shuffle (repeat 10000000 \"x\")",
    "replace \"\" (repeat 100000 \"y\") (repeat 10000 \"x\")",
    "regexReplaceAll \"x\" (repeat 10000 \"x\") (repeat 100000 \"y\")",
    "regexReplaceAll \"x*\" (repeat 100000 \"y\") (repeat 10000 \"$0$0$0\")",
    "regexReplaceAllLiteral \"\" (repeat 1000000 \"x\") (repeat 100 \"y\")",
    "regexFindAll \"\" (repeat 3000000 \"x\") -1",
    "regexSplit \"\" (repeat 3000000 \"x\") -1",
    "join (repeat 1000000 \",\") (until 1000)",
    "wrapWith 1 (repeat 10000 \"-\") (repeat 100000 \"x\")",
    "splitList \"\" (repeat 3000000 \"x\")",
    "split \"\" (repeat 1000000 \"x\")",
    "splitList \",\" (repeat 3000000 \",\")",
    "chunk 1 (until 700000)",
    "printf (repeat 100000 \"%1000000d\") 1",
    "printf (repeat 10000 \"%[1]*[1]d\") 1000000",
    "b64enc (repeat 14000000 \"xx\")",
    "b32enc (repeat 14000000 \"xx\")",
    "upper (repeat 14000000 \"xx\")",
    "title (repeat 14000000 \"xx\")",
    "camelcase (repeat 14000000 \"x_\")",
    "snakecase (repeat 14000000 \"xX\")",
    "nospace (repeat 14000000 \"x \")",
    "html (repeat 5000000 \"<>\")",
    "js (repeat 5000000 \"<>\")",
    "quote (repeat 5000000 \"\\\"\")",
    "squote (repeat 30000000 \"x\") (repeat 30000000 \"x\")",
    "toJson (repeat 6000000 \"<\")",
    "toYaml (dict \"a\" (repeat 8000000 \"\\n\"))",
    "toYaml (list (list (list (list (repeat 4000000 \"a\\n\")))))",
    "fromJson (repeat 3000000 \"[\")",
    "fromJsonArray (print \"[\" (repeat 2000000 \"[],\") \"0]\")",
    "fromJsonArray (print \"[\" (repeat 300000 \"{\\\"a\\\":{}},\") \"0]\")",
    "fromYamlArray (print \"[\" (repeat 2000000 \"a,\") \"]\")",
    "fromYamlArray (repeat 1000000 \"- {a: {}}\\n\")",
    "fromYaml (repeat 2000000 \"[\")",
    "fromToml (repeat 300000 \"[[a]]\\n\")",
    "sortAlpha (splitList \"\" (repeat 500000 \"ba\"))",
    "uniq (until 100000)",
    "without (until 100000) 1 2 3 | uniq",
    "regexMatch \"(x+x+)+y\" (repeat 10000000 \"x\")",
    "regexMatch \"(.{0,900}){0,900}\" \"x\"",
    "mustRegexMatch (repeat 100000 \"(a|b)\") \"x\"",
    "mustRegexMatch (repeat 20000 \"(\") \"x\"",
    "regexMatch \"^(([a-z])+.)+[A-Z]([a-z])+$\" (repeat 10000000 \"a\")",
    "trimAll (repeat 5000000 \"ab\") (repeat 5000000 \"ba\")",
    "date (repeat 10000000 \"January\") now",
    "toDate (repeat 3000000 \"2006\") (repeat 3000000 \"2006\")",
    "urlParse (repeat 10000000 \"http://\")",
    "urlJoin (dict \"host\" (repeat 9000000 \"%\") \"path\" (repeat 9000000 \"%\"))",
    "encryptAES \"x\" (repeat 14000000 \"xx\")",
    "sha512sum (repeat 30000000 \"x\") | repeat 300000",
    "derivePassword 1 \"long\" (repeat 20000000 \"p\") \"u\" \"s\"",
    "genSelfSignedCert \"x\" (list) (splitList \",\" (repeat 300000 \"x,\")) 1",
    "genCAWithKey \"x\" 1 (repeat 3000000 \"-----BEGIN RSA PRIVATE KEY-----\")",
    "semverCompare (repeat 500 \"1\") \"1\"",
    "abbrev 10000000 (repeat 14000000 \"xx\")",
    "toStrings (until 1000000) | join \",\"",
    "tuple (until 700000) (until 700000)",
    "cat (repeat 9000000 \"x\") (repeat 9000000 \"x\") (repeat 9000000 \"x\")",
    "index (until 700000) 699999",
    "slice (until 700000) 1",
    "values (dict \"a\" (until 1000000)) | len",
    ".Files.Glob (repeat 1000000 \"{a,b}\")",
    ".Files.Glob (repeat 60 \"{a,b}\")",
];

/// Calls that keep nothing: in a loop each must come to its end all the same.
const AGAIN: &[&str] = &[
    "print (repeat 3000000 \"x\")",
    "toYaml (until 1000)",
    "regexMatch \"(x+x+)+y\" (repeat 10000 \"x\")",
    "sha256sum (repeat 1000000 \"x\")",
    "contains \"xy\" (repeat 1000000 \"x\")",
    "eq (repeat 1000000 \"x\") (repeat 1000000 \"x\")",
    "semverCompare \">=1.2.3-0 <2 || ^3 || ~4.5\" \"1.2.3\"",
    "fromYaml \"a: [1, 2, 3]\"",
    "randAlphaNum 1000",
    "uuidv4",
    "date \"2006-01-02\" now",
    "mustRegexMatch (print . \"(a|b){1,500}\") \"x\"",
    "tpl \"{{ . }}\" 1",
    "upper (repeat 100000 \"x\")",
    "sortAlpha (until 1000)",
    "deepCopy $.Values",
    "genPrivateKey \"ecdsa\"",
    "toToml (dict \"a\" (until 1000))",
    "dict \"a\" (list 1 2 3)",
];

/// Functions that are called with too much, and too often.
pub fn functions() -> Vec<Case> {
    let once = ONCE.iter().map(|call| {
        let text = format!("{{{{ $x := {call} }}}}a: 1");
        template(&format!("asked once: {call}"), text, End::Somehow)
    });
    let again = AGAIN.iter().map(|call| {
        let text = format!("{{{{ range 100000000 }}}}{{{{ $x := {call} }}}}{{{{ end }}}}");
        template(&format!("asked again and again: {call}"), text, limit("limit"))
    });
    once.chain(again).collect()
}

/// What nests too deep for the native stack.
pub fn nested() -> Vec<Case> {
    let around = |open: &str, inner: &str, close: &str| {
        format!("{}{inner}{}", open.repeat(10_000), close.repeat(10_000))
    };
    let mut cases = vec![
        template(
            "parentheses",
            format!("a: {{{{ {} }}}}", around("(", "1", ")")),
            End::Error("max expression depth exceeded"),
        ),
        template("if", around("{{ if 1 }}", "a: 1", "{{ end }}"), End::Prints("a: 1")),
        template(
            "else if",
            format!(
                "{{{{ if 0 }}}}{}{{{{ else }}}}a: 1{{{{ end }}}}",
                "{{ else if 0 }}".repeat(10_000)
            ),
            End::Prints("a: 1"),
        ),
        template("with", around("{{ with 1 }}", "a: 1", "{{ end }}"), End::Prints("a: 1")),
        template("range", around("{{ range list 1 }}", "a: 1", "{{ end }}"), End::Prints("a: 1")),
        template(
            "define",
            around("{{ define \"a\" }}", "x", "{{ end }}"),
            End::Error("unexpected <define> in command"),
        ),
        template("blocks never closed", "{{ if 1 }}".repeat(100_000), End::Somehow),
        template(
            "a long chain of fields",
            format!("a: {{{{ {} }}}}", ".a".repeat(10_000)),
            End::Somehow,
        ),
        template(
            "a long pipeline",
            format!("a: {{{{ 1 {} }}}}", "| int ".repeat(10_000)),
            End::Prints("a: 1"),
        ),
    ];
    for (name, open, close) in [("JSON lists", "[", "]"), ("JSON maps", "{\\\"a\\\":", "}")] {
        let call = format!(
            "{{{{ $x := fromJson (print (repeat 10000 \"{open}\") 1 (repeat 10000 \"{close}\")) }}}}a: {{{{ $x.Error }}}}"
        );
        cases.push(template(name, call, End::Prints("a: exceeded max depth")));
    }
    for (name, open, close) in
        [("YAML lists", "[", "]"), ("YAML maps", "{a: ", "}"), ("YAML lists in lines", "- ", "")]
    {
        let call = format!(
            "{{{{ $x := fromYaml (print (repeat 10000 \"{open}\") 1 (repeat 10000 \"{close}\")) }}}}a: {{{{ $x.Error | quote }}}}"
        );
        cases.push(template(name, call, End::Prints("max depth")));
        let printed =
            format!("a: {{{{ repeat 10000 \"{open}\" }}}}1{{{{ repeat 10000 \"{close}\" }}}}");
        cases.push(template(&format!("{name} in a manifest"), printed, End::Error("")));
        let values = format!("{}1{}", open.repeat(10_000), close.repeat(10_000));
        let values = file("values.yaml", format!("a: {values}"));
        cases.push(folder(&format!("{name} in values"), vec![values], End::Error("")));
    }
    let path = "charts/c/".repeat(100) + "Chart.yaml";
    cases.push(folder(
        "charts in charts",
        vec![file(&path, "apiVersion: v2\nname: c\nversion: 1.0.0\n")],
        End::Error("nested more than 64"),
    ));
    cases
}

/// Numbers, versions, dates.
pub fn numbers() -> Vec<Case> {
    let prints = |call: &str, text: &'static str| {
        template(call, format!("a: {{{{ {call} | quote }}}}"), End::Prints(text))
    };
    let ends = |call: &str| template(call, format!("a: {{{{ {call} | quote }}}}"), End::Somehow);
    vec![
        prints("addf \"1e308\" 1", "e+308"),
        prints("mulf \"1e308\" \"1e-308\"", "\"1\""),
        prints("int \"1e999999999\"", "\"0\""),
        prints("printf \"%d\" 9223372036854775807", "9223372036854775807"),
        prints("atoi (repeat 100000 \"9\")", "9223372036854775807"),
        ends("addf \"1e999999999\" 1"),
        ends("float64 \"1e999999999\""),
        ends("float64 (repeat 1000000 \"9\")"),
        ends("int64 (print \"0x\" (repeat 1000000 \"f\"))"),
        ends("divf \"1e-308\" \"1e308\""),
        ends("mulf \"1e300\" \"1e300\" \"1e-300\""),
        ends("printf \"%999999.999999f\" 1e300"),
        ends("printf \"%1000001d\" 1"),
        ends("printf \"%.1000000e\" 1.5"),
        ends("round 1e300 300"),
        ends("round 1.5 9223372036854775807"),
        ends("durationRound \"99999999999999999999h\""),
        ends("durationRound 9223372036854775807"),
        ends("duration \"9223372036854775807\""),
        ends("date \"2006\" 9223372036854775807"),
        ends("dateModify \"9999999h\" now"),
        ends(
            "(semver \"18446744073709551615.18446744073709551615.18446744073709551615\").IncMajor",
        ),
        ends("semver (repeat 1000000 \"1\")"),
        ends("semverCompare (repeat 100000 \"||1\") \"1\""),
        ends("fromJson \"{\\\"a\\\": 1e999999999}\""),
        ends("fromYaml (print \"a: \" (repeat 1000000 \"9\"))"),
        ends("fromYaml \"a: 1e999999999\""),
        ends("fromToml \"a = 1e999999999\""),
        ends("untilStep -9223372036854775808 9223372036854775807 4611686018427387904"),
        ends("seq 9223372036854775806 9223372036854775807"),
        ends("mod -9223372036854775808 -1"),
        ends("div -9223372036854775808 -1"),
        ends("slice \"abc\" 9223372036854775807"),
        ends("substr 9223372036854775807 -9223372036854775808 \"abc\""),
        ends("trunc -9223372036854775808 \"abc\""),
        ends("abbrevboth 9223372036854775807 9223372036854775807 \"abc\""),
        ends("wrap -9223372036854775808 \"a b\""),
        ends("index (list 1) 9223372036854775807"),
        ends("chunk -9223372036854775808 (list 1)"),
        ends("genSelfSignedCert \"x\" nil nil 9223372036854775807"),
        ends("getHostByName \"example.com\""),
    ]
}
