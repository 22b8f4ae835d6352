//! Signing out at the provider, and being told by it that somebody did.

use serde_json::Value;
use types::{Result, Secret, Timestamp};

use crate::jose::TokenKind;
use crate::model::SIGN_IN_REJECTED;
use crate::provider::Provider;

/// Whose sessions have to end: those of one provider session, or of one person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedOut {
    pub subject: Option<String>,
    pub provider_session: Option<String>,
    /// To be remembered until `expires_at`: the same token a second time is a replay.
    pub token_id: String,
    pub expires_at: Timestamp,
}

const LOGOUT_EVENT: &str = "http://schemas.openid.net/event/backchannel-logout";

impl Provider {
    /// Where to send the browser so that the provider's own session ends as well (RP-Initiated Logout 1.0); nothing if the
    /// provider has no such place. `back_to` must be registered with it.
    pub async fn logout_url(
        &self,
        id_token: Option<&Secret>,
        back_to: &str,
        state: &str,
    ) -> Result<Option<String>> {
        let metadata = self.metadata().await?;
        let Some(mut url) = metadata.end_session.clone() else { return Ok(None) };
        {
            let mut query = url.query_pairs_mut();
            query
                .append_pair("client_id", &self.config.client_id)
                .append_pair("post_logout_redirect_uri", back_to)
                .append_pair("state", state);
            if let Some(id_token) = id_token {
                query.append_pair("id_token_hint", id_token.expose());
            }
        }
        Ok(Some(url.into()))
    }

    /// Checks what the provider says on its own (Back-Channel Logout 1.0, 2.6). Anybody can call the endpoint this is for.
    pub async fn logged_out(&self, token: &str) -> Result<LoggedOut> {
        let claims = self.verified(token, TokenKind::Logout).await?;
        let refused =
            |why: &'static str| SIGN_IN_REJECTED.error(format!("the logout token was refused: {why}"));
        let event = claims.map().get("events").and_then(|events| events.get(LOGOUT_EVENT));
        if !event.is_some_and(Value::is_object) {
            return Err(refused("it is about something else"));
        }
        let text = |name: &'static str| {
            let found = claims.text(name).map_err(|refusal| {
                SIGN_IN_REJECTED.error(format!("the logout token was refused: {refusal}"))
            })?;
            Ok::<_, types::Error>(found.map(str::to_owned))
        };
        let (subject, provider_session) = (text("sub")?, text("sid")?);
        if subject.is_none() && provider_session.is_none() {
            return Err(refused("it names nobody"));
        }
        let token_id = text("jti")?.ok_or_else(|| refused("it has no jti"))?;
        let expires_at = claims.time("exp").ok().flatten().ok_or_else(|| refused("it has no exp"))?;
        Ok(LoggedOut { subject, provider_session, token_id, expires_at })
    }
}
