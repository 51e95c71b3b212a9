//! `/project/branding`: how the pages look on which people connect accounts.

use accounts::{AccountError, Branding, Logo};
use axum::extract::State;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use document::ToSchema;
use serde::{Deserialize, Serialize};

use crate::App;
use crate::edge::auth::{EditTools, ViewTools};
use crate::edge::{ApiResult, Json, Payload, Scoped};

const PNG: &str = "data:image/png;base64,";

/// How a project shows itself. What is absent is shown as Toolyard shows it.
#[derive(Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BrandingBody {
    /// Who asks, in up to 80 characters; an empty one is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 80)]
    pub name: Option<String>,
    /// Of buttons, such as `#2457d6`; what is written on them is black or white, whichever can be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<crate::shapes::ColourText>)]
    pub accent: Option<String>,
    /// Around what is read.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<crate::shapes::ColourText>)]
    pub background: Option<String>,
    /// A PNG of up to 64 KiB and 1024 pixels to a side, as `data:image/png;base64,...`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<crate::shapes::PngText>)]
    pub logo: Option<String>,
}

impl From<Branding> for BrandingBody {
    fn from(branding: Branding) -> Self {
        Self {
            name: branding.name,
            accent: branding.accent.map(|colour| colour.to_string()),
            background: branding.background.map(|colour| colour.to_string()),
            logo: branding.logo.as_ref().map(data_url),
        }
    }
}

impl BrandingBody {
    fn read(self) -> Result<Branding, AccountError> {
        let colour = |written: Option<String>| written.map(|written| written.parse()).transpose();
        Ok(Branding {
            name: Branding::read_name(self.name.as_deref())?,
            accent: colour(self.accent)?,
            background: colour(self.background)?,
            logo: self.logo.map(|logo| read_logo(&logo)).transpose()?,
        })
    }
}

fn read_logo(written: &str) -> Result<Logo, AccountError> {
    let bytes = written.strip_prefix(PNG).and_then(|encoded| STANDARD.decode(encoded).ok());
    Logo::new(bytes.ok_or_else(|| AccountError::Setting(format!("`logo` must be a PNG, as `{PNG}...`.")))?)
}

/// A picture as a part of the page, so that nothing else has to be asked for.
pub(crate) fn data_url(logo: &Logo) -> String {
    format!("{PNG}{}", STANDARD.encode(logo.bytes()))
}

/// Read how the project's connect pages look
#[document::path(get, path = "/project/branding", operation_id = "fetch_branding", tag = "Project", security(("key" = ["view_tools"])),
    responses((status = 200, body = BrandingBody)))]
pub(crate) async fn fetch(Scoped(scope, _): Scoped<ViewTools>, State(app): State<App>) -> ApiResult<Json<BrandingBody>> {
    Ok(Json(app.accounts.branding(scope.project).await?.into()))
}

/// Say how the project's connect pages look
///
/// It takes the place of what was said before: what is absent is taken away.
#[document::path(put, path = "/project/branding", operation_id = "set_branding", tag = "Project", security(("key" = ["edit_tools"])),
    request_body = BrandingBody, responses((status = 200, body = BrandingBody), (status = 422, description = "A colour, a name or a picture that cannot be taken")))]
pub(crate) async fn set(
    Scoped(scope, _): Scoped<EditTools>,
    State(app): State<App>,
    Payload(body): Payload<BrandingBody>,
) -> ApiResult<Json<BrandingBody>> {
    let branding = body.read()?;
    app.accounts.set_branding(scope, &branding).await?;
    Ok(Json(branding.into()))
}
