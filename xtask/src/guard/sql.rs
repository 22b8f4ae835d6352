//! SQL as the rules see it: words with their lines, comments apart, quoted values left out, cut into statements.
//!
//! Not a parser: the rules ask which schemas are named and which few dangerous phrases occur, and both can be read
//! off the words. Function bodies between dollar quotes are read like the rest, because a migration can hide
//! anything in a `DO` block.

/// A word, a quoted name (without its quotes) or a single character of punctuation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Word<'a> {
    pub text: &'a str,
    /// Counted from 0 at the start of the text.
    pub line: usize,
}

impl Word<'_> {
    pub fn is(&self, keyword: &str) -> bool {
        self.text.eq_ignore_ascii_case(keyword)
    }

    pub fn is_name(&self) -> bool {
        self.text.starts_with(|c: char| c.is_alphabetic() || c == '_')
    }
}

#[derive(Debug, Default)]
pub struct Statement<'a> {
    pub words: Vec<Word<'a>>,
    /// Comments before it and in it, without their dashes.
    pub comments: Vec<&'a str>,
}

impl Statement<'_> {
    pub fn line(&self) -> usize {
        self.words.first().map_or(0, |word| word.line)
    }

    /// Where this phrase occurs.
    pub fn find(&self, phrase: &[&str]) -> Option<usize> {
        self.words
            .windows(phrase.len())
            .position(|words| words.iter().zip(phrase).all(|(word, keyword)| word.is(keyword)))
    }

    pub fn has(&self, phrase: &[&str]) -> bool {
        self.find(phrase).is_some()
    }

    /// What follows `mark` in a comment, if there is something.
    pub fn remark(&self, mark: &str) -> Option<&str> {
        let found = self.comments.iter().find_map(|comment| comment.strip_prefix(mark));
        found.map(str::trim).filter(|remark| !remark.is_empty())
    }

    /// Every `schema.name`, or `alias.column`: the index of the first word.
    pub fn qualified(&self) -> impl Iterator<Item = usize> {
        (0..self.words.len().saturating_sub(2)).filter(|&index| {
            let after_dot = index > 0 && self.words[index - 1].text == ".";
            !after_dot
                && self.words[index].is_name()
                && self.words[index + 1].text == "."
                && self.words[index + 2].is_name()
        })
    }
}

/// Cuts a text at its semicolons.
pub fn statements(text: &str) -> Vec<Statement<'_>> {
    let mut statements = vec![Statement::default()];
    let mut quote: Option<&str> = None;
    let mut reader = Reader { text, at: 0, line: 0 };
    while let Some(piece) = reader.next() {
        if piece.semicolon() && quote.is_none() {
            statements.push(Statement::default());
            continue;
        }
        let Some(statement) = statements.last_mut() else { break };
        match piece {
            Piece::Comment(comment) => statement.comments.push(comment),
            Piece::Dollar(tag) if quote == Some(tag) => quote = None,
            Piece::Dollar(tag) if quote.is_none() => quote = Some(tag),
            Piece::Dollar(_) => {}
            Piece::Word(word) => statement.words.push(word),
        }
    }
    statements.retain(|statement| !statement.words.is_empty());
    statements
}

enum Piece<'a> {
    Word(Word<'a>),
    Comment(&'a str),
    /// `$$` or `$tag$`.
    Dollar(&'a str),
}

impl Piece<'_> {
    fn semicolon(&self) -> bool {
        matches!(self, Self::Word(word) if word.text == ";")
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    line: usize,
}

impl<'a> Reader<'a> {
    fn next(&mut self) -> Option<Piece<'a>> {
        loop {
            let rest = &self.text[self.at..];
            let first = rest.chars().next()?;
            let line = self.line;
            if first.is_whitespace() {
                self.take(first.len_utf8());
            } else if rest.starts_with("--") {
                let comment = self.take(rest.find('\n').unwrap_or(rest.len()));
                return Some(Piece::Comment(comment.trim_start_matches('-').trim()));
            } else if rest.starts_with("/*") {
                let comment = self.take(rest.find("*/").map_or(rest.len(), |end| end + 2));
                return Some(Piece::Comment(comment.trim_matches(['/', '*']).trim()));
            } else if first == '\'' {
                self.take(quoted_length(rest, '\''));
            } else if first == '"' {
                let name = self.take(quoted_length(rest, '"'));
                return Some(Piece::Word(Word { text: name.trim_matches('"'), line }));
            } else if let Some(length) = dollar_length(rest) {
                return Some(Piece::Dollar(self.take(length)));
            } else {
                let is_part = |c: char| c.is_alphanumeric() || c == '_';
                let length = rest.find(|c| !is_part(c)).unwrap_or(rest.len()).max(first.len_utf8());
                return Some(Piece::Word(Word { text: self.take(length), line }));
            }
        }
    }

    fn take(&mut self, length: usize) -> &'a str {
        let taken = &self.text[self.at..self.at + length];
        self.line += taken.bytes().filter(|byte| *byte == b'\n').count();
        self.at += length;
        taken
    }
}

fn quoted_length(rest: &str, quote: char) -> usize {
    rest.char_indices().skip(1).find(|(_, c)| *c == quote).map_or(rest.len(), |(at, _)| at + 1)
}

/// `$$` and `$body$` open or close a quote; `$1` is a parameter.
fn dollar_length(rest: &str) -> Option<usize> {
    let tag = rest.strip_prefix('$')?;
    let end = tag.find('$')?;
    let is_tag = tag[..end]
        .chars()
        .enumerate()
        .all(|(at, c)| c == '_' || c.is_alphabetic() || at > 0 && c.is_numeric());
    is_tag.then_some(end + 2)
}
