//! What Kubernetes takes as an object's name.

const LABEL: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";

/// Checks `metadata.name` by the rules of the object's kind.
pub(super) fn check(kind: &str, name: &str) -> Result<(), String> {
    let faults = match kind.to_lowercase().as_str() {
        "service" => service(name),
        "namespace" => label(name),
        "certificatesigningrequest" => Vec::new(),
        "role" | "clusterrole" | "rolebinding" | "clusterrolebinding" => path_segment(name),
        _ => subdomain(name),
    };
    let quoted = catamaran_gotemplate::fmt::quote(&name.into());
    // Each fault once, as Kubernetes joins them.
    let faults: Vec<_> = faults
        .iter()
        .map(|fault| format!("metadata.name: Invalid value: {quoted}: {fault}"))
        .collect();
    let all = match faults.as_slice() {
        [] => return Ok(()),
        [one] => one.clone(),
        many => format!("[{}]", many.join(", ")),
    };
    Err(format!("object name does not conform to Kubernetes naming requirements: {quoted}: {all}"))
}

fn is_label(text: &str) -> bool {
    let edge = |c: Option<char>| c.is_some_and(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
    edge(text.chars().next())
        && edge(text.chars().last())
        && text.chars().all(|c| c == '-' || edge(Some(c)))
}

/// Whether a text has the form of a DNS-1123 subdomain, as most names have in Kubernetes: labels of `a-z`, `0-9`
/// and `-`, which begin and end with a letter or digit, between dots. How long it may be is another matter.
pub fn is_subdomain(text: &str) -> bool {
    text.split('.').all(is_label)
}

fn too_long(name: &str, limit: usize) -> Option<String> {
    (name.len() > limit).then(|| format!("must be no more than {limit} characters"))
}

fn subdomain(name: &str) -> Vec<String> {
    let shape = (!is_subdomain(name)).then(|| {
        format!(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '{LABEL}(\\.{LABEL})*')"
        )
    });
    too_long(name, 253).into_iter().chain(shape).collect()
}

fn label(name: &str) -> Vec<String> {
    let shape = match name {
        name if is_label(name) => None,
        name if is_subdomain(name) => Some("must not contain dots".to_owned()),
        _ => Some(format!(
            "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '{LABEL}')"
        )),
    };
    too_long(name, 63).into_iter().chain(shape).collect()
}

fn service(name: &str) -> Vec<String> {
    let sound = is_label(name) && name.starts_with(|c: char| c.is_ascii_lowercase());
    let shape = (!sound).then(|| {
        "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')".to_owned()
    });
    too_long(name, 63).into_iter().chain(shape).collect()
}

fn path_segment(name: &str) -> Vec<String> {
    if matches!(name, "." | "..") {
        return vec![format!("may not be '{name}'")];
    }
    let illegal = ["/", "%"].into_iter().filter(|part| name.contains(part));
    illegal.map(|part| format!("may not contain '{part}'")).collect()
}
