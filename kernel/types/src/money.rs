//! Money is a whole number of micro-units of one currency: 1,000,000 micros are one dollar, euro or yen.
//!
//! There is no floating point and no silent conversion: adding two currencies is an error, overflow is an error.
//! On the wire the amount is a string, because JavaScript rounds integers above 2^53.

use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// An ISO 4217 code: three capital letters.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Currency([u8; 3]);

impl Currency {
    pub const USD: Self = Self(*b"USD");
    pub const EUR: Self = Self(*b"EUR");

    pub fn parse(code: &str) -> Result<Self, MoneyError> {
        match <[u8; 3]>::try_from(code.as_bytes()) {
            Ok(bytes) if bytes.iter().all(u8::is_ascii_uppercase) => Ok(Self(bytes)),
            _ => Err(MoneyError::BadCurrency),
        }
    }

    pub fn code(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or("???")
    }
}

impl fmt::Display for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}
impl fmt::Debug for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

/// An amount of money. May be negative (a balance); places that forbid that say so.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Money {
    pub currency: Currency,
    pub micros: i64,
}

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum MoneyError {
    #[error("a currency is three capital letters, like USD")]
    BadCurrency,
    #[error("an amount is a whole number of micro-units as a string, like \"1500000\" for 1.50")]
    BadAmount,
    #[error("cannot combine {0} with {1}")]
    CurrencyMismatch(Currency, Currency),
    #[error("the amount is too large")]
    Overflow,
}

impl Money {
    pub const fn zero(currency: Currency) -> Self {
        Self { currency, micros: 0 }
    }

    pub fn checked_add(self, other: Self) -> Result<Self, MoneyError> {
        self.combine(other, i64::checked_add)
    }

    pub fn checked_sub(self, other: Self) -> Result<Self, MoneyError> {
        self.combine(other, i64::checked_sub)
    }

    /// Splits into `parts` amounts that differ by at most one micro-unit and sum to exactly `self`.
    pub fn split(self, parts: u32) -> Vec<Self> {
        let count = i64::from(parts);
        if count == 0 {
            return Vec::new();
        }
        let (each, rest) = (self.micros.div_euclid(count), self.micros.rem_euclid(count));
        (0..count).map(|i| Self { currency: self.currency, micros: each + i64::from(i < rest) }).collect()
    }

    fn combine(self, other: Self, with: fn(i64, i64) -> Option<i64>) -> Result<Self, MoneyError> {
        if self.currency != other.currency {
            return Err(MoneyError::CurrencyMismatch(self.currency, other.currency));
        }
        let micros = with(self.micros, other.micros).ok_or(MoneyError::Overflow)?;
        Ok(Self { currency: self.currency, micros })
    }
}

impl fmt::Display for Money {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.micros < 0 { "-" } else { "" };
        let (whole, part) = (self.micros.unsigned_abs() / 1_000_000, self.micros.unsigned_abs() % 1_000_000);
        let fraction = format!("{part:06}");
        let shown = fraction.trim_end_matches('0');
        write!(f, "{sign}{whole}.{shown:0<2} {}", self.currency)
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wire<'a> {
    currency: std::borrow::Cow<'a, str>,
    micros: std::borrow::Cow<'a, str>,
}

impl Serialize for Money {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Wire { currency: self.currency.code().into(), micros: self.micros.to_string().into() }
            .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Money {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let wire = Wire::deserialize(deserializer)?;
        let currency = Currency::parse(&wire.currency).map_err(D::Error::custom)?;
        let micros: i64 = wire.micros.parse().map_err(|_| D::Error::custom(MoneyError::BadAmount))?;
        // One spelling per amount: "+5", "05" and "-0" would make equal bodies hash differently.
        if micros.to_string() != wire.micros {
            return Err(D::Error::custom(MoneyError::BadAmount));
        }
        Ok(Self { currency, micros })
    }
}

impl JsonSchema for Money {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Money".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "object",
            "description": "An exact amount: micro-units (millionths) of one currency, as a string.",
            "required": ["currency", "micros"],
            "additionalProperties": false,
            "properties": {
                "currency": {"type": "string", "pattern": "^[A-Z]{3}$", "description": "ISO 4217 code."},
                "micros": {"type": "string", "pattern": "^(0|-?[1-9][0-9]{0,18})$", "description": "Whole micro-units."},
            },
            "examples": [{"currency": "USD", "micros": "1500000"}],
        })
    }
}
