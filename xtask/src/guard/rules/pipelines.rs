//! Pipelines only call make.
//!
//! What a pipeline does and a laptop cannot do is debugged by pushing commits. So every step is a make target, and the
//! pipeline files say only where and when.
//!
//! Read line by line, for the few forms such files take here: `script:` lists in GitLab's, `run:` in GitHub's.

use super::Family;
use crate::guard::finding::{Ban, Finding};
use crate::guard::project::{File, Project};

pub const FAMILY: Family = Family { bans: &[&PIPELINE], check };

static PIPELINE: Ban = Ban::absolute(
    "pipeline",
    "a step that exists only in a pipeline is debugged by pushing commits",
    "move the step into a make target and call that (.ci/run calls `make test` and nothing else)",
);

fn check(project: &Project, findings: &mut Vec<Finding>) {
    for file in &project.files {
        let commands = match file.path.as_str() {
            ".ci/run" => shell_commands(file),
            ".gitlab-ci.yml" => yaml_commands(file, &["script:", "before_script:", "after_script:"]),
            path if path.starts_with(".github/workflows/") => yaml_commands(file, &["run:"]),
            _ => continue,
        };
        for (line, command) in commands.into_iter().filter(|(_, command)| !is_allowed(&file.path, command)) {
            findings.push(PIPELINE.at(&file.path, line, &command, format!("command `{command}`")));
        }
    }
}

fn is_allowed(path: &str, command: &str) -> bool {
    let make = command.strip_prefix("exec ").unwrap_or(command);
    let chained = make.contains(['|', '&', ';', '$', '`', '<', '>']);
    match path {
        ".ci/run" => make == "make test",
        _ => !chained && (make == "make" || make.starts_with("make ")),
    }
}

fn shell_commands(file: &File) -> Vec<(usize, String)> {
    let lines = file.text.lines().enumerate().map(|(index, line)| (index + 1, line.trim()));
    lines
        .filter(|(_, line)| !line.is_empty() && !line.starts_with('#') && !line.starts_with("set -"))
        .map(|(number, line)| (number, line.to_owned()))
        .collect()
}

/// The value of a key, on its line or in the lines that are indented more, as a list or as a block.
fn yaml_commands(file: &File, keys: &[&str]) -> Vec<(usize, String)> {
    let mut commands = Vec::new();
    let mut inside: Option<usize> = None;
    for (index, raw) in file.text.lines().enumerate() {
        let bare = raw.trim_start();
        if bare.is_empty() || bare.starts_with('#') {
            continue;
        }
        let indent = raw.len() - bare.len();
        // A list item may stand as far left as the key it belongs to.
        let item = bare.strip_prefix("- ").map(str::trim_start);
        let belongs = inside.is_some_and(|key| indent > key || indent == key && item.is_some());
        let content = item.unwrap_or(bare);
        let key = keys.iter().find_map(|key| content.strip_prefix(key));
        let value = match key {
            Some(rest) => {
                inside = Some(raw.len() - content.len());
                rest.trim()
            }
            None if belongs => content.trim(),
            None => {
                inside = None;
                continue;
            }
        };
        let value = value.trim_matches(['"', '\'', '[', ']']);
        if !value.is_empty() && !["|", ">", "|-", ">-"].contains(&value) {
            commands.push((index + 1, value.to_owned()));
        }
    }
    commands
}
