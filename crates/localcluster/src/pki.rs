//! The cluster's own certificate authority, and whom it signs for.
//!
//! Every key is ECDSA P-256: made in a millisecond, and accepted by each component for all that
//! it does with keys, service-account tokens included.

use std::fs;
use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, SanType,
};

use crate::error::{Error, Result};

/// The name in the authority's certificate. Fixed, so that the authority can be taken up again from
/// its key alone, without a parser of certificates.
const AUTHORITY: &str = "catamaran-localcluster";

/// The first address of the Services' range: `kubernetes.default` as pods see it.
pub(crate) const SERVICE_IP: Ipv4Addr = Ipv4Addr::new(10, 96, 0, 1);

/// A certificate with its key, both as PEM.
pub(crate) struct Identity {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

/// Signs what is believed by this cluster, and by no other.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    /// Its own certificate, PEM.
    pub(crate) certificate: String,
}

impl Authority {
    /// A new authority. Its key lies in `folder`, so that [`Authority::load`] finds it again.
    pub(crate) fn create(folder: &Path) -> Result<Self> {
        let key = generate(AUTHORITY)?;
        let params = authority_params();
        let certificate = params.self_signed(&key).map_err(Error::certificate(AUTHORITY))?.pem();
        write_private(&folder.join("ca.crt"), &certificate)?;
        write_private(&folder.join("ca.key"), &key.serialize_pem())?;
        Ok(Self { issuer: Issuer::new(params, key), certificate })
    }

    /// The authority whose files lie in `folder`.
    pub(crate) fn load(folder: &Path) -> Result<Self> {
        let certificate = read(&folder.join("ca.crt"))?;
        let key = KeyPair::from_pem(&read(&folder.join("ca.key"))?)
            .map_err(Error::certificate(AUTHORITY))?;
        Ok(Self { issuer: Issuer::new(authority_params(), key), certificate })
    }

    /// A serving certificate for the API server, by every name it is called by, and by its
    /// `advertised` address.
    pub(crate) fn server(&self, advertised: Option<Ipv4Addr>) -> Result<Identity> {
        let names = ["localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"];
        let addresses: Vec<_> =
            [Ipv4Addr::LOCALHOST, SERVICE_IP].into_iter().chain(advertised).collect();
        self.serving("kube-apiserver", &names, &addresses)
    }

    /// A serving certificate for one who is reached by these names and addresses.
    pub(crate) fn serving(
        &self,
        subject: &str,
        names: &[&str],
        addresses: &[Ipv4Addr],
    ) -> Result<Identity> {
        let names: Vec<_> = names.iter().copied().map(String::from).collect();
        let mut params = CertificateParams::new(names).map_err(Error::certificate(subject))?;
        for address in addresses {
            params.subject_alt_names.push(SanType::IpAddress(IpAddr::V4(*address)));
        }
        params.distinguished_name.push(DnType::CommonName, subject);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        self.sign(subject, params)
    }

    /// A certificate that makes its holder `user`, a member of `groups` (at most two).
    ///
    /// Kubernetes reads the user from CN and the groups from O.
    pub(crate) fn client(&self, user: &str, groups: &[&str]) -> Result<Identity> {
        let mut name = DistinguishedName::new();
        name.push(DnType::CommonName, user);
        // rcgen keeps one value per type. The second group therefore goes in under the same
        // object identifier spelled as a custom type; what is signed has two O.
        let organisation = [DnType::OrganizationName, DnType::CustomDnType(vec![2, 5, 4, 10])];
        if groups.len() > organisation.len() {
            return Err(Error::TooManyGroups { user: user.into(), count: groups.len() });
        }
        for (kind, group) in organisation.into_iter().zip(groups) {
            name.push(kind, *group);
        }
        let mut params = CertificateParams::default();
        params.distinguished_name = name;
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.sign(user, params)
    }

    fn sign(&self, subject: &str, mut params: CertificateParams) -> Result<Identity> {
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        let key = generate(subject)?;
        let certificate =
            params.signed_by(&key, &self.issuer).map_err(Error::certificate(subject))?;
        Ok(Identity { certificate: certificate.pem(), key: key.serialize_pem() })
    }
}

fn authority_params() -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, AUTHORITY);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params
}

/// The pair that signs and verifies service accounts' tokens.
pub(crate) fn service_account_keys(folder: &Path) -> Result<()> {
    let key = generate("service accounts")?;
    write_private(&folder.join("sa.key"), &key.serialize_pem())?;
    write_private(&folder.join("sa.pub"), &key.public_key_pem())
}

/// Writes an identity as `NAME.crt` and `NAME.key`, and says where.
pub(crate) fn store(folder: &Path, name: &str, identity: &Identity) -> Result<(PathBuf, PathBuf)> {
    let certificate = folder.join(format!("{name}.crt"));
    let key = folder.join(format!("{name}.key"));
    write_private(&certificate, &identity.certificate)?;
    write_private(&key, &identity.key)?;
    Ok((certificate, key))
}

fn generate(subject: &str) -> Result<KeyPair> {
    KeyPair::generate().map_err(Error::certificate(subject))
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).map_err(Error::io(format!("read {}", path.display())))
}

/// Writes a file that only its owner can read, or replaces it. Readers see the old one or the whole
/// new one.
pub(crate) fn write_private(path: &Path, content: &str) -> Result<()> {
    let what = || format!("write {}", path.display());
    let folder = path.parent().unwrap_or(Path::new("."));
    // A named temporary file has mode 0600.
    let mut file = tempfile::NamedTempFile::new_in(folder).map_err(Error::io(what()))?;
    file.write_all(content.as_bytes()).map_err(Error::io(what()))?;
    file.persist(path).map_err(|error| Error::io(what())(error.error))?;
    Ok(())
}

/// Creates a file for a log: readable by its owner, written at its end.
pub(crate) fn log_file(path: &Path) -> Result<fs::File> {
    fs::OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(path)
        .map_err(Error::io(format!("create {}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_authority_is_taken_up_again_from_its_files() {
        let folder = tempfile::tempdir().unwrap();
        let made = Authority::create(folder.path()).unwrap();
        let loaded = Authority::load(folder.path()).unwrap();
        assert_eq!(made.certificate, loaded.certificate);
        assert_eq!(
            made.issuer.key().public_key_pem(),
            loaded.issuer.key().public_key_pem(),
            "the same key signs"
        );
    }

    #[test]
    fn two_groups_fit_into_a_certificate_and_three_are_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let authority = Authority::create(folder.path()).unwrap();
        assert!(authority.client("jane", &["one", "two"]).is_ok());
        let error = authority.client("jane", &["one", "two", "three"]).err().unwrap();
        assert!(matches!(error, Error::TooManyGroups { count: 3, .. }), "{error:?}");
    }

    #[test]
    fn private_files_are_readable_by_their_owner_alone() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        write_private(&path, "secret").unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
}
