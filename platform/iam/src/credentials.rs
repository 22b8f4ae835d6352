//! Who is calling: API keys, browser sessions and one-time sign-in links.
//!
//! A credential is random text with a prefix that secret scanners know; only its SHA-256 is stored (it has 256 bits of
//! its own, so a slow hash would add nothing). Who was found is remembered until something it rests on is revoked
//! ([`Remembered`]); a credential that was never good is looked up each time, and guessers are limited by `kernel/web`.

use std::sync::Arc;

use authz::{Actor, ActorKind, Context, Grant, Place, Resource, Standing, authorize};
use aws_lc_rs::digest;
use axum::http::request::Parts;
use axum::http::{Method, header};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use db::{Change, Db, Internal, Setting, SettingInfo, Settings};
use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use types::{Clock, Entropy, Kind as _, Result, Secret, Timestamp};
use uuid::Uuid;
use web::{Authenticator, Credential, Found, Identity};

use crate::events::{SessionCreated, SignInLinkCreated};
use crate::model::*;
use crate::policy::{SessionCreate, SignInLinkCreate};
use crate::roles::role;
use crate::{Iam, Loaded, Remembered, Revocations, store};

pub const SESSION_COOKIE: &str = "gpuaas_session";
/// Over TLS the prefix ties the cookie to this host and to HTTPS.
const SECURE_SESSION_COOKIE: &str = "__Host-gpuaas_session";

pub static SESSION_SECONDS: Setting<u64> =
    Setting::new("iam.session_seconds", 12 * 3600, "How long a browser session lasts, in seconds.")
        .at_least(60);
pub static SIGN_IN_LINK_SECONDS: Setting<u64> = Setting::new(
    "iam.sign_in_link_seconds",
    24 * 3600,
    "How long a one-time sign-in link can be used, in seconds.",
)
.at_least(60);

pub fn settings() -> Vec<SettingInfo> {
    vec![
        SESSION_SECONDS.info(),
        SIGN_IN_LINK_SECONDS.info(),
        crate::invitations::INVITATION_SECONDS.info(),
        crate::keys::KEY_SECONDS_MAX.info(),
    ]
}

/// Kinds of credential, told apart by prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CredentialKind {
    ApiKey,
    Session,
    SignInCode,
    Invitation,
}

impl CredentialKind {
    const fn prefix(self) -> &'static str {
        match self {
            Self::ApiKey => "gpuaas_key_",
            Self::Session => "gpuaas_ses_",
            Self::SignInCode => "gpuaas_sic_",
            Self::Invitation => "gpuaas_inv_",
        }
    }

    pub(crate) fn make(self, entropy: &dyn Entropy) -> Secret {
        let mut bytes = [0u8; 32];
        entropy.fill(&mut bytes);
        Secret::new(format!("{}{}", self.prefix(), URL_SAFE_NO_PAD.encode(bytes)))
    }
}

pub(crate) fn hash(text: &str) -> Vec<u8> {
    digest::digest(&digest::SHA256, text.as_bytes()).as_ref().to_vec()
}

/// Tells who a request comes from.
pub struct Credentials {
    internal: Internal,
    clock: Arc<dyn Clock>,
    remembered: Remembered<Vec<u8>, Found>,
    cookie: &'static str,
}

impl Credentials {
    /// `tls`: are requests sent over TLS? Then only the cookie that is tied to this host counts.
    pub fn new(db: &Db, revocations: Revocations, settings: Settings, tls: bool) -> Self {
        let remembered = Remembered::new(revocations, db.clock(), settings);
        let internal = db.internal("iam.credentials");
        Self { internal, clock: db.clock(), remembered, cookie: cookie_name(tls) }
    }

    async fn find(&self, credential: &str, key: Vec<u8>) -> Result<Loaded<Found>> {
        let params: db::Params<'_> = &[&key, &self.clock.now()];
        if credential.starts_with(CredentialKind::ApiKey.prefix()) {
            let rows = self.internal.query(store::KEY_FIND, params).await?;
            let id = |id| KeyId::from_uuid(id).to_string();
            return Ok(identity(&rows, id).map_or(WRONG, |identity| good(&rows, identity)));
        }
        if credential.starts_with(CredentialKind::Session.prefix()) {
            let rows = self.internal.query(store::SESSION_FIND, params).await?;
            let id = |id| SessionId::from_uuid(id).to_string();
            if let Some(identity) = identity(&rows, id) {
                return Ok(good(&rows, identity));
            }
            let known = self.internal.query_opt(store::SESSION_KNOWN, &[&key]).await?;
            let stale =
                |row: db::Row| Loaded { value: Found::Stale, subjects: vec![row.get(0)], until: None };
            return Ok(known.map_or(WRONG, stale));
        }
        Ok(WRONG)
    }
}

/// Rests on nothing, so it is not remembered.
const WRONG: Loaded<Found> = Loaded { value: Found::Wrong, subjects: Vec::new(), until: None };

/// Rests on the person, the credential, and every organization they have something to do with; for as long as the
/// credential lasts and the first grant does.
fn good(rows: &[db::Row], identity: Identity) -> Loaded<Found> {
    let ids = |row: &db::Row| [0, 1, 3, 7].map(|column: usize| row.get::<_, Option<Uuid>>(column));
    let mut subjects: Vec<Uuid> = rows.iter().flat_map(ids).flatten().collect();
    subjects.sort();
    subjects.dedup();
    let ends = rows.iter().flat_map(|row| [row.get::<_, Option<Timestamp>>(2), row.get(9)]);
    Loaded { value: Found::Good(identity), subjects, until: ends.flatten().min() }
}

/// Who shows the credential, and what they hold: the rows of `KEY_FIND` or `SESSION_FIND`, one per grant.
fn identity(rows: &[db::Row], credential_id: impl Fn(Uuid) -> String) -> Option<Identity> {
    let first = rows.first()?;
    let person = PersonId::from_uuid(first.get(0));
    let mut standing = Standing::of(rows.iter().filter_map(held));
    standing.only = first.get::<_, Option<Vec<String>>>(5).map(Arc::from);
    standing = standing.within(Place::new(first.get(3), first.get(4)));
    let mut actor = Actor::new(ActorKind::User, person.to_string());
    actor.credential = Some(credential_id(first.get(1)));
    let home = standing.home();
    Some(Identity { actor, standing: Arc::new(standing), home, expires_at: first.get(2) })
}

/// A role that no longer exists gives nothing.
fn held(row: &db::Row) -> Option<Grant> {
    let role = role(row.get::<_, Option<&str>>(6)?)?;
    Some(Grant::fixed(Place::new(row.get(7), row.get(8)), role.name))
}

impl Authenticator for Credentials {
    fn credential(&self, head: &Parts) -> Result<Option<Credential>> {
        if let Some(value) = head.headers.get(header::AUTHORIZATION) {
            let token =
                value.to_str().ok().and_then(bearer).ok_or_else(|| {
                    authz::UNAUTHENTICATED.error("the Authorization header is not 'Bearer …'")
                })?;
            return Ok(Some(Credential { text: Secret::new(token.to_owned()), optional: false }));
        }
        let Some(session) = session_cookie(head, self.cookie) else { return Ok(None) };
        refuse_cross_site(head)?;
        Ok(Some(Credential { text: Secret::new(session.to_owned()), optional: true }))
    }

    fn identify<'a>(&'a self, credential: &'a Credential) -> BoxFuture<'a, Result<Found>> {
        Box::pin(async move {
            let text = credential.text.expose();
            let key = hash(text);
            self.remembered.get(key.clone(), || self.find(text, key)).await
        })
    }
}

fn bearer(value: &str) -> Option<&str> {
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

const fn cookie_name(tls: bool) -> &'static str {
    if tls { SECURE_SESSION_COOKIE } else { SESSION_COOKIE }
}

fn session_cookie<'a>(head: &'a Parts, cookie: &str) -> Option<&'a str> {
    // Pair by pair: what another program put into its own cookie, in whatever encoding, is not our concern.
    let lines = head.headers.get_all(header::COOKIE).into_iter().map(|line| line.as_bytes());
    lines
        .flat_map(|line| line.split(|byte| *byte == b';'))
        .filter_map(|pair| std::str::from_utf8(pair).ok()?.trim().split_once('='))
        .find(|(name, _)| *name == cookie)
        .map(|(_, value)| value)
}

/// A browser says where a request comes from; a change may only come from our own pages.
fn refuse_cross_site(head: &Parts) -> Result<()> {
    if matches!(head.method, Method::GET | Method::HEAD) {
        return Ok(());
    }
    let text = |name: &str| head.headers.get(name).and_then(|value| value.to_str().ok());
    let same_site = match (text("sec-fetch-site"), text("origin"), text("host")) {
        (Some(site), _, _) => site == "same-origin",
        (None, Some(origin), Some(host)) => origin.split_once("://").is_some_and(|(_, of)| of == host),
        _ => false,
    };
    if same_site { Ok(()) } else { Err(CROSS_SITE_REQUEST.error("the request does not come from this site")) }
}

/// What signing in gives: the session's token goes into a cookie and nowhere else.
#[derive(Serialize, Deserialize)]
pub(crate) struct SignedIn {
    pub session_id: SessionId,
    pub person_id: PersonId,
    pub expires_at: Timestamp,
}

impl Iam {
    /// Makes a one-time code for somebody. Called by the machine's owner, never over HTTP.
    pub(crate) async fn sign_in_link_create(&self, context: &Context, person: PersonId) -> Result<Secret> {
        let permit =
            authorize::<SignInLinkCreate>(&*self.decider, context, Resource::platform("sign_in_link"))?;
        let code = CredentialKind::SignInCode.make(&*self.entropy);
        let code_hash = hash(code.expose());
        let seconds = SIGN_IN_LINK_SECONDS.seconds(&self.settings);
        self.db
            .change(context, permit, async |tx| {
                let now = tx.now();
                let expires = now.checked_add(seconds).unwrap_or(now);
                tx.execute(store::SIGN_IN_LINK_INSERT, &[&code_hash, person.as_uuid(), &now, &expires])
                    .await?;
                let change = Change::new(SIGN_IN_LINK_ACTION, person, 1)
                    .event(&SignInLinkCreated { person_id: person });
                Ok(tx.record(change))
            })
            .await?;
        Ok(code)
    }

    /// Trades a one-time code for a session.
    pub(crate) async fn sign_in(&self, context: &Context, code: &str) -> Result<(SignedIn, Secret)> {
        let invalid = || SIGN_IN_LINK_INVALID.error("the code cannot be used");
        let code_hash = hash(code);
        let internal = self.db.internal("iam.sign_in");
        let row = internal.query_opt(store::SIGN_IN_LINK_FIND, &[&code_hash]).await?.ok_or_else(invalid)?;
        let person = PersonId::from_uuid(row.get(0));
        let mut context = context.clone();
        context.actor = Actor::new(ActorKind::User, person.to_string());
        let permit =
            authorize::<SessionCreate>(&*self.decider, &context, Resource::platform(SessionKind::NAME))?;
        let token = CredentialKind::Session.make(&*self.entropy);
        let token_hash = hash(token.expose());
        let seconds = SESSION_SECONDS.seconds(&self.settings);
        let signed_in = self
            .db
            .change(&context, permit, async |tx| {
                let now = tx.now();
                tx.query_opt(store::SIGN_IN_LINK_USE, &[&code_hash, &now]).await?.ok_or_else(invalid)?;
                let session: SessionId = tx.make_id();
                let expires_at = now.checked_add(seconds).unwrap_or(now);
                let params: db::Params<'_> =
                    &[session.as_uuid(), person.as_uuid(), &token_hash, &now, &expires_at];
                tx.execute(store::SESSION_INSERT, params).await?;
                let change = Change::new(SESSION_ACTION, session, 1)
                    .event(&SessionCreated { session_id: session, person_id: person });
                Ok(tx.record(change).with(SignedIn { session_id: session, person_id: person, expires_at }))
            })
            .await?;
        if context.trail.was_replayed() {
            let details = serde_json::json!({"person_id": signed_in.person_id});
            return Err(web::SECRET_ALREADY_DELIVERED
                .error("the session's cookie was given once")
                .with_details(details));
        }
        Ok((signed_in, token))
    }

    /// The cookie that carries a session.
    pub(crate) fn session_cookie(&self, token: &Secret) -> String {
        let seconds = self.settings.get(&SESSION_SECONDS);
        let (name, secure) =
            if self.tls { (SECURE_SESSION_COOKIE, "; Secure") } else { (SESSION_COOKIE, "") };
        format!("{name}={}; Path=/; HttpOnly; SameSite=Strict; Max-Age={seconds}{secure}", token.expose())
    }
}

const SIGN_IN_LINK_ACTION: &str = <SignInLinkCreate as authz::Action>::NAME;
const SESSION_ACTION: &str = <SessionCreate as authz::Action>::NAME;
