//! A flag that asks running work to stop cleanly: what is being written is finished, the rest stays open.

use tokio::sync::watch;

/// Raises the flag. The flag stays down when this is dropped.
#[derive(Debug)]
pub struct CancelHandle(watch::Sender<bool>);

/// Looks at the flag. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Cancel(watch::Receiver<bool>);

impl CancelHandle {
    /// Asks everybody to stop.
    pub fn cancel(&self) {
        self.0.send_replace(true);
    }
}

impl Cancel {
    /// A flag that is down, and what raises it.
    #[must_use]
    pub fn new() -> (CancelHandle, Self) {
        let (sender, receiver) = watch::channel(false);
        (CancelHandle(sender), Self(receiver))
    }

    /// A flag that nobody raises.
    #[must_use]
    pub fn never() -> Self {
        Self::new().1
    }

    /// Whether it is up.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        *self.0.borrow()
    }

    /// Returns once it is up; never where nobody can raise it any more.
    pub async fn cancelled(&self) {
        let mut receiver = self.0.clone();
        if receiver.wait_for(|is_up| *is_up).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
