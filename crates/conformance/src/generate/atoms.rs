//! Things that need no call: literals, paths into values and objects, by sort.

mod numbers;

use numbers::{FLOAT, INT64, NUM, NUM_TEXT, SMALL};

/// An expression without a call at its top, and the Go type of its value.
pub type Atom = (&'static str, &'static str);

/// Keys of values.yaml that cases draw from; a case has those it uses. The type is that of a
/// values file: every number is a `float64`.
pub const VALUES: &[(&str, &str)] = &[
    ("str", "hello world"),
    ("empty", "\"\""),
    ("uni", "\"h\u{e9}llo w\u{f6}rld \u{2713} \u{1F600}\""),
    ("multi", "|\n  line one\n  line two\n\n  line four"),
    ("int", "42"),
    ("neg", "-7"),
    ("zero", "0"),
    ("big", "123456789"),
    ("float", "3.75"),
    ("small", "0.00001"),
    ("huge", "1e21"),
    ("octal", "0755"),
    ("yes", "true"),
    ("no", "false"),
    ("nothing", "null"),
    ("list", "[3, a, true, null, 1.5]"),
    ("strs", "[banana, apple, cherry, apple, \"\"]"),
    ("nums", "[3, 1, 2, 10, 1]"),
    ("maps", "[{name: a, value: 1}, {name: b}]"),
    ("lists", "[[1, 2], [3], []]"),
    ("emptyList", "[]"),
    ("emptyMap", "{}"),
    ("map", "{a: 1, b: two, \"c d\": {e: f}, \"10\": ten, \"9\": nine, n: null}"),
    ("deep", "{x: {y: {z: leaf}}, l: [{k: v}], a: {b: 2}}"),
    ("strmap", "{alpha: one, beta: two}"),
    ("day", "2024-02-29"),
    ("stamp", "\"2024-02-29T12:34:56Z\""),
    ("word", "y"),
    ("numtext", "\"0x1F\""),
    ("html", "\"<a href='x'>T&J \\\"q\\\"</a>\""),
    ("ver", "v1.2.3-beta.1+build.5"),
];

/// Lines of `--set` that give `int64` and friends; `$.Values.setInt` and so on.
pub const SET: &[(&str, &str)] = &[
    ("setInt", "setInt=7"),
    ("setBig", "setBig=9007199254740993"),
    ("setList", "setList={1,b,true,null}"),
    ("setMap", "setMap.a.b=5"),
    ("setText", "setText=x\\,y"),
];

/// Atoms of a sort. Paths start at `$`.
pub fn of(sort: &str) -> &'static [Atom] {
    match sort {
        "Str" | "Separator" | "Replacement" => STR,
        "Words" => WORDS,
        "Int" | "Small" | "Days" => SMALL,
        "Int64" => INT64,
        "Float" => FLOAT,
        "Num" => NUM,
        "NumText" => NUM_TEXT,
        "Bool" => BOOL,
        "List" | "Sized" => LIST,
        "StrList" | "Names" => STR_LIST,
        "NumList" => NUM_LIST,
        "Ips" => IPS,
        "Map" | "Deep" => MAP,
        "Key" => KEY,
        "Time" => TIME,
        "RealTime" => REAL_TIME,
        "Zone" => ZONE,
        "Duration" => DURATION,
        "Dur" => DUR,
        "Version" => VERSION,
        "Path" => PATH,
        "Url" => URL,
        "UrlMap" => URL_MAP,
        "KindName" => KIND_NAME,
        "TypeName" => TYPE_NAME,
        "TemplateName" => TEMPLATE_NAME,
        "Context" => CONTEXT,
        "ApiVersion" => &[("\"v1\"", "string"), ("\"apps/v1\"", "string"), ("\"\"", "string")],
        "Kind" => &[("\"Secret\"", "string"), ("\"Deployment\"", "string")],
        "PasswordKind" => PASSWORD_KIND,
        "KeyKind" => KEY_KIND,
        "AesKey" => &[("\"k\"", "string"), ("\"secretkey\"", "string"), ("\"\"", "string")],
        "AesText" => AES_TEXT,
        "B64" => B64,
        "B32" => B32,
        "PrivateKey" => PRIVATE_KEY,
        "KeyText" => &[("($.Files.Get \"pki/ec.pem\" | b64enc)", "string"), ("\"eA==\"", "string")],
        "CertText" => &[("($.Files.Get \"pki/cert.pem\" | b64enc)", "string"), ("\"\"", "string")],
        "CA" => &[("(genCAWithKey \"ca\" 10 ($.Files.Get \"pki/ec.pem\"))", "certificate")],
        "Object" => OBJECT,
        "OwnMap" => OWN_MAP,
        "Plain" => PLAIN,
        "DayLayout" => &[("\"2006-1-2\"", "string"), ("\"2006-01-02\"", "string")],
        "Day" => &[("\"2024-02-29\"", "string"), ("$.Values.day", "string")],
        _ => ANY,
    }
}

const STR: &[Atom] = &[
    ("\"hello world\"", "string"),
    ("\"\"", "string"),
    ("\"a\"", "string"),
    ("\"foo/bar.txt\"", "string"),
    ("\"  padded\\t\\n\"", "string"),
    ("\"1,2,,3\"", "string"),
    ("\"<b>&'\\\"</b>\"", "string"),
    ("`raw\\n\"x\"`", "string"),
    ("\"\\u00e9\\u2713\\U0001F600\"", "string"),
    ("\"\\xff\\x00z\"", "string"),
    ("$.Values.str", "string"),
    ("$.Values.empty", "string"),
    ("$.Values.uni", "string"),
    ("$.Values.multi", "string"),
    ("$.Values.html", "string"),
    ("$.Values.day", "string"),
    ("$.Values.numtext", "string"),
    ("$.Values.setText", "string"),
    ("$.Release.Name", "string"),
    ("$.Chart.Name", "string"),
    ("$.Template.Name", "string"),
    ("$.Values.strmap.alpha", "string"),
    ("(index $.Values.strs 1)", "string"),
    ("($.Files.Get \"data/a.txt\")", "string"),
];
const WORDS: &[Atom] = &[
    ("\"hello big world\"", "string"),
    ("\"fooBarBaz_quxHTTPServer\"", "string"),
    ("\"some-kebab-case Name\"", "string"),
    ("\"First Try\"", "string"),
    ("\"a1B2 c3D4 ID x_y__z\"", "string"),
    ("\"\\u01c6 \\u00dfa \\u0130i\"", "string"),
    ("\"averyveryverylongwordwithoutspaces and more\"", "string"),
    ("$.Values.uni", "string"),
    ("$.Values.multi", "string"),
    ("$.Values.str", "string"),
];
const BOOL: &[Atom] =
    &[("true", "bool"), ("false", "bool"), ("$.Values.yes", "bool"), ("$.Values.word", "bool")];
const LIST: &[Atom] = &[
    ("$.Values.list", "list"),
    ("$.Values.strs", "list"),
    ("$.Values.nums", "list"),
    ("$.Values.maps", "list"),
    ("$.Values.lists", "list"),
    ("$.Values.emptyList", "list"),
    ("$.Values.setList", "list"),
    ("(list 1 \"b\" nil 2.5 true)", "list"),
    ("(list)", "list"),
    ("(splitList \",\" \"a,b,,c\")", "[]string"),
    ("(until 4)", "[]int"),
    ("(chunk 2 (list 1 2 3))", "[][]"),
    ("($.Files.GetBytes \"data/a.txt\")", "bytes"),
    ("$.Chart.Keywords", "[]string"),
    ("$.Capabilities.APIVersions", "VersionSet"),
    ("(\"text\" | toString)", "string"),
];
const STR_LIST: &[Atom] = &[
    ("$.Values.strs", "list"),
    ("(list \"x.example.com\" \"*.y.org\")", "list"),
    ("(splitList \" \" \"b a c\")", "[]string"),
    ("(list)", "list"),
    ("(list \"a\" 1)", "list"),
    ("nil", "nil"),
];
const NUM_LIST: &[Atom] =
    &[("(until 3)", "[]int"), ("(untilStep 10 0 -3)", "[]int"), ("$.Values.nums", "list")];
const IPS: &[Atom] = &[
    ("(list \"10.0.0.1\" \"::1\")", "list"),
    ("(list)", "list"),
    ("nil", "nil"),
    ("(list \"300.1.1.1\")", "list"),
    ("(list 1)", "list"),
];
const MAP: &[Atom] = &[
    ("$.Values.map", "map"),
    ("$.Values.deep", "map"),
    ("$.Values.strmap", "map"),
    ("$.Values.emptyMap", "map"),
    ("$.Values.setMap", "map"),
    ("$.Values", "Values"),
    ("$.Release", "map"),
    ("$.Template", "map"),
    ("(dict \"a\" 1 \"b\" \"two\" \"x\" (dict \"y\" 2))", "map"),
    ("(dict)", "map"),
    ("(dict \"a\" nil \"l\" (list 1))", "map"),
    ("(split \",\" \"p,q\")", "map[string]string"),
    ("(deepCopy $.Values.deep)", "map"),
    ("(index $.Values.maps 0)", "map"),
    ("$.Values.nothing", "nil"),
];
/// Maps that functions change: those of a type of their own lose it in Go then, and not here.
const OWN_MAP: &[Atom] = &[
    ("$.Values.map", "map"),
    ("$.Values.deep", "map"),
    ("$.Values.strmap", "map"),
    ("$.Values.emptyMap", "map"),
    ("$.Values.setMap", "map"),
    ("$.Release", "map"),
    ("(dict \"a\" 1 \"b\" \"two\" \"x\" (dict \"y\" 2))", "map"),
    ("(dict)", "map"),
    ("(dict \"a\" nil \"l\" (list 1))", "map"),
    ("(split \",\" \"p,q\")", "map[string]string"),
    ("(deepCopy $.Values.deep)", "map"),
    ("(index $.Values.maps 0)", "map"),
    ("$.Values.nothing", "nil"),
];
const KEY: &[Atom] = &[
    ("\"a\"", "string"),
    ("\"b\"", "string"),
    ("\"x\"", "string"),
    ("\"y\"", "string"),
    ("\"c d\"", "string"),
    ("\"missing\"", "string"),
    ("\"alpha\"", "string"),
    ("\"\"", "string"),
    ("\"n\"", "string"),
    ("$.Values.str", "string"),
];
const TIME: &[Atom] = &[
    ("(toDate \"2006-01-02\" \"2024-02-29\")", "Time"),
    ("(mustToDate \"2006-01-02T15:04:05.999Z07:00\" \"2023-07-01T01:02:03.45+02:00\")", "Time"),
    ("(toDate \"15:04\" \"7:08\")", "Time"),
    ("1700000000", "int"),
    ("0", "int"),
    ("(int64 951782400)", "int64"),
];
const REAL_TIME: &[Atom] = &[
    ("(toDate \"2006-01-02\" \"2024-02-29\")", "Time"),
    ("(toDate \"2006-01-02 15:04:05 MST\" \"1999-12-31 23:59:59 EST\")", "Time"),
    ("(mustToDate \"2006-01-02T15:04:05Z07:00\" \"2023-07-01T01:02:03+05:30\")", "Time"),
    ("((mustToDate \"2006\" \"2021\").AddDate 0 1 -1)", "Time"),
];
const ZONE: &[Atom] = &[
    ("\"UTC\"", "string"),
    ("\"\"", "string"),
    ("\"Nowhere/Land\"", "string"),
    ("\"utc\"", "string"),
];
const DURATION: &[Atom] = &[
    ("(mustToDuration \"1h2m3.5s\")", "Duration"),
    ("(mustToDuration \"-90m\")", "Duration"),
    ("(mustToDuration 5)", "Duration"),
];
const DUR: &[Atom] = &[
    ("\"1h30m\"", "string"),
    ("\"95\"", "string"),
    ("\"2h45m10s500ms\"", "string"),
    ("\"-3us\"", "string"),
    ("\"1.5h\"", "string"),
    ("\"\"", "string"),
    ("\"abc\"", "string"),
    ("\"99999h\"", "string"),
    ("100", "int"),
    ("2.75", "float64"),
    ("-1", "int"),
    ("$.Values.int", "float64"),
    ("$.Values.setInt", "int64"),
    ("(mustToDuration \"36h\")", "Duration"),
    ("nil", "nil"),
    ("true", "bool"),
];
const VERSION: &[Atom] = &[
    ("(semver \"1.2.3\")", "Version"),
    ("(semver \"v2.0.0-rc.1+b7\")", "Version"),
    ("(semver $.Values.ver)", "Version"),
];
const PATH: &[Atom] = &[
    ("\"/a/b/c.tar.gz\"", "string"),
    ("\"a//b/../c/.\"", "string"),
    ("\"\"", "string"),
    ("\"/\"", "string"),
    ("\".hidden\"", "string"),
    ("\"../../x\"", "string"),
    ("\"c:\\\\win\\\\x.y\"", "string"),
    ("\"dir/\"", "string"),
];
const URL: &[Atom] = &[
    ("\"https://u:p@example.com:8080/a%20b/c?q=1&r=x+y#frag\"", "string"),
    ("\"http://[::1]:80/\"", "string"),
    ("\"mailto:a@b.c\"", "string"),
    ("\"/only/path?x\"", "string"),
    ("\"//host/p\"", "string"),
    ("\"http://a b/\"", "string"),
    ("\"%zz\"", "string"),
    ("\"\"", "string"),
    ("\"http://h:port/\"", "string"),
    ("\"s3+x://k/\u{fc}\"", "string"),
];
const URL_MAP: &[Atom] = &[
    ("(urlParse \"https://u:p@example.com:8080/a%20b?q=1#f\")", "map"),
    ("(dict \"scheme\" \"http\" \"host\" \"h:80\" \"path\" \"/p\" \"query\" \"a=b c\")", "map"),
    ("(dict \"host\" \"h\" \"userinfo\" \"me:pw\" \"fragment\" \"x y\")", "map"),
    ("(dict \"opaque\" \"o\" \"scheme\" \"s\")", "map"),
    ("(dict \"host\" 1)", "map"),
    ("(dict)", "map"),
];
const KIND_NAME: &[Atom] = &[
    ("\"string\"", "string"),
    ("\"map\"", "string"),
    ("\"slice\"", "string"),
    ("\"float64\"", "string"),
    ("\"invalid\"", "string"),
    ("\"int\"", "string"),
    ("\"bool\"", "string"),
    ("\"struct\"", "string"),
];
const TYPE_NAME: &[Atom] = &[
    ("\"string\"", "string"),
    ("\"map[string]interface {}\"", "string"),
    ("\"[]interface {}\"", "string"),
    ("\"float64\"", "string"),
    ("\"int64\"", "string"),
    ("\"semver.Version\"", "string"),
    ("\"*semver.Version\"", "string"),
    ("\"common.Values\"", "string"),
    ("\"time.Time\"", "string"),
];
const TEMPLATE_NAME: &[Atom] = &[
    ("\"lib.hello\"", "string"),
    ("\"lib.echo\"", "string"),
    ("\"lib.fails\"", "string"),
    ("\"lib.none\"", "string"),
    ("\"c/templates/_lib.tpl\"", "string"),
];
const CONTEXT: &[Atom] = &[
    ("$", "map"),
    ("$", "map"),
    ("$", "map"),
    ("$.Values", "Values"),
    ("(dict \"Values\" $.Values \"Template\" $.Template)", "map"),
    ("nil", "nil"),
    ("\"x\"", "string"),
];
const PASSWORD_KIND: &[Atom] = &[
    ("\"long\"", "string"),
    ("\"maximum\"", "string"),
    ("\"medium\"", "string"),
    ("\"short\"", "string"),
    ("\"basic\"", "string"),
    ("\"pin\"", "string"),
    ("\"other\"", "string"),
];
const KEY_KIND: &[Atom] = &[
    ("\"ecdsa\"", "string"),
    ("\"ed25519\"", "string"),
    ("\"rsa\"", "string"),
    ("\"\"", "string"),
    ("\"bogus\"", "string"),
];
const AES_TEXT: &[Atom] = &[
    ("\"30tEfhuJSVRhpG97XCuWgz2okj7L8vQ1s6V9zVUPeDQ=\"", "string"),
    ("\"AAAA\"", "string"),
    ("\"!\"", "string"),
];
const B64: &[Atom] = &[
    ("\"aGVsbG8=\"", "string"),
    ("\"aGVsbG8\"", "string"),
    ("\"\"", "string"),
    ("\"a b\"", "string"),
    ("\"//79\"", "string"),
    ("\"aGVs\\nbG8=\"", "string"),
    ("(b64enc $.Values.uni)", "string"),
];
const B32: &[Atom] = &[
    ("\"NBSWY3DP\"", "string"),
    ("\"NBSWY===\"", "string"),
    ("\"nbswy3dp\"", "string"),
    ("\"1\"", "string"),
    ("(b32enc \"x\")", "string"),
];
const PRIVATE_KEY: &[Atom] = &[
    ("($.Files.Get \"pki/ec.pem\")", "string"),
    ("($.Files.Get \"pki/ed25519.pem\")", "string"),
    ("\"no key\"", "string"),
];

/// Things with fields and methods of their own.
const OBJECT: &[Atom] = &[
    ("$.Files", "files"),
    ("$.Capabilities.KubeVersion", "KubeVersion"),
    ("$.Capabilities.KubeVersion.Version", "string"),
    ("$.Capabilities.KubeVersion.Minor", "string"),
    ("$.Capabilities.HelmVersion.Version", "string"),
    ("($.Capabilities.APIVersions.Has \"apps/v1\")", "bool"),
    ("$.Chart", "chart"),
    ("$.Chart.Version", "string"),
    ("$.Chart.Maintainers", "list"),
    ("$.Chart.Annotations", "map"),
    ("$.Chart.Dependencies", "list"),
    ("$.Chart.Type", "string"),
    ("$.Chart.Nope", "missing"),
    ("($.Files.Glob \"data/*\")", "files"),
    ("($.Files.Glob \"data/*\").AsConfig", "string"),
    ("($.Files.Glob \"**\").AsSecrets", "string"),
    ("($.Files.Lines \"data/a.txt\")", "[]string"),
    ("($.Files.Get 1)", "string"),
    ("$.Values.YAML", "string"),
    ("$.Values.AsMap", "map"),
    ("($.Values.Table \"deep.x\")", "Values"),
    ("($.Values.PathValue \"deep.x.y.z\")", "string"),
    ("($.Values.PathValue \"no\")", "string"),
    ("(semver \"1.2.3\").Major", "uint64"),
    ("((semver \"1.2.3-a+b\").Prerelease)", "string"),
    ("((semver \"1.2.3\").Compare (semver \"1.10.0\"))", "int"),
    ("((semver \"1.2.3\").IncMinor)", "Version"),
    ("((toDate \"2006-01-02\" \"2024-02-29\").AddDate 1 0 0)", "Time"),
    ("((toDate \"2006-01-02\" \"2024-02-29\").Weekday)", "Weekday"),
    ("((toDate \"2006-01-02\" \"2024-02-29\").Month)", "Month"),
    ("((toDate \"2006-01-02\" \"2024-02-29\").Format \"Jan _2\")", "string"),
    ("(mustToDuration \"90s\").Minutes", "float64"),
    ("((mustToDuration \"90s\").Round (mustToDuration \"1m\"))", "Duration"),
    ("$.Release.Revision", "int"),
    ("$.Release.IsInstall", "bool"),
    ("$.Release.Nope", "missing"),
    ("$.Subcharts", "map"),
];

/// What may be put into a map that is there already: nothing that could contain that map, because
/// Helm dies of printing one that contains itself.
const PLAIN: &[Atom] = &[
    ("1", "int"),
    ("\"text\"", "string"),
    ("nil", "nil"),
    ("(dict \"k\" \"v\")", "map"),
    ("(list 1 \"b\" nil)", "list"),
    ("$.Values.float", "float64"),
    ("$.Values.strs", "list"),
];

/// One of everything.
pub const ANY: &[Atom] = &[
    ("nil", "nil"),
    ("true", "bool"),
    ("false", "bool"),
    ("0", "int"),
    ("7", "int"),
    ("-3", "int"),
    ("1.5", "float64"),
    ("\"\"", "string"),
    ("\"text\"", "string"),
    ("$.Values.str", "string"),
    ("$.Values.uni", "string"),
    ("$.Values.multi", "string"),
    ("$.Values.int", "float64"),
    ("$.Values.float", "float64"),
    ("$.Values.big", "float64"),
    ("$.Values.huge", "float64"),
    ("$.Values.setInt", "int64"),
    ("$.Values.yes", "bool"),
    ("$.Values.nothing", "nil"),
    ("$.Values.missing", "missing"),
    ("$.Values.missing.deeper", "missing"),
    ("$.Values.list", "list"),
    ("$.Values.strs", "list"),
    ("$.Values.maps", "list"),
    ("$.Values.emptyList", "list"),
    ("$.Values.map", "map"),
    ("$.Values.deep", "map"),
    ("$.Values.emptyMap", "map"),
    ("$.Values", "Values"),
    ("(dict \"k\" \"v\")", "map"),
    ("(list 1 \"b\" nil)", "list"),
    ("(splitList \",\" \"a,b\")", "[]string"),
    ("(until 3)", "[]int"),
    ("(semver \"1.2.3\")", "Version"),
    ("(toDate \"2006-01-02\" \"2024-02-29\")", "Time"),
    ("(mustToDuration \"1h\")", "Duration"),
    ("$.Release", "map"),
    ("$.Chart.Name", "string"),
    ("$.Files", "files"),
    ("$.Capabilities.KubeVersion", "KubeVersion"),
    ("($.Files.GetBytes \"data/a.txt\")", "bytes"),
];
