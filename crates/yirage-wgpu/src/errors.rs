//! What wgpu says, as a driver's errors.

use std::error::Error;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use yirage_hal::driver::DriverError;

/// What a future of wgpu gives. Outside of browsers all of them are ready when they are made; none otherwise.
pub(crate) fn ready<T>(future: impl Future<Output = T>) -> Option<T> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => Some(value),
        Poll::Pending => None,
    }
}

/// An error with what it comes from, on one line.
pub(crate) fn whole(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(deeper) = source {
        let more = deeper.to_string();
        // Some errors print what they come from.
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        source = deeper.source();
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// An error of wgpu in a call.
pub(crate) fn failed(call: &'static str, error: &wgpu::Error) -> DriverError {
    DriverError::Failed { call, why: whole(error) }
}

/// An error of ours in a call.
pub(crate) fn refused(call: &'static str, why: impl Into<String>) -> DriverError {
    DriverError::Failed { call, why: why.into() }
}

/// What this driver does not do.
pub(crate) fn unsupported(what: impl Into<String>, why: impl Into<String>) -> DriverError {
    DriverError::Unsupported { what: what.into(), why: why.into() }
}

/// Runs calls of wgpu, and gives the first error of theirs: errors of their arguments, of memory, of the driver's own.
pub(crate) fn scoped<T>(device: &wgpu::Device, calls: impl FnOnce() -> T) -> Result<T, wgpu::Error> {
    use wgpu::ErrorFilter::{Internal, OutOfMemory, Validation};
    let scopes = [Internal, OutOfMemory, Validation].map(|filter| device.push_error_scope(filter));
    let value = calls();
    // Scopes are closed in the opposite order.
    let errors = scopes.into_iter().rev().filter_map(|scope| ready(scope.pop()).flatten());
    match errors.collect::<Vec<_>>().into_iter().next() {
        Some(error) => Err(error),
        None => Ok(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_future_that_is_not_ready_gives_nothing() {
        assert_eq!(ready(std::future::ready(3)), Some(3));
        assert_eq!(ready(std::future::pending::<u8>()), None);
    }

    #[test]
    fn errors_are_told_with_their_sources_on_one_line() {
        #[derive(Debug, thiserror::Error)]
        #[error("upper\n  floor")]
        struct Upper(#[source] std::fmt::Error);
        assert_eq!(whole(&Upper(std::fmt::Error)), format!("upper floor: {}", std::fmt::Error));
    }
}
