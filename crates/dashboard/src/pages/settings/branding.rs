//! How the pages look on which people connect accounts.

use askama::Template;
use axum::Router;
use axum::extract::Query;
use axum::routing::get;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Tab, show_refused_tab};
use crate::form::Form;
use crate::frame::{Frame, Link, see_other, show_refused};
use crate::refusal::{PageResult, Refusal};
use crate::visit::Visit;

const API: &str = "/project/branding";
const TOLD: [(&str, &str); 1] = [("saved", "Saved. Pages that are opened from now on look like this.")];

pub(super) fn routes<S: Clone + Send + Sync + 'static>() -> Router<S> {
    Router::new().route("/{project}/settings/branding", get(one).post(save))
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Branding {
    name: String,
    accent: String,
    background: String,
    logo: String,
}

impl Branding {
    /// Only what is a colour is drawn; what was typed may be none.
    fn drawn<'a>(colour: &'a str, otherwise: &'a str) -> &'a str {
        let is_colour = colour.len() == 7 && colour.starts_with('#') && colour[1..].bytes().all(|byte| byte.is_ascii_hexdigit());
        if is_colour { colour } else { otherwise }
    }

    fn shown_accent(&self) -> &str {
        Self::drawn(&self.accent, "#2457d6")
    }

    fn shown_background(&self) -> &str {
        Self::drawn(&self.background, "#e8ebf0")
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct PageQuery {
    told: Option<String>,
}

#[derive(Template)]
#[template(path = "setting_branding.html")]
struct OnePage {
    frame: Frame,
    tabs: Vec<Link>,
    here: String,
    branding: Branding,
    may_edit: bool,
}

async fn one(visit: Visit, Query(query): Query<PageQuery>) -> PageResult {
    match visit.get(API).await {
        Ok(branding) => show_one(&visit, query.told.as_deref(), None, branding),
        Err(unseen) => show_refused_tab(&visit, Tab::Branding, &unseen),
    }
}

fn show_one(visit: &Visit, told: Option<&str>, refusal: Option<&Refusal>, branding: Branding) -> PageResult {
    let page = OnePage {
        frame: Tab::Branding.frame(visit).told(told, &TOLD).refused(refusal),
        tabs: Tab::Branding.links(visit),
        here: Tab::Branding.here(visit).into(),
        branding,
        may_edit: visit.may("edit_tools"),
    };
    show_refused(refusal, &page)
}

async fn save(visit: Visit, form: Form) -> PageResult {
    let kept: Branding = match visit.get(API).await {
        Ok(kept) => kept,
        Err(unseen) => return show_refused_tab(&visit, Tab::Branding, &unseen),
    };
    // A form shows no file that was sent before, so nothing chosen means that the logo stays.
    let logo = match form.some("logo") {
        Some(chosen) => chosen,
        None if form.has("no_logo") => "",
        None => &kept.logo,
    };
    let [name, accent, background] = ["name", "accent", "background"].map(|field| form.text(field));
    let wanted = json!({"name": some(name), "accent": some(accent), "background": some(background), "logo": some(logo)});
    match visit.put::<Value>(API, wanted).await {
        Ok(_) => see_other(Tab::Branding.here(&visit).with("told", "saved")),
        Err(refusal) => {
            let [name, accent, background] = [name, accent, background].map(str::to_owned);
            show_one(&visit, None, Some(&refusal), Branding { name, accent, background, logo: kept.logo })
        }
    }
}

fn some(text: &str) -> Option<&str> {
    Some(text).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::Branding;

    #[test]
    fn only_colours_are_drawn() {
        assert_eq!(Branding::drawn("#A0b1c2", "x"), "#A0b1c2");
        for typed in ["", "red", "#fff", "#12345g", "\"><script>", "é12345"] {
            assert_eq!(Branding::drawn(typed, "x"), "x", "{typed}");
        }
    }
}
