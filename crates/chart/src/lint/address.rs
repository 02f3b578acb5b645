//! Which addresses in a Chart.yaml Helm's linter takes for sound.
//!
//! The rules are those of the library Helm asks (asaskevich/govalidator), odd as some are.

use std::sync::LazyLock;

use catamaran_sprig::urls::scheme_host_path;
use regex::Regex;

/// Letters beyond ASCII in the local part and the domain of an email address.
const BEYOND: &str = r"\u{A0}-\u{D7FF}\u{F900}-\u{FDCF}\u{FDF0}-\u{FFEF}";

fn email() -> Result<Regex, regex::Error> {
    let atom = format!(r"[a-zA-Z0-9!#$%&'*+\-/=?^_`{{|}}~{BEYOND}]+");
    let folding = r"(?:(?:[ \t]*\r\n)?[ \t]+)?";
    let plain = format!(r"[\x01-\x08\x0b\x0c\x0e-\x1f\x7f!\x23-\x5b\x5d-\x7e{BEYOND}]");
    let escaped = format!(r"\([\x01-\x09\x0b-\x7f{BEYOND}]");
    let quoted = format!(r#""(?:{folding}(?:{plain}|{escaped}))*{folding}""#);
    let label = format!(r"[a-zA-Z0-9{BEYOND}](?:[a-zA-Z0-9._~\-{BEYOND}]*[a-zA-Z0-9{BEYOND}])?");
    let top = format!(r"[a-zA-Z{BEYOND}](?:[a-zA-Z0-9_~\-{BEYOND}]*[a-zA-Z{BEYOND}])?");
    Regex::new(&format!(r"^(?:{atom}(?:\.{atom})*|{quoted})@(?:{label}\.)+{top}\.?$"))
}

fn url() -> Result<Regex, regex::Error> {
    let scheme = r"(?:(?:ftp|tcp|udp|wss?|https?)://)?";
    let user = r"(?:[^\t\n\f\r ]+(?::[^\t\n\f\r ]*)?@)?";
    let byte = r"(?:[0-9]{1,2}|1[0-9]{2}|2[0-4][0-9]|25[0-5])";
    let first = r"(?:[1-9][0-9]?|1[0-9]{2}|2[01][0-9]|22[0-3]|24[0-9]|25[0-5])";
    let last = r"(?:[0-9][0-9]?|1[0-9]{2}|2[0-4][0-9]|25[0-5])";
    let v4 = format!(r"{first}(?:\.{byte}){{2}}\.{last}");
    let name = r"[a-zA-Z0-9](?:[a-zA-Z0-9_-]+)?[a-zA-Z0-9](?:[-.][a-zA-Z0-9]+)*";
    let sub = r"(?:www\.|[a-zA-Z0-9]+(?:[-_.]?[a-zA-Z0-9])*[a-zA-Z0-9]\.[a-zA-Z0-9]+)?";
    let letter = r"a-zA-Z\u{a1}-\u{ffff}";
    let host =
        format!(r"(?:{name}|{sub})?(?:(?:[{letter}0-9]+-?-?)*[{letter}0-9]+)(?:\.[{letter}]+)?");
    let v6 = r"\[[0-9a-fA-F:.%]+[0-9a-zA-Z]*\]";
    let port = r"(?::[0-9]{1,5})?";
    let path = r"(?:[/?#][^\t\n\f\r ]*)?";
    Regex::new(&format!(r"^{scheme}{user}(?:{v4}|{v6}|{host})\.?{port}{path}$"))
}

fn matches(regex: &LazyLock<Result<Regex, regex::Error>>, text: &str) -> bool {
    regex.as_ref().is_ok_and(|regex| regex.is_match(text))
}

pub(super) fn is_email(text: &str) -> bool {
    static EMAIL: LazyLock<Result<Regex, regex::Error>> = LazyLock::new(email);
    matches(&EMAIL, text)
}

/// A maintainer's address on the web; the scheme may be left out.
pub(super) fn is_url(text: &str) -> bool {
    static URL: LazyLock<Result<Regex, regex::Error>> = LazyLock::new(url);
    const LONGEST: usize = 2083;
    if text.len() <= 3 || text.chars().count() >= LONGEST || text.starts_with('.') {
        return false;
    }
    // For the parser alone, which takes `host:80` for a scheme.
    let whole = if text.contains(':') && !text.contains("://") {
        format!("http://{text}")
    } else {
        text.to_owned()
    };
    let Some((_, host, path)) = scheme_host_path(&whole) else { return false };
    if host.starts_with('.') {
        return false;
    }
    let has_host = !host.is_empty() || path.is_empty() || path.contains('.');
    has_host && matches(&URL, text)
}

/// A source or an icon: an absolute address of any scheme.
pub(super) fn is_request_url(text: &str) -> bool {
    scheme_host_path(text).is_some_and(|(scheme, ..)| !scheme.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_told_apart() {
        for (text, email) in [
            ("a@b.c", true),
            ("a.b+c@d-e.example.com", true),
            ("\"a b\"@example.com", true),
            ("nobody", false),
            ("a@b", false),
            ("a@b.1", false),
            ("a b@c.de", false),
        ] {
            assert_eq!(is_email(text), email, "{text}");
        }
        for (text, url) in [
            ("https://example.com/a?b#c", true),
            ("example.com", true),
            ("localhost:8080", true),
            ("http://user:x@10.0.0.1:80", true),
            ("https://github.com/org", true),
            ("mailto:a@b.c", true),
            ("a", false),
            (".example.com", false),
            ("http://exa mple.com", false),
            ("gopher://example.com", false),
        ] {
            assert_eq!(is_url(text), url, "{text}");
        }
        for (text, url) in [
            ("https://example.com", true),
            ("git@github.com:org/repo", false),
            ("mailto:x", true),
            ("example.com/a", false),
            ("data:image/png;base64,x", true),
            ("", false),
        ] {
            assert_eq!(is_request_url(text), url, "{text}");
        }
    }
}
