//! A Stripe-shaped provider on loopback with planted faults, and the handlers that it delivers to.
