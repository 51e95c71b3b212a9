//! What the index knows about one action or event: plain words, no provider types.

/// Whether a document is something to call or something to wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Kind {
    #[default]
    Action,
    Event,
}

/// One action or event as the caller describes it; the index keeps its words, not its strings.
#[derive(Debug, Clone, Default)]
pub struct Document {
    /// The caller's handle, handed back in every hit; unique over all indexes that are searched together.
    pub id: u64,
    pub kind: Kind,
    /// The key of the provider that offers the integration (`native`, `composio`, ...).
    pub provider: String,
    pub integration: Integration,
    /// The noun group of the action where the provider has one (`message`, `issue`).
    pub resource: String,
    pub name: String,
    pub description: String,
    pub parameters: Vec<String>,
    /// What is said of the parameters: weak evidence, such as the things that they may name.
    pub about_parameters: String,
    /// Sentences for which this document is the right answer.
    pub use_cases: Vec<String>,
    pub read_only: bool,
    pub destructive: bool,
    /// How often people mean this when they mean its app, from 0 to 1, where somebody said so.
    pub usage: Option<f32>,
}

/// The app that a document belongs to.
#[derive(Debug, Clone, Default)]
pub struct Integration {
    pub key: String,
    pub name: String,
    pub aliases: Vec<String>,
    /// A sentence about the app and its categories: weak evidence, shared by all its documents.
    pub about: String,
}

impl Document {
    /// The sentence that stands for this document in the dense space.
    pub fn sentence(&self) -> String {
        let mut text = String::with_capacity(self.integration.name.len() + self.name.len() + self.description.len() + 16);
        for part in [&self.integration.name, &self.name, &self.resource, &self.description] {
            let part = part.trim();
            if part.is_empty() || text.ends_with(part) {
                continue;
            }
            if !text.is_empty() {
                text.push_str(": ");
            }
            text.push_str(&apart(part));
        }
        text
    }
}

/// The text with names such as `getAllContacts` and `SEND_EMAIL` in words of their own.
fn apart(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    let mut before = ' ';
    for c in text.chars() {
        if c.is_uppercase() && before.is_lowercase() {
            out.push(' ');
        }
        out.push(if c == '_' { ' ' } else { c });
        before = c;
    }
    out
}
