//! Bodies that are read and written as they are, as the document describes them.

use utoipa::ToSchema;

/// Events: documents with a value for every column. Anything else counts nowhere and takes its place.
#[derive(ToSchema)]
#[schema(value_type = Vec<serde_json::Value>, example = json!([{"page": "/"}, {"page": "/cart"}]))]
#[expect(dead_code, reason = "describes bodies, which are read as bytes")]
pub(crate) struct Documents(Vec<u8>);

/// Bytes.
#[derive(ToSchema)]
#[schema(value_type = String, format = Binary)]
#[expect(dead_code, reason = "describes bodies, which are read and written as bytes")]
pub(crate) struct Binary(Vec<u8>);

/// Lines of text; items may be any bytes.
#[derive(ToSchema)]
#[schema(value_type = String)]
#[expect(dead_code, reason = "describes bodies, which are read as bytes")]
pub(crate) struct Text(Vec<u8>);

/// A server-sent event.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes events, which are written line by line")]
pub(crate) struct LiveEvent {
    /// Always `top`.
    #[schema(example = "top")]
    event: String,
    /// Grows with every view.
    id: String,
    /// An `Answer`, in JSON.
    #[schema(content_media_type = "application/json")]
    data: String,
}
