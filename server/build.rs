//! Embeds the pages of `docs/errors/`, so that the server can show them at each code's address.
#![allow(clippy::print_stdout)] // cargo reads a build script's standard output

use std::error::Error;
use std::fmt::Write as _;
use std::path::Path;

fn main() -> Result<(), Box<dyn Error>> {
    // Asked when it runs, not when it is built: clones that share a target directory share this program as well.
    let manifest = std::env::var("CARGO_MANIFEST_DIR")?;
    let directory = Path::new(&manifest).join("../docs/errors").canonicalize()?;
    println!("cargo::rerun-if-changed={}", directory.display());
    let mut pages: Vec<_> = std::fs::read_dir(&directory)?.collect::<Result<Vec<_>, _>>()?;
    pages.sort_by_key(std::fs::DirEntry::file_name);
    let mut source = String::from("pub static PAGES: &[web::ErrorPage] = &[\n");
    for page in pages {
        let path = page.path();
        let (Some(code), Some("md")) =
            (path.file_stem().and_then(|s| s.to_str()), path.extension().and_then(|e| e.to_str()))
        else {
            continue;
        };
        writeln!(source, "web::ErrorPage {{ code: {code:?}, markdown: include_str!({path:?}) }},")?;
    }
    source.push_str("];\n");
    std::fs::write(Path::new(&std::env::var("OUT_DIR")?).join("error_pages.rs"), source)?;
    Ok(())
}
