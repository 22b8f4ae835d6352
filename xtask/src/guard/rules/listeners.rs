//! Who may open a port: the few files listed, and nothing that runs on a node.
//!
//! Each listener is a surface with its own trust (public, node, internal), so all of them are made in one place that
//! sets their limits. The agent only dials out: a host full of tenants must have no port of ours to attack.

use super::{Family, spelling};
use crate::guard::architecture::is_under;
use crate::guard::finding::{Ban, Finding};
use crate::guard::project::Project;

pub const FAMILY: Family = Family { bans: &[&LISTENER, &NODE_LISTENER], check };

static LISTENER: Ban = Ban::new(
    "listener",
    "every open port is a surface with its own trust, limits and TLS; one opened in passing has none of them",
    "serve through one of the server's listeners, or list the file in architecture.toml with its reason",
);

static NODE_LISTENER: Ban = Ban::absolute(
    "node-listener",
    "tenants run on the same host: a port of ours there is theirs to attack",
    "dial out to the control plane and let it answer",
);

const OPENERS: &[&[&str]] = &[
    &["TcpListener", "::", "bind"],
    &["TcpListener", "::", "from_std"],
    &["TcpListener", "as"],
    &["TcpSocket", "::"],
    &["UnixListener"],
    &["UnixDatagram", "::", "bind"],
    &["UdpSocket", "::", "bind"],
];

fn check(project: &Project, findings: &mut Vec<Finding>) {
    for (file, source) in project.rust() {
        let ban = if is_under(&file.path, "node") { &NODE_LISTENER } else { &LISTENER };
        let mut lines = Vec::new();
        for pattern in OPENERS {
            for index in source.find(pattern) {
                let line = source.line(index);
                if !lines.contains(&line) {
                    let item = spelling(pattern);
                    findings.push(ban.at(&file.path, line, &item, format!("use of {item}")));
                    lines.push(line);
                }
            }
        }
    }
}
