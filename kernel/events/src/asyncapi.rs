//! The AsyncAPI document, made from the event types the domains register.

use db::EventInfo;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use crate::log_event::CloudEvent;

/// AsyncAPI 3.0: one channel per event type, each a NATS subject and an SSE event name.
pub fn document(events: &[EventInfo], version: &str) -> Value {
    let mut generator = SchemaSettings::draft07()
        .with(|s| s.definitions_path = "/components/schemas".into())
        .for_serialize()
        .into_generator();
    let envelope = generator.subschema_for::<CloudEvent>();
    let (mut channels, mut operations, mut messages) = (Map::new(), Map::new(), Map::new());
    for event in events {
        let key = event.event_type.trim_start_matches("gpuaas.").replace('.', "_");
        let data = (event.schema)(&mut generator);
        messages.insert(
            key.clone(),
            json!({
                "name": event.event_type,
                "title": event.title,
                "summary": event.title,
                "contentType": "application/cloudevents+json",
                "payload": {"allOf": [envelope, {
                    "type": "object",
                    "properties": {"type": {"type": "string", "const": event.event_type}, "data": data},
                }]},
            }),
        );
        channels.insert(
            key.clone(),
            json!({
                "address": event.event_type,
                "title": event.title,
                "description": "NATS JetStream subject, and the `event` field of `GET /api/v1/events`.",
                "messages": {key.clone(): {"$ref": format!("#/components/messages/{key}")}},
            }),
        );
        operations.insert(
            format!("send_{key}"),
            json!({
                "action": "send",
                "summary": event.title,
                "channel": {"$ref": format!("#/channels/{key}")},
                "messages": [{"$ref": format!("#/channels/{key}/messages/{key}")}],
            }),
        );
    }
    json!({
        "asyncapi": "3.0.0",
        "info": {
            "title": "GPUaaS events",
            "version": version,
            "description": "Everything that happens, at least once, in order per resource. Consumers drop duplicates by `id`; `gpuaasposition` is gapless across all events.",
            "license": {"name": "Apache-2.0"},
        },
        "defaultContentType": "application/cloudevents+json",
        "channels": channels,
        "operations": operations,
        "components": {"messages": messages, "schemas": generator.take_definitions(true)},
    })
}
