//! The one fast pass over `entries.jsonl`: hash every line, on all cores, and note what a judge needs to know.
//!
//! The pass decides nothing. It computes the root at each size somebody vouched for, and the first place where a line
//! differs from its sealed leaf hash or from its number. On an untouched export that is all the work there is; the
//! expensive questions (where did this line come from?) are asked only when something differs.

use std::fs::File;
use std::io::{self, BufReader, Read as _};
use std::path::Path;
use std::thread;

use memchr::{memchr, memchr_iter};

use super::chunk::{Chunk, LineChunks, lines_of};
use super::line::number_of;
use crate::export::LINE_BYTES_MAX;
use crate::tree::{Frontier, HASH_BYTES, Hash, LeafHasher};

/// More threads than this wait for the disk, and for the one thread that joins their results.
const THREADS_MAX: usize = 8;
const LEAVES_BUFFER_BYTES: usize = 256 * 1024;

pub(super) struct Scan {
    /// Lines hashed: all of them, or those before the first oversized one.
    pub(super) lines: u64,
    pub(super) root: Hash,
    /// The root at each size asked for; none where the file is shorter.
    pub(super) roots: Vec<Option<Hash>>,
    /// The first line that differs from its sealed leaf hash; also where one of the two files ends early.
    pub(super) divergence: Option<u64>,
    pub(super) misnumbered: Option<Misnumbered>,
    pub(super) oversized: bool,
}

/// The first line whose number is not its position.
#[derive(Debug, Clone, Copy)]
pub(super) struct Misnumbered {
    pub(super) position: u64,
    pub(super) found: Option<u64>,
}

/// Scans the entries, and beside them the sealed leaf hashes if the export has them. `sizes` are in rising order.
pub(super) fn scan(entries: &Path, leaves: Option<&Path>, sizes: &[u64]) -> io::Result<Scan> {
    let mut chunks = LineChunks::open(entries)?;
    let mut sealed = leaves.map(SealedStream::open).transpose()?;
    let mut roots = RootsAt::new(sizes);
    let mut divergence = None;
    let mut misnumbered = None;
    let mut oversized = false;
    while !oversized {
        let chunk = match chunks.next()? {
            Chunk::Lines(chunk) => chunk,
            Chunk::Oversized => {
                oversized = true;
                break;
            }
            Chunk::End => break,
        };
        for part in hash_chunk(chunk, roots.frontier.size()) {
            misnumbered = misnumbered.or(part.misnumbered);
            for leaf in part.leaves {
                if divergence.is_none()
                    && let Some(stream) = &mut sealed
                    && stream.next()? != Some(leaf)
                {
                    divergence = Some(roots.frontier.size());
                }
                roots.append(leaf);
            }
            if part.oversized {
                oversized = true;
                break;
            }
        }
    }
    let lines = roots.frontier.size();
    if divergence.is_none()
        && let Some(stream) = &mut sealed
        && stream.has_more()?
    {
        divergence = Some(lines);
    }
    Ok(Scan { lines, root: roots.frontier.root(), roots: roots.finish(), divergence, misnumbered, oversized })
}

/// The roots of the sealed leaf hashes themselves at each size: whether `leaves` is what the checkpoints were made of.
pub(super) fn sealed_roots(leaves: &Path, sizes: &[u64]) -> io::Result<Vec<Option<Hash>>> {
    let mut stream = SealedStream::open(leaves)?;
    let mut roots = RootsAt::new(sizes);
    while !roots.is_complete()
        && let Some(leaf) = stream.next()?
    {
        roots.append(leaf);
    }
    Ok(roots.finish())
}

/// A growing tree that notes its root at given sizes.
struct RootsAt<'s> {
    frontier: Frontier,
    sizes: &'s [u64],
    roots: Vec<Option<Hash>>,
}

impl<'s> RootsAt<'s> {
    fn new(sizes: &'s [u64]) -> Self {
        let mut empty = Self { frontier: Frontier::default(), sizes, roots: Vec::with_capacity(sizes.len()) };
        empty.note();
        empty
    }

    fn append(&mut self, leaf: Hash) {
        self.frontier.append(leaf);
        self.note();
    }

    fn note(&mut self) {
        while self.sizes.get(self.roots.len()) == Some(&self.frontier.size()) {
            self.roots.push(Some(self.frontier.root()));
        }
    }

    fn is_complete(&self) -> bool {
        self.roots.len() == self.sizes.len()
    }

    fn finish(mut self) -> Vec<Option<Hash>> {
        self.roots.resize(self.sizes.len(), None);
        self.roots
    }
}

/// What one thread made of its lines.
struct HashedPart {
    leaves: Vec<Hash>,
    misnumbered: Option<Misnumbered>,
    oversized: bool,
}

/// Hashes a chunk's lines, one part to each core, in order.
fn hash_chunk(chunk: &[u8], first: u64) -> Vec<HashedPart> {
    let threads = thread::available_parallelism().map_or(1, usize::from).min(THREADS_MAX);
    let mut position = first;
    let parts: Vec<(&[u8], u64)> = split_evenly(chunk, threads)
        .map(|part| {
            let start = position;
            position += memchr_iter(b'\n', part).count() as u64;
            (part, start)
        })
        .collect();
    thread::scope(|scope| {
        let (own, others) = parts.split_first().map_or((None, &[][..]), |(own, others)| (Some(own), others));
        let running: Vec<_> =
            others.iter().map(|&(part, start)| scope.spawn(move || hash_part(part, start))).collect();
        let mut hashed: Vec<HashedPart> = own.iter().map(|(part, start)| hash_part(part, *start)).collect();
        for thread in running {
            hashed.push(thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        hashed
    })
}

fn hash_part(part: &[u8], first: u64) -> HashedPart {
    let mut hasher = LeafHasher::default();
    let mut hashed = HashedPart { leaves: Vec::new(), misnumbered: None, oversized: false };
    for (position, line) in (first..).zip(lines_of(part)) {
        if line.len() > LINE_BYTES_MAX {
            hashed.oversized = true;
            break;
        }
        if hashed.misnumbered.is_none() {
            let found = number_of(line);
            hashed.misnumbered = (found != Some(position)).then_some(Misnumbered { position, found });
        }
        hashed.leaves.push(hasher.hash(line));
    }
    hashed
}

/// Cuts a chunk behind newlines into at most `count` parts of about the same length.
fn split_evenly(chunk: &[u8], count: usize) -> impl Iterator<Item = &[u8]> {
    let length = chunk.len() / count.max(1) + 1;
    let mut rest = chunk;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let cut =
            rest.get(length..).and_then(|tail| memchr(b'\n', tail)).map_or(rest.len(), |at| length + at + 1);
        let (part, tail) = rest.split_at(cut);
        rest = tail;
        Some(part)
    })
}

/// The file `leaves`, read from the front.
struct SealedStream(BufReader<File>);

impl SealedStream {
    fn open(path: &Path) -> io::Result<Self> {
        Ok(Self(BufReader::with_capacity(LEAVES_BUFFER_BYTES, File::open(path)?)))
    }

    /// The next leaf hash; none at the end, also when the file ends within one.
    fn next(&mut self) -> io::Result<Option<Hash>> {
        let mut bytes = [0; HASH_BYTES];
        match self.0.read_exact(&mut bytes) {
            Ok(()) => Ok(Some(Hash::from_bytes(bytes))),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn has_more(&mut self) -> io::Result<bool> {
        Ok(self.0.by_ref().take(1).read_to_end(&mut Vec::new())? > 0)
    }
}
