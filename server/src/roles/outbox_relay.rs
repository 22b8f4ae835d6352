//! `outbox-relay`: gives events their positions.

use db::Internal;
use events::Sequencer;

use crate::process::Process;

pub fn start(process: &mut Process) {
    let app = &process.app;
    let internal = Internal::new(process.relay_pool.clone(), "outbox-relay", false);
    let sequencer = Sequencer::new(
        internal,
        std::sync::Arc::clone(&app.clock),
        app.db.nudges().clone(),
        app.settings.clone(),
    );
    let stop = process.stop.clone();
    process.spawn("sequencer", async move { sequencer.run(stop).await });
}
