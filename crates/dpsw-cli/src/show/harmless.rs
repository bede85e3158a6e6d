//! Text from elsewhere, such as items and names of files, that cannot steer a terminal or hide in it.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Whether a character moves or reorders what stands around it, or cannot be seen: controls, marks of writing direction,
/// separators of lines, joiners, fillers and tags.
fn is_steering(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{ad}'
                | '\u{34f}'
                | '\u{61c}'
                | '\u{115f}'..='\u{1160}'
                | '\u{180b}'..='\u{180f}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{3164}'
                | '\u{feff}'
                | '\u{ffa0}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{1d173}'..='\u{1d17a}'
                | '\u{e0000}'..='\u{e0fff}'
        )
}

/// The columns that a text takes on a terminal.
pub(crate) fn width(text: &str) -> usize {
    text.width()
}

/// An item on one line of at most so many columns, and characters, as marks above letters take no column.
pub(crate) fn fitted(item: &str, most: usize) -> String {
    let mut text = String::new();
    let mut used = 0;
    for (index, character) in item.chars().enumerate() {
        let piece = escaped(character);
        let len = piece.as_deref().map_or_else(|| character.width().unwrap_or(0), width);
        if index == most || most < used + len {
            return text + "…";
        }
        used += len;
        match piece {
            Some(piece) => text.push_str(&piece),
            None => text.push(character),
        }
    }
    if text.is_empty() { "(empty)".to_owned() } else { text }
}

/// A text whose lines stay as they are.
pub(crate) fn lines(text: &str) -> String {
    let mut lines = String::with_capacity(text.len());
    for character in text.chars() {
        match escaped(character) {
            Some(piece) if character != '\n' => lines.push_str(&piece),
            _ => lines.push(character),
        }
    }
    lines
}

/// A JSON document that means the same: what it leaves in strings is written as escapes.
pub(crate) fn json(document: &str) -> String {
    let mut text = String::with_capacity(document.len());
    for character in document.chars() {
        // Line ends and blanks between values are its own.
        if is_steering(character) && !character.is_ascii_whitespace() {
            let mut units = [0; 2];
            let units = character.encode_utf16(&mut units);
            text.extend(units.iter().map(|unit| format!("\\u{unit:04x}")));
        } else {
            text.push(character);
        }
    }
    text
}

/// What is written instead of a character, if something must be.
fn escaped(character: char) -> Option<String> {
    is_steering(character).then(|| character.escape_default().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_cannot_steer_the_terminal() {
        for (item, wanted) in [
            ("a\u{1b}[31m\n", "a\\u{1b}[31m\\n"),
            ("\u{9b}2J", "\\u{9b}2J"),
            ("a\u{202e}b\u{2066}", "a\\u{202e}b\\u{2066}"),
            ("\u{200b}\u{e0041}", "\\u{200b}\\u{e0041}"),
            ("", "(empty)"),
            ("naïve 日本", "naïve 日本"),
        ] {
            assert_eq!(fitted(item, 48), wanted);
        }
    }

    #[test]
    fn an_item_takes_as_many_columns_as_it_is_given() {
        for item in ["x".repeat(10_000), "日".repeat(100), "\u{1b}".repeat(100), "e\u{301}".repeat(5000)] {
            let text = fitted(&item, 20);
            assert!(width(&text) <= 21 && text.chars().count() <= 21, "{text}");
            assert!(text.ends_with('…'), "{text}");
        }
        assert_eq!(width(&fitted("日本", 20)), 4);
    }

    #[test]
    fn json_means_the_same() {
        let item = "\u{1b}[2J\u{9b}\u{202e}\u{e0041}\u{7f}é";
        let document = serde_json::to_string_pretty(&[item]).expect("a document");
        let text = json(&document);
        assert!(text.chars().all(|character| character == '\n' || !is_steering(character)), "{text}");
        assert_eq!(serde_json::from_str::<[String; 1]>(&text).expect("JSON"), [item]);
    }
}
