//! How windows, times and sizes are described in the OpenAPI document.

use utoipa::openapi::schema::{ObjectBuilder, OneOfBuilder, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use crate::quantity::{Millis, Size, Span};

fn number_or_text(description: &str, text: &str) -> RefOr<Schema> {
    let number = ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(0_u64));
    let text = ObjectBuilder::new().schema_type(Type::String).examples([text]);
    OneOfBuilder::new().description(Some(description)).item(number).item(text).into()
}

impl PartialSchema for Span {
    fn schema() -> RefOr<Schema> {
        number_or_text("A number of items, or a time such as \"15m\"", "15m")
    }
}

impl ToSchema for Span {}

impl PartialSchema for Size {
    fn schema() -> RefOr<Schema> {
        number_or_text("Bytes, or a size such as \"400KB\" or \"1MiB\"", "1MiB")
    }
}

impl ToSchema for Size {}

impl PartialSchema for Millis {
    fn schema() -> RefOr<Schema> {
        let text = ObjectBuilder::new().schema_type(Type::String).examples(["30s"]);
        text.description(Some("A time such as \"500ms\", \"30s\", \"15m\", \"6h\" or \"7d\"")).into()
    }
}

impl ToSchema for Millis {}
