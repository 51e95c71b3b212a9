//! Tables. A terminal gets aligned columns that fit its width, short ids, local times and coloured states; anything else gets the rows alone,
//! whole cells between tabs.

use std::borrow::Cow;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};
use uuid::Uuid;

use super::{is_terminal, out};

const GAP: usize = 2;
/// Ids that grow with time begin alike; their ends tell them apart.
const SHORT_ID: usize = 8;
/// As wide as `2026-11-16 09:00:00`.
const TIME: usize = 19;

const GREEN: &str = "\x1b[32m";
const YELLOW: &str = "\x1b[33m";
const RED: &str = "\x1b[31m";
const DIM: &str = "\x1b[2m";
const BOLD: &str = "\x1b[1m";
const RESET: &str = "\x1b[0m";

/// A column: its title, and what kind of value stands in it.
#[derive(Clone, Copy, Debug)]
pub(in crate::commands) struct Column<'a> {
    title: &'a str,
    kind: Kind,
    /// How wide it is in a table that grows while it is read.
    wide: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Text,
    Id,
    Time,
    State,
    Number,
}

impl Kind {
    /// A column is not cut below this.
    fn narrowest(self) -> usize {
        match self {
            Self::Text | Self::Id | Self::State | Self::Number => SHORT_ID,
            Self::Time => TIME,
        }
    }
}

impl<'a> Column<'a> {
    pub(in crate::commands) const fn text(title: &'a str) -> Self {
        Self { title, kind: Kind::Text, wide: 20 }
    }

    /// A UUID, of which a terminal shows the end.
    pub(in crate::commands) const fn id(title: &'a str) -> Self {
        Self { title, kind: Kind::Id, wide: SHORT_ID }
    }

    pub(in crate::commands) const fn time(title: &'a str) -> Self {
        Self { title, kind: Kind::Time, wide: TIME }
    }

    /// A state or a status code, which has a colour.
    pub(in crate::commands) const fn state(title: &'a str) -> Self {
        Self { title, kind: Kind::State, wide: 8 }
    }

    /// Numbers stand to the right.
    pub(in crate::commands) const fn number(title: &'a str) -> Self {
        Self { title, kind: Kind::Number, wide: 5 }
    }

    /// How wide it is in a table that grows while it is read.
    pub(in crate::commands) const fn wide(mut self, wide: usize) -> Self {
        self.wide = wide;
        self
    }
}

/// What shall be printed.
#[derive(Clone, Copy, Debug)]
pub(in crate::commands) struct Table<'a> {
    columns: &'a [Column<'a>],
    when_empty: &'a str,
}

impl<'a> Table<'a> {
    pub(in crate::commands) const fn new(columns: &'a [Column<'a>]) -> Self {
        Self { columns, when_empty: "" }
    }

    /// What to say in place of no rows: why there are none, and the next command. It goes to stderr.
    pub(in crate::commands) const fn when_empty(mut self, hint: &'a str) -> Self {
        self.when_empty = hint;
        self
    }

    pub(in crate::commands) fn show(&self, rows: &[Vec<String>]) {
        if rows.is_empty() && !self.when_empty.is_empty() {
            eprintln!("{}", self.when_empty);
            return;
        }
        match View::of_stdout() {
            Some(view) => out(&view.table(self.columns, rows)),
            None => out(&rows.iter().map(|row| tabbed(row)).collect::<String>()),
        }
    }

    /// The header of a table that grows while it is read, for people only.
    pub(in crate::commands) fn header(&self) -> String {
        View::of_stdout().map(|view| view.header(self.columns, &view.fixed(self.columns))).unwrap_or_default()
    }

    /// One row of it.
    pub(in crate::commands) fn row(&self, cells: &[String]) -> String {
        View::of_stdout().map_or_else(|| tabbed(cells), |view| view.row(self.columns, cells, &view.fixed(self.columns)))
    }
}

fn tabbed(row: &[String]) -> String {
    let clean = |cell: &String| cell.replace(['\t', '\n', '\r'], " ");
    format!("{}\n", row.iter().map(clean).collect::<Vec<_>>().join("\t"))
}

/// The terminal that somebody looks at.
#[derive(Debug)]
pub(super) struct View {
    width: Option<usize>,
    colours: bool,
    zone: TimeZone,
}

impl View {
    /// Nothing when no person reads along.
    pub(super) fn of_stdout() -> Option<Self> {
        is_terminal().then(|| Self {
            width: terminal_size::terminal_size().map(|(width, _)| usize::from(width.0)),
            colours: takes_colours(),
            zone: TimeZone::system(),
        })
    }

    pub(super) fn time(&self, sent: &str) -> String {
        let moment = sent.parse::<Timestamp>().ok();
        moment.map_or_else(|| sent.to_owned(), |at| at.to_zoned(self.zone.clone()).strftime("%Y-%m-%d %H:%M:%S").to_string())
    }

    fn painted(&self, colour: &str, text: &str) -> String {
        if self.colours && !colour.is_empty() { format!("{colour}{text}{RESET}") } else { text.to_owned() }
    }

    fn table(&self, columns: &[Column], rows: &[Vec<String>]) -> String {
        let shown: Vec<Vec<String>> =
            rows.iter().map(|row| columns.iter().zip(row).map(|(column, cell)| self.shown(column.kind, cell)).collect()).collect();
        let widest = |index: usize| {
            let cells = shown.iter().filter_map(|row| row.get(index)).map(|cell| cell.width());
            cells.chain(std::iter::once(columns[index].title.width())).max().unwrap_or_default()
        };
        let widths = self.fit(columns, (0..columns.len()).map(widest).collect());
        let mut text = self.header(columns, &widths);
        for row in rows {
            text += &self.row(columns, row, &widths);
        }
        text
    }

    /// The widths of a table whose rows are not known yet; its last column takes what is left.
    fn fixed(&self, columns: &[Column]) -> Vec<usize> {
        let mut widths: Vec<usize> = columns.iter().map(|column| column.wide.max(column.title.width())).collect();
        if let Some(last) = widths.last_mut() {
            *last = self.width.unwrap_or(usize::MAX / 4);
        }
        self.fit(columns, widths)
    }

    /// Cuts the widest columns until a row fits; when that is not enough, the last columns are left out.
    fn fit(&self, columns: &[Column], mut widths: Vec<usize>) -> Vec<usize> {
        let Some(room) = self.width else { return widths };
        let total = |widths: &[usize]| {
            let used = widths.iter().filter(|width| **width > 0);
            used.clone().sum::<usize>() + GAP * used.count().saturating_sub(1)
        };
        for width in &mut widths {
            *width = (*width).min(room);
        }
        while total(&widths) > room {
            let can_give = |index: &usize| widths[*index] > columns[*index].kind.narrowest();
            match (0..columns.len()).filter(can_give).max_by_key(|index| widths[*index]) {
                Some(index) => widths[index] -= 1,
                None => match widths.iter().rposition(|width| *width > 0).filter(|index| *index > 0) {
                    Some(index) => widths[index] = 0,
                    None => break,
                },
            }
        }
        widths
    }

    fn header(&self, columns: &[Column], widths: &[usize]) -> String {
        let cells = columns.iter().zip(widths).filter(|(_, width)| **width > 0);
        let line: Vec<String> = cells.map(|(column, width)| aligned(column.kind, &cut(column.title, *width), *width)).collect();
        format!("{}\n", self.painted(BOLD, line.join("  ").trim_end()))
    }

    fn row(&self, columns: &[Column], cells: &[String], widths: &[usize]) -> String {
        let cells = columns.iter().zip(cells).zip(widths).filter(|(_, width)| **width > 0);
        let line: Vec<String> = cells
            .map(|((column, cell), width)| {
                let shown = aligned(column.kind, &cut(&self.shown(column.kind, cell), *width), *width);
                if column.kind == Kind::State { self.painted(colour(cell), &shown) } else { shown }
            })
            .collect();
        format!("{}\n", line.join("  ").trim_end())
    }

    fn shown(&self, kind: Kind, cell: &str) -> String {
        match kind {
            Kind::Id => short_id(cell).to_owned(),
            Kind::Time => self.time(cell),
            Kind::Text | Kind::State | Kind::Number => clean(cell),
        }
    }
}

/// Colours are for terminals whose owner has not said no; see https://no-color.org.
fn takes_colours() -> bool {
    let said_no = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    !said_no && std::env::var_os("TERM").is_none_or(|kind| kind != "dumb")
}

fn colour(word: &str) -> &'static str {
    if let Ok(code) = word.parse::<u16>() {
        return match code {
            200..=299 => GREEN,
            400.. => RED,
            _ => "",
        };
    }
    match word {
        "ready" | "active" | "done" | "approved" | "allow" | "ok" | "yes" | "succeeded" => GREEN,
        "waiting" | "pending" | "paused" | "leased" | "running" | "ask" | "test" | "needs_auth" | "needs_input" | "training" => YELLOW,
        "dead" | "failed" | "failing" | "error" | "invalid" | "denied" | "refused" | "deny" | "revoked" | "no" => RED,
        "archived" | "deleted" | "expired" | "used" | "inactive" | "cancelled" | "unset" => DIM,
        _ => "",
    }
}

/// The end of a UUID; anything else as it is.
fn short_id(id: &str) -> &str {
    if Uuid::parse_str(id).is_ok() { &id[id.len() - SHORT_ID..] } else { id }
}

/// What others wrote may hold line breaks, and sequences that change the terminal.
pub(super) fn clean(text: &str) -> String {
    text.chars().map(|char| if char.is_control() { ' ' } else { char }).collect()
}

fn cut(text: &str, width: usize) -> Cow<'_, str> {
    if text.width() <= width {
        return Cow::Borrowed(text);
    }
    let mut room = width.saturating_sub(1);
    let kept = text.chars().take_while(|char| {
        let wide = char.width().unwrap_or_default();
        let fits = wide <= room;
        room = room.saturating_sub(wide);
        fits
    });
    Cow::Owned(format!("{}…", kept.collect::<String>().trim_end()))
}

fn aligned(kind: Kind, text: &str, width: usize) -> String {
    let space = " ".repeat(width.saturating_sub(text.width()));
    if kind == Kind::Number { format!("{space}{text}") } else { format!("{text}{space}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: [Column; 5] =
        [Column::text("NAME"), Column::number("N"), Column::time("WHEN"), Column::state("STATE"), Column::id("ID")];

    fn rows() -> Vec<Vec<String>> {
        let row = |name: &str, n: &str, at: &str, state: &str, id: &str| [name, n, at, state, id].map(str::to_owned).to_vec();
        vec![
            row("short", "7", "2026-11-16T08:00:00Z", "ready", "0199a6f2-6c1e-7d11-9d4e-0f6b8f6f7a10"),
            row("a name that is\nrather long", "1200", "", "dead", "12"),
        ]
    }

    fn view(width: Option<usize>, colours: bool) -> View {
        View { width, colours, zone: TimeZone::get("Europe/Berlin").unwrap() }
    }

    #[test]
    fn people_see_short_ids_and_their_own_time() {
        insta::assert_snapshot!(view(None, false).table(&COLUMNS, &rows()), @r"
        NAME                           N  WHEN                 STATE  ID
        short                          7  2026-11-16 09:00:00  ready  8f6f7a10
        a name that is rather long  1200                       dead   12
        ");
    }

    #[test]
    fn rows_fit_the_terminal() {
        let text = view(Some(60), false).table(&COLUMNS, &rows());
        insta::assert_snapshot!(text, @r"
        NAME                 N  WHEN                 STATE  ID
        short                7  2026-11-16 09:00:00  ready  8f6f7a10
        a name that is…   1200                       dead   12
        ");
        for width in 1..100 {
            let text = view(Some(width), false).table(&COLUMNS, &rows());
            assert!(text.lines().all(|line| line.width() <= width), "{width}: {text}");
        }
        assert_eq!(cut("日本語", 5), "日本…");
    }

    #[test]
    fn a_table_that_grows_keeps_its_widths() {
        let columns = [Column::state("STATE"), Column::text("EVENT").wide(10), Column::text("MESSAGE")];
        let view = view(Some(40), false);
        let widths = view.fixed(&columns);
        assert_eq!(widths, [8, 10, 18]);
        let cells = ["done", "WEBHOOK_RECEIVED", "a message that is longer than that"].map(str::to_owned);
        assert_eq!(view.row(&columns, &cells, &widths), "done      WEBHOOK_R…  a message that is…\n");
    }

    #[test]
    fn states_have_colours_where_they_are_wanted() {
        let columns = [Column::state("CODE")];
        let row = |code: &str, colours| view(None, colours).row(&columns, &[code.to_owned()], &[4]);
        assert_eq!(row("dead", true), "\x1b[31mdead\x1b[0m\n");
        assert_eq!(row("200", true), "\x1b[32m200 \x1b[0m\n");
        assert_eq!(row("424", true), "\x1b[31m424 \x1b[0m\n");
        assert_eq!(row("dead", false), "dead\n");
    }

    #[test]
    fn what_others_wrote_does_not_reach_the_terminal() {
        assert_eq!(view(None, true).shown(Kind::Text, "a\x1b]0;title\x07\r\nb"), "a ]0;title   b");
        assert_eq!(tabbed(&["a\tb".to_owned(), "c\nd".to_owned()]), "a b\tc d\n");
    }
}
