//! Pictures of graphs: text for graphviz, and SVG drawn without it.
//!
//! Both show every op, input, output and edge; a region is a frame with its own inputs and outputs at its border. The SVG
//! is drawn in layers (Sugiyama, Tagawa and Toda, 1981), a region by itself first, so that frames never overlap.

mod diagram;
mod dot;
mod layout;
mod svg;

pub use dot::dot;
pub use layout::{MAX_PLACES, TooLarge};
pub use svg::svg;
