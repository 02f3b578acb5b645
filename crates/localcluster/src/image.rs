//! Images made of files, without a registry, a builder or a base: for a node that has none of them
//! either.
//!
//! ```
//! use catamaran_localcluster::Image;
//!
//! let archive = Image::scratch("localhost/hello:1")
//!     .file("hello", 0o755, b"#!/no/such/thing")?
//!     .entrypoint(["/hello", "world"])
//!     .user("65532:65532")
//!     .archive()?;
//! # Ok::<(), catamaran_localcluster::Error>(())
//! ```

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::error::{Error, Result};

/// An image under construction. What comes out is the format of `docker save`, which every tool
/// loads, and which is the same bytes for the same content.
pub struct Image {
    name: String,
    layer: tar::Builder<Vec<u8>>,
    config: Value,
}

impl Image {
    /// An empty image called `name`, as `localhost/hello:1`.
    ///
    /// Give it a tag other than `latest`: Kubernetes looks for `latest` in a registry even if it is
    /// there, unless the pod says `imagePullPolicy: IfNotPresent`.
    pub fn scratch(name: &str) -> Self {
        let mut layer = tar::Builder::new(Vec::new());
        layer.mode(tar::HeaderMode::Deterministic);
        layer.follow_symlinks(false);
        let config = json!({"Env": ["PATH=/usr/sbin:/usr/bin:/sbin:/bin"], "WorkingDir": "/"});
        Self { name: name.into(), layer, config }
    }

    /// Adds a file at `path` (from the image's root, without a leading slash), of root.
    ///
    /// # Errors
    /// If the path is absolute, leads outside, or is too long for an archive.
    pub fn file(mut self, path: &str, mode: u32, content: &[u8]) -> Result<Self> {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(mode);
        self.layer
            .append_data(&mut header, path, content)
            .map_err(Error::io(format!("put {path} into image {}", self.name)))?;
        Ok(self)
    }

    /// Adds all that is in a folder of this machine to the image's root, with modes and symbolic
    /// links, of root.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub fn folder(mut self, root: &Path) -> Result<Self> {
        let what = format!("put {} into image {}", root.display(), self.name);
        self.layer.append_dir_all("", root).map_err(Error::io(what))?;
        Ok(self)
    }

    /// What runs, with its arguments.
    #[must_use]
    pub fn entrypoint<'a>(mut self, command: impl IntoIterator<Item = &'a str>) -> Self {
        self.config["Entrypoint"] = command.into_iter().collect();
        self
    }

    /// As whom it runs, `USER[:GROUP]`. In numbers, or Kubernetes cannot know that it is not root.
    #[must_use]
    pub fn user(mut self, user: &str) -> Self {
        self.config["User"] = user.into();
        self
    }

    /// The whole image, as `docker load` and [`RealNode::load_image`](crate::RealNode::load_image)
    /// read it.
    pub fn archive(self) -> Result<Vec<u8>> {
        let what = || format!("write image {}", self.name);
        let layer = self.layer.into_inner().map_err(Error::io(what()))?;
        let config = json!({
            "architecture": architecture(),
            "os": "linux",
            "config": self.config,
            "rootfs": {"type": "layers", "diff_ids": [format!("sha256:{}", sha256(&layer))]},
        })
        .to_string();
        // A digest, because the image's identity is that of its configuration.
        let config_name = format!("{}.json", sha256(config.as_bytes()));
        let manifest =
            json!([{"Config": config_name, "RepoTags": [self.name], "Layers": ["layer.tar"]}])
                .to_string();
        let files = [
            (config_name.as_str(), config.as_bytes()),
            ("layer.tar", layer.as_slice()),
            ("manifest.json", manifest.as_bytes()),
        ];
        pack(files).map_err(Error::io(what()))
    }

    /// Writes the whole image to a file, and hands its path on.
    pub fn write(self, path: impl Into<PathBuf>) -> Result<PathBuf> {
        let path = path.into();
        fs::write(&path, self.archive()?)
            .map_err(Error::io(format!("write {}", path.display())))?;
        Ok(path)
    }
}

impl std::fmt::Debug for Image {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Image").field("name", &self.name).finish_non_exhaustive()
    }
}

fn pack<'a>(files: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> io::Result<Vec<u8>> {
    let mut archive = tar::Builder::new(Vec::new());
    for (name, content) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        archive.append_data(&mut header, name, content)?;
    }
    archive.into_inner()
}

fn sha256(data: &[u8]) -> String {
    Sha256::digest(data).iter().fold(String::new(), |mut text, byte| {
        // Writing to a String does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// This machine's, in the names of images, which are Go's.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use std::io::Read as _;
    use std::os::unix::fs::symlink;

    fn unpack(archive: &[u8]) -> BTreeMap<String, Vec<u8>> {
        let mut archive = tar::Archive::new(archive);
        let entries = archive.entries().unwrap();
        entries
            .map(|entry| {
                let mut entry = entry.unwrap();
                let mut content = Vec::new();
                entry.read_to_end(&mut content).unwrap();
                (entry.path().unwrap().to_string_lossy().into_owned(), content)
            })
            .collect()
    }

    #[test]
    fn an_archive_names_its_parts_by_their_digests() {
        let image = || {
            let image = Image::scratch("localhost/x:1").file("bin/x", 0o755, b"content").unwrap();
            image.entrypoint(["/bin/x", "--flag"]).user("65532")
        };
        let archive = image().archive().unwrap();
        assert_eq!(archive, image().archive().unwrap(), "the same content, the same bytes");

        let files = unpack(&archive);
        let manifest: Value = serde_json::from_slice(&files["manifest.json"]).unwrap();
        assert_eq!(manifest[0]["RepoTags"], json!(["localhost/x:1"]));
        let layer = &files[manifest[0]["Layers"][0].as_str().unwrap()];
        let config = &files[manifest[0]["Config"].as_str().unwrap()];
        assert_eq!(manifest[0]["Config"], format!("{}.json", sha256(config)));
        let config: Value = serde_json::from_slice(config).unwrap();
        assert_eq!(config["rootfs"]["diff_ids"], json!([format!("sha256:{}", sha256(layer))]));
        assert_eq!(config["config"]["Entrypoint"], json!(["/bin/x", "--flag"]));
        assert_eq!(config["config"]["User"], "65532");
        assert_eq!(unpack(layer)["bin/x"], b"content");
    }

    #[test]
    fn a_folder_is_taken_with_its_links() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("lib")).unwrap();
        fs::write(folder.path().join("lib/x.so.1"), "library").unwrap();
        symlink("x.so.1", folder.path().join("lib/x.so")).unwrap();
        let image = Image::scratch("localhost/x:1").folder(folder.path()).unwrap();
        let layer = image.layer.into_inner().unwrap();
        let mut layer = tar::Archive::new(layer.as_slice());
        let mut found: Vec<_> = layer
            .entries()
            .unwrap()
            .map(|entry| {
                let entry = entry.unwrap();
                let link = entry.link_name().unwrap().map(std::borrow::Cow::into_owned);
                (entry.path().unwrap().to_string_lossy().into_owned(), link)
            })
            .filter(|(path, _)| path.contains("x.so"))
            .collect();
        found.sort();
        let link = Some(PathBuf::from("x.so.1"));
        assert_eq!(found, [("lib/x.so".to_owned(), link), ("lib/x.so.1".to_owned(), None)]);
    }

    #[test]
    fn a_file_outside_of_the_image_is_an_error() {
        for path in ["../x", "/x"] {
            assert!(Image::scratch("x:1").file(path, 0o644, b"").is_err(), "{path}");
        }
    }
}
