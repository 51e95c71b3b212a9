//! The pieces that pages are made of. Each writes HTML in which text of others is only ever text.

mod chart;
mod json;
mod object;
mod schema_form;
mod time;

use std::fmt::{self, Display};

use askama::filters::HtmlSafe;

pub(crate) use chart::{Bar, Bars, Top, bars};
pub(crate) use json::json_tree;
pub(crate) use object::json_object;
pub(crate) use schema_form::{Control, arguments, controls};
pub(crate) use time::{duration_ms, time};

/// HTML that was written by us; texts in it are escaped already.
#[derive(Clone, Debug, Default)]
pub(crate) struct Markup(String);

impl Display for Markup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl HtmlSafe for Markup {}

/// A text inside HTML or inside a quoted attribute.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c => escaped.push(c),
        }
    }
    escaped
}

/// How a state looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    Good,
    Wait,
    Bad,
    Plain,
}

/// A state in one or two words.
pub(crate) fn badge(tone: Tone, words: &str) -> Markup {
    let class = match tone {
        Tone::Good => "good",
        Tone::Wait => "wait",
        Tone::Bad => "bad",
        Tone::Plain => "plain",
    };
    Markup(format!("<span class=\"badge {class}\">{}</span>", escape(words)))
}

/// The first letter of an integration's name, as a picture; logos would come from elsewhere.
pub(crate) fn initial(name: &str) -> Markup {
    let letter: String = name.chars().find(|c| c.is_alphanumeric()).into_iter().flat_map(char::to_uppercase).collect();
    // The same for a name and for the key that was made from it.
    let letters = name.bytes().filter(u8::is_ascii_alphanumeric).map(|byte| u32::from(byte.to_ascii_lowercase()));
    let hue = letters.fold(0_u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte)) % 6;
    Markup(format!("<span class=\"initial hue{hue}\" aria-hidden=\"true\">{}</span>", escape(&letter)))
}

/// A text to copy, with its button; the button shows itself where scripts run.
pub(crate) fn copyable(text: &str) -> Markup {
    Markup(format!(
        "<span class=\"copyable\"><code>{}</code><button type=\"button\" class=\"copy\" data-copy hidden>Copy</button></span>",
        escape(text)
    ))
}

/// A block of code to copy.
pub(crate) fn code_block(text: &str) -> Markup {
    Markup(format!(
        "<div class=\"copyable block\"><pre tabindex=\"0\"><code>{}</code></pre><button type=\"button\" class=\"copy\" data-copy hidden>Copy</button></div>",
        escape(text)
    ))
}

/// A long text, folded after its beginning; nothing is cut.
pub(crate) fn folded(text: &str, shown: usize) -> Markup {
    if text.chars().count() <= shown {
        return Markup(format!("<span class=\"text\">{}</span>", escape(text)));
    }
    let start: String = text.chars().take(shown).collect();
    Markup(format!("<details class=\"fold\"><summary>{}…</summary><pre tabindex=\"0\">{}</pre></details>", escape(&start), escape(text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOSTILE: &str = "<script>alert('1')</script>\"&";

    #[test]
    fn text_of_others_is_only_ever_text() {
        for html in
            [badge(Tone::Bad, HOSTILE), copyable(HOSTILE), code_block(HOSTILE), folded(HOSTILE, 5), folded(HOSTILE, 500), initial("<b>")]
        {
            let html = html.to_string();
            assert!(!html.contains("<script") && !html.contains("<b>"), "{html}");
        }
    }

    #[test]
    fn a_name_and_its_key_have_one_picture() {
        assert_eq!(initial("Northwind Orders").to_string(), initial("northwind-orders").to_string());
    }

    #[test]
    fn long_texts_are_folded_and_kept() {
        let html = folded("abcdef", 3).to_string();
        assert!(html.contains("<summary>abc…</summary>") && html.contains(">abcdef</pre>"), "{html}");
    }
}
