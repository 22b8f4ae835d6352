//! One identity provider, as its relying party: OpenID Connect's authorization code flow with PKCE, nonce and state.
//!
//! ```text
//! begin ──► the browser goes to the provider ──► comes back with code and state ──► finish
//!   │ Attempt: kept by the caller, sealed, for minutes, tied to that browser, used once     │
//!   └───────────────────────────────────────────────────────────────────────────────────────┘
//! ```
//!
//! What the caller must do, because it has the database: find the attempt by its state, use it once, and see that the browser
//! is the one it was begun in. What is done here: everything that can be judged from attempt and answer alone.
//!
//! Refresh tokens are neither asked for nor kept: a session is ours once it began, and ends by our rules.

use std::sync::Arc;
use std::time::Duration;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::digest::{self, SHA256, SHA384, SHA512, digest};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use db::Settings;
use serde_json::{Map, Value};
use tokio::sync::Mutex;
use types::{Clock, Entropy, Error, Result, Secret, Timestamp};

use crate::assurance::{Assurance, StrongRule};
use crate::claims::{ClaimPath, Profile, groups};
use crate::discovery::{Metadata, discover, document};
use crate::jose::{Claims, Expected, Refusal, TokenKind, verify};
use crate::keys::{Algorithm, KeySet};
use crate::model::{PROVIDER_MISCONFIGURED, PROVIDER_UNREACHABLE, SIGN_IN_REJECTED};
use crate::outgoing::{Outgoing, Trust};
use crate::settings::*;
use crate::strict;

/// How we prove to the provider who we are.
#[derive(Debug, Clone)]
pub enum ClientAuth {
    Basic(Secret),
    Post(Secret),
    /// A client without a secret: PKCE alone.
    Public,
}

/// What is configured about a provider.
#[derive(Debug, Clone)]
pub struct ProviderConfig {
    /// Exactly as the provider writes it.
    pub issuer: String,
    pub trust: Trust,
    pub client_id: String,
    pub client_auth: ClientAuth,
    /// The page of ours the browser comes back to.
    pub redirect_uri: String,
    /// Beside `openid`.
    pub scopes: Vec<String>,
    pub groups: Option<ClaimPath>,
    pub strong: StrongRule,
}

/// What a provider needs of the process it lives in.
#[derive(Clone)]
pub struct Surroundings {
    pub outgoing: Outgoing,
    pub clock: Arc<dyn Clock>,
    pub entropy: Arc<dyn Entropy>,
    pub settings: Settings,
}

pub struct Provider {
    pub(crate) config: ProviderConfig,
    pub(crate) surroundings: Surroundings,
    /// Held while the provider is asked, so that a hundred people who sign in at once ask once.
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    metadata: Option<(Timestamp, Arc<Metadata>)>,
    keys: Option<(Timestamp, Arc<KeySet>)>,
    /// When an unknown key id last made us look again.
    looked_again: Option<Timestamp>,
}

/// What is wished of one sign-in. A provider may ignore all of it.
#[derive(Debug, Clone, Default)]
pub struct Wish {
    pub acr_values: Vec<String>,
    /// A demand: an answer that does not meet it is refused.
    pub max_age: Option<Duration>,
    pub prompt: Option<Prompt>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prompt {
    None,
    Login,
    SelectAccount,
}

/// A sign-in under way. Whoever has it and the provider's answer can finish it.
#[derive(Debug, Clone)]
pub struct Attempt {
    pub state: Secret,
    pub nonce: Secret,
    pub verifier: Secret,
    pub max_age: Option<Duration>,
}

/// What the browser brought back.
#[derive(Debug, Clone, Copy, Default)]
pub struct Callback<'a> {
    pub state: &'a str,
    pub issuer: Option<&'a str>,
    pub code: Option<&'a str>,
    pub error: Option<&'a str>,
}

/// Who signed in, as far as the provider vouches for it.
#[derive(Debug)]
pub struct SignedIn {
    pub issuer: String,
    /// With the issuer, what tells people apart.
    pub subject: String,
    /// The provider's own session, which its back-channel logout names.
    pub provider_session: Option<String>,
    pub assurance: Assurance,
    /// `None` if the provider says nothing about groups.
    pub groups: Option<Vec<String>>,
    pub profile: Profile,
    /// For signing out at the provider.
    pub id_token: Secret,
}

impl Provider {
    pub fn new(config: ProviderConfig, surroundings: Surroundings) -> Self {
        Self { config, surroundings, known: Mutex::default() }
    }

    /// Begins a sign-in: the address to send the browser to, and what is needed when it comes back.
    pub async fn begin(&self, wish: &Wish) -> Result<(String, Attempt)> {
        let metadata = self.metadata().await?;
        let attempt = Attempt {
            state: self.random(),
            nonce: self.random(),
            verifier: self.random(),
            max_age: wish.max_age,
        };
        let challenge = URL_SAFE_NO_PAD.encode(digest(&SHA256, attempt.verifier.expose().as_bytes()));
        let scope = std::iter::once("openid").chain(self.config.scopes.iter().map(String::as_str));
        let mut url = metadata.authorization.clone();
        {
            let mut query = url.query_pairs_mut();
            query
                .append_pair("response_type", "code")
                .append_pair("client_id", &self.config.client_id)
                .append_pair("redirect_uri", &self.config.redirect_uri)
                .append_pair("scope", &scope.collect::<Vec<_>>().join(" "))
                .append_pair("state", attempt.state.expose())
                .append_pair("nonce", attempt.nonce.expose())
                .append_pair("code_challenge", &challenge)
                .append_pair("code_challenge_method", "S256");
            if metadata.fragment {
                query.append_pair("response_mode", "fragment");
            }
            if !wish.acr_values.is_empty() {
                query.append_pair("acr_values", &wish.acr_values.join(" "));
            }
            if let Some(age) = wish.max_age {
                query.append_pair("max_age", &age.as_secs().to_string());
            }
            if let Some(prompt) = wish.prompt {
                query.append_pair("prompt", prompt.name());
            }
        }
        Ok((url.into(), attempt))
    }

    /// Finishes a sign-in. The attempt must be used up by the caller, whatever comes of this.
    pub async fn finish(&self, attempt: &Attempt, callback: &Callback<'_>) -> Result<SignedIn> {
        if !same(attempt.state.expose(), callback.state) {
            return Err(SIGN_IN_REJECTED.error("the answer belongs to another sign-in"));
        }
        let metadata = self.metadata().await?;
        // Mix-up: another provider's answer, sent to us as this one's (RFC 9207).
        match callback.issuer {
            Some(issuer) if issuer == self.config.issuer => {}
            None if !metadata.names_itself => {}
            _ => return Err(SIGN_IN_REJECTED.error("the answer comes from another provider")),
        }
        if let Some(error) = callback.error {
            return Err(refused_by_provider(error));
        }
        let code = callback.code.ok_or_else(|| SIGN_IN_REJECTED.error("the answer holds no code"))?;
        let tokens = self.exchange(&metadata, code, &attempt.verifier).await?;
        self.accept(&metadata, attempt, tokens).await
    }

    async fn accept(&self, metadata: &Metadata, attempt: &Attempt, tokens: Tokens) -> Result<SignedIn> {
        let claims = self.verified(tokens.id_token.expose(), TokenKind::Id).await?;
        let rejected = |refusal: Refusal| id_token_refused(refusal);
        let nonce =
            claims.text("nonce").map_err(rejected)?.ok_or_else(|| rejected(Refusal::Missing("nonce")))?;
        if !same(nonce, attempt.nonce.expose()) {
            return Err(SIGN_IN_REJECTED.error("the id token belongs to another sign-in"));
        }
        check_access_token(&claims, tokens.access_token.as_ref())?;
        let assurance = Assurance::judge(&claims, &self.config.strong).map_err(rejected)?;
        let (now, skew) = (self.now(), self.skew());
        if attempt.max_age.is_some_and(|age| !assurance.is_fresh(age, now, skew)) {
            return Err(
                SIGN_IN_REJECTED.error("the provider let an older login stand, and a fresh one was demanded")
            );
        }
        let subject = claims.text("sub").map_err(rejected)?.unwrap_or_default().to_owned();
        let provider_session = claims.text("sid").map_err(rejected)?.map(str::to_owned);
        let mut groups = self.groups(claims.map())?;
        if groups.is_none() && self.config.groups.is_some() {
            groups = self.groups_from_userinfo(metadata, &subject, tokens.access_token.as_ref()).await?;
        }
        let profile = Profile::read(claims.map());
        let (issuer, id_token) = (self.config.issuer.clone(), tokens.id_token);
        Ok(SignedIn { issuer, subject, provider_session, assurance, groups, profile, id_token })
    }

    /// A token of the provider's, checked with its keys. One that names a key we do not know makes us look again, seldom.
    pub(crate) async fn verified(&self, token: &str, kind: TokenKind) -> Result<Claims> {
        let settings = &self.surroundings.settings;
        let lifetime = LOGOUT_TOKEN_SECONDS_MAX.seconds(settings);
        let expected = Expected {
            kind,
            issuer: &self.config.issuer,
            audience: &self.config.client_id,
            now: self.now(),
            skew: self.skew(),
            bytes_max: size(settings.get(&TOKEN_BYTES_MAX)),
            lifetime_max: (kind == TokenKind::Logout).then_some(lifetime),
        };
        let keys = self.keys().await?;
        let mut outcome = verify(token, &keys, &expected);
        if outcome == Err(Refusal::UnknownKey)
            && let Some(keys) = self.keys_again().await?
        {
            outcome = verify(token, &keys, &expected);
        }
        outcome.map_err(|refusal| match kind {
            TokenKind::Logout => SIGN_IN_REJECTED.error(format!("the logout token was refused: {refusal}")),
            _ => id_token_refused(refusal),
        })
    }

    async fn exchange(&self, metadata: &Metadata, code: &str, verifier: &Secret) -> Result<Tokens> {
        let config = &self.config;
        let mut form = form_urlencoded::Serializer::new(String::new());
        form.append_pair("grant_type", "authorization_code")
            .append_pair("code", code)
            .append_pair("redirect_uri", &config.redirect_uri)
            .append_pair("code_verifier", verifier.expose());
        let authorization = match &config.client_auth {
            ClientAuth::Basic(secret) => Some(basic(&config.client_id, secret)),
            ClientAuth::Post(secret) => {
                form.append_pair("client_id", &config.client_id)
                    .append_pair("client_secret", secret.expose());
                None
            }
            ClientAuth::Public => {
                form.append_pair("client_id", &config.client_id);
                None
            }
        };
        let form = Secret::new(form.finish());
        let outgoing = &self.surroundings.outgoing;
        let answer = outgoing.post(&metadata.token, config.trust, form, authorization).await?;
        let unreadable =
            || PROVIDER_MISCONFIGURED.error("the provider's answer to a code is not a JSON object");
        let body = strict::object(&answer.body).map_err(|_| unreadable())?;
        let text = |name: &str| body.get(name).and_then(Value::as_str);
        if !answer.is_success() {
            return Err(exchange_refused(text("error")));
        }
        let id_token = text("id_token").ok_or_else(|| {
            PROVIDER_MISCONFIGURED.error("the provider answered a code without an id token")
        })?;
        let access_token = text("access_token").map(|token| Secret::new(token.to_owned()));
        Ok(Tokens { id_token: Secret::new(id_token.to_owned()), access_token })
    }

    fn groups(&self, claims: &Map<String, Value>) -> Result<Option<Vec<String>>> {
        let Some(path) = &self.config.groups else { return Ok(None) };
        let groups_max = size(self.surroundings.settings.get(&GROUPS_MAX));
        groups(claims, path, groups_max).map_err(|fault| PROVIDER_MISCONFIGURED.error(fault.to_string()))
    }

    /// Some providers keep groups out of the id token. What userinfo says counts only if it is about the same person.
    async fn groups_from_userinfo(
        &self,
        metadata: &Metadata,
        subject: &str,
        access_token: Option<&Secret>,
    ) -> Result<Option<Vec<String>>> {
        let (Some(url), Some(token)) = (&metadata.userinfo, access_token) else { return Ok(None) };
        let answer = self.surroundings.outgoing.get(url, self.config.trust, Some(token)).await?;
        let unreadable = || PROVIDER_MISCONFIGURED.error("the provider's userinfo is not a JSON object");
        if !answer.is_success() {
            return Err(unreadable());
        }
        let claims = strict::object(&answer.body).map_err(|_| unreadable())?;
        if claims.get("sub").and_then(Value::as_str) != Some(subject) {
            return Err(SIGN_IN_REJECTED.error("the provider's userinfo is about somebody else"));
        }
        self.groups(&claims)
    }

    pub(crate) async fn metadata(&self) -> Result<Arc<Metadata>> {
        self.in_time(async {
            let mut known = self.known.lock().await;
            self.metadata_in(&mut known).await
        })
        .await
    }

    async fn keys(&self) -> Result<Arc<KeySet>> {
        self.in_time(async {
            let mut known = self.known.lock().await;
            let seconds = JWKS_SECONDS.seconds(&self.surroundings.settings);
            match &known.keys {
                Some((at, keys)) if self.is_recent(*at, seconds) => Ok(Arc::clone(keys)),
                _ => self.fetch_keys(&mut known).await,
            }
        })
        .await
    }

    /// The keys anew, or nothing if somebody made us look a moment ago: anybody can send a token with an unknown key id.
    async fn keys_again(&self) -> Result<Option<Arc<KeySet>>> {
        self.in_time(async {
            let mut known = self.known.lock().await;
            let seconds = JWKS_REFETCH_SECONDS.seconds(&self.surroundings.settings);
            if known.looked_again.is_some_and(|at| self.is_recent(at, seconds)) {
                return Ok(None);
            }
            known.looked_again = Some(self.now());
            self.fetch_keys(&mut known).await.map(Some)
        })
        .await
    }

    async fn metadata_in(&self, known: &mut Known) -> Result<Arc<Metadata>> {
        let seconds = DISCOVERY_SECONDS.seconds(&self.surroundings.settings);
        if let Some((at, metadata)) = &known.metadata
            && self.is_recent(*at, seconds)
        {
            return Ok(Arc::clone(metadata));
        }
        let config = &self.config;
        let found = Arc::new(discover(&self.surroundings.outgoing, &config.issuer, config.trust).await?);
        known.metadata = Some((self.now(), Arc::clone(&found)));
        Ok(found)
    }

    async fn fetch_keys(&self, known: &mut Known) -> Result<Arc<KeySet>> {
        let metadata = self.metadata_in(known).await?;
        let Surroundings { outgoing, settings, .. } = &self.surroundings;
        let published = document(outgoing, &metadata.jwks, self.config.trust, "set of keys").await?;
        let keys = KeySet::from_jwks(&published, size(settings.get(&JWKS_KEYS_MAX)))
            .filter(|keys| !keys.is_empty())
            .ok_or_else(|| PROVIDER_MISCONFIGURED.error("the provider publishes no keys that we can use"))?;
        let keys = Arc::new(keys);
        known.keys = Some((self.now(), Arc::clone(&keys)));
        Ok(keys)
    }

    /// Waiting for whoever is asking already counts, too: nobody stands in line behind a dead provider. Discovery and keys
    /// are two questions, so twice the time of one.
    async fn in_time<T>(&self, work: impl Future<Output = Result<T>>) -> Result<T> {
        let limit = self.surroundings.outgoing.timeout() * 2;
        match tokio::time::timeout(limit, work).await {
            Ok(outcome) => outcome,
            Err(_) => Err(PROVIDER_UNREACHABLE.error("the provider did not answer in time")),
        }
    }

    /// A clock that was set back makes everything look new for too long; better to ask once more.
    fn is_recent(&self, at: Timestamp, within: Duration) -> bool {
        let now = self.now();
        at <= now && now.saturating_sub(within).unwrap_or(Timestamp::MIN) < at
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.surroundings.clock.now()
    }

    fn skew(&self) -> Duration {
        CLOCK_SKEW_SECONDS.seconds(&self.surroundings.settings)
    }

    /// 256 bits: 43 characters, which is also the least a PKCE verifier may have.
    fn random(&self) -> Secret {
        let mut bytes = [0u8; 32];
        self.surroundings.entropy.fill(&mut bytes);
        Secret::new(URL_SAFE_NO_PAD.encode(bytes))
    }
}

impl Prompt {
    const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Login => "login",
            Self::SelectAccount => "select_account",
        }
    }
}

struct Tokens {
    id_token: Secret,
    access_token: Option<Secret>,
}

fn same(one: &str, other: &str) -> bool {
    verify_slices_are_equal(one.as_bytes(), other.as_bytes()).is_ok()
}

fn size(setting: u64) -> usize {
    usize::try_from(setting).unwrap_or(usize::MAX)
}

/// RFC 6749, 2.3.1: both halves are form-encoded before they are joined, so that a colon in one is none between them.
fn basic(client_id: &str, secret: &Secret) -> Secret {
    let encode = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
    let pair = Secret::new(format!("{}:{}", encode(client_id), encode(secret.expose())));
    Secret::new(format!("Basic {}", STANDARD.encode(pair.expose())))
}

/// `at_hash` ties the access token to the id token; providers need not send it, but if they do it must be right.
fn check_access_token(claims: &Claims, access_token: Option<&Secret>) -> Result<()> {
    let Some(hash) = claims.text("at_hash").map_err(id_token_refused)? else { return Ok(()) };
    let algorithm: &'static digest::Algorithm = match claims.algorithm() {
        Algorithm::Rs256 | Algorithm::Ps256 | Algorithm::Es256 => &SHA256,
        Algorithm::Es384 => &SHA384,
        Algorithm::EdDsa => &SHA512,
    };
    let fits = access_token.is_some_and(|token| {
        let whole = digest(algorithm, token.expose().as_bytes());
        let half = &whole.as_ref()[..algorithm.output_len() / 2];
        same(hash, &URL_SAFE_NO_PAD.encode(half))
    });
    if fits { Ok(()) } else { Err(SIGN_IN_REJECTED.error("the access token is not the id token's own")) }
}

pub(crate) fn id_token_refused(refusal: Refusal) -> Error {
    SIGN_IN_REJECTED.error(format!("the id token was refused: {refusal}"))
}

/// The provider sent the browser back with an error. Only errors we know are repeated: the text came through the browser.
fn refused_by_provider(error: &str) -> Error {
    match error {
        "access_denied" => SIGN_IN_REJECTED.error("the provider did not let you in"),
        "login_required" | "interaction_required" | "consent_required" | "account_selection_required" => {
            SIGN_IN_REJECTED.error("the provider needs you to sign in there")
        }
        "unmet_authentication_requirements" => {
            SIGN_IN_REJECTED.error("the provider could not offer a login as strong as was asked for")
        }
        "server_error" | "temporarily_unavailable" => {
            PROVIDER_UNREACHABLE.error("the provider says that it cannot answer now")
        }
        "unauthorized_client" => {
            PROVIDER_MISCONFIGURED.error("the provider does not let our client sign people in")
        }
        "invalid_scope" => PROVIDER_MISCONFIGURED.error("the provider does not know a scope we ask for"),
        "invalid_request" | "unsupported_response_type" | "request_not_supported" => {
            PROVIDER_MISCONFIGURED.error("the provider does not understand our request")
        }
        _ => SIGN_IN_REJECTED.error("the provider answered with an error"),
    }
}

/// The provider refused the code.
fn exchange_refused(error: Option<&str>) -> Error {
    match error {
        Some("invalid_grant") => SIGN_IN_REJECTED
            .error("the provider does not accept the code: it was used, expired or is not ours"),
        Some("invalid_client" | "unauthorized_client") => {
            PROVIDER_MISCONFIGURED.error("the provider does not accept our client id and secret")
        }
        _ => PROVIDER_MISCONFIGURED.error("the provider refuses to exchange a code"),
    }
}
