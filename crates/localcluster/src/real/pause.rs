//! The image of the process that holds a pod's namespaces open: it waits, and does nothing else.
//!
//! Its program is written down here as the machine code that it is: a pod needs it, and so it may need
//! neither a registry nor a compiler.

use crate::error::{Error, Result};
use crate::image::Image;

/// The name under which a node has it.
pub(crate) const NAME: &str = "localhost/catamaran-pause:1";

/// Where the program is mapped, as linkers usually do.
const ADDRESS: u64 = 0x40_0000;

/// The size of the only two headers: of the file, and of its only segment.
const HEADERS: u64 = 64 + 56;

/// ELF's number of the machine, and the instructions: for ever, wait for a signal.
///
/// containerd ends it by SIGKILL, so it need not handle signals; and it is parent to nobody, unless a
/// pod shares its process namespace, whose zombies then stay as long as the pod.
#[cfg(target_arch = "x86_64")]
const PROGRAM: Option<(u16, &[u8])> = Some((
    62,
    &[
        0xb8, 0x22, 0x00, 0x00, 0x00, // mov eax, 34 (pause)
        0x0f, 0x05, // syscall
        0xeb, 0xf7, // jmp to the begin
    ],
));
#[cfg(target_arch = "aarch64")]
const PROGRAM: Option<(u16, &[u8])> = Some((
    183,
    &[
        0x00, 0x00, 0x80, 0xd2, // mov x0, 0
        0x01, 0x00, 0x80, 0xd2, // mov x1, 0
        0x02, 0x00, 0x80, 0xd2, // mov x2, 0
        0x03, 0x00, 0x80, 0xd2, // mov x3, 0
        0x04, 0x00, 0x80, 0xd2, // mov x4, 0
        0x28, 0x09, 0x80, 0xd2, // mov x8, 73 (ppoll)
        0x01, 0x00, 0x00, 0xd4, // svc 0
        0xf9, 0xff, 0xff, 0x17, // b to the begin
    ],
));
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const PROGRAM: Option<(u16, &[u8])> = None;

/// The image, as an archive.
pub(super) fn archive() -> Result<Vec<u8>> {
    let (machine, code) = PROGRAM
        .ok_or_else(|| Error::RealNode("no real node is possible on this architecture".into()))?;
    Image::scratch(NAME)
        .file("pause", 0o755, &elf(machine, code))?
        .entrypoint(["/pause"])
        .user("65535:65535")
        .archive()
}

/// A program of one segment: headers and code, read-only.
fn elf(machine: u16, code: &[u8]) -> Vec<u8> {
    let size = HEADERS + code.len() as u64;
    let mut file = Vec::new();
    file.extend(b"\x7fELF\x02\x01\x01"); // 64 bits, little-endian, version 1
    file.resize(16, 0);
    for half in [2, machine] {
        file.extend(half.to_le_bytes()); // executable
    }
    file.extend(1_u32.to_le_bytes()); // version
    for address in [ADDRESS + HEADERS, 64, 0] {
        file.extend(address.to_le_bytes()); // entry; where the program header is; no section headers
    }
    file.extend(0_u32.to_le_bytes()); // flags
    for half in [64_u16, 56, 1, 64, 0, 0] {
        file.extend(half.to_le_bytes()); // sizes and counts of headers
    }
    for word in [1_u32, 5] {
        file.extend(word.to_le_bytes()); // to be loaded, to be read and executed
    }
    for field in [0, ADDRESS, ADDRESS, size, size, 0x1000] {
        file.extend(field.to_le_bytes()); // offset, addresses, sizes, alignment
    }
    file.extend(code);
    file
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;
    use std::process::Command;
    use std::time::Duration;

    #[test]
    fn the_program_waits_for_ever() {
        let Some((machine, code)) = PROGRAM else { return };
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pause");
        fs::write(&path, elf(machine, code)).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        let mut child = Command::new(&path).spawn().unwrap();
        // What could go wrong (a fault, an end, an endless run) shows at once.
        std::thread::sleep(Duration::from_millis(50));
        let state = fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
        let ended = child.try_wait().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(ended, None);
        assert!(state.contains("(pause) S"), "it sleeps: {state}");
    }
}
