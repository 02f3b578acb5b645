//! Keys and certificates, as OpenSSL sees them. Without the command `openssl` these tests say so,
//! and pass.

#![allow(clippy::unwrap_used, clippy::print_stderr)] // helpers of tests are tests

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::SystemTime;

use catamaran_gotemplate::{Budget, Ctx, Error, MissingKey, TemplateSet};

fn render_with(template: &str, seed: u64, budget: Budget) -> Result<String, Error> {
    let mut set = TemplateSet::new(Arc::new(catamaran_sprig::registry()), MissingKey::Zero);
    set.parse("t", template)?;
    let mut ctx = Ctx::new(budget, SystemTime::now(), seed);
    let data = ctx.heap.new_map();
    Ok(set.execute(&mut ctx, "t", &data.into())?.to_str_lossy().into_owned())
}

fn render(template: &str) -> String {
    render_with(template, 7, Budget::default()).unwrap()
}

fn failure(template: &str) -> String {
    render_with(template, 7, Budget::default()).unwrap_err().root_message().to_owned()
}

/// Whether OpenSSL is here; says so if it is not.
fn has_openssl() -> bool {
    let found = Command::new("openssl").arg("version").output().is_ok();
    if !found {
        eprintln!("SKIPPED: there is no openssl on this machine");
    }
    found
}

/// What OpenSSL prints for a text, both streams; it must succeed.
fn openssl(args: &[&str], input: &str) -> String {
    let mut child = Command::new("openssl")
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let out = child.wait_with_output().unwrap();
    let text = [out.stdout, out.stderr].map(|part| String::from_utf8_lossy(&part).into_owned());
    assert!(out.status.success(), "openssl {args:?}: {}", text.concat());
    text.concat()
}

/// A folder of its own, gone with the value.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("catamaran-pki-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn file(&self, name: &str, text: &str) -> String {
        let path: &Path = &self.0.join(name);
        std::fs::write(path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The blocks of PEM in a text.
fn blocks(text: &str) -> Vec<String> {
    let mut out = Vec::new();
    for line in text.lines() {
        if line.starts_with("-----BEGIN ") {
            out.push(String::new());
        }
        if let Some(last) = out.last_mut() {
            last.push_str(line);
            last.push('\n');
        }
    }
    out
}

/// That a certificate and a private key are of one pair.
fn assert_pair(cert: &str, key: &str) {
    let of_cert = openssl(&["x509", "-noout", "-pubkey"], cert);
    let of_key = openssl(&["pkey", "-pubout"], key);
    assert_eq!(of_cert, of_key);
}

const CHAIN: &str = r#"{{- $ca := genCA "my-ca" 365 -}}
{{- $c := genSignedCert "web.example.com" (list "10.0.0.1" "::1" "::ffff:1.2.3.4") (list "web" "*.web.svc") 30 $ca -}}
{{ $ca.Cert }}{{ $ca.Key }}{{ $c.Cert }}{{ $c.Key }}"#;

#[test]
fn an_authority_and_what_it_signs_are_a_chain() {
    let text = render(CHAIN);
    let parts = blocks(&text);
    let [ca, ca_key, cert, key] = parts.as_slice() else { panic!("{text}") };
    assert_eq!(parts.concat(), text);
    if !has_openssl() {
        return;
    }
    let folder = Folder::new("chain");
    let (ca_file, cert_file) = (folder.file("ca.pem", ca), folder.file("cert.pem", cert));
    let strict = ["verify", "-x509_strict", "-CAfile", &ca_file];
    openssl(
        &[&strict[..], &["-purpose", "sslserver", "-verify_hostname", "x.web.svc", &cert_file]]
            .concat(),
        "",
    );
    openssl(
        &[&strict[..], &["-purpose", "sslclient", "-verify_ip", "10.0.0.1", &cert_file]].concat(),
        "",
    );
    assert_pair(ca, ca_key);
    assert_pair(cert, key);
    for key in [ca_key, key] {
        assert!(openssl(&["rsa", "-noout", "-check"], key).contains("RSA key ok"));
    }
    let shown = openssl(&["x509", "-noout", "-text"], cert);
    for wanted in [
        "Issuer: CN = my-ca",
        "Subject: CN = web.example.com",
        "Public-Key: (2048 bit)",
        "sha256WithRSAEncryption",
        "DNS:web, DNS:*.web.svc, IP Address:10.0.0.1, IP Address:0:0:0:0:0:0:0:1, IP Address:1.2.3.4",
        "TLS Web Server Authentication, TLS Web Client Authentication",
        "Digital Signature, Key Encipherment\n",
        "X509v3 Authority Key Identifier",
        "CA:FALSE",
    ] {
        assert!(shown.contains(wanted), "no {wanted:?} in {shown}");
    }
    let shown = openssl(&["x509", "-noout", "-text"], ca);
    assert!(shown.contains("CA:TRUE") && shown.contains("Certificate Sign"), "{shown}");
    assert!(shown.contains("X509v3 Subject Key Identifier"), "{shown}");
}

#[test]
fn keys_of_every_kind_are_ones_to_openssl_and_certify() {
    let cases = [
        ("rsa", "RSA PRIVATE KEY", "4096 bit"),
        ("ecdsa", "EC PRIVATE KEY", "prime256v1"),
        ("ed25519", "PRIVATE KEY", "ED25519"),
        ("dsa", "DSA PRIVATE KEY", "2048 bit"),
    ];
    let openssl_is_here = has_openssl();
    for (kind, label, shown) in cases {
        let template = format!(
            "{{{{- $k := genPrivateKey {kind:?} -}}}}{{{{ $k }}}}{}",
            if kind == "dsa" {
                ""
            } else {
                r#"{{- $ca := genCAWithKey "ca" 1 $k }}{{ $ca.Cert }}{{ $ca.Key -}}
                {{- $c := genSignedCertWithKey "c" nil (list "c") 1 $ca $k }}{{ $c.Cert -}}
                {{- $s := genSelfSignedCertWithKey "" nil (list "s") 1 $k }}{{ $s.Cert }}"#
            }
        );
        let parts = blocks(&render(&template));
        assert!(parts[0].starts_with(&format!("-----BEGIN {label}-----\n")), "{}", parts[0]);
        if !openssl_is_here {
            continue;
        }
        let text = openssl(&["pkey", "-noout", "-text"], &parts[0]);
        assert!(text.contains(shown), "{kind}: {text}");
        if let [key, ca, ca_key, cert, own] = parts.as_slice() {
            assert_eq!(key, ca_key, "{kind}: what goes in comes out");
            assert_pair(ca, key);
            assert_pair(cert, key);
            let folder = Folder::new(kind);
            let (ca, cert) = (folder.file("ca.pem", ca), folder.file("cert.pem", cert));
            openssl(&["verify", "-x509_strict", "-CAfile", &ca, &cert], "");
            let own = folder.file("own.pem", own);
            openssl(&["verify", "-CAfile", &own, &own], "");
        } else {
            assert_eq!(kind, "dsa");
        }
    }
}

#[test]
fn keys_that_openssl_made_are_read() {
    if !has_openssl() {
        return;
    }
    let made = [
        openssl(&["genrsa", "-traditional", "2048"], ""),
        openssl(&["genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:1024"], ""),
        openssl(&["ecparam", "-name", "prime256v1", "-genkey"], ""),
        openssl(&["genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"], ""),
        openssl(&["genpkey", "-algorithm", "ED25519"], ""),
    ];
    for text in made {
        let key = blocks(&text).into_iter().find(|block| block.contains("PRIVATE")).unwrap();
        let template = format!(
            "{{{{ $c := genSelfSignedCertWithKey \"x\" nil nil 1 {key:?} }}}}{{{{ $c.Cert }}}}{{{{ $c.Key }}}}"
        );
        let parts = blocks(&render(&template));
        assert_pair(&parts[0], &key);
        assert_pair(&parts[0], &parts[1]);
        let template =
            format!("{{{{ (buildCustomCert (b64enc {:?}) (b64enc {key:?})).Key }}}}", parts[0]);
        assert_eq!(render(&template), key, "as it was given");
    }
}

#[test]
fn the_same_seed_makes_the_same_keys_and_another_seed_others() {
    let template = r#"{{ (genCA "x" 1).Key }}{{ genPrivateKey "ecdsa" }}{{ encryptAES "p" "t" }}"#;
    let first = render(template);
    assert_eq!(first, render(template));
    let other = render_with(template, 8, Budget::default()).unwrap();
    for (one, other) in blocks(&first).iter().zip(blocks(&other)) {
        assert_ne!(*one, other);
    }
}

#[test]
fn a_certificate_has_its_type_and_fields() {
    let template = r#"{{ $c := genCA "x" 1 }}{{ typeOf $c }} {{ kindOf $c }} {{ eq $c.Cert ($c | toYaml | fromYaml).Cert }}"#;
    assert_eq!(render(template), "sprig.certificate struct true");
}

#[test]
fn a_long_way_ahead_and_names_beyond_ascii_are_written_as_the_standard_wants() {
    if !has_openssl() {
        return;
    }
    let key = "{{ $k := genPrivateKey \"ecdsa\" }}";
    let cert = render(&format!("{key}{{{{ (genCAWithKey \"Übung & Co\" 36500 $k).Cert }}}}"));
    let shown = openssl(&["x509", "-noout", "-text", "-nameopt", "utf8"], &cert);
    assert!(shown.contains("Übung & Co"), "{shown}");
}

#[test]
fn what_cannot_be_certified_is_told_as_helm_tells_it() {
    let ca = "{{ $k := genPrivateKey \"ecdsa\" }}{{ $ca := genCAWithKey \"ca\" 1 $k }}";
    let cases = [
        (
            r#"{{ genSelfSignedCertWithKey "x" (list "1.2.3") nil 1 $k }}"#,
            "error parsing ip: 1.2.3",
        ),
        (
            r#"{{ genSelfSignedCertWithKey "x" (list 5) nil 1 $k }}"#,
            "error parsing ip: 5 is not a string",
        ),
        (
            r#"{{ genSelfSignedCertWithKey "x" nil (list 5) 1 $k }}"#,
            "error processing alternate dns name: 5 is not a string",
        ),
        (
            r#"{{ genSelfSignedCertWithKey "x" nil (list "é") 1 $k }}"#,
            "error creating certificate: x509: \"é\" cannot be encoded as an IA5String",
        ),
        (r#"{{ genCAWithKey "x" 1 "nothing" }}"#, "parsing private key: no PEM data in input"),
        (
            r#"{{ genCAWithKey "x" 1 $ca.Cert }}"#,
            "parsing private key: no private key data in PEM block of type CERTIFICATE",
        ),
        (
            r#"{{ genSignedCertWithKey "x" nil nil 1 (buildCustomCert (b64enc $ca.Cert) (b64enc (genPrivateKey "ecdsa"))) $k }}"#,
            "error creating certificate: x509: provided PrivateKey doesn't match parent's PublicKey",
        ),
        (r#"{{ buildCustomCert "%" "" }}"#, "unable to decode base64 certificate"),
        (r#"{{ buildCustomCert "" "%" }}"#, "unable to decode base64 private key"),
        (r#"{{ buildCustomCert "" "" }}"#, "unable to decode certificate"),
        (
            r#"{{ buildCustomCert (b64enc $ca.Cert) "" }}"#,
            "error parsing private key: no PEM data in input",
        ),
    ];
    for (call, wanted) in cases {
        assert!(
            failure(&format!("{ca}{call}")).contains(wanted),
            "{call}: {}",
            failure(&format!("{ca}{call}"))
        );
    }
    assert_eq!(render("{{ genPrivateKey \"x\" }}"), "Unknown type x");
}

#[test]
fn keys_are_charged_before_they_are_made() {
    let budget = Budget { keys: 0, ..Budget::default() };
    for call in [
        "genCA \"x\" 1",
        "genPrivateKey \"rsa\"",
        "genPrivateKey \"dsa\"",
        "genSelfSignedCert \"x\" nil nil 1",
        "derivePassword 1 \"long\" \"p\" \"u\" \"s\"",
    ] {
        let error = render_with(&format!("{{{{ {call} }}}}"), 1, budget).expect_err(call);
        assert!(error.kind().is_budget(), "{call}: {error}");
    }
    let error = render_with(
        "{{ range until 1000 }}{{ genCA \"x\" 1 }}{{ end }}",
        1,
        Budget { keys: 2, ..Budget::default() },
    );
    assert!(error.unwrap_err().kind().is_budget());
}

#[test]
fn slow_calls_count_as_many_keys_as_they_take_long() {
    let calls = [
        ("genCA \"x\" 1", 1),
        ("genPrivateKey \"rsa\"", 13),
        ("genPrivateKey \"dsa\"", 7),
        ("bcrypt \"p\"", 2),
        ("derivePassword 1 \"long\" \"p\" \"u\" \"s\"", 4),
    ];
    for (call, keys) in calls {
        let budget = Budget { keys: keys - 1, ..Budget::default() };
        let error = render_with(&format!("{{{{ {call} }}}}"), 1, budget).expect_err(call);
        assert!(error.kind().is_budget(), "{call}: {error}");
    }
    let budget = Budget { keys: 3, ..Budget::default() };
    render_with("{{ bcrypt \"p\" }}{{ (genCA \"x\" 1).Cert }}", 1, budget).expect("three");
    // Charts are known that make so many certificates.
    assert!(Budget::default().keys >= 51);
}

#[test]
fn a_text_under_a_password_is_one_to_openssl() {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use std::fmt::Write as _;
    for text in ["x", "0123456789abcdef", "a longer text, with ümläuts"] {
        let call = format!("{{{{ encryptAES \"secret\" {text:?} }}}}");
        let sealed = STANDARD.decode(render(&call)).unwrap();
        assert_eq!(sealed.len() % 16, 0);
        assert_eq!(
            render(&format!("{{{{ encryptAES \"secret\" {text:?} | decryptAES \"secret\" }}}}")),
            text
        );
        if !has_openssl() {
            continue;
        }
        let hex = |bytes: &[u8]| {
            bytes.iter().fold(String::new(), |mut out, byte| {
                write!(out, "{byte:02x}").unwrap();
                out
            })
        };
        let (start, body) = sealed.split_at(16);
        let key = hex(b"secret") + &"00".repeat(26);
        let args = ["enc", "-d", "-a", "-A", "-aes-256-cbc", "-K", &key, "-iv", &hex(start)];
        assert_eq!(openssl(&args, &(STANDARD.encode(body) + "\n")), text);
    }
}
