//! Typed settings: every limit, rate and retention in the product is one, with a default, a check and a reason.
//!
//! A setting is declared once as a `static`; its value is the most specific one stored in `spine.setting`, else the
//! default. Reading is a look-up in a snapshot in memory, so it may happen on every request; the snapshot is renewed
//! after a nudge and periodically, so a change takes effect everywhere without a restart.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use uuid::Uuid;

use crate::error::DbError;
use crate::internal::Internal;
use crate::pool::lock;

/// One setting: `static PAGE_LIMIT: Setting<u32> = Setting::new("web.page_limit_max", 200, "…")`.
pub struct Setting<T: 'static> {
    pub key: &'static str,
    pub default: T,
    pub about: &'static str,
    check: fn(&T) -> bool,
}

/// A setting by value, for the reference, and for checking what somebody stored under its key.
#[derive(Clone, Serialize)]
pub struct SettingInfo {
    pub key: &'static str,
    pub default: Value,
    pub about: &'static str,
    #[serde(skip)]
    accepts: Arc<dyn Fn(&Value) -> bool + Send + Sync>,
}

impl<T: Serialize + DeserializeOwned + Clone + Sync> Setting<T> {
    pub const fn new(key: &'static str, default: T, about: &'static str) -> Self {
        Self { key, default, about, check: |_| true }
    }

    /// A stored value that fails the check is warned of and ignored in favour of the default.
    #[must_use]
    pub const fn checked(mut self, check: fn(&T) -> bool) -> Self {
        self.check = check;
        self
    }

    pub fn info(&'static self) -> SettingInfo {
        SettingInfo {
            key: self.key,
            default: serde_json::to_value(&self.default).unwrap_or(Value::Null),
            about: self.about,
            accepts: Arc::new(|value| self.parse(value).is_some()),
        }
    }

    fn parse(&self, stored: &Value) -> Option<T> {
        serde_json::from_value(stored.clone()).ok().filter(|value| (self.check)(value))
    }
}

impl Setting<u64> {
    /// The value as a duration, for settings whose key ends in `_ms`.
    pub fn millis(&self, settings: &Settings) -> Duration {
        Duration::from_millis(settings.get(self))
    }

    /// The value as a duration, for settings whose key ends in `_seconds`.
    pub fn seconds(&self, settings: &Settings) -> Duration {
        Duration::from_secs(settings.get(self))
    }
}

#[derive(Default)]
struct Snapshot {
    platform: HashMap<String, Value>,
    scoped: HashMap<(Uuid, String), Value>,
}

/// The effective values, as this process knows them.
#[derive(Clone, Default)]
pub struct Settings {
    snapshot: Arc<std::sync::Mutex<Arc<Snapshot>>>,
    /// Values that win over stored ones in this process: for drills and tests.
    overrides: Arc<HashMap<String, Value>>,
    /// Every setting there is; none if nobody said, and then nothing is warned of.
    registered: Arc<HashMap<&'static str, SettingInfo>>,
    /// What is wrong with the stored values, so that each fault is told once.
    faults: Arc<std::sync::Mutex<HashSet<SettingFault>>>,
}

/// A value that is not used, and why.
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
pub enum SettingFault {
    #[error("there is no setting {key}")]
    Unknown { key: String },
    #[error("{value} is not a value for the setting {key} (default {default}): {}", .about.trim_end_matches('.'))]
    Refused { key: String, value: String, default: String, about: &'static str },
}

impl Settings {
    /// Settings with some values fixed for this process.
    pub fn with_overrides(overrides: HashMap<String, Value>) -> Self {
        Self { overrides: Arc::new(overrides), ..Self::default() }
    }

    /// Settings of a process that knows which ones there are: a fixed value that none of them takes is a fault, a stored
    /// one is warned of.
    pub fn registered(
        registered: Vec<SettingInfo>,
        overrides: HashMap<String, Value>,
    ) -> Result<Self, SettingFault> {
        let registered = Arc::new(registered.into_iter().map(|info| (info.key, info)).collect());
        let settings = Self { registered, ..Self::with_overrides(overrides) };
        match settings.overrides.iter().find_map(|(key, value)| settings.fault(key, value)) {
            Some(fault) => Err(fault),
            None => Ok(settings),
        }
    }

    fn fault(&self, key: &str, value: &Value) -> Option<SettingFault> {
        let key = key.to_owned();
        let Some(info) = self.registered.get(key.as_str()) else {
            return Some(SettingFault::Unknown { key });
        };
        let (value_text, default) = (value.to_string(), info.default.to_string());
        let refused = SettingFault::Refused { key, value: value_text, default, about: info.about };
        (!(info.accepts)(value)).then_some(refused)
    }

    /// Tells what is wrong with stored values, each fault once until it is mended.
    fn warn_of_faults(&self, snapshot: &Snapshot) {
        if self.registered.is_empty() {
            return;
        }
        let scoped = snapshot.scoped.iter().map(|((_, key), value)| (key, value));
        let stored = snapshot.platform.iter().chain(scoped);
        let faults: HashSet<_> = stored.filter_map(|(key, value)| self.fault(key, value)).collect();
        let mut known = lock(&self.faults);
        for fault in faults.difference(&known) {
            tracing::warn!(%fault, "a value in spine.setting is ignored: correct or delete the row");
        }
        *known = faults;
    }

    /// The platform's value.
    pub fn get<T: Serialize + DeserializeOwned + Clone + Sync>(&self, setting: &Setting<T>) -> T {
        let fixed = self.overrides.get(setting.key).and_then(|value| setting.parse(value));
        let stored = || lock(&self.snapshot).platform.get(setting.key).and_then(|value| setting.parse(value));
        fixed.or_else(stored).unwrap_or_else(|| setting.default.clone())
    }

    /// The value for an organization or project: its own, else the platform's. Nobody asks yet: the limits and retentions of
    /// single organizations and projects, which identity brings, will.
    pub fn get_for<T: Serialize + DeserializeOwned + Clone + Sync>(
        &self,
        setting: &Setting<T>,
        scope: Uuid,
    ) -> T {
        let snapshot = Arc::clone(&lock(&self.snapshot));
        match snapshot.scoped.get(&(scope, setting.key.to_owned())).and_then(|value| setting.parse(value)) {
            Some(value) => value,
            None => self.get(setting),
        }
    }

    /// Reads everything anew. Called at start, after a nudge and periodically.
    pub async fn renew(&self, internal: &Internal) -> Result<(), DbError> {
        let mut snapshot = Snapshot::default();
        for row in internal.query("SELECT scope_kind, scope_id, key, value FROM spine.setting", &[]).await? {
            let (kind, scope, key, value): (String, Uuid, String, Value) =
                (row.get(0), row.get(1), row.get(2), row.get(3));
            if kind == "platform" {
                snapshot.platform.insert(key, value);
            } else {
                snapshot.scoped.insert((scope, key), value);
            }
        }
        self.warn_of_faults(&snapshot);
        *lock(&self.snapshot) = Arc::new(snapshot);
        Ok(())
    }
}
