//! Small charts as SVG.

use jiff::Timestamp;

use super::{Markup, escape};

const WIDTH: f64 = 320.0;
const HEIGHT: f64 = 64.0;

/// The bars of a chart.
#[derive(Clone, Debug)]
pub(crate) struct Bars {
    pub(crate) label: String,
    /// What the upper part of each bar is.
    pub(crate) top: Top,
    pub(crate) all: Vec<Bar>,
}

/// What stands on top of the lower part of a bar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Top {
    /// What went wrong.
    Bad,
    /// How much higher it went at times.
    More,
}

/// A bar: the time that it begins at, its two parts, and the same in words.
#[derive(Clone, Debug)]
pub(crate) struct Bar {
    pub(crate) from: String,
    pub(crate) low: f64,
    pub(crate) high: f64,
    pub(crate) words: String,
}

impl Bar {
    /// In UTC; the script writes it again in the reader's zone.
    fn title(&self) -> String {
        let at = self.from.parse::<Timestamp>().map_or_else(|_| self.from.clone(), |at| at.strftime("%b %-d %H:%M UTC").to_string());
        format!("<title data-at=\"{}\">{}</title>", escape(&self.from), escape(&format!("{at}: {}", self.words)))
    }
}

/// Bars from left to right. Whoever does not see them reads the label and a title for each.
pub(crate) fn bars(chart: &Bars) -> Markup {
    let highest = chart.all.iter().map(|bar| bar.low + bar.high).fold(0.0_f64, f64::max);
    let highest = if highest > 0.0 { highest } else { 1.0 };
    let top = if chart.top == Top::Bad { "bad" } else { "more" };
    #[expect(clippy::cast_precision_loss, reason = "a few dozen bars")]
    let step = WIDTH / chart.all.len().max(1) as f64;
    let mut svg = format!(
        "<svg class=\"chart\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\" preserveAspectRatio=\"none\">",
        escape(&chart.label)
    );
    let mut x = 0.0;
    for bar in &chart.all {
        let (low, high) = (bar.low / highest * (HEIGHT - 2.0), bar.high / highest * (HEIGHT - 2.0));
        let width = (step - 1.0).max(0.5);
        svg.push_str(&format!("<g>{}<rect class=\"hit\" x=\"{x:.1}\" y=\"0\" width=\"{step:.1}\" height=\"{HEIGHT}\"/>", bar.title()));
        svg.push_str(&format!("<rect class=\"good\" x=\"{x:.1}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"{low:.1}\"/>", HEIGHT - low));
        svg.push_str(&format!(
            "<rect class=\"{top}\" x=\"{x:.1}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"{high:.1}\"/></g>",
            HEIGHT - low - high
        ));
        x += step;
    }
    svg.push_str(&format!("<line x1=\"0\" x2=\"{WIDTH}\" y1=\"{HEIGHT}\" y2=\"{HEIGHT}\"/></svg>"));
    Markup(svg)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_bar_fills_the_chart() {
        let bar = |from: &str, low, high, words: &str| Bar { from: from.to_owned(), low, high, words: words.to_owned() };
        let all = vec![bar("2026-11-17T08:00:00Z", 3.0, 1.0, "<4>"), bar("soon", 0.0, 0.0, "0")];
        let svg = bars(&Bars { label: "Calls".to_owned(), top: Top::Bad, all }).to_string();
        assert!(svg.contains("<title data-at=\"2026-11-17T08:00:00Z\">Nov 17 08:00 UTC: &lt;4&gt;</title>"), "{svg}");
        assert!(svg.contains("height=\"46.5\"") && svg.contains("height=\"15.5\""), "{svg}");
        assert!(svg.contains("class=\"bad\"") && svg.contains("aria-label=\"Calls\""), "{svg}");
    }
}
