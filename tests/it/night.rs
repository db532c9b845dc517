//! The night shift: who is told of a run and of what, numbers, logs, schedules, and the lease.

mod logs;
mod lease;
mod missed;
mod numbers;
mod pooler;
mod post;
mod schedule;
mod telling;
