//! The copy of the catalog on disk: lines of JSON, written beside the old copy and put in its place when whole. A start without the network
//! lists what the last one knew.

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::Path;

use kernel::Timestamp;
use serde::{Deserialize, Serialize};

use crate::convert::{Tool, Toolkit, TriggerType};

const VERSION: u32 = 1;

/// Everything that Composio offers.
#[derive(Debug, Default)]
pub(crate) struct Offer {
    pub(crate) toolkits: Vec<Toolkit>,
    pub(crate) tools: Vec<Tool>,
    pub(crate) triggers: Vec<TriggerType>,
}

#[derive(Debug, Serialize, Deserialize)]
enum Line<T, A, E> {
    Header { version: u32, of: String, at: i64 },
    Toolkit(T),
    Tool(A),
    Trigger(E),
    End,
}

/// Writes a copy for the identity of a key.
pub(crate) fn write(path: &Path, identity: &str, at: Timestamp, offer: &Offer) -> io::Result<()> {
    let beside = path.with_extension("new");
    let mut file = BufWriter::new(private(&beside)?);
    let mut line = |line: &Line<&Toolkit, &Tool, &TriggerType>| -> io::Result<()> {
        serde_json::to_writer(&mut file, line)?;
        file.write_all(b"\n")
    };
    line(&Line::Header { version: VERSION, of: identity.to_owned(), at: at.micros() })?;
    offer.toolkits.iter().try_for_each(|toolkit| line(&Line::Toolkit(toolkit)))?;
    offer.tools.iter().try_for_each(|tool| line(&Line::Tool(tool)))?;
    offer.triggers.iter().try_for_each(|trigger| line(&Line::Trigger(trigger)))?;
    line(&Line::End)?;
    file.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
    std::fs::rename(beside, path)
}

/// Reads a copy back: nothing if there is none, or one of another key, another version or not whole.
pub(crate) fn read(path: &Path, identity: &str) -> Option<(Timestamp, Offer)> {
    let mut lines = BufReader::new(File::open(path).ok()?).lines();
    let next = |lines: &mut io::Lines<_>| -> Option<Line<Toolkit, Tool, TriggerType>> { serde_json::from_str(&lines.next()?.ok()?).ok() };
    let at = match next(&mut lines)? {
        Line::Header { version: VERSION, of, at } if of == identity => Timestamp::from_micros(at),
        _ => return None,
    };
    let mut offer = Offer::default();
    loop {
        match next(&mut lines)? {
            Line::Toolkit(toolkit) => offer.toolkits.push(toolkit),
            Line::Tool(tool) => offer.tools.push(tool),
            Line::Trigger(trigger) => offer.triggers.push(trigger),
            Line::End => return Some((at, offer)),
            Line::Header { .. } => return None,
        }
    }
}

/// A file that only its owner reads.
fn private(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_copy_reads_back_for_its_own_key_only_and_only_if_it_is_whole() {
        let dir = std::env::temp_dir().join(format!("toolyard-kept-{}", uuid()));
        std::fs::create_dir_all(&dir).unwrap();
        let path = dir.join("composio.catalog");
        let offer = Offer {
            toolkits: vec![serde_json::from_value(json!({"slug": "a", "name": "A", "auth_schemes": ["OAUTH2"]})).unwrap()],
            tools: vec![
                serde_json::from_value(json!({"slug": "A_X", "toolkit": {"slug": "a"}, "input_parameters": {"type": "object"}})).unwrap(),
            ],
            triggers: vec![],
        };
        write(&path, "key", Timestamp::from_micros(7), &offer).unwrap();
        let (at, read_back) = read(&path, "key").unwrap();
        assert_eq!((at.micros(), read_back.toolkits.len(), read_back.tools[0].slug.as_str()), (7, 1, "A_X"));
        assert!(read(&path, "another key").is_none());
        let whole = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, &whole[..whole.len() - 8]).unwrap();
        assert!(read(&path, "key").is_none());
        assert!(read(&dir.join("none"), "key").is_none());
        std::fs::remove_dir_all(dir).unwrap();
    }

    fn uuid() -> u128 {
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos()
    }
}
