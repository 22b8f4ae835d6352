//! Connections: pooled, bounded, with prepared statements and the row-level-security scope kept per connection.
//!
//! The scope is set for the session and only when it differs from what the connection last had, in the same packet
//! as the statement that needs it. That is safe because no statement can reach a connection except through
//! [`Connection::scoped`], which names the scope every time.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use authz::Scope;
use deadpool::managed::{self, Metrics, RecycleError, RecycleResult};
use tokio_postgres::error::SqlState;
use tokio_postgres::{AsyncMessage, Client, Config, NoTls, Row, Statement};

use crate::Params;
use crate::error::{DbError, describe};
use crate::share::{Counted, Hold, Shares};
use crate::tls::TlsFault;

/// Where PostgreSQL is and how to speak to it.
#[derive(Clone)]
pub struct Target {
    pub config: Config,
    /// TLS for anything but a unix socket or the embedded server.
    pub tls: Option<rustls::ClientConfig>,
}

impl Target {
    pub fn plain(config: Config) -> Self {
        Self { config, tls: None }
    }

    /// One connection outside any pool, with its driver task spawned.
    pub async fn connect(&self) -> Result<Client, DbError> {
        self.connect_and_hear(|_| {}).await
    }

    /// Like [`Target::connect`]; what the server says unasked goes to `hear`, on the driver's task.
    pub(crate) async fn connect_and_hear(
        &self,
        hear: impl Fn(AsyncMessage) + Send + 'static,
    ) -> Result<Client, DbError> {
        let refused = |error: tokio_postgres::Error| {
            if let Some(fault) = TlsFault::of(&error) {
                return DbError::Tls(fault);
            }
            let unknown = error.code().is_some_and(|code| NOT_ADMITTED.contains(&code));
            let words = describe(&error);
            if unknown { DbError::NotAdmitted(words) } else { DbError::Connect(words) }
        };
        match &self.tls {
            None => {
                let (client, connection) = self.config.connect(NoTls).await.map_err(refused)?;
                drive(connection, hear);
                Ok(client)
            }
            Some(tls) => {
                let connector = tokio_postgres_rustls::MakeRustlsConnect::new(tls.clone());
                // Not the driver's default, which goes on in plaintext if somebody on the way says so.
                let mut config = self.config.clone();
                config.ssl_mode(tokio_postgres::config::SslMode::Require);
                let (client, connection) = config.connect(connector).await.map_err(refused)?;
                drive(connection, hear);
                Ok(client)
            }
        }
    }
}

const NOT_ADMITTED: [&SqlState; 3] = [
    &SqlState::INVALID_AUTHORIZATION_SPECIFICATION,
    &SqlState::INVALID_PASSWORD,
    &SqlState::INVALID_CATALOG_NAME,
];

fn drive<S, T>(mut connection: tokio_postgres::Connection<S, T>, hear: impl Fn(AsyncMessage) + Send + 'static)
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
    T: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
{
    tokio::spawn(async move {
        while let Some(message) = std::future::poll_fn(|context| connection.poll_message(context)).await {
            match message {
                Ok(message) => hear(message),
                Err(error) => {
                    tracing::debug!(%error, "connection to PostgreSQL ended");
                    return;
                }
            }
        }
    });
}

/// Sizes and patience of a pool.
#[derive(Debug, Clone, Copy)]
pub struct PoolOptions {
    pub connections_max: usize,
    /// Callers allowed to wait for a connection, of each organization and of the platform; more are turned away at once.
    pub waiting_max: usize,
    pub wait_timeout: Duration,
}

#[derive(Clone)]
pub struct Pool {
    inner: managed::Pool<Manager>,
    waiting: Arc<AtomicUsize>,
    shares: Arc<Shares>,
    options: PoolOptions,
}

impl Pool {
    pub fn new(target: Target, options: PoolOptions) -> Result<Self, DbError> {
        let inner = managed::Pool::builder(Manager { target })
            .max_size(options.connections_max)
            // The connection used last: its backend is still warm, and a quiet time leaves few of them awake.
            .queue_mode(managed::QueueMode::Lifo)
            .runtime(deadpool::Runtime::Tokio1)
            .wait_timeout(Some(options.wait_timeout))
            .build()
            .map_err(|error| DbError::Unexpected(error.to_string()))?;
        Ok(Self { inner, waiting: Arc::default(), shares: Shares::new(options), options })
    }

    /// A connection out of `share`: an organization's, or what the platform has for itself.
    pub(crate) async fn get(&self, share: Scope) -> Result<PooledConnection, DbError> {
        let hold = match share {
            Scope::Platform => None,
            Scope::Organization(id) => Some(self.shares.hold(id).await?),
        };
        let waiting = Counted::new(&self.waiting);
        if waiting.others >= self.options.waiting_max {
            return Err(DbError::Overloaded { waiting: waiting.others });
        }
        let connection = self.inner.get().await.map_err(|error| match error {
            managed::PoolError::Timeout(_) => DbError::QueueTimeout,
            managed::PoolError::Backend(error) => error,
            other => DbError::Unexpected(other.to_string()),
        })?;
        Ok(PooledConnection { connection, _hold: hold })
    }

    /// Is PostgreSQL there? For readiness.
    pub async fn ping(&self) -> Result<(), DbError> {
        let connection = self.get(Scope::Platform).await?;
        connection.client.simple_query("").await?;
        Ok(())
    }

    /// Closes idle connections and refuses new work.
    pub fn close(&self) {
        self.inner.close();
    }

    /// (connections open, callers waiting), for metrics.
    pub fn status(&self) -> (usize, usize) {
        (self.inner.status().size, self.waiting.load(Ordering::Relaxed) + self.shares.waiting())
    }
}

/// A connection on loan.
pub(crate) struct PooledConnection {
    // Given back before the share is: dropped in this order.
    connection: managed::Object<Manager>,
    _hold: Option<Hold>,
}

impl PooledConnection {
    /// Ends a connection that is not fit for reuse.
    pub(crate) fn discard(self) {
        drop(managed::Object::take(self.connection));
    }
}

impl std::ops::Deref for PooledConnection {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        &self.connection
    }
}

pub(crate) struct Manager {
    target: Target,
}

impl managed::Manager for Manager {
    type Type = Connection;
    type Error = DbError;

    async fn create(&self) -> Result<Connection, DbError> {
        // Boxed: seldom run, large, and otherwise part of every future that takes a connection.
        let client = Box::pin(self.target.connect()).await?;
        Ok(Connection { client, statements: Mutex::default(), scope: Mutex::new(None) })
    }

    async fn recycle(&self, connection: &mut Connection, _: &Metrics) -> RecycleResult<DbError> {
        if connection.client.is_closed() {
            return Err(RecycleError::message("closed"));
        }
        Ok(())
    }
}

/// One connection and what we know about its session.
pub(crate) struct Connection {
    pub(crate) client: Client,
    statements: Mutex<HashMap<&'static str, Statement>>,
    /// The scope the session was last set to; `None` until it is known.
    scope: Mutex<Option<Scope>>,
}

const SET_SCOPE: &str =
    "SELECT set_config('gpuaas.org', $1, false), set_config('gpuaas.platform', $2, false)";

impl Connection {
    /// A statement prepared once per connection.
    pub(crate) async fn prepare(&self, sql: &'static str) -> Result<Statement, DbError> {
        if let Some(statement) = lock(&self.statements).get(sql) {
            return Ok(statement.clone());
        }
        let statement = Box::pin(self.client.prepare(sql)).await?;
        lock(&self.statements).insert(sql, statement.clone());
        Ok(statement)
    }

    /// Runs `work` under `scope`. If the session has another scope, the change of it is queued first, in the same
    /// packet: a future's first poll puts its message on the wire, and `join` polls in order.
    pub(crate) async fn scoped<T>(
        &self,
        scope: Scope,
        work: impl Future<Output = Result<T, DbError>>,
    ) -> Result<T, DbError> {
        if *lock(&self.scope) == Some(scope) {
            return work.await;
        }
        let set = self.prepare(SET_SCOPE).await?;
        let (organization, platform) = match scope {
            Scope::Platform => (String::new(), "on"),
            Scope::Organization(id) => (id.to_string(), "off"),
        };
        *lock(&self.scope) = None;
        let params: Params<'_> = &[&organization, &platform];
        let (changed, result) = futures::join!(self.client.execute(&set, params), work);
        changed?;
        *lock(&self.scope) = Some(scope);
        result
    }

    pub(crate) async fn query(
        &self,
        scope: Scope,
        sql: &'static str,
        params: Params<'_>,
    ) -> Result<Vec<Row>, DbError> {
        let statement = self.prepare(sql).await?;
        self.scoped(scope, async { Ok(self.client.query(&statement, params).await?) }).await
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Rows to at most one row; more than one is a bug in the statement.
pub(crate) fn at_most_one(mut rows: Vec<Row>) -> Result<Option<Row>, DbError> {
    if rows.len() > 1 {
        return Err(DbError::NotOneRow { found: rows.len() });
    }
    Ok(rows.pop())
}
