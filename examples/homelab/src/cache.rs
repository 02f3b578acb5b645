//! What the operator asks of a Redis server.

use std::fmt;
use std::time::Duration;

use catamaran_operator::native::Error;
use redis::{
    ConnectionAddr, ErrorKind, IntoConnectionInfo, RedisConnectionInfo, ServerErrorKind,
    TlsCertificates,
};

use crate::encryption::{Encryption, tls_failure};

/// How long a server may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// A server, and whom it knows us as.
pub struct Server {
    /// A name or an address.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// Another user than the default one.
    pub user: Option<String>,
    /// The user's password.
    pub password: Option<String>,
    /// How the connection is protected.
    pub encryption: Encryption,
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "redis at {}:{}", self.host, self.port)
    }
}

impl Server {
    /// Its version, which only a server tells that answers and lets us in.
    ///
    /// # Errors
    /// [`Error::Waiting`] with the reason `Unreachable`, `TlsVerificationFailed` or `AuthenticationFailed`.
    pub async fn version(&self) -> Result<String, Error> {
        // Refused with a reason of its own, before a connection is opened.
        self.encryption.client_config()?;
        let asked = tokio::time::timeout(PATIENCE, self.ask()).await;
        asked.unwrap_or_else(|_| Err(self.unreachable("it does not answer")))
    }

    async fn ask(&self) -> Result<String, Error> {
        let mut login = RedisConnectionInfo::default();
        if let Some(user) = &self.user {
            login = login.set_username(user);
        }
        if let Some(password) = &self.password {
            login = login.set_password(password);
        }
        let told = async {
            let mut connection = self.client(login)?.get_multiplexed_async_connection().await?;
            redis::cmd("PING").exec_async(&mut connection).await?;
            // Not everybody may ask for it.
            let about =
                redis::cmd("INFO").arg("server").query_async::<String>(&mut connection).await;
            Ok(about.unwrap_or_default())
        };
        let told = told.await.map_err(|error| self.failure(&error))?;
        let version = told.lines().find_map(|line| line.strip_prefix("redis_version:"));
        Ok(version.unwrap_or("unknown").to_owned())
    }

    fn client(&self, login: RedisConnectionInfo) -> redis::RedisResult<redis::Client> {
        let (host, port) = (self.host.clone(), self.port);
        let info = |address: ConnectionAddr| {
            address.into_connection_info().map(|info| info.set_redis_settings(login))
        };
        match &self.encryption {
            Encryption::Disabled => redis::Client::open(info(ConnectionAddr::Tcp(host, port))?),
            Encryption::Verified(authorities) => {
                let address =
                    ConnectionAddr::TcpTls { host, port, insecure: false, tls_params: None };
                let root_cert = Some(authorities.clone().into_bytes());
                let certificates = TlsCertificates { client_tls: None, root_cert };
                redis::Client::build_with_tls(info(address)?, certificates)
            }
        }
    }

    fn failure(&self, error: &redis::RedisError) -> Error {
        if let Some(why) = tls_failure(error) {
            let at = format!("Redis at {}:{}", self.host, self.port);
            return Error::waiting("TlsVerificationFailed", format!("{at}: {why}"));
        }
        let refused = matches!(
            error.kind(),
            ErrorKind::AuthenticationFailed | ErrorKind::Server(ServerErrorKind::NoPerm)
        ) || matches!(error.code(), Some("WRONGPASS" | "NOAUTH" | "NOPERM"));
        if refused {
            let at = format!("Redis at {}:{}", self.host, self.port);
            let message = format!("{at} does not let us in: {}", error.code().unwrap_or("AUTH"));
            return Error::waiting("AuthenticationFailed", message);
        }
        self.unreachable(&error.to_string())
    }

    fn unreachable(&self, why: &str) -> Error {
        let message = format!("Redis at {}:{} cannot be reached: {why}", self.host, self.port);
        Error::waiting("Unreachable", message)
    }
}
