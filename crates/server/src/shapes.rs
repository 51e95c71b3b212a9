//! What texts of requests look like, for the document: each has one entry there, made from what the domains themselves know.

use agent_runs::RunState as AgentState;
use agents::Status;
use calls::{ApprovalStatus, Outcome};
use definitions::format::Format;
use kernel::{Permission, Role};
use triggers::State;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{AnyOfBuilder, ObjectBuilder, Schema, SchemaType, Type};
use utoipa::{PartialSchema, ToSchema};
use workflows::RunState;

use crate::access::{RUN_SERVICE, VIEW_SECRET};
use crate::workflows::runs::{OPEN, RUNNING};

/// A text of a certain form.
fn text(description: &str, pattern: &str, most: Option<usize>) -> RefOr<Schema> {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .description(Some(description))
        .pattern(Some(pattern))
        .min_length(Some(1))
        .max_length(most)
        .into()
}

/// One of some words.
fn words<'a>(description: &str, words: impl IntoIterator<Item = &'a str>) -> RefOr<Schema> {
    let words: Vec<String> = words.into_iter().map(str::to_owned).collect();
    ObjectBuilder::new().schema_type(Type::String).description(Some(description)).enum_values(Some(words)).into()
}

/// A number that may also be written as a text.
fn number_or_text(description: &str, example: &str) -> RefOr<Schema> {
    let types = SchemaType::from_iter([Type::String, Type::Integer]);
    ObjectBuilder::new().schema_type(types).description(Some(description)).examples([example]).into()
}

macro_rules! shapes {
    ($($(#[doc = $doc:literal])+ $name:ident => $made:expr;)*) => {$(
        $(#[doc = $doc])+
        #[derive(Debug)]
        pub struct $name;

        impl PartialSchema for $name {
            fn schema() -> RefOr<Schema> {
                let describe: fn(&str) -> RefOr<Schema> = $made;
                describe(concat!($($doc),+).trim())
            }
        }

        impl ToSchema for $name {}
    )*};
}

/// No control characters, and something besides space.
const SHOWN: &str = r"^[^\x00-\x1f\x7f-\x9f]*[^\s\x00-\x1f\x7f-\x9f][^\x00-\x1f\x7f-\x9f]*$";

/// No control characters, and no space at either end.
const END_USER: &str = r"^[^\s\x00-\x1f\x7f-\x9f]([^\x00-\x1f\x7f-\x9f]*[^\s\x00-\x1f\x7f-\x9f])?$";

shapes! {
    /// Letters, digits, `-` and single `_`, which stand neither first nor last.
    SlugText => |told| text(told, "^[A-Za-z0-9-]+(_[A-Za-z0-9-]+)*$", Some(128));
    /// Something besides space.
    NameText => |told| text(told, r"\S", None);
    /// A name of 1 to 255 characters that can be shown.
    LineText => |told| text(told, SHOWN, Some(255));
    /// What a project calls an end user: one line of 1 to 255 characters, without space at its ends.
    EndUserText => |told| text(told, END_USER, Some(255));
    /// A word of 1 to 100 characters that can be shown.
    WordText => |told| text(told, SHOWN, Some(100));
    /// The number or the UUID of an agent.
    AgentIdText => |told| text(told, "^([0-9]{1,18}|[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})$", None);
    /// An e-mail address.
    EmailText => |told| text(told, r"^[^@\s\x00-\x1f\x7f-\x9f]+@[^@\s\x00-\x1f\x7f-\x9f]+$", Some(120));
    /// An ISO 8601 time or date, `now`, `today`, `yesterday`, or how long ago, such as `2h`.
    TimeText => |told| text(told, TIME, None);
    /// Red, green and blue in six digits, such as `#2457d6`.
    ColourText => |told| text(told, "^#[0-9a-fA-F]{6}$", None);
    /// A PNG, in base64.
    PngText => |told| text(told, "^data:image/png;base64,[A-Za-z0-9+/]+=*$", None);
    /// An absolute address.
    UrlText => |told| text(told, "^https?://[A-Za-z0-9]", None);
    /// 1 to 255 visible ASCII characters and spaces.
    IdempotencyKeyText => |told| text(told, "^[ -~]+$", Some(255));
    /// Letters, digits and `._:-`.
    SessionText => |told| text(told, "^[A-Za-z0-9._:-]+$", Some(128));
    /// Where a page begins, as the page before says it.
    CursorText => |told| text(told, "^[0-9]+$", Some(18));
    /// What the caller or the project wants of a call.
    PermissionWord => |told| words(told, ["allow", "ask", "deny"]);
    /// A model API.
    FormatWord => |told| words(told, Format::ALL.map(Format::name));
    /// How an approval stands.
    ApprovalWord => |told| words(told, ApprovalStatus::ALL.map(ApprovalStatus::name));
    /// How a call ended.
    OutcomeWord => |told| words(told, Outcome::ALL.map(Outcome::name));
    /// How a run ended.
    RunWord => |told| words(told, RunState::ALL.map(RunState::name).into_iter().chain([RUNNING]));
    /// How runs ended, or `open` for those of agents that have not.
    RunFilterWord => |told| words(told, RunState::ALL.map(RunState::name).into_iter().chain([OPEN]));
    /// How a delivery stands.
    DeliveryWord => |told| words(told, State::ALL.map(State::name));
    /// How a run of an agent stands.
    RunStateWord => |told| words(told, AgentState::ALL.map(AgentState::name));
    /// Only an active agent uses tools.
    AgentWord => |told| words(told, Status::ALL.map(Status::name));
    /// Only what is assigned, or every connected app that is not switched off.
    ToolModeWord => |told| words(told, ["explicit", "inherit"]);
    /// From least to most.
    RoleWord => |told| words(told, Role::ALL.map(Role::name));
    /// Something that a key may do.
    PermissionName => |told| words(told, Permission::ALL.map(Permission::name));
    /// Something that a key may do, by our names or by those of the reference's services.
    ActionWord => |told| words(told, Permission::ALL.map(Permission::name).into_iter().chain([RUN_SERVICE, VIEW_SECRET]));
    /// The number of a version, as a number or as a text.
    VersionNumber => |told| number_or_text(told, "3");
    /// Oldest first, or newest first.
    OrderWord => |told| words(told, ["ascending", "descending"]);
    /// What becomes of embeds that fail.
    EmbedWord => |told| words(told, ["exception", "placeholder", "keep"]);
    /// How a list is sorted.
    SortWord => |told| words(told, ["usage", "alphabetically"]);
    /// How tools are shown.
    ModeWord => |told| words(told, ["all", "search"]);
    /// A language of the pages on which people connect accounts.
    LanguageWord => |told| words(told, kernel::Language::ALL.map(kernel::Language::code));
    /// Whose accounts are listed.
    AccountsWord => |told| words(told, ["project", "everybody"]);
    /// So that nobody removes accounts by accident.
    ConfirmWord => |told| words(told, ["delete"]);
    /// The kind of call that model APIs name.
    FunctionWord => |told| words(told, ["function"]);
}

/// Days are left to whoever reads them: a pattern cannot count those of February.
const TIME: &str = "^(now|today|yesterday|[1-9][0-9]{0,2}[smhdw]|[12][0-9]{3}-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])(T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,9})?(Z|[+-](0[0-9]|1[0-3]):[0-5][0-9])?)?)$";

/// Something that must be left out, or be null.
#[derive(Debug)]
pub struct Nothing;

impl PartialSchema for Nothing {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new().schema_type(Type::Null).into()
    }
}

impl ToSchema for Nothing {}

/// An object, or a text.
#[derive(Debug)]
pub struct ObjectOrText;

impl PartialSchema for ObjectOrText {
    fn schema() -> RefOr<Schema> {
        let object = ObjectBuilder::new().schema_type(Type::Object);
        let text = ObjectBuilder::new().schema_type(Type::String);
        Schema::AnyOf(AnyOfBuilder::new().item(object).item(text).build()).into()
    }
}

impl ToSchema for ObjectOrText {}
