//! What is signed: a text with `{body}`, `{timestamp}`, `{id}`, `{url}` and `{method}` in it.

use triggers::{Incoming, Refusal};

/// What stands in for the placeholders.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fields<'a> {
    pub(super) incoming: &'a Incoming<'a>,
    pub(super) timestamp: Option<&'a str>,
    pub(super) id: Option<&'a str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part<'a> {
    Text(&'a str),
    Body,
    Timestamp,
    Id,
    Url,
    Method,
}

impl<'a> Part<'a> {
    fn placeholder(name: &str) -> Option<Self> {
        Some(match name {
            "body" => Self::Body,
            "timestamp" => Self::Timestamp,
            "id" => Self::Id,
            "url" => Self::Url,
            "method" => Self::Method,
            _ => return None,
        })
    }

    fn fill(self, fields: &Fields<'a>) -> Result<&'a [u8], Refusal> {
        Ok(match self {
            Self::Text(text) => text.as_bytes(),
            Self::Body => fields.incoming.body,
            Self::Url => fields.incoming.url.as_bytes(),
            Self::Method => fields.incoming.method.as_bytes(),
            Self::Timestamp => fields.timestamp.ok_or_else(|| Refusal::Missing("timestamp".to_owned()))?.as_bytes(),
            Self::Id => fields.id.ok_or_else(|| Refusal::Missing("id".to_owned()))?.as_bytes(),
        })
    }
}

/// The template in parts, or what is wrong with it.
pub(super) fn parts(template: &str) -> Result<Vec<Part<'_>>, String> {
    let mut found = Vec::new();
    let mut rest = template;
    while let Some((text, after)) = rest.split_once('{') {
        let (name, after) = after.split_once('}').ok_or("`signed` has a brace without its partner")?;
        found.push(Part::Text(text));
        found.push(Part::placeholder(name).ok_or_else(|| format!("`signed` names `{{{name}}}`"))?);
        rest = after;
    }
    found.push(Part::Text(rest));
    found.retain(|part| *part != Part::Text(""));
    if found.contains(&Part::Body) { Ok(found) } else { Err("`signed` leaves out `{body}`".to_owned()) }
}

/// The signed bytes, piece by piece.
pub(super) fn content<'a>(template: &'a str, fields: &Fields<'a>) -> Result<Vec<&'a [u8]>, Refusal> {
    parts(template).map_err(Refusal::Scheme)?.into_iter().map(|part| part.fill(fields)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_are_read_once_and_must_cover_the_body() {
        assert_eq!(parts("v0:{timestamp}:{body}"), Ok(vec![Part::Text("v0:"), Part::Timestamp, Part::Text(":"), Part::Body]));
        assert_eq!(parts("{method}{url}{body}{timestamp}"), Ok(vec![Part::Method, Part::Url, Part::Body, Part::Timestamp]));
        assert_eq!(parts("{timestamp}"), Err("`signed` leaves out `{body}`".to_owned()));
        assert_eq!(parts("{boby}"), Err("`signed` names `{boby}`".to_owned()));
        assert_eq!(parts("{body"), Err("`signed` has a brace without its partner".to_owned()));
    }
}
