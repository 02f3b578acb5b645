//! Makes a case that differs smaller as long as it differs in the same way.

use anyhow::Result;

use crate::case::Case;
use crate::compare::{Verdict, compare};
use crate::oracle::Oracle;
use crate::ours;
use crate::outcome::Outcome;

/// How many smaller cases are tried.
const TRIES: usize = 1500;

/// A difference: the case and both outcomes.
#[derive(Clone, Debug)]
pub struct Difference {
    /// What differs.
    pub case: Case,
    /// Helm's.
    pub theirs: Outcome,
    /// Ours.
    pub ours: Outcome,
}

impl Difference {
    /// What two differences of one cause have in common, more or less.
    pub fn signature(&self) -> String {
        format!("{} | {}", kind(&self.theirs), kind(&self.ours))
    }
}

/// Success, crash, or the last part of an error without what varies.
fn kind(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Success { .. } => "success".into(),
        Outcome::Crash(text) => format!("crash {text}"),
        Outcome::Error(text) => {
            let text = String::from_utf8_lossy(text);
            let text = text.trim_end_matches("\n\nUse --debug flag to render out invalid YAML");
            let last = text.rsplit(": ").next().unwrap_or_default();
            let mut quoted = false;
            let keep = |c: &char| {
                quoted ^= *c == '"';
                !quoted && !c.is_ascii_digit()
            };
            last.chars().filter(keep).take(60).collect()
        }
    }
}

struct Shrinker<'a> {
    oracle: &'a mut Oracle,
    best: Difference,
    wanted: String,
    tries: usize,
}

/// The smallest case found that differs in the same way.
pub fn shrink(oracle: &mut Oracle, difference: Difference) -> Result<Difference> {
    let wanted = difference.signature();
    // Each try that kills the oracle costs seconds.
    let tries = if matches!(difference.theirs, Outcome::Crash(_)) { 20 } else { TRIES };
    let mut shrinker = Shrinker { oracle, best: difference, wanted, tries };
    loop {
        let before = shrinker.best.case.clone();
        shrinker.arguments()?;
        shrinker.files()?;
        for at in 0..shrinker.best.case.files.len() {
            shrinker.text(Place::File(at))?;
        }
        for at in 0..shrinker.best.case.values.len() {
            shrinker.text(Place::Values(at))?;
        }
        if shrinker.best.case == before || shrinker.tries == 0 {
            return Ok(shrinker.best);
        }
    }
}

/// A text of a case.
#[derive(Clone, Copy)]
enum Place {
    File(usize),
    Values(usize),
}

impl Place {
    fn get(self, case: &Case) -> Option<String> {
        match self {
            Self::File(at) => String::from_utf8(case.files.get(at)?.data.clone()).ok(),
            Self::Values(at) => case.values.get(at).cloned(),
        }
    }

    fn put(self, case: &mut Case, text: String) {
        match self {
            Self::File(at) => case.files[at].data = text.into_bytes(),
            Self::Values(at) => case.values[at] = text,
        }
    }
}

impl Shrinker<'_> {
    /// Whether a smaller case still differs; then it is the best so far.
    fn take(&mut self, case: Case) -> Result<bool> {
        if self.tries == 0 {
            return Ok(false);
        }
        self.tries -= 1;
        let theirs = self.oracle.render(&case)?;
        let ours = ours::render(&case);
        if compare(&case, &theirs, &ours) != Verdict::Different {
            return Ok(false);
        }
        let smaller = Difference { case, theirs, ours };
        let same = smaller.signature() == self.wanted;
        if same {
            self.best = smaller;
        }
        Ok(same)
    }

    fn arguments(&mut self) -> Result<()> {
        let fresh = Case::new(self.best.case.profile);
        let resets: [fn(&mut Case, &Case); 6] = [
            |case, fresh| case.namespace.clone_from(&fresh.namespace),
            |case, _| case.is_upgrade = false,
            |case, _| case.include_crds = false,
            |case, _| case.kube_version.clear(),
            |case, _| case.api_versions.clear(),
            |case, _| case.set.clear(),
        ];
        for reset in resets {
            let mut case = self.best.case.clone();
            reset(&mut case, &fresh);
            if case != self.best.case {
                self.take(case)?;
            }
        }
        for at in (0..self.best.case.set.len()).rev() {
            let mut case = self.best.case.clone();
            case.set.remove(at);
            self.take(case)?;
        }
        for at in (0..self.best.case.values.len()).rev() {
            let mut case = self.best.case.clone();
            case.values.remove(at);
            self.take(case)?;
        }
        Ok(())
    }

    fn files(&mut self) -> Result<()> {
        for at in (0..self.best.case.files.len()).rev() {
            if self.best.case.files[at].name != "Chart.yaml" {
                let mut case = self.best.case.clone();
                case.files.remove(at);
                self.take(case)?;
            }
        }
        Ok(())
    }

    fn text(&mut self, place: Place) -> Result<()> {
        self.parts(place, |text| text.split_inclusive('\n').map(str::to_owned).collect())?;
        self.groups(place)?;
        self.parts(place, tokens)?;
        self.parts(place, |text| text.chars().map(String::from).collect())
    }

    /// Leaves out parts, big ones first.
    fn parts(&mut self, place: Place, split: fn(&str) -> Vec<String>) -> Result<()> {
        let Some(text) = place.get(&self.best.case) else { return Ok(()) };
        let mut parts = split(&text);
        if parts.len() > 400 {
            return Ok(());
        }
        let mut size = parts.len();
        while size > 0 {
            let mut at = 0;
            while at < parts.len() {
                let end = (at + size).min(parts.len());
                let rest: Vec<String> = [&parts[..at], &parts[end..]].concat();
                let mut case = self.best.case.clone();
                place.put(&mut case, rest.concat());
                if self.take(case)? {
                    parts = rest;
                } else {
                    at = end;
                }
            }
            size /= 2;
        }
        Ok(())
    }

    /// Puts something simple in the place of parentheses, or takes only these away.
    fn groups(&mut self, place: Place) -> Result<()> {
        let mut at = 0;
        while let Some(text) = place.get(&self.best.case) {
            let Some((start, end)) = group(&text, at) else { break };
            let inner = &text[start + 1..end];
            let mut taken = false;
            for with in ["", "1", "\"a\"", "nil", inner] {
                let mut case = self.best.case.clone();
                place.put(&mut case, format!("{}{with}{}", &text[..start], &text[end + 1..]));
                if self.take(case)? {
                    taken = true;
                    break;
                }
            }
            at = if taken { start } else { start + 1 };
        }
        Ok(())
    }
}

/// The first group of parentheses from a place on.
fn group(text: &str, from: usize) -> Option<(usize, usize)> {
    let start = from + text.get(from..)?.find('(')?;
    let mut depth = 0usize;
    for (at, c) in text[start..].char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some((start, start + at));
        }
    }
    None
}

/// Words, quoted texts, and all other characters one by one.
fn tokens(text: &str) -> Vec<String> {
    let mut tokens: Vec<String> = Vec::new();
    let mut quote = None;
    let mut in_word = false;
    for c in text.chars() {
        let is_word = c.is_alphanumeric() || matches!(c, '_' | '.' | '$');
        let joins = quote.is_some() || in_word && is_word;
        match tokens.last_mut() {
            Some(last) if joins => last.push(c),
            _ => tokens.push(c.into()),
        }
        in_word = is_word;
        match quote {
            None if matches!(c, '"' | '`') => quote = Some(c),
            Some(open) if open == c => quote = None,
            _ => {}
        }
    }
    tokens
}
