//! What is held in a device's memory, by name.

use std::any::Any;
use std::sync::Arc;

/// A weight in device memory. Copies name the same memory.
#[derive(Clone)]
pub struct WeightHandle(pub Arc<dyn Any + Send + Sync>);

/// A cache state in device memory. Copies name the same memory.
#[derive(Clone)]
pub struct KvCacheHandle(pub Arc<dyn Any + Send + Sync>);
