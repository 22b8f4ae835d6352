//! Reading a file of lines in large pieces, with a bound on memory whatever the file holds.

use std::fs::File;
use std::io::{self, Read as _};
use std::ops::ControlFlow;
use std::path::Path;

use memchr::{memchr, memrchr};

use crate::export::LINE_BYTES_MAX;

/// Large enough that handing pieces to threads costs nothing next to hashing them.
const CHUNK_BYTES: usize = 8 * LINE_BYTES_MAX;

pub(super) enum Chunk<'a> {
    /// Whole lines. Only the very last line of the file may lack its newline.
    Lines(&'a [u8]),
    /// A line that does not even fit a chunk.
    Oversized,
    End,
}

pub(super) struct LineChunks {
    file: File,
    buffer: Vec<u8>,
    /// What was read and not yet handed out: `buffer[start..end]`.
    start: usize,
    end: usize,
}

impl LineChunks {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self { file: File::open(path)?, buffer: vec![0; CHUNK_BYTES], start: 0, end: 0 })
    }

    pub(super) fn next(&mut self) -> io::Result<Chunk<'_>> {
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        let at_end = self.fill()?;
        let held = &self.buffer[..self.end];
        self.start = match memrchr(b'\n', held) {
            Some(newline) => newline + 1,
            None if at_end => self.end,
            None => return Ok(Chunk::Oversized),
        };
        if self.start == 0 { Ok(Chunk::End) } else { Ok(Chunk::Lines(&held[..self.start])) }
    }

    /// Reads until the buffer is full or the file ends, and says whether it ended.
    fn fill(&mut self) -> io::Result<bool> {
        while self.end < self.buffer.len() {
            match self.file.read(&mut self.buffer[self.end..]) {
                Ok(0) => return Ok(true),
                Ok(count) => self.end += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(false)
    }
}

pub(super) fn lines_of(chunk: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = chunk;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let length = memchr(b'\n', rest).unwrap_or(rest.len());
        let line = &rest[..length];
        rest = rest.get(length + 1..).unwrap_or_default();
        Some(line)
    })
}

/// Visits the lines one by one with their position, until told to stop or one does not fit. For the slow search after
/// something was found wrong; the first pass is [`super::scan`].
pub(super) fn visit_lines(
    path: &Path,
    mut visit: impl FnMut(u64, &[u8]) -> ControlFlow<()>,
) -> io::Result<()> {
    let mut chunks = LineChunks::open(path)?;
    let mut position = 0;
    while let Chunk::Lines(chunk) = chunks.next()? {
        for line in lines_of(chunk) {
            if visit(position, line).is_break() {
                return Ok(());
            }
            position += 1;
        }
    }
    Ok(())
}
