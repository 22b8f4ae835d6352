//! How a provider describes itself (OpenID Connect Discovery 1.0), as far as we believe it.

use reqwest::Url;
use serde_json::{Map, Value};
use types::Result;

use crate::model::PROVIDER_MISCONFIGURED;
use crate::outgoing::{Outgoing, Trust};
use crate::strict;

pub(crate) struct Metadata {
    pub authorization: Url,
    pub token: Url,
    pub jwks: Url,
    pub userinfo: Option<Url>,
    pub end_session: Option<Url>,
    /// It says who it is when it answers, so an answer that does not is not its own (RFC 9207).
    pub names_itself: bool,
    /// It can answer in the fragment, which no server and no log sees.
    pub fragment: bool,
}

/// Where the description of an issuer is.
pub(crate) fn address(issuer: &str) -> String {
    format!("{}/.well-known/openid-configuration", issuer.trim_end_matches('/'))
}

pub(crate) async fn discover(outgoing: &Outgoing, issuer: &str, trust: Trust) -> Result<Metadata> {
    if issuer.contains(['?', '#']) {
        return Err(PROVIDER_MISCONFIGURED.error("an issuer has neither a query nor a fragment"));
    }
    let url = outgoing.allowed(&address(issuer), trust)?;
    let document = document(outgoing, &url, trust, "description").await?;
    let text = |name: &str| document.get(name).and_then(Value::as_str);
    // Exactly: whoever may answer for a similar name must not get in by it.
    if text("issuer") != Some(issuer) {
        return Err(PROVIDER_MISCONFIGURED.error("the provider says that it is another issuer"));
    }
    let optional = |name: &str| text(name).map(|address| outgoing.allowed(address, trust)).transpose();
    let required = |name: &str| {
        optional(name)?
            .ok_or_else(|| PROVIDER_MISCONFIGURED.error(format!("the provider's description has no {name}")))
    };
    let offers = |list: &str, wanted: &str| {
        let offered = document.get(list).and_then(Value::as_array);
        offered.is_none_or(|offered| offered.iter().any(|one| one == wanted))
    };
    if !offers("code_challenge_methods_supported", "S256") {
        return Err(PROVIDER_MISCONFIGURED.error("the provider does not offer PKCE with S256"));
    }
    let names_itself = document.get("authorization_response_iss_parameter_supported");
    Ok(Metadata {
        authorization: required("authorization_endpoint")?,
        token: required("token_endpoint")?,
        jwks: required("jwks_uri")?,
        userinfo: optional("userinfo_endpoint")?,
        end_session: optional("end_session_endpoint")?,
        names_itself: names_itself == Some(&Value::Bool(true)),
        fragment: offers("response_modes_supported", "fragment"),
    })
}

/// A document the provider publishes.
pub(crate) async fn document(
    outgoing: &Outgoing,
    url: &Url,
    trust: Trust,
    what: &'static str,
) -> Result<Map<String, Value>> {
    let answer = outgoing.get(url, trust, None).await?;
    if !answer.is_success() {
        let status = answer.status;
        return Err(
            PROVIDER_MISCONFIGURED.error(format!("asked for its {what}, the provider answered {status}"))
        );
    }
    strict::object(&answer.body)
        .map_err(|_| PROVIDER_MISCONFIGURED.error(format!("the provider's {what} is not a JSON object")))
}
