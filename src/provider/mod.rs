//! Providers: one pure file each (wire → facts, streams, state ranks); `client.rs` and `pager.rs` are the
//! only HTTP out.

pub mod stripe;
