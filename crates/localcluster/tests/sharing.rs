//! One cluster for all who ask for the same, in however many processes.

#![allow(clippy::unwrap_used, clippy::panic)] // a test ends by them

mod common;

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use catamaran_localcluster::{Builder, LocalCluster};
use common::gone;

/// Set for the process that is a guest of another test.
const GUEST: &str = "LOCALCLUSTER_TEST_GUEST_OF";

/// Shares a cluster by a folder, as those of one checkout do.
fn sharing(checkout: &Path) -> Builder {
    LocalCluster::builder().shared_in(checkout).linger(Duration::from_secs(2))
}

#[tokio::test]
async fn all_who_ask_at_once_get_the_same_and_it_ends_after_the_last() {
    let checkout = tempfile::tempdir().unwrap();
    let ask = || async { sharing(checkout.path()).start().await.unwrap() };
    let (one, two, three) = tokio::join!(ask(), ask(), ask());
    let folder = one.folder().to_owned();
    assert_eq!((two.folder(), three.folder()), (folder.as_path(), folder.as_path()));

    // Another process, as when every test is one.
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "guest", "--nocapture"])
        .env(GUEST, checkout.path())
        .stderr(Stdio::inherit())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.contains(&format!("guest of {}\n", folder.display())), "{said}");

    // Whoever has started it may go.
    drop(one);
    drop(two);
    assert!(three.client().apiserver_version().await.is_ok());

    // Between two tests nobody holds a lease.
    drop(three);
    let next = ask().await;
    assert_eq!(next.folder(), folder, "it has lingered");
    drop(next);
    gone(&folder).await;

    // And once it is gone, the next one starts anew.
    let anew = ask().await;
    assert_ne!(anew.folder(), folder);
    let folder = anew.folder().to_owned();
    drop(checkout);
    gone(&folder).await; // although we hold a lease: the checkout is gone
    drop(anew);
}

/// Not a test, but the other process of one.
#[tokio::test]
async fn guest() {
    let Some(checkout) = std::env::var_os(GUEST) else { return };
    let cluster = sharing(Path::new(&checkout)).start().await.unwrap();
    cluster.client().apiserver_version().await.unwrap();
    println!("guest of {}", cluster.folder().display());
}

#[tokio::test]
async fn those_who_want_something_else_do_not_share() {
    let checkout = tempfile::tempdir().unwrap();
    let (one, two) = tokio::join!(
        sharing(checkout.path()).nodes(0).start(),
        sharing(checkout.path()).nodes(0).audit(true).start(),
    );
    let (one, two) = (one.unwrap(), two.unwrap());
    assert_ne!(one.folder(), two.folder());
    let folders = [one.folder().to_owned(), two.folder().to_owned()];
    drop((one, two));
    for folder in folders {
        gone(&folder).await;
    }
}
