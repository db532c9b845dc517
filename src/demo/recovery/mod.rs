//! Four real kills, each at a named point, and what is left of each: the real receiver and worker as processes of
//! their own, deliveries over HTTP, a provider and a team on loopback.
//!
//! The one thing to get right: a process is killed only when it is seen to be at the point, from outside. Nothing in
//! the product knows of it: a trigger of the demonstration's own store, or a provider that does not answer, holds it.

pub mod check;
mod hold;
mod point;
mod process;
pub mod show;
pub mod snapshot;
mod stage;
mod team;

pub use point::Point;
pub use stage::Stage;

use super::show::Paint;
use anyhow::Result;
use check::{Check, Sent};

/// Tells the story. True where every check came out right.
///
/// # Errors
/// When it cannot be staged: a process does not start, or is not seen to reach its point.
pub async fn tell(stage: &mut Stage, paint: Paint, say: fn(&str) -> Result<()>) -> Result<bool> {
    say(&show::opening(paint, &stage.cast()))?;
    let mut accepted: Vec<Sent> = Vec::new();
    let mut told = Told { paint, say, wrong: 0, checks: 0 };
    for (number, point) in (1..).zip(Point::ALL) {
        let sent = stage.delivery_of(point)?;
        say(&show::point(paint, number, point, &sent))?;
        let mut checks = stage.kill_at(point, &sent).await?;
        let left = stage.look().await?;
        checks.extend(check::left(point, &sent, &accepted, &left));
        told.scene("As the kill left it", &left, &checks)?;

        checks = stage.start_again(point, &sent).await?;
        checks.push(stage.wait_for_the_end(&sent).await?);
        accepted.push(sent);
        let after = stage.look().await?;
        checks.extend(check::after(&accepted, &after));
        told.scene("Started again", &after, &checks)?;
    }
    say(&show::again(paint))?;
    let mut checks = stage.send_everything_again().await?;
    let end = stage.look().await?;
    checks.push(check::all_there(&stage.every_event(), &end));
    checks.extend(check::after(&accepted, &end));
    checks.push(check::nothing_open(&end));
    checks.push(stage.reconcile()?);
    told.scene("At the end", &end, &checks)?;
    say(&show::verdict(paint, told.checks, told.wrong))?;
    Ok(told.wrong == 0)
}

/// What was said so far.
struct Told {
    paint: Paint,
    say: fn(&str) -> Result<()>,
    checks: usize,
    wrong: usize,
}

impl Told {
    fn scene(&mut self, title: &str, snapshot: &snapshot::Snapshot, checks: &[Check]) -> Result<()> {
        self.checks += checks.len();
        self.wrong += checks.iter().filter(|check| !check.is_right).count();
        (self.say)(&show::scene(self.paint, title, snapshot, checks))
    }
}
