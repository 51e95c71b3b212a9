//! The tools of a server as they come in, page by page: no more of each than is used, and no more in all than fits.

use serde_json::{Map, Value};

use crate::fault::ServerError;

pub(crate) const MAX_TOOLS: usize = 2000;
const MAX_BYTES: usize = 24 << 20;
const USED: [&str; 7] = ["name", "title", "description", "inputSchema", "outputSchema", "annotations", "execution"];

#[derive(Debug, Default)]
pub(crate) struct Listing {
    pub(crate) tools: Vec<Value>,
    bytes: usize,
}

impl Listing {
    /// The same with a page more, and where the next one begins if there is one.
    pub(crate) fn with(mut self, page: Value) -> Result<(Self, Option<String>), ServerError> {
        let next = self.take(page)?;
        Ok((self, next))
    }

    /// Takes a page, and says where the next one begins if there is one.
    fn take(&mut self, page: Value) -> Result<Option<String>, ServerError> {
        self.bytes += page.to_string().len();
        if self.bytes > MAX_BYTES {
            return Err(ServerError::LongList(MAX_BYTES));
        }
        let Value::Object(mut page) = page else { return Err(ServerError::Unreadable("the list of tools is no object".to_owned())) };
        let Some(Value::Array(found)) = page.remove("tools") else {
            return Err(ServerError::Unreadable("the list of tools has no `tools`".to_owned()));
        };
        self.tools.extend(found.into_iter().map(used));
        match page.remove("nextCursor") {
            Some(Value::String(next)) if self.tools.len() <= MAX_TOOLS => Ok(Some(next)),
            _ => Ok(None),
        }
    }
}

fn used(tool: Value) -> Value {
    let Value::Object(mut tool) = tool else { return Value::Object(Map::new()) };
    tool.retain(|field, _| USED.contains(&field.as_str()));
    Value::Object(tool)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_list_that_is_none_is_refused() {
        for bad in [json!("tools"), json!([]), json!(7), json!(null), json!({}), json!({"tools": {}}), json!({"tools": null})] {
            assert!(matches!(Listing::default().take(bad.clone()), Err(ServerError::Unreadable(_))), "{bad}");
        }
    }

    #[test]
    fn pages_add_up_to_what_is_used_of_them() {
        let mut listing = Listing::default();
        let page =
            json!({"tools": [{"name": "a", "icons": ["x".repeat(1000)], "annotations": {"readOnlyHint": true}}, 7], "nextCursor": "2"});
        assert_eq!(listing.take(page).unwrap().as_deref(), Some("2"));
        assert_eq!(listing.take(json!({"tools": [], "nextCursor": null})).unwrap(), None);
        assert_eq!(listing.tools, [json!({"name": "a", "annotations": {"readOnlyHint": true}}), json!({})]);
        let many = vec![json!({}); MAX_TOOLS];
        assert_eq!(listing.take(json!({"tools": many, "nextCursor": "3"})).unwrap(), None, "nobody asks for more");
    }

    #[test]
    fn all_pages_together_have_a_size() {
        let mut listing = Listing::default();
        let page = json!({"tools": [{"name": "a", "icons": "x".repeat(7 << 20)}], "nextCursor": "2"});
        let taken = (0..100).take_while(|_| listing.take(page.clone()).is_ok()).count();
        assert_eq!(taken, 3);
        assert!(matches!(listing.take(json!({"tools": []})), Err(ServerError::LongList(_))));
    }
}
