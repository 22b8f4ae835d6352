//! Shares of a pool: what one tenant does never takes the connections that others need.
//!
//! A change that waits for a row lock keeps its connection, so a tenant with many changes of one row would soon hold
//! them all, and two tenants would if each had half. Therefore
//! - all organizations together leave a quarter of the connections to the platform's own work;
//! - one organization has at most half of them;
//! - of what organizations have together, a quarter is kept for those that hold none or little: a quiet one gets its
//!   connection while others wait for locks;
//! - who has to wait does so in a queue of its organization's own, and the queues are served in turn.
//!
//! What is kept is not lent out while nobody else asks: a connection that waits for a lock cannot be taken back.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tokio::sync::oneshot;
use tokio::time::timeout;
use uuid::Uuid;

use crate::error::DbError;
use crate::pool::{PoolOptions, lock};

pub(crate) struct Shares {
    ledger: Mutex<Ledger>,
    waiting: AtomicUsize,
    options: PoolOptions,
}

/// Who has what.
struct Ledger {
    sizes: Sizes,
    /// Organizations that hold a connection or wait for one; others are not remembered.
    shares: HashMap<Uuid, Share>,
    /// What all organizations hold together.
    held: usize,
    /// Organizations with a queue, the next to be served first.
    turns: VecDeque<Uuid>,
}

#[derive(Clone, Copy)]
struct Sizes {
    /// What all organizations may hold together.
    tenants: usize,
    one: usize,
    /// What is kept for those that hold less than `little`.
    kept: usize,
    little: usize,
}

#[derive(Default)]
struct Share {
    held: usize,
    queue: VecDeque<oneshot::Sender<()>>,
}

impl Shares {
    pub fn new(options: PoolOptions) -> Arc<Self> {
        let all = options.connections_max;
        let tenants = all.saturating_sub(all.div_ceil(4)).max(1);
        let sizes = Sizes { tenants, one: (all / 2).max(1), kept: tenants / 4, little: (tenants / 8).max(1) };
        let ledger = Ledger { sizes, shares: HashMap::new(), held: 0, turns: VecDeque::new() };
        Arc::new(Self { ledger: Mutex::new(ledger), waiting: AtomicUsize::new(0), options })
    }

    /// Waits until the organization may have a connection.
    pub async fn hold(self: &Arc<Self>, organization: Uuid) -> Result<Hold, DbError> {
        let Some(mut waiter) = self.enter(organization)? else { return Ok(self.held_by(organization)) };
        let _waiting = Counted::new(&self.waiting);
        match timeout(self.options.wait_timeout, &mut waiter.turn).await {
            Ok(Ok(())) => Ok(self.held_by(organization)),
            _ if lock(&self.ledger).is_used_up(organization) => Err(DbError::ShareUsedUp),
            _ => Err(DbError::QueueTimeout),
        }
    }

    pub fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// A connection at once (nothing to wait for), or a place in the organization's queue.
    fn enter(self: &Arc<Self>, organization: Uuid) -> Result<Option<Waiter>, DbError> {
        let mut ledger = lock(&self.ledger);
        let queued = ledger.shares.get(&organization).map_or(0, |share| share.queue.len());
        if queued == 0 && ledger.take(organization) {
            return Ok(None);
        }
        if queued >= self.options.waiting_max {
            let is_own = ledger.is_used_up(organization);
            return Err(if is_own { DbError::ShareUsedUp } else { DbError::Overloaded { waiting: queued } });
        }
        let (call, turn) = oneshot::channel();
        ledger.shares.entry(organization).or_default().queue.push_back(call);
        if queued == 0 {
            ledger.turns.push_back(organization);
        }
        Ok(Some(Waiter { shares: Arc::clone(self), organization, turn }))
    }

    fn held_by(self: &Arc<Self>, organization: Uuid) -> Hold {
        Hold { shares: Arc::clone(self), organization }
    }
}

impl Ledger {
    /// Counts one more connection for the organization, if it may have one.
    fn take(&mut self, organization: Uuid) -> bool {
        let held = self.shares.get(&organization).map_or(0, |share| share.held);
        let kept = if held < self.sizes.little { 0 } else { self.sizes.kept };
        if held >= self.sizes.one || self.held + kept >= self.sizes.tenants {
            return false;
        }
        self.shares.entry(organization).or_default().held += 1;
        self.held += 1;
        true
    }

    fn is_used_up(&self, organization: Uuid) -> bool {
        self.shares.get(&organization).is_some_and(|share| share.held >= self.sizes.one)
    }

    fn give_back(&mut self, organization: Uuid) {
        if let Some(share) = self.shares.get_mut(&organization) {
            share.held -= 1;
            self.held -= 1;
        }
        self.serve();
        self.tidy(organization);
    }

    /// Calls those whose turn it is, one organization after the other, while there is something for any of them.
    fn serve(&mut self) {
        let mut in_vain = 0;
        while in_vain < self.turns.len() {
            let Some(organization) = self.turns.pop_front() else { return };
            let Some(share) = self.shares.get_mut(&organization) else { continue };
            share.queue.retain(|call| !call.is_closed());
            if share.queue.is_empty() {
                continue;
            }
            self.turns.push_back(organization);
            if !self.take(organization) {
                in_vain += 1;
                continue;
            }
            in_vain = 0;
            self.call_next(organization);
        }
    }

    /// Tells the first in the organization's queue that a connection has been counted for it.
    fn call_next(&mut self, organization: Uuid) {
        let Some(share) = self.shares.get_mut(&organization) else { return };
        if share.queue.pop_front().is_none_or(|call| call.send(()).is_err()) {
            share.held -= 1;
            self.held -= 1;
        }
        self.tidy(organization);
    }

    /// Forgets who has nothing and wants nothing.
    fn tidy(&mut self, organization: Uuid) {
        let Some(share) = self.shares.get_mut(&organization) else { return };
        share.queue.retain(|call| !call.is_closed());
        if share.queue.is_empty() {
            self.turns.retain(|waiting| *waiting != organization);
            if share.held == 0 {
                self.shares.remove(&organization);
            }
        }
    }
}

/// The right to one connection of an organization's share, until dropped.
pub(crate) struct Hold {
    shares: Arc<Shares>,
    organization: Uuid,
}

impl Drop for Hold {
    fn drop(&mut self) {
        lock(&self.shares.ledger).give_back(self.organization);
    }
}

/// Somebody in an organization's queue.
struct Waiter {
    shares: Arc<Shares>,
    organization: Uuid,
    turn: oneshot::Receiver<()>,
}

impl Drop for Waiter {
    fn drop(&mut self) {
        let mut ledger = lock(&self.shares.ledger);
        self.turn.close();
        if self.turn.try_recv().is_ok() {
            // Called at the very moment of leaving.
            ledger.give_back(self.organization);
        } else {
            ledger.tidy(self.organization);
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
