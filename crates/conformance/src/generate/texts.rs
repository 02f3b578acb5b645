//! Texts in the little languages that functions read.

use crate::dice::Dice;

/// A text of a sort that has a language; `None` for others.
pub fn of(sort: &str, dice: &mut Dice) -> Option<String> {
    Some(match sort {
        "Str" | "Words" => words(dice),
        "Regex" => regex(dice, 3),
        "Yaml" => super::yaml::document(dice),
        "YamlList" => super::yaml::list(dice),
        "Json" => json(dice, 3, true),
        "JsonList" => format!("[{}]", joined(dice, 3, ",", |dice| json(dice, 2, false))),
        "Toml" => toml(dice),
        "Semver" => semver(dice),
        "Constraint" => constraint(dice),
        "Layout" => layout(dice),
        "DateText" => date(dice),
        "DurText" => duration(dice),
        "Format" => format(dice),
        "Replacement" => dice.pick(&["", "x", "$1", "${1}y", "$0$0", "$$", "$a", "${name}"]).into(),
        "Separator" => dice.pick(&[",", "", " ", "l", "--", "\n", "."]).into(),
        "B64" | "B32" => joined(dice, 9, "", |d| d.pick(&["A", "b", "7", "=", "Z", "-"]).into()),
        _ => return None,
    })
}

fn joined(
    dice: &mut Dice,
    most: usize,
    between: &str,
    mut one: impl FnMut(&mut Dice) -> String,
) -> String {
    let count = dice.below(most + 1);
    (0..count).map(|_| one(dice)).collect::<Vec<_>>().join(between)
}

fn words(dice: &mut Dice) -> String {
    const PIECES: &[&str] = &[
        "hello",
        " ",
        "World",
        "-",
        "_",
        "42",
        "é",
        "ß",
        "\u{1F600}",
        "\n",
        "\t",
        "HTTP",
        "x",
        "Foo",
        ".",
        ",",
        "\u{130}",
        "İ",
        "ǆ",
        "'",
        "\"",
        "<",
        "&",
        "\\",
        "\u{2028}",
        "0",
        "a",
        "%",
        "\r\n",
        "\u{a0}",
        "null",
        ": ",
        "# ",
        "日本",
        "\u{7f}",
        "\u{1}",
        "A",
        "b",
        "/",
    ];
    joined(dice, 8, "", |dice| dice.pick(PIECES).into())
}

fn regex(dice: &mut Dice, depth: usize) -> String {
    const ATOMS: &[&str] = &[
        "a",
        "l",
        "o",
        "x",
        ".",
        "\\d",
        "\\w",
        "\\s",
        "\\S",
        "\\b",
        "\\B",
        "^",
        "$",
        "[a-z]",
        "[^a-m]",
        "[[:alpha:]]",
        "[\\d_]",
        "\\pL",
        "\\p{Greek}",
        "\\.",
        "é",
        "(?i)H",
        "[^\\n]",
        "\\A",
        "\\z",
        "\\x41",
        "[a-",
        "\\C",
        "\\8",
        "(?P<name>l+)",
        "(?s).",
        "(?m)^",
        "(?U)a+",
        "\\Q.\\E",
        "[[:word:]]",
        "\\PN",
        "[é-ü]",
        "\\_",
        "(?<n>o)",
    ];
    if depth == 0 || dice.chance(45) {
        return dice.pick(ATOMS).into();
    }
    let inner = regex(dice, depth - 1);
    match dice.below(10) {
        0 => format!("{inner}*"),
        1 => format!("{inner}+?"),
        2 => format!("({inner})"),
        3 => format!("(?:{inner}|{})", regex(dice, depth - 1)),
        4 => format!("{inner}{{{}}}", dice.pick(&["1", "2", "1,", "0,2", "2,1", "1001", ","])),
        5 => format!("{inner}|{}", regex(dice, depth - 1)),
        6 => format!("({inner}){}", dice.pick(&["?", "*", "+", "**", ""])),
        _ => format!("{inner}{}", regex(dice, depth - 1)),
    }
}

fn json(dice: &mut Dice, depth: usize, object: bool) -> String {
    const SCALARS: &[&str] = &[
        "1",
        "-0",
        "1.5",
        "1e3",
        "12345678901234567890",
        "1e400",
        "true",
        "false",
        "null",
        "\"\"",
        "\"text\"",
        "\"\\u00e9\\n\\\"\"",
        "\"\\ud83d\\ude00\"",
        "\"\\ud800\"",
        "01",
        "nul",
        "'x'",
        "NaN",
        "+1",
        ".5",
        "\"<&>\"",
        "\"\\u2028\"",
        "1.0",
        "1E+2",
        "-",
    ];
    if dice.chance(4) {
        return dice
            .pick(&["", "{", "[1,", "{\"a\"}", "{} x", "[1 2]", "\"", "{1:2}", "tru"])
            .into();
    }
    if !object && (depth == 0 || dice.chance(60)) {
        // Mostly right ones.
        return if dice.chance(90) {
            dice.pick(&SCALARS[..12]).into()
        } else {
            dice.pick(SCALARS).into()
        };
    }
    if object || dice.chance(50) {
        let body = joined(dice, 3, ", ", |dice| {
            let key = dice.pick(&["a", "b", "k", "10", "9", "", "\\u0041", "a"]);
            format!("\"{key}\": {}", json(dice, depth.saturating_sub(1), false))
        });
        format!("{{{body}}}")
    } else {
        let body = joined(dice, 3, ", ", |dice| json(dice, depth - 1, false));
        format!("[{body}]")
    }
}

fn toml(dice: &mut Dice) -> String {
    const LINES: &[&str] = &[
        "a = 1",
        "b = \"text\"",
        "c = 1.5",
        "d = true",
        "e = [1, 2]",
        "f = { x = 1, y = \"z\" }",
        "[t]",
        "[t.u]",
        "[[l]]",
        "g = 2024-02-29",
        "h = 2024-02-29T12:34:56Z",
        "i = 0x1F",
        "j = 'raw \\n'",
        "k = \"\"\"\nmulti\n\"\"\"",
        "l.m = 3",
        "# comment",
        "n = inf",
        "o = -nan",
        "p = 1_000",
        "q = [\"a\", 1]",
        "r = 07:32:00",
        "s = ",
        "= 1",
        "\"q k\" = 1",
        "a = 2",
        "u = 99999999999999999999",
        "v = \"\\u00e9\\U0001F600\"",
        "w = 1e3",
        "x = +5",
        "y = 0o17",
        "z = 01",
        "[t",
        "aa = [\n1,\n2,\n]",
        "bb = 2024-02-29 12:34:56.789",
        "cc = \"\\q\"",
        "dd = {}",
        "ee = []",
    ];
    joined(dice, 5, "\n", |dice| dice.pick(LINES).into())
}

fn semver(dice: &mut Dice) -> String {
    let numbers =
        ["1.2.3", "0.0.1", "10.20.30", "1.2", "3", "v1.2.3", "1.02.3", "1.2.3.4", "", "x.y"];
    let tails =
        ["", "", "", "-alpha", "-alpha.1", "+build.5", "-rc.1+x", "-01", "-", "+", "-a..b", "-é"];
    format!("{}{}", dice.pick(&numbers), dice.pick(&tails))
}

fn constraint(dice: &mut Dice) -> String {
    const OPERATORS: &[&str] =
        &["", "=", "!=", ">", "<", ">=", "=>", "<=", "=<", "~", "~>", "^", "^ ", ">=v", "=="];
    const VERSIONS: &[&str] =
        &["1.2.3", "1.2", "1", "1.2.x", "1.*", "*", "x", "2.0.0-beta", "0.0.3", "0", "1.2.3+b", ""];
    let one = |dice: &mut Dice| match dice.below(10) {
        0 => format!("{} - {}", dice.pick(VERSIONS), dice.pick(VERSIONS)),
        _ => format!("{}{}", dice.pick(OPERATORS), dice.pick(VERSIONS)),
    };
    let first = one(dice);
    match dice.below(6) {
        0 => format!("{first}, {}", one(dice)),
        1 => format!("{first} || {}", one(dice)),
        2 => format!("{first} {}", one(dice)),
        _ => first,
    }
}

fn layout(dice: &mut Dice) -> String {
    const PARTS: &[&str] = &[
        "2006",
        "06",
        "01",
        "1",
        "Jan",
        "January",
        "02",
        "2",
        "_2",
        "002",
        "__2",
        "Mon",
        "Monday",
        "15",
        "03",
        "3",
        "04",
        "4",
        "05",
        "5",
        "PM",
        "pm",
        "MST",
        "Z07:00",
        "-0700",
        "-07",
        "-07:00:00",
        ".000",
        ".999",
        ",00",
        "Z0700",
        "Z07",
        " ",
        "-",
        ":",
        "T",
        "x",
        "\u{e9}",
        ".9",
        ".0",
    ];
    match dice.below(4) {
        0 => dice
            .pick(&[
                "2006-01-02",
                "2006-01-02T15:04:05Z07:00",
                "Mon, 02 Jan 2006 15:04:05 MST",
                "15:04",
                "2006",
            ])
            .into(),
        _ => joined(dice, 6, "", |dice| dice.pick(PARTS).into()),
    }
}

fn date(dice: &mut Dice) -> String {
    dice.pick(&[
        "2024-02-29",
        "2024-02-30",
        "2023-07-01T01:02:03+02:00",
        "Thu, 29 Feb 2024 12:34:56 UTC",
        "7:08",
        "2021",
        "",
        "Feb 3 2020",
        "24",
        "12:60",
        "2024-13-01",
        "2024-02-29T12:34:56.789Z",
        "2024-2-9",
        "x",
    ])
    .into()
}

fn duration(dice: &mut Dice) -> String {
    dice.pick(&[
        "1h",
        "-1.5h",
        "+2m30s",
        "",
        "1d",
        "72h3m0.5s",
        "100ms",
        "3us2ns",
        "x",
        "9999999h",
        "0",
        "5",
    ])
    .into()
}

fn format(dice: &mut Dice) -> String {
    let text = joined(dice, 3, " ", |dice| {
        const VERBS: &[&str] = &[
            "v", "v", "s", "d", "q", "t", "f", "e", "g", "x", "X", "T", "c", "U", "b", "o", "O",
            "E", "G", "F", "w", "z", "!", "%", "", "i",
        ];
        let flags = dice.pick(&["", "", "", "+", "-", "#", "0", " ", "+#", "-0", "# "]);
        let width = dice.pick(&["", "", "", "5", "12", "*", "[2]*", "0"]);
        let precision = dice.pick(&["", "", "", ".2", ".0", ".", ".*", ".10"]);
        let index = dice.pick(&["", "", "", "", "", "[1]", "[2]", "[9]", "[x]", "[]", "[1"]);
        format!("%{flags}{width}{precision}{index}{}", dice.pick(VERBS))
    });
    if dice.chance(5) { "plain".into() } else { text }
}

/// A text as a literal of a template.
pub fn literal(text: &str, dice: &mut Dice) -> String {
    let raw = !text.contains('`') && !text.contains('\r') && dice.chance(25);
    if raw {
        return format!("`{text}`");
    }
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            '\r' => quoted.push_str("\\r"),
            c if c.is_control() => quoted.push_str(&format!("\\x{:02x}", u32::from(c))),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}
