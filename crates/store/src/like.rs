//! Patterns for `like … escape '\'`.

/// The pattern of a lower-cased column that holds the text somewhere; its `%` and `_` stand for themselves.
pub fn holding(text: &str) -> String {
    format!("%{}%", text.to_lowercase().replace('\\', r"\\").replace('%', r"\%").replace('_', r"\_"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_means_something_in_a_pattern_is_escaped() {
        assert_eq!(holding(r"A_b%\"), r"%a\_b\%\\%");
    }
}
