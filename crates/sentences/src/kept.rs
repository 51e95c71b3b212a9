//! The file of vectors: sixteen bytes that name the space, then one record per sentence.
//!
//! A record is the hash of the sentence, the scale and the coordinates in a byte each. A file of another space, or one that has grown
//! beyond measure, is begun anew; one that another process holds is read by nobody else, which then embeds for itself.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;

use catalog::search::Row;

use crate::model;

const HEAD: usize = 16;
const RECORD: usize = 8 + 4 + model::WIDTH;
/// Some 200 MB.
const MOST_RECORDS: usize = 500_000;

/// What was embedded before.
pub(crate) struct Kept {
    file: Option<File>,
    rows: HashMap<u64, Row>,
    unwritten: Vec<u8>,
}

impl Kept {
    /// Without a file, or when it cannot be used, it only remembers.
    pub(crate) fn open(path: Option<&Path>) -> Self {
        let mut kept = Self { file: None, rows: HashMap::new(), unwritten: Vec::new() };
        if let Some(path) = path {
            match kept.read(path) {
                Ok(file) => kept.file = Some(file),
                Err(error) => tracing::warn!(%error, path = %path.display(), "vectors are not kept"),
            }
        }
        kept
    }

    pub(crate) fn holds(&self, sentence: &str) -> bool {
        self.rows.contains_key(&hash(sentence))
    }

    pub(crate) fn get(&self, sentence: &str) -> Option<&Row> {
        self.rows.get(&hash(sentence))
    }

    pub(crate) fn put(&mut self, sentence: &str, vector: &[f32]) {
        let (key, row) = (hash(sentence), Row::new(vector));
        self.unwritten.extend(key.to_le_bytes());
        self.unwritten.extend(row.scale.to_le_bytes());
        self.unwritten.extend(row.bytes.iter().map(|byte| byte.cast_unsigned()));
        self.rows.insert(key, row);
    }

    pub(crate) fn write(&mut self) {
        if let Some(file) = &mut self.file
            && let Err(error) = file.write_all(&self.unwritten)
        {
            tracing::warn!(%error, "vectors are not kept");
            self.file = None;
        }
        self.unwritten.clear();
    }

    fn read(&mut self, path: &Path) -> std::io::Result<File> {
        let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        file.try_lock()?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        let head = head();
        let records = match bytes.strip_prefix(head.as_slice()) {
            Some(rest) if rest.len() / RECORD < MOST_RECORDS => rest.as_chunks::<RECORD>().0,
            _ => {
                file.set_len(0)?;
                file.seek(SeekFrom::Start(0))?;
                file.write_all(&head)?;
                return Ok(file);
            }
        };
        for record in records {
            let (key, rest) = record.split_at(8);
            let (scale, bytes) = rest.split_at(4);
            if let (Ok(key), Ok(scale)) = (key.try_into(), scale.try_into()) {
                let row = Row { scale: f32::from_le_bytes(scale), bytes: bytes.iter().map(|byte| byte.cast_signed()).collect() };
                self.rows.insert(u64::from_le_bytes(key), row);
            }
        }
        // A process that was killed may have left half a record.
        let whole = u64::try_from(HEAD + records.len() * RECORD).unwrap_or(u64::MAX);
        file.set_len(whole)?;
        file.seek(SeekFrom::Start(whole))?;
        Ok(file)
    }
}

fn head() -> [u8; HEAD] {
    let mut head = *b"TYVEC001........";
    head[8..].copy_from_slice(&hash(&model::space()).to_le_bytes());
    head
}

/// FNV-1a: the same on every machine and in every release.
fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vector(seed: f32) -> Vec<f32> {
        (0..model::WIDTH).map(|at| (seed + f32::from(u16::try_from(at).expect("small"))).sin() * 0.07).collect()
    }

    #[test]
    fn half_a_record_is_forgotten_and_the_rest_stays() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("vectors");
        let mut kept = Kept::open(Some(&path));
        kept.put("one", &vector(1.0));
        kept.put("two", &vector(2.0));
        kept.write();
        drop(kept);
        let file = OpenOptions::new().write(true).open(&path).expect("the file");
        file.set_len(file.metadata().expect("its size").len() - 5).expect("cut");
        drop(file);
        let mut kept = Kept::open(Some(&path));
        assert!(kept.holds("one") && !kept.holds("two"));
        kept.put("three", &vector(3.0));
        kept.write();
        drop(kept);
        let kept = Kept::open(Some(&path));
        assert_eq!(kept.get("three"), Some(&Row::new(&vector(3.0))));
    }

    #[test]
    fn a_file_of_something_else_is_begun_anew() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("vectors");
        std::fs::write(&path, vec![7; 4096]).expect("written");
        let mut kept = Kept::open(Some(&path));
        assert!(kept.rows.is_empty());
        kept.put("one", &vector(1.0));
        kept.write();
        drop(kept);
        assert!(Kept::open(Some(&path)).holds("one"));
    }
}
