//! One `gpuaasd up` for all tests that do not need one of their own.

use std::sync::OnceLock;

use serde_json::{Value, json};
use testkit::{Gpuaasd, HttpClient, Scratch};

struct Shared {
    gpuaasd: Gpuaasd,
    _directory: Scratch,
}

/// Starts on first use; dies with the test process.
pub fn gpuaasd() -> &'static Gpuaasd {
    static SHARED: OnceLock<Shared> = OnceLock::new();
    let start = || {
        std::thread::spawn(|| {
            let runtime = tokio::runtime::Runtime::new().unwrap();
            let directory = Scratch::new("server-shared");
            let flags = ["--backstop", "--setting", "web.guesses_per_minute=1000"];
            let gpuaasd = runtime.block_on(Gpuaasd::up_with(directory.path(), &flags));
            // The child's keeper lives on this runtime.
            std::mem::forget(runtime);
            Shared { gpuaasd, _directory: directory }
        })
        .join()
        .unwrap()
    };
    &SHARED.get_or_init(start).gpuaasd
}

/// A name no other test uses.
pub fn unique(name: &str) -> String {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("{name} {}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// A new organization, as its JSON.
pub async fn organization(operator: &HttpClient, name: &str) -> Value {
    operator.post("/api/v1/orgs", &json!({"name": unique(name)})).await.expect(201).json()
}

/// The id in a reply.
pub fn id(value: &Value) -> &str {
    value["id"].as_str().unwrap()
}
