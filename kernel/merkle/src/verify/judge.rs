//! Comparing what was hashed with what was vouched for.
//!
//! The smallest genuine checkpoint that the entries do not reproduce bounds the damage from above, the largest one they
//! do reproduce bounds it from below. Within these bounds the sealed leaf hashes name the exact entry, provided they
//! themselves reproduce the checkpoint; an attacker who changed them too leaves only the numbering and the bounds.
//!
//! One pattern needs care: entries that fail an earlier genuine checkpoint and match a later one. Both were signed, so
//! the key itself has signed two histories, and an agreement with any checkpoint in the export proves nothing any more.

use std::io;

use super::Files;
use super::diagnose::{SealedLeaves, locate_by_leaf, locate_by_number, read_id};
use super::finding::{Damage, Finding};
use super::scan::{Scan, sealed_roots};
use super::trust::{Known, Source, Trust};

pub(super) struct Verdict {
    /// How many entries from the front are proven to be as sealed.
    pub(super) intact: u64,
    /// Do they agree with the checkpoint kept elsewhere? Not if the export does not reach it: then nothing is known.
    pub(super) agrees: bool,
    /// The most telling first.
    pub(super) findings: Vec<Finding>,
}

pub(super) fn judge(trust: &Trust, scan: &Scan, files: &Files) -> io::Result<Verdict> {
    let case = Case { trust, scan, files };
    let mut forged = None;
    for (position, known) in trust.known.iter().enumerate() {
        if case.reproduces(position) {
            continue;
        }
        if trust.is_genuine(known) {
            return case.contradicted(position, forged);
        }
        if let Source::Earlier { line, .. } = known.source {
            forged = forged.or(Some(Finding::Export(Damage::EarlierCheckpoint { line })));
        }
    }
    case.reproduced(forged)
}

/// The first wrong entry, as the sealed leaf hashes name it.
struct Located {
    index: u64,
    finding: Finding,
    /// Do these hashes reproduce the checkpoint kept elsewhere?
    agrees: bool,
}

struct Case<'a> {
    trust: &'a Trust,
    scan: &'a Scan,
    files: &'a Files,
}

impl Case<'_> {
    fn reproduces(&self, position: usize) -> bool {
        self.scan.roots[position] == Some(self.trust.known[position].root)
    }

    /// Every genuine checkpoint is reproduced. What is left is what no checkpoint covers, and the export's side files.
    fn reproduced(&self, forged: Option<Finding>) -> io::Result<Verdict> {
        let Scan { lines, misnumbered, divergence, oversized, .. } = *self.scan;
        let intact = self.largest(|position, _| self.reproduces(position)).map_or(0, |known| known.size);
        let mut findings = Vec::new();
        if let Some(export_size) = self.trust.export_size {
            if oversized {
                findings.push(Finding::Oversized { index: lines });
            } else if lines > intact {
                findings.push(Finding::Appended { index: intact, id: read_id(&self.files.entries, intact)? });
            } else if export_size < intact {
                findings
                    .push(Finding::Export(Damage::CheckpointReplaced { size: export_size, entries: intact }));
            }
        }
        findings.extend(self.trust.findings.iter().cloned());
        if let Some(misnumbered) = misnumbered.filter(|line| line.position < intact) {
            findings.push(Finding::Misnumbered { index: misnumbered.position, found: misnumbered.found });
        }
        if let Some(index) = divergence {
            findings.push(Finding::Export(Damage::Leaves { index }));
        }
        findings.extend(forged);
        // An outside checkpoint counts as genuine, so here it is reproduced like all the others.
        Ok(Verdict { intact, agrees: true, findings })
    }

    /// A genuine checkpoint is not reproduced: find the entry.
    fn contradicted(&self, position: usize, forged: Option<Finding>) -> io::Result<Verdict> {
        let bound = &self.trust.known[position];
        let two_histories =
            self.largest(|other, known| known.size >= bound.size && self.reproduces(other)).is_some();
        let proven = |other: usize, known: &Known| {
            let counts =
                if two_histories { matches!(known.source, Source::Outside) } else { other < position };
            counts && self.reproduces(other)
        };
        let lower = self.largest(proven).map_or(0, |known| known.size);
        let located = self.by_leaf(position)?;
        let intact = located.as_ref().map_or(lower, |located| located.index);
        let by_leaves = located.as_ref().is_some_and(|located| located.agrees);
        let agrees = !two_histories
            && (by_leaves
                || self
                    .largest(|other, known| matches!(known.source, Source::Outside) && self.reproduces(other))
                    .is_some());
        let mut findings: Vec<Finding> = located.into_iter().map(|located| located.finding).collect();
        if two_histories {
            findings.push(Finding::TwoHistories { size: bound.size });
        } else if findings.is_empty() {
            findings.push(self.by_number(lower, bound.size)?);
        }
        findings.extend(self.trust.findings.iter().cloned());
        findings.extend(forged);
        Ok(Verdict { intact, agrees, findings })
    }

    /// The exact answer, where the sealed leaf hashes reproduce the checkpoint that the entries do not.
    fn by_leaf(&self, position: usize) -> io::Result<Option<Located>> {
        let Some(index) = self.scan.divergence else { return Ok(None) };
        let sizes: Vec<u64> = self.trust.known.iter().map(|known| known.size).collect();
        let sealed = sealed_roots(&self.files.leaves, &sizes)?;
        let sealed_reproduces = |other: usize| sealed[other] == Some(self.trust.known[other].root);
        if !sealed_reproduces(position) {
            return Ok(None);
        }
        let Some(newest) = self.largest(|other, _| sealed_reproduces(other)) else { return Ok(None) };
        let outside =
            |other: usize, known: &Known| matches!(known.source, Source::Outside) && sealed_reproduces(other);
        let agrees = self.largest(outside).is_some();
        let finding = if index == self.scan.lines {
            self.cut_off(index)
        } else {
            let leaves = SealedLeaves::open(&self.files.leaves, newest.size)?;
            locate_by_leaf(&self.files.entries, &leaves, index)?
        };
        Ok(Some(Located { index, finding, agrees }))
    }

    /// The best answer without leaf hashes: a break in the numbering between the bounds, or only the bounds.
    fn by_number(&self, lower: u64, upper: u64) -> io::Result<Finding> {
        let end = self.scan.lines;
        match self.scan.misnumbered {
            Some(line) if (lower..upper).contains(&line.position) => {
                locate_by_number(&self.files.entries, line)
            }
            _ if end < upper => Ok(self.cut_off(end)),
            _ => Ok(Finding::Within { from: lower, to: upper }),
        }
    }

    /// The file ends, or becomes unreadable, before an entry that was sealed.
    fn cut_off(&self, index: u64) -> Finding {
        if self.scan.oversized {
            return Finding::Oversized { index };
        }
        let sealed = self.largest(|_, _| true).map_or(index, |known| known.size);
        let last = sealed.saturating_sub(1).max(index);
        let promised = self.largest(|_, known| !matches!(known.source, Source::Outside));
        if promised.is_some_and(|own| own.size == index) {
            return Finding::EndsBefore { index, last };
        }
        Finding::NewestRemoved { index, last }
    }

    /// The largest genuine checkpoint of those wanted. From the largest down, so that few signatures are checked.
    fn largest(&self, wanted: impl Fn(usize, &Known) -> bool) -> Option<&Known> {
        let known = self.trust.known.iter().enumerate().rev();
        known
            .filter(|(position, known)| wanted(*position, known))
            .map(|(_, known)| known)
            .find(|known| self.trust.is_genuine(known))
    }
}
