//! Tells the owner of the process when nobody asks anything for a while.

use crate::app::App;
use std::sync::Weak;
use std::time::Duration;

/// For how long nothing is open before the server is called idle.
const IDLE: Duration = Duration::from_secs(1);
/// How often that is looked at.
const LOOK: Duration = Duration::from_millis(500);

/// Calls `when_idle` once after each time in which something was open, for as long as there is a server.
pub(crate) async fn tell_idle(app: Weak<App>, when_idle: fn()) {
    let mut told = None;
    loop {
        tokio::time::sleep(LOOK).await;
        let Some(app) = app.upgrade() else { return };
        let since = app.live.idle_since();
        if since == told || since.is_none_or(|since| since.elapsed() < IDLE) {
            continue;
        }
        told = since;
        if let Err(error) = tokio::task::spawn_blocking(when_idle).await {
            tracing::error!(%error, "nobody is told any longer that the server is idle");
            return;
        }
    }
}
