//! What callers are told about a value, made from what the parsers really say.
#![allow(clippy::unwrap_used)]

use std::fmt::Display;

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::plain;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Word {
    Active,
    Archived,
}

fn check<T: DeserializeOwned + std::fmt::Debug>(json: &str, expected: &str) {
    told(serde_json::from_value::<T>(serde_json::from_str(json).unwrap()), json, expected);
}

/// As a query's value: always text.
fn check_query<T: DeserializeOwned + std::fmt::Debug>(value: &str, expected: &str) {
    let pairs = format!("value={value}");
    told(serde_urlencoded::from_str::<Vec<(String, T)>>(&pairs), value, expected);
}

fn told<T: std::fmt::Debug>(result: Result<T, impl Display>, sent: &str, expected: &str) {
    assert_eq!(plain(&result.err().unwrap().to_string()), expected, "{sent}");
}

#[test]
fn values_are_described_without_terms_of_rust() {
    check::<u8>("300", "expected a whole number from 0 to 255, found the number 300");
    check::<u16>("null", "expected a whole number from 0 to 65535, found null");
    check::<u32>("1.5", "expected a whole number from 0 to 4294967295, found the number 1.5");
    check::<u64>("-1", "expected a whole number, not below 0, found the number -1");
    check::<i32>("[]", "expected a whole number from -2147483648 to 2147483647, found a list");
    check::<i64>("{}", "expected a whole number, found an object");
    check::<f64>("true", "expected a number, found true");
    check::<bool>("\"yes\"", "expected true or false, found a string");
    check::<String>("false", "expected a string, found false");
    check::<Vec<u32>>("5", "expected a list, found the number 5");
    check::<Word>("\"gone\"", "expected `active` or `archived`");
}

#[test]
fn what_was_sent_as_text_is_not_repeated() {
    check::<u32>(
        "\"my secret, expected u8\"",
        "expected a whole number from 0 to 4294967295, found a string",
    );
    check::<Word>("\"my secret\"", "expected `active` or `archived`");
}

#[test]
fn numbers_in_a_query_are_described_the_same_way() {
    check_query::<u32>("many", "expected a whole number, in digits");
    check_query::<u32>("", "expected a whole number, in digits");
    check_query::<u8>("300", "the number is too large");
    check_query::<i8>("-300", "the number is too small");
    check_query::<bool>("yes", "expected true or false");
    check_query::<Word>("gone", "expected `active` or `archived`");
}
