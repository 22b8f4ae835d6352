//! The server's configuration: what must hold on the command line, everything else in a file written at each start.
//!
//! The command line outranks every file, `ALTER SYSTEM` included, so the settings our way in depends on are there.
//! The file lies beside the cluster, not in it (see the crate's invariants), and is ours: an operator's changes
//! come through [`Options::settings`](crate::Options), where they survive the next start.

use std::ffi::OsString;
use std::path::Path;

use crate::error::Result;
use crate::layout::{Layout, write_readable};
use crate::server::PORT;

/// One way in, the socket, and always with a password.
const ACCESS_RULES: &str = "# Written by gpuaasd at every start.\nlocal all all scram-sha-256\n";

/// What we want of any server. Locale, time zone and text search are fixed because their defaults come from the
/// environment of whoever started it.
const ALWAYS: [(&str, &str); 10] = [
    ("lc_messages", "C"),
    ("lc_monetary", "C"),
    ("lc_numeric", "C"),
    ("lc_time", "C"),
    ("timezone", "UTC"),
    ("log_timezone", "UTC"),
    ("datestyle", "iso, ymd"),
    ("default_text_search_config", "pg_catalog.english"),
    ("log_destination", "stderr"),
    ("logging_collector", "off"),
];

/// For clusters that are thrown away: nothing waits for the disk, and a crash of the machine (not of the server)
/// may destroy the cluster.
const THROWAWAY: [(&str, &str); 3] =
    [("fsync", "off"), ("synchronous_commit", "off"), ("full_page_writes", "off")];

/// Writes the files a start reads.
pub(crate) fn write(layout: &Layout, settings: &[(String, String)], durable: bool) -> Result<()> {
    write_readable(&layout.access_rules(), ACCESS_RULES)?;
    write_readable(&layout.configuration(), &text(settings, durable))
}

/// The arguments of `postgres`.
pub(crate) fn arguments(layout: &Layout, socket_dir: &Path) -> Vec<OsString> {
    let fixed = [
        ("config_file", layout.configuration().into_os_string()),
        ("hba_file", layout.access_rules().into_os_string()),
        ("listen_addresses", OsString::new()),
        ("unix_socket_directories", list_of_one(socket_dir).into()),
        ("port", PORT.to_string().into()),
    ];
    let mut arguments: Vec<OsString> = vec!["-D".into(), layout.cluster().into_os_string()];
    for (name, value) in fixed {
        let mut setting = OsString::from(format!("{name}="));
        setting.push(value);
        arguments.extend(["-c".into(), setting]);
    }
    arguments
}

/// A later line outranks an earlier one: the caller's settings come last.
fn text(settings: &[(String, String)], durable: bool) -> String {
    let throwaway: &[(&str, &str)] = if durable { &[] } else { &THROWAWAY };
    let ours = ALWAYS.iter().chain(throwaway).copied();
    let theirs = settings.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let lines = ours.chain(theirs).map(|(name, value)| format!("{name} = {}\n", quoted(value)));
    std::iter::once("# Written by gpuaasd at every start.\n".to_owned()).chain(lines).collect()
}

fn quoted(value: &str) -> String {
    format!("'{}'", value.replace('\\', "\\\\").replace('\'', "''").replace('\n', "\\n"))
}

/// `unix_socket_directories` is a list, whose items may need quotes.
fn list_of_one(path: &Path) -> String {
    format!("\"{}\"", path.to_string_lossy().replace('"', "\"\""))
}
