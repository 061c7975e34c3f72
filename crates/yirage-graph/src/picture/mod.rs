//! Pictures of graphs: text for graphviz, and SVG drawn without it.
