//! Where the relay goes on, case by case.

use events::{EventId, LogEnd};
use types::{Entropy as _, SystemEntropy};

use crate::compare::Finding::{self, Ahead, Behind, InStep, OtherHistory};
use crate::compare::{LogFacts, go_on_after};
use crate::message::Mark;
use crate::stream::Last;

fn id() -> EventId {
    let mut bytes = [0u8; 16];
    SystemEntropy.fill(&mut bytes);
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    EventId::from_uuid(hex.parse().unwrap())
}

#[test]
fn the_stream_decides_as_far_as_it_can_be_believed() {
    let (ours, foreign) = (id(), id());
    let end = LogEnd { epoch: 2, position: 1_000 };
    let log = |event_there, floor| LogFacts { end, event_there, floor };
    let at = |epoch, position, id| Last::Ours(Mark { epoch, position, id });
    let check = |noted: i64, last: Last, log: LogFacts, position: i64, finding: Finding| {
        assert_eq!(go_on_after(noted, &last, &log), (position, finding), "{noted} {last:?} {log:?}");
    };
    // A new installation, and a wiped store: everything the stream would still keep.
    check(0, Last::Nothing, log(None, 0), 0, InStep);
    check(900, Last::Nothing, log(None, 0), 0, Behind);
    check(900, Last::Nothing, log(None, 400), 400, Behind);
    // Everything in the stream expired in peace.
    check(900, Last::Nothing, log(None, 900), 900, InStep);
    // The relay was away for longer than the stream keeps events: what it has not published, it still does.
    check(300, Last::Nothing, log(None, 400), 300, InStep);
    // The usual case, a lost end, and a death between acknowledgement and note.
    check(900, at(2, 900, ours), log(Some(ours), 900), 900, InStep);
    check(900, at(2, 700, ours), log(Some(ours), 0), 700, Behind);
    check(900, at(2, 700, ours), log(Some(ours), 800), 800, Behind);
    check(900, at(2, 950, ours), log(Some(ours), 900), 950, Ahead);
    // The last message is older than all we keep.
    check(900, at(2, 100, ours), log(None, 400), 400, Behind);
    // Not our history: another epoch, another installation, a log that was restored without a new epoch.
    check(900, at(1, 950, ours), log(Some(ours), 0), 900, OtherHistory);
    check(900, at(2, 700, foreign), log(Some(ours), 0), 900, OtherHistory);
    check(900, at(2, 1_500, foreign), log(None, 0), 900, OtherHistory);
    check(900, Last::Unknown, log(None, 0), 900, OtherHistory);
}
