//! An answer on its way to the client: whose it is, and that it ends where its replica does.

use crate::replica::Replica;
use axum::body::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};

/// A request that a replica answers now, counted as long as this lives.
pub(crate) struct RoutedRequest(Arc<Replica>);

impl RoutedRequest {
    pub(crate) fn new(replica: Arc<Replica>) -> RoutedRequest {
        replica.figures.open.fetch_add(1, Ordering::Relaxed);
        replica.figures.given.fetch_add(1, Ordering::Relaxed);
        RoutedRequest(replica)
    }

    pub(crate) fn replica(&self) -> &Arc<Replica> {
        &self.0
    }
}

impl Drop for RoutedRequest {
    fn drop(&mut self) {
        self.0.figures.open.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The body of an answer that has begun. Where the replica is lost it breaks off, so that the client sees that it is not whole.
pub(crate) struct AnswerBody {
    body: Incoming,
    open: RoutedRequest,
    lost: Pin<Box<dyn Future<Output = String> + Send>>,
}

impl AnswerBody {
    pub(crate) fn new(body: Incoming, open: RoutedRequest) -> AnswerBody {
        let replica = open.replica().clone();
        AnswerBody { body, open, lost: Box::pin(async move { replica.lost().await }) }
    }

    fn broken(&self, why: &str) -> String {
        let replica = self.open.replica();
        replica.figures.broken.fetch_add(1, Ordering::Relaxed);
        tracing::warn!(replica = replica.address.authority(), why, "an answer broke off");
        format!("the answer of {} broke off: {why}", replica.address.authority())
    }
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = String;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, String>>> {
        match Pin::new(&mut self.body).poll_frame(context) {
            Poll::Ready(Some(Err(error))) => Poll::Ready(Some(Err(self.broken(&error.to_string())))),
            Poll::Ready(frame) => Poll::Ready(frame.map(|frame| frame.map_err(|error| error.to_string()))),
            Poll::Pending => match self.lost.as_mut().poll(context) {
                Poll::Ready(why) => Poll::Ready(Some(Err(self.broken(&why)))),
                Poll::Pending => Poll::Pending,
            },
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
