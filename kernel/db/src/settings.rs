//! Typed settings: every limit, rate and retention in the product is one, with a default, bounds and a reason.
//!
//! A setting is declared once as a `static`. Its value is the innermost one that is stored, of the project, its
//! organization or the platform, else the default; the declaration says how far inward it may be set, and whether an
//! inner value may only be lower or higher than the one outside. Reading is a look-up in a snapshot in memory
//! ([`Settings`]), so it may happen on every request; the snapshot is renewed after a nudge and periodically, so a change
//! takes effect everywhere without a restart.
//!
//! Whether a stored value counts is decided when it is read ([`Setting::resolve`]), by the same rules as when it is put
//! there: a program with narrower bounds, or a platform that tightens its own value, is right at once.

mod stored;
#[cfg(test)]
mod tests;
mod values;

use std::sync::Arc;
use std::time::Duration;

use authz::{Level, Place};
use schemars::{JsonSchema, SchemaGenerator};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

pub use stored::{StoredSetting, lock, store, stored, stored_in};
pub use values::{SettingFault, Settings};

/// What a setting's value can be.
pub trait SettingType:
    Serialize + DeserializeOwned + JsonSchema + PartialOrd + Clone + Send + Sync + 'static
{
}
impl<T: Serialize + DeserializeOwned + JsonSchema + PartialOrd + Clone + Send + Sync + 'static> SettingType
    for T
{
}

/// One setting: `static PAGE_LIMIT: Setting<u32> = Setting::new("web.page_limit_max", 200, "…").at_least(1)`.
pub struct Setting<T: 'static> {
    pub key: &'static str,
    pub default: T,
    pub about: &'static str,
    min: Option<T>,
    max: Option<T>,
    innermost: Level,
    freedom: Freedom,
    evidence: Option<&'static str>,
}

/// How an organization's or a project's value may differ from the one outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Freedom {
    /// Any value within the setting's own bounds.
    Any,
    /// Only lower values, or the same: for limits that protect others.
    Lower,
    /// Only higher values, or the same.
    Higher,
}

/// Where a value in force comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// Nobody set it.
    Default,
    Platform,
    Organization,
    Project,
    /// Fixed for one process, by its `--setting`.
    Process,
}

impl From<Level> for Source {
    fn from(level: Level) -> Self {
        match level {
            Level::Platform => Self::Platform,
            Level::Organization => Self::Organization,
            Level::Project => Self::Project,
        }
    }
}

/// What holds, where it comes from, and which stored values do not count, with the reason.
#[derive(Debug, Clone, PartialEq)]
pub struct Resolved<T> {
    pub value: T,
    pub source: Source,
    pub ignored: Vec<(Level, String)>,
}

type Refusal = dyn Fn(Level, &Value) -> Option<String> + Send + Sync;
type Resolve = dyn Fn(&[(Level, &Value)]) -> Resolved<Value> + Send + Sync;

/// A setting by value, for the reference, for people, and for checking what somebody stores under its key.
#[derive(Clone, Serialize)]
pub struct SettingInfo {
    pub key: &'static str,
    pub default: Value,
    pub about: &'static str,
    /// JSON Schema of a value.
    pub schema: Value,
    /// Where it can be set.
    pub scopes: Vec<Level>,
    #[serde(skip_serializing_if = "is_any")]
    pub freedom: Freedom,
    /// What has to be shown before it is set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evidence: Option<&'static str>,
    #[serde(skip)]
    resolve: Arc<Resolve>,
    #[serde(skip)]
    refusal: Arc<Refusal>,
}

fn is_any(freedom: &Freedom) -> bool {
    *freedom == Freedom::Any
}

impl SettingInfo {
    /// What holds if these values are stored, from the outside inward.
    pub fn resolve(&self, stored: &[(Level, &Value)]) -> Resolved<Value> {
        (self.resolve)(stored)
    }

    /// Why a value would not count, whatever holds outside.
    pub fn refusal(&self, level: Level, value: &Value) -> Option<String> {
        (self.refusal)(level, value)
    }
}

/// Settings are for the platform as a whole unless they say otherwise.
impl<T: SettingType> Setting<T> {
    pub const fn new(key: &'static str, default: T, about: &'static str) -> Self {
        Self {
            key,
            default,
            about,
            min: None,
            max: None,
            innermost: Level::Platform,
            freedom: Freedom::Any,
            evidence: None,
        }
    }

    /// Organizations may have a value of their own.
    #[must_use]
    pub const fn per_organization(mut self) -> Self {
        self.innermost = Level::Organization;
        self
    }

    /// Organizations and projects may have a value of their own.
    #[must_use]
    pub const fn per_project(mut self) -> Self {
        self.innermost = Level::Project;
        self
    }

    /// An organization's or a project's value cannot be higher than the one outside.
    #[must_use]
    pub const fn only_lower(mut self) -> Self {
        self.freedom = Freedom::Lower;
        self
    }

    /// An organization's or a project's value cannot be lower than the one outside.
    #[must_use]
    pub const fn only_higher(mut self) -> Self {
        self.freedom = Freedom::Higher;
        self
    }

    /// It cannot be set before something was shown; `what` says it in words. Whoever offers the setting to people asks
    /// whether it was (`platform/governance`, `Evidence`) and refuses while nobody can tell.
    #[must_use]
    pub const fn needs_evidence(mut self, what: &'static str) -> Self {
        self.evidence = Some(what);
        self
    }

    pub fn info(&'static self) -> SettingInfo {
        let scopes = [Level::Platform, Level::Organization, Level::Project];
        SettingInfo {
            key: self.key,
            default: to_json(&self.default),
            about: self.about,
            schema: self.schema(),
            scopes: scopes.into_iter().filter(|level| *level <= self.innermost).collect(),
            freedom: self.freedom,
            evidence: self.evidence,
            resolve: Arc::new(|stored| {
                let Resolved { value, source, ignored } = self.resolve(stored.iter().copied());
                Resolved { value: to_json(&value), source, ignored }
            }),
            refusal: Arc::new(|level, value| self.fit(level, value).err()),
        }
    }

    /// What holds if these values are stored, from the outside inward. One that does not count is passed over.
    fn resolve<'a>(&self, stored: impl IntoIterator<Item = (Level, &'a Value)>) -> Resolved<T> {
        let mut held = Resolved { value: self.default.clone(), source: Source::Default, ignored: Vec::new() };
        for (level, value) in stored {
            match self.judge(level, value, &held.value) {
                Ok(value) => (held.value, held.source) = (value, level.into()),
                Err(why) => held.ignored.push((level, why)),
            }
        }
        held
    }

    /// The value, if it may stand at this level under the one outside.
    fn judge(&self, level: Level, value: &Value, outside: &T) -> Result<T, String> {
        let value = self.fit(level, value)?;
        let refused = match self.freedom {
            _ if level == Level::Platform => None,
            Freedom::Any => None,
            Freedom::Lower => (value > *outside).then_some("higher"),
            Freedom::Higher => (value < *outside).then_some("lower"),
        };
        match refused {
            Some(how) => {
                Err(format!("it cannot be {how} than what holds outside, which is {}", to_json(outside)))
            }
            None => Ok(value),
        }
    }

    /// The value, if it may stand at this level at all.
    fn fit(&self, level: Level, value: &Value) -> Result<T, String> {
        if level > self.innermost {
            return Err(format!("it cannot be set per {}", level_name(level)));
        }
        self.parse(value)
    }

    fn parse(&self, stored: &Value) -> Result<T, String> {
        let is_beyond = |value: &T| {
            self.min.as_ref().is_some_and(|min| value < min)
                || self.max.as_ref().is_some_and(|max| value > max)
        };
        let too_large = stored.as_u64().is_some_and(|number| number > ceiling(self.key));
        match serde_json::from_value::<T>(stored.clone()) {
            Ok(value) if !is_beyond(&value) && !too_large => Ok(value),
            _ => Err(format!("it has to be {}", wanted(&self.schema()))),
        }
    }

    fn schema(&self) -> Value {
        let mut schema = SchemaGenerator::default().into_root_schema_for::<T>().to_value();
        if let Some(fields) = schema.as_object_mut() {
            fields.remove("$schema");
            fields.remove("title");
        }
        for (bound, declared) in [("minimum", &self.min), ("maximum", &self.max)] {
            if let Some(declared) = declared {
                schema[bound] = to_json(declared);
            }
        }
        if schema["type"] == "integer" && schema["maximum"].is_null() {
            let widest = if schema["format"] == "uint32" { u64::from(u32::MAX) } else { u64::MAX };
            schema["maximum"] = json!(ceiling(self.key).min(widest));
        }
        schema
    }
}

impl<T: SettingType + Copy> Setting<T> {
    #[must_use]
    pub const fn at_least(mut self, min: T) -> Self {
        self.min = Some(min);
        self
    }

    #[must_use]
    pub const fn between(mut self, min: T, max: T) -> Self {
        self.min = Some(min);
        self.max = Some(max);
        self
    }
}

impl Setting<u64> {
    /// The value as a duration, for settings whose key ends in `_ms`.
    pub fn millis(&self, settings: &Settings) -> Duration {
        Duration::from_millis(settings.get(self))
    }

    /// The value as a duration, for settings whose key ends in `_seconds`.
    pub fn seconds(&self, settings: &Settings) -> Duration {
        self.seconds_in(settings, Place::Platform)
    }

    /// The same at a place.
    pub fn seconds_in(&self, settings: &Settings, place: Place) -> Duration {
        Duration::from_secs(settings.get_in(self, place))
    }
}

/// The highest number anyone can mean. Times are at most a century, so that one added to the present is still a date;
/// everything else is at most what every JSON reader keeps exactly.
fn ceiling(key: &str) -> u64 {
    const CENTURY_DAYS: u64 = 36_500; // fixed: see above
    const EXACT_MAX: u64 = (1 << 53) - 1; // fixed: see above
    let unit = key.trim_end_matches("_max").trim_end_matches("_min").rsplit('_').next();
    match unit {
        Some("days") => CENTURY_DAYS,
        Some("seconds") => CENTURY_DAYS * 86_400,
        Some("ms") => CENTURY_DAYS * 86_400_000,
        _ => EXACT_MAX,
    }
}

/// What a value has to be, in words.
fn wanted(schema: &Value) -> String {
    let what = match schema["type"].as_str() {
        Some("integer") => "a whole number",
        Some("number") => "a number",
        Some("boolean") => return "true or false".to_owned(),
        Some("string") => "a text",
        _ => "a value that its schema describes",
    };
    match (&schema["minimum"], &schema["maximum"]) {
        (Value::Null, Value::Null) => what.to_owned(),
        (min, Value::Null) => format!("{what}, at least {min}"),
        (Value::Null, max) => format!("{what}, at most {max}"),
        (min, max) => format!("{what} from {min} to {max}"),
    }
}

fn level_name(level: Level) -> &'static str {
    match level {
        Level::Platform => "platform",
        Level::Organization => "organization",
        Level::Project => "project",
    }
}

fn to_json(value: &impl Serialize) -> Value {
    serde_json::to_value(value).unwrap_or(Value::Null)
}
