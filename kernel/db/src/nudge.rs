//! "Something may have changed, look now": after a commit, to whoever waits for it in this process, and — through
//! one coalesced message per replica — to the other replicas ([`Bridge`](crate::Bridge) by NOTIFY, `relay` by NATS).
//!
//! A nudge carries no data and may be lost: everyone who waits for one also looks periodically. NOTIFY is never sent
//! from a mutating transaction, because it holds a cluster-wide lock through commit.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use uuid::Uuid;

/// What to look at again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Topic {
    /// Outbox rows or audit entries were committed.
    Committed,
    /// The log has new positions.
    Log,
    /// A flow became runnable.
    Flow,
    /// A setting changed.
    Setting,
    /// Something that was granted was taken away, or changed.
    Revocation,
}

impl Topic {
    pub const ALL: [Self; 5] = [Self::Committed, Self::Log, Self::Flow, Self::Setting, Self::Revocation];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Committed => "committed",
            Self::Log => "log",
            Self::Flow => "flow",
            Self::Setting => "setting",
            Self::Revocation => "revocation",
        }
    }

    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|topic| topic.name() == name)
    }
}

const TOPICS: usize = Topic::ALL.len();

/// The process's nudges. Cheap to clone.
#[derive(Clone)]
pub struct Nudges {
    topics: Arc<[watch::Sender<u64>; TOPICS]>,
    /// Counts only nudges that began here: these are passed on to other replicas.
    local: Arc<[watch::Sender<u64>; TOPICS]>,
}

impl Default for Nudges {
    fn default() -> Self {
        Self {
            topics: Arc::new(std::array::from_fn(|_| watch::channel(0).0)),
            local: Arc::new(std::array::from_fn(|_| watch::channel(0).0)),
        }
    }
}

impl Nudges {
    /// Something happened in this process.
    pub fn nudge(&self, topic: Topic) {
        self.topics[topic as usize].send_modify(|count| *count += 1);
        self.local[topic as usize].send_modify(|count| *count += 1);
    }

    /// Another replica says so.
    pub fn from_outside(&self, topic: Topic) {
        self.topics[topic as usize].send_modify(|count| *count += 1);
    }

    pub fn listen(&self, topic: Topic) -> Listener {
        Listener(self.topics[topic as usize].subscribe())
    }

    /// A message of some replica, as [`nudge_words`] made it; our own says nothing new. Topics this version does not
    /// know are somebody else's.
    pub fn hear(&self, own: Uuid, words: &str) {
        let Some((from, topics)) = words.split_once(' ') else { return };
        if from == own.to_string() {
            return;
        }
        metrics::counter!("gpuaas_nudges_heard_total").increment(1);
        for topic in topics.split(',').filter_map(Topic::parse) {
            self.from_outside(topic);
        }
    }

    /// Nudges that began here, for whoever passes them on.
    pub fn listen_local(&self) -> LocalNudges {
        LocalNudges(std::array::from_fn(|topic| self.local[topic].subscribe()))
    }
}

/// What a replica tells the others: `<replica> <topic>,<topic>`.
pub fn nudge_words(replica: Uuid, topics: &[Topic]) -> String {
    let names: Vec<&str> = topics.iter().map(|topic| topic.name()).collect();
    format!("{replica} {}", names.join(","))
}

/// The nudges of this process that were not passed on yet.
pub struct LocalNudges([watch::Receiver<u64>; TOPICS]);

impl LocalNudges {
    /// Waits for at least one and takes them all: what piled up meanwhile is one message.
    pub async fn take(&mut self) -> Vec<Topic> {
        let waits = self.0.iter_mut().map(|topic| Box::pin(topic.changed()));
        // `changed` marks as seen the topic that woke us; the others are asked below. An error means that the process
        // ends: then there is nobody left to tell.
        let (woken, first, _) = futures::future::select_all(waits).await;
        if woken.is_err() {
            return std::future::pending().await;
        }
        let mut topics = Vec::with_capacity(Topic::ALL.len());
        for topic in Topic::ALL {
            let receiver = &mut self.0[topic as usize];
            if topic as usize == first || receiver.has_changed().unwrap_or(false) {
                receiver.borrow_and_update();
                topics.push(topic);
            }
        }
        topics
    }
}

pub struct Listener(watch::Receiver<u64>);

impl Listener {
    /// Returns at the next nudge since the last call, or when the sweep is due.
    pub async fn wait(&mut self, sweep: Duration) {
        // An error means that the sender is gone, which is when the process ends: sleep out the sweep.
        if let Ok(Err(_)) = tokio::time::timeout(sweep, self.0.changed()).await {
            tokio::time::sleep(sweep).await;
        }
    }
}
