//! Signing in: what is needed to believe a provider, a machine, and ourselves.
//!
//! This crate holds the cryptography and the protocols, and no state yet: tokens are checked and made ([`jose`], [`keys`]), a
//! [`Provider`] is found, asked and believed only as far as its answers hold. The tables (providers, attempts under way,
//! devices waiting) and the endpoints that use all this come with the directory of people.
//!
//! Invariants
//! - A key decides which algorithm is used, never a token; a token of one kind never passes for another.
//! - How strong and how fresh a login was is judged by what the provider answered, never by what it was asked.
//! - People are told apart by issuer and subject. An e-mail address is for showing.
//! - What a provider sends is limited in size and time, comes without redirects, and for a tenant's provider never from
//!   inside our network.
//! - Time comes from `types::Clock`, randomness from `types::Entropy`; every limit is a setting.
//!
//! Never: lets a credential into a log or an error; keeps a provider's refresh token; calls out inside a transaction.
//!
//! Rejected: the crate `openidconnect`, which brings a second cryptography with an advisory nobody fixes, and no logout tokens.

mod assurance;
mod challenge;
mod claims;
mod device;
mod discovery;
pub mod jose;
pub mod keys;
mod logout;
mod model;
mod outgoing;
mod provider;
mod return_to;
pub mod settings;
mod strict;
#[cfg(test)]
mod tests;

use db::migrate::MigrationSet;
use domain::Domain;

pub use assurance::{Assurance, StrongRule};
pub use challenge::step_up_challenge;
pub use claims::{ClaimPath, Profile};
pub use device::UserCode;
pub use jose::{Claims, Expected, Refusal, Signer, TokenKind, claimed_issuer, verify};
pub use keys::{Algorithm, KeySet, PublicKey, jwks};
pub use logout::LoggedOut;
pub use model::{PROVIDER_MISCONFIGURED, PROVIDER_UNREACHABLE, SIGN_IN_REJECTED, errors};
pub use outgoing::{Mode, Outgoing, Trust};
pub use provider::{
    Attempt, Callback, ClientAuth, Prompt, Provider, ProviderConfig, SignedIn, Surroundings, Wish,
};
pub use return_to::return_to;

/// What the server registers. It has no table and no endpoint yet; its errors and settings are known already.
pub fn domain() -> Domain {
    Domain {
        name: "signin",
        migrations: MigrationSet { domain: "signin", migrations: &[] },
        endpoints: Vec::new(),
        tags: &[],
        events: Vec::new(),
        errors: errors(),
        settings: settings::settings(),
        projections: Vec::new(),
    }
}
