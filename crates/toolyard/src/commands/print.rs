//! Data goes to stdout; a reader that goes away is no error. People at a terminal get columns, colours and their own time; programs get everything as it is.

mod progress;
mod table;

use std::io::{IsTerminal, Write};

pub(super) use progress::during;
pub(super) use table::{Column, Table};
use table::{View, clean};

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

/// Prints what a change came to: the whole answer as JSON, or one line.
pub(super) fn done(reply: &serde_json::Value, as_json: bool, line: &str) {
    if as_json {
        json(reply);
    } else {
        out(&format!("{line}\n"));
    }
}

/// Prints rows below plain titles.
pub(super) fn table(titles: &[&str], rows: &[Vec<String>]) {
    let columns: Vec<Column> = titles.iter().map(|title| Column::text(title)).collect();
    Table::new(&columns).show(rows);
}

/// Prints one thing: a name and a value a line, without those that are empty.
pub(super) fn fields(fields: &[(&str, String)]) {
    let said = || fields.iter().filter(|(_, value)| !value.is_empty());
    let width = said().map(|(name, _)| name.len()).max().unwrap_or_default();
    for (name, value) in said() {
        let value = if is_terminal() { clean(value) } else { value.clone() };
        out(&format!("{name:<width$}  {value}\n"));
    }
}

/// A time for a line of text: on a terminal on this machine's clock, else as it was sent.
pub(super) fn time(sent: &str) -> String {
    View::of_stdout().map_or_else(|| sent.to_owned(), |view| view.time(sent))
}

fn is_terminal() -> bool {
    std::io::stdout().is_terminal()
}
