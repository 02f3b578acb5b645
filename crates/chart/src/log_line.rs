//! What Helm would have logged, as the Helm of a profile writes it.

use crate::Profile;

/// A line of Helm's log: since Helm 4 with a level and attributes, before with the line of Helm's
/// own source that wrote it.
#[derive(Debug)]
pub(crate) struct LogLine<'a> {
    pub(crate) level: &'a str,
    pub(crate) message: &'a str,
    pub(crate) attributes: &'a [(&'a str, &'a str)],
    /// Where Helm 3.18.6 writes its own line, and the line.
    pub(crate) helm3: (&'a str, &'a str),
}

impl LogLine<'_> {
    pub(crate) fn line(&self, profile: Profile) -> String {
        if profile == Profile::Helm318 {
            let (place, text) = self.helm3;
            // Go's log ends a line only where that is not done yet.
            return format!("{place}: {}", text.strip_suffix('\n').unwrap_or(text));
        }
        let mut line = format!("level={} msg={}", self.level, attribute(self.message));
        for (key, value) in self.attributes {
            line.push(' ');
            line.push_str(key);
            line.push('=');
            line.push_str(&attribute(value));
        }
        line
    }
}

/// As Go's `slog` writes a text: quoted where it would not stand for itself.
fn attribute(text: &str) -> String {
    let odd = |c: char| c == ' ' || c == '"' || c == '=' || c.is_control() || c.is_whitespace();
    if text.is_empty() || text.contains(odd) {
        catamaran_gotemplate::fmt::quote(&text.into())
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_those_of_each_helm() {
        let notice = LogLine {
            level: "WARN",
            message: "missing required value",
            attributes: &[("message", "give \"a\""), ("chart", "x")],
            helm3: ("engine.go:206", "[INFO] Missing required value: give \"a\""),
        };
        assert_eq!(
            notice.line(Profile::Helm43),
            r#"level=WARN msg="missing required value" message="give \"a\"" chart=x"#
        );
        assert_eq!(
            notice.line(Profile::Helm318),
            r#"engine.go:206: [INFO] Missing required value: give "a""#
        );
        let notice = LogLine { helm3: ("engine.go:227", "[INFO] Fail: no\n\n"), ..notice };
        assert_eq!(notice.line(Profile::Helm318), "engine.go:227: [INFO] Fail: no\n");
    }
}
