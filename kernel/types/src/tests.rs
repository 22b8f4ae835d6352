#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use proptest::prelude::*;

use crate::cursor::CursorError;
use crate::money::MoneyError;
use crate::*;

enum Thing {}
impl Kind for Thing {
    const PREFIX: &'static str = "thg";
    const NAME: &'static str = "thing";
}

proptest! {
    #[test]
    fn every_id_has_exactly_one_text(value: u128) {
        let id = Id::<Thing>::from_uuid(uuid::Uuid::from_u128(value));
        let text = id.to_string();
        prop_assert_eq!(text.parse::<Id<Thing>>().unwrap(), id);
        prop_assert_eq!(text.len(), 30);
        // No second spelling parses to the same id.
        prop_assert!(text.to_uppercase().parse::<Id<Thing>>().is_err());
    }

    #[test]
    fn ids_sort_as_texts_do(a: u128, b: u128) {
        let (a, b) = (Id::<Thing>::from_uuid(uuid::Uuid::from_u128(a)), Id::from_uuid(uuid::Uuid::from_u128(b)));
        prop_assert_eq!(a.cmp(&b), a.to_string().cmp(&b.to_string()));
    }

    #[test]
    fn garbage_never_parses_nor_panics(text in "\\PC{0,40}") {
        if let Ok(id) = text.parse::<Id<Thing>>() {
            prop_assert_eq!(id.to_string(), text);
        }
    }

    #[test]
    fn a_split_loses_nothing(micros: i64, parts in 1u32..500) {
        let whole = Money { currency: Currency::USD, micros };
        let split = whole.split(parts);
        prop_assert_eq!(split.len(), parts as usize);
        prop_assert_eq!(split.iter().map(|m| i128::from(m.micros)).sum::<i128>(), i128::from(micros));
        let (low, high) = (split.iter().map(|m| m.micros).min().unwrap(), split.iter().map(|m| m.micros).max().unwrap());
        prop_assert!(high - low <= 1);
    }

    #[test]
    fn money_survives_the_wire(micros: i64) {
        let money = Money { currency: Currency::EUR, micros };
        let text = serde_json::to_string(&money).unwrap();
        prop_assert_eq!(serde_json::from_str::<Money>(&text).unwrap(), money);
    }

    #[test]
    fn a_parsed_name_is_a_fixed_point(raw in "\\PC{0,120}") {
        if let Ok(name) = Name::parse(&raw) {
            prop_assert_eq!(Name::parse(name.as_str()).unwrap(), name.clone());
            prop_assert!(!name.as_str().chars().any(text::is_forbidden));
        }
    }
}

#[test]
fn ids_of_another_kind_are_refused() {
    enum Other {}
    impl Kind for Other {
        const PREFIX: &'static str = "oth";
        const NAME: &'static str = "other";
    }
    let maker = IdMaker::new(Arc::new(SystemClock), Arc::new(SeededEntropy::new(7)));
    assert!(maker.make::<Other>().to_string().parse::<Id<Thing>>().is_err());
}

#[test]
fn money_refuses_to_mix_or_overflow() {
    let usd = |micros| Money { currency: Currency::USD, micros };
    let eur = Money { currency: Currency::EUR, micros: 1 };
    assert_eq!(usd(1).checked_add(eur), Err(MoneyError::CurrencyMismatch(Currency::USD, Currency::EUR)));
    assert_eq!(usd(i64::MAX).checked_add(usd(1)), Err(MoneyError::Overflow));
    assert_eq!(usd(i64::MIN).checked_sub(usd(1)), Err(MoneyError::Overflow));
    assert_eq!(usd(1_500_000).to_string(), "1.50 USD");
    assert_eq!(usd(-1).to_string(), "-0.000001 USD");
}

#[test]
fn money_has_one_spelling_on_the_wire() {
    for bad in ["+5", "05", "-0", "1.5", "1e3", "", " 1", "9223372036854775808"] {
        let text = format!(r#"{{"currency":"USD","micros":"{bad}"}}"#);
        assert!(serde_json::from_str::<Money>(&text).is_err(), "{bad}");
    }
    for bad in ["usd", "US", "USDX", "U$D"] {
        assert!(Currency::parse(bad).is_err(), "{bad}");
    }
}

#[test]
fn names_are_normalised_and_tricks_refused() {
    assert_eq!(
        Name::parse("  Ame\u{0301}lie \t x ").map(|n| n.to_string()),
        Err(text::NameError::Forbidden(9))
    );
    assert_eq!(Name::parse("  Ame\u{0301}lie   x ").unwrap().as_str(), "Am\u{e9}lie x");
    for bad in ["", "   ", "a\u{202e}b", "a\u{200b}b", "a\0b", "a\nb", "\u{feff}x", "\u{e0041}"] {
        assert!(Name::parse(bad).is_err(), "{bad:?}");
    }
    assert!(Name::parse(&"x".repeat(100)).is_ok());
    assert!(Name::parse(&"x".repeat(101)).is_err());
}

#[test]
fn a_secret_never_prints() {
    let secret = Secret::new("hunter2".to_owned());
    assert_eq!(format!("{secret} {secret:?}"), "*** ***");
}

#[test]
fn a_cursor_belongs_to_its_query() {
    let cursor = Cursor::encode("orgs?state=active", &("a", 1)).into_string();
    assert_eq!(Cursor::decode::<(String, i32)>(&cursor, "orgs?state=active"), Ok(("a".to_owned(), 1)));
    assert_eq!(Cursor::decode::<(String, i32)>(&cursor, "orgs?"), Err(CursorError::OtherQuery));
    assert_eq!(Cursor::decode::<(String, i32)>("%%%", "orgs?"), Err(CursorError::Malformed));
    assert_eq!(Cursor::decode::<i32>(&cursor, "orgs?state=active"), Err(CursorError::Malformed));
}

#[test]
fn times_are_microseconds_with_one_spelling() {
    let at: Timestamp = "2026-01-02T03:04:05.000006789Z".parse().unwrap();
    assert_eq!(clock::format_micros(at), "2026-01-02T03:04:05.000006Z");
    assert_eq!(SystemClock.now().as_nanosecond() % 1000, 0);
}

#[test]
fn a_name_that_nobody_can_see_is_refused() {
    for blank in
        ["\u{2800}", "\u{3164}", "\u{a0}\u{2003}\u{3000}", "\u{16FE4}", "\u{1D159}", "\u{FFFC}", "a\u{2800}b"]
    {
        assert!(text::Name::parse(blank).is_err(), "{blank:?}");
    }
}

/// A caller reads what is wrong with its time, whatever library found it.
#[test]
fn a_time_beyond_the_calendar_is_refused_in_plain_words() {
    for text in ["9999-12-31T23:59:59Z", "yesterday", "2026-01-31"] {
        let refused = serde_json::from_value::<Moment>(text.into()).unwrap_err().to_string();
        assert!(refused.starts_with("a time with its zone is needed, such as"), "{refused}");
    }
    assert!(serde_json::from_value::<Moment>("2026-01-31T12:00:00Z".into()).is_ok());
}
