// The landing page: is it up, who am I, what is there. The console replaces it.
"use strict";

const show = (id, text, kind) => {
  const cell = document.getElementById(id);
  cell.textContent = text;
  cell.className = kind;
};

async function status() {
  const reply = await fetch("/internal/readyz");
  if (reply.status === 404) return show("status", "answering (health is on the internal address)", "good");
  document.getElementById("internal").hidden = false;
  const body = await reply.json();
  show("status", body.ready ? `ready (${body.roles.join(", ")})` : `not ready: ${body.problem}`, body.ready ? "good" : "bad");
}

async function who() {
  const reply = await fetch("/api/v1/session");
  if (!reply.ok) return show("who", "no", "soft");
  const session = await reply.json();
  const until = session.expires_at ? `, until ${new Date(session.expires_at).toLocaleString()}` : "";
  show("who", `${session.actor.kind} ${session.actor.id}${until}`, "good");
  await organizations();
}

function row(tag, texts) {
  const cells = texts.map((text) => Object.assign(document.createElement(tag), { textContent: text }));
  const line = document.createElement("tr");
  line.append(...cells);
  return line;
}

// One page of them at a time, as many as the reader asks for.
async function organizations() {
  const place = document.getElementById("organizations");
  const [table, head, body] = ["table", "thead", "tbody"].map((tag) => document.createElement(tag));
  const more = Object.assign(document.createElement("button"), { type: "button", textContent: "More" });
  const said = Object.assign(document.createElement("p"), { className: "bad" });
  said.setAttribute("role", "status");
  head.append(row("th", ["Name", "State", "Id"]));
  table.append(head, body);
  let cursor = null;
  const next = async () => {
    more.disabled = true;
    const reply = await fetch(`/api/v1/orgs${cursor ? `?cursor=${encodeURIComponent(cursor)}` : ""}`);
    const page = await reply.json();
    more.disabled = false;
    said.textContent = reply.ok ? "" : `${page.detail}. ${page.remedy}`;
    if (!reply.ok) return;
    body.append(...page.items.map((organization) => row("td", [organization.name, organization.state, organization.id])));
    cursor = page.next_cursor;
    more.hidden = !cursor;
  };
  const failed = (error) => { more.disabled = false; said.textContent = `They could not be read: ${error}`; };
  more.addEventListener("click", () => next().catch(failed));
  place.replaceChildren(table, said, more);
  await next().catch(failed);
}

status().catch((error) => show("status", `not reachable: ${error}`, "bad"));
who().catch((error) => show("who", `unknown: ${error}`, "bad"));
