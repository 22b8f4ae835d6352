//! From measurements to the lines of the table. The aims are those of the project's speed budget; they live here only.
//!
//! Ratios are formed within a round and then their median is taken: the two sides of a ratio ran a second apart.

use std::time::Duration;

use crate::gpuaasd::StartTimes;
use crate::round::Round;
use crate::sample::{Latencies, Sample, median};
use crate::table::{Aim, Row, Table};

/// Everything the run measured.
pub struct Results {
    pub rounds: Vec<Round>,
    pub starts: Vec<StartTimes>,
    pub memory: Memory,
    pub floor_tool: &'static str,
    /// If not, the ratios to it are shown and not judged.
    pub floor_is_pgbench: bool,
}

pub struct Memory {
    pub at_rest_mb: f64,
    /// How long the server had rested.
    pub rested: Duration,
    pub after_burst_mb: f64,
}

pub fn table(results: &Results) -> Table {
    let (rounds, judged) = (&results.rounds, results.floor_is_pgbench);
    let mut rows = floors(rounds, results.floor_tool);
    rows.extend(read(rounds, "read, one tenant", judged, |round| &round.read_one_tenant));
    rows.extend(read(rounds, "read, 64 tenants in turn", judged, |round| &round.read_many_tenants));
    rows.extend(mutation(rounds, "create an organization", judged, |round| &round.create));
    rows.extend(mutation(rounds, "rename an organization", judged, |round| &round.rename));
    rows.extend(events(rounds));
    rows.extend(flows(rounds));
    rows.extend(logs(rounds));
    rows.extend(revocations(rounds));
    rows.extend(start(&results.starts));
    rows.extend(memory(&results.memory));
    Table(rows)
}

fn floors(rounds: &[Round], tool: &str) -> Vec<Row> {
    let of = |pick: fn(&Round) -> &Sample| {
        let rate = median(rounds, |round| pick(round).per_second());
        let client = median(rounds, |round| pick(round).client_us());
        let postgres = median(rounds, |round| pick(round).postgres_us());
        format!("{rate:.0}/s; client {client:.0} + PostgreSQL {postgres:.0} CPU-µs")
    };
    let hello = |pick: fn(&Sample) -> f64| median(rounds, |round| pick(&round.hello));
    let hello = format!(
        "{:.0}/s; server {:.0} + client {:.0} CPU-µs",
        hello(Sample::per_second),
        hello(Sample::server_us),
        hello(Sample::client_us)
    );
    vec![
        Row::new(format!("floor: {tool}, select-only"), of(|round| &round.select)),
        Row::new(format!("floor: {tool}, tpcb-like"), of(|round| &round.transfer)),
        Row::new("floor: axum \"hello\"", hello),
    ]
}

fn read(rounds: &[Round], what: &str, judged: bool, of: impl Fn(&Round) -> &Sample) -> Vec<Row> {
    let rate = median(rounds, |round| of(round).per_second());
    let floor = median(rounds, |round| round.select.per_second());
    let ratio = median(rounds, |round| of(round).per_second() / round.select.per_second());
    let server = median(rounds, |round| of(round).server_us());
    let postgres = median(rounds, |round| of(round).postgres_us());
    let hello = median(rounds, |round| round.hello.server_us());
    let select = median(rounds, |round| round.select.postgres_us());
    vec![
        Row::new(format!("{what}: rate"), format!("{rate:.0}/s"))
            .floor(format!("{floor:.0}/s select-only"), ratio)
            .aim_if(judged, Aim::AtLeast(0.25), "×", ratio),
        Row::new(format!("{what}: gpuaasd"), format!("{server:.1} CPU-µs"))
            .floor(format!("{hello:.1} hello"), server / hello)
            .aim(Aim::AtMost(60.0), " CPU-µs", server),
        Row::new(format!("{what}: PostgreSQL"), format!("{postgres:.1} CPU-µs"))
            .floor(format!("{select:.1} select-only"), postgres / select)
            .aim(Aim::AtMost(30.0), " CPU-µs", postgres),
    ]
}

fn mutation(rounds: &[Round], what: &str, judged: bool, of: impl Fn(&Round) -> &Sample) -> Vec<Row> {
    let total = |sample: &Sample| sample.server_us() + sample.postgres_us();
    let floor_total = |sample: &Sample| sample.client_us() + sample.postgres_us();
    let rate = median(rounds, |round| of(round).per_second());
    let rate_floor = median(rounds, |round| round.transfer.per_second());
    let rate_ratio = median(rounds, |round| of(round).per_second() / round.transfer.per_second());
    let (server, postgres) =
        (median(rounds, |round| of(round).server_us()), median(rounds, |round| of(round).postgres_us()));
    let floor = median(rounds, |round| floor_total(&round.transfer));
    let ratio = median(rounds, |round| total(of(round)) / floor_total(&round.transfer));
    let value = format!("{server:.0} gpuaasd + {postgres:.0} PostgreSQL CPU-µs");
    vec![
        Row::new(format!("{what}: rate"), format!("{rate:.0}/s"))
            .floor(format!("{rate_floor:.0}/s tpcb-like"), rate_ratio),
        Row::new(format!("{what}: CPU"), value)
            .floor(format!("{floor:.0} tpcb-like, client included"), ratio)
            .aim_if(judged, Aim::AtMost(2.5), "×", ratio),
    ]
}

fn events(rounds: &[Round]) -> Vec<Row> {
    let commit = median(rounds, |round| round.commit.p50_ms());
    let row = |what: &str, of: fn(&Round) -> &Latencies| {
        let (p50, p99) =
            (median(rounds, |round| of(round).p50_ms()), median(rounds, |round| of(round).p99_ms()));
        let value = format!("p50 {p50:.2} ms, p99 {p99:.2} ms");
        Row::new(format!("change → event stream, from the {what}"), value)
            .floor(
                format!("{commit:.3} ms one commit"),
                median(rounds, |round| of(round).p50_ms() / round.commit.p50_ms()),
            )
            .aim(Aim::AtMost(2.0), " ms (p50)", p50)
    };
    vec![row("reply", |round| &round.events.from_reply), row("request", |round| &round.events.from_request)]
}

fn flows(rounds: &[Round]) -> Vec<Row> {
    let p50 = median(rounds, |round| round.flow.p50_ms());
    let p99 = median(rounds, |round| round.flow.p99_ms());
    let commit = median(rounds, |round| round.commit.p50_ms());
    let ratio = median(rounds, |round| round.flow.p50_ms() / round.commit.p50_ms());
    let server = median(rounds, |round| round.flows_at_once.server_us()) / 1e3;
    let postgres = median(rounds, |round| round.flows_at_once.postgres_us()) / 1e3;
    let rate = median(rounds, |round| round.flows_at_once.per_second());
    vec![
        Row::new("flow of five steps, alone", format!("p50 {p50:.2} ms, p99 {p99:.2} ms"))
            .floor(format!("{commit:.3} ms one commit"), ratio)
            .aim(Aim::AtMost(8.0), "×", ratio),
        Row::new(
            format!("flow of five steps, 100 at once ({rate:.0}/s)"),
            format!("{server:.2} process + {postgres:.2} PostgreSQL CPU-ms"),
        )
        .aim(Aim::AtMost(1.5), " CPU-ms", server + postgres),
    ]
}

fn logs(rounds: &[Round]) -> Vec<Row> {
    let rate = median(rounds, |round| round.sequenced.per_second());
    let cost = median(rounds, |round| round.sequenced.server_us() + round.sequenced.postgres_us());
    let sealed = median(rounds, |round| round.sealed.per_second());
    let seal_cost = median(rounds, |round| round.sealed.server_us() + round.sealed.postgres_us());
    let verified = median(rounds, |round| round.verified_per_second);
    vec![
        Row::new("sequencer, working off a backlog", format!("{rate:.0} events/s, {cost:.0} CPU-µs each"))
            .aim(Aim::AtLeast(5_000.0), " events/s", rate),
        Row::new(
            "sealer, working off a backlog",
            format!("{sealed:.0} entries/s, {seal_cost:.0} CPU-µs each"),
        )
        .aim(Aim::AtLeast(5_000.0), " entries/s", sealed),
        Row::new("audit verify", format!("{:.2} M entries/s", verified / 1e6)).aim(
            Aim::AtLeast(1.0),
            " M entries/s",
            verified / 1e6,
        ),
    ]
}

fn revocations(rounds: &[Round]) -> Vec<Row> {
    let commit = median(rounds, |round| round.commit.p50_ms());
    let row = |carrier: &str, all: Vec<&Latencies>| {
        let what = format!("revoked → known on another replica, {carrier}");
        let aim = Aim::AtMost(1_000.0);
        if all.is_empty() {
            return Row::new(what, "no NATS server: tools/install nats").aim_unmeasured(aim, " ms (p99)");
        }
        let (p50, p99) = (median(&all, |times| times.p50_ms()), median(&all, |times| times.p99_ms()));
        Row::new(what, format!("p50 {p50:.2} ms, p99 {p99:.2} ms"))
            .floor(format!("{commit:.3} ms one commit"), p50 / commit)
            .aim(aim, " ms (p99)", p99)
    };
    let check = median(rounds, |round| round.revoking.check_us);
    let look_up = median(rounds, |round| round.revoking.look_up_us);
    let look_ups = rounds.iter().map(|round| round.revoking.look_ups).sum::<u64>();
    vec![
        row("NOTIFY", rounds.iter().map(|round| &round.revoking.by_notify).collect()),
        row("NATS", rounds.iter().filter_map(|round| round.revoking.by_nats.as_ref()).collect()),
        Row::new("remembered caller, checked", format!("{check:.2} µs, {look_ups} look-ups"))
            .floor(format!("{look_up:.0} µs one round trip"), check / look_up)
            .aim(Aim::AtMost(0.0), " look-ups", look_ups as f64),
    ]
}

fn start(starts: &[StartTimes]) -> Vec<Row> {
    let after = median(starts, |times| times.after_postgres.as_secs_f64());
    let whole = median(starts, |times| times.whole.as_secs_f64());
    vec![
        Row::new("second start: PostgreSQL ready → healthy", format!("{after:.3} s")).aim(
            Aim::AtMost(0.5),
            " s",
            after,
        ),
        Row::new("second start, whole", format!("{whole:.3} s")).aim(Aim::AtMost(2.0), " s", whole),
    ]
}

fn memory(memory: &Memory) -> Vec<Row> {
    let (rest, burst) = (memory.at_rest_mb, memory.after_burst_mb);
    let ratio = burst / rest;
    vec![
        Row::new(
            format!("memory (PSS) {} s after the start", memory.rested.as_secs()),
            format!("{rest:.1} MB"),
        )
        .aim(Aim::AtMost(40.0), " MB", rest),
        Row::new("memory (PSS) after the load and a burst", format!("{burst:.1} MB"))
            .floor(format!("{rest:.1} MB at rest"), ratio)
            .aim(Aim::AtMost(1.5), "×", ratio),
    ]
}
