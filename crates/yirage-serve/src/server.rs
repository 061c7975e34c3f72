//! A server: listens, serves connections within limits, and ends in order.

use crate::app::App;
use crate::idle::tell_idle;
use crate::limits::{BROKEN_TIME, MAX_CONNECTIONS, MAX_HEAD, MAX_HEADERS, THREAD_REST, WORKERS};
use crate::models::{ModelEntry, Models};
use crate::options::ServeOptions;
use crate::router::router;
use crate::signals::Signals;
use crate::unloading::unload_idle;
use crate::unstalled::Unstalled;
use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::collections::BTreeSet;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;

/// Threads that serve connections: what they do is short, and the processors are for models.
const THREADS: usize = 2;

/// How often the end of open requests is looked for while the server ends.
const LOOK: Duration = Duration::from_millis(20);

/// How long connections may take to write out what is finished, once nothing is open.
const WRITE_OUT: Duration = Duration::from_secs(2);

/// How long nothing is accepted after the system refused a connection.
const REFUSED: Duration = Duration::from_millis(50);

/// Why there is no server.
#[derive(Debug, Error)]
pub enum ServeError {
    /// Other machines would be listened to, and everybody there could ask.
    #[error(
        "{address} is open to other machines and there is no key: give --api-key-file, or --insecure to let everybody in"
    )]
    Open {
        /// Where it would listen.
        address: SocketAddr,
    },
    /// There is no model.
    #[error("there is no model to serve")]
    NoModel,
    /// Two models under one name, or one without a name.
    #[error("the name {name:?} is that of two models; give each a name of its own")]
    Name {
        /// The name.
        name: String,
    },
    /// The address cannot be listened to.
    #[error("{address} cannot be listened to: {source}; give another --port (0 takes any that is free) or --host")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// The system gives no threads.
    #[error("no threads to serve connections: {0}")]
    Threads(io::Error),
    /// The system does not tell the process that it is to end.
    #[error("requests to end cannot be taken: {0}")]
    Signals(io::Error),
    /// The server's threads broke.
    #[error("the server has broken down; please report this")]
    Broken,
}

/// How a server ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Drained {
    /// Requests that were cut off at the deadline.
    pub cut: usize,
}

/// Ends a server that cannot go on.
#[derive(Clone)]
pub struct ServerBreaker {
    app: Arc<App>,
    stop: watch::Sender<StopMode>,
}

impl ServerBreaker {
    /// From now on the server takes nothing new and says why; it ends as if it was asked to.
    pub fn trip(&self, why: &str) {
        self.app.is_broken_by(why);
        self.stop.send_if_modified(|mode| {
            let first = *mode == StopMode::No;
            if first {
                *mode = StopMode::InOrder;
            }
            first
        });
    }

    /// Why it was ended by this.
    pub fn tripped(&self) -> Option<&str> {
        self.app.broken()
    }
}

/// A server that listens and does not answer yet.
pub struct Server {
    app: Arc<App>,
    listener: std::net::TcpListener,
    address: SocketAddr,
}

/// A server that answers, on threads of its own. Dropped, it ends without waiting for open requests.
pub struct RunningServer {
    address: SocketAddr,
    stop: watch::Sender<StopMode>,
    thread: Option<JoinHandle<Result<Drained, ServeError>>>,
}

/// A server that answers on the caller's thread, until the process is asked to end.
pub struct UntilSignal {
    server: Server,
    runtime: Runtime,
    stop: watch::Sender<StopMode>,
    stopped: watch::Receiver<StopMode>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum StopMode {
    No,
    /// When open requests have ended, or at the deadline.
    InOrder,
    Now,
}

impl Server {
    /// Whether others than this machine could ask without a key, which only somebody may want who says so.
    ///
    /// # Errors
    /// [`ServeError::Open`].
    pub fn check_access(options: &ServeOptions) -> Result<(), ServeError> {
        let address = options.address;
        if address.ip().is_loopback() || !options.keys.is_empty() || options.insecure {
            return Ok(());
        }
        Err(ServeError::Open { address })
    }

    /// Listens. Nobody is answered yet.
    ///
    /// # Errors
    /// [`ServeError`].
    pub fn bind(options: ServeOptions, models: Vec<ModelEntry>) -> Result<Server, ServeError> {
        let address = options.address;
        Server::check_access(&options)?;
        check_names(&models)?;
        let failed = |source| ServeError::Bind { address, source };
        let listener = std::net::TcpListener::bind(address).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let models = Models::new(models, options.memory);
        Ok(Server { app: Arc::new(App::new(options, models)), listener, address })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Opens the models of these names, so that the first request need not wait.
    ///
    /// # Errors
    /// What the first that cannot be opened says.
    pub fn open(&self, names: &[String]) -> Result<(), String> {
        names
            .iter()
            .try_for_each(|name| self.app.models.lease_named(Some(name)).map(drop).map_err(|error| error.message))
    }

    /// Answers, on threads of its own.
    ///
    /// # Errors
    /// [`ServeError::Threads`].
    pub fn start(self) -> Result<RunningServer, ServeError> {
        let (stop, stopped) = watch::channel(StopMode::No);
        let address = self.address;
        let thread = std::thread::Builder::new().name("yirage-serve".into());
        let thread = thread.spawn(move || self.run(stopped)).map_err(ServeError::Threads)?;
        Ok(RunningServer { address, stop, thread: Some(thread) })
    }

    /// Takes the process's requests to end (SIGTERM, SIGINT, Ctrl-C) from now on, so that whoever is told the address
    /// may send one at once.
    ///
    /// # Errors
    /// [`ServeError::Threads`], [`ServeError::Signals`].
    pub fn until_signal(self) -> Result<UntilSignal, ServeError> {
        let (stop, stopped) = watch::channel(StopMode::No);
        let runtime = runtime()?;
        let mut signals = {
            let _within = runtime.enter();
            Signals::taken().map_err(ServeError::Signals)?
        };
        let asked = stop.clone();
        runtime.spawn(async move {
            for next in [StopMode::InOrder, StopMode::Now] {
                signals.next().await;
                asked.send_replace(next);
            }
            std::future::pending::<()>().await;
        });
        Ok(UntilSignal { server: self, runtime, stop, stopped })
    }

    fn run(self, stopped: watch::Receiver<StopMode>) -> Result<Drained, ServeError> {
        let runtime = runtime()?;
        let drained = self.serve_on(&runtime, stopped);
        runtime.shutdown_timeout(WRITE_OUT);
        drained
    }

    fn serve_on(self, runtime: &Runtime, stopped: watch::Receiver<StopMode>) -> Result<Drained, ServeError> {
        let Server { app, listener, address } = self;
        runtime.block_on(async move {
            let listener = TcpListener::from_std(listener).map_err(|source| ServeError::Bind { address, source })?;
            Ok(serve(app, listener, stopped).await)
        })
    }
}

impl UntilSignal {
    /// What ends the server where it cannot go on.
    pub fn breaker(&self) -> ServerBreaker {
        ServerBreaker { app: self.server.app.clone(), stop: self.stop.clone() }
    }

    /// Answers until the process is asked to end; a second such request ends it at once.
    ///
    /// # Errors
    /// [`ServeError`].
    pub fn run(self) -> Result<Drained, ServeError> {
        let drained = self.server.serve_on(&self.runtime, self.stopped);
        self.runtime.shutdown_background();
        drained
    }
}

impl RunningServer {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Takes nothing new, waits for what is open up to the deadline, and ends.
    ///
    /// # Errors
    /// [`ServeError::Broken`].
    pub fn stop(mut self) -> Result<Drained, ServeError> {
        self.stop.send_replace(StopMode::InOrder);
        let thread = self.thread.take().ok_or(ServeError::Broken)?;
        thread.join().map_err(|_| ServeError::Broken)?
    }
}

impl Drop for RunningServer {
    fn drop(&mut self) {
        self.stop.send_replace(StopMode::Now);
        if let Some(thread) = self.thread.take() {
            // How it ended is told to whoever stops it.
            let _ = thread.join();
        }
    }
}

fn check_names(models: &[ModelEntry]) -> Result<(), ServeError> {
    let mut seen = BTreeSet::new();
    if models.is_empty() {
        return Err(ServeError::NoModel);
    }
    for model in models {
        if model.names().is_empty() {
            return Err(ServeError::Name { name: String::new() });
        }
        for name in model.names() {
            if name.is_empty() || !seen.insert(name) {
                return Err(ServeError::Name { name: name.clone() });
            }
        }
    }
    Ok(())
}

fn runtime() -> Result<Runtime, ServeError> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    // A few more than requests may use, for what asks the engine.
    builder.worker_threads(THREADS).max_blocking_threads(WORKERS + 8).thread_keep_alive(THREAD_REST);
    builder.thread_name("yirage-http").enable_all();
    builder.build().map_err(ServeError::Threads)
}

/// Serves until it is told to stop, then until nothing is open.
async fn serve(app: Arc<App>, listener: TcpListener, mut stop: watch::Receiver<StopMode>) -> Drained {
    let router = router(app.clone());
    tokio::spawn(unload_idle(Arc::downgrade(&app)));
    if let Some(when_idle) = app.options.when_idle {
        tokio::spawn(tell_idle(Arc::downgrade(&app), when_idle));
    }
    let room = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let (closing, closed) = watch::channel(false);
    let mut connections = JoinSet::new();
    let mut deadline: Option<Instant> = None;
    let mut least = Instant::now();
    loop {
        tokio::select! {
            // Others are told that the server ends, as long as it has not.
            accepted = accept(&listener, &room) => match accepted {
                Some((stream, permit)) => {
                    let served = connection(stream, app.clone(), router.clone(), closed.clone());
                    connections.spawn(async move {
                        served.await;
                        drop(permit);
                    });
                }
                None => tokio::time::sleep(REFUSED).await,
            },
            told = stop.changed(), if deadline.is_none() || *stop.borrow() != StopMode::Now => {
                let now = told.is_err() || *stop.borrow() == StopMode::Now;
                app.drain();
                if app.broken().is_some() && !now {
                    least = Instant::now() + BROKEN_TIME.min(app.options.drain_time);
                }
                let time = if now { Duration::ZERO } else { app.options.drain_time };
                deadline = Some(Instant::now() + time);
            }
            () = tokio::time::sleep(LOOK), if deadline.is_some() => {}
        }
        while connections.try_join_next().is_some() {}
        let is_over = |deadline| app.live.count() == 0 && Instant::now() >= least || Instant::now() >= deadline;
        if deadline.is_some_and(is_over) {
            break;
        }
    }
    drop(listener);
    let cut = app.live.count();
    closing.send_replace(true);
    let left = deadline.map_or(Duration::ZERO, |deadline| deadline.saturating_duration_since(Instant::now()));
    let written_out = async { while connections.join_next().await.is_some() {} };
    // What is left at the deadline is dropped, by which its answers are cancelled.
    let _ = tokio::time::timeout(left.min(WRITE_OUT), written_out).await;
    connections.shutdown().await;
    Drained { cut }
}

/// A connection with its place among those that may be; none where the system refused it.
async fn accept(
    listener: &TcpListener,
    room: &Arc<Semaphore>,
) -> Option<(TcpStream, tokio::sync::OwnedSemaphorePermit)> {
    let permit = room.clone().acquire_owned().await.ok()?;
    match listener.accept().await {
        Ok((stream, _)) => {
            // Tokens are small, and each is to be seen at once.
            if let Err(error) = stream.set_nodelay(true) {
                tracing::debug!(%error, "a connection gathers small writes");
            }
            Some((stream, permit))
        }
        Err(error) => {
            tracing::warn!(%error, "a connection was not accepted");
            None
        }
    }
}

/// Serves a connection to its end, behind TLS where there is a certificate.
async fn connection(stream: TcpStream, app: Arc<App>, router: Router, closing: watch::Receiver<bool>) {
    let options = &app.options;
    let Some(tls) = &options.tls else { return speak(stream, options, router, closing).await };
    match tokio::time::timeout(options.head_time, tls.accept(stream)).await {
        Ok(Ok(stream)) => speak(stream, options, router, closing).await,
        Ok(Err(error)) => tracing::debug!(%error, "a connection did not come to speak TLS"),
        Err(_) => tracing::debug!("a connection took too long to speak TLS"),
    }
}

async fn speak<S>(stream: S, options: &ServeOptions, router: Router, mut closing: watch::Receiver<bool>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(options.head_time);
    http.max_buf_size(MAX_HEAD).max_headers(MAX_HEADERS);
    let stream = TokioIo::new(Unstalled::new(stream, options.stalled_time));
    let mut served = pin!(http.serve_connection(stream, TowerToHyperService::new(router)));
    let ended = tokio::select! {
        ended = served.as_mut() => ended,
        _ = closing.changed() => {
            served.as_mut().graceful_shutdown();
            served.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended");
    }
}
