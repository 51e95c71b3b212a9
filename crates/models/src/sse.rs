//! Server-sent events out of bytes that arrive in any pieces.

use crate::ModelError;
use crate::reply::MOST_BYTES;

/// Splits a stream into the data of its events. The names of events are not kept: each API repeats them in the data.
#[derive(Debug, Default)]
pub(crate) struct Events {
    line: Vec<u8>,
    data: Vec<u8>,
    has_data: bool,
    after_return: bool,
    past_start: bool,
}

impl Events {
    /// The data of each event that these bytes complete.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<Vec<Vec<u8>>, ModelError> {
        let mut complete = Vec::new();
        for piece in bytes.split_inclusive(|byte| matches!(byte, b'\n' | b'\r')) {
            let (text, end) = match piece.split_last() {
                Some((end @ (b'\n' | b'\r'), text)) => (text, Some(*end)),
                _ => (piece, None),
            };
            let second_half = self.after_return && text.is_empty() && end == Some(b'\n');
            self.after_return = end == Some(b'\r');
            if second_half {
                continue;
            }
            self.line.extend_from_slice(text);
            if self.line.len() + self.data.len() > MOST_BYTES {
                return Err(ModelError::too_large());
            }
            if end.is_some() {
                complete.extend(self.end_line());
            }
        }
        Ok(complete)
    }

    /// The data of an event that no empty line ended, as the last one of a server may be.
    pub(crate) fn end(&mut self) -> Option<Vec<u8>> {
        self.end_line().or_else(|| self.end_line())
    }

    fn end_line(&mut self) -> Option<Vec<u8>> {
        let line = std::mem::take(&mut self.line);
        let mut line = line.as_slice();
        if !std::mem::replace(&mut self.past_start, true) {
            line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line);
        }
        if line.is_empty() {
            let data = std::mem::take(&mut self.data);
            return std::mem::take(&mut self.has_data).then_some(data);
        }
        if let Some(value) = line.strip_prefix(b"data").filter(|rest| rest.is_empty() || rest[0] == b':') {
            let value = value.strip_prefix(b":").unwrap_or(value);
            if std::mem::replace(&mut self.has_data, true) {
                self.data.push(b'\n');
            }
            self.data.extend_from_slice(value.strip_prefix(b" ").unwrap_or(value));
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pieces: &[&[u8]]) -> Vec<String> {
        let mut events = Events::default();
        let mut found: Vec<Vec<u8>> = pieces.iter().flat_map(|piece| events.push(piece).unwrap()).collect();
        found.extend(events.end());
        found.into_iter().map(|data| String::from_utf8(data).unwrap()).collect()
    }

    #[test]
    fn reads_events_however_they_are_written() {
        let stream = "\u{FEFF}: hello\r\nevent: a\r\ndata: one\r\ndata:two\r\n\r\ndata\n\nid: 3\n\ndata:  x\rdatabase: no\r\rdata: last";
        let expected = ["one\ntwo", "", " x", "last"];
        assert_eq!(read(&[stream.as_bytes()]), expected);
        for split in 0..stream.len() {
            let (before, after) = stream.as_bytes().split_at(split);
            assert_eq!(read(&[before, after]), expected, "split at {split}");
        }
    }

    #[test]
    fn a_line_without_an_end_is_refused() {
        let mut events = Events::default();
        let piece = vec![b'x'; 64 << 10];
        let mut pushed = (0..200).map(|_| events.push(&piece));
        assert!(pushed.any(|result| result.is_err()));
    }
}
