//! Rust source as the rules see it: a flat row of tokens, comments apart, test code marked.
//!
//! The lexer is the compiler's own, as rust-analyzer publishes it. Marking follows attributes: what stands under
//! `#[test]` or `#[cfg(test)]` is test code up to the end of that item, and most rules leave it alone.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use rustc_lexer::{FrontmatterAllowed, LiteralKind, TokenKind, tokenize};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Word,
    Number,
    /// A string literal of any sort.
    Text,
    /// Punctuation and everything else; `::` is one token.
    Other,
}

#[derive(Debug)]
pub struct Token {
    pub kind: Kind,
    pub line: usize,
    pub in_test: bool,
    range: Range<usize>,
}

#[derive(Debug)]
pub struct Comment {
    pub line: usize,
    range: Range<usize>,
}

#[derive(Debug)]
pub struct RustSource {
    text: Arc<str>,
    pub tokens: Vec<Token>,
    pub comments: Vec<Comment>,
    /// Where each word stands: most rules ask for words that most files do not have.
    words: HashMap<Box<str>, Vec<usize>>,
}

impl RustSource {
    /// `all_test` for a file that holds nothing but tests.
    pub fn lex(text: Arc<str>, all_test: bool) -> Self {
        let (mut tokens, mut comments) = (Vec::<Token>::new(), Vec::new());
        let (mut start, mut line) = (0, 1);
        for raw in tokenize(&text, FrontmatterAllowed::No) {
            let range = start..start + raw.len as usize;
            let kind = match raw.kind {
                TokenKind::Whitespace => None,
                TokenKind::LineComment { .. } | TokenKind::BlockComment { .. } => {
                    comments.push(Comment { line, range: range.clone() });
                    None
                }
                other => Some(kind_of(other)),
            };
            if let Some(kind) = kind {
                let joins = raw.kind == TokenKind::Colon
                    && tokens
                        .last()
                        .is_some_and(|last| &text[last.range.clone()] == ":" && last.range.end == start);
                match tokens.last_mut().filter(|_| joins) {
                    Some(last) => last.range.end = range.end,
                    None => tokens.push(Token { kind, line, in_test: all_test, range: range.clone() }),
                }
            }
            line += text[range.clone()].bytes().filter(|byte| *byte == b'\n').count();
            start = range.end;
        }
        let mut words: HashMap<Box<str>, Vec<usize>> = HashMap::new();
        for (index, token) in tokens.iter().enumerate().filter(|(_, token)| token.kind == Kind::Word) {
            let word = &text[token.range.clone()];
            match words.get_mut(word) {
                Some(places) => places.push(index),
                None => drop(words.insert(word.into(), vec![index])),
            }
        }
        let mut source = Self { text, tokens, comments, words };
        if !all_test {
            source.mark_tests();
        }
        source
    }

    /// The token's text; empty past the end, so that looking ahead needs no bounds.
    pub fn text(&self, index: usize) -> &str {
        self.tokens.get(index).map_or("", |token| &self.text[token.range.clone()])
    }

    pub fn comment_text(&self, comment: &Comment) -> &str {
        &self.text[comment.range.clone()]
    }

    pub fn line(&self, index: usize) -> usize {
        self.tokens.get(index).map_or(1, |token| token.line)
    }

    /// Does the row of tokens at `index` read like this?
    pub fn reads(&self, index: usize, pattern: &[&str]) -> bool {
        pattern.iter().enumerate().all(|(offset, want)| self.text(index + offset) == *want)
    }

    /// Where product code reads like this.
    pub fn find(&self, pattern: &[&str]) -> Vec<usize> {
        self.find_all(pattern).into_iter().filter(|index| !self.tokens[*index].in_test).collect()
    }

    /// Where any code, tests included, reads like this. The pattern holds at least one word.
    pub fn find_all(&self, pattern: &[&str]) -> Vec<usize> {
        let is_word = |text: &&str| text.starts_with(|c: char| c.is_alphabetic());
        let Some(anchor) = pattern.iter().position(is_word) else { return Vec::new() };
        let places = self.words.get(pattern[anchor]).map(Vec::as_slice).unwrap_or_default();
        let starts = places.iter().filter_map(|place| place.checked_sub(anchor));
        starts.filter(|start| self.reads(*start, pattern)).collect()
    }

    /// Is this word the first of its path? `http` is in `http::Method` and is not in `crate::http::Method`.
    pub fn starts_path(&self, index: usize) -> bool {
        let Some(before) = index.checked_sub(1).filter(|before| self.text(*before) == "::") else {
            return true;
        };
        let word_before = before.checked_sub(1).and_then(|index| self.tokens.get(index));
        word_before.is_none_or(|token| token.kind != Kind::Word || self.text(before - 1) == "use")
    }

    /// String literals of product code: the token's index and what stands between the quotes, escapes as written.
    pub fn strings(&self) -> impl Iterator<Item = (usize, &str)> {
        self.tokens.iter().enumerate().filter(|(_, token)| token.kind == Kind::Text && !token.in_test).map(
            |(index, _)| {
                let text = self.text(index).trim_start_matches(['b', 'c', 'r']).trim_matches('#');
                (index, text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text))
            },
        )
    }

    /// The index of the bracket that closes the one at `open`.
    pub fn closing(&self, open: usize) -> usize {
        let mut depth = 0usize;
        for index in open..self.tokens.len() {
            match self.text(index) {
                "(" | "[" | "{" => depth += 1,
                ")" | "]" | "}" => depth = depth.saturating_sub(1),
                _ => {}
            }
            if depth == 0 {
                return index;
            }
        }
        self.tokens.len()
    }

    fn mark_tests(&mut self) {
        let mut index = 0;
        while index < self.tokens.len() {
            let inner = self.reads(index, &["#", "!", "["]);
            if !inner && !self.reads(index, &["#", "["]) {
                index += 1;
                continue;
            }
            let open = index + if inner { 2 } else { 1 };
            let close = self.closing(open);
            if !self.is_test_attribute(open + 1, close) {
                index = close + 1;
                continue;
            }
            let end = if inner { self.tokens.len() } else { self.item_end(close + 1) };
            for token in self.tokens.iter_mut().take(end).skip(index) {
                token.in_test = true;
            }
            index = end;
        }
    }

    /// `test`, `tokio::test`, `cfg(test)`, `cfg(all(test, …))`; not `cfg(not(test))`.
    fn is_test_attribute(&self, start: usize, close: usize) -> bool {
        let words: Vec<&str> = (start..close).map(|index| self.text(index)).collect();
        match words.first() {
            Some(&"cfg") => words.contains(&"test") && !words.contains(&"not"),
            Some(_) => words.iter().take_while(|word| **word != "(").last() == Some(&"test"),
            None => false,
        }
    }

    /// One past the end of the item that starts here: its `;`, its body's closing brace, or the end of its parent.
    fn item_end(&self, start: usize) -> usize {
        let mut index = start;
        while index < self.tokens.len() {
            match self.text(index) {
                ";" => return index + 1,
                "{" => return self.closing(index) + 1,
                "(" | "[" => index = self.closing(index) + 1,
                ")" | "]" | "}" => return index,
                _ => index += 1,
            }
        }
        index
    }
}

fn kind_of(kind: TokenKind) -> Kind {
    match kind {
        TokenKind::Ident | TokenKind::RawIdent => Kind::Word,
        TokenKind::Literal { kind: LiteralKind::Int { .. } | LiteralKind::Float { .. }, .. } => Kind::Number,
        TokenKind::Literal {
            kind:
                LiteralKind::Str { .. }
                | LiteralKind::ByteStr { .. }
                | LiteralKind::CStr { .. }
                | LiteralKind::RawStr { .. }
                | LiteralKind::RawByteStr { .. }
                | LiteralKind::RawCStr { .. },
            ..
        } => Kind::Text,
        _ => Kind::Other,
    }
}
