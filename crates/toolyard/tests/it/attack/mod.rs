//! An attack on the whole of it, which runs again with every change: short in `./test`, long with `./test --soak`. The last line of each
//! part says how much was tried and what was found.
//!
//! What an earlier attack got through is tested where it was mended:
//!
//! | weakness | test |
//! |---|---|
//! | a rule that depends on the order of arguments | `permissions` |
//! | schemas, JSONPath, regular expressions, templates and lists without a bound | `bounded` |
//! | calls without a record: a full disk, a kill | `audit` |
//! | rows without a number, tables that never shrink | `quotas` |
//! | connections that are opened and say nothing | `sockets` |
//! | an agent that opens tools | `agent_keys` |
//! | an authorization server that answers for another | `oauth` |
//! | whatever can be done to codes, tokens, clients and the page that asks | `oauth_server` |
//! | a service that echoes its credentials | `echoes`, `secrets` here |
//! | a step that is repeated without the service knowing | `upstream_keys` |
//! | a clock that jumps, streams of a revoked key, `HEAD` on the callback, pages without a policy, `/metrics` under every mount | `clock`, `streams`, `oauth`, `pages`, `doors` |
//! | a document that says something else | `document` here |

mod addresses;
mod composio;
mod document;
mod histories;
mod kills;
mod matrix;
mod operations;
mod rows;
mod secrets;
mod users;

use std::fmt::{Display, Write as _};

/// Whether there is time for all of it.
fn is_long() -> bool {
    std::env::var_os("TOOLYARD_SOAK").is_some()
}

/// What was tried and what was found: the last line of a part.
struct Figures(String);

impl Figures {
    fn new(part: &str) -> Self {
        Self(format!("attack {part}:"))
    }

    fn add(mut self, what: &str, count: impl Display) -> Self {
        let comma = if self.0.ends_with(':') { "" } else { "," };
        write!(self.0, "{comma} {count} {what}").unwrap();
        self
    }

    fn print(self) {
        eprintln!("{}", self.0);
    }
}
