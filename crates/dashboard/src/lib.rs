//! The dashboard: pages for people who are signed in. It asks the API as the person who looks at it and shows what comes back, so that nobody
//! sees or does more here than there. It holds no rules, and must never know a domain, a table, a key or a session: `server` signs people in
//! and answers the port [`Api`].

mod api;
mod assets;
mod form;
mod frame;
mod pages;
mod path;
mod refusal;
mod routes;
mod ui;
mod visit;

pub use api::{Answer, Api, Request};
pub use form::Form;
pub use refusal::Refusal;
pub use routes::{asset_routes, page_routes, project_of};
pub use visit::{Project, Via, Visit};
