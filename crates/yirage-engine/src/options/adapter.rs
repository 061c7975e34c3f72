//! Adapters that stand beside a model.

use yirage_model::LoraAdapter;

/// A low-rank adapter, as requests call it.
#[derive(Clone, PartialEq, Debug)]
pub struct EngineAdapter {
    /// What requests call it; no two have one name.
    pub name: String,
    /// Its matrices.
    pub adapter: LoraAdapter,
    /// How much of it requests get that name no adapters; 0 is nothing of it.
    pub scale: f32,
}

/// How much of an adapter a request wants.
#[derive(Clone, PartialEq, Debug)]
pub struct AdapterScale {
    /// [`EngineAdapter::name`].
    pub name: String,
    /// What its product is multiplied by; finite.
    pub scale: f32,
}
