#![allow(clippy::unwrap_used)]

mod attack;
mod chain;
mod export;
mod fixture;
mod note;
mod tree;
