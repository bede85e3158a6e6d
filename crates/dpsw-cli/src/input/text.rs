//! A file of text that is parsed as it is read.

use anyhow::Result;

use crate::arguments::Format;
use crate::input::file::named;
use crate::input::parsed::Parsed;
use crate::input::parser::{Parser, Wanted};
use crate::input::start::Start;

pub(crate) struct Text {
    name: String,
    format: Format,
    parser: Parser,
}

impl Text {
    /// `None` if the file comes in rows.
    pub(crate) fn new(start: &Start, wanted: &Wanted) -> Result<Option<Self>> {
        let Start { name, format, .. } = start;
        wanted.check(*format).map_err(|error| named(error, name))?;
        if start.is_columnar() {
            return Ok(None);
        }
        let parser = Parser::new(*format, wanted, &start.bytes).map_err(|error| named(error, name))?;
        Ok(Some(Self { name: name.clone(), format: *format, parser }))
    }

    /// Parses a block that follows. Nobody asks about so many records from here on: says how many are left of them.
    pub(crate) fn push(&mut self, parsed: &mut Parsed, unasked: u64) -> Result<u64> {
        parsed.push_to(&mut self.parser, unasked).map_err(|error| named(error, &self.name))
    }

    /// The same of what is left. A growing file that was rotated starts anew.
    pub(crate) fn finish(&mut self, parsed: &mut Parsed, unasked: u64, wanted: &Wanted) -> Result<u64> {
        let unasked = parsed.finish(&mut self.parser, unasked).map_err(|error| named(error, &self.name))?;
        self.parser = Parser::new(self.format, wanted, &[])?;
        Ok(unasked)
    }
}
