//! Patterns for `like … escape '\'`.

/// The pattern of a lower-cased column that holds the text somewhere; its `%` and `_` stand for themselves.
pub fn holding(text: &str) -> String {
    format!("%{}%", plain(text))
}

/// The same for a column that fits the text, in which `*` stands for any text.
pub fn fitting(text: &str) -> String {
    plain(text).replace('*', "%")
}

fn plain(text: &str) -> String {
    text.to_lowercase().replace('\\', r"\\").replace('%', r"\%").replace('_', r"\_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_means_something_in_a_pattern_is_escaped() {
        assert_eq!(holding(r"A_b%\"), r"%a\_b\%\\%");
        assert_eq!(fitting(r"A_*%\"), r"a\_%\%\\");
    }
}
