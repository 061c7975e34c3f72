//! The compiler: (graph, target) to weight plan, and (graph, bucket, target, weight plan) to plan.
#![forbid(unsafe_code)]
