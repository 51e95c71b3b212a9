//! Pages of a list of tools. A cursor names the last tool of its page, so a list that changes meanwhile loses none.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::RpcError;

/// Many clients read the first page only, so it holds a lot.
pub(crate) const PAGE: usize = 200;

pub(crate) fn cursor_of(last: &str) -> String {
    URL_SAFE_NO_PAD.encode(last)
}

/// Where the page after a cursor begins.
pub(crate) fn after(mut names: impl Iterator<Item = impl AsRef<str>>, cursor: Option<&str>) -> Result<usize, RpcError> {
    let Some(cursor) = cursor else { return Ok(0) };
    let last = URL_SAFE_NO_PAD.decode(cursor).unwrap_or_default();
    let position = names.position(|name| name.as_ref().as_bytes() == last);
    position.map(|position| position + 1).ok_or_else(|| RpcError::Params("This cursor is not, or no longer, good; start again.".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_begins_after_the_tool_that_its_cursor_names() {
        let names = ["a", "b", "c"];
        assert_eq!(after(names.iter(), None), Ok(0));
        assert_eq!(after(names.iter(), Some(&cursor_of("b"))), Ok(2));
        for gone in ["x", "", "%"] {
            assert!(after(names.iter(), Some(gone)).is_err(), "{gone}");
        }
    }
}
