//! Where a browser goes after signing in: a path of ours, never an address somebody slipped in.

const BYTES_MAX: usize = 2_048; // fixed: what browsers and proxies take as a path; longer ones are nobody's bookmark

/// The path if it is one of ours: `/x`, and nothing a browser could read as another host. That rules out `//host`, `/\host`,
/// tabs and line ends (which browsers drop before they look), and `.` segments (which can leave `//` behind).
pub fn return_to(text: &str) -> Option<&str> {
    let plain = text.len() <= BYTES_MAX && text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\');
    let path = text.split(['?', '#']).next()?;
    let mut segments = path.strip_prefix('/')?.split('/').peekable();
    let mut ours = plain;
    while let Some(segment) = segments.next() {
        let last = segments.peek().is_none();
        let decoded = segment.to_ascii_lowercase().replace("%2e", ".");
        ours &= !matches!(decoded.as_str(), "." | "..") && (last || !segment.is_empty());
    }
    ours.then_some(text)
}
