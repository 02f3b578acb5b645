//! The list of all functions: it is complete, its examples are true, and the reference page is made
//! of it.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;
use std::time::UNIX_EPOCH;

use catamaran_chart::reference::{Family, Item, Origin, families, functions};
use catamaran_chart::{
    Budget, Capabilities, Chart, CompiledChart, Lookups, Profile, ReleaseFacts, RenderInput,
};
use flate2::{Compression, write::GzEncoder};
use serde_json::Map;

// The names of Helm 4.3.1, as the real binary knows them.
const GO: &str = "\
    and or not len index print printf println html js urlquery call eq ne lt le gt ge";
const HELM: &str = "\
    include tpl required lookup toYaml mustToYaml toYamlPretty fromYaml fromYamlArray toToml \
    mustToToml fromToml fromJsonArray mustToDuration durationSeconds durationMilliseconds \
    durationMicroseconds durationNanoseconds durationMinutes durationHours durationDays \
    durationWeeks durationRoundTo durationTruncateTo";
const SPRIG: &str = "\
    abbrev abbrevboth add add1 add1f addf adler32sum ago all any append atoi b32dec b32enc \
    b64dec b64enc base bcrypt biggest buildCustomCert camelcase cat ceil chunk clean coalesce \
    compact concat contains date dateInZone dateModify date_in_zone date_modify decryptAES \
    deepCopy deepEqual default derivePassword dict dig dir div divf duration durationRound empty \
    encryptAES ext fail first float64 floor fromJson genCA genCAWithKey genPrivateKey \
    genSelfSignedCert genSelfSignedCertWithKey genSignedCert genSignedCertWithKey get \
    getHostByName has hasKey hasPrefix hasSuffix hello htmlDate htmlDateInZone htpasswd indent \
    initial initials int int64 isAbs join kebabcase keys kindIs kindOf last list lower max maxf \
    merge mergeOverwrite min minf mod mul mulf mustAppend mustChunk mustCompact mustDateModify \
    mustDeepCopy mustFirst mustFromJson mustHas mustInitial mustLast mustMerge \
    mustMergeOverwrite mustPrepend mustPush mustRegexFind mustRegexFindAll mustRegexMatch \
    mustRegexReplaceAll mustRegexReplaceAllLiteral mustRegexSplit mustRest mustReverse mustSlice \
    mustToDate mustToJson mustToPrettyJson mustToRawJson mustUniq mustWithout must_date_modify \
    nindent nospace now omit osBase osClean osDir osExt osIsAbs pick pluck plural prepend push \
    quote randAlpha randAlphaNum randAscii randBytes randInt randNumeric regexFind regexFindAll \
    regexMatch regexQuoteMeta regexReplaceAll regexReplaceAllLiteral regexSplit repeat replace \
    rest reverse round semver semverCompare seq set sha1sum sha256sum sha512sum shuffle slice \
    snakecase sortAlpha split splitList splitn squote sub subf substr swapcase ternary title \
    toDate toDecimal toJson toPrettyJson toRawJson toString toStrings trim trimAll trimPrefix \
    trimSuffix trimall trunc tuple typeIs typeIsLike typeOf uniq unixEpoch unset until untilStep \
    untitle upper urlJoin urlParse uuidv4 values without wrap wrapWith";

fn names_of(origin: Origin) -> BTreeSet<&'static str> {
    let items = functions().filter(|item| item.origin == origin);
    items.map(|item| item.func.name()).collect()
}

#[test]
fn the_functions_are_those_of_helm() {
    for (origin, names) in [(Origin::Go, GO), (Origin::Helm, HELM), (Origin::Sprig, SPRIG)] {
        assert_eq!(names_of(origin), names.split(' ').collect(), "{origin:?}");
    }
    assert_eq!(functions().count(), 251, "each once");
}

#[test]
fn usages_name_every_parameter() {
    for item in functions() {
        let name = item.func.name();
        assert!(item.doc.trim().len() > 10, "{name} says what it does");
        let (parameters, result) = item.usage.split_once("-> ").unwrap();
        assert!(!result.is_empty(), "{name} says what it gives");
        let parameters: Vec<_> = parameters.split_whitespace().collect();
        let optional = parameters.iter().any(|name| name.ends_with("...") || name.starts_with('['));
        assert_eq!(optional, item.func.variadic_type().is_some(), "{name}: {parameters:?}");
        assert!(parameters.len() >= item.func.params().len(), "{name}: {parameters:?}");
        assert!(optional || parameters.len() == item.func.params().len(), "{name}: {parameters:?}");
    }
}

#[test]
fn every_function_has_an_example_that_is_true() {
    for item in functions() {
        assert!(item.examples().next().is_some(), "{} has an example", item.func.name());
        for example in item.examples() {
            assert!(example.template.contains(item.func.name()), "{}", example.template);
            match (run(&example.template), example.output) {
                (Ok(output), Ok(expected)) => assert_eq!(output, expected, "{}", example.template),
                (Err(error), Err(expected)) => {
                    assert!(error.ends_with(expected), "{}: {error}", example.template);
                }
                (output, expected) => panic!("{}: {output:?}, not {expected:?}", example.template),
            }
        }
    }
}

/// What a template prints, offline.
fn run(template: &str) -> Result<String, String> {
    let release = ReleaseFacts {
        name: "demo".into(),
        namespace: "default".into(),
        revision: 1,
        is_install: true,
    };
    let input = RenderInput {
        values: &Map::new(),
        release: &release,
        capabilities: &Capabilities::offline(Profile::Helm43),
        profile: Profile::Helm43,
        lookups: &Lookups::offline(),
        clock: UNIX_EPOCH,
        seed: 7_u64.into(),
        random_overrides: None,
        budget: Budget::default(),
    };
    let rendered = chart(template).render(&input).map_err(|error| error.to_string())?;
    Ok(rendered.notes)
}

/// A chart that consists of its notes.
fn chart(notes: &str) -> CompiledChart {
    let mut archive = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    let metadata = "apiVersion: v2\nname: c\nversion: 1.0.0\n";
    for (name, data) in [("c/Chart.yaml", metadata), ("c/templates/NOTES.txt", notes)] {
        let mut header = tar::Header::new_gnu();
        header.set_size(data.len() as u64);
        archive.append_data(&mut header, name, data.as_bytes()).unwrap();
    }
    let archive = archive.into_inner().unwrap().finish().unwrap();
    Chart::load_archive(&archive).unwrap().compile().unwrap()
}

#[test]
fn the_reference_page_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/functions.md");
    if std::env::var_os("WRITE_DOCS").is_some() {
        std::fs::write(&path, page()).unwrap();
    }
    let there = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(there == page(), "docs/functions.md is out of date; `make docs` writes it");
}

fn page() -> String {
    let mut page = String::from(
        "# Functions\n\n\
         What templates may call: Go's 18, Sprig's 209 and Helm's 24. This page is made from the \
         functions by `make docs`; every example is a test.\n\n\
         In `trunc LENGTH TEXT -> string` the words stand for arguments, in their order; the last \
         one is what a pipeline gives (`{{ \"abcdef\" | trunc 3 }}`). `[X]` may be left out, `X...` \
         may be given any number of times. A `must` in front of a name: the same, but what goes \
         wrong ends the rendering.\n\n",
    );
    for family in families() {
        let anchor: String = family.title.to_lowercase().replace(' ', "-").replace(',', "");
        let names: Vec<_> = family.items.iter().map(|item| item.func.name()).collect();
        let _ = writeln!(page, "- [{}](#{anchor}): {}", family.title, names.join(", "));
    }
    for family in families() {
        write_family(&mut page, &family);
    }
    page
}

fn write_family(page: &mut String, family: &Family) {
    let _ = write!(page, "\n## {}\n", family.title);
    for item in &family.items {
        let _ = write!(
            page,
            "\n### {0}\n\n`{0} {1}` ({2:?})\n\n{3}\n",
            item.func.name(),
            item.usage,
            item.origin,
            prose(item),
        );
        for example in item.examples() {
            let _ = match example.output {
                Ok(output) if output.contains('\n') || output.trim() != output => {
                    let output = output.strip_suffix('\n').unwrap_or(output);
                    write!(page, "\n`{}` gives\n\n```\n{output}\n```\n", example.template)
                }
                Ok(output) => writeln!(page, "\n`{}` gives `{output}`", example.template),
                Err(error) => writeln!(page, "\n`{}` fails: `{error}`", example.template),
            };
        }
    }
}

/// The text, its lines joined: line ends of the source mean nothing.
fn prose(item: &Item) -> String {
    item.doc.split_whitespace().collect::<Vec<_>>().join(" ")
}
