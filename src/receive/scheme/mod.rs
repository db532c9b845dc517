//! One file for each scheme, each with `authenticate` (which secret signed these bytes) and `read` (which events they hold).
//! Facts about a provider stand here with their sources and nowhere else.

pub mod adyen;
pub mod asaas;
pub mod discord;
pub mod github;
pub mod hmac;
pub mod mercado_pago;
pub mod paddle;
pub mod pagbank;
pub mod paypal;
pub mod shopify;
pub mod slack;
pub mod square;
pub mod standard_webhooks;
pub mod stripe;
pub mod twilio;
