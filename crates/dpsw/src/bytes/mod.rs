//! The formats: framed bytes, settings, views.

pub(crate) mod codec;
pub(crate) mod settings;
pub(crate) mod view;
