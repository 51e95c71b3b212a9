//! `/secrets`: named secrets of a project, on the names of the reference system's vault.

pub mod reads;
pub mod rows;
