//! What the operator does on a PostgreSQL server.
//!
//! Whatever comes from people is a bound parameter or quoted by the protocol's own rules. A password
//! never goes to the server: what it stores of one does (SCRAM), so none can end in its logs.
//!
//! A database is made under a name that nobody else uses, marked as ours, closed to the public, and only
//! then given its name: whatever dies in between, a database of that name without the mark is another's.

use std::fmt;
use std::time::Duration;

use catamaran_operator::native::Error;
use postgres_protocol::escape::{escape_identifier, escape_literal};
use postgres_protocol::password::scram_sha_256;
use tokio::task::JoinHandle;
use tokio_postgres::config::SslMode;
use tokio_postgres::error::SqlState;
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::{Client, Config, NoTls, Socket};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::encryption::{Encryption, tls_failure};

/// How long a server may take to let us in.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long it may take for all that is asked of it at once; a database is files that are copied.
const WORK: Duration = Duration::from_mins(1);

/// A server, and whom it knows us as.
#[derive(Clone)]
pub struct Server {
    /// A name or an address.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// The database that is connected to.
    pub database: String,
    /// Who connects.
    pub user: String,
    /// And by what password.
    pub password: String,
    /// How the connection is protected.
    pub encryption: Encryption,
}

/// What there shall be on a server.
#[derive(Clone)]
pub struct Wanted {
    /// The name of the database, and of its role.
    pub name: String,
    /// The password of the role.
    pub password: String,
    /// A name that no other database has.
    pub draft: String,
    /// What is written at the database and the role, by which they are known as ours.
    pub mark: String,
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "postgres at {}:{}", self.host, self.port)
    }
}

impl fmt::Debug for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "database {:?}", self.name)
    }
}

/// A connection; ends when it is dropped.
struct Session {
    client: Client,
    task: JoinHandle<()>,
}

impl Drop for Session {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Whose a database or role is.
enum Owner {
    Nobody,
    We,
    Others(String),
}

impl Server {
    /// The server's version.
    ///
    /// # Errors
    /// [`Error::Waiting`] with a reason: `Unreachable`, `TlsVerificationFailed`, `AuthenticationFailed`,
    /// `Refused`.
    pub async fn version(&self) -> Result<String, Error> {
        self.in_time(async {
            let session = self.connect(&self.database).await?;
            let row = session.client.query_one("SHOW server_version", &[]).await;
            row.and_then(|row| row.try_get(0)).map_err(|error| self.failure(&error))
        })
        .await
    }

    /// Whether the role of a database can log in and make tables in it.
    ///
    /// # Errors
    /// As [`Server::version`].
    pub async fn check(&self, wanted: &Wanted) -> Result<bool, Error> {
        let as_role =
            Self { user: wanted.name.clone(), password: wanted.password.clone(), ..self.clone() };
        self.in_time(async {
            let session = as_role.connect(&wanted.name).await?;
            let asked =
                "SELECT coalesce(has_schema_privilege(to_regnamespace('public'), 'CREATE'), true)";
            let row = session.client.query_one(asked, &[]).await;
            row.and_then(|row| row.try_get(0)).map_err(|error| self.failure(&error))
        })
        .await
    }

    /// Makes the role and the database, or gives them what they lack. May be interrupted anywhere.
    ///
    /// # Errors
    /// As [`Server::version`]; `NameTaken` where one is there that is not ours: it is left as it is.
    pub async fn provide(&self, wanted: &Wanted) -> Result<(), Error> {
        self.in_time(async {
            let session = self.connect(&self.database).await?;
            let role = self.role(&session, wanted).await?;
            let mut database = self.database(&session, &wanted.name, wanted).await?;
            if matches!(database, Owner::We) && self.is_half_dropped(&session, wanted).await? {
                self.drop_database(&session, &wanted.name).await?;
                database = Owner::Nobody;
            }
            for (what, owner) in [("role", &role), ("database", &database)] {
                if let Owner::Others(whose) = owner {
                    let name = &wanted.name;
                    let message =
                        format!("a {what} {name:?} is there already{whose}: it is left as it is");
                    return Err(Error::waiting("NameTaken", message));
                }
            }
            self.make_role(&session, &role, wanted).await?;
            if matches!(database, Owner::Nobody) {
                self.make_database(&session, wanted).await?;
            }
            let inside = self.connect(&wanted.name).await?;
            let name = escape_identifier(&wanted.name);
            self.run(&inside, &format!("GRANT USAGE, CREATE ON SCHEMA public TO {name}")).await
        })
        .await
    }

    /// Drops the database and the role, if they are ours. What they are not dropped for.
    ///
    /// # Errors
    /// As [`Server::version`]; `HoldsOthersData` where somebody else has tables in the database.
    pub async fn remove(&self, wanted: &Wanted) -> Result<(), Error> {
        self.in_time(async {
            let session = self.connect(&self.database).await?;
            if matches!(self.database(&session, &wanted.name, wanted).await?, Owner::We) {
                if !self.is_half_dropped(&session, wanted).await? {
                    self.refuse_others_data(wanted).await?;
                }
                self.drop_database(&session, &wanted.name).await?;
            }
            if !matches!(self.database(&session, &wanted.draft, wanted).await?, Owner::Nobody) {
                self.drop_database(&session, &wanted.draft).await?;
            }
            if matches!(self.role(&session, wanted).await?, Owner::We) {
                let role = escape_identifier(&wanted.name);
                self.run(&session, &format!("DROP ROLE IF EXISTS {role}")).await?;
            }
            Ok(())
        })
        .await
    }

    async fn make_role(&self, at: &Session, role: &Owner, wanted: &Wanted) -> Result<(), Error> {
        let name = escape_identifier(&wanted.name);
        let password = escape_literal(&scram_sha_256(wanted.password.as_bytes()));
        let mark = escape_literal(&wanted.mark);
        self.run(
            at,
            &match role {
                // Several statements in one go are one transaction: there is no role without a mark.
                Owner::Nobody => format!(
                    "CREATE ROLE {name} LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOINHERIT \
                     PASSWORD {password}; COMMENT ON ROLE {name} IS {mark}"
                ),
                _ => format!("ALTER ROLE {name} LOGIN PASSWORD {password}"),
            },
        )
        .await
    }

    async fn make_database(&self, at: &Session, wanted: &Wanted) -> Result<(), Error> {
        let (draft, name) = (escape_identifier(&wanted.draft), escape_identifier(&wanted.name));
        let mark = escape_literal(&wanted.mark);
        if matches!(self.database(at, &wanted.draft, wanted).await?, Owner::Nobody) {
            // Not template1: it cannot be copied while somebody is connected to it.
            self.run(at, &format!("CREATE DATABASE {draft} TEMPLATE template0")).await?;
        }
        // The role may do everything in it, and does not own it: it cannot drop it or let others in.
        let finish = format!(
            "COMMENT ON DATABASE {draft} IS {mark}; REVOKE ALL ON DATABASE {draft} FROM PUBLIC; \
             GRANT CONNECT, CREATE, TEMPORARY ON DATABASE {draft} TO {name}; \
             ALTER DATABASE {draft} RENAME TO {name}"
        );
        self.run(at, &finish).await
    }

    async fn role(&self, at: &Session, wanted: &Wanted) -> Result<Owner, Error> {
        let asked = "SELECT shobj_description(oid, 'pg_authid') FROM pg_roles WHERE rolname = $1";
        self.owner(at, asked, &wanted.name, wanted).await
    }

    async fn database(&self, at: &Session, name: &str, wanted: &Wanted) -> Result<Owner, Error> {
        let asked =
            "SELECT shobj_description(oid, 'pg_database') FROM pg_database WHERE datname = $1";
        self.owner(at, asked, name, wanted).await
    }

    async fn owner(
        &self,
        at: &Session,
        asked: &str,
        name: &str,
        wanted: &Wanted,
    ) -> Result<Owner, Error> {
        let row = at.client.query_opt(asked, &[&name]).await.map_err(|e| self.failure(&e))?;
        let Some(row) = row else { return Ok(Owner::Nobody) };
        let mark: Option<String> = row.try_get(0).map_err(|e| self.failure(&e))?;
        Ok(match mark {
            Some(mark) if mark == wanted.mark => Owner::We,
            Some(mark) => Owner::Others(format!(" ({mark})")),
            None => Owner::Others(String::new()),
        })
    }

    /// Whether dropping the database was cut short: files of it are gone, nobody can connect to it any
    /// more, and all that can be done with it is to drop it again. PostgreSQL marks it by this number.
    async fn is_half_dropped(&self, at: &Session, wanted: &Wanted) -> Result<bool, Error> {
        let asked = "SELECT FROM pg_database WHERE datname = $1 AND datconnlimit = -2";
        let row = at.client.query_opt(asked, &[&wanted.name]).await;
        row.map(|row| row.is_some()).map_err(|error| self.failure(&error))
    }

    /// Tables in our database that somebody else made.
    async fn refuse_others_data(&self, wanted: &Wanted) -> Result<(), Error> {
        let inside = self.connect(&wanted.name).await?;
        let asked = "SELECT c.oid::regclass::text, pg_get_userbyid(c.relowner)::text FROM pg_class c \
             WHERE c.relkind IN ('r', 'p', 'm', 'f') AND c.oid >= 16384 \
             AND c.relnamespace <> 'pg_toast'::regnamespace AND pg_get_userbyid(c.relowner) <> $1 \
             AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = c.oid AND d.deptype = 'e') LIMIT 1";
        let row = inside.client.query_opt(asked, &[&wanted.name]).await;
        let Some(row) = row.map_err(|error| self.failure(&error))? else { return Ok(()) };
        let table: String = row.try_get(0).map_err(|error| self.failure(&error))?;
        let whose: String = row.try_get(1).map_err(|error| self.failure(&error))?;
        let message = format!("table {table} of database {:?} belongs to {whose:?}", wanted.name);
        Err(Error::waiting("HoldsOthersData", message))
    }

    /// With those who are connected: their Secret goes, too.
    async fn drop_database(&self, at: &Session, name: &str) -> Result<(), Error> {
        let name = escape_identifier(name);
        self.run(at, &format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)")).await
    }

    async fn run(&self, at: &Session, statements: &str) -> Result<(), Error> {
        at.client.batch_execute(statements).await.map_err(|error| self.failure(&error))
    }

    async fn connect(&self, database: &str) -> Result<Session, Error> {
        let mut config = Config::new();
        config.host(&self.host).port(self.port).dbname(database);
        config.user(&self.user).password(&self.password);
        config.application_name("homelab").connect_timeout(PATIENCE);
        match self.encryption.client_config()? {
            None => self.open(config.ssl_mode(SslMode::Disable), NoTls).await,
            // A server without TLS is refused: there is no way back to an unencrypted connection.
            Some(tls) => {
                self.open(config.ssl_mode(SslMode::Require), MakeRustlsConnect::new(tls)).await
            }
        }
    }

    async fn open<T>(&self, config: &Config, tls: T) -> Result<Session, Error>
    where
        T: MakeTlsConnect<Socket>,
        T::Stream: Send + 'static,
    {
        let connected = tokio::time::timeout(PATIENCE, config.connect(tls)).await;
        let connected = connected.map_err(|_| self.unreachable("it does not answer"))?;
        let (client, connection) = connected.map_err(|error| self.failure(&error))?;
        // How it ends is told by the next question.
        let task = tokio::spawn(async move { _ = connection.await });
        Ok(Session { client, task })
    }

    async fn in_time<T>(&self, work: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        let done = tokio::time::timeout(WORK, work).await;
        done.unwrap_or_else(|_| Err(self.unreachable("it takes too long")))
    }

    /// What a server says may go to everybody who reads a status: it names no password.
    fn failure(&self, error: &tokio_postgres::Error) -> Error {
        if let Some(why) = tls_failure(error) {
            let at = format!("PostgreSQL at {}:{}", self.host, self.port);
            return Error::waiting("TlsVerificationFailed", format!("{at}: {why}"));
        }
        let Some(told) = error.as_db_error() else {
            let cause = std::error::Error::source(error).map(ToString::to_string);
            return self.unreachable(&cause.unwrap_or_else(|| error.to_string()));
        };
        let at = format!("PostgreSQL at {}:{}", self.host, self.port);
        let code = told.code();
        let reason = if [SqlState::INVALID_PASSWORD, SqlState::INVALID_AUTHORIZATION_SPECIFICATION]
            .contains(code)
        {
            "AuthenticationFailed"
        } else if *code == SqlState::DUPLICATE_DATABASE || *code == SqlState::DUPLICATE_OBJECT {
            "NameTaken"
        } else if [SqlState::OBJECT_IN_USE, SqlState::DEPENDENT_OBJECTS_STILL_EXIST].contains(code)
        {
            "InUse"
        } else if code.code().starts_with("57P") || code.code().starts_with("53") {
            return self.unreachable(told.message());
        } else {
            "Refused"
        };
        let detail = told.detail().map(|detail| format!(" ({detail})")).unwrap_or_default();
        Error::waiting(reason, format!("{at}: {}{detail}", told.message()))
    }

    fn unreachable(&self, why: &str) -> Error {
        let message = format!("PostgreSQL at {}:{} cannot be reached: {why}", self.host, self.port);
        Error::waiting("Unreachable", message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_debug_form_holds_a_password() {
        let password = "hunter2".to_owned();
        let text = || "x".to_owned();
        let server = Server {
            host: text(),
            port: 1,
            database: text(),
            user: text(),
            password: password.clone(),
            encryption: Encryption::Disabled,
        };
        let wanted = Wanted { name: text(), password, draft: text(), mark: text() };
        assert!(!format!("{server:?} {wanted:?}").contains("hunter2"));
    }
}
