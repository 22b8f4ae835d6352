// Trades the one-time code after the '#' for a session. The code is taken out of the address bar first.
"use strict";

async function signIn() {
  const message = document.getElementById("message");
  const code = location.hash.slice(1);
  history.replaceState(null, "", "/sign-in");
  if (!code) {
    message.textContent = "This page needs the whole link that `gpuaasd operator sign-in-link` printed, with the part after the #.";
    return;
  }
  const reply = await fetch("/api/v1/sessions", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ code }),
  });
  if (reply.ok) {
    location.replace("/");
    return;
  }
  const problem = await reply.json();
  message.textContent = `${problem.detail}. ${problem.remedy}`;
  message.className = "bad";
  // Whoever opens a used link again is often signed in by it.
  const start = Object.assign(document.createElement("a"), { href: "/", textContent: "the start page" });
  const hint = document.createElement("p");
  hint.append("This browser may be signed in already: see ", start, ".");
  message.after(hint);
}

signIn().catch((error) => { document.getElementById("message").textContent = `Signing in failed: ${error}`; });
