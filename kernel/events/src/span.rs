//! Lets the traces that caused events go on in whoever handles them.

use tracing::Span;

use crate::log_event::LogEvent;

/// One span for each recorded trace that has events in the batch: a request's trace then shows who handled what it
/// caused, however busy the consumer is. Without an exporter this is one comparison and no allocation.
pub(crate) fn continued_spans(consumer: &'static str, events: &[LogEvent]) -> Vec<Span> {
    if !tracing::enabled!(target: trace::TARGET, tracing::Level::DEBUG) {
        return Vec::new();
    }
    let mut seen: Vec<&str> = Vec::new();
    let mut spans = Vec::new();
    for event in events {
        let Some(traceparent) = event.traceparent.as_deref() else { continue };
        // Events of one trace are neighbours, or nearly: the short list of the newest is enough.
        if !trace::is_sampled(traceparent) || seen.iter().rev().take(NEIGHBOURS).any(|it| *it == traceparent)
        {
            continue;
        }
        seen.push(traceparent);
        let span = tracing::debug_span!(
            target: trace::TARGET,
            "consume",
            consumer,
            position = event.position,
            event = event.event_type,
            correlation_id = %authz::CorrelationId::from_uuid(event.correlation_id),
        );
        trace::continue_from(&span, Some(traceparent));
        spans.push(span);
    }
    spans
}

/// How far back a repeated trace is looked for.
const NEIGHBOURS: usize = 16;
