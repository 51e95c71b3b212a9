//! The codes of errors: what programs go by, where people read the words.

use http::StatusCode;

macro_rules! codes {
    ($($name:ident, $code:literal, $status:ident, $meaning:literal;)*) => {
        /// What went wrong. A code keeps its name and its meaning; `docs/errors.md` lists them all.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Code {
            $(#[doc = $meaning] $name,)*
        }

        impl Code {
            /// Every code, in the order of the documentation.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// The code as it is sent.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$name => $code,)*
                }
            }

            /// The status of an answer with this code.
            pub const fn status(self) -> StatusCode {
                match self {
                    $(Self::$name => StatusCode::$status,)*
                }
            }

            /// One sentence for the documentation.
            pub const fn meaning(self) -> &'static str {
                match self {
                    $(Self::$name => $meaning,)*
                }
            }
        }
    };
}

codes! {
    MissingKey, "missing_key", UNAUTHORIZED, "The request has no key.";
    WrongScheme, "wrong_scheme", UNAUTHORIZED, "The operator key was sent where a project key is needed.";
    InvalidKey, "invalid_key", UNAUTHORIZED, "The key is unknown or revoked.";
    MissingPermission, "missing_permission", FORBIDDEN, "The key lacks a permission, which `detail` names.";
    KeyForAgentsOnly, "key_for_agents_only", FORBIDDEN, "The key is bound to agents and opens only what is theirs.";
    OperatorOnly, "operator_only", FORBIDDEN, "Only the operator may do this, and somebody else is signed in.";
    OriginNotAllowed, "origin_not_allowed", FORBIDDEN, "A page of this origin may not speak to the MCP server, or use a session.";
    NotSignedIn, "not_signed_in", UNAUTHORIZED, "Nobody is signed in, or the session ended.";
    CsrfInvalid, "csrf_invalid", FORBIDDEN, "A request of a session that changes something lacks the token of `GET /people/me`.";
    SessionNotFound, "session_not_found", NOT_FOUND, "There is no such session of this person.";
    MemberNotFound, "member_not_found", NOT_FOUND, "There is no such member of this project.";
    LastOwner, "last_owner", CONFLICT, "The project would be left without an owner.";
    RoleTooHigh, "role_too_high", FORBIDDEN, "The role, or the key, would have permissions that the caller does not have.";
    InvitationNotFound, "invitation_not_found", NOT_FOUND, "There is no such invitation in this project.";
    SignInRefused, "sign_in_refused", BAD_REQUEST, "Somebody could not be signed in; `detail` says why.";
    TooManySignIns, "too_many_sign_ins", TOO_MANY_REQUESTS, "Too many tries to sign in; try again in some minutes.";

    RouteNotFound, "route_not_found", NOT_FOUND, "There is no such path.";
    MethodNotAllowed, "method_not_allowed", METHOD_NOT_ALLOWED, "The path does not take this method.";
    NotAcceptable, "not_acceptable", NOT_ACCEPTABLE, "The answer cannot be given in the form that `Accept` asks for.";
    BodyIncomplete, "body_incomplete", BAD_REQUEST, "The request body ended too early.";
    BodyTooLarge, "body_too_large", PAYLOAD_TOO_LARGE, "The request body is larger than the limit.";
    BodyNotJson, "body_not_json", UNSUPPORTED_MEDIA_TYPE, "The `Content-Type` of the request body is not JSON.";
    JsonInvalid, "json_invalid", UNPROCESSABLE_ENTITY, "The request body is not well-formed JSON.";
    BodyInvalid, "body_invalid", UNPROCESSABLE_ENTITY, "The request body does not have the documented shape; `detail` is a list of places.";
    QueryInvalid, "query_invalid", UNPROCESSABLE_ENTITY, "The query string does not have the documented shape; `detail` is a list of places, or says which value cannot be read.";
    PathInvalid, "path_invalid", UNPROCESSABLE_ENTITY, "A part of the path is not what belongs there; `detail` is a list of places.";
    RequestInvalid, "request_invalid", BAD_REQUEST, "The request asks for something that is not possible.";
    ValueInvalid, "value_invalid", UNPROCESSABLE_ENTITY, "A value of the request cannot be taken.";
    NulInText, "nul_in_text", UNPROCESSABLE_ENTITY, "A text contains a NUL character.";
    IdMismatch, "id_mismatch", BAD_REQUEST, "The id in the body is not the one in the path.";
    CursorInvalid, "cursor_invalid", UNPROCESSABLE_ENTITY, "The cursor is not one that a page before gave.";
    LimitInvalid, "limit_invalid", UNPROCESSABLE_ENTITY, "The number of rows to list is out of range.";
    FilterInvalid, "filter_invalid", UNPROCESSABLE_ENTITY, "A filter, pattern or rule cannot be taken.";
    SlugInvalid, "slug_invalid", UNPROCESSABLE_ENTITY, "The slug has characters or a length that slugs may not have.";
    TooMuchWork, "too_much_work", UNPROCESSABLE_ENTITY, "The request needs more time or memory than one may take.";
    ProjectBusy, "project_busy", TOO_MANY_REQUESTS, "Too much large work of the project waits already; try again in a moment.";
    ProjectFull, "project_full", CONFLICT, "The project has as many of these as it may; `detail.conflict` names the setting.";
    TooManyKept, "too_many_kept", TOO_MANY_REQUESTS, "The project keeps as many runs or approvals as it may.";
    RowConflict, "row_conflict", CONFLICT, "A row with these values exists already, or was written at the same moment.";

    RequestTimeout, "request_timeout", GATEWAY_TIMEOUT, "The request took longer than the limit.";
    DatabaseUnavailable, "database_unavailable", SERVICE_UNAVAILABLE, "The database does not answer; try again in a moment.";
    DatabaseNotWritable, "database_not_writable", SERVICE_UNAVAILABLE, "The database takes no writes.";
    NotReady, "not_ready", SERVICE_UNAVAILABLE, "A part of the server is not ready; `detail.parts` says which.";
    Internal, "internal", INTERNAL_SERVER_ERROR, "Our own failure; `detail.support_id` leads to the log.";

    UpstreamRefused, "upstream_refused", FAILED_DEPENDENCY, "The service refused, or answered with something that is no result.";
    UpstreamUnreachable, "upstream_unreachable", FAILED_DEPENDENCY, "The service could not be reached.";
    UpstreamFailed, "upstream_failed", BAD_GATEWAY, "The service failed.";

    ProjectNotFound, "project_not_found", NOT_FOUND, "There is no such project.";
    KeyNotFound, "key_not_found", NOT_FOUND, "There is no such key.";
    UserNotFound, "user_not_found", NOT_FOUND, "There is no such user.";
    AccountInvalid, "account_invalid", UNPROCESSABLE_ENTITY, "A value cannot be used for a user, project or key.";
    EmailTaken, "email_taken", CONFLICT, "A user with this e-mail exists already.";
    SlugTaken, "slug_taken", CONFLICT, "The slug is taken.";

    ProviderNotFound, "provider_not_found", NOT_FOUND, "There is no such provider.";
    ProviderNotConfigured, "provider_not_configured", SERVICE_UNAVAILABLE, "The provider is not configured on this deployment.";
    IntegrationNotFound, "integration_not_found", NOT_FOUND, "There is no such integration.";
    ActionNotFound, "action_not_found", NOT_FOUND, "The integration has no such action.";
    EventNotFound, "event_not_found", NOT_FOUND, "There is no such event.";

    ConnectionNotFound, "connection_not_found", NOT_FOUND, "There is no such connection in this project.";
    ConnectionTaken, "connection_taken", CONFLICT, "The project has a connection of this name already.";
    SeveralAccounts, "several_accounts", CONFLICT, "Several accounts fit, and the call asked for the only one; name one of them.";
    HookNotFound, "hook_not_found", NOT_FOUND, "There is no such hook, or no such message that can be sent again.";
    EndUserNotFound, "end_user_not_found", NOT_FOUND, "The project has no end user of this name.";
    EndUserLimit, "end_user_limit", TOO_MANY_REQUESTS, "The end user made as many calls as the project allows each; `detail` says when there is room again.";
    AccountMissing, "account_missing", CONFLICT, "The end user has to connect an account first; the answer has the link.";
    UserSessionNotFound, "user_session_not_found", NOT_FOUND, "There is no such session of an end user.";
    UserSessionEnded, "user_session_ended", UNAUTHORIZED, "The session of the end user ended, or its token opens something else.";
    ConnectionInactive, "connection_inactive", BAD_REQUEST, "The connection is inactive or revoked.";
    ConnectionRevoked, "connection_revoked", CONFLICT, "The connection was revoked, so it cannot be refreshed.";
    ConnectionNotValid, "connection_not_valid", BAD_REQUEST, "The connection has no credential that works; connect the account again.";
    ConnectionUnusable, "connection_unusable", BAD_REQUEST, "The connection's values do not fit what the action needs.";
    AuthSchemeNotFound, "auth_scheme_not_found", UNPROCESSABLE_ENTITY, "The integration has no such auth scheme.";
    OauthAppMissing, "oauth_app_missing", UNPROCESSABLE_ENTITY, "The integration needs an OAuth app, and there is none.";
    OauthAppNotFound, "oauth_app_not_found", NOT_FOUND, "There is no such OAuth app.";
    CredentialFieldInvalid, "credential_field_invalid", UNPROCESSABLE_ENTITY, "A field of the credential is missing or cannot be taken.";
    CredentialRefused, "credential_refused", UNPROCESSABLE_ENTITY, "The service refused the credential.";
    LinkInvalid, "link_invalid", BAD_REQUEST, "The link to connect an account is not valid any more.";
    ConsentDenied, "consent_denied", BAD_REQUEST, "The person declined, or the service did not agree.";

    ImportNotFound, "import_not_found", NOT_FOUND, "There is no such import in this project.";
    ImporterNotFound, "importer_not_found", NOT_FOUND, "The provider imports nothing.";
    ImportKeyInvalid, "import_key_invalid", UNPROCESSABLE_ENTITY, "The key of the import has characters or a length that keys may not have.";
    ImportInvalid, "import_invalid", UNPROCESSABLE_ENTITY, "The document or the order cannot be imported.";
    ImportKeyTaken, "import_key_taken", CONFLICT, "The key belongs to an import from another source.";
    ImportInUse, "import_in_use", CONFLICT, "Connections use what would go; `detail.conflict` names them.";
    ImportChanged, "import_changed", CONFLICT, "The import changed meanwhile.";
    NothingToFetch, "nothing_to_fetch", CONFLICT, "The import came from a document, which cannot be fetched again.";

    WorkflowNotFound, "workflow_not_found", NOT_FOUND, "There is no such workflow, or no such variant or revision of one.";
    EnvironmentNotFound, "environment_not_found", NOT_FOUND, "There is no such environment, or no such variant or revision of one.";
    VersionNotFound, "version_not_found", NOT_FOUND, "A version is a number from 0 on, and this is none.";
    RunNotFound, "run_not_found", NOT_FOUND, "There is no such run.";
    RunEnded, "run_ended", CONFLICT, "The run has ended already, or ends with its caller.";
    NotDeployed, "not_deployed", NOT_FOUND, "The workflow is not deployed to the environment.";
    SlugReserved, "slug_reserved", BAD_REQUEST, "Slugs that begin with `__ag__` are reserved.";
    RevisionInvalid, "revision_invalid", UNPROCESSABLE_ENTITY, "The data of a workflow or environment cannot be taken.";
    ReferencesInvalid, "references_invalid", BAD_REQUEST, "References, data or changes do not agree with each other or with what is there.";
    ChangeInvalid, "change_invalid", UNPROCESSABLE_ENTITY, "An operation of a change cannot be applied; `detail.code` says why.";
    ChangeRefused, "change_refused", UNPROCESSABLE_ENTITY, "The change may not be made by this caller; `detail.code` says why.";
    RevisionConflict, "revision_conflict", CONFLICT, "There is a newer revision than the one that the change was made for.";
    VariantHasRevisions, "variant_has_revisions", CONFLICT, "The variant has a revision already, so another cannot be its first.";
    EnvironmentGuarded, "environment_guarded", CONFLICT, "The environment is guarded.";
    EmbedInvalid, "embed_invalid", BAD_REQUEST, "An embed cannot be resolved.";

    CallRefInvalid, "call_ref_invalid", BAD_REQUEST, "The name of the tool is not a call ref.";
    ToolNotFound, "tool_not_found", NOT_FOUND, "There is no such tool of Toolyard itself, or no such op.";
    ArgumentsInvalid, "arguments_invalid", BAD_REQUEST, "The arguments do not fit the action's schema.";
    CallDenied, "call_denied", FORBIDDEN, "The project does not allow the call, or a person denied it.";
    CallNotFound, "call_not_found", NOT_FOUND, "There is no such call in the record.";
    ApprovalRequired, "approval_required", ACCEPTED, "The call waits for a person; `detail.approval_id` names the approval.";
    ApprovalNotFound, "approval_not_found", NOT_FOUND, "There is no such approval.";
    ApprovalDecided, "approval_decided", CONFLICT, "The approval was decided already.";
    NoticeNotFound, "notice_not_found", NOT_FOUND, "There is no such notice in this project.";
    NoticeInvalid, "notice_invalid", UNPROCESSABLE_ENTITY, "The address, tool or arguments of a notice cannot be taken.";
    UseCaseNotFound, "use_case_not_found", NOT_FOUND, "Nothing was learned for this use case.";
    IdempotencyKeyInvalid, "idempotency_key_invalid", BAD_REQUEST, "The `Idempotency-Key` is not 1 to 255 ASCII characters.";
    IdempotencyKeyReused, "idempotency_key_reused", UNPROCESSABLE_ENTITY, "The `Idempotency-Key` was used with another call.";
    CallInProgress, "call_in_progress", CONFLICT, "A call with this `Idempotency-Key` is under way.";
    CallNotRecorded, "call_not_recorded", SERVICE_UNAVAILABLE, "The call was not made, because it could not be recorded first.";

    ToolConfigInvalid, "tool_config_invalid", UNPROCESSABLE_ENTITY, "A tool config cannot be taken.";
    ToolKindNotResolvable, "tool_kind_not_resolvable", UNPROCESSABLE_ENTITY, "A tool of this kind is resolved at `/tools/specs` only.";
    ToolNameCollision, "tool_name_collision", UNPROCESSABLE_ENTITY, "Two tools would have one name.";
    ToolOpInvalid, "tool_op_invalid", UNPROCESSABLE_ENTITY, "A config names a platform op that there is not, or binds what the op does not have.";
    ToolSecretsMissing, "tool_secrets_missing", UNPROCESSABLE_ENTITY, "A tool needs secrets that are not here.";
    ToolCallbacksDiffer, "tool_callbacks_differ", UNPROCESSABLE_ENTITY, "The tools of one request have different callbacks.";
    ToolCallbackInvalid, "tool_callback_invalid", BAD_REQUEST, "The callback of a tool cannot be used.";
    ToolReferenceInvalid, "tool_reference_invalid", BAD_REQUEST, "A segment of a tool's reference is not a slug.";

    SecretNotFound, "secret_not_found", NOT_FOUND, "There is no such secret in this project.";
    SecretInvalid, "secret_invalid", UNPROCESSABLE_ENTITY, "A value cannot be used for a secret.";
    SecretHostNotAllowed, "secret_host_not_allowed", UNPROCESSABLE_ENTITY, "A secret may not be sent to that host.";

    AgentNotFound, "agent_not_found", NOT_FOUND, "There is no such agent in this project.";
    AppNotFound, "app_not_found", NOT_FOUND, "There is no such app, or it is not in this project.";
    AppNotAssigned, "app_not_assigned", NOT_FOUND, "The app is not assigned to this agent.";
    SkillNotFound, "skill_not_found", NOT_FOUND, "There are no such skills; Toolyard keeps none.";
    AgentNameTaken, "agent_name_taken", CONFLICT, "An agent of this name exists already.";
    AgentInvalid, "agent_invalid", UNPROCESSABLE_ENTITY, "A value cannot be used for an agent.";
    AssignmentRejected, "assignment_rejected", UNPROCESSABLE_ENTITY, "Tools cannot be assigned; `detail.rejected` says which and why.";
    AgentChanged, "agent_changed", PRECONDITION_FAILED, "The agent is not at the version that `If-Match` names.";
    AgentToolNotFound, "agent_tool_not_found", NOT_FOUND, "The tool that the agent called does not exist; `detail.reason` says why.";
    AgentToolRefused, "agent_tool_refused", FORBIDDEN, "The agent may not use the tool; `detail.reason` says why.";

    SubscriptionNotFound, "subscription_not_found", NOT_FOUND, "There is no such subscription.";
    ScheduleNotFound, "schedule_not_found", NOT_FOUND, "There is no such schedule.";
    DeliveryNotFound, "delivery_not_found", NOT_FOUND, "There is no such delivery.";
    AddressNotFound, "address_not_found", NOT_FOUND, "There is no such address for events.";
    SignatureInvalid, "signature_invalid", UNAUTHORIZED, "The signature of an event is missing, wrong or old, or the event was here before.";
    EventSecretMissing, "event_secret_missing", UNAUTHORIZED, "There is no secret to check events of this address with.";
    EventNotJson, "event_not_json", BAD_REQUEST, "The body of an event is not JSON.";
    TooManyRefused, "too_many_refused", TOO_MANY_REQUESTS, "Too many events of this address were refused; try again in a minute.";
    TriggerInvalid, "trigger_invalid", UNPROCESSABLE_ENTITY, "A value cannot be used for a trigger.";
    TriggerTargetInvalid, "trigger_target_invalid", UNPROCESSABLE_ENTITY, "The target of the trigger leads nowhere, or nowhere certain.";
    SubscriptionTaken, "subscription_taken", CONFLICT, "A subscription for this connection, event and configuration exists already.";
    TriggerState, "trigger_state", CONFLICT, "The trigger or delivery is not in a state that allows this.";
    EventsBusy, "events_busy", SERVICE_UNAVAILABLE, "Too many events are coming in; try again in a moment.";

    InvalidToken, "invalid_token", UNAUTHORIZED, "The access token is unknown, expired or revoked.";
    TokenForAnotherSurface, "token_for_another_surface", UNAUTHORIZED, "The access token is for one surface of the API, and this is another.";
    GrantNotFound, "grant_not_found", NOT_FOUND, "There is no such grant in this project.";
    OauthRequestInvalid, "invalid_request", BAD_REQUEST, "A request of OAuth lacks something, has it twice, or has what cannot be taken.";
    OauthClientInvalid, "invalid_client", UNAUTHORIZED, "The OAuth client is unknown, its secret is wrong, or its document cannot be used.";
    OauthGrantInvalid, "invalid_grant", BAD_REQUEST, "The code or refresh token is unknown, used, expired or revoked, or another client's.";
    OauthGrantTypeUnsupported, "unsupported_grant_type", BAD_REQUEST, "There is no such way to tokens here.";
    OauthResponseTypeUnsupported, "unsupported_response_type", BAD_REQUEST, "The authorization endpoint answers with a code and nothing else.";
    OauthScopeInvalid, "invalid_scope", BAD_REQUEST, "A scope is not a permission, or more than was granted.";
    OauthTargetInvalid, "invalid_target", BAD_REQUEST, "The `resource` is not served here, or not what the person was asked about.";
    OauthAccessDenied, "access_denied", BAD_REQUEST, "The person said no.";
    OauthAuthorizationPending, "authorization_pending", BAD_REQUEST, "Nobody has decided about the device yet; ask again after the interval.";
    OauthSlowDown, "slow_down", BAD_REQUEST, "The device asks too often, or too many devices wait.";
    OauthCodeExpired, "expired_token", BAD_REQUEST, "The code of the device has expired.";
    OauthRedirectUriInvalid, "invalid_redirect_uri", BAD_REQUEST, "A client cannot be returned to at this address.";
    OauthClientMetadataInvalid, "invalid_client_metadata", BAD_REQUEST, "What a client says of itself cannot be taken.";
    OauthTooManyClients, "too_many_clients", TOO_MANY_REQUESTS, "Too many clients were registered from here; try again in an hour.";
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn the_documentation_lists_every_code() {
        let row = |code: &Code| format!("| `{}` | {} | {} |\n", code.name(), code.status().as_u16(), code.meaning());
        let table: String = Code::ALL.iter().map(row).collect();
        let page = include_str!("../../../../docs/errors.md");
        assert!(page.contains(&table), "the table of docs/errors.md must be:\n{table}");
        assert_eq!(page.matches("\n| `").count(), Code::ALL.len(), "docs/errors.md lists a code that there is not");
    }

    #[test]
    fn every_code_is_one_word_of_its_own() {
        let names: HashSet<&str> = Code::ALL.iter().map(|code| code.name()).collect();
        assert_eq!(names.len(), Code::ALL.len());
        for name in names {
            assert!(name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'), "{name}");
        }
    }
}
