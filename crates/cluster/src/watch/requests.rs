//! The requests of a watch: lists in pages, and streams of events.

use std::io;
use std::pin::pin;
use std::time::Duration;

use futures::{AsyncBufRead, AsyncBufReadExt};
use http::HeaderValue;
use http::header::ACCEPT_ENCODING;
use kube::Client;
use kube::api::{ListParams, WatchParams};
use kube::core::{DynamicObject, Request, Resource, Status};
use kube::runtime::watcher::Event;
use serde::Deserialize;
use serde_json::Value;

use super::{Content, PAGE, Target};
use crate::items::{Item, Kind, Malformed, Read, Reader};
use crate::timeouts::Timeouts;

/// How many bytes a page of a list should have. The API server holds a page in memory, too.
const PAGE_BYTES: usize = 8 << 20;
/// How many objects a page has at most.
const LARGEST_PAGE: usize = 500;
/// How long the next bytes of a list may take, and of a watch.
const LIST_IDLE: Duration = Timeouts::DEFAULT.body;
const WATCH_IDLE: Duration = Timeouts::DEFAULT.follow;
/// The HTTP status of a watch, or a list, that is out of step.
const GONE: u16 = 410;

/// Why there is no (more) news of a kind.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error(transparent)]
    Request(#[from] kube::Error),
    /// The API server ended the watch with this.
    #[error("{0}")]
    Ended(Box<Status>),
    #[error("cannot read the answer: {0}")]
    Read(#[from] io::Error),
    #[error(transparent)]
    Malformed(#[from] Malformed),
    #[error("the answer has no resourceVersion")]
    NoVersion,
    #[error("nothing came for {0:?}")]
    Idle(Duration),
}

impl Error {
    /// The HTTP status with which the API server answered.
    pub fn code(&self) -> Option<u16> {
        match self {
            Self::Request(kube::Error::Api(status)) | Self::Ended(status) => Some(status.code),
            _ => None,
        }
    }

    /// Whether only a new list can tell what is there.
    pub fn is_desynced(&self) -> bool {
        self.code() == Some(GONE) || matches!(self, Self::NoVersion | Self::Malformed(_))
    }
}

/// Makes the requests of one watch.
pub(super) struct Requests {
    client: Client,
    target: Target,
}

impl Requests {
    pub fn new(client: Client, target: Target) -> Self {
        Self { client, target }
    }

    /// The pages of a list.
    pub fn pages(&self, managed_fields: bool) -> Pages<'_> {
        let is_partial =
            matches!(self.target.content, Content::Metadata | Content::OwnedThenMetadata);
        Pages { requests: self, managed_fields, is_partial, limit: PAGE as usize, token: None }
    }

    /// The pages of a list of whole objects with their `managedFields`, whatever the watch is on.
    pub fn whole(&self) -> Pages<'_> {
        Pages { is_partial: false, ..self.pages(true) }
    }

    fn request(&self) -> Request {
        let namespace = self.target.namespace.as_deref();
        Request::new(DynamicObject::url_path(&self.target.resource, namespace))
    }

    /// Watches from a resourceVersion on, which moves along, until the API server ends the watch.
    pub async fn events(
        &self,
        version: &mut String,
        mut on: impl FnMut(Event<Item>),
    ) -> Result<(), Error> {
        let params = WatchParams {
            label_selector: self.target.selector.clone(),
            field_selector: self.target.fields.clone(),
            ..WatchParams::default()
        };
        let request = match self.target.content {
            Content::Full | Content::Owned => self.request().watch(&params, version),
            Content::Metadata | Content::OwnedThenMetadata => {
                self.request().watch_metadata(&params, version)
            }
        };
        let mut request = request.map_err(kube::Error::BuildRequest)?;
        // Since 1.37 each event would be a gzip member of its own, which few decoders expect.
        request.headers_mut().insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        let mut stream = pin!(self.client.request_stream(request).await?);
        let mut reader = Reader::new(Kind::Events, self.target.limits, false);
        let (mut object, mut events) = (None, Vec::new());
        loop {
            let mut keep = |read| match read {
                Read::Item(item) => object = Some(*item),
                Read::Envelope(envelope) => events.push((envelope, object.take())),
            };
            match next(&mut stream, &mut reader, WATCH_IDLE, &mut keep).await {
                Ok(0) | Err(Error::Idle(_)) => return Ok(()),
                Ok(_) => {}
                Err(Error::Read(error)) if is_end(&error) => return Ok(()),
                Err(error) => return Err(error),
            }
            for (envelope, object) in events.drain(..) {
                if let Some(event) = event(&envelope, object, version)? {
                    on(event);
                }
            }
        }
    }
}

/// Reads the next bytes; how many.
async fn next(
    stream: &mut (impl AsyncBufRead + Unpin),
    reader: &mut Reader,
    idle: Duration,
    on: &mut impl FnMut(Read),
) -> Result<usize, Error> {
    let bytes =
        tokio::time::timeout(idle, stream.fill_buf()).await.map_err(|_| Error::Idle(idle))??;
    let count = bytes.len();
    reader.push(bytes, on)?;
    stream.consume_unpin(count);
    // Each object may take milliseconds: probes come in between.
    tokio::task::yield_now().await;
    Ok(count)
}

/// Whether the connection ended where a watch may end at any time.
fn is_end(error: &io::Error) -> bool {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = cause {
        let io = error.downcast_ref::<io::Error>();
        if io.is_some_and(|io| io.kind() == io::ErrorKind::UnexpectedEof) {
            return true;
        }
        // hyper's decoder of chunks has no kind for it.
        if error.to_string().contains("unexpected EOF during chunk") {
            return true;
        }
        cause = error.source();
    }
    false
}

/// What comes with the object of an event.
#[derive(Deserialize)]
struct EventEnvelope {
    #[serde(rename = "type", default)]
    type_: String,
}

/// An event, if it is about an object; its resourceVersion is where to go on.
fn event(
    envelope: &[u8],
    object: Option<Item>,
    version: &mut String,
) -> Result<Option<Event<Item>>, Error> {
    let EventEnvelope { type_ } = serde_json::from_slice(envelope).map_err(|_| Malformed)?;
    let Some(item) = object else {
        // An answer that is no event is a Status.
        let status = serde_json::from_slice::<Status>(envelope).map_err(|_| Malformed)?;
        return Err(Error::Ended(status.boxed()));
    };
    if type_ == "ERROR" {
        let Value::Object(fields) = item.object.data else { return Err(Malformed.into()) };
        let status = serde_json::from_value::<Status>(fields.into()).map_err(|_| Malformed)?;
        return Err(Error::Ended(status.boxed()));
    }
    match &item.object.metadata.resource_version {
        Some(now) if !now.is_empty() => version.clone_from(now),
        _ => return Err(Error::NoVersion),
    }
    Ok(match type_.as_str() {
        "ADDED" | "MODIFIED" => Some(Event::Apply(item)),
        "DELETED" => Some(Event::Delete(item)),
        _ => None, // a bookmark
    })
}

/// Reads a list page by page.
pub(super) struct Pages<'a> {
    requests: &'a Requests,
    managed_fields: bool,
    is_partial: bool,
    limit: usize,
    token: Option<String>,
}

/// What follows a page.
pub(super) enum Page {
    /// Another one.
    More,
    /// Nothing; the resourceVersion of the whole list.
    Last(String),
}

/// What comes with the objects of a list.
#[derive(Deserialize)]
struct ListEnvelope {
    #[serde(default)]
    metadata: ListMeta,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ListMeta {
    resource_version: Option<String>,
    #[serde(rename = "continue")]
    token: Option<String>,
}

impl Pages<'_> {
    /// Reads the next page and hands its objects over as they arrive; the last page returns the
    /// resourceVersion of the list.
    pub async fn next(&mut self, mut on: impl FnMut(Item)) -> Result<Page, Error> {
        let params = ListParams {
            label_selector: self.requests.target.selector.clone(),
            field_selector: self.requests.target.fields.clone(),
            limit: u32::try_from(self.limit).ok(),
            continue_token: self.token.take(),
            ..ListParams::default()
        };
        let request = if self.is_partial {
            self.requests.request().list_metadata(&params)
        } else {
            self.requests.request().list(&params)
        };
        let request = request.map_err(kube::Error::BuildRequest)?;
        let mut stream = pin!(self.requests.client.request_stream(request).await?);
        let mut reader = Reader::new(Kind::List, self.requests.target.limits, self.managed_fields);
        let (mut bytes, mut count, mut envelope) = (0_usize, 0_usize, None);
        loop {
            let mut keep = |read| match read {
                Read::Item(item) => {
                    count += 1;
                    on(*item);
                }
                Read::Envelope(read) => envelope = Some(read),
            };
            match next(&mut stream, &mut reader, LIST_IDLE, &mut keep).await? {
                0 => break,
                read => bytes = bytes.saturating_add(read),
            }
        }
        let envelope = envelope.ok_or(Malformed)?;
        let ListEnvelope { metadata } = serde_json::from_slice(&envelope).map_err(|_| Malformed)?;
        self.limit = page_after(self.limit, count, bytes);
        self.token = metadata.token.filter(|token| !token.is_empty());
        if self.token.is_some() {
            return Ok(Page::More);
        }
        let version = metadata.resource_version.filter(|version| !version.is_empty());
        version.map(Page::Last).ok_or(Error::NoVersion)
    }
}

/// How many objects the next page has, after one of so many objects and bytes.
fn page_after(limit: usize, count: usize, bytes: usize) -> usize {
    let each = bytes / count.max(1);
    let wanted = PAGE_BYTES / each.max(1);
    wanted.clamp(1, limit.saturating_mul(4)).min(LARGEST_PAGE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_sized_by_the_bytes_seen() {
        let large = 1_400_000;
        for (limit, count, bytes, next) in [
            (50, 50, 50 * 3_000, 200),
            (200, 200, 200 * 3_000, 500),
            (500, 500, 500 * 20_000, 419),
            (50, 50, 50 * large, 5),
            (1, 1, 3_000, 4),
            (50, 0, 100, 200),
        ] {
            assert_eq!(page_after(limit, count, bytes), next, "{limit} {count} {bytes}");
        }
    }
}
