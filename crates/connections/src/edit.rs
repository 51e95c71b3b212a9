//! What people call a connection.

use ::store::Usage;
use kernel::{ConnectionId, Scope};

use crate::{AccountsOf, Connection, ConnectionError, Connections, store};

/// The longest name, and the longest description, in characters.
const MAX_NAME: usize = 255;
const MAX_DESCRIPTION: usize = 2000;

/// What becomes of a text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum TextEdit {
    #[default]
    Keep,
    Clear,
    Set(String),
}

impl TextEdit {
    pub(crate) fn is_kept(&self) -> bool {
        *self == Self::Keep
    }

    /// What it is to be, if it is set.
    pub(crate) fn text(&self) -> Option<&str> {
        match self {
            Self::Set(text) => Some(text),
            Self::Keep | Self::Clear => None,
        }
    }

    fn check(&self, what: &str, most: usize) -> Result<(), ConnectionError> {
        let words = match self.text() {
            Some(text) if text.trim().is_empty() => format!("`{what}` is empty; send null to clear it"),
            Some(text) if text.chars().count() > most => format!("`{what}` has more than {most} characters"),
            _ => return Ok(()),
        };
        Err(ConnectionError::Words(words))
    }
}

/// What becomes of the words on a connection.
#[derive(Clone, Debug, Default)]
pub struct ConnectionEdit {
    pub name: TextEdit,
    pub description: TextEdit,
}

impl Connections {
    /// Changes the name and the description. What it is called by in refs, its slug, stays.
    #[kernel::boxed]
    pub async fn edit(&self, scope: Scope, id: ConnectionId, edit: ConnectionEdit) -> Result<Connection, ConnectionError> {
        edit.name.check("name", MAX_NAME)?;
        edit.description.check("description", MAX_DESCRIPTION)?;
        if edit.name.text().is_some_and(|name| name.contains(char::is_control)) {
            return Err(ConnectionError::Words("`name` has characters that cannot be shown".to_owned()));
        }
        if edit.name.is_kept() && edit.description.is_kept() {
            return self.seen(scope, id).await;
        }
        let owner = self.seen(scope, id).await?.owner;
        let texts = [&edit.name, &edit.description].into_iter().filter_map(TextEdit::text).map(str::len).sum();
        let more = Usage { rows: 0, ..Usage::row(texts) };
        self.admit(AccountsOf { project: scope.project, owner }, more).await?;
        let edited = store::edit(&self.0.db, scope.project, id, &edit, scope.author(), self.0.clock.now()).await?;
        edited.ok_or(ConnectionError::NotFound)
    }
}
