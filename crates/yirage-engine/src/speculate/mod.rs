//! Speculative decoding.
mod acceptance;
mod controller;
#[cfg(test)]
mod controller_sim;
mod costs;
mod lookup;
pub use controller::Controller;
pub use lookup::Lookup;
