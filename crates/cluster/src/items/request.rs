//! Requests that are answered with one object, bounded before it is decoded.

use std::pin::pin;
use std::time::Duration;

use futures::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt};
use kube::api::{GetParams, Patch, PatchParams};
use kube::core::{DynamicObject, Request};
use kube::{Api, Client};
use serde::Serialize;
use serde_json::Value;

use super::{Item, Kind, Read, Reader, Refusal, undecodable};
use crate::bounds::{Limits, Quantity, TooLarge};

/// How long the answer may take.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Which part of a resource a patch is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// All but the status.
    Main,
    /// The status subresource.
    Status,
}

/// Reads an object.
///
/// # Errors
/// What the API server answers, and what happens on the way. An object that is over a bound is no error.
pub async fn get(api: &Api<DynamicObject>, name: &str) -> Result<Item, kube::Error> {
    let request = Request::new(api.resource_url()).get(name, &GetParams::default());
    object(&api.clone().into_client(), request).await
}

/// Patches an object; returns what it is then.
///
/// # Errors
/// See [`get`].
pub async fn patch<P: Serialize + std::fmt::Debug>(
    api: &Api<DynamicObject>,
    name: &str,
    part: Part,
    params: &PatchParams,
    patch: &Patch<P>,
) -> Result<Item, kube::Error> {
    let request = Request::new(api.resource_url());
    let request = match part {
        Part::Main => request.patch(name, params, patch),
        Part::Status => request.patch_subresource("status", name, params, patch),
    };
    object(&api.clone().into_client(), request).await
}

async fn object(
    client: &Client,
    request: Result<http::Request<Vec<u8>>, kube::core::request::Error>,
) -> Result<Item, kube::Error> {
    let request = request.map_err(kube::Error::BuildRequest)?;
    let read = async {
        let mut stream = pin!(client.request_stream(request).await?);
        let mut reader = Reader::new(Kind::Object, Limits::RESOURCE, false);
        let mut found = None;
        loop {
            let bytes = stream.fill_buf().await.map_err(kube::Error::ReadEvents)?;
            let mut keep = |read| {
                if let Read::Item(item) = read {
                    found = Some(*item);
                }
            };
            let count = bytes.len();
            reader.push(bytes, &mut keep).map_err(|error| kube::Error::Service(error.into()))?;
            if count == 0 {
                let missing = || kube::Error::Service("the answer is not an object".into());
                return found.ok_or_else(missing);
            }
            stream.consume_unpin(count);
        }
    };
    tokio::time::timeout(TIMEOUT, read).await.unwrap_or_else(|_| {
        Err(kube::Error::Service(format!("no answer within {TIMEOUT:?}").into()))
    })
}

/// Reads a whole answer as a tree, `managedFields` included; the outer error is one of the request.
pub(crate) async fn tree(
    client: &Client,
    request: http::Request<Vec<u8>>,
    limits: Limits,
) -> Result<Result<Value, Refusal>, kube::Error> {
    let stream = pin!(client.request_stream(request).await?);
    let text = match text(stream, limits.bytes()).await.map_err(kube::Error::ReadEvents)? {
        Ok(text) => text,
        Err(excess) => return Ok(Err(excess.into())),
    };
    Ok(match limits.check(&text) {
        Ok(_) => serde_json::from_slice(&text).map_err(|error| undecodable(&error)),
        Err(excess) => Err(excess.into()),
    })
}

/// Reads not more than so many bytes.
async fn text(
    stream: impl AsyncBufRead,
    bound: usize,
) -> Result<Result<Vec<u8>, TooLarge>, std::io::Error> {
    let mut text = Vec::new();
    let most = u64::try_from(bound).unwrap_or(u64::MAX).saturating_add(1);
    pin!(stream.take(most)).read_to_end(&mut text).await?;
    if text.len() > bound {
        return Ok(Err(TooLarge { quantity: Quantity::Bytes, found: text.len(), bound }));
    }
    Ok(Ok(text))
}
