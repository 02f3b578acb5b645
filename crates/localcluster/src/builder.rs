//! Asking for a cluster: of one's own, or a share in one.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::cluster::LocalCluster;
use crate::error::{Error, Result};
use crate::lease::Lease;
use crate::places::{Meeting, checkout, keep, new_folder};
use crate::program;
use crate::protocol::{Command, Info, Spec, Status};
use crate::real;
use crate::tools::{has_node_tools, node_tools, tools, tools_in};

/// How long a start may take, on a machine that has other things to do as well.
const DEADLINE: Duration = Duration::from_mins(2);

/// How long a shared cluster waits for its next user: longer than the pause between two test
/// programs of one run, shorter than anyone would mind.
const LINGER: Duration = Duration::from_secs(20);

/// How often one comes too late: to a supervisor that is just ending.
const ATTEMPTS: usize = 5;

type Progress = Arc<dyn Fn(&str) + Send + Sync>;

/// What kind of cluster is wanted. From [`LocalCluster::builder`].
#[derive(Clone)]
pub struct Builder {
    nodes: Option<u16>,
    real_node: bool,
    audit: bool,
    deadline: Duration,
    linger: Duration,
    shared_in: Option<PathBuf>,
    program: Option<PathBuf>,
    tools: Option<PathBuf>,
    progress: Option<Progress>,
}

impl Builder {
    pub(crate) fn new() -> Self {
        Self {
            nodes: None,
            real_node: false,
            audit: false,
            deadline: DEADLINE,
            linger: LINGER,
            shared_in: None,
            program: None,
            tools: None,
            progress: None,
        }
    }

    /// How many simulated nodes. If not said otherwise: none beside a real one, else 1. Without any
    /// node, no pod ever runs.
    #[must_use]
    pub fn nodes(mut self, count: u16) -> Self {
        self.nodes = Some(count);
        self
    }

    /// Adds a real node, called `real-1`, whose containers run on this machine. Images are loaded into
    /// it ([`RealNode::load_image`]); it reaches no registry. A machine has room for one: the start
    /// waits up to 5 minutes for that of another cluster to end.
    ///
    /// Beside simulated nodes, pods that must run on it say so: `nodeSelector: {type: real}`.
    /// ([`LocalCluster::real_node_available`] tells beforehand whether the machine can have one.)
    ///
    /// [`RealNode::load_image`]: crate::RealNode::load_image
    #[must_use]
    pub fn real_node(mut self) -> Self {
        self.real_node = true;
        self
    }

    fn count(&self) -> u16 {
        self.nodes.unwrap_or(u16::from(!self.real_node))
    }

    /// Whether to keep an audit log, which [`LocalCluster::audit`] reads.
    #[must_use]
    pub fn audit(mut self, on: bool) -> Self {
        self.audit = on;
        self
    }

    /// How long the start may take (2 minutes if not said otherwise; a building of the tools does not
    /// count).
    #[must_use]
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// Shares the cluster with everyone who asks for one with the same settings and this folder. It
    /// ends when the folder is gone, or when nobody has used it for a while (see
    /// [`Builder::linger`]).
    #[must_use]
    pub fn shared_in(mut self, checkout: impl Into<PathBuf>) -> Self {
        self.shared_in = Some(checkout.into());
        self
    }

    /// How long a shared cluster waits for its next user after the last one; 20 seconds if not said
    /// otherwise. A cluster of one's own never waits.
    #[must_use]
    pub fn linger(mut self, linger: Duration) -> Self {
        self.linger = linger;
        self
    }

    /// The program `localcluster` to supervise with, if it need not be searched.
    #[must_use]
    pub fn program(mut self, path: impl Into<PathBuf>) -> Self {
        self.program = Some(path.into());
        self
    }

    /// The folder with the tools, if it need not be searched.
    #[must_use]
    pub fn tools(mut self, folder: impl Into<PathBuf>) -> Self {
        self.tools = Some(folder.into());
        self
    }

    /// Is told each step of the start, for people who wait.
    #[must_use]
    pub fn on_progress(mut self, progress: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.progress = Some(Arc::new(progress));
        self
    }

    /// Starts the cluster, or joins the shared one, and waits until it can be used.
    ///
    /// If the future is dropped before, the cluster ends.
    ///
    /// # Errors
    /// With the component that did not come up, what it was waited for, and the end of its log;
    /// [`Error::RealNode`] if a real node is wanted and impossible here.
    pub async fn start(self) -> Result<LocalCluster> {
        if self.real_node {
            blocking(|| real::check().map_err(Error::RealNode)).await?;
        }
        let (lease, info) = match &self.shared_in {
            None => self.start_own().await?,
            Some(checkout) => self.share(checkout).await?,
        };
        LocalCluster::new(lease, info)
    }

    async fn start_own(&self) -> Result<(Lease, Info)> {
        let this = self.clone();
        let mut lease = blocking(move || {
            // The folder last: what may take long must not leave one behind if we are killed.
            let program = this.find_program()?;
            let this = this.with_tools()?;
            let spec = this.spec(new_folder("own")?, None, checkout())?;
            Lease::start(&program, &spec)
        })
        .await?;
        let info = lease.ready(self.patience(), self.progress()).await?;
        Ok((lease, info))
    }

    /// How long the supervisor may take: it may have to wait for its turn with the real node.
    fn patience(&self) -> Duration {
        self.deadline + if self.real_node { real::PATIENCE } else { Duration::ZERO }
    }

    async fn share(&self, checkout: &Path) -> Result<(Lease, Info)> {
        let mut attempts = ATTEMPTS;
        loop {
            let (this, place) = (self.clone(), checkout.to_owned());
            let (mut lease, ours) = blocking(move || this.join_or_start(&place)).await?;
            attempts -= 1;
            match lease.ready(self.patience(), self.progress()).await {
                Ok(info) => return Ok((lease, info)),
                // Not the one we have started: it was already ending when we came. Start anew.
                Err(Error::Lost { .. }) if !ours && attempts > 0 => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// A lease on the shared cluster, and whether we are the one who has started it.
    fn join_or_start(&self, checkout: &Path) -> Result<(Lease, bool)> {
        let program = self.find_program()?;
        let meeting = self.meeting(&program, checkout)?;
        if let Ok(lease) = Lease::connect(&meeting.socket) {
            return Ok((lease?, false));
        }
        // Before the lock: it may take a dozen minutes, and takes care of itself.
        let this = self.clone().with_tools()?;
        let what = || format!("lock {}", meeting.lock.display());
        let lock = fs::File::create(&meeting.lock).map_err(Error::io(what()))?;
        lock.lock().map_err(Error::io(what()))?;
        if let Ok(lease) = Lease::connect(&meeting.socket) {
            return Ok((lease?, false));
        }
        let folder = new_folder("shared")?;
        let spec = this.spec(folder, Some(meeting.socket), Some(checkout.to_owned()))?;
        let mut lease = Lease::start(&program, &spec)?;
        lease.listening()?;
        Ok((lease, true)) // and the lock is free
    }

    /// Where those meet who want the same: of this checkout, by this build, with these settings.
    fn meeting(&self, program: &Path, checkout: &Path) -> Result<Meeting> {
        use std::os::unix::fs::MetadataExt as _;
        let what = || format!("look at {}", program.display());
        let file = fs::metadata(program).map_err(Error::io(what()))?;
        let build = (file.ino(), file.size(), file.mtime(), file.mtime_nsec());
        let tools =
            self.tools.clone().or_else(|| std::env::var_os("CATAMARAN_TOOLS").map(Into::into));
        let nodes = (self.count(), self.real_node);
        Meeting::new(&(checkout, build, tools, nodes, self.audit, self.linger))
    }

    fn spec(
        &self,
        folder: PathBuf,
        socket: Option<PathBuf>,
        checkout: Option<PathBuf>,
    ) -> Result<Spec> {
        Ok(Spec {
            folder,
            tools: self.find_tools()?,
            node_tools: self.find_node_tools()?,
            nodes: self.count(),
            real_node: self.real_node,
            audit: self.audit,
            linger: if socket.is_some() { self.linger } else { Duration::ZERO },
            socket,
            checkout,
            deadline: self.deadline,
            keep: keep(),
        })
    }

    fn find_program(&self) -> Result<PathBuf> {
        self.program.clone().map_or_else(program::find, Ok)
    }

    fn find_tools(&self) -> Result<PathBuf> {
        let tools = self.tools.as_deref().map_or_else(tools, tools_in)?;
        Ok(tools.folder().to_owned())
    }

    /// Where kubelet and kube-proxy are, if needed. Asked once per process, as they may have to be
    /// built.
    fn find_node_tools(&self) -> Result<Option<PathBuf>> {
        match &self.tools {
            _ if !self.real_node => Ok(None),
            Some(folder) if has_node_tools(folder) => Ok(Some(folder.clone())),
            _ => node_tools().map(Some),
        }
    }

    /// With all tools found.
    fn with_tools(self) -> Result<Self> {
        self.find_node_tools()?;
        Ok(Self { tools: Some(self.find_tools()?), ..self })
    }

    fn progress(&self) -> impl Fn(&str) + use<> {
        let progress = self.progress.clone();
        move |text| {
            if let Some(progress) = &progress {
                progress(text);
            }
        }
    }

    /// How the shared cluster is, if there is one.
    pub async fn status(self) -> Result<Option<Status>> {
        let Some(mut lease) = self.running().await? else { return Ok(None) };
        lease.status().await.map(Some)
    }

    /// Ends the shared cluster, whoever uses it. False: there was none.
    pub async fn stop_shared(self) -> Result<bool> {
        let Some(mut lease) = self.running().await? else { return Ok(false) };
        lease.say(&Command::Stop);
        lease.ended().await;
        Ok(true)
    }

    async fn running(self) -> Result<Option<Lease>> {
        blocking(move || {
            let checkout = self.shared_in.clone().or_else(checkout).unwrap_or_default();
            let meeting = self.meeting(&self.find_program()?, &checkout)?;
            Lease::connect(&meeting.socket).ok().transpose()
        })
        .await
    }
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("nodes", &self.count())
            .field("real_node", &self.real_node)
            .field("audit", &self.audit)
            .field("shared_in", &self.shared_in)
            .finish_non_exhaustive()
    }
}

/// A share in the cluster of this checkout, which is started if it does not run yet: 2 nodes, with an
/// audit log.
///
/// For everything that keeps to a namespace of its own ([`LocalCluster::namespace`]). Works from
/// any number of processes, and of tests in each. The cluster ends 20 seconds after its last user.
///
/// # Errors
/// As [`Builder::start`].
pub async fn shared() -> Result<LocalCluster> {
    shared_builder()?.start().await
}

/// What [`shared`] starts.
pub fn shared_builder() -> Result<Builder> {
    let checkout = checkout().ok_or_else(|| Error::Invalid("the checkout is gone".into()))?;
    Ok(Builder::new().nodes(2).audit(true).shared_in(checkout))
}

/// Runs what blocks where it disturbs nobody.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|error| Error::Invalid(format!("a task broke: {error}")))?
}
