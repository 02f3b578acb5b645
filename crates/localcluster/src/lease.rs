//! A lease, seen from the one who holds it.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::timeout;

use crate::error::{Error, Result};
use crate::pki::log_file;
use crate::places::remove_folder;
use crate::processes::tail;
use crate::protocol::{Command as Say, Event, Info, Spec, Status, line};
use crate::real;

/// How much longer than the supervisor itself we wait for it to come up, or to say that it did not.
const GRACE: Duration = Duration::from_secs(10);

/// How long the answer to a question may take.
const ANSWER: Duration = Duration::from_secs(5);

/// An open connection to a supervisor. Its end, by drop or with the process, gives the lease back.
pub(crate) struct Lease {
    stream: UnixStream,
    events: UnboundedReceiver<Event>,
    log: Option<PathBuf>,
}

impl Lease {
    /// Starts a supervisor and takes its first lease.
    ///
    /// Blocks for the time of a fork. The cluster is not ready yet: [`Lease::ready`] waits for it.
    pub(crate) fn start(program: &Path, spec: &Spec) -> Result<Self> {
        let logs = spec.folder.join("logs");
        fs::create_dir_all(&logs).map_err(Error::io(format!("create {}", logs.display())))?;
        let log = logs.join("supervisor.log");
        let (ours, theirs) = UnixStream::pair().map_err(Error::io("make a pair of sockets"))?;
        let child = Command::new(program)
            .arg("supervise")
            .arg(line(spec).trim())
            .current_dir(&spec.folder)
            .stdin(OwnedFd::from(theirs))
            // Not ours: who waits for the end of our output must not wait for the supervisor.
            .stdout(Stdio::null())
            .stderr(log_file(&log)?)
            .spawn()
            .map_err(Error::io(format!("start {}", program.display())))?;
        let own = spec.socket.is_none();
        let folder = (own && !spec.keep).then(|| spec.folder.clone());
        Self::new(ours, Some(log), Listener { child: Some(child), own, folder })
    }

    /// Takes another lease of a supervisor that listens at `socket`.
    pub(crate) fn connect(socket: &Path) -> std::io::Result<Result<Self>> {
        let stream = UnixStream::connect(socket)?;
        Ok(Self::new(stream, None, Listener { child: None, own: false, folder: None }))
    }

    fn new(stream: UnixStream, log: Option<PathBuf>, listener: Listener) -> Result<Self> {
        let (sender, events) = unbounded_channel();
        let theirs = stream.try_clone().map_err(Error::io("share a socket"))?;
        thread::Builder::new()
            .name("localcluster".into())
            .spawn(move || listener.listen(theirs, &sender))
            .map_err(Error::io("start a thread"))?;
        Ok(Self { stream, events, log })
    }

    /// Blocks until the supervisor lets others connect.
    pub(crate) fn listening(&mut self) -> Result<()> {
        match self.events.blocking_recv() {
            Some(Event::Listening) => Ok(()),
            Some(Event::Failed(failure)) => Err(failure.into()),
            _ => Err(self.lost("it to listen")),
        }
    }

    /// Until the cluster can be used.
    ///
    /// # Errors
    /// [`Error::Lost`] if the supervisor ended: one that was just about to, if it was not ours.
    pub(crate) async fn ready(
        &mut self,
        deadline: Duration,
        progress: impl Fn(&str),
    ) -> Result<Info> {
        let after = deadline + GRACE;
        let wait = async {
            loop {
                match self.events.recv().await {
                    Some(Event::Ready(info)) => return Ok(info),
                    Some(Event::Failed(failure)) => return Err(failure.into()),
                    Some(Event::Progress(text)) => progress(&text),
                    Some(Event::Listening | Event::Status(_)) => {}
                    Some(Event::Ended) | None => return Err(self.lost("the cluster to be ready")),
                }
            }
        };
        let waiting_for = || "the supervisor of the local cluster to say anything".into();
        timeout(after, wait)
            .await
            .map_err(|_| Error::Deadline { waiting_for: waiting_for(), after })?
    }

    /// Gives the lease back and waits until the supervisor has said its last word.
    pub(crate) async fn end(mut self) {
        let _ = self.stream.shutdown(Shutdown::Write);
        while self.events.recv().await.is_some() {}
    }

    /// Until the cluster has ended, for whatever reason. Says why, if it is broken.
    pub(crate) async fn ended(&mut self) -> Option<Error> {
        let mut why = None;
        while let Some(event) = self.events.recv().await {
            if let Event::Failed(failure) = event {
                why = Some(failure.into());
            }
        }
        why
    }

    /// Asks the supervisor how it is.
    pub(crate) async fn status(&mut self) -> Result<Status> {
        self.say(&Say::Status);
        let answer = async {
            while let Some(event) = self.events.recv().await {
                if let Event::Status(status) = event {
                    return Ok(status);
                }
            }
            Err(self.lost("its status"))
        };
        let waiting_for = || "the supervisor's status".into();
        timeout(ANSWER, answer)
            .await
            .map_err(|_| Error::Deadline { waiting_for: waiting_for(), after: ANSWER })?
    }

    /// Tells the supervisor something.
    pub(crate) fn say(&self, command: &Say) {
        // If it is gone, there is nobody who could do it.
        let _ = (&self.stream).write_all(line(command).as_bytes());
    }

    fn lost(&self, waiting_for: &'static str) -> Error {
        let log = self.log.as_deref().map(tail).unwrap_or_default();
        Error::Lost { waiting_for, log }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        // The thread has a handle of its own, so closing ours would not end the connection.
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

/// Hears the supervisor out, on a thread of its own: it must work whether or not anybody polls.
struct Listener {
    /// The supervisor, if it is our child: someone must collect it.
    child: Option<Child>,
    /// Whether it ends with our lease.
    own: bool,
    /// What to remove if the supervisor was killed and could not do it.
    folder: Option<PathBuf>,
}

impl Listener {
    fn listen(mut self, stream: UnixStream, sender: &UnboundedSender<Event>) {
        let mut ready = false;
        for line in BufReader::new(stream).lines() {
            let Ok(event) = line.map_err(drop).and_then(|l| serde_json::from_str(&l).map_err(drop))
            else {
                break;
            };
            match &event {
                Event::Ready(_) => ready = true,
                // Who holds a ready cluster listens no more, and wonders about refused connections.
                Event::Failed(failure) if ready => eprintln!("localcluster: {failure}"),
                _ => {}
            }
            let _ = sender.send(event);
        }
        let Some(mut child) = self.child.take() else { return };
        if self.own {
            let _ = child.wait();
        } else {
            // It may go on for others as long as it likes.
            thread::spawn(move || child.wait());
        }
        if let Some(folder) = self.folder {
            real::sweep(&folder);
            remove_folder(&folder);
        }
    }
}
