//! The OpenAPI 3.1 document, made from the registry and nothing else.
//!
//! Inputs are described as they are read and outputs as they are written; a type used for both under one name must
//! look the same either way, or the document would lie about one of them (`merge_schemas` refuses it).

use std::collections::BTreeMap;

use axum::http::{Method, StatusCode};
use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};
use types::ErrorCode;

use crate::operation::{Endpoint, Kind, OperationInfo};
use crate::problem::{self, Problem};
use crate::{input, limits};

/// The document. `tags` names each group of operations and says what it is about.
pub fn document(endpoints: &[Endpoint], tags: &[(&str, &str)], version: &str) -> Result<Value, String> {
    let settings =
        || SchemaSettings::draft2020_12().with(|s| s.definitions_path = "/components/schemas".into());
    let mut read = settings().into_generator();
    let mut write = settings().for_serialize().into_generator();
    let mut paths: BTreeMap<&str, Map<String, Value>> = BTreeMap::new();
    for endpoint in endpoints {
        let operation = operation(&endpoint.info, &mut read, &mut write);
        paths
            .entry(endpoint.info.path)
            .or_default()
            .insert(endpoint.info.method.as_str().to_lowercase(), operation);
    }
    let problem = write.subschema_for::<Problem>();
    debug_assert!(problem.get("$ref").is_some());
    let schemas = merge_schemas(read.take_definitions(true), write.take_definitions(true))?;
    Ok(json!({
        "openapi": "3.1.0",
        "info": {
            "title": "GPUaaS API",
            "version": version,
            "description": "GPUs in seconds: one identity and one audit log under all of it.\n\nEvery error is `application/problem+json` with a catalogued `code`; each code has a page at `/errors/{code}`. `x-gpuaas-*` on an operation tells the permission it needs, the audit action it records, and where else it is offered.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/", "description": "The server this document came from."}],
        "tags": tags.iter().map(|(name, about)| json!({"name": name, "description": about})).collect::<Vec<_>>(),
        "paths": paths,
        "components": {
            "schemas": schemas,
            "headers": headers(),
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer", "description": "An API key."},
                "session": {"type": "apiKey", "in": "cookie", "name": "gpuaas_session", "description": "A browser session."},
            },
        },
    }))
}

fn operation(info: &OperationInfo, read: &mut SchemaGenerator, write: &mut SchemaGenerator) -> Value {
    let mut parameters = parameters("path", (info.path_schema)(read));
    parameters.extend(self::parameters("query", (info.query_schema)(read)));
    parameters.extend(header_parameters(info));
    let mut operation = json!({
        "operationId": info.id.replace('.', "_"),
        "tags": [info.tag],
        "summary": info.summary,
        "description": info.description,
        "parameters": parameters,
        "responses": responses(info, write),
        "security": if info.permission.is_some() { json!([{"bearer": []}, {"session": []}]) } else { json!([]) },
        "x-gpuaas-operation": info.id,
        "x-gpuaas-kind": info.kind,
        "x-gpuaas-permission": info.permission.map(|permission| permission.name),
        "x-gpuaas-audit-action": info.audit,
        "x-gpuaas-idempotency-key": info.method == Method::POST,
        "x-gpuaas-rate-class": info.rate,
        "x-gpuaas-cli": info.exposure.cli,
        "x-gpuaas-mcp": info.exposure.mcp,
    });
    if let Some(body) = info.body_schema {
        let mut content = json!({"schema": body(read)});
        if let Some(example) = info.example {
            content["example"] = example().0;
        }
        operation["requestBody"] = json!({"required": true, "content": {"application/json": content}});
    }
    operation
}

/// An object schema's properties as parameters.
fn parameters(place: &str, schema: schemars::Schema) -> Vec<Value> {
    let schema = schema.to_value();
    let required: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let Some(properties) = schema["properties"].as_object() else { return Vec::new() };
    properties
        .iter()
        .map(|(name, property)| {
            let mut property = property.clone();
            let about = property.as_object_mut().and_then(|object| object.remove("description"));
            let mut parameter = json!({
                "name": name,
                "in": place,
                "required": place == "path" || required.contains(&name.as_str()),
                "schema": without_null(property),
            });
            if let Some(about) = about {
                parameter["description"] = about;
            }
            parameter
        })
        .collect()
}

/// An optional parameter is absent, never null: `["string", "null"]` would promise a spelling for null in a URL.
fn without_null(mut schema: Value) -> Value {
    if let Some(types) = schema.get_mut("type").and_then(Value::as_array_mut) {
        types.retain(|name| name != "null");
        if let [only] = types.as_slice() {
            schema["type"] = only.clone();
        }
    }
    if let Some(options) = schema.get_mut("anyOf").and_then(Value::as_array_mut) {
        options.retain(|option| option["type"] != "null");
        if let [only] = options.as_slice() {
            return only.clone();
        }
    }
    schema
}

fn header_parameters(info: &OperationInfo) -> Vec<Value> {
    let mut headers = Vec::new();
    if info.method == Method::POST {
        headers.push(json!({"name": "Idempotency-Key", "in": "header", "required": false,
            "description": "Makes a repeated request safe: the same key with the same path and body gets the first answer, for 24 hours.",
            "schema": {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]+$"}}));
    }
    if takes_if_match(info) {
        headers.push(json!({"name": "If-Match", "in": "header", "required": false,
            "description": "Change only if the resource still has this ETag.",
            "schema": {"type": "string", "pattern": "^(\\*|\"[0-9]+\")$"}}));
    }
    if info.etag && !info.mutates() {
        headers.push(json!({"name": "If-None-Match", "in": "header", "required": false,
            "description": "Answer 304 if the resource still has this ETag.", "schema": {"type": "string"}}));
    }
    if info.kind == Kind::Sse {
        headers.push(json!({"name": "Last-Event-ID", "in": "header", "required": false,
            "description": "Go on after this event; wins over `cursor`.", "schema": {"type": "string"}}));
    }
    headers
}

/// What is only being made has no ETag to match.
fn takes_if_match(info: &OperationInfo) -> bool {
    info.etag && info.mutates() && info.success != StatusCode::CREATED
}

fn responses(info: &OperationInfo, write: &mut SchemaGenerator) -> Value {
    let mut responses = Map::new();
    let media = match info.kind {
        Kind::Json => "application/json",
        Kind::Sse => "text/event-stream",
    };
    let mut content = match info.kind {
        Kind::Json => json!({"schema": (info.reply_schema)(write)}),
        // The stream is text; the schema within is that of one event's `data`.
        Kind::Sse => json!({"schema": {
            "type": "string", "contentMediaType": "application/json", "contentSchema": (info.reply_schema)(write)}}),
    };
    if let Some(example) = info.example {
        content["example"] = example().1;
    }
    let mut headers = json!({"X-Correlation-Id": {"$ref": "#/components/headers/CorrelationId"}});
    if info.etag {
        headers["ETag"] = json!({"$ref": "#/components/headers/ETag"});
    }
    responses.insert(
        info.success.as_str().to_owned(),
        json!({"description": "Done.", "headers": headers, "content": {media: content}}),
    );
    if info.etag && !info.mutates() {
        responses.insert("304".to_owned(), json!({"description": "Not modified since the given ETag."}));
    }
    let mut by_status: BTreeMap<u16, Vec<&'static ErrorCode>> = BTreeMap::new();
    for code in codes(info) {
        by_status.entry(problem::status_of(code).as_u16()).or_default().push(code);
    }
    for (status, codes) in by_status {
        let mut headers = json!({"X-Correlation-Id": {"$ref": "#/components/headers/CorrelationId"}});
        if StatusCode::from_u16(status).is_ok_and(problem::is_retryable) {
            headers["Retry-After"] = json!({"$ref": "#/components/headers/RetryAfter"});
        }
        let about: Vec<String> =
            codes.iter().map(|code| format!("`{}`: {}.", code.code, code.title)).collect();
        responses.insert(
            status.to_string(),
            json!({
                "description": about.join(" "),
                "headers": headers,
                "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
                "x-gpuaas-codes": codes.iter().map(|code| code.code).collect::<Vec<_>>(),
            }),
        );
    }
    Value::Object(responses)
}

/// The codes an operation may answer with: its own, and those its shape implies.
fn codes(info: &OperationInfo) -> Vec<&'static ErrorCode> {
    let mut codes: Vec<&'static ErrorCode> = info.errors.clone();
    codes.extend([
        &input::INVALID_REQUEST,
        &limits::RATE_LIMITED,
        &limits::TOO_BUSY,
        &limits::REQUEST_TIMEOUT,
    ]);
    codes.extend(db::catalogue().iter().filter(|code| match problem::status_of(code).as_u16() {
        409 => info.method == Method::POST,
        503 => code.code != "commit_unknown" || info.mutates(),
        _ => true,
    }));
    if info.permission.is_some() {
        codes.extend([&authz::UNAUTHENTICATED, &authz::FORBIDDEN, &authz::NOT_FOUND]);
    }
    if info.mutates() {
        codes.push(&limits::BODY_TOO_LARGE);
    }
    if info.body_schema.is_some() {
        codes.push(&input::UNSUPPORTED_MEDIA_TYPE);
    }
    if takes_if_match(info) {
        codes.push(&input::PRECONDITION_FAILED);
    }
    codes.push(&problem::BROKEN_CONTRACT);
    codes.sort_by_key(|code| code.code);
    codes.dedup_by_key(|code| code.code);
    codes
}

fn headers() -> Value {
    json!({
        "CorrelationId": {"description": "Ties this reply to logs, traces, audit entries and events.", "schema": {"type": "string"}},
        "RetryAfter": {"description": "Try again after so many seconds.", "schema": {"type": "integer", "minimum": 1}},
        "ETag": {"description": "The resource's generation, quoted.", "schema": {"type": "string"}},
    })
}

fn merge_schemas(
    read: Map<String, Value>,
    write: Map<String, Value>,
) -> Result<BTreeMap<String, Value>, String> {
    let mut merged: BTreeMap<String, Value> = read.into_iter().collect();
    for (name, schema) in write {
        match merged.get(&name) {
            Some(other) if *other != schema => {
                return Err(format!(
                    "the type {name} reads and writes differently: give input and output types of their own"
                ));
            }
            _ => merged.insert(name, schema),
        };
    }
    Ok(merged)
}
