//! Data goes to stdout; a reader that goes away is no error.

use std::io::{IsTerminal, Write};

/// Prints text as it is.
pub(super) fn out(text: &str) {
    reaches(text);
}

/// The same; false once nobody reads any more.
pub(super) fn reaches(text: &str) -> bool {
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).is_ok()
}

/// Prints a value as JSON.
pub(super) fn json(value: &serde_json::Value) {
    out(&format!("{value:#}\n"));
}

/// Prints rows in columns, each as wide as its widest cell. A program at the other end gets the rows alone, cells between tabs.
pub(super) fn table(header: &[&str], rows: &[Vec<String>]) {
    if !is_terminal() {
        for row in rows {
            out(&tabbed(row));
        }
        return;
    }
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
        cells.chain(std::iter::once(header[column].len())).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..header.len()).map(width).collect();
    out(&padded(&mut header.iter().copied(), &widths));
    for row in rows {
        out(&padded(&mut row.iter().map(String::as_str), &widths));
    }
}

/// One row of a table that grows while it is read, so that its widths are fixed beforehand.
pub(super) fn row(cells: &[String], widths: &[usize]) -> String {
    if is_terminal() { padded(&mut cells.iter().map(String::as_str), widths) } else { tabbed(cells) }
}

/// The header of such a table, for people only.
pub(super) fn header(cells: &[&str], widths: &[usize]) -> String {
    if is_terminal() { padded(&mut cells.iter().copied(), widths) } else { String::new() }
}

fn is_terminal() -> bool {
    std::io::stdout().is_terminal()
}

fn tabbed(row: &[String]) -> String {
    let clean = |cell: &String| cell.replace(['\t', '\n'], " ");
    format!("{}\n", row.iter().map(clean).collect::<Vec<_>>().join("\t"))
}

fn padded(cells: &mut dyn Iterator<Item = &str>, widths: &[usize]) -> String {
    let cells: Vec<String> = cells.zip(widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
    format!("{}\n", cells.join("  ").trim_end())
}
