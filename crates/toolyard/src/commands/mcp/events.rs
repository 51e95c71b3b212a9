//! Server-sent events, read from parts of any size.

/// What is left of a stream after its last whole event.
#[derive(Debug, Default)]
pub(super) struct Events {
    rest: Vec<u8>,
    data: String,
}

impl Events {
    /// The data of the events that this part completes.
    pub(super) fn take(&mut self, part: &[u8]) -> Vec<String> {
        self.rest.extend_from_slice(part);
        let mut complete = Vec::new();
        while let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.rest.drain(..=end).collect();
            let line = String::from_utf8_lossy(&line);
            let line = line.trim_end_matches(['\n', '\r']);
            if line.is_empty() {
                if !self.data.is_empty() {
                    complete.push(std::mem::take(&mut self.data));
                }
            } else if let Some(data) = line.strip_prefix("data:") {
                if !self.data.is_empty() {
                    self.data.push('\n');
                }
                self.data.push_str(data.strip_prefix(' ').unwrap_or(data));
            }
        }
        complete
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_out_whole_however_they_are_cut() {
        let stream = ": hello\n\nevent: message\ndata: {\"a\": \"ä\"}\n\ndata: 1\r\ndata: 2\r\n\r\ndata: never ended";
        for size in [1, 2, 7, stream.len()] {
            let mut events = Events::default();
            let found: Vec<String> = stream.as_bytes().chunks(size).flat_map(|part| events.take(part)).collect();
            assert_eq!(found, ["{\"a\": \"ä\"}", "1\n2"], "{size}");
        }
    }
}
