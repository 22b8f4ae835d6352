#![allow(clippy::unwrap_used)]

mod attack;
mod export;
mod fixture;
mod note;
mod tree;
