//! Objects as events usually are, with nothing nested and nothing escaped: read in one pass, without the full reader.

use std::borrow::Cow;

use crate::input::rows::Field;

/// Takes the wanted fields of a flat object. `None` for everything else, whether it is JSON or not: the full reader decides, and
/// fields may have been written.
pub(crate) fn read<'t>(text: &'t [u8], names: &[&[u8]], fields: &mut [Field<'t>]) -> Option<()> {
    let mut text = Text { text, at: 0 };
    text.expect(b'{')?;
    if text.next() == Some(b'}') {
        text.at += 1;
        return text.end();
    }
    loop {
        text.expect(b'"')?;
        let name = text.string()?;
        text.expect(b':')?;
        let value = text.value()?;
        if let Some(index) = names.iter().position(|wanted| *wanted == name) {
            fields[index] = value.field()?;
        }
        match text.next()? {
            b',' => text.at += 1,
            b'}' => break,
            _ => return None,
        }
    }
    text.at += 1;
    text.end()
}

struct Text<'t> {
    text: &'t [u8],
    at: usize,
}

enum Value<'t> {
    String(&'t [u8]),
    /// A number or a flag.
    Bare(&'t [u8]),
    Null,
}

impl<'t> Value<'t> {
    /// Bytes that are no text are for the full reader to refuse.
    fn field(self) -> Option<Field<'t>> {
        match self {
            Self::String(string) => std::str::from_utf8(string).ok().map(|_| Some(Cow::Borrowed(string))),
            Self::Bare(bytes) => Some(Some(Cow::Borrowed(bytes))),
            Self::Null => Some(None),
        }
    }
}

impl<'t> Text<'t> {
    /// The next byte that is no space.
    fn next(&mut self) -> Option<u8> {
        while let Some(byte) = self.text.get(self.at) {
            if !matches!(byte, b' ' | b'\t' | b'\n' | b'\r') {
                return Some(*byte);
            }
            self.at += 1;
        }
        None
    }

    fn expect(&mut self, wanted: u8) -> Option<()> {
        let is_there = self.next() == Some(wanted);
        self.at += 1;
        is_there.then_some(())
    }

    fn end(mut self) -> Option<()> {
        self.next().is_none().then_some(())
    }

    /// The rest of a string and its closing quote.
    fn string(&mut self) -> Option<&'t [u8]> {
        let rest = self.text.get(self.at..)?;
        let len = rest.iter().position(|&byte| byte == b'"' || byte == b'\\' || byte < b' ')?;
        self.at += len + 1;
        (rest[len] == b'"').then(|| &rest[..len])
    }

    fn value(&mut self) -> Option<Value<'t>> {
        match self.next()? {
            b'"' => {
                self.at += 1;
                self.string().map(Value::String)
            }
            b't' => self.word(b"true").map(Value::Bare),
            b'f' => self.word(b"false").map(Value::Bare),
            b'n' => self.word(b"null").map(|_| Value::Null),
            _ => self.number().map(Value::Bare),
        }
    }

    fn word(&mut self, word: &[u8]) -> Option<&'t [u8]> {
        let found = self.text.get(self.at..self.at + word.len()).filter(|found| *found == word)?;
        self.at += word.len();
        Some(found)
    }

    fn number(&mut self) -> Option<&'t [u8]> {
        let start = self.at;
        self.skip(b"-");
        match self.digits() {
            0 => return None,
            // No other digit follows a zero at the beginning.
            len if 1 < len && self.text[self.at - len] == b'0' => return None,
            _ => {}
        }
        if self.skip(b".") && self.digits() == 0 {
            return None;
        }
        if self.skip(b"eE") {
            self.skip(b"+-");
            if self.digits() == 0 {
                return None;
            }
        }
        Some(&self.text[start..self.at])
    }

    /// Skips one of these, if it is there.
    fn skip(&mut self, any: &[u8]) -> bool {
        let is_there = self.text.get(self.at).is_some_and(|byte| any.contains(byte));
        self.at += usize::from(is_there);
        is_there
    }

    /// Skips digits; how many.
    fn digits(&mut self) -> usize {
        let len = self.text[self.at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.at += len;
        len
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::json::read_fully;

    const NAMES: [&[u8]; 3] = [b"page", b"status", b"at"];

    fn flat(text: &[u8]) -> Option<[Field<'_>; 3]> {
        let mut fields = [const { None }; 3];
        read(text, &NAMES, &mut fields).map(|()| fields)
    }

    #[test]
    fn usual_documents_need_no_other_reader() {
        for document in [
            r#"{"page":"/a","status":200}"#,
            r#" { "at" : 1.5e-3 , "page" : "caf\u{e9}", "x":true,"y":false,"z":null } "#,
            "{}",
            r#"{"status":-0,"at":10.25E+7,"page":""}"#,
        ] {
            let document = document.replace("\\u{e9}", "\u{e9}");
            assert!(flat(document.as_bytes()).is_some(), "{document}");
        }
    }

    /// Every text that is one or two bytes away from a document, and takes this way, is read as the full reader reads it.
    #[test]
    fn what_is_read_is_what_the_full_reader_reads() {
        let bytes = b"{}[]\",:\\ntrue0019-+.eE \t\r\x1f\x7f\xc3\xa9\xff/a";
        let documents: [&[u8]; 5] = [
            b"{\"page\":\"/a\",\"status\":200}",
            b"{\"page\": null, \"status\": -1.50e+7, \"at\": true}",
            b" {\"page\":\"x\",\"page\":\"caf\xc3\xa9\"} ",
            b"{\"at\":0,\"x\":false}",
            b"{}",
        ];
        let mut taken = 0;
        for document in documents {
            for at in 0..document.len() {
                for &byte in bytes {
                    let replaced = [&document[..at], &[byte], &document[at + 1..]].concat();
                    let inserted = [&document[..at], &[byte], &document[at..]].concat();
                    let removed = [&document[..at], &document[at + 1..]].concat();
                    let doubled = [&document[..at], &[byte, byte], &document[at + 1..]].concat();
                    for text in [replaced, inserted, removed, doubled] {
                        let Some(read) = flat(&text) else { continue };
                        let mut fields = [const { None }; 3];
                        let full = read_fully(&text, &NAMES, &mut fields);
                        assert!(full.is_ok(), "{:?}", text.escape_ascii().to_string());
                        assert_eq!(read, fields, "{:?}", text.escape_ascii().to_string());
                        taken += 1;
                    }
                }
            }
        }
        assert!(1000 < taken, "{taken} were read");
    }
}
