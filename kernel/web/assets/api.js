// Renders /api/v1/openapi.json. No framework: this page must work from the first build on, before the console exists.
"use strict";

const el = (tag, attributes = {}, ...children) => {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
};
const json = (value) => el("pre", {}, el("code", {}, JSON.stringify(value, null, 2)));
// Texts of the document are Markdown; all of it that they use is `code`.
const prose = (text = "") => text.split("`").map((part, index) => (index % 2 ? el("code", {}, part) : part));
const refName = (schema) => schema?.$ref?.split("/").pop();
const typeName = (schema = {}) =>
  refName(schema) ?? (schema.type === "array" ? `${typeName(schema.items)}[]` : [schema.type ?? "any"].flat().join(" or "));

// The schema with what it refers to in place: a reader cannot follow a "$ref". One within itself is left as a name.
function resolved(schema, schemas, within = []) {
  if (Array.isArray(schema)) return schema.map((part) => resolved(part, schemas, within));
  if (schema === null || typeof schema !== "object") return schema;
  const name = refName(schema);
  if (name && within.includes(name)) return name;
  const { $ref, ...beside } = schema;
  const whole = name ? { ...schemas[name], ...beside } : schema;
  const inside = name ? [...within, name] : within;
  return Object.fromEntries(Object.entries(whole).map(([key, part]) => [key, resolved(part, schemas, inside)]));
}

function schemaBlock(schema, schemas) {
  const name = refName(schema);
  return el("div", {}, name ? el("p", { class: "soft" }, name) : null, json(resolved(schema, schemas)));
}

function parameterTable(parameters) {
  const rows = parameters.map((p) =>
    el("tr", {}, el("td", {}, el("code", {}, p.name)), el("td", { class: "soft" }, p.in + (p.required ? ", required" : "")),
      el("td", {}, typeName(p.schema)), el("td", {}, ...prose(p.description))));
  return el("table", {}, el("tbody", {}, ...rows));
}

function responseTable(responses) {
  const rows = Object.entries(responses).map(([status, response]) => {
    const codes = (response["x-gpuaas-codes"] ?? []).flatMap((code) => [el("a", { href: `/errors/${code}` }, code), " "]);
    return el("tr", {}, el("td", {}, el("code", {}, status)), el("td", {}, ...(codes.length ? codes : prose(response.description))));
  });
  return el("table", {}, el("tbody", {}, ...rows));
}

// A command that works once KEY and the ids in the path are set. Braces would mean something to curl, so ids are variables.
function curl(method, path, operation, body) {
  const success = Object.entries(operation.responses).find(([status]) => status.startsWith("2"))?.[1];
  const parts = [];
  if (success?.content?.["text/event-stream"]) parts.push("-N");
  if (method !== (body ? "post" : "get")) parts.push(`-X ${method.toUpperCase()}`);
  if (operation.security?.length !== 0) parts.push('-H "Authorization: Bearer $KEY"');
  if (body) parts.push("-H 'Content-Type: application/json'", `-d '${JSON.stringify(body.example ?? {}).replaceAll("'", "'\\''")}'`);
  parts.push(`"${location.origin}${path.replace(/\{(\w+)\}/g, (_, name) => `$${name.toUpperCase()}`)}"`);
  return `curl ${parts.join(" \\\n  ")}`;
}

function copyable(text) {
  const code = el("code", {}, text);
  const button = el("button", { type: "button", class: "copy" }, "Copy");
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
    } catch { // no permission, or a page that did not come over a secure connection
      getSelection().selectAllChildren(code);
      button.textContent = "Selected: copy it";
    }
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  });
  return el("div", { class: "copyable" }, el("pre", {}, code), button);
}

function operationBlock(method, path, operation, schemas) {
  const meta = (name) => operation[`x-gpuaas-${name}`];
  const body = operation.requestBody?.content?.["application/json"];
  const success = Object.entries(operation.responses).find(([status]) => status.startsWith("2"))?.[1];
  const reply = Object.values(success?.content ?? {})[0];
  const facts = [
    meta("permission") && ["Permission", meta("permission")], meta("audit-action") && ["Audited as", meta("audit-action")],
  ].filter(Boolean);
  return el("details", { id: meta("operation"), "data-sought": sought(method, path, operation) },
    el("summary", {}, el("span", { class: "verb" }, method.toUpperCase()), el("code", {}, path), el("span", { class: "soft" }, operation.summary)),
    el("div", {},
      el("p", {}, ...prose(operation.description)),
      el("table", {}, el("tbody", {}, ...facts.map(([k, v]) => el("tr", {}, el("td", { class: "soft" }, k), el("td", {}, el("code", {}, v)))))),
      el("h3", {}, "Try it"), copyable(curl(method, path, operation, body)),
      operation.parameters?.length ? el("h3", {}, "Parameters") : null, operation.parameters?.length ? parameterTable(operation.parameters) : null,
      body ? el("h3", {}, "Body") : null, body ? (body.example ? json(body.example) : null) : null, body ? schemaBlock(body.schema, schemas) : null,
      el("h3", {}, "Reply"), reply?.example ? json(reply.example) : null, reply?.schema ? schemaBlock(reply.schema.contentSchema ?? reply.schema, schemas) : null,
      el("h3", {}, "Statuses"), responseTable(operation.responses)));
}

// What the filter looks at: where an operation is, what it is called, and who may.
const sought = (method, path, operation) =>
  [`${method} ${path}`, operation["x-gpuaas-operation"], operation.summary, operation["x-gpuaas-permission"]].filter(Boolean).join("\n").toLowerCase();

function filter(root, wanted) {
  for (const block of root.querySelectorAll("details")) block.hidden = !block.dataset.sought.includes(wanted.toLowerCase());
  for (const group of root.querySelectorAll("section")) group.hidden = !group.querySelector("details:not([hidden])");
  const nothing = !root.querySelector("section:not([hidden])");
  document.getElementById("nothing").textContent = nothing ? `No operation has “${wanted}” in its path, name or permission.` : "";
}

async function main() {
  const root = document.getElementById("operations");
  const response = await fetch("/api/v1/openapi.json");
  const document_ = await response.json();
  const groups = new Map(document_.tags.map((tag) => [tag.name, el("section", {}, el("h2", {}, tag.name), el("p", { class: "soft" }, ...prose(tag.description)))]));
  for (const [path, methods] of Object.entries(document_.paths))
    for (const [method, operation] of Object.entries(methods))
      groups.get(operation.tags[0])?.append(operationBlock(method, path, operation, document_.components.schemas));
  root.replaceChildren(...groups.values());
  if (location.hash) document.getElementById(decodeURIComponent(location.hash.slice(1)))?.setAttribute("open", "");
  const input = document.getElementById("filter");
  input.addEventListener("input", () => filter(root, input.value.trim()));
  filter(root, input.value.trim()); // a browser may keep what was typed before a reload
}

main().catch((error) => { document.getElementById("operations").replaceChildren(el("p", { class: "bad" }, `The document could not be read: ${error}`)); });
