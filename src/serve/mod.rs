//! `POST /webhooks/{provider}`: verify the raw bytes, store, answer. Nothing is processed here.
//!
//! The one thing to get right: 2xx only after the event is safe, in a committed transaction or in a synced
//! file. Whatever goes wrong after that is ours to mend and never the provider's to send again.

mod answer;
mod certificate;
mod connections;
mod described;
mod endpoint;
mod gauges;
mod intake;
mod kept;
mod metrics;
mod refusals;
mod server;
mod spill;
mod writer;

pub use certificate::Certificates;
pub use connections::serve_connections;
pub use endpoint::{Endpoint, endpoints, scheme_of};
pub use gauges::Gauges;
pub use intake::{Intake, Unavailable, Writing};
pub use metrics::{Histogram, Metrics};
pub use refusals::Refusals;
pub use server::{App, body_memory, router};
pub use spill::{Spill, Spilled};
