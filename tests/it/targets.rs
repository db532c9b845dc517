//! Corrections in a team's own system: its database by its statements, its handler by deliveries.

mod bad;
mod handler;
mod kills;
mod matrix;
mod page;
mod settings;
mod shop;
mod unbooked;
