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
  const body = await reply.json();
  show("status", body.ready ? `ready (${body.roles.join(", ")})` : `not ready: ${body.problem}`, body.ready ? "good" : "bad");
}

async function who() {
  const reply = await fetch("/api/v1/session");
  if (!reply.ok) return show("who", "no", "soft");
  const session = await reply.json();
  show("who", `${session.kind ?? session.actor.kind} ${session.actor.id}`, "good");
  const list = await (await fetch("/api/v1/orgs")).json();
  const rows = list.items.map((organization) => {
    const row = document.createElement("tr");
    for (const text of [organization.name, organization.state, organization.id]) {
      const cell = document.createElement("td");
      cell.textContent = text;
      row.append(cell);
    }
    return row;
  });
  const table = document.createElement("table");
  table.append(...rows);
  document.getElementById("organizations").replaceChildren(table);
}

status().catch((error) => show("status", `not reachable: ${error}`, "bad"));
who().catch((error) => show("who", `unknown: ${error}`, "bad"));
