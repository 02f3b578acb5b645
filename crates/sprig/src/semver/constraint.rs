//! Constraints on versions.

use std::sync::LazyLock;

use regex::Regex;

use super::{Edition, MAX_CONSTRAINT, MAX_GROUPS, SemverError, Version, compare_prerelease};

/// Alternatives of conditions that must hold together.
#[derive(Debug, Clone)]
pub struct Constraint {
    groups: Vec<Vec<Condition>>,
}

#[derive(Debug, Clone)]
struct Condition {
    operator: Operator,
    version: Version,
    /// Which part was left open (`1.x` leaves the minor number open).
    open: Open,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Open {
    Nothing,
    All,
    Minor,
    Patch,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    Equal,
    NotEqual,
    Greater,
    Less,
    AtLeast,
    AtMost,
    Tilde,
    Caret,
}

/// The grammar of constraints, as far as it is regular.
struct Grammar {
    one: Regex,
    each: Regex,
    group: Regex,
    range: Regex,
}

static GRAMMAR: LazyLock<Option<Grammar>> = LazyLock::new(|| {
    let number = r"[0-9|xX*]+";
    let words = r"[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*";
    let version = format!(r"v?({number})(\.{number})?(\.{number})?(-{words})?(\+{words})?");
    let operator = r"=||!=|>|<|>=|=>|<=|=<|~|~>|\^";
    let plain = version.replace('(', "(?:").replace("(?:?:", "(?:");
    Some(Grammar {
        one: Regex::new(&format!(r"^\s*({operator})\s*({version})\s*$")).ok()?,
        each: Regex::new(&format!(r"(?:{operator})\s*(?:{plain})")).ok()?,
        group: Regex::new(&format!(
            r"^(?:\s*(?:{operator})\s*(?:{plain})\s*)(?:(?:\s+|,\s*)(?:{operator})\s*(?:{plain})\s*)*$"
        ))
        .ok()?,
        range: Regex::new(&format!(r"\s*({plain})\s+-\s+({plain})\s*")).ok()?,
    })
});

impl Constraint {
    /// Reads a constraint.
    ///
    /// ```
    /// use catamaran_sprig::semver::{Constraint, Version};
    /// let constraint = Constraint::parse(">=1.21-0 <2")?;
    /// assert!(constraint.check(&Version::parse("v1.30.1-gke.100")?));
    /// # Ok::<(), catamaran_sprig::semver::SemverError>(())
    /// ```
    ///
    /// # Errors
    /// The text is no constraint.
    pub fn parse(text: &str) -> Result<Self, SemverError> {
        if text.len() > MAX_CONSTRAINT {
            return Err(SemverError::ConstraintTooLong);
        }
        let Some(grammar) = &*GRAMMAR else { return Err(SemverError::Constraint(text.to_owned())) };
        let text = grammar.range.replace_all(text, ">= $1, <= $2 ");
        let alternatives: Vec<&str> = text.split("||").collect();
        if alternatives.len() > MAX_GROUPS {
            return Err(SemverError::TooManyGroups);
        }
        let group = |text: &&str| {
            if !grammar.group.is_match(text) {
                return Err(SemverError::Constraint((*text).to_owned()));
            }
            grammar
                .each
                .find_iter(text)
                .map(|found| Condition::parse(grammar, found.as_str()))
                .collect()
        };
        Ok(Self { groups: alternatives.iter().map(group).collect::<Result<_, _>>()? })
    }

    /// Whether a version satisfies it. In the edition of Helm 3 each condition must name a
    /// pre-release for itself if it is to allow one.
    pub fn check_in(&self, version: &Version, edition: Edition) -> bool {
        if edition == Edition::Helm4 {
            return self.check(version);
        }
        let allows = |condition: &Condition| {
            let exact = condition.operator == Operator::NotEqual && condition.open == Open::Nothing;
            version.prerelease.is_empty() || !condition.version.prerelease.is_empty() || exact
        };
        self.groups.iter().any(|group| {
            group.iter().all(|condition| allows(condition) && condition.holds(version))
        })
    }

    /// Whether a version satisfies it, in the edition of Helm 4.
    pub fn check(&self, version: &Version) -> bool {
        self.groups.iter().any(|group| {
            let prereleases =
                group.iter().any(|condition| !condition.version.prerelease.is_empty());
            (version.prerelease.is_empty() || prereleases)
                && group.iter().all(|condition| condition.holds(version))
        })
    }
}

impl Condition {
    fn parse(grammar: &Grammar, text: &str) -> Result<Self, SemverError> {
        let improper = || SemverError::Constraint(text.to_owned());
        let parts = grammar.one.captures(text).ok_or_else(improper)?;
        let part = |at: usize| parts.get(at).map(|part| part.as_str());
        let is_open = |at: usize| {
            part(at).is_none_or(|part| matches!(part.trim_start_matches('.'), "" | "x" | "X" | "*"))
        };
        let prerelease = part(6).unwrap_or_default();
        let (open, numbers) = if is_open(3) {
            (Open::All, format!("0.0.0{prerelease}"))
        } else if is_open(4) {
            (Open::Minor, format!("{}.0.0{prerelease}", part(3).unwrap_or_default()))
        } else if is_open(5) {
            let numbers = [part(3).unwrap_or_default(), part(4).unwrap_or_default()].concat();
            (Open::Patch, format!("{numbers}.0{prerelease}"))
        } else {
            (Open::Nothing, part(2).unwrap_or_default().to_owned())
        };
        let operator = match part(1).unwrap_or_default() {
            "!=" => Operator::NotEqual,
            ">" => Operator::Greater,
            "<" => Operator::Less,
            ">=" | "=>" => Operator::AtLeast,
            "<=" | "=<" => Operator::AtMost,
            "~" | "~>" => Operator::Tilde,
            "^" => Operator::Caret,
            _ => Operator::Equal,
        };
        let version = Version::parse(&numbers)
            .map_err(|_| SemverError::Constraint("constraint parser error".into()))?;
        Ok(Self { operator, version, open })
    }

    fn holds(&self, v: &Version) -> bool {
        let order = v.compare(&self.version);
        match self.operator {
            Operator::Equal if self.open == Open::Nothing => order.is_eq(),
            Operator::Equal | Operator::Tilde => self.tilde(v),
            Operator::NotEqual => self.differs(v),
            Operator::Greater => self.exceeded_by(v),
            Operator::Less => order.is_lt(),
            Operator::AtLeast => order.is_ge(),
            Operator::AtMost if self.open == Open::Nothing => order.is_le(),
            Operator::AtMost => {
                let minor_above = v.minor > self.version.minor && self.open != Open::Minor;
                v.major < self.version.major || (v.major == self.version.major && !minor_above)
            }
            Operator::Caret => self.caret(v),
        }
    }

    fn differs(&self, v: &Version) -> bool {
        let bound = &self.version;
        if self.open == Open::Nothing {
            return v.compare(bound).is_ne();
        }
        if v.major != bound.major || (v.minor != bound.minor && self.open != Open::Minor) {
            return true;
        }
        match self.open {
            Open::Minor => false,
            Open::Patch => {
                let prereleases = !(v.prerelease.is_empty() && bound.prerelease.is_empty());
                prereleases && compare_prerelease(&v.prerelease, &bound.prerelease).is_ne()
            }
            _ => v.compare(bound).is_ne(),
        }
    }

    /// `>11` is not satisfied by 11.1, and `>11.1` not by 11.1.1.
    fn exceeded_by(&self, v: &Version) -> bool {
        let bound = &self.version;
        match self.open {
            Open::Nothing => v.compare(bound).is_gt(),
            _ if v.major != bound.major => v.major > bound.major,
            Open::Minor => false,
            Open::Patch => v.minor > bound.minor,
            Open::All => v.compare(bound).is_gt(),
        }
    }

    fn tilde(&self, v: &Version) -> bool {
        let bound = &self.version;
        if v.compare(bound).is_lt() {
            return false;
        }
        let zero = (bound.major, bound.minor, bound.patch) == (0, 0, 0);
        if zero && matches!(self.open, Open::All | Open::Nothing) {
            return true;
        }
        v.major == bound.major && (v.minor == bound.minor || self.open == Open::Minor)
    }

    fn caret(&self, v: &Version) -> bool {
        let bound = &self.version;
        if v.compare(bound).is_lt() {
            return false;
        }
        if bound.major > 0 || self.open == Open::Minor {
            return v.major == bound.major;
        }
        if v.major > 0 {
            return false;
        }
        if bound.minor > 0 || self.open == Open::Patch {
            return v.minor == bound.minor;
        }
        v.minor == 0 && v.patch == bound.patch
    }
}
