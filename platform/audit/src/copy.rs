//! Reading entries back from the second place.
//!
//! Objects are found by their names, which say which entries they hold. Nothing is judged here: whoever wants to know
//! whether a line is what was sealed hashes it.

use std::collections::BTreeMap;

use blob::{BlobError, BlobPath, Blobs};
use bytes::Bytes;

/// Where the entries are in the second place.
pub(crate) const ENTRIES: &str = "entries";
/// Object names read at once.
// fixed: a directory is read whole for each page, so pages are large; some megabytes
const NAMES: usize = 20_000;
/// No object holds more entries than this: an entry's line has some hundred bytes, and an object a bounded number.
// fixed: follows from the layout of lines and from the size of an object
const OBJECT_ENTRIES_MAX: u64 = 100_000;

/// The copy, read mostly from front to back: the object last used is kept, and the names around it.
pub(crate) struct Copy<'b> {
    blobs: &'b Blobs,
    names: BTreeMap<u64, (u64, BlobPath)>,
    object: Option<Object>,
}

struct Object {
    from: u64,
    to: u64,
    bytes: Bytes,
    /// Where each line begins.
    starts: Vec<usize>,
}

impl<'b> Copy<'b> {
    pub(crate) fn new(blobs: &'b Blobs) -> Self {
        Self { blobs, names: BTreeMap::new(), object: None }
    }

    /// The line of an entry, without its newline; `None` if the copy has it not.
    pub(crate) async fn line(&mut self, index: u64) -> Result<Option<Bytes>, BlobError> {
        if !self.object.as_ref().is_some_and(|object| (object.from..object.to).contains(&index)) {
            if self.name_of(index).is_none() {
                self.list_around(index).await?;
            }
            self.object = match self.name_of(index) {
                None => None,
                Some((from, to, path)) => {
                    self.blobs.get(&path).await?.map(|bytes| Object::new(from, to, bytes))
                }
            };
        }
        Ok(self.object.as_ref().and_then(|object| object.line(index)))
    }

    fn name_of(&self, index: u64) -> Option<(u64, u64, BlobPath)> {
        let (from, (to, path)) = self.names.range(..=index).next_back()?;
        (index < *to).then(|| (*from, *to, path.clone()))
    }

    /// Names sort as their numbers do, so the listing begins where the object wanted can begin at the earliest.
    async fn list_around(&mut self, index: u64) -> Result<(), BlobError> {
        self.names.clear();
        let directory = BlobPath::parse(ENTRIES).ok();
        let earliest = index.checked_sub(OBJECT_ENTRIES_MAX);
        let mut after = earliest.and_then(|from| BlobPath::parse(&name(from, 0)).ok());
        loop {
            let page = self.blobs.list(directory.as_ref(), after.as_ref(), NAMES).await?;
            let Some(last) = page.last() else { return Ok(()) };
            after = Some(last.path.clone());
            for info in page {
                if let Some((from, to)) = range(&info.path) {
                    self.names.insert(from, (to, info.path));
                }
            }
            if self.names.last_key_value().is_some_and(|(from, _)| *from > index) {
                return Ok(());
            }
        }
    }
}

impl Object {
    fn new(from: u64, to: u64, bytes: Bytes) -> Self {
        let ends = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1);
        let starts = std::iter::once(0).chain(ends).collect();
        Self { from, to, bytes, starts }
    }

    fn line(&self, index: u64) -> Option<Bytes> {
        let position = usize::try_from(index.checked_sub(self.from)?).ok()?;
        let (start, end) = (*self.starts.get(position)?, *self.starts.get(position + 1)?);
        Some(self.bytes.slice(start..end - 1))
    }
}

/// The name of the object that holds entries `from..to`.
pub(crate) fn name(from: u64, to: u64) -> String {
    format!("{ENTRIES}/{from:020}-{to:020}.jsonl")
}

fn range(path: &BlobPath) -> Option<(u64, u64)> {
    let name = path.as_str().strip_prefix(ENTRIES)?.strip_prefix('/')?.strip_suffix(".jsonl")?;
    let (from, to) = name.split_once('-')?;
    Some((from.parse().ok()?, to.parse().ok()?))
}
