//! Read-only file mappings whose pages can be given back: the only unsafe code of loading.
