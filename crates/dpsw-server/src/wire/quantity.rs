//! How windows, times and sizes are described in the OpenAPI document.

use utoipa::openapi::schema::{ObjectBuilder, OneOfBuilder, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use crate::quantity::{Millis, Size, Span};

const TIME: &str = "^[0-9]{1,9} ?(ms|s|m|h|d)$";
const SIZE: &str = "^[0-9]{1,9} ?(B|KB|MB|GB|KiB|MiB|GiB)$";

fn number_or_text(description: &str, pattern: &str, example: &str) -> RefOr<Schema> {
    let number = ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(0_u64));
    let text = ObjectBuilder::new().schema_type(Type::String).pattern(Some(pattern)).examples([example]);
    OneOfBuilder::new().description(Some(description)).item(number).item(text).into()
}

impl PartialSchema for Span {
    fn schema() -> RefOr<Schema> {
        number_or_text("A number of items, or a time such as \"15m\"", TIME, "15m")
    }
}

impl ToSchema for Span {}

impl PartialSchema for Size {
    fn schema() -> RefOr<Schema> {
        number_or_text("Bytes, or a size such as \"400KB\" or \"1MiB\"", SIZE, "1MiB")
    }
}

impl ToSchema for Size {}

impl PartialSchema for Millis {
    fn schema() -> RefOr<Schema> {
        let text = ObjectBuilder::new().schema_type(Type::String).pattern(Some(TIME)).examples(["30s"]);
        text.description(Some("A time such as \"500ms\", \"30s\", \"15m\", \"6h\" or \"7d\"")).into()
    }
}

impl ToSchema for Millis {}
