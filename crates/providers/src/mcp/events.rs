//! Server-sent events, bit by bit.

use serde_json::Value;

use super::fault::Fault;
use super::wire::MAX_MESSAGE;

/// A stream of events on its way in.
#[derive(Debug, Default)]
pub(super) struct Events {
    /// What came and is not a whole line yet.
    rest: Vec<u8>,
    /// How far `rest` was looked through.
    seen: usize,
    data: String,
    /// The last id, from which a broken stream can be taken up again.
    pub(super) last_id: Option<String>,
}

impl Events {
    /// A stream that goes on after an event.
    pub(super) fn after(last_id: Option<String>) -> Self {
        Self { last_id, ..Self::default() }
    }

    /// Takes what came in and hands back the messages that are whole now.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<Vec<Value>, Fault> {
        self.rest.extend_from_slice(bytes);
        let mut messages = Vec::new();
        let mut start = 0;
        while let Some(end) = self.rest[self.seen..].iter().position(|&byte| byte == b'\n').map(|at| self.seen + at) {
            let line = String::from_utf8_lossy(&self.rest[start..end]).into_owned();
            self.line(line.trim_end_matches('\r'), &mut messages)?;
            start = end + 1;
            self.seen = start;
        }
        self.rest.drain(..start);
        self.seen = self.rest.len();
        if self.rest.len() + self.data.len() > MAX_MESSAGE {
            return Err(Fault::TooLarge(MAX_MESSAGE));
        }
        Ok(messages)
    }

    fn line(&mut self, line: &str, messages: &mut Vec<Value>) -> Result<(), Fault> {
        if line.is_empty() {
            let data = std::mem::take(&mut self.data);
            if !data.trim().is_empty() {
                messages.push(serde_json::from_str(&data).map_err(|error| Fault::Unreadable(error.to_string()))?);
            }
            return Ok(());
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
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn events_come_in_any_pieces() {
        let text =
            "id: 7\r\nevent: message\r\ndata: {\"a\":\r\ndata: 1}\r\n\r\n: silence\n\nid: 8\ndata:\n\ndata: [2]\n\nretry: 3\ndata: {";
        for size in [1, 2, 7, 1000] {
            let mut events = Events::default();
            let mut found = Vec::new();
            for piece in text.as_bytes().chunks(size) {
                found.extend(events.push(piece).unwrap());
            }
            assert_eq!(found, [json!({"a": 1}), json!([2])]);
            assert_eq!(events.last_id.as_deref(), Some("8"));
        }
        assert!(matches!(Events::default().push(b"data: nonsense\n\n"), Err(Fault::Unreadable(_))));
        let mut events = Events::default();
        let long = vec![b'x'; MAX_MESSAGE + 1];
        assert!(matches!(events.push(&long), Err(Fault::TooLarge(_))));
    }
}
