//! What happened to one entry.
//!
//! Given the first line that is not what was sealed, two questions tell the cases apart: is this line another sealed
//! entry, and does the sealed entry stand on another line? Both are asked up to the number in the line, because an
//! attacker who removes an entry renumbers the rest, and without that the answer would be "all altered".
//!
//! | the line is … | the entry is found elsewhere | nowhere |
//! |---|---|---|
//! | unknown | inserted | altered |
//! | a later entry that stands only here | reordered | removed |
//! | a copy of an entry that has its own line | inserted | altered |

use std::fs::File;
use std::io;
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use super::chunk::visit_lines;
use super::finding::Finding;
use super::line::{EntryId, number_of, renumber};
use super::scan::Misnumbered;
use crate::tree::{HASH_BYTES, Hash, LeafHasher, leaf_hash};

/// The most work spent on guessing a renumbered line's former number. Beyond it the line counts as unknown: a less
/// telling answer, instead of a verifier that a crafted line keeps busy for hours.
const RENUMBER_ATTEMPTS_MAX: u64 = 200_000;
const RENUMBER_BYTES_MAX: u64 = 512 * 1024 * 1024;

/// The leaf hashes as sealed, already shown to reproduce a genuine checkpoint of `size` entries.
pub(super) struct SealedLeaves {
    file: File,
    size: u64,
}

impl SealedLeaves {
    pub(super) fn open(path: &Path, size: u64) -> io::Result<Self> {
        Ok(Self { file: File::open(path)?, size })
    }

    fn get(&self, index: u64) -> io::Result<Option<Hash>> {
        if index >= self.size {
            return Ok(None);
        }
        let mut bytes = [0; HASH_BYTES];
        self.file.read_exact_at(&mut bytes, index * HASH_BYTES as u64)?;
        Ok(Some(Hash::from_bytes(bytes)))
    }
}

/// Explains the first line that differs from its sealed leaf hash.
pub(super) fn locate_by_leaf(entries: &Path, sealed: &SealedLeaves, index: u64) -> io::Result<Finding> {
    let line = read_line(entries, index)?;
    let id = EntryId::of(&line);
    let Some(expected) = sealed.get(index)? else { return Ok(Finding::Appended { index, id }) };
    if let Some(unended) = line.strip_suffix(b"\r")
        && leaf_hash(unended) == expected
    {
        return Ok(Finding::LineEnding { index });
    }
    let origin = origin_of(&line, index, sealed)?;
    let origin_hash = match origin {
        Some(origin) => sealed.get(origin)?.map(|hash| (origin, hash)),
        None => None,
    };
    let moved_to = find_line(entries, index, (index, expected))?;
    let origin_elsewhere = match origin_hash {
        Some(wanted) if wanted.0 > index => find_line(entries, index, wanted)?.is_some(),
        // Every line before `index` is as sealed, so an earlier entry has its own line.
        _ => true,
    };
    Ok(match (origin, moved_to) {
        (Some(origin), Some(line)) if !origin_elsewhere => {
            Finding::Reordered { index, line, instead: origin }
        }
        (Some(origin), None) if !origin_elsewhere => Finding::Removed { index, instead: origin },
        (origin, Some(_)) if origin != Some(index) => Finding::Inserted { index, id, copy_of: origin },
        _ => Finding::Altered { index, id },
    })
}

/// Explains the first line whose number is not its position, by numbers alone.
pub(super) fn locate_by_number(entries: &Path, misnumbered: Misnumbered) -> io::Result<Finding> {
    let index = misnumbered.position;
    let id = || read_id(entries, index);
    let Some(found) = misnumbered.found else { return Ok(Finding::Altered { index, id: id()? }) };
    if found < index {
        return Ok(Finding::Inserted { index, id: id()?, copy_of: Some(found) });
    }
    let mut own_line = None;
    visit_lines(entries, |position, line| {
        if position > index && number_of(line) == Some(index) {
            own_line = Some(position);
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    })?;
    Ok(match own_line {
        Some(line) => Finding::Reordered { index, line, instead: found },
        None => Finding::Removed { index, instead: found },
    })
}

pub(super) fn read_id(entries: &Path, index: u64) -> io::Result<Option<EntryId>> {
    read_line(entries, index).map(|line| EntryId::of(&line))
}

fn read_line(entries: &Path, index: u64) -> io::Result<Vec<u8>> {
    let mut found = Vec::new();
    visit_lines(entries, |position, line| {
        if position < index {
            return ControlFlow::Continue(());
        }
        found = line.to_vec();
        ControlFlow::Break(())
    })?;
    Ok(found)
}

/// Which sealed entry the line is: by the number it carries, or by one it may have carried before.
fn origin_of(line: &[u8], index: u64, sealed: &SealedLeaves) -> io::Result<Option<u64>> {
    let Some(number) = number_of(line) else { return Ok(None) };
    if sealed.get(number)? == Some(leaf_hash(line)) {
        return Ok(Some(number));
    }
    let attempts = RENUMBER_ATTEMPTS_MAX.min(RENUMBER_BYTES_MAX / line.len() as u64);
    let mut hasher = LeafHasher::default();
    let mut renumbered = Vec::new();
    for candidate in index..sealed.size.min(index + attempts) {
        if renumber(line, candidate, &mut renumbered)
            && sealed.get(candidate)? == Some(hasher.hash(&renumbered))
        {
            return Ok(Some(candidate));
        }
    }
    Ok(None)
}

/// The line behind `after` that is the given sealed entry, whatever number it now carries.
fn find_line(entries: &Path, after: u64, (number, sealed): (u64, Hash)) -> io::Result<Option<u64>> {
    let mut hasher = LeafHasher::default();
    let mut renumbered = Vec::new();
    let mut found = None;
    visit_lines(entries, |position, line| {
        if position > after && renumber(line, number, &mut renumbered) && hasher.hash(&renumbered) == sealed {
            found = Some(position);
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    })?;
    Ok(found)
}
