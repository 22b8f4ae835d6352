//! Shares of a pool: what one tenant does never takes the connections that others need.
//!
//! A change that waits for a row lock keeps its connection, so a tenant with many changes of one row would soon hold
//! them all. Therefore an organization has at most half of the connections at a time and waits for them in a queue of
//! its own, and all organizations together leave a quarter to the platform's own work. Shares are fixed rather than lent
//! out while nobody else asks: a connection that waits for a lock cannot be taken back.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use uuid::Uuid;

use crate::error::DbError;
use crate::pool::{PoolOptions, lock};

pub(crate) struct Shares {
    /// Organizations that hold a connection or wait for one; others are not remembered.
    shares: Mutex<HashMap<Uuid, Share>>,
    /// What all organizations have together.
    tenants: Arc<Semaphore>,
    waiting: AtomicUsize,
    options: PoolOptions,
}

struct Share {
    connections: Arc<Semaphore>,
    /// Those who hold one and those who wait.
    callers: usize,
}

/// The right to one connection of an organization's share, until dropped.
pub(crate) struct Hold {
    _caller: Caller,
    _places: [OwnedSemaphorePermit; 2],
}

impl Shares {
    pub fn new(options: PoolOptions) -> Arc<Self> {
        let kept_for_platform = options.connections_max.div_ceil(4);
        let tenants = options.connections_max.saturating_sub(kept_for_platform).max(1);
        Arc::new(Self {
            shares: Mutex::default(),
            tenants: Arc::new(Semaphore::new(tenants)),
            waiting: AtomicUsize::new(0),
            options,
        })
    }

    /// Waits until the organization may have a connection. At most its share of callers ever wait in the queue that all
    /// organizations have in common, so a long queue of one delays nobody else.
    pub async fn hold(self: &Arc<Self>, organization: Uuid) -> Result<Hold, DbError> {
        let (caller, own) = self.enter(organization)?;
        let _waiting = Counted::new(&self.waiting);
        let places = async {
            let own = Arc::clone(&own).acquire_owned().await?;
            Ok::<_, AcquireError>([Arc::clone(&self.tenants).acquire_owned().await?, own])
        };
        match timeout(self.options.wait_timeout, places).await {
            Ok(Ok(places)) => Ok(Hold { _caller: caller, _places: places }),
            _ if own.available_permits() == 0 => Err(DbError::ShareUsedUp),
            _ => Err(DbError::QueueTimeout),
        }
    }

    pub fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    fn enter(self: &Arc<Self>, organization: Uuid) -> Result<(Caller, Arc<Semaphore>), DbError> {
        let connections_max = (self.options.connections_max / 2).max(1);
        let mut shares = lock(&self.shares);
        let share = shares
            .entry(organization)
            .or_insert_with(|| Share { connections: Arc::new(Semaphore::new(connections_max)), callers: 0 });
        if share.callers >= connections_max + self.options.waiting_max {
            return Err(DbError::ShareUsedUp);
        }
        share.callers += 1;
        Ok((Caller { shares: Arc::clone(self), organization }, Arc::clone(&share.connections)))
    }
}

/// One of an organization's callers.
struct Caller {
    shares: Arc<Shares>,
    organization: Uuid,
}

impl Drop for Caller {
    fn drop(&mut self) {
        let mut shares = lock(&self.shares.shares);
        if let Some(share) = shares.get_mut(&self.organization) {
            share.callers -= 1;
            if share.callers == 0 {
                shares.remove(&self.organization);
            }
        }
    }
}

/// One more, until dropped.
pub(crate) struct Counted<'a> {
    count: &'a AtomicUsize,
    /// How many there were before.
    pub others: usize,
}

impl<'a> Counted<'a> {
    pub fn new(count: &'a AtomicUsize) -> Self {
        Self { count, others: count.fetch_add(1, Ordering::Relaxed) }
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.count.fetch_sub(1, Ordering::Relaxed);
    }
}
