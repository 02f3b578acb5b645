//! The process that owns a control plane, for as long as somebody holds a lease on it.
//!
//! It ends the control plane when the last lease is gone (and nobody came while it lingered), when
//! the checkout it serves is gone, when one of the components died, or when it is told to.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::fd::AsFd as _;
use std::path::Path;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Api, DeleteParams};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval, timeout};

use crate::control_plane::{API_SERVER, ControlPlane, Started, Step};
use crate::error::{Error, Failure, Result};
use crate::places::remove_folder;
use crate::processes::Processes;
use crate::protocol::{Command, Event, Spec, Status, line};

/// How often the folders are looked for, and the clock for lingering is read.
const TICK: Duration = Duration::from_millis(500);

/// How long a lease's holder may take to read our last words.
const FAREWELL: Duration = Duration::from_secs(1);

/// The name of the file that is locked while a supervisor lives. A folder with such a file that is
/// not locked is of one that was killed.
pub(crate) const LOCK: &str = "lock";

/// Runs a control plane as `spec` (JSON) says until nobody needs it any more. Its standard input is
/// the first lease.
///
/// Must be called on the main thread, which starts the components (see `Processes`).
pub fn run(spec: &str) -> Result<()> {
    let spec: Spec = serde_json::from_str(spec)
        .map_err(|error| Error::Invalid(format!("not a specification of a cluster: {error}")))?;
    // Out of the caller's terminal: Ctrl-C there is the caller's to handle, and closes the lease.
    // Fails if we lead a process group already, which does as well.
    let _ = rustix::process::setsid();
    let _lock = lock(&spec.folder)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Error::io("start the runtime"))?;
    runtime.block_on(async { Supervisor::new(&spec)?.run().await })
}

/// Holds the folder's lock until it is dropped.
fn lock(folder: &Path) -> Result<fs::File> {
    let path = folder.join(LOCK);
    let what = format!("lock {}", path.display());
    // Locked before it gets its name, so that nobody sees it unlocked.
    let new = folder.join(".lock.new");
    let lock = || -> io::Result<fs::File> {
        let file = fs::File::create(&new)?;
        file.try_lock()?;
        fs::rename(&new, &path)?;
        Ok(file)
    };
    lock().map_err(Error::io(what))
}

enum Message {
    /// Somebody connected.
    Joined(UnixStream),
    Said(LeaseId, Command),
    /// A connection was closed.
    Left(LeaseId),
}

type LeaseId = u64;

/// One who needs the cluster.
struct Lease {
    /// Closed to end the task that writes.
    events: UnboundedSender<Event>,
    writer: JoinHandle<()>,
}

struct Supervisor<'a> {
    spec: &'a Spec,
    begun: Instant,
    leases: BTreeMap<LeaseId, Lease>,
    next: LeaseId,
    /// Since when there is no lease.
    idle: Option<Instant>,
    started: Option<Started>,
    inbox: UnboundedReceiver<Message>,
    outbox: UnboundedSender<Message>,
    signals: Signals,
}

struct Signals {
    child: Signal,
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
}

impl Signals {
    fn new() -> io::Result<Self> {
        Ok(Self {
            child: signal(SignalKind::child())?,
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    /// Until we are told to end.
    async fn end(interrupt: &mut Signal, terminate: &mut Signal, hangup: &mut Signal) {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
        }
    }
}

/// Why the cluster ends.
enum End {
    /// Nobody needs it, or somebody wants it.
    Asked,
    /// It is of no use any more.
    Broken(Failure),
}

impl<'a> Supervisor<'a> {
    fn new(spec: &'a Spec) -> Result<Self> {
        let (outbox, inbox) = unbounded_channel();
        let mut supervisor = Self {
            spec,
            begun: Instant::now(),
            leases: BTreeMap::new(),
            next: 0,
            idle: None,
            started: None,
            inbox,
            outbox,
            signals: Signals::new().map_err(Error::io("listen to signals"))?,
        };
        supervisor.join(first_lease().map_err(Error::io("take the first lease"))?);
        Ok(supervisor)
    }

    async fn run(mut self) -> Result<()> {
        let acceptor = self.spec.socket.as_deref().map(|path| self.listen(path)).transpose()?;
        let processes = Processes::new(&self.spec.folder);
        let end = self.serve(&processes).await;

        // First nobody may come any more: whoever tries now finds no socket, and starts anew.
        if let (Some(path), Some(acceptor)) = (self.spec.socket.as_deref(), acceptor) {
            let _ = fs::remove_file(path);
            acceptor.abort();
        }
        if let End::Broken(failure) = end {
            eprintln!("{failure}");
            self.tell(&Event::Failed(failure));
        }
        // While its folder is there, and before its outermost process ends without a word.
        drop(self.started.take());
        processes.end();
        if !self.spec.keep {
            remove_folder(&self.spec.folder); // if it fails, the next start sweeps
        }
        self.tell(&Event::Ended);
        self.farewell().await;
        Ok(())
    }

    /// Lets others come.
    fn listen(&mut self, path: &Path) -> Result<JoinHandle<()>> {
        // Whoever started us holds a lock and found nobody answering: what lies there is dead.
        let _ = fs::remove_file(path);
        let listener =
            UnixListener::bind(path).map_err(Error::io(format!("listen on {}", path.display())))?;
        let outbox = self.outbox.clone();
        self.tell(&Event::Listening);
        Ok(tokio::spawn(async move {
            loop {
                match listener.accept().await {
                    Ok((stream, _)) => {
                        // Not heard once we end: the connection closes, and they start anew.
                        let _ = outbox.send(Message::Joined(stream));
                    }
                    // Out of descriptors, most likely. They come back.
                    Err(_) => tokio::time::sleep(TICK).await,
                }
            }
        }))
    }

    /// Starts the control plane and keeps it for those who need it.
    async fn serve(&mut self, processes: &Processes) -> End {
        let step = RefCell::new(Step { component: "etcd", waiting_for: "its start".into() });
        let (news, mut progress) = unbounded_channel();
        let report = move |text| {
            // The receiver lives as long as this function.
            let _ = news.send(text);
        };
        let plane = ControlPlane::new(self.spec, processes, &step, &report);
        let mut start = Box::pin(plane.start());
        let mut tick = interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let Signals { child, interrupt, terminate, hangup } = &mut self.signals;
            tokio::select! {
                result = &mut start, if self.started.is_none() => match result {
                    Ok(started) => {
                        while let Ok(text) = progress.try_recv() {
                            self.tell(&Event::Progress(text));
                        }
                        self.tell(&Event::Ready(started.info.clone()));
                        self.started = Some(started);
                        step.replace(Step { component: "", waiting_for: "the next lease".into() });
                    }
                    Err(error) => return End::Broken(plane.failure(&error)),
                },
                Some(text) = progress.recv() => self.tell(&Event::Progress(text)),
                Some(message) = self.inbox.recv() => if self.hear(message, processes) {
                    return End::Asked;
                },
                _ = child.recv() => if let Some((name, status)) = processes.dead() {
                    return End::Broken(Failure {
                        component: name.into(),
                        waiting_for: step.borrow().waiting_for.clone(),
                        reason: format!("ended ({status})"),
                        log: processes.tail(name),
                    });
                },
                () = Signals::end(interrupt, terminate, hangup) => return End::Asked,
                _ = tick.tick() => {}
            }
            if self.is_needless() {
                return End::Asked;
            }
        }
    }

    /// Whether nobody is left who could want the cluster.
    fn is_needless(&self) -> bool {
        let lingered = self.idle.is_some_and(|since| since.elapsed() >= self.spec.linger);
        let gone = |path: &Path| matches!(path.try_exists(), Ok(false));
        lingered
            || self.spec.checkout.as_deref().is_some_and(gone)
            || gone(&self.spec.folder)
            || self.spec.socket.as_deref().is_some_and(gone)
    }

    /// Deals with what a lease's holder did. True: end now.
    fn hear(&mut self, message: Message, processes: &Processes) -> bool {
        match message {
            Message::Joined(stream) => self.join(stream),
            Message::Left(id) => {
                self.leases.remove(&id);
                if self.leases.is_empty() {
                    self.idle = Some(Instant::now());
                }
            }
            Message::Said(_, Command::Stop) => return true,
            Message::Said(_, Command::DeleteNamespace(name)) => self.delete_namespace(name),
            // Whoever shares a cluster must not do that to the others.
            Message::Said(_, Command::KillApiServer | Command::StartApiServer)
                if self.spec.socket.is_some() => {}
            Message::Said(_, Command::KillApiServer) => processes.kill(API_SERVER),
            Message::Said(_, Command::StartApiServer) => {
                if let Err(error) = processes.start_again(API_SERVER) {
                    eprintln!("{error}"); // whoever asked for it waits in vain, and says so
                }
            }
            Message::Said(id, Command::Status) => {
                let status = Status {
                    folder: self.spec.folder.clone(),
                    leases: self.leases.len().saturating_sub(1),
                    ready: self.started.is_some(),
                    age: self.begun.elapsed(),
                    processes: processes.list(),
                };
                if let Some(lease) = self.leases.get(&id) {
                    let _ = lease.events.send(Event::Status(status));
                }
            }
        }
        false
    }

    fn join(&mut self, stream: UnixStream) {
        let id = self.next;
        self.next += 1;
        self.idle = None;
        let (read, mut write) = stream.into_split();
        let (events, mut queue) = unbounded_channel::<Event>();
        let writer = tokio::spawn(async move {
            while let Some(event) = queue.recv().await {
                if write.write_all(line(&event).as_bytes()).await.is_err() {
                    return; // its holder is gone, and the reader says so
                }
            }
        });
        let outbox = self.outbox.clone();
        tokio::spawn(async move {
            let mut lines = BufReader::new(read).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                // What is not a command is of a newer version, and not for us.
                let Ok(command) = serde_json::from_str(&line) else { continue };
                let _ = outbox.send(Message::Said(id, command));
            }
            let _ = outbox.send(Message::Left(id));
        });
        if let Some(started) = &self.started {
            let _ = events.send(Event::Ready(started.info.clone()));
        }
        self.leases.insert(id, Lease { events, writer });
    }

    fn tell(&self, event: &Event) {
        for lease in self.leases.values() {
            // One who has just left is heard of next.
            let _ = lease.events.send(event.clone());
        }
    }

    /// Until all have read what we said, or long enough.
    async fn farewell(&mut self) {
        let writers: Vec<_> = std::mem::take(&mut self.leases)
            .into_values()
            .map(|Lease { events, writer }| {
                drop(events);
                writer
            })
            .collect();
        let _ = timeout(FAREWELL, async {
            for writer in writers {
                let _ = writer.await;
            }
        })
        .await;
    }

    fn delete_namespace(&self, name: String) {
        let Some(started) = &self.started else { return };
        let namespaces: Api<Namespace> = Api::all(started.client.clone());
        tokio::spawn(async move {
            // A courtesy to those who still use the cluster; it ends with the last of them anyway.
            let _ = namespaces.delete(&name, &DeleteParams::background()).await;
        });
    }
}

/// Standard input, as the connection that it is.
fn first_lease() -> io::Result<UnixStream> {
    let stdin = io::stdin().as_fd().try_clone_to_owned()?;
    let stream = std::os::unix::net::UnixStream::from(stdin);
    stream.set_nonblocking(true)?;
    UnixStream::from_std(stream)
}
