//! Branding: how a project's pages look on which people connect accounts. A plain value: a name, two colours, a picture.

use std::fmt;
use std::str::FromStr;

use kernel::{ProjectId, Scope};
use store::{Row, StoreError, args};

use crate::{AccountError, Accounts};

const MAX_NAME: usize = 80;
/// The largest picture, in bytes and in pixels to a side.
const MAX_LOGO: usize = 64 << 10;
const MAX_SIDE: u32 = 1024;
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";

/// How a project shows itself; nothing of it where it says nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Branding {
    pub name: Option<String>,
    /// Of buttons.
    pub accent: Option<Colour>,
    /// Around what is read.
    pub background: Option<Colour>,
    pub logo: Option<Logo>,
}

/// A colour: red, green and blue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Colour([u8; 3]);

impl Colour {
    /// Black or white, whichever can be read better on it, by the contrast of WCAG.
    #[must_use]
    pub fn text(self) -> Self {
        let linear = |part: u8| {
            let part = f64::from(part) / 255.0;
            if part <= 0.04045 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) }
        };
        let [red, green, blue] = self.0.map(linear);
        let luminance = 0.2126 * red + 0.7152 * green + 0.0722 * blue;
        // Where black and white stand out equally.
        if luminance > 0.179 { Self([0; 3]) } else { Self([255; 3]) }
    }

    fn read(number: i64) -> Option<Self> {
        let [0, red, green, blue] = u32::try_from(number).ok()?.to_be_bytes() else { return None };
        Some(Self([red, green, blue]))
    }

    fn number(self) -> i64 {
        let [red, green, blue] = self.0;
        i64::from(u32::from_be_bytes([0, red, green, blue]))
    }
}

/// As pages write it: `#2457d6`, and never anything else.
impl fmt::Display for Colour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [red, green, blue] = self.0;
        write!(f, "#{red:02x}{green:02x}{blue:02x}")
    }
}

impl FromStr for Colour {
    type Err = AccountError;

    fn from_str(text: &str) -> Result<Self, AccountError> {
        let digits = text.strip_prefix('#').filter(|digits| digits.len() == 6 && digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let number = digits.and_then(|digits| i64::from_str_radix(digits, 16).ok());
        number.and_then(Self::read).ok_or_else(|| AccountError::Setting(format!("`{text}` is no colour; write one like `#2457d6`.")))
    }
}

/// A small PNG. Other pictures are not taken: an SVG can hold scripts, and an address elsewhere would be told who opens the page.
#[derive(Clone, PartialEq, Eq)]
pub struct Logo(Vec<u8>);

impl fmt::Debug for Logo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Logo({} bytes)", self.0.len())
    }
}

impl Logo {
    pub fn new(bytes: Vec<u8>) -> Result<Self, AccountError> {
        let refused = |why: String| Err(AccountError::Setting(format!("`logo` {why}.")));
        if bytes.len() > MAX_LOGO {
            return refused(format!("may have {} KiB, and this one has {}", MAX_LOGO >> 10, bytes.len().div_ceil(1 << 10)));
        }
        let side = |at: usize| bytes.get(at..at + 4).and_then(|side| side.try_into().ok()).map(u32::from_be_bytes);
        match (bytes.starts_with(PNG) && bytes.get(12..16) == Some(b"IHDR"), side(16), side(20)) {
            (true, Some(1..=MAX_SIDE), Some(1..=MAX_SIDE)) => Ok(Self(bytes)),
            (true, Some(width), Some(height)) => {
                refused(format!("may have {MAX_SIDE} pixels to a side, and this one is {width} by {height}"))
            }
            _ => refused("must be a PNG".to_owned()),
        }
    }

    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl Branding {
    /// Takes a name as it is typed; an empty one is none.
    pub fn read_name(name: Option<&str>) -> Result<Option<String>, AccountError> {
        let name = name.unwrap_or_default();
        if name.chars().count() > MAX_NAME || name.trim().chars().any(char::is_control) {
            return Err(AccountError::Setting(format!("`name` may have {MAX_NAME} characters that can be shown.")));
        }
        Ok(Some(name.trim().to_owned()).filter(|name| !name.is_empty()))
    }

    fn read(row: &Row) -> Result<Self, StoreError> {
        let colour = |column: &str| Ok::<_, StoreError>(row.get::<Option<i64>>(column)?.and_then(Colour::read));
        Ok(Self {
            name: row.get("name")?,
            accent: colour("accent")?,
            background: colour("background")?,
            logo: row.get::<Option<Vec<u8>>>("logo")?.map(Logo),
        })
    }
}

impl Accounts {
    #[kernel::boxed]
    pub async fn branding(&self, project: ProjectId) -> Result<Branding, AccountError> {
        let sql = "select name, accent, background, logo from project_branding where project_id = $1";
        let row = self.db.optional(sql, args![project]).await?;
        Ok(row.as_ref().map(Branding::read).transpose()?.unwrap_or_default())
    }

    /// Puts a branding in the place of the one before.
    #[kernel::boxed]
    pub async fn set_branding(&self, scope: Scope, branding: &Branding) -> Result<(), AccountError> {
        let sql = "insert into project_branding (project_id, name, accent, background, logo, updated_at, updated_by_id) \
                   values ($1, $2, $3, $4, $5, $6, $7) on conflict (project_id) do update set name = excluded.name, accent = excluded.accent, \
                   background = excluded.background, logo = excluded.logo, updated_at = excluded.updated_at, updated_by_id = excluded.updated_by_id";
        let number = |colour: Option<Colour>| colour.map(Colour::number);
        let args = args![
            scope.project,
            branding.name.as_deref(),
            number(branding.accent),
            number(branding.background),
            branding.logo.as_ref().map(|logo| logo.bytes().to_vec()),
            self.clock.now(),
            scope.author()
        ];
        self.db.execute(sql, args).await?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_colour_is_six_digits_and_nothing_else() {
        let colour: Colour = "#2457D6".parse().unwrap();
        assert_eq!((colour.to_string(), Colour::read(colour.number())), ("#2457d6".to_owned(), Some(colour)));
        for wrong in ["", "#fff", "2457d6", "#2457d", "#2457dg", "#+457d6", "red", "#2457d6;}", "url(#x)"] {
            assert!(wrong.parse::<Colour>().is_err(), "{wrong}");
        }
        assert_eq!(Colour::read(-1), None);
        assert_eq!(Colour::read(1 << 24), None);
    }

    #[test]
    fn what_is_written_on_a_colour_can_be_read() {
        let text = |colour: &str| colour.parse::<Colour>().unwrap().text().to_string();
        assert_eq!(["#ffffff", "#ffd500", "#2457d6", "#000000"].map(text), ["#000000", "#000000", "#ffffff", "#ffffff"]);
    }

    #[test]
    fn a_logo_is_a_small_png() {
        let png = |width: u32, height: u32, more: usize| {
            let header = [PNG, b"\0\0\0\rIHDR", &width.to_be_bytes(), &height.to_be_bytes(), &vec![0; more]].concat();
            Logo::new(header).map(|logo| logo.bytes().len()).map_err(|error| error.to_string())
        };
        assert_eq!(png(64, 32, 10), Ok(34));
        for (made, words) in [
            (png(0, 1, 0), "pixels"),
            (png(2000, 1, 0), "2000 by 1"),
            (png(1, 1, MAX_LOGO), "64 KiB"),
            (Logo::new(b"<svg/>".to_vec()).map(|_| 0).map_err(|error| error.to_string()), "must be a PNG"),
            (Logo::new(PNG.to_vec()).map(|_| 0).map_err(|error| error.to_string()), "must be a PNG"),
        ] {
            assert!(made.as_ref().is_err_and(|error| error.contains(words)), "{made:?}");
        }
    }
}
