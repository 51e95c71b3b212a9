//! Addresses, of the API and of pages, from parts that may hold any text.

use std::fmt::{self, Display};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

const KEPT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// An address that is being written.
#[derive(Clone, Debug)]
pub(crate) struct Path {
    text: String,
    has_query: bool,
}

impl Path {
    /// Begins with a path that is written in our own code.
    pub(crate) fn new(start: &str) -> Self {
        Self { text: start.to_owned(), has_query: start.contains('?') }
    }

    /// One more segment.
    #[must_use]
    pub(crate) fn at(mut self, segment: impl Display) -> Self {
        let segment = segment.to_string();
        self.text.push('/');
        // A segment of dots alone would mean another path.
        if segment.bytes().all(|byte| byte == b'.') {
            self.text.push_str(&segment.replace('.', "%2E"));
        } else {
            self.text.extend(utf8_percent_encode(&segment, KEPT));
        }
        self
    }

    /// One more value of the query.
    #[must_use]
    pub(crate) fn with(mut self, name: &str, value: impl Display) -> Self {
        self.text.push(if self.has_query { '&' } else { '?' });
        self.has_query = true;
        self.text.extend(utf8_percent_encode(name, KEPT));
        self.text.push('=');
        self.text.extend(utf8_percent_encode(&value.to_string(), KEPT));
        self
    }

    /// One more value of the query, where there is one that is not empty.
    #[must_use]
    pub(crate) fn with_some(self, name: &str, value: Option<impl Display>) -> Self {
        match value.map(|value| value.to_string()).filter(|value| !value.is_empty()) {
            Some(value) => self.with(name, value),
            None => self,
        }
    }
}

impl Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl From<Path> for String {
    fn from(path: Path) -> Self {
        path.text
    }
}

#[cfg(test)]
mod tests {
    use super::Path;

    #[test]
    fn text_of_others_cannot_leave_its_place() {
        let path = Path::new("/tools/connections")
            .at("a/b?c#d")
            .at("..")
            .with("q", "x&y=z")
            .with_some("no", None::<&str>)
            .with_some("e", Some(""));
        assert_eq!(path.to_string(), "/tools/connections/a%2Fb%3Fc%23d/%2E%2E?q=x%26y%3Dz");
        assert_eq!(Path::new("/a?b=1").with("c", 2).to_string(), "/a?b=1&c=2");
    }
}
