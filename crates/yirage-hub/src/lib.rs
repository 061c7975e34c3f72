//! Getting models: catalogue, hub downloads with resume and checksums, the shared cache layout.
#![forbid(unsafe_code)]
