//! The CPU backend: worker pool, repacked weights, SIMD kernels chosen at run time.
