//! Small charts as SVG.

use super::{Markup, escape};

const WIDTH: f64 = 320.0;
const HEIGHT: f64 = 64.0;

/// The bars of a chart: what is good below, what is bad on top, and a word for each.
#[derive(Clone, Debug)]
pub(crate) struct Bars {
    pub(crate) label: String,
    pub(crate) bars: Vec<(f64, f64, String)>,
}

/// Bars from left to right. Whoever does not see them reads the label and a title for each.
pub(crate) fn bars(chart: &Bars) -> Markup {
    let highest = chart.bars.iter().map(|(good, bad, _)| good + bad).fold(0.0_f64, f64::max).max(1.0);
    #[expect(clippy::cast_precision_loss, reason = "a few dozen bars")]
    let step = WIDTH / chart.bars.len().max(1) as f64;
    let mut svg = format!(
        "<svg class=\"chart\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\" preserveAspectRatio=\"none\">",
        escape(&chart.label)
    );
    let mut x = 0.0;
    for (good, bad, title) in &chart.bars {
        let (low, high) = (good / highest * (HEIGHT - 2.0), bad / highest * (HEIGHT - 2.0));
        let width = (step - 1.0).max(0.5);
        svg.push_str(&format!(
            "<g><title>{}</title><rect class=\"hit\" x=\"{x:.1}\" y=\"0\" width=\"{step:.1}\" height=\"{HEIGHT}\"/>",
            escape(title)
        ));
        svg.push_str(&format!("<rect class=\"good\" x=\"{x:.1}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"{low:.1}\"/>", HEIGHT - low));
        svg.push_str(&format!(
            "<rect class=\"bad\" x=\"{x:.1}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"{high:.1}\"/></g>",
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
        let chart = Bars { label: "Calls".to_owned(), bars: vec![(3.0, 1.0, "08:00: <4>".to_owned()), (0.0, 0.0, "09:00: 0".to_owned())] };
        let svg = bars(&chart).to_string();
        assert!(svg.contains("height=\"46.5\"") && svg.contains("height=\"15.5\""), "{svg}");
        assert!(svg.contains("&lt;4&gt;") && svg.contains("aria-label=\"Calls\""), "{svg}");
    }
}
