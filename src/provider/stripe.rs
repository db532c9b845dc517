//! Stripe: wire JSON to facts. Pure; wire types stay in this file.
