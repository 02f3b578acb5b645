//! The function library of Helm templates: Sprig 3.3 and Helm's own, on the values of
//! `catamaran-gotemplate`.
//!
//! Every function is one [`Item`]: name, parameters, text, examples and body in one place; the
//! registry, the reference page and the coverage table are made of these. The behaviour is that of
//! Sprig 3.3.0 in Helm 4.3.1, odd corners included, with two differences: what a function makes is
//! charged to the rendering's budget before it is made, and clock and randomness come from the
//! rendering, so that it can be repeated.
//!
//! Not here, because they need the chart or the engine: `include`, `tpl`, `lookup`.

#![forbid(unsafe_code)]

#[macro_use]
mod item;
mod aes;
mod args;
mod casts;
mod compare;
mod crypto;
mod dates;
mod decimal;
mod dicts;
mod durations;
mod encoding;
mod flow;
mod json;
mod lists;
mod merge;
mod numeric;
mod overrides;
mod paths;
mod pki;
mod random;
mod regex_syntax;
mod regexes;
pub mod semver;
mod strings;
mod texts;
mod toml;
mod types;
pub mod urls;
mod words;
mod yamls;

pub use dates::check_time;
pub use durations::parse_duration;
pub use json::check_json;
pub use overrides::{RandomCall, RandomOverride, RandomOverrides, RandomText};
pub use random::{Drawn, drawn, enter_template, override_random, random_texts};
pub use regex_syntax::check_regex;
pub use urls::check_url;

use catamaran_gotemplate::{Func, Functions, Item};

/// Functions that belong together.
#[derive(Clone, Copy, Debug)]
pub struct Family {
    /// What they are about, as a heading.
    pub title: &'static str,
    /// The functions; those that share a body (`first`, `mustFirst`) side by side.
    items: &'static [&'static [Item]],
}

impl Family {
    /// Its functions.
    pub fn items(&self) -> impl Iterator<Item = &'static Item> + use<> {
        self.items.iter().copied().flatten()
    }
}

/// All functions of this library, by family.
pub fn families() -> impl Iterator<Item = Family> {
    [
        ("Strings", strings::ITEMS),
        ("Case and line breaks", texts::ITEMS),
        ("Lists", lists::ITEMS),
        ("Maps", dicts::ITEMS),
        ("Numbers", numeric::ITEMS),
        ("Types", types::ITEMS),
        ("Defaults, tests, failures", flow::ITEMS),
        ("Encodings and sums", encoding::ITEMS),
        ("JSON", json::ITEMS),
        ("YAML", yamls::ITEMS),
        ("TOML", toml::ITEMS),
        ("Regular expressions", regexes::ITEMS),
        ("Versions", semver::ITEMS),
        ("Dates", dates::ITEMS),
        ("Durations", durations::ITEMS),
        ("Paths", paths::ITEMS),
        ("URLs and host names", urls::ITEMS),
        ("Randomness", random::ITEMS),
        ("Passwords", crypto::ITEMS),
        ("Encryption", aes::ITEMS),
        ("Keys and certificates", pki::ITEMS),
    ]
    .into_iter()
    .map(|(title, items)| Family { title, items })
}

/// All functions of this library.
pub fn items() -> impl Iterator<Item = &'static Item> {
    families().flat_map(|family| family.items())
}

/// The functions that Helm 3.18 has in another edition.
pub fn of_helm_3() -> impl Iterator<Item = &'static Func> {
    semver::OF_HELM_3.iter().chain(toml::OF_HELM_3)
}

/// The functions by name, Go's own included.
///
/// ```
/// let functions = catamaran_sprig::registry();
/// assert!(functions.get("nindent").is_some() && functions.get("printf").is_some());
/// ```
pub fn registry() -> Functions {
    let mut functions = Functions::new();
    functions.extend(items().map(|item| item.func.clone()));
    functions
}
