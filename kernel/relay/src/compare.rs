//! Where to go on, given what the stream really has. Pure; the table in the tests is the specification.

use events::{EventId, LogEnd};

use crate::stream::Last;

/// What the log says about itself and about the stream's last message.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LogFacts {
    pub end: LogEnd,
    /// Our event at the position that the stream's last message names, if it is still kept.
    pub event_there: Option<EventId>,
    /// Everything after it is young enough for the stream, and still kept.
    pub floor: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Finding {
    /// The stream ends where we stopped.
    InStep,
    /// The stream has more than we noted: we died between its acknowledgement and our note of it.
    Ahead,
    /// The stream lost its end, or everything. Events after this position have to be published again.
    Behind,
    /// The stream's last message is not of this log: of before a restore, or of another installation. Nothing can be
    /// concluded from it.
    OtherHistory,
}

/// The position after which to go on.
pub(crate) fn go_on_after(noted: i64, last: &Last, log: &LogFacts) -> (i64, Finding) {
    let there = match last {
        // Also before the very first event, where the noted position is 0 and so is the floor.
        Last::Nothing => log.floor,
        Last::Unknown => return (noted, Finding::OtherHistory),
        Last::Ours(mark) if mark.epoch != log.end.epoch || mark.position > log.end.position => {
            return (noted, Finding::OtherHistory);
        }
        Last::Ours(mark) => match log.event_there {
            Some(id) if id == mark.id => mark.position,
            Some(_) => return (noted, Finding::OtherHistory),
            // Older than all we keep: what lies between is beyond help, the rest is after the floor.
            None => log.floor,
        },
    };
    if there > noted && matches!(last, Last::Ours(_)) {
        return (there, Finding::Ahead);
    }
    let target = there.max(log.floor).min(noted);
    (target, if target == noted { Finding::InStep } else { Finding::Behind })
}
