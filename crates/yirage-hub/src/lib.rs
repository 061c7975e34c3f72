//! Getting models: references, a small catalogue, hub downloads with resume and checksums, the shared cache layout.
//!
//! This is the only crate that opens a connection. It knows names, files and checksums; it deliberately does not know
//! what is *in* a model file, prints nothing (see [`DownloadProgress`]), and reads no environment except in
//! [`HubEnv::from_env`].
//!
//! The cache is the one that other tools of the field use, in both directions: what they fetched is found, and what is
//! fetched here is found by them.
//!
//! `examples/resolve.rs` finds a model and says where it is.
#![forbid(unsafe_code)]

mod api;
mod cache;
mod catalogue;
mod download;
mod env;
mod error;
mod http;
mod hub;
pub mod limits;
mod pace;
mod packages;
mod progress;
mod reference;
mod routes;
mod select;
mod shipped;

pub use cache::{CachedFile, CachedModel, RemovalTotals};
pub use catalogue::{CATALOGUE, CatalogueEntry, HubSource, PackageSource};
pub use env::{DEFAULT_ENDPOINT, HubEnv, HubToken, Retry};
pub use error::HubError;
pub use hub::{CacheVerification, Hub, ModelOrigin, Resolved, ResolvedFormat};
pub use pace::DownloadLimits;
pub use progress::{DownloadProgress, NoProgress};
pub use reference::{ModelRef, RepoRef};
pub use routes::{FailedRoute, NoRoute};
pub use shipped::Shipped;
