//! What a database is called, and what its Secret tells.

use std::collections::BTreeMap;
use std::fmt::Write;

use catamaran_operator::native::Error;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use kube::core::ObjectMeta;
use sha2::{Digest, Sha256};

use crate::api::PostgresDatabase;
use crate::encryption::{CA_KEY, Encryption};
use crate::manifest::hex;
use crate::postgres::{Server, Wanted};

/// Longer names are cut by PostgreSQL, and could then be another's.
const LONGEST: usize = 63;

/// What the database and the role are called on the server.
pub(super) fn name(database: &PostgresDatabase) -> Result<String, Error> {
    if let Some(name) = &database.spec.database {
        let wrong = name.is_empty() || name.len() > LONGEST || name.contains('\0');
        let what = || format!("spec.database: {name:?} is no name of 1 to {LONGEST} bytes");
        return if wrong { Err(Error::Permanent(what())) } else { Ok(name.clone()) };
    }
    // No name in Kubernetes has an underscore: no two resources share one.
    let full = format!("{}_{}", database.namespace().unwrap_or_default(), database.name_any());
    if full.len() <= LONGEST {
        return Ok(full);
    }
    let digest = hex(&Sha256::digest(&full), 8);
    let start: String = full.chars().take(LONGEST - digest.len() - 1).collect();
    Ok(format!("{start}_{digest}"))
}

/// What an application needs to connect. The password is not among what is applied: the Secret is the
/// place where it is kept, and whoever changes it there changes the role's.
pub(super) fn outputs(name: &str, server: &Server, wanted: &Wanted) -> Secret {
    let (host, port, user) = (&server.host, server.port.to_string(), percent(&wanted.name));
    let bracketed = if host.contains(':') { format!("[{host}]") } else { host.clone() };
    let (sslmode, authorities) = match &server.encryption {
        Encryption::Disabled => ("disable", None),
        Encryption::Verified(authorities) => ("verify-full", Some(authorities.clone())),
    };
    let password = percent(&wanted.password);
    let url = format!("postgresql://{user}:{password}@{bracketed}:{port}/{user}?sslmode={sslmode}");
    let data = [
        ("host", host.clone()),
        ("port", port),
        ("database", wanted.name.clone()),
        ("username", wanted.name.clone()),
        ("url", url),
        ("sslmode", sslmode.to_owned()),
    ];
    let authorities = authorities.map(|authorities| (CA_KEY, authorities));
    let data = data.into_iter().chain(authorities);
    let data = data.map(|(key, value)| (key.to_owned(), ByteString(value.into_bytes())));
    Secret {
        metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
        data: Some(data.collect::<BTreeMap<_, _>>()),
        ..Secret::default()
    }
}

/// As a part of a URL.
fn percent(text: &str) -> String {
    let mut escaped = String::new();
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                escaped.push(char::from(byte));
            }
            _ => _ = write!(escaped, "%{byte:02X}"),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::PostgresDatabaseSpec;

    fn named(namespace: &str, name: &str, database: Option<&str>) -> Result<String, Error> {
        let spec = PostgresDatabaseSpec {
            connection: "a/b".to_owned(),
            database: database.map(str::to_owned),
        };
        let mut resource = PostgresDatabase::new(name, spec);
        resource.metadata.namespace = Some(namespace.to_owned());
        super::name(&resource)
    }

    #[test]
    fn names_on_the_server_are_told_apart() {
        assert_eq!(named("a", "b", None).unwrap(), "a_b");
        assert_ne!(named("a-b", "c", None).unwrap(), named("a", "b-c", None).unwrap());
        let long =
            |last: &str| named("homelab", &format!("{}{last}", "x".repeat(80)), None).unwrap();
        assert_eq!(long("1").len(), LONGEST);
        assert_ne!(long("1"), long("2"));
    }

    #[test]
    fn what_the_server_would_cut_is_refused() {
        assert_eq!(named("a", "b", Some("x\"; DROP")).unwrap(), "x\"; DROP");
        for wrong in ["", "a\0b", &"ü".repeat(32)] {
            assert!(matches!(named("a", "b", Some(wrong)), Err(Error::Permanent(_))), "{wrong:?}");
        }
    }

    #[test]
    fn a_url_holds_whatever_a_name_holds() {
        assert_eq!(percent("a_b-C.9~ü /@:"), "a_b-C.9~%C3%BC%20%2F%40%3A");
    }
}
