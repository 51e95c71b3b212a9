//! Texts cut into what stands in them and the expressions between.

/// A piece of a text.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Piece<'a> {
    Literal(&'a str),
    Expression(&'a str),
}

/// The pieces of a text, in order. There are expressions only, no blocks.
pub(super) fn pieces(text: &str) -> Result<Vec<Piece<'_>>, &'static str> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("{{") {
        pieces.push(Piece::Literal(before));
        let end = end(after).ok_or("a `{{` is never closed")?;
        let source = &after[..end];
        if source.starts_with(['-', '+']) || source.ends_with(['-', '+']) {
            return Err("`{{-` and `-}}` are not known here");
        }
        pieces.push(Piece::Expression(source.trim()));
        rest = &after[end + 2..];
    }
    pieces.push(Piece::Literal(rest));
    if pieces.iter().any(|piece| matches!(piece, Piece::Literal(text) if text.contains("{%"))) {
        return Err("`{%` is not known here: there are `{{ expressions }}` only");
    }
    Ok(pieces)
}

/// Where the `}}` is that ends an expression.
fn end(source: &str) -> Option<usize> {
    let mut open = 0_usize;
    for (at, char) in bare(source) {
        match char {
            '{' => open += 1,
            '}' if open > 0 => open -= 1,
            '}' if source[at..].starts_with("}}") => return Some(at),
            _ => {}
        }
    }
    None
}

/// The characters of an expression that are outside its quoted texts, with their places.
pub(super) fn bare(source: &str) -> impl Iterator<Item = (usize, char)> {
    let mut quote = None;
    let mut escaped = false;
    source.char_indices().filter(move |&(_, char)| {
        match quote {
            None if char == '"' || char == '\'' => quote = Some(char),
            None => return true,
            Some(_) if escaped => escaped = false,
            Some(_) if char == '\\' => escaped = true,
            Some(open) if char == open => quote = None,
            Some(_) => {}
        }
        false
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_at_their_expressions() {
        use Piece::{Expression, Literal};
        assert_eq!(pieces("a {{ b }} c").unwrap(), [Literal("a "), Expression("b"), Literal(" c")]);
        assert_eq!(pieces(r#"{{ "}}" }}"#).unwrap()[1], Expression(r#""}}""#));
        assert_eq!(pieces(r#"{{ {"a": {"b": 1}} }}!"#).unwrap()[1..], [Expression(r#"{"a": {"b": 1}}"#), Literal("!")]);
        assert_eq!(pieces(r"{{ '\'}}' }}").unwrap()[1], Expression(r"'\'}}'"));
        for text in ["{{ a", "{{ 'a }}", "{{- a }}", "{% if a %}", "{{ a }}{% x %}"] {
            assert!(pieces(text).is_err(), "{text}");
        }
    }
}
