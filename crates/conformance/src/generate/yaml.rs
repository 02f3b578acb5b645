//! YAML texts: odd scalars, odd shapes, and now and then a mistake.

use crate::dice::Dice;

/// Scalars that Helm's YAML reads in ways of its own.
pub const SCALARS: &[&str] = &[
    "1",
    "-0",
    "007",
    "0o17",
    "0x1F",
    "0b11",
    "1_000",
    "1.5",
    "1.",
    ".5",
    "1e3",
    "1e+3",
    "1E400",
    "-.5",
    "+1",
    "0.1e-7",
    "123456789012345678901234567890",
    "9007199254740993",
    "yes",
    "No",
    "on",
    "OFF",
    "y",
    "N",
    "true",
    "True",
    "FALSE",
    "null",
    "~",
    "Null",
    "",
    "''",
    "\"\"",
    "'it''s'",
    "\"a\\tb\\u00e9\\x41\\n\"",
    "plain text",
    "a: b",
    "a#b",
    "a #b",
    "- x",
    "[",
    "{",
    "@at",
    "`tick`",
    "%pct",
    "!tag",
    "!!str 12",
    "!!int '3'",
    "!!float 1",
    "!!binary aGk=",
    "&anchor x",
    "*anchor",
    "2024-02-29",
    "2024-02-29T12:34:56Z",
    "12:30",
    "1:30:45",
    "0.",
    "+.inf",
    ".NaN",
    "-.Inf",
    "<<",
    "=",
    "?",
    "? x",
    "|",
    ">",
    "1e",
    "0x",
    "0xg",
    "_1",
    "1__0",
    "\u{e9}t\u{e9}",
    "\"\\ud83d\"",
    "'x\\n'",
    "---",
    "...",
    "\u{85}",
    "x\ty",
    "key:",
    ":",
    "-",
    "--",
    "\u{1F600}",
    "08",
    "0779",
    "1,000",
    "\"tab\t\"",
    "!!null x",
    "!!bool yes",
    "0o8",
    "-0x10",
    "-0b1",
];

const KEYS: &[&str] = &[
    "a", "b", "c", "key", "x-y", "10", "9", "y", "true", "null", "1.5", "\"q k\"", "'s'", "<<",
    "a", "~", "é", "? c", "0x10", "name", "on",
];

/// A mapping in block style.
pub fn document(dice: &mut Dice) -> String {
    match dice.below(20) {
        0 => dice.pick(SCALARS).into(),
        1 => list(dice),
        2 => flow(dice, 3),
        3 => format!("---\n{}", block(dice, 0, 3)),
        4 => format!("{}...\n", block(dice, 0, 2)),
        5 => format!("# top\n\n{}---\nsecond: 1\n", block(dice, 0, 2)),
        _ => block(dice, 0, 3),
    }
}

/// A sequence.
pub fn list(dice: &mut Dice) -> String {
    let count = dice.below(4);
    let mut text = String::new();
    for _ in 0..count {
        let item = match dice.below(6) {
            0 => flow(dice, 2),
            1 => format!("k: {}\n  l: {}", dice.pick(SCALARS), dice.pick(SCALARS)),
            2 => format!("- {}", dice.pick(SCALARS)),
            _ => dice.pick(SCALARS).to_owned(),
        };
        text.push_str(&format!("- {item}\n"));
    }
    if count == 0 { "[]".into() } else { text }
}

fn scalar(dice: &mut Dice) -> String {
    // Most odd ones are mistakes in some place; plain ones keep texts readable.
    if dice.chance(55) {
        return dice
            .pick(&["1", "text", "true", "\"quoted\"", "null", "1.5", "two words", "''"])
            .into();
    }
    dice.pick(SCALARS).into()
}

fn block(dice: &mut Dice, indent: usize, depth: usize) -> String {
    let pad = " ".repeat(indent);
    let mut text = String::new();
    for _ in 0..=dice.below(4) {
        let key = if dice.chance(60) { dice.pick(&KEYS[..5]) } else { dice.pick(KEYS) };
        match dice.below(14) {
            0 | 1 if depth > 0 => {
                let inner = block(dice, indent + 2, depth - 1);
                text.push_str(&format!("{pad}{key}:\n{inner}"));
            }
            2 => text.push_str(&format!("{pad}{key}: {}\n", flow(dice, 2))),
            3 => {
                let style = dice.pick(&["|", "|-", "|+", ">", ">-", ">+", "|2", ">1-"]);
                let lines = dice.pick(&[
                    "one\ntwo\n",
                    "one\n\n  two\n\n\n",
                    "  lead\nx\n",
                    "a b\nc d\n\ne\n",
                    "\n\nx\n",
                ]);
                let body: String = lines.lines().map(|line| format!("{pad}  {line}\n")).collect();
                text.push_str(&format!("{pad}{key}: {style}\n{body}"));
            }
            4 => {
                let same = dice.chance(50);
                let dash = if same { pad.clone() } else { format!("{pad}  ") };
                let items: String =
                    (0..=dice.below(3)).map(|_| format!("{dash}- {}\n", scalar(dice))).collect();
                text.push_str(&format!("{pad}{key}:\n{items}"));
            }
            5 => text.push_str(&format!("{pad}{key}: &anc {}\n{pad}also: *anc\n", scalar(dice))),
            6 if depth > 0 => {
                text.push_str(&format!(
                    "{pad}base: &b {{p: 1, q: 2}}\n{pad}{key}:\n{pad}  <<: *b\n{pad}  q: {}\n",
                    scalar(dice)
                ));
            }
            7 => {
                text.push_str(&format!("{pad}# comment\n{pad}{key}: {} # trailing\n", scalar(dice)))
            }
            8 if dice.chance(30) => text.push_str(&format!("{pad} {key}: bad indent\n")),
            9 if dice.chance(30) => text.push_str(&format!("{pad}{key} no colon\n")),
            10 if dice.chance(30) => text.push_str(&format!("\t{key}: tab\n")),
            11 => {
                text.push_str(&format!("{pad}{key}: {}\n{pad}  {}\n", scalar(dice), scalar(dice)))
            }
            _ => text.push_str(&format!("{pad}{key}: {}\n", scalar(dice))),
        }
    }
    text
}

fn flow(dice: &mut Dice, depth: usize) -> String {
    if depth == 0 || dice.chance(35) {
        return scalar(dice);
    }
    let count = dice.below(4);
    if dice.chance(50) {
        let items: Vec<_> = (0..count).map(|_| flow(dice, depth - 1)).collect();
        format!("[{}{}]", items.join(", "), dice.pick(&["", "", "", ","]))
    } else {
        let items: Vec<_> =
            (0..count).map(|_| format!("{}: {}", dice.pick(KEYS), flow(dice, depth - 1))).collect();
        format!("{{{}}}", items.join(", "))
    }
}
