//! One page per error code, embedded from `docs/errors/` by the build script.

include!(concat!(env!("OUT_DIR"), "/error_pages.rs"));
