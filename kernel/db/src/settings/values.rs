//! The values in force, as a process knows them.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use authz::{Level, Place};
use serde_json::Value;

use super::{Resolved, Setting, SettingInfo, SettingType, Source, StoredSetting, stored};
use crate::error::DbError;
use crate::internal::Internal;
use crate::pool::lock;

/// What is stored, by place and key.
type Snapshot = HashMap<Place, HashMap<String, Value>>;

/// The effective values, as this process knows them.
#[derive(Clone, Default)]
pub struct Settings {
    pub(super) snapshot: Arc<std::sync::Mutex<Arc<Snapshot>>>,
    /// Held while the snapshot is renewed: one that was read earlier must not replace one that was read later.
    renewing: Arc<tokio::sync::Mutex<()>>,
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
    #[error("{value} is not a value for the setting {key} (default {default}): {why}. {}", .about.trim_end_matches('.'))]
    Refused { key: String, value: String, default: String, why: String, about: &'static str },
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
        match settings.overrides.iter().find_map(|(key, value)| settings.fault(key, Level::Platform, value)) {
            Some(fault) => Err(fault),
            None => Ok(settings),
        }
    }

    /// Every setting there is, by key.
    pub fn infos(&self) -> Vec<&SettingInfo> {
        let mut all: Vec<&SettingInfo> = self.registered.values().collect();
        all.sort_by_key(|info| info.key);
        all
    }

    pub fn info(&self, key: &str) -> Option<&SettingInfo> {
        self.registered.get(key)
    }

    /// The platform's value.
    pub fn get<T: SettingType>(&self, setting: &Setting<T>) -> T {
        self.get_in(setting, Place::Platform)
    }

    /// The value that holds at a place: its own, else that of the places it lies in, else the default.
    pub fn get_in<T: SettingType>(&self, setting: &Setting<T>, place: Place) -> T {
        if let Some(fixed) = self.overrides.get(setting.key).and_then(|value| setting.parse(value).ok()) {
            return fixed;
        }
        let snapshot = Arc::clone(&lock(&self.snapshot));
        let value_at = |at: Place| Some((at.level(), snapshot.get(&at)?.get(setting.key)?));
        setting.resolve(place.from_outside().filter_map(value_at)).value
    }

    /// What holds at a place, given the rows of this setting that were just read. The platform's own row is out of a
    /// tenant's sight: then the value this process knows counts.
    pub fn resolve_in(&self, info: &SettingInfo, place: Place, rows: &[StoredSetting]) -> Resolved<Value> {
        let platform = lock(&self.snapshot).get(&Place::Platform).and_then(|at| at.get(info.key)).cloned();
        let value_at = |at: Place| match rows.iter().find(|row| row.place == at && row.key == info.key) {
            Some(row) => Some((at.level(), row.value.as_ref()?)),
            None if at == Place::Platform => Some((at.level(), platform.as_ref()?)),
            None => None,
        };
        let stored: Vec<(Level, &Value)> = place.from_outside().filter_map(value_at).collect();
        let mut resolved = info.resolve(&stored);
        if let Some(fixed) = self.overrides.get(info.key) {
            (resolved.value, resolved.source) = (fixed.clone(), Source::Process);
        }
        resolved
    }

    /// The platform's stored value, as this process knows it.
    pub fn platform_value(&self, key: &str) -> Option<Value> {
        lock(&self.snapshot).get(&Place::Platform)?.get(key).cloned()
    }

    /// Reads everything anew. Called at start, after a nudge and periodically.
    pub async fn renew(&self, internal: &Internal) -> Result<(), DbError> {
        let _one_at_a_time = self.renewing.lock().await;
        let mut snapshot = Snapshot::default();
        for row in stored::all(internal).await? {
            if let Some(value) = row.value {
                snapshot.entry(row.place).or_default().insert(row.key, value);
            }
        }
        self.warn_of_faults(&snapshot);
        *lock(&self.snapshot) = Arc::new(snapshot);
        Ok(())
    }

    fn fault(&self, key: &str, level: Level, value: &Value) -> Option<SettingFault> {
        let key = key.to_owned();
        let Some(info) = self.registered.get(key.as_str()) else {
            return Some(SettingFault::Unknown { key });
        };
        let why = info.refusal(level, value)?;
        let (value, default) = (value.to_string(), info.default.to_string());
        Some(SettingFault::Refused { key, value, default, why, about: info.about })
    }

    /// Tells what is wrong with stored values, each fault once until it is mended. That a tenant's value is passed over
    /// because the platform has tightened its own is no fault.
    fn warn_of_faults(&self, snapshot: &Snapshot) {
        if self.registered.is_empty() {
            return;
        }
        let stored = snapshot
            .iter()
            .flat_map(|(place, values)| values.iter().map(|(key, value)| (place.level(), key, value)));
        let faults: HashSet<_> =
            stored.filter_map(|(level, key, value)| self.fault(key, level, value)).collect();
        let mut known = lock(&self.faults);
        for fault in faults.difference(&known) {
            tracing::warn!(%fault, "a value in spine.setting is ignored: correct it or take it back");
        }
        *known = faults;
    }
}
