//! Data goes to stdout; a reader that goes away is no error.

use std::io::{IsTerminal, Write};

/// Prints text as it is.
pub(super) fn out(text: &str) {
    let _ = std::io::stdout().lock().write_all(text.as_bytes());
}

/// Prints a value as JSON.
pub(super) fn json(value: &serde_json::Value) {
    out(&format!("{value:#}\n"));
}

/// Prints rows in columns, each as wide as its widest cell. A program at the other end gets the rows alone, cells between tabs.
pub(super) fn table(header: &[&str], rows: &[Vec<String>]) {
    if !std::io::stdout().is_terminal() {
        let clean = |cell: &String| cell.replace(['\t', '\n'], " ");
        for row in rows {
            out(&format!("{}\n", row.iter().map(clean).collect::<Vec<_>>().join("\t")));
        }
        return;
    }
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
        cells.chain(std::iter::once(header[column].len())).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..header.len()).map(width).collect();
    let line = |cells: &mut dyn Iterator<Item = &str>| {
        let padded: Vec<String> = cells.zip(&widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        out(&format!("{}\n", padded.join("  ").trim_end()));
    };
    line(&mut header.iter().copied());
    for row in rows {
        line(&mut row.iter().map(String::as_str));
    }
}
