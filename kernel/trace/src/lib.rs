//! Carries a trace across the places where a call stack ends: a socket, the outbox, a flow's row.
//!
//! What crosses is a W3C `traceparent`, a string of 55 characters that is stored and sent as it is. This crate is the
//! only one that knows how a `tracing` span and that string belong together; exporting is the server's business
//! (`server/src/telemetry.rs`). Where no exporter is installed, [`continue_from`] does nothing, [`traceparent`] is
//! `None`, and spans of [`TARGET`] are never made: the log's level shuts them out before their fields are evaluated.
//!
//! Rejected: the propagator of `opentelemetry`. It wants a map of headers on both sides, and we have one string.

use opentelemetry::trace::{SpanContext, SpanId, TraceContextExt as _, TraceFlags, TraceId, TraceState};
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

/// The target of spans that only a trace wants: they have level `DEBUG`, so logs at their usual level never pay for
/// them, while the exporter asks for them by this name.
pub const TARGET: &str = "gpuaas::trace";

/// Makes `span` a child of the span that `traceparent` names. To be called before the span is entered; a text that is
/// no traceparent leaves the span a root.
pub fn continue_from(span: &Span, traceparent: Option<&str>) {
    let Some(parent) = traceparent.and_then(parse) else { return };
    // Fails where no exporter listens, or where the span is none of its business.
    let _ = span.set_parent(opentelemetry::Context::new().with_remote_span_context(parent));
}

/// The name of `span` for others to continue from, if it is part of a trace.
pub fn traceparent(span: &Span) -> Option<String> {
    let context = span.context();
    let span = context.span();
    let span = span.span_context();
    span.is_valid()
        .then(|| format!("00-{}-{}-{:02x}", span.trace_id(), span.span_id(), span.trace_flags().to_u8()))
}

/// [`traceparent`] of the span the caller runs in.
pub fn current() -> Option<String> {
    traceparent(&Span::current())
}

/// Does the text have the form `00-<32 hex>-<16 hex>-<2 hex>`? Others never get into a row or a header of ours.
pub fn is_traceparent(text: &str) -> bool {
    parse(text).is_some()
}

/// Is the trace it names recorded, or only counted?
pub fn is_sampled(traceparent: &str) -> bool {
    parse(traceparent).is_some_and(|span| span.is_sampled())
}

fn parse(text: &str) -> Option<SpanContext> {
    let mut parts = text.split('-');
    let (version, trace, span, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let lower_hex = |part: &str, length: usize| {
        part.len() == length && part.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
    };
    let fits = lower_hex(trace, 32) && lower_hex(span, 16) && lower_hex(flags, 2);
    if version != "00" || !fits || parts.next().is_some() {
        return None;
    }
    let context = SpanContext::new(
        TraceId::from_hex(trace).ok()?,
        SpanId::from_hex(span).ok()?,
        TraceFlags::new(u8::from_str_radix(flags, 16).ok()?),
        true,
        TraceState::default(),
    );
    context.is_valid().then_some(context)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_w3c_form_is_a_traceparent() {
        let check = |text: &str, fine: bool| assert_eq!(is_traceparent(text), fine, "{text}");
        check("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", true);
        check("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00", true);
        check("01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", false);
        check("00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01", false);
        check("00-00000000000000000000000000000000-b7ad6b7169203331-01", false);
        check("00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01", false);
        check("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-x", false);
        check("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331", false);
        check("", false);
    }

    #[test]
    fn without_an_exporter_nothing_has_a_name() {
        let span = tracing::info_span!("lonely");
        continue_from(&span, Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"));
        assert_eq!(traceparent(&span), None);
        assert_eq!(current(), None);
    }
}
