//! A real OpenID provider (npm `oidc-provider`), and a browser that signs in there.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use http::{Method, header};
use serde_json::{Value, json};

use crate::child::Child;
use crate::eventually::eventually_some;
use crate::http_client::{HttpClient, Reply};
use crate::scratch::Scratch;

pub struct OidcProvider {
    /// As it calls itself.
    pub issuer: String,
    client: HttpClient,
    child: Child,
    _scratch: Scratch,
}

impl OidcProvider {
    /// `clients`: their metadata, as in a dynamic registration, in an array.
    pub async fn start(clients: &Value) -> Self {
        let scratch = Scratch::new("oidc");
        let (script, packages) = (tools("tools/oidc-provider/provider.mjs"), tools(".tools/oidc-provider"));
        assert!(
            packages.exists(),
            "there is no OpenID provider at {}: run `tools/install oidc-provider` (it needs Node 20)",
            packages.display()
        );
        let arguments = [&script, &packages].map(|path| path.to_str().expect("a path of ours"));
        let environment = [("OP_CLIENTS", clients.to_string())];
        let environment = environment.each_ref().map(|(name, value)| (*name, value.as_str()));
        let child =
            Child::spawn(Path::new("node"), &arguments, &environment, &scratch.path().join("provider.log"));
        let issuer = eventually_some("the OpenID provider is ready", async || {
            assert!(!child.has_ended(), "the OpenID provider ended:\n{}", child.said());
            let said = child.said();
            let ready = said.lines().find_map(|line| serde_json::from_str::<Value>(line).ok())?;
            ready["issuer"].as_str().map(str::to_owned)
        })
        .await;
        Self { client: HttpClient::new(&issuer), issuer, child, _scratch: scratch }
    }

    /// Changes how it behaves; see the script's header.
    pub async fn control(&self, change: &Value) -> Value {
        self.client.post("/__control", change).await.expect(200).json()
    }

    /// What it has said so far, for the message of a failing test.
    pub fn said(&self) -> String {
        self.child.said()
    }

    /// A browser that has never been here.
    pub fn browser(&self) -> Browser {
        Browser { issuer: self.issuer.clone(), client: self.client.clone(), cookies: BTreeMap::new() }
    }
}

fn tools(path: &str) -> PathBuf {
    // kernel/testkit lies two below the root.
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

/// Keeps the provider's cookies and follows its redirects, until one leads away from it.
pub struct Browser {
    issuer: String,
    client: HttpClient,
    cookies: BTreeMap<String, String>,
}

/// Where a visit ended.
#[derive(Debug)]
pub struct Visit {
    /// The address outside the provider that it was sent to.
    pub address: String,
    /// What the provider asked the person on the way: none if it knew them already.
    pub asked: Vec<Value>,
}

impl Browser {
    /// Goes to an address of the provider. `answer` is what the person says when asked: `{"login": {"accountId": …}}`.
    pub async fn visit(&mut self, url: &str, answer: &Value) -> Visit {
        let mut asked = Vec::new();
        let mut reply = self.send(Method::GET, url, None).await;
        loop {
            let address = location(&reply);
            if !self.is_here(&address) {
                return Visit { address, asked };
            }
            reply = if address.contains("/interaction/") {
                asked.push(self.send(Method::GET, &address, None).await.expect(200).json());
                self.send(Method::POST, &address, Some(answer)).await
            } else {
                self.send(Method::GET, &address, None).await
            };
        }
    }

    /// Signs in as somebody, with a password and nothing more.
    pub async fn sign_in(&mut self, url: &str, person: &str) -> Visit {
        let login = json!({"accountId": person, "acr": "urn:gpuaas:basic", "amr": ["pwd"]});
        self.visit(url, &json!({"login": login})).await
    }

    /// Goes to the provider's page for signing out, and says yes. Returns where it was sent.
    pub async fn sign_out(&mut self, url: &str) -> String {
        let page = self.send(Method::GET, url, None).await.expect(200).text();
        let between = |before: &str| {
            let rest = page.split_once(before).unwrap_or_else(|| panic!("no {before} in {page}")).1;
            rest.split('"').next().unwrap_or_default().to_owned()
        };
        let (action, xsrf) = (between("action=\""), between("name=\"xsrf\" value=\""));
        let cookies = self.cookie_line();
        let form = format!("xsrf={xsrf}&logout=yes");
        let reply = self.client.post_form(self.path(&action), &[("cookie", &cookies)], &form).await;
        self.keep_cookies(&reply);
        location(&reply)
    }

    async fn send(&mut self, method: Method, url: &str, body: Option<&Value>) -> Reply {
        let cookies = self.cookie_line();
        let reply = self.client.send(method, self.path(url), &[("cookie", &cookies)], body).await;
        let reply = reply.expect("an answer");
        self.keep_cookies(&reply);
        reply
    }

    fn is_here(&self, address: &str) -> bool {
        address.starts_with('/') || address.starts_with(&self.issuer)
    }

    fn path<'a>(&self, address: &'a str) -> &'a str {
        address.strip_prefix(&self.issuer).unwrap_or(address)
    }

    fn cookie_line(&self) -> String {
        let pairs: Vec<_> = self.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
        pairs.join("; ")
    }

    fn keep_cookies(&mut self, reply: &Reply) {
        for line in reply.headers.get_all(header::SET_COOKIE) {
            let line = line.to_str().expect("a cookie is text");
            let pair = line.split(';').next().unwrap_or_default();
            let (name, value) = pair.split_once('=').expect("a cookie has a name");
            if value.is_empty() {
                self.cookies.remove(name);
            } else {
                self.cookies.insert(name.to_owned(), value.to_owned());
            }
        }
    }
}

fn location(reply: &Reply) -> String {
    let location = reply.headers.get(header::LOCATION).and_then(|value| value.to_str().ok());
    location.unwrap_or_else(|| panic!("a redirect, not {}: {}", reply.status, reply.text())).to_owned()
}
