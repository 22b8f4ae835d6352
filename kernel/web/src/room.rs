//! Rooms: how many requests may be at something at the same time, and how much of that one party can have.
//!
//! A party is an organization, or a caller that belongs to none. A party that has much under way may fill a room only so
//! far. The rest is kept for parties that have little, and the very last of it for operators: however many tenants are
//! busy, a quiet one gets in, and so does whoever comes to mend it.

use std::sync::{Arc, Mutex, PoisonError};

use db::{Setting, Settings};
use types::{Error, Result};
use uuid::Uuid;

use crate::caller::Caller;
use crate::dispatch::Gate;
use crate::limits;
use crate::places::{Place, Places};

/// How many may be in a room: together, of one caller, of one organization.
pub(crate) struct Size {
    pub what: &'static str,
    pub all: &'static Setting<u32>,
    pub per_caller: &'static Setting<u32>,
    pub per_organization: &'static Setting<u32>,
}

pub(crate) static REQUESTS: Size = Size {
    what: "requests under way",
    all: &limits::REQUESTS_AT_ONCE_MAX,
    per_caller: &limits::REQUESTS_PER_CALLER_MAX,
    per_organization: &limits::REQUESTS_PER_ORGANIZATION_MAX,
};
/// Callers who are being identified. Only their address is known, and many may share it: it has no limit of its own.
pub(crate) static DOOR: Size =
    Size { what: "requests at the door", per_caller: &limits::REQUESTS_AT_ONCE_MAX, ..REQUESTS };
/// They wait for their senders, so they are not among the requests under way, which wait for us.
pub(crate) static BODIES: Size = Size { what: "bodies arriving", ..REQUESTS };
/// They wait for something to happen, and cost little meanwhile.
pub(crate) static WAITING: Size = Size {
    what: "requests waiting",
    all: &limits::WAITING_AT_ONCE_MAX,
    per_caller: &limits::WAITING_PER_CALLER_MAX,
    per_organization: &limits::WAITING_PER_ORGANIZATION_MAX,
};

pub(crate) struct Room {
    size: &'static Size,
    everyone: Arc<Places>,
    callers: Arc<Places>,
    organizations: Arc<Places>,
}

/// Someone who wants to come in.
#[derive(Clone)]
pub(crate) struct Guest {
    caller: String,
    organization: Option<Uuid>,
    is_operator: bool,
}

/// A guest's stay in a room, over when dropped.
pub(crate) struct Stay {
    _places: (Place, Place, Option<Place>),
}

impl Guest {
    pub fn new(caller: &Caller) -> Self {
        let identity = &caller.identity;
        Self {
            caller: caller.key.clone(),
            organization: identity.home,
            is_operator: identity.standing.is_of_platform(),
        }
    }

    /// Someone of whom only the address is known.
    pub fn unknown(address: String) -> Self {
        Self { caller: address, organization: None, is_operator: false }
    }
}

impl Room {
    pub fn new(size: &'static Size) -> Self {
        Self { size, everyone: Arc::default(), callers: Arc::default(), organizations: Arc::default() }
    }

    pub fn enter(&self, guest: &Guest, settings: &Settings) -> Result<Stay> {
        let at = guest.organization.map_or(authz::Place::Platform, authz::Place::Organization);
        let take = |places: &Arc<Places>, holder: &str, whose: &str, setting: &'static Setting<u32>| {
            let most = settings.get_in(setting, at);
            places.take(holder, most).ok_or_else(|| limits::crowded(self.size.what, whose, setting, most))
        };
        let own = take(&self.callers, &guest.caller, "caller", self.size.per_caller)?;
        let shared = match &guest.organization {
            None => None,
            Some(id) => {
                Some(take(&self.organizations, &id.to_string(), "organization", self.size.per_organization)?)
            }
        };
        let party = shared.as_ref().unwrap_or(&own);
        let most = open_to(party.taken(), guest.is_operator, settings.get(self.size.all));
        let place = self.everyone.take("", most).ok_or_else(too_busy)?;
        Ok(Stay { _places: (place, own, shared) })
    }
}

/// How far a party that has `taken` places, the one it asks for among them, may fill a room for `all`.
fn open_to(taken: u32, is_operator: bool, all: u32) -> u32 {
    let little = (all / 32).max(1);
    match (is_operator, taken <= little) {
        (true, _) => all,
        (false, true) => all - all / 8,
        (false, false) => all - all / 4,
    }
}

fn too_busy() -> Error {
    limits::TOO_BUSY.error("too many requests at once").with_retry_after_ms(1_000)
}

/// Where a request is: among those under way, or aside while it waits for something to happen.
pub struct Seat {
    gate: Arc<Gate>,
    guest: Guest,
    stay: Mutex<(Side, Stay)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    UnderWay,
    Waiting,
}

impl Seat {
    pub(crate) fn take(gate: &Arc<Gate>, guest: Guest) -> Result<Self> {
        let stay = gate.under_way.enter(&guest, gate.limits.settings())?;
        Ok(Self { gate: Arc::clone(gate), guest, stay: Mutex::new((Side::UnderWay, stay)) })
    }

    /// A look at what is waited for: under way while it lasts, and aside after it until the next, unless what it saw
    /// `is_done`.
    pub async fn look<T>(
        &self,
        look: impl Future<Output = Result<T>>,
        is_done: impl Fn(&T) -> bool,
    ) -> Result<T> {
        self.move_to(Side::UnderWay)?;
        let seen = look.await?;
        if !is_done(&seen) {
            self.move_to(Side::Waiting)?;
        }
        Ok(seen)
    }

    fn move_to(&self, side: Side) -> Result<()> {
        let mut stay = self.stay.lock().unwrap_or_else(PoisonError::into_inner);
        if stay.0 != side {
            let room = if side == Side::Waiting { &self.gate.waiting } else { &self.gate.under_way };
            *stay = (side, room.enter(&self.guest, self.gate.limits.settings())?);
        }
        Ok(())
    }
}

impl std::fmt::Debug for Seat {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Seat").finish_non_exhaustive()
    }
}
