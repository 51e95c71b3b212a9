//! `{{secrets.NAME}}` in a text: where the value of a secret goes.

use kernel::Slug;
use kernel::slug::SlugError;

const OPEN: &str = "{{";
const CLOSE: &str = "}}";
const FAMILY: &str = "secrets";

/// A piece of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part<'a> {
    Text(&'a str),
    Secret(Slug),
}

/// A reference to a secret that names none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReferenceError {
    #[error("`{{{{secrets` is not closed; write `{{{{secrets.NAME}}}}`")]
    Open,
    #[error("`{{{{{0}}}}}` names no secret; write `{{{{secrets.NAME}}}}`")]
    Nameless(String),
    #[error("`{{{{{0}}}}}` names no secret: a name {1}")]
    Name(String, SlugError),
}

/// Takes a text apart. Other things between double braces are text.
pub fn parts(text: &str) -> Result<Vec<Part<'_>>, ReferenceError> {
    let (mut found, mut rest) = (Vec::new(), text);
    let mut from = 0;
    while let Some(start) = rest[from..].find(OPEN).map(|at| from + at) {
        let inside = &rest[start + OPEN.len()..];
        if !inside.trim_start().starts_with(FAMILY) {
            from = start + OPEN.len();
            continue;
        }
        let end = inside.find(CLOSE).ok_or(ReferenceError::Open)?;
        let written = inside[..end].trim();
        let name = written.strip_prefix(FAMILY).and_then(|name| name.trim_start().strip_prefix('.'));
        let name = name.ok_or_else(|| ReferenceError::Nameless(shown(written)))?.trim();
        let slug = name.parse().map_err(|error| ReferenceError::Name(shown(written), error))?;
        found.extend((start > 0).then_some(Part::Text(&rest[..start])));
        found.push(Part::Secret(slug));
        rest = &inside[end + CLOSE.len()..];
        from = 0;
    }
    found.extend((!rest.is_empty()).then_some(Part::Text(rest)));
    Ok(found)
}

fn shown(text: &str) -> String {
    text.chars().take(100).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_taken_apart() {
        let secret = |name: &str| Part::Secret(name.parse().unwrap());
        for (text, expected) in [
            ("", vec![]),
            ("Bearer x", vec![Part::Text("Bearer x")]),
            ("{{secrets.crm_key}}", vec![secret("crm_key")]),
            ("Bearer {{ secrets.crm }}!", vec![Part::Text("Bearer "), secret("crm"), Part::Text("!")]),
            ("{{secrets.a}}{{secrets.b}}", vec![secret("a"), secret("b")]),
            ("{{ inputs.x }} {{", vec![Part::Text("{{ inputs.x }} {{")]),
        ] {
            assert_eq!(parts(text), Ok(expected), "{text}");
        }
        for wrong in ["{{secrets.a", "{{secrets}}", "{{secrets.}}", "{{secrets.a b}}", "{{secrets.a.b}}", "x {{ secrets a }}"] {
            assert!(parts(wrong).is_err(), "{wrong}");
        }
    }
}
