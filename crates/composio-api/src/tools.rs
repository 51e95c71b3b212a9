//! Tools: listing, finding and describing them.

use kernel::Scope;

use crate::names::Toolkit;
use crate::{ApiError, ComposioApi};

impl ComposioApi {
    /// The slugs of all tools.
    pub async fn tool_slugs(&self, scope: Scope) -> Result<Vec<String>, ApiError> {
        let names = self.names(scope).await?;
        Ok(names.toolkits().iter().flat_map(Toolkit::tools).map(|tool| tool.slug().to_owned()).collect())
    }
}
