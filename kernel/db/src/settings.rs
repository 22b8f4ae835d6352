//! Typed settings: every limit, rate and retention in the product is one, with a default, a check and a reason.
//!
//! A setting is declared once as a `static`; its value is the most specific one stored in `spine.setting`, else the
//! default. Reading is a look-up in a snapshot in memory, so it may happen on every request; the snapshot is renewed
//! after a nudge and periodically, so a change takes effect everywhere without a restart.

use std::collections::HashMap;
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

/// A setting by value, for the reference.
#[derive(Debug, Clone, Serialize)]
pub struct SettingInfo {
    pub key: &'static str,
    pub default: Value,
    pub about: &'static str,
}

impl<T: Serialize + DeserializeOwned + Clone> Setting<T> {
    pub const fn new(key: &'static str, default: T, about: &'static str) -> Self {
        Self { key, default, about, check: |_| true }
    }

    /// A stored value that fails the check is ignored in favour of the default.
    #[must_use]
    pub const fn checked(mut self, check: fn(&T) -> bool) -> Self {
        self.check = check;
        self
    }

    pub fn info(&self) -> SettingInfo {
        SettingInfo {
            key: self.key,
            default: serde_json::to_value(&self.default).unwrap_or(Value::Null),
            about: self.about,
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
}

impl Settings {
    /// Settings with some values fixed for this process.
    pub fn with_overrides(overrides: HashMap<String, Value>) -> Self {
        Self { snapshot: Arc::default(), overrides: Arc::new(overrides) }
    }

    /// The platform's value.
    pub fn get<T: Serialize + DeserializeOwned + Clone>(&self, setting: &Setting<T>) -> T {
        let fixed = self.overrides.get(setting.key).and_then(|value| setting.parse(value));
        let stored = || lock(&self.snapshot).platform.get(setting.key).and_then(|value| setting.parse(value));
        fixed.or_else(stored).unwrap_or_else(|| setting.default.clone())
    }

    /// The value for an organization or project: its own, else the platform's.
    pub fn get_for<T: Serialize + DeserializeOwned + Clone>(&self, setting: &Setting<T>, scope: Uuid) -> T {
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
        *lock(&self.snapshot) = Arc::new(snapshot);
        Ok(())
    }
}
