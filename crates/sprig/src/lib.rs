//! The function library of Helm templates: Sprig 3.3 and Helm's own, on the values of
//! `catamaran-gotemplate`.
//!
//! Every function is one [`Item`]: name, parameters, text and body in one place; the registry, and
//! later the reference page and the coverage table, are made of these. The behaviour is that of
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

pub use item::Item;

use catamaran_gotemplate::Functions;

/// All items, by family.
pub fn items() -> impl Iterator<Item = &'static Item> {
    [
        strings::ITEMS,
        texts::ITEMS,
        lists::ITEMS,
        dicts::ITEMS,
        numeric::ITEMS,
        types::ITEMS,
        flow::ITEMS,
        encoding::ITEMS,
        json::ITEMS,
        yamls::ITEMS,
        regexes::ITEMS,
        semver::ITEMS,
        dates::ITEMS,
        durations::ITEMS,
        paths::ITEMS,
        urls::ITEMS,
        random::ITEMS,
        crypto::ITEMS,
        aes::ITEMS,
        toml::ITEMS,
        pki::ITEMS,
    ]
    .into_iter()
    .flatten()
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
