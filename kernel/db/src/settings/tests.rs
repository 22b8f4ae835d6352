//! Which stored value counts, against a model that is written the other way round.

#![allow(clippy::expect_used)]

use std::collections::HashMap;
use std::sync::Arc;

use authz::{Level, Place};
use proptest::prelude::*;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{Freedom, Setting, Settings, Source, StoredSetting};
use crate::pool::lock;

const DEFAULT: u32 = 50;
const MIN: u32 = 10;
const MAX: u32 = 90;

const fn base(key: &'static str) -> Setting<u32> {
    Setting::new(key, DEFAULT, "A number.").between(MIN, MAX)
}

static SETTINGS: [Setting<u32>; 9] = [
    base("test.a"),
    base("test.b").only_lower(),
    base("test.c").only_higher(),
    base("test.d").per_organization(),
    base("test.e").per_organization().only_lower(),
    base("test.f").per_organization().only_higher(),
    base("test.g").per_project(),
    base("test.h").per_project().only_lower(),
    base("test.i").per_project().only_higher(),
];

const ORGANIZATION: Uuid = Uuid::from_u128(1);
const PLACES: [Place; 3] = [
    Place::Platform,
    Place::Organization(ORGANIZATION),
    Place::Project { organization: ORGANIZATION, project: Uuid::from_u128(2) },
];

/// From the inside outward: what is here, if it may be, else what the place outside has.
fn naive(setting: &Setting<u32>, stored: &[Option<Value>], at: usize) -> (u32, Source) {
    let outside = if at == 0 { (DEFAULT, Source::Default) } else { naive(setting, stored, at - 1) };
    let number = stored[at].as_ref().and_then(Value::as_u64);
    let reaches = [Level::Platform, Level::Organization, Level::Project][at] <= setting.innermost;
    match number {
        Some(number) if reaches && (u64::from(MIN)..=u64::from(MAX)).contains(&number) => {
            let number = u32::try_from(number).expect("at most 90");
            let allowed = at == 0
                || match setting.freedom {
                    Freedom::Any => true,
                    Freedom::Lower => number <= outside.0,
                    Freedom::Higher => number >= outside.0,
                };
            let source = [Source::Platform, Source::Organization, Source::Project][at];
            if allowed { (number, source) } else { outside }
        }
        _ => outside,
    }
}

fn value() -> impl Strategy<Value = Option<Value>> {
    prop_oneof![
        2 => Just(None),
        6 => (0u64..=100).prop_map(|number| Some(json!(number))),
        1 => prop_oneof![Just(json!("50")), Just(json!(null)), Just(json!(50.5)), Just(json!(u64::MAX))].prop_map(Some),
    ]
}

fn settings(key: &str, stored: &[Option<Value>], overrides: HashMap<String, Value>) -> Settings {
    let infos = SETTINGS.iter().map(Setting::info).collect();
    let settings = Settings::registered(infos, overrides).expect("good overrides");
    let mut snapshot = HashMap::new();
    for (place, value) in PLACES.into_iter().zip(stored) {
        if let Some(value) = value {
            snapshot.insert(place, HashMap::from([(key.to_owned(), value.clone())]));
        }
    }
    *lock(&settings.snapshot) = Arc::new(snapshot);
    settings
}

proptest! {
    /// In force, and shown, is what the model says: from the snapshot, and from rows just read of which a tenant does not
    /// see the platform's.
    #[test]
    fn the_innermost_value_that_may_be_there_counts(
        which in 0usize..9,
        stored in prop::collection::vec(value(), 3),
        fixed in prop::option::of(MIN..=MAX),
    ) {
        let setting = &SETTINGS[which];
        let overrides = fixed.map(|fixed| (setting.key.to_owned(), json!(fixed))).into_iter().collect();
        let settings = settings(setting.key, &stored, overrides);
        let info = settings.info(setting.key).expect("a registered setting");
        for (at, place) in PLACES.into_iter().enumerate() {
            let expected = match fixed {
                Some(fixed) => (fixed, Source::Process),
                None => naive(setting, &stored, at),
            };
            prop_assert_eq!(settings.get_in(setting, place), expected.0);
            let rows: Vec<StoredSetting> = PLACES.into_iter().zip(&stored).skip(usize::from(at > 0)).filter_map(|(place, value)| {
                let value = Some(value.clone()?);
                Some(StoredSetting {
                    place, key: setting.key.to_owned(), value, generation: 1, set_by: None,
                    set_at: "2026-01-01T00:00:00Z".parse().expect("a time"),
                })
            }).collect();
            let shown = settings.resolve_in(info, place, &rows);
            prop_assert_eq!((shown.value, shown.source), (json!(expected.0), expected.1));
        }
    }

    /// Whatever is stored, a tenant is never looser than the platform where only tighter is allowed.
    #[test]
    fn nobody_inside_is_looser(stored in prop::collection::vec(value(), 3)) {
        for setting in SETTINGS.iter().filter(|setting| setting.freedom != Freedom::Any) {
            let settings = settings(setting.key, &stored, HashMap::new());
            let [platform, organization, project] = PLACES.map(|place| settings.get_in(setting, place));
            let tightened = match setting.freedom {
                Freedom::Lower => project <= organization && organization <= platform,
                _ => project >= organization && organization >= platform,
            };
            prop_assert!(tightened, "{platform} {organization} {project}");
        }
    }
}
