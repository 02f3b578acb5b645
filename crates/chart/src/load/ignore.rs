//! `.helmignore`, with the quirks of Helm's reading of it.

use std::path::Path;

use super::glob::Glob;
use crate::LoadError;
use crate::manifest::base_name;

/// The rules of one `.helmignore` and the default one.
#[derive(Debug, Default)]
pub(super) struct Rules {
    rules: Vec<Rule>,
}

#[derive(Debug)]
struct Rule {
    /// `None` matches nothing: what is no pattern any more without its last slash.
    glob: Option<Glob>,
    /// Bytes of the pattern.
    size: usize,
    /// `!`: ignores everything that does *not* match. Helm's quirk.
    negated: bool,
    /// Trailing slash: means folders alone.
    folder: bool,
    /// A pattern without a slash is held against the base name.
    base: bool,
}

impl Rules {
    /// Reads the text of a `.helmignore`.
    pub(super) fn parse(path: &Path, text: &str) -> Result<Self, LoadError> {
        let mut rules = Self::default();
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        for (index, line) in text.lines().enumerate() {
            rules.add(line).map_err(|message| LoadError::Ignore {
                path: path.to_owned(),
                line: index + 1,
                message: message.to_owned(),
            })?;
        }
        Ok(rules)
    }

    /// The rule Helm adds to every chart: hidden files of `templates/`.
    pub(super) fn with_defaults(mut self) -> Self {
        self.push("templates/.?*", false, false);
        self
    }

    fn push(&mut self, pattern: &str, negated: bool, folder: bool) {
        let base = !pattern.contains('/');
        let pattern = pattern.strip_prefix('/').unwrap_or(pattern);
        let (glob, size) = (Glob::parse(pattern).ok(), pattern.len());
        self.rules.push(Rule { glob, size, negated, folder, base });
    }

    fn add(&mut self, line: &str) -> Result<(), &'static str> {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            return Ok(());
        }
        if line.contains("**") {
            return Err("double-star (**) syntax is not supported");
        }
        Glob::parse(line).map_err(|_| "syntax error in pattern")?;
        let (negated, rest) = line.strip_prefix('!').map_or((false, line), |rest| (true, rest));
        let (folder, rest) = rest.strip_suffix('/').map_or((false, rest), |rest| (true, rest));
        self.push(rest, negated, folder);
        Ok(())
    }

    /// Bytes of all patterns.
    pub(super) fn size(&self) -> u64 {
        self.rules.iter().map(|rule| rule.size as u64 + 8).sum()
    }

    /// Whether a file or folder is left out. The first rule that decides, decides.
    pub(super) fn ignores(&self, name: &str, is_folder: bool) -> bool {
        self.rules.iter().any(|rule| {
            let wrong_kind = rule.folder && !is_folder;
            if rule.negated {
                wrong_kind || !rule.matches(name)
            } else {
                !wrong_kind && rule.matches(name)
            }
        })
    }
}

impl Rule {
    fn matches(&self, name: &str) -> bool {
        let name = if self.base { base_name(name) } else { name };
        self.glob.as_ref().is_some_and(|glob| glob.matches(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ignores(text: &str, name: &str, is_folder: bool) -> bool {
        Rules::parse(Path::new(".helmignore"), text)
            .unwrap()
            .with_defaults()
            .ignores(name, is_folder)
    }

    #[test]
    fn rules_decide_as_in_helm() {
        let cases = [
            ("helm.txt", "helm.txt", false, true),
            ("helm.txt", "a/helm.txt", false, true),
            ("helm.*", "tiller.txt", false, false),
            ("/a.txt", "a.txt", false, true),
            ("/a.txt", "cargo/a.txt", false, false),
            ("cargo/*.txt", "cargo/a.txt", false, true),
            ("cargo/*.txt", "mast/cargo/a.txt", false, false),
            ("cargo/", "cargo", true, true),
            ("cargo/", "cargo", false, false),
            ("mast/", "a/mast", true, true),
            ("!a.txt", "b.txt", false, true),
            ("!a.txt", "a.txt", false, false),
            ("!cargo/", "a.txt", false, true),
            ("# x\n\n  a  ", "a", false, true),
            ("", "templates/.hidden", false, true),
            ("", "templates/a/.hidden", false, false),
        ];
        for (text, name, is_folder, expected) in cases {
            assert_eq!(ignores(text, name, is_folder), expected, "{text:?} {name}");
        }
    }

    #[test]
    fn a_rule_that_is_no_glob_is_told_with_its_line() {
        for (text, message) in [
            ("a\n**/b", "/x/.helmignore:2: double-star (**) syntax is not supported"),
            ("[", "/x/.helmignore:1: syntax error in pattern"),
        ] {
            let error = Rules::parse(Path::new("/x/.helmignore"), text).unwrap_err();
            assert_eq!(error.to_string(), message);
        }
    }
}
