//! From one image to another: a dump by the old server while nobody else is connected, a new server upon
//! an empty folder, and the dump loaded into it. The old folder stays on the volume.

use catamaran_operator::native::{ComponentProgress, Context, Error};

use crate::api::Database;
use crate::{SOON, Settled, backups, jobs, manifests};

/// Dumps with the old image, and turns to the new one when that is done.
pub(crate) async fn prepare(
    ctx: &Context<'_, Database>,
    settled: &mut Settled,
) -> Result<ComponentProgress, Error> {
    let known = ctx.fields();
    if ctx.spec.image == settled.image || is_downgrade(&settled.image, &ctx.spec.image) {
        return Ok(ComponentProgress::Ready);
    }
    if known.loads.is_some() {
        return Ok(ComponentProgress::pending("Upgrading", "another upgrade has not ended yet"));
    }
    if known.deposed.is_some() || known.promoted != known.term {
        return Ok(ComponentProgress::pending("FailingOver", "another primary takes over first"));
    }
    // What was never set up holds nothing.
    if known.set_up.is_some() {
        backups::volume(ctx).await?;
        let dump = jobs::dump(ctx, settled, &jobs::upgrade_to(&ctx.spec.image), true)?;
        if ctx.apply_or_recreate(dump).await? != ComponentProgress::Ready {
            let message = format!("a dump is taken before {} takes over", ctx.spec.image);
            return Ok(ComponentProgress::pending("BackingUp", message));
        }
        ctx.status(|status| status.loads = Some(ctx.spec.image.clone()));
    }
    // A new server begins in the first pod, whoever the primary was.
    ctx.status(|status| {
        status.image = Some(ctx.spec.image.clone());
        status.primary = Some(manifests::pod_name(ctx, 0));
        (status.server, status.term) = (status.server + 1, status.term + 1);
        (status.promoted, status.down_since) = (status.term, None);
    });
    *settled = Settled::of(ctx);
    ctx.event("Upgrading", &format!("the server becomes {}", ctx.spec.image));
    Ok(ComponentProgress::Ready)
}

/// Loads what the old server held into the new one.
pub(crate) async fn load(
    ctx: &Context<'_, Database>,
    settled: &Settled,
) -> Result<ComponentProgress, Error> {
    let Some(image) = ctx.fields().loads else { return Ok(ComponentProgress::Ready) };
    let why = jobs::upgrade_to(&image);
    let job = jobs::load(ctx, settled, &why, "latest", Some(&why))?;
    if ctx.apply_or_recreate(job).await? != ComponentProgress::Ready {
        return Ok(ComponentProgress::pending("Loading", format!("{image} loads what was dumped")));
    }
    ctx.status(|status| status.loads = None);
    ctx.event("Upgraded", &format!("the server is {image}"));
    ctx.requeue(SOON); // for the standbys
    Ok(ComponentProgress::Ready)
}

/// Whether an image has an older major version than another, as far as their tags tell.
pub(crate) fn is_downgrade(from: &str, to: &str) -> bool {
    matches!((major(from), major(to)), (Some(from), Some(to)) if to < from)
}

/// The number that a tag begins with: 15 of `postgres:15.4-bookworm`.
fn major(image: &str) -> Option<u32> {
    let image = image.split_once('@').map_or(image, |(image, _)| image);
    let last = image.rsplit_once('/').map_or(image, |(_, last)| last);
    let (_, tag) = last.split_once(':')?;
    let digits: String = tag.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_downgrade_is_told_by_the_tags() {
        for (from, to, is) in [
            ("postgres:15", "postgres:16", false),
            ("postgres:16.2-alpine", "postgres:15.9", true),
            ("r.example:5000/postgres:16", "r.example:5000/postgres:9.6@sha256:0", true),
            ("postgres:16.2", "postgres:16.1", false),
            ("super-great-docker-image", "postgres:1", false),
            ("r.example:5000/postgres", "r.example:4000/postgres", false),
        ] {
            assert_eq!(is_downgrade(from, to), is, "{from} {to}");
        }
    }
}
