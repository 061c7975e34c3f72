//! Looks now and then for models that nobody uses.

use crate::app::App;
use std::sync::Weak;
use std::time::Duration;

/// How often models are looked at.
const LOOK: Duration = Duration::from_millis(100);

/// Unloads models whose time is over, for as long as there is a server.
pub(crate) async fn unload_idle(app: Weak<App>) {
    loop {
        tokio::time::sleep(LOOK).await;
        let Some(app) = app.upgrade() else { return };
        // A model ends on a thread that serves no connection: its own thread is waited for.
        let looked = tokio::task::spawn_blocking(move || app.models.unload_idle(app.options.idle_unload)).await;
        if let Err(error) = looked {
            tracing::error!(%error, "models are no longer unloaded");
            return;
        }
    }
}
