//! What a measurement gives, and how several of them become one number.

use std::time::Duration;

use crate::cpu::Cpu;

/// One load, in one round.
#[derive(Debug, Clone, Copy)]
pub struct Sample {
    pub done: u64,
    pub elapsed: Duration,
    pub cpu: Cpu,
}

impl Sample {
    pub fn per_second(&self) -> f64 {
        self.done as f64 / self.elapsed.as_secs_f64()
    }

    /// CPU time of the server under test, per piece of work.
    pub fn server_us(&self) -> f64 {
        self.cpu.server_us / self.done as f64
    }

    pub fn postgres_us(&self) -> f64 {
        self.cpu.postgres_us / self.done as f64
    }

    /// CPU time of whatever made the load, per piece of work.
    pub fn client_us(&self) -> f64 {
        self.cpu.client_us / self.done as f64
    }
}

/// How long single things took, in one round.
#[derive(Debug, Clone, Default)]
pub struct Latencies(Vec<f64>);

impl Latencies {
    /// `millis` may be negative: an event can overtake the reply to the request that caused it.
    pub fn push_ms(&mut self, millis: f64) {
        self.0.push(millis);
    }

    pub fn push(&mut self, took: Duration) {
        self.push_ms(took.as_secs_f64() * 1e3);
    }

    pub fn p50_ms(&self) -> f64 {
        quantile(&self.0, 0.50)
    }

    pub fn p99_ms(&self) -> f64 {
        quantile(&self.0, 0.99)
    }
}

/// The middle of what `pick` finds in each round.
pub fn median<T>(of: &[T], pick: impl Fn(&T) -> f64) -> f64 {
    quantile(&of.iter().map(pick).collect::<Vec<f64>>(), 0.5)
}

/// The value below which `share` of the values are; between two of them, the line that joins them.
fn quantile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let Some(last) = sorted.len().checked_sub(1) else { return f64::NAN };
    let place = share * last as f64;
    let (below, above) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
    below + (above - below) * place.fract()
}

#[cfg(test)]
mod tests {
    use super::{median, quantile};

    #[test]
    fn quantiles_lie_between_their_neighbours() {
        assert_eq!(quantile(&[3.0, 1.0, 2.0], 0.5), 2.0);
        assert_eq!(quantile(&[1.0, 2.0], 0.5), 1.5);
        assert_eq!(quantile(&[7.0], 0.99), 7.0);
        assert_eq!(median(&[(1.0, 9.0), (2.0, 8.0), (4.0, 1.0)], |pair| pair.1), 8.0);
        assert!(quantile(&[], 0.5).is_nan());
    }
}
