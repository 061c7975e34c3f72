//! The contract a device implements, the backend registry, the executor and memory accounting.
