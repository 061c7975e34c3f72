//! The router as a server: listens, serves connections, and ends when it is asked to and what is open has ended.

use crate::error::RouteError;
use crate::health::watch as watch_health;
use crate::limits::{
    HEAD_TIME, LOOK, MAX_CONNECTIONS, MAX_HEAD, MAX_HEADERS, MAX_REPLICAS, REFUSED, THREADS, WRITE_OUT,
};
use crate::proxy::{RouteState, answer};
use crate::replica::{Replica, ReplicaAddress};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;
use yirage_serve::Signals;

/// How a router runs.
#[derive(Clone, Debug)]
pub struct RouteOptions {
    /// Where it listens.
    pub address: SocketAddr,
    /// The servers behind it.
    pub replicas: Vec<ReplicaAddress>,
    /// How often each is asked whether it takes requests, and how long it may take to say so.
    pub health_time: Duration,
    /// Open requests above the least of all replicas by which one loses a request whose beginning it has.
    pub affinity_slack: usize,
    /// How long open requests get when the router is to end.
    pub drain_time: Duration,
}

/// A router that listens and does not answer yet.
pub struct RouteServer {
    state: Arc<RouteState>,
    listener: std::net::TcpListener,
    options: RouteOptions,
    runtime: Runtime,
    asked: watch::Sender<u32>,
}

/// Ends a router.
#[derive(Clone)]
pub struct RouteStopper(watch::Sender<u32>);

impl RouteStopper {
    /// The first time the router takes nothing new and ends what is open; the second time it ends at once.
    pub fn stop(&self) {
        self.0.send_modify(|count| *count += 1);
    }
}

impl RouteServer {
    /// Listens. Nobody is answered yet. The process's requests to end (SIGTERM, SIGINT, Ctrl-C) stop it from now on.
    ///
    /// # Errors
    /// [`RouteError`].
    pub fn bind(mut options: RouteOptions) -> Result<RouteServer, RouteError> {
        check(&options.replicas)?;
        let failed = |source| RouteError::Bind { address: options.address, source };
        let listener = std::net::TcpListener::bind(options.address).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        options.address = listener.local_addr().map_err(failed)?;
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        builder.worker_threads(THREADS).thread_name("yirage-route").enable_all();
        let runtime = builder.build().map_err(RouteError::Threads)?;
        let (asked, _) = watch::channel(0);
        let mut signals = {
            let _within = runtime.enter();
            Signals::taken().map_err(RouteError::Signals)?
        };
        let by_signal = RouteStopper(asked.clone());
        runtime.spawn(async move {
            loop {
                signals.next().await;
                by_signal.stop();
            }
        });
        let replicas = options.replicas.iter().cloned().map(|address| Arc::new(Replica::new(address))).collect();
        let state = Arc::new(RouteState::new(replicas, options.affinity_slack));
        Ok(RouteServer { state, listener, options, runtime, asked })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.options.address
    }

    /// What ends it.
    pub fn stopper(&self) -> RouteStopper {
        RouteStopper(self.asked.clone())
    }

    /// Answers until it is stopped, then until nothing is open or the time for that is over: how many requests were cut off.
    ///
    /// # Errors
    /// [`RouteError::Bind`].
    pub fn run(self) -> Result<usize, RouteError> {
        let RouteServer { state, listener, options, runtime, asked } = self;
        let cut = runtime.block_on(async {
            let failed = |source| RouteError::Bind { address: options.address, source };
            let listener = TcpListener::from_std(listener).map_err(failed)?;
            for (at, replica) in state.replicas.iter().enumerate() {
                let of = state.clone();
                let watched = watch_health(replica.clone(), options.health_time, move |now| of.changed(at, now));
                tokio::spawn(watched);
            }
            Ok(serve(state, listener, asked.subscribe(), options.drain_time).await)
        });
        runtime.shutdown_background();
        cut
    }
}

fn check(replicas: &[ReplicaAddress]) -> Result<(), RouteError> {
    let twice = replicas.iter().enumerate().find(|(at, address)| replicas[..*at].contains(address));
    let twice = twice.map_or(String::new(), |(_, address)| format!(", {address} twice"));
    match (1..=MAX_REPLICAS).contains(&replicas.len()) && twice.is_empty() {
        true => Ok(()),
        false => Err(RouteError::Replicas { count: replicas.len(), twice }),
    }
}

/// Serves until it is told to stop, then until nothing is open.
async fn serve(
    state: Arc<RouteState>,
    listener: TcpListener,
    mut asked: watch::Receiver<u32>,
    drain_time: Duration,
) -> usize {
    let room = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let (closing, closed) = watch::channel(false);
    let mut connections = JoinSet::new();
    let mut deadline: Option<Instant> = None;
    let open = || state.replicas.iter().map(|of| of.figures.open.load(Ordering::Relaxed)).sum::<usize>();
    loop {
        tokio::select! {
            accepted = accept(&listener, &room) => match accepted {
                Some((stream, permit)) => {
                    let served = connection(stream, state.clone(), closed.clone());
                    connections.spawn(async move {
                        served.await;
                        drop(permit);
                    });
                }
                None => tokio::time::sleep(REFUSED).await,
            },
            _ = asked.changed() => {
                state.ends();
                let time = if *asked.borrow() > 1 { Duration::ZERO } else { drain_time };
                deadline = Some(Instant::now() + time);
            }
            () = tokio::time::sleep(LOOK), if deadline.is_some() => {}
        }
        while connections.try_join_next().is_some() {}
        if deadline.is_some_and(|deadline| open() == 0 || Instant::now() >= deadline) {
            break;
        }
    }
    drop(listener);
    let cut = open();
    closing.send_replace(true);
    let written_out = async { while connections.join_next().await.is_some() {} };
    let left = deadline.map_or(Duration::ZERO, |deadline| deadline.saturating_duration_since(Instant::now()));
    // What is left at the deadline is dropped, by which its answers are cancelled.
    let _ = tokio::time::timeout(left.min(WRITE_OUT), written_out).await;
    connections.shutdown().await;
    cut
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

/// Serves a connection to its end.
async fn connection(stream: TcpStream, state: Arc<RouteState>, mut closing: watch::Receiver<bool>) {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD_TIME);
    http.max_buf_size(MAX_HEAD).max_headers(MAX_HEADERS);
    let service = service_fn(move |request| {
        let state = state.clone();
        async move { Ok::<_, Infallible>(answer(state, request).await) }
    });
    let mut served = pin!(http.serve_connection(TokioIo::new(stream), service));
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
