//! `/people`: who is signed in, where else, and who belongs to a project.

pub mod invitations;
pub mod me;
pub mod members;
pub mod sessions;
