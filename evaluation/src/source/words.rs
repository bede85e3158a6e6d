//! Keywords of a query: stop words, words without meaning, and lemmas.

use std::collections::HashSet;

/// Shorter words say nothing.
const WORD_LEN_MIN: usize = 3;
/// Parts of web addresses that many queries are made of.
const ADDRESS_PARTS: [&str; 7] = ["www", "com", "net", "org", "http", "https", "html"];

/// The endings of plurals and their singulars, after the noun rules of WordNet's morphological processor.
const ENDINGS: [(&str, &str); 9] = [
    ("s", ""),
    ("ses", "s"),
    ("ves", "f"),
    ("xes", "x"),
    ("zes", "z"),
    ("ches", "ch"),
    ("shes", "sh"),
    ("men", "man"),
    ("ies", "y"),
];
const IRREGULAR: [(&str, &str); 8] = [
    ("children", "child"),
    ("feet", "foot"),
    ("geese", "goose"),
    ("knives", "knife"),
    ("lives", "life"),
    ("mice", "mouse"),
    ("teeth", "tooth"),
    ("wives", "wife"),
];
/// A word that ends like a plural of another one and is none.
const SINGULAR: [&str; 1] = ["news"];
/// How many times rarer than its plural a singular may be; a rarer word is a typo.
const RARER_MAX: u64 = 100;

/// Takes queries apart.
pub(crate) struct Keywords {
    stop_words: HashSet<String>,
}

impl Keywords {
    pub(crate) fn new() -> Self {
        let english = stop_words::lookup("en").expect("the feature nltk holds English");
        let parts = ADDRESS_PARTS.iter().map(|&part| part.to_owned());
        Self { stop_words: english.iter().map(|word| word.replace('\'', "")).chain(parts).collect() }
    }

    /// The words of a query in lower case that have a meaning of their own.
    pub(crate) fn of<'a>(&'a self, query: &'a [u8]) -> impl Iterator<Item = String> + 'a {
        let is_letters =
            |word: &&[u8]| WORD_LEN_MIN <= word.len() && word.iter().all(u8::is_ascii_alphabetic);
        query
            .split(|byte| byte.is_ascii() && !byte.is_ascii_alphanumeric() && *byte != b'\'')
            .map(without_apostrophes)
            .filter(move |word| is_letters(&word.as_slice()))
            .map(|word| word.iter().map(|byte| char::from(byte.to_ascii_lowercase())).collect())
            .filter(|word: &String| !self.stop_words.contains(word))
    }
}

fn without_apostrophes(word: &[u8]) -> Vec<u8> {
    word.iter().copied().filter(|&byte| byte != b'\'').collect()
}

/// The singular of a noun, if the count of words says that it is one; the words of the log are the dictionary.
pub(crate) fn singular(word: &str, count: impl Fn(&str) -> u64) -> Option<String> {
    if SINGULAR.contains(&word) || ["ss", "us", "is"].iter().any(|ending| word.ends_with(ending)) {
        return None;
    }
    let irregular = IRREGULAR.iter().filter(|(plural, _)| *plural == word).map(|(_, one)| (*one).to_owned());
    let regular = ENDINGS
        .iter()
        .filter_map(|(plural, one)| word.strip_suffix(plural).map(|stem| format!("{stem}{one}")))
        .filter(|one| WORD_LEN_MIN <= one.len());
    let known = irregular.chain(regular).filter(|one| count(word) <= count(one).saturating_mul(RARER_MAX));
    known.max_by_key(|one| count(one))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keywords_are_words_with_a_meaning() {
        let keywords = Keywords::new();
        for (query, expected) in [
            ("weather in Springfield", "weather springfield"),
            ("www.Example.com", "example"),
            ("don't stop", "stop"),
            ("st john's wort", "johns wort"),
            ("2006 f150 ford x", "ford"),
            ("caf\u{e9} menu", "menu"),
            ("-", ""),
        ] {
            let found: Vec<String> = keywords.of(query.as_bytes()).collect();
            assert_eq!(found.join(" "), expected, "{query}");
        }
    }

    #[test]
    fn plurals_become_singulars_that_the_log_knows() {
        let count = |word: &str| match word {
            "texas" | "houses" => 1_000,
            "texa" | "hous" => 2,
            "cats" | "new" | "news" | "hou" => 10,
            "glasse" => 1,
            "cat" | "house" | "movie" | "glass" | "woman" | "child" | "city" | "church" => 50,
            _ => 5,
        };
        let known = |word: &str| if word == "unknown" { 0 } else { count(word) };
        for (word, expected) in [
            ("cats", Some("cat")),
            ("houses", Some("house")),
            ("movies", Some("movie")),
            ("glasses", Some("glass")),
            ("churches", Some("church")),
            ("cities", Some("city")),
            ("women", Some("woman")),
            ("children", Some("child")),
            ("unknowns", None),
            ("texas", None),
            ("news", None),
            ("glass", None),
            ("virus", None),
            ("gas", None),
            ("cat", None),
        ] {
            assert_eq!(singular(word, known).as_deref(), expected, "{word}");
        }
    }
}
