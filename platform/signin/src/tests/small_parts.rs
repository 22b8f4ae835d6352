//! Paths to return to, codes to type, challenges to answer.

use std::collections::HashSet;
use std::time::Duration;

use proptest::prelude::*;
use reqwest::Url;
use types::{SeededEntropy, SystemEntropy};

use crate::*;

#[test]
fn only_paths_of_ours_are_returned_to() {
    for ours in [
        "/",
        "/x",
        "/x/",
        "/orgs/org_1?tab=keys#top",
        "/a?next=//evil.test",
        "/%2F%2Fevil.test",
        "/a#//b",
        "/.x",
    ] {
        assert_eq!(return_to(ours), Some(ours));
    }
    for theirs in [
        "",
        "x",
        "//evil.test",
        "/\\evil.test",
        "\\\\evil.test",
        "///evil.test",
        "/a//b",
        "https://evil.test",
        "https:/x",
        "javascript:alert(1)",
        "/\t/evil.test",
        "/\n/evil.test",
        " /x",
        "/x y",
        "/x\r\nLocation: y",
        "/x\0",
        "/ä",
        "/.//evil.test",
        "/..//evil.test",
        "/a/../..//evil.test",
        "/%2e%2E//evil.test",
        "/a/..",
        "/.",
        "@evil.test",
        "/x\\y",
        "?x",
        "#x",
    ] {
        assert_eq!(return_to(theirs), None, "{theirs:?}");
    }
    let long = format!("/{}", "x".repeat(2_048));
    assert_eq!(return_to(&long), None);
}

#[test]
fn user_codes_are_read_as_people_type_them() {
    let code = UserCode::make(&SeededEntropy::new(7));
    let shown = code.to_string();
    assert_eq!((shown.len(), shown.find('-')), (9, Some(4)));
    let spaced = format!(" {} ", shown.to_lowercase().replace('-', " - "));
    for typed in [&shown, &spaced, &code.as_str().to_owned()] {
        assert_eq!(UserCode::read(typed).as_ref(), Some(&code), "{typed:?}");
    }
    for wrong in ["", "BCDF", "BCDFGHJ", "BCDFGHJKL", "ACDFGHJK", "BCDF_GHJK", "BCDFGHJ0", "BCDFGHJÄ"] {
        assert_eq!(UserCode::read(wrong), None, "{wrong:?}");
    }
    assert_eq!(format!("{code:?}"), "***");
}

/// Every letter as often as any other: the least frequent of 20 in 400,000 draws lies within five deviations.
#[test]
fn user_codes_use_their_whole_alphabet_evenly() {
    let entropy = SeededEntropy::new(1);
    let mut counts = std::collections::HashMap::new();
    for _ in 0..50_000 {
        for letter in UserCode::make(&entropy).as_str().chars() {
            *counts.entry(letter).or_insert(0u32) += 1;
        }
    }
    assert_eq!(counts.len(), 20);
    assert!(counts.values().all(|count| (19_310..20_690).contains(count)), "{counts:?}");
    let different: HashSet<_> = (0..100).map(|_| UserCode::make(&SystemEntropy).to_string()).collect();
    assert_eq!(different.len(), 100);
}

#[test]
fn a_challenge_says_what_is_missing() {
    let base = "Bearer error=\"insufficient_user_authentication\", \
                error_description=\"A stronger or more recent sign-in is required\"";
    assert_eq!(step_up_challenge(&[], None), base);
    let full = step_up_challenge(&["urn:a", "urn:b"], Some(Duration::from_secs(300)));
    assert_eq!(full, format!("{base}, acr_values=\"urn:a urn:b\", max_age=\"300\""));
    assert_eq!(step_up_challenge(&["x\", max_age=\"9", "a\r\nb", "", "ä", "a b"], None), base);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2_000) })]

    /// Whatever passes stays with us, read once or twice as a browser does.
    #[test]
    fn nothing_that_is_returned_to_leaves_the_site(text in r"[/\\.?#%@:a-z2eE\t\n ]{0,12}|/[/\\.%2eE]{0,8}evil\.test|.{0,30}") {
        if let Some(path) = return_to(&text) {
            let here = Url::parse("https://us.test/sign-in/done").unwrap();
            let there = here.join(path).unwrap();
            prop_assert_eq!(there.origin(), here.origin());
            prop_assert!(!there.path().starts_with("//"));
            prop_assert_eq!(here.join(there.path()).unwrap().origin(), here.origin());
        }
    }

    #[test]
    fn no_user_code_panics(text in ".{0,20}") {
        if let Some(code) = UserCode::read(&text) {
            prop_assert_eq!(UserCode::read(&code.to_string()), Some(code));
        }
    }
}
