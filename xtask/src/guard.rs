//! The architecture guard: what reviewers would otherwise have to remember, checked in under three seconds.
//!
//! The tree is read once into a [`Project`]: files, Rust tokens, manifests and `architecture.toml`. Each family of
//! rules is one file in `rules/` that looks at the project and adds findings. Rules know nothing of exceptions: a
//! rule reports every breach, and the [`ledger`] then takes away what `architecture.toml` excuses. So there is one
//! mechanism for "allowed here, because …", and an excuse that excuses nothing is itself a finding.
//!
//! Rules read tokens, not syntax trees. A tree parser skips the inside of macros, where much of an async program
//! lives, and drops comments, where two of the rules look; tokens have both, and are so cheap that an unoptimised build
//! reads a hundred thousand lines in 1.1 seconds. The price is that a rule cannot see through a renamed import; the
//! rules that matter report the renaming.
//!
//! Fixtures under `xtask/fixtures/` are small trees that break each rule; the tests run them through this same code.

mod architecture;
mod finding;
mod ledger;
mod project;
mod report;
mod rules;
mod rust;
mod sql;
#[cfg(test)]
mod tests;
mod workspace;

use std::path::PathBuf;
use std::process::ExitCode;

use jiff::civil::Date;

use finding::Finding;
use ledger::Settled;
use project::Project;

#[derive(Debug, thiserror::Error)]
pub enum GuardError {
    #[error("usage: cargo xtask guard [--report json] [--root DIRECTORY]; {0}")]
    Usage(String),
    #[error("cannot read {path}: {cause}")]
    Read { path: String, cause: std::io::Error },
    #[error("cannot list the tracked files of {root} with git: {cause}")]
    List { root: String, cause: String },
    #[error("{path} is not what the guard expects: {cause}")]
    Parse { path: String, cause: toml::de::Error },
    #[error("cannot write the report: {0}")]
    Report(#[from] serde_json::Error),
}

/// Checks the tree and says what it found. The exit code is 1 when there are findings.
pub fn run(arguments: &[String]) -> Result<ExitCode, GuardError> {
    let options = Options::parse(arguments)?;
    let project = Project::load(&options.root)?;
    let today = jiff::Timestamp::now().to_zoned(jiff::tz::TimeZone::UTC).date();
    let settled = check(&project, today);
    if options.report {
        // Not `println!`, which panics when whoever reads the report has seen enough.
        serde_json::to_writer_pretty(std::io::stdout().lock(), &report::Report::new(&project, &settled))?;
    } else {
        for finding in &settled.findings {
            eprintln!("{finding}\n");
        }
        eprintln!("{}", summary(&project, &settled));
    }
    Ok(if settled.findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Everything the rules find, less what is excused on that day.
fn check(project: &Project, today: Date) -> Settled {
    let mut findings: Vec<Finding> = Vec::new();
    for family in rules::FAMILIES {
        (family.check)(project, &mut findings);
    }
    ledger::settle(project, findings, today)
}

fn summary(project: &Project, settled: &Settled) -> String {
    let files = project.files.len();
    let debt = match settled.debt_days_left.iter().min() {
        Some(days) => format!("{} debts, the next due in {days} days", settled.debt_days_left.len()),
        None => "no debt".to_owned(),
    };
    format!("guard: {} findings in {files} files; {debt}", settled.findings.len())
}

struct Options {
    root: PathBuf,
    report: bool,
}

impl Options {
    fn parse(arguments: &[String]) -> Result<Self, GuardError> {
        let (mut root, mut report) = (None, false);
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            match (argument.as_str(), rest.next().map(String::as_str)) {
                ("--report", Some("json")) => report = true,
                ("--root", Some(directory)) => root = Some(PathBuf::from(directory)),
                (other, _) => return Err(GuardError::Usage(format!("not understood: {other}"))),
            }
        }
        let root = root.or_else(nearest_root).ok_or_else(|| {
            GuardError::Usage(format!("no {} here or in any directory above", architecture::FILE))
        })?;
        Ok(Self { root, report })
    }
}

/// Cargo starts the tool in whatever directory of the workspace the caller stands.
fn nearest_root() -> Option<PathBuf> {
    let here = std::env::current_dir().ok()?;
    here.ancestors().find(|directory| directory.join(architecture::FILE).is_file()).map(PathBuf::from)
}
