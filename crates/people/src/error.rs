//! What can go wrong while somebody signs in.

use accounts::AccountError;
use kernel::Role;
use store::StoreError;

/// A failure of signing in, or of what belongs to it.
#[derive(Debug, thiserror::Error)]
pub enum PeopleError {
    /// One sentence for everything that somebody who guesses may not learn.
    #[error("That did not work. Check what you typed; it may also be that this account cannot sign in.")]
    Refused,
    #[error("Too many tries. Try again in {} minutes.", .seconds.div_ceil(60))]
    TooMany { seconds: u64 },
    #[error("This link is not valid: it was used, it expired, or it was taken back. Ask for a new one.")]
    LinkInvalid,
    #[error("This invitation is for another address than yours. Sign in with the address that it was sent to, or ask for a new one.")]
    InvitationForAnother,
    #[error("There is an account with this address. Sign in to it first, then open the invitation again.")]
    AlreadyHere,
    #[error("Passwords are switched off here. Choose another way to sign in.")]
    PasswordsOff,
    #[error("{0}")]
    PasswordWeak(&'static str),
    #[error("This code is not right, or it was used already. Wait for the next one.")]
    CodeWrong,
    #[error("There is no identity provider `{0}` here.")]
    UnknownProvider(String),
    /// What the provider said is logged; a person is told whether to try again.
    #[error("{provider} could not be asked who you are: {why}. Try again; if that does not help, tell whoever runs this server.")]
    Provider { provider: String, why: String },
    #[error("{provider} did not sign you in: {why}.")]
    ProviderRefused { provider: String, why: String },
    #[error("This sign-in was not started here, or it was started too long ago. Begin again.")]
    AttemptInvalid,
    #[error("{0} does not belong to any project here. Ask somebody who does for an invitation.")]
    NotAMember(String),
    #[error("Session not found")]
    SessionNotFound,
    #[error("Invitation not found")]
    InvitationNotFound,
    #[error("The role `{role}` has permissions that you do not have yourself.")]
    RoleTooHigh { role: Role },
    #[error("a sealed secret does not open: {0}")]
    Sealed(#[from] kernel::seal::SealError),
    #[error("{0}")]
    Broken(&'static str),
    #[error(transparent)]
    Account(#[from] AccountError),
    #[error(transparent)]
    Store(#[from] StoreError),
}
