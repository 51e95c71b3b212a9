//! `/applications` and `/evaluators`: workflows under the names that clients of the reference system use. The rows are the same; what is
//! written here has the role of its name, and only rows with it are listed.

pub mod applications;
pub mod evaluators;
