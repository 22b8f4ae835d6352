// Trades the one-time code after the '#' for a session. The code is taken out of the address bar first.
"use strict";

async function signIn() {
  const message = document.getElementById("message");
  const code = location.hash.slice(1);
  history.replaceState(null, "", "/sign-in");
  if (!code) {
    message.textContent = "This page needs the whole link that gpuaasd printed, with the part after the #.";
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
}

signIn().catch((error) => { document.getElementById("message").textContent = `Signing in failed: ${error}`; });
