//! Times. The server writes them in UTC; the script writes them again in the reader's zone.

use jiff::Timestamp;

use super::{Markup, escape};

/// A time from the API, or what it says where it is none.
pub(crate) fn time(text: &str) -> Markup {
    let Ok(at) = text.parse::<Timestamp>() else { return Markup(escape(text)) };
    let plain = at.strftime("%Y-%m-%d %H:%M:%S UTC");
    Markup(format!("<time datetime=\"{at}\" title=\"{plain}\">{plain}</time>"))
}

/// How long something took.
pub(crate) fn duration_ms(ms: f64) -> String {
    match ms {
        ms if ms < 10.0 => format!("{ms:.1} ms"),
        ms if ms < 1000.0 => format!("{ms:.0} ms"),
        ms if ms < 60_000.0 => format!("{:.1} s", ms / 1000.0),
        ms => format!("{:.0} min", ms / 60_000.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_marked_up() {
        let html = time("2026-03-01T08:30:00.5Z").to_string();
        assert_eq!(html, "<time datetime=\"2026-03-01T08:30:00.5Z\" title=\"2026-03-01 08:30:00 UTC\">2026-03-01 08:30:00 UTC</time>");
        assert_eq!(time("<soon>").to_string(), "&lt;soon&gt;");
    }

    #[test]
    fn durations_are_short() {
        assert_eq!([0.34, 12.3, 1500.0, 120_000.0].map(duration_ms), ["0.3 ms", "12 ms", "1.5 s", "2 min"]);
    }
}
