//! Server-sent events, bit by bit.

/// A stream of events on its way in.
#[derive(Debug)]
pub struct Events {
    /// The bytes that one event may have.
    most: usize,
    /// What came and is not a whole line yet.
    rest: Vec<u8>,
    /// How far `rest` was looked through.
    seen: usize,
    data: String,
    last_id: Option<String>,
}

/// An event is longer than it may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an event has more than {0} bytes")]
pub struct TooLong(pub usize);

impl Events {
    pub fn new(most: usize) -> Self {
        Self { most, rest: Vec::new(), seen: 0, data: String::new(), last_id: None }
    }

    /// The same stream taken up again after the last event that came whole.
    #[must_use]
    pub fn resumed(self) -> Self {
        Self { last_id: self.last_id, ..Self::new(self.most) }
    }

    /// The last id, from which a broken stream can be taken up again.
    pub fn last_id(&self) -> Option<&str> {
        self.last_id.as_deref()
    }

    /// Takes what came in and hands back the data of the events that are whole now.
    pub fn push(&mut self, bytes: &[u8]) -> Result<Vec<String>, TooLong> {
        self.rest.extend_from_slice(bytes);
        let mut events = Vec::new();
        let mut start = 0;
        while let Some(end) = self.rest[self.seen..].iter().position(|&byte| byte == b'\n').map(|at| self.seen + at) {
            let line = String::from_utf8_lossy(&self.rest[start..end]).into_owned();
            events.extend(self.line(line.trim_end_matches('\r')));
            start = end + 1;
            self.seen = start;
        }
        self.rest.drain(..start);
        self.seen = self.rest.len();
        if self.rest.len() + self.data.len() > self.most { Err(TooLong(self.most)) } else { Ok(events) }
    }

    /// The data of the event that this line ends.
    fn line(&mut self, line: &str) -> Option<String> {
        if line.is_empty() {
            return Some(std::mem::take(&mut self.data)).filter(|data| !data.trim().is_empty());
        }
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match name {
            "data" => {
                if !self.data.is_empty() {
                    self.data.push('\n');
                }
                self.data.push_str(value);
            }
            "id" if value.len() <= 1024 => self.last_id = Some(value.to_owned()),
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_out_whole_however_they_are_cut() {
        let stream =
            "id: 7\r\nevent: message\r\ndata: {\"a\":\r\ndata: \"ä\"}\r\n\r\n: silence\n\nid: 8\ndata:\n\ndata: [2]\n\nretry: 3\ndata: {";
        for size in [1, 2, 7, 1000] {
            let mut events = Events::new(100);
            let found: Vec<String> = stream.as_bytes().chunks(size).flat_map(|part| events.push(part).unwrap()).collect();
            assert_eq!(found, ["{\"a\":\n\"ä\"}", "[2]"], "{size}");
            assert_eq!(events.last_id(), Some("8"));
            assert_eq!(events.resumed().push(b"data: x\n\n").unwrap(), ["x"], "what was cut off is forgotten");
        }
        assert_eq!(Events::new(10).push(&[b'x'; 11]), Err(TooLong(10)));
    }
}
