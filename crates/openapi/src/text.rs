//! Words of a document as people and models read them: bounded, on one line, and never more than words.

/// The text without control characters and runs of space, cut at a sentence or a word if it is too long.
pub(crate) fn brief(text: &str, most: usize) -> String {
    let mut words = String::with_capacity(text.len().min(most + 1));
    for word in text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty()) {
        if !words.is_empty() {
            words.push(' ');
        }
        words.push_str(word);
        if words.len() > most * 4 {
            break;
        }
    }
    if words.chars().count() <= most {
        return words;
    }
    let end = words.char_indices().nth(most.saturating_sub(1)).map_or(words.len(), |(end, _)| end);
    let head = &words[..end];
    match (head.rfind(". "), head.rfind(' ')) {
        (Some(sentence), _) if sentence * 2 > end => head[..=sentence].to_owned(),
        (_, Some(space)) if space * 2 > end => format!("{}…", &head[..space]),
        _ => format!("{head}…"),
    }
}

/// Words of letters and digits, in lower case: `createPetByID`, `create-pet`, `/pets/{id}`.
pub(crate) fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut word = String::new();
    let letters: Vec<char> = text.chars().collect();
    for (index, &letter) in letters.iter().enumerate() {
        if !letter.is_ascii_alphanumeric() {
            words.extend((!word.is_empty()).then(|| std::mem::take(&mut word)));
            continue;
        }
        let before = index.checked_sub(1).and_then(|before| letters.get(before));
        let after = letters.get(index + 1);
        let begins = letter.is_ascii_uppercase()
            && (before.is_some_and(|before| before.is_ascii_lowercase() || before.is_ascii_digit())
                || before.is_some_and(char::is_ascii_uppercase) && after.is_some_and(char::is_ascii_lowercase));
        if begins && !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        word.push(letter.to_ascii_lowercase());
    }
    words.extend((!word.is_empty()).then_some(word));
    words
}

/// Words as a title: the first in upper case.
pub(crate) fn title(words: &[String]) -> String {
    let joined = words.join(" ");
    let mut letters = joined.chars();
    letters.next().map(|first| first.to_ascii_uppercase().to_string() + letters.as_str()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_where_it_hurts_least() {
        assert_eq!(brief("  One\n\n two\u{7}three ", 50), "One two three");
        assert_eq!(brief("First sentence here. Second one is long.", 30), "First sentence here.");
        assert_eq!(brief("no sentence in all these words", 20), "no sentence in all…");
        assert_eq!(brief(&"x".repeat(50), 10), "x".repeat(9) + "…");
        assert_eq!(brief(&"ä".repeat(50), 10).chars().count(), 10);
    }

    #[test]
    fn words_are_found_in_every_spelling() {
        for (text, found) in [
            ("issues/create", "issues create"),
            ("createPetByID", "create pet by id"),
            ("HTTPServer2Start", "http server2 start"),
            ("/pets/{petId}", "pets pet id"),
            ("GET_thing--now", "get thing now"),
            ("日本", ""),
        ] {
            assert_eq!(words(text).join(" "), found);
        }
        assert_eq!(title(&words("list-all_pets")), "List all pets");
    }
}
