//! What is excused: exceptions (for good) and debt (until a date), applied to the findings of all rules alike.
//!
//! The ledger must stay true by itself. An excuse nobody needs any more, one that names no rule, and a debt past its
//! date are findings too, so the lists in `architecture.toml` never grow a layer of things that used to matter.

use jiff::civil::Date;

use super::architecture::{Architecture, Debt, Exception, FILE, is_under};
use super::finding::{Ban, Finding};
use super::project::Project;
use super::rules;

pub static STALE_EXCUSE: Ban = Ban::absolute(
    "stale-excuse",
    "an excuse that excuses nothing hides the next breach in the same place",
    "delete the entry from architecture.toml, or correct its rule, path or item",
);

pub static DEBT_EXPIRED: Ban = Ban::absolute(
    "debt-expired",
    "a debt is a promise with a date; without the date it would be an exception nobody argued for",
    "repair what the entry excuses and delete it, or have its owner agree to a new date in review",
);

pub static BANS: &[&Ban] = &[&STALE_EXCUSE, &DEBT_EXPIRED];

/// The findings that stay, in order of place.
pub struct Settled {
    pub findings: Vec<Finding>,
    /// For each debt in `architecture.toml`, in its order; negative once expired.
    pub debt_days_left: Vec<i64>,
}

pub fn settle(project: &Project, findings: Vec<Finding>, today: Date) -> Settled {
    let architecture = &project.architecture;
    let mut excuses = excuses(architecture);
    let mut kept: Vec<Finding> = Vec::new();
    for finding in findings {
        if !excused(&mut excuses, &finding, today) {
            kept.push(finding);
        }
    }
    for excuse in &excuses {
        if let Some(finding) = excuse.fault(project, today) {
            kept.push(finding);
        }
    }
    kept.sort_by(|a, b| (&a.path, a.line, a.ban.id, &a.what).cmp(&(&b.path, b.line, b.ban.id, &b.what)));
    let debt_days_left = architecture.debt.iter().map(|debt| days_left(debt, today)).collect();
    Settled { findings: kept, debt_days_left }
}

/// An entry of either list, with whether a finding needed it.
struct Excuse<'a> {
    rule: &'a str,
    path: Option<&'a str>,
    item: Option<&'a str>,
    debt: Option<&'a Debt>,
    needed: bool,
}

fn excuses(architecture: &Architecture) -> Vec<Excuse<'_>> {
    let exceptions = architecture.exceptions.iter().flat_map(|(rule, list)| {
        list.iter().map(move |Exception { path, item, .. }| Excuse {
            rule,
            path: Some(path),
            item: item.as_deref(),
            debt: None,
            needed: false,
        })
    });
    let debts = architecture.debt.iter().map(|debt| Excuse {
        rule: &debt.rule,
        path: debt.path.as_deref(),
        item: debt.item.as_deref(),
        debt: Some(debt),
        needed: false,
    });
    exceptions.chain(debts).collect()
}

/// Every excuse that fits is marked as needed, so that two overlapping entries do not make each other look stale.
fn excused(excuses: &mut [Excuse<'_>], finding: &Finding, today: Date) -> bool {
    let mut excused = false;
    for excuse in excuses.iter_mut().filter(|excuse| excuse.fits(finding)) {
        excuse.needed = true;
        excused |= excuse.debt.is_none_or(|debt| days_left(debt, today) >= 0);
    }
    excused
}

impl Excuse<'_> {
    fn fits(&self, finding: &Finding) -> bool {
        self.rule == finding.ban.id
            && (self.debt.is_some() || !finding.ban.absolute)
            && (self.path.is_some() || self.item.is_some())
            && self.path.is_none_or(|path| is_under(&finding.path, path))
            && self.item.is_none_or(|item| item == finding.item)
    }

    /// The same path may be excused from several rules: the entry is the first such line after its rule's name.
    fn line(&self, project: &Project, place: &str) -> usize {
        let (rule, place) = (format!("rule = \"{}\"", self.rule), format!("\"{place}\""));
        let heading = if self.debt.is_some() { rule } else { format!("{} = [", self.rule) };
        let mut reached = false;
        project.line_in_architecture(|line| {
            reached |= line.starts_with(&heading);
            reached && line.contains(&place)
        })
    }

    /// What is wrong with the entry itself.
    fn fault(&self, project: &Project, today: Date) -> Option<Finding> {
        let place = self.path.or(self.item).unwrap_or("neither path nor item");
        let line = self.line(project, place);
        if let Some(debt) = self.debt.filter(|debt| self.needed && days_left(debt, today) < 0) {
            let what = format!("{} owes {} at {place} since {}", debt.owner, self.rule, debt.expires);
            return Some(DEBT_EXPIRED.at(FILE, line, self.rule, what));
        }
        let reason = match rules::bans().find(|ban| ban.id == self.rule) {
            None => "there is no such rule",
            Some(ban) if ban.absolute && self.debt.is_none() => "this rule has no exceptions",
            Some(_) if self.needed => return None,
            Some(_) => "nothing there breaks the rule",
        };
        Some(STALE_EXCUSE.at(FILE, line, self.rule, format!("{} at {place}: {reason}", self.rule)))
    }
}

fn days_left(debt: &Debt, today: Date) -> i64 {
    today.until(debt.expires).map_or(i64::MIN, |span| i64::from(span.get_days()))
}
