//! How long a client waits for an API server that does not answer.

use std::time::Duration;

/// When waiting for the network ends.
///
/// A connection that is half open, because the other end or a machine between has gone without a word, costs
/// one of these. Requests have deadlines of their own besides ([`crate::apply::Applier::timeout`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// Until a connection is open, its TLS handshake included.
    pub connect: Duration,
    /// Until the head of an answer has come. The API server gives up on a request after a minute.
    pub head: Duration,
    /// Between two parts of the body of an answer.
    pub body: Duration,
    /// Between two parts of what is followed: a watch, for which the API server sends a bookmark every
    /// minute, or a log.
    pub follow: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl Timeouts {
    /// Those of every client, unless a test says otherwise.
    pub const DEFAULT: Self = Self {
        connect: Duration::from_secs(10),
        head: Duration::from_secs(65),
        body: Duration::from_secs(30),
        follow: Duration::from_secs(90),
    };

    /// The longest silence in an answer to a request with this query.
    pub fn silence(&self, query: Option<&str>) -> Duration {
        let parameters = || query.unwrap_or_default().split('&');
        let follows = |name: &str| {
            parameters()
                .any(|it| it.strip_prefix(name).is_some_and(|it| it == "=true" || it == "=1"))
        };
        if follows("watch") || follows("follow") { self.follow } else { self.body }
    }

    /// Sets what the client of kube itself has of them: no byte may take longer than the longest of them.
    pub fn configure(&self, config: &mut kube::Config) {
        config.connect_timeout = Some(self.connect);
        config.read_timeout = Some(self.head.max(self.body).max(self.follow));
        config.write_timeout = Some(self.body);
        // A connection that has rested must not be late at once.
        config.reset_reader_on_write = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn watches_and_logs_may_be_silent_for_longer_than_other_answers() {
        let timeouts = Timeouts::default();
        for (query, expected) in [
            (None, timeouts.body),
            (Some("limit=500&watch=false"), timeouts.body),
            (Some("labelSelector=watch%3Dtrue"), timeouts.body),
            (Some("&watch=true&allowWatchBookmarks=true"), timeouts.follow),
            (Some("container=a&follow=true"), timeouts.follow),
        ] {
            assert_eq!(timeouts.silence(query), expected, "{query:?}");
        }
    }
}
