// Renders /api/v1/openapi.json. No framework: this page must work from the first build on, before the console exists.
"use strict";

const el = (tag, attributes = {}, ...children) => {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
};
const json = (value) => el("pre", {}, el("code", {}, JSON.stringify(value, null, 2)));
const refName = (schema) => schema?.$ref?.split("/").pop();
const typeName = (schema = {}) =>
  refName(schema) ?? (schema.type === "array" ? `${typeName(schema.items)}[]` : [schema.type ?? "any"].flat().join(" or "));

function schemaBlock(schema, schemas) {
  const name = refName(schema);
  const body = name ? schemas[name] : schema;
  return el("div", {}, name ? el("p", { class: "soft" }, name) : null, json(body));
}

function parameterTable(parameters) {
  const rows = parameters.map((p) =>
    el("tr", {}, el("td", {}, el("code", {}, p.name)), el("td", { class: "soft" }, p.in + (p.required ? ", required" : "")),
      el("td", {}, typeName(p.schema)), el("td", {}, p.description ?? "")));
  return el("table", {}, el("tbody", {}, ...rows));
}

function responseTable(responses) {
  const rows = Object.entries(responses).map(([status, response]) => {
    const codes = (response["x-gpuaas-codes"] ?? []).flatMap((code) => [el("a", { href: `/errors/${code}` }, code), " "]);
    return el("tr", {}, el("td", {}, el("code", {}, status)), el("td", {}, codes.length ? el("span", {}, ...codes) : response.description));
  });
  return el("table", {}, el("tbody", {}, ...rows));
}

function operationBlock(method, path, operation, schemas) {
  const meta = (name) => operation[`x-gpuaas-${name}`];
  const body = operation.requestBody?.content?.["application/json"];
  const success = Object.entries(operation.responses).find(([status]) => status.startsWith("2"))?.[1];
  const reply = Object.values(success?.content ?? {})[0];
  const facts = [
    meta("permission") && ["Permission", meta("permission")], meta("audit-action") && ["Audited as", meta("audit-action")],
    meta("cli") && ["Command", `gpuaas ${meta("cli")}`], ["Agents", meta("mcp") ? "offered as a tool" : "not offered"],
  ].filter(Boolean);
  return el("details", { id: meta("operation"), "data-sought": sought(method, path, operation) },
    el("summary", {}, el("span", { class: "verb" }, method.toUpperCase()), el("code", {}, path), el("span", { class: "soft" }, operation.summary)),
    el("div", {},
      el("p", {}, operation.description ?? ""),
      el("table", {}, el("tbody", {}, ...facts.map(([k, v]) => el("tr", {}, el("td", { class: "soft" }, k), el("td", {}, el("code", {}, v)))))),
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
  const groups = new Map(document_.tags.map((tag) => [tag.name, el("section", {}, el("h2", {}, tag.name), el("p", { class: "soft" }, tag.description))]));
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
