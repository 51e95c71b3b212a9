//! The OpenAPI document as the code says it: what the routes say of themselves, and in one place what every route may answer. Tests hold
//! `openapi.json`, which is served, against it.

use utoipa::__dev::{SchemaReferences, Tags};
use utoipa::openapi::path::Operation;
use utoipa::openapi::schema::{
    AdditionalProperties, AllOfBuilder, AnyOfBuilder, ArrayItems, KnownFormat, Object, ObjectBuilder, Schema, SchemaFormat, Type,
};
use utoipa::openapi::security::{ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{Components, Content, Ref, RefOr, Required, ResponseBuilder};
use utoipa::{OpenApi, PartialSchema, Path};

use crate::composio_api::{ComposioError, ComposioErrorBody};
use crate::edge::error::Error;
use crate::routes::TABLES;

#[derive(OpenApi)]
#[openapi(
    info(title = "Toolyard", description = "Tools, connections and triggers for agents. Every path but `/metrics` also works under `/api` and `/preview`, with and without a trailing slash."),
    tags((name = "Workflow aliases", description = "`/applications` and `/evaluators` are workflows under the names that Agenta's clients use: \
        the same rows, with other names of fields. Use `/workflows` unless you have such a client."),
        (name = "Composio's API", description = "What the SDKs of Composio ask for, so that they work here by their base URL alone; see \
        `docs/composio-sdks.md`. Every path also works under `/v3`. Use the other routes unless you have such a client.")),
    modifiers(&Security)
)]
struct Document;

struct Security;

impl utoipa::Modify for Security {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        let components = document.components.get_or_insert_default();
        let key = HttpBuilder::new()
            .scheme(HttpAuthScheme::Bearer)
            .description(Some("A project key; `Authorization: ApiKey <key>` is the same."))
            .build();
        components.add_security_scheme("key", SecurityScheme::Http(key));
        let operator =
            ApiKeyValue::with_description("Authorization", "`Access <operator key>`; a session that began with that key is the same.");
        components.add_security_scheme("operator", SecurityScheme::ApiKey(ApiKey::Header(operator)));
        let user_session = ApiKeyValue::with_description("Authorization", "`Bearer <token>`, with the token of a session of an end user.");
        components.add_security_scheme("user_session", SecurityScheme::ApiKey(ApiKey::Header(user_session)));
        let composio = ApiKeyValue::with_description("x-api-key", "A project key, as Composio's SDKs send it.");
        components.add_security_scheme("composio_key", SecurityScheme::ApiKey(ApiKey::Header(composio)));
        let session = ApiKeyValue::with_description("toolyard-session", "Signed in at `/sign-in`; `__Host-toolyard-session` under https.");
        components.add_security_scheme("session", SecurityScheme::ApiKey(ApiKey::Cookie(session)));
    }
}

const JSON: &str = "application/json";

/// What failures mean, whichever route answers with them. A route that says more of one than this keeps its own words.
const FAILURES: [(&str, &str, &str); 14] = [
    ("400", "BadRequest", "A malformed reference, argument, header or body"),
    ("401", "Unauthorized", "No key, or a bad one"),
    ("403", "Forbidden", "The key lacks a permission, or the project does not allow it"),
    ("404", "NotFound", "There is no such row, provider, integration or action in this project"),
    ("409", "Conflict", "`detail` is `{message, conflict}`"),
    ("413", "TooLarge", "The request body is larger than the limit"),
    ("415", "NotJson", "The request body is not JSON"),
    ("422", "Invalid", "The request is not of the documented shape, or holds a value that cannot be taken"),
    ("424", "Upstream", "The service behind it refused, could not be reached, or answered with something that is no result"),
    ("429", "TooMany", "More than a limit allows, or too much work of the project waits already; try again later"),
    ("500", "Internal", "Our own failure; `detail.support_id` leads to the log"),
    ("502", "UpstreamFailed", "The service behind it failed"),
    ("503", "Unavailable", "The database or a provider is not there now"),
    ("504", "TooLong", "It took longer than the limit"),
];

/// Who may call an operation.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Caller {
    Anybody,
    Key,
    Operator,
    Session,
}

impl Caller {
    fn of(operation: &Operation) -> Self {
        let named = serde_json::to_string(&operation.security).unwrap_or_default();
        let schemes = [("\"key\"", Self::Key), ("\"operator\"", Self::Operator), ("\"session\"", Self::Session)];
        schemes.into_iter().find(|(name, _)| named.contains(name)).map_or(Self::Anybody, |(_, caller)| caller)
    }
}

/// Whether an operation may fail so.
fn may_answer(status: &str, operation: &Operation, is_get: bool) -> bool {
    let caller = Caller::of(operation);
    let takes_body = operation.request_body.is_some();
    let takes = takes_body || operation.parameters.as_ref().is_some_and(|parameters| !parameters.is_empty());
    match status {
        "400" | "422" => takes || caller == Caller::Key,
        "401" | "403" => caller != Caller::Anybody,
        "404" => takes,
        "424" | "502" => caller == Caller::Key,
        // Bodies are read by `Workers`, which takes no more than so much of one project at once.
        "429" => takes_body || caller == Caller::Key,
        "409" => !is_get && caller != Caller::Anybody,
        "413" | "415" => takes_body,
        _ => true,
    }
}

/// How failures are written: in our own words, or as Composio's SDKs read them.
#[derive(Clone, Copy)]
enum Errors {
    Ours,
    Composio,
}

impl Errors {
    fn at(path: &str) -> Self {
        if path.starts_with(crate::composio_api::PREFIX) { Self::Composio } else { Self::Ours }
    }

    fn content(self) -> Content {
        let name = match self {
            Self::Ours => "Error",
            Self::Composio => "ComposioError",
        };
        Content::new(Some(Ref::from_schema_name(name)))
    }

    /// Where the document keeps a failure that any route may have.
    fn response_name(self, name: &str) -> String {
        match self {
            Self::Ours => name.to_owned(),
            Self::Composio => format!("Composio{name}"),
        }
    }
}

/// Adds to every operation the failures that it may answer with, and to those that it names itself what they look like.
fn add_failures(operation: &mut Operation, is_get: bool, errors: Errors) {
    for (status, name, _) in FAILURES {
        if may_answer(status, operation, is_get) {
            let response = || RefOr::Ref(Ref::from_response_name(errors.response_name(name)));
            operation.responses.responses.entry(status.to_owned()).or_insert_with(response);
        }
    }
    for (status, response) in &mut operation.responses.responses {
        if let RefOr::T(response) = response
            && status.starts_with(['4', '5'])
            && response.content.is_empty()
        {
            response.content.insert(JSON.to_owned(), RefOr::T(errors.content()));
        }
    }
}

/// Operations whose body may be left out.
const OPTIONAL: [&str; 21] = [
    "decide_device",
    "sign_out",
    "change_account",
    "call_platform_op",
    "fetch_agent_toolset",
    "query_workflows",
    "query_workflow_variants",
    "query_workflow_revisions",
    "query_simple_workflows",
    "query_environments",
    "query_environment_variants",
    "query_environment_revisions",
    "query_simple_environments",
    "query_applications",
    "query_application_variants",
    "query_application_revisions",
    "query_simple_applications",
    "query_evaluators",
    "query_evaluator_variants",
    "query_evaluator_revisions",
    "query_simple_evaluators",
];

fn make_body_optional(operation: &mut Operation) {
    let is_optional = operation.operation_id.as_deref().is_some_and(|id| OPTIONAL.contains(&id));
    if let Some(RefOr::T(body)) = operation.request_body.as_mut().filter(|_| is_optional) {
        body.required = Some(Required::False);
    }
}

/// One of several ways to fill a body: members that must be there, each with its type, and members that must not.
type Way = (&'static [(&'static str, Type)], &'static [&'static str]);

/// What members of a body mean together, which a derived schema cannot say.
const WAYS: [(&str, &[Way]); 6] = [
    ("RefBody", &[(&[("id", Type::String)], &[]), (&[("slug", Type::String)], &[])]),
    ("UserRef", &[(&[("id", Type::String)], &["email"]), (&[("email", Type::String)], &["id"])]),
    ("PreviewRequest", &[(&[("delivery_id", Type::String)], &[]), (&[("event", Type::Object)], &[])]),
    (
        "OpenapiBody",
        &[(&[("url", Type::String)], &["document"]), (&[("document", Type::Object)], &["url"]), (&[("document", Type::String)], &["url"])],
    ),
    ("McpBody", &[(&[("url", Type::String)], &["command", "args", "env"]), (&[("command", Type::String)], &["url", "headers"])]),
    ("AssignTool", &[(&[("id", Type::String)], &[]), (&[("id", Type::Integer)], &[]), (&[("app_name", Type::String)], &[])]),
];

/// The same for each family of histories, by the end of the schema's name; `F` stands for the family.
const FAMILY_WAYS: [(&str, &[Way]); 3] = [
    ("NewRevision", &[(&[], &["data"]), (&[], &["delta"])]),
    ("LogStart", &[(&[("F_id", Type::String)], &[]), (&[("F_variant_id", Type::String)], &[]), (&[("F_revision_id", Type::String)], &[])]),
    ("LogRevisions", &[(&[("F_revisions", Type::Object)], &[]), (&[("F_revision", Type::Object)], &[])]),
];

fn typed(kind: Type) -> Object {
    ObjectBuilder::new().schema_type(kind).build()
}

fn add_ways(components: &mut Components) {
    for (name, ways) in WAYS {
        add_way(components, name, ways, "");
    }
    for family in ::workflows::Family::ALL.map(::workflows::Family::name) {
        for (name, ways) in FAMILY_WAYS {
            add_way(components, &format!("{family}.{name}"), ways, family);
        }
    }
}

/// Says of a schema in which ways it may be filled; the names of members may begin with a family's.
fn add_way(components: &mut Components, name: &str, ways: &[Way], family: &str) {
    let Some(RefOr::T(schema)) = components.schemas.remove(name) else { return };
    let way = |(given, left_out): &Way| {
        let mut object = ObjectBuilder::new();
        for (member, kind) in *given {
            let member = member.replacen('F', family, 1);
            object = object.required(&member).property(member, typed(kind.clone()));
        }
        left_out.iter().fold(object, |object, member| object.property(*member, typed(Type::Null)))
    };
    let any = ways.iter().map(way).fold(AnyOfBuilder::new(), AnyOfBuilder::item).build();
    let both = AllOfBuilder::new().item(schema).item(Schema::AnyOf(any)).build();
    components.schemas.insert(name.to_owned(), RefOr::T(Schema::AllOf(both)));
}

/// The form of a UUID. Formats are hints to JSON Schema, and patterns are rules.
const UUID: &str = "^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$";

/// Says of every UUID what it looks like, at any depth.
fn add_patterns(schema: &mut RefOr<Schema>) {
    let RefOr::T(schema) = schema else { return };
    match schema {
        Schema::Object(object) => {
            if object.format == Some(SchemaFormat::KnownFormat(KnownFormat::Uuid)) {
                object.pattern = Some(UUID.to_owned());
            }
            object.properties.values_mut().for_each(add_patterns);
            if let Some(AdditionalProperties::RefOr(inner)) = object.additional_properties.as_deref_mut() {
                add_patterns(inner);
            }
        }
        Schema::Array(array) => {
            if let ArrayItems::RefOrSchema(inner) = &mut array.items {
                add_patterns(inner);
            }
        }
        Schema::OneOf(several) => several.items.iter_mut().for_each(add_patterns),
        Schema::AllOf(several) => several.items.iter_mut().for_each(add_patterns),
        Schema::AnyOf(several) => several.items.iter_mut().for_each(add_patterns),
        _ => {}
    }
}

fn finish(operation: &mut Operation, is_get: bool, errors: Errors) {
    add_failures(operation, is_get, errors);
    make_body_optional(operation);
    for parameter in operation.parameters.iter_mut().flatten() {
        if let RefOr::T(parameter) = parameter
            && let Some(schema) = &mut parameter.schema
        {
            add_patterns(schema);
        }
    }
}

/// Writes a route into the document.
pub(crate) fn describe<P: Path + SchemaReferences + for<'a> Tags<'a>>(document: &mut utoipa::openapi::OpenApi) {
    let mut operation = P::operation();
    operation.tags.get_or_insert_default().extend(P::tags().into_iter().map(str::to_owned));
    document.paths.add_path_operation(P::path(), P::methods(), operation);
    let mut schemas = Vec::new();
    P::schemas(&mut schemas);
    document.components.get_or_insert_default().schemas.extend(schemas);
}

/// The OpenAPI document.
pub fn openapi() -> utoipa::openapi::OpenApi {
    let mut document = Document::openapi();
    for route in TABLES.into_iter().flatten() {
        (route.describe)(&mut document);
    }
    finished(document)
}

/// The document with what holds for every route.
fn finished(mut document: utoipa::openapi::OpenApi) -> utoipa::openapi::OpenApi {
    let components = document.components.get_or_insert_default();
    components.schemas.insert("Error".to_owned(), Error::schema());
    components.schemas.insert("ComposioError".to_owned(), ComposioError::schema());
    components.schemas.insert("ComposioErrorBody".to_owned(), ComposioErrorBody::schema());
    add_ways(components);
    components.schemas.values_mut().for_each(add_patterns);
    for (_, name, description) in FAILURES {
        for errors in [Errors::Ours, Errors::Composio] {
            let response = ResponseBuilder::new().description(description).content(JSON, errors.content()).build();
            components.responses.insert(errors.response_name(name), RefOr::T(response));
        }
    }
    for (path, item) in &mut document.paths.paths {
        let errors = Errors::at(path);
        if let Some(operation) = &mut item.get {
            finish(operation, true, errors);
        }
        for operation in [&mut item.put, &mut item.post, &mut item.patch, &mut item.delete].into_iter().flatten() {
            finish(operation, false, errors);
        }
    }
    document
}
