//! The items that a question names.

use dpsw::WindowView;
use utoipa::IntoParams;

use crate::http::params::Params;
use crate::http::problem::Problem;
use crate::wire::item::{AskedItem, QuestionItem};
use crate::wire::problem::Code;

/// Items that were named in an address.
#[derive(Debug, Default, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct NamedItems {
    /// An item: text, or digits where integers are counted. May be given several times.
    #[param(required = false, example = json!(["/cart"]))]
    pub(crate) item: Vec<String>,
    /// An item that is no text, in base64. May be given several times.
    #[param(required = false)]
    pub(crate) item_base64: Vec<String>,
}

impl NamedItems {
    pub(crate) fn read(params: &mut Params) -> Self {
        Self { item: params.many("item"), item_base64: params.many("item_base64") }
    }

    /// The items as the view counts them.
    pub(crate) fn items(&self, view: &WindowView, most: usize) -> Result<Vec<AskedItem>, Problem> {
        let kind = view.plan().settings().domain.kind();
        let texts = self.item.iter().map(|text| AskedItem::of_text(text, kind));
        let bytes = self.item_base64.iter().map(|text| AskedItem::of_base64(text, kind));
        countable(texts.chain(bytes), most)
    }

    pub(crate) fn one(&self, view: &WindowView) -> Result<AskedItem, Problem> {
        let items = self.items(view, 1)?;
        items.into_iter().next().ok_or_else(|| Problem::parameter("name the item, as in ?item=/cart"))
    }
}

/// The items of a question, if there are not too many and the stream could have counted each.
fn countable(items: impl Iterator<Item = Option<AskedItem>>, most: usize) -> Result<Vec<AskedItem>, Problem> {
    let mut countable = Vec::new();
    for (index, item) in items.enumerate() {
        if index == most {
            return Err(Problem::parameter(format!("a question has at most {most} items")));
        }
        countable
            .push(item.ok_or_else(|| wrong_item(index, "the stream counts integers, or it is no base64"))?);
    }
    Ok(countable)
}

/// The items of a body as the view counts them.
pub(crate) fn of_body(
    items: &[QuestionItem],
    view: &WindowView,
    most: usize,
) -> Result<Vec<AskedItem>, Problem> {
    let kind = view.plan().settings().domain.kind();
    countable(items.iter().map(|item| item.asked(kind)), most)
}

pub(crate) fn wrong_item(index: usize, reason: &str) -> Problem {
    Problem::new(Code::WrongItem, format!("item number {} cannot be asked for: {reason}", index + 1))
}
