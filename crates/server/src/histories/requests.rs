//! What the routes of one family's history take, written once for all.

/// The same requests with a family's own field names; see `answers`.
macro_rules! requests {
    (
        family: $family:ident, schema: $schema:ident, references: $references:path, words: [$a_word:tt, $words:tt],
        artifact: [$artifact:ident, $artifacts:ident, $artifact_id:ident, $artifact_slug:ident, $artifact_refs:ident],
        variant: [$variant:ident, $variants:ident, $variant_id:ident, $variant_slug:ident, $variant_refs:ident, $variant_ref:ident],
        revision: [$revision:ident, $revisions:ident, $revision_id:ident, $revision_refs:ident, $revision_ref:ident],
    ) => {
        #[doc = concat!("A request to make ", $a_word, ".")]
        #[derive(Debug, Deserialize, ToSchema)]
        #[schema(as = $schema::CreateArtifact)]
        pub struct CreateArtifact {
            pub $artifact: NewArtifactBody,
        }

        impl From<CreateArtifact> for ::workflows::NewArtifact {
            fn from(body: CreateArtifact) -> Self {
                body.$artifact.into()
            }
        }

        #[doc = concat!("A request to change the words of ", $a_word, ".")]
        #[derive(Debug, Default, Deserialize, ToSchema)]
        #[schema(as = $schema::EditArtifact)]
        pub struct EditArtifact {
            #[serde(default)]
            pub $artifact: EditBody,
        }

        impl From<EditArtifact> for EditBody {
            fn from(body: EditArtifact) -> Self {
                body.$artifact
            }
        }

        #[doc = concat!("Which ", $words, " to list.")]
        #[derive(Debug, Default, Deserialize, ToSchema)]
        #[schema(as = $schema::QueryArtifacts)]
        pub struct QueryArtifacts {
            pub $artifact: Option<FilterBody>,
            pub $artifact_refs: Option<Vec<RefBody>>,
            pub include_archived: Option<bool>,
            pub windowing: Option<WindowingBody>,
        }

        impl From<QueryArtifacts> for HistoryQuery {
            fn from(body: QueryArtifacts) -> Self {
                Self {
                    filter: body.$artifact.unwrap_or_default().into(),
                    artifact_refs: refs(body.$artifact_refs, None),
                    include_archived: body.include_archived,
                    windowing: body.windowing.unwrap_or_default(),
                    ..Self::default()
                }
            }
        }

        /// A request to make a variant.
        #[derive(Debug, Deserialize, ToSchema)]
        #[schema(as = $schema::CreateVariant)]
        pub struct CreateVariant {
            pub $variant: NewVariant,
        }

        /// What a new variant shall be. Its flags are those of what it belongs to.
        #[derive(Debug, Deserialize, ToSchema)]
        #[schema(as = $schema::NewVariant)]
        pub struct NewVariant {
            pub $artifact_id: Uuid,
            #[schema(value_type = crate::shapes::SlugText)]
            pub slug: String,
            #[schema(value_type = Option<crate::shapes::NameText>)]
            pub name: Option<String>,
            pub description: Option<String>,
            #[schema(value_type = Option<Object>)]
            pub flags: Option<Map<String, Value>>,
            pub tags: Option<Value>,
            #[schema(value_type = Option<Object>)]
            pub meta: Option<Map<String, Value>>,
        }

        impl From<CreateVariant> for ::workflows::NewVariant {
            fn from(body: CreateVariant) -> Self {
                let NewVariant { $artifact_id: artifact, slug, name, description, flags: _, tags, meta } = body.$variant;
                Self { artifact: artifact.into(), slug, words: words(name, description, tags, meta) }
            }
        }

        /// A request to change the words of a variant.
        #[derive(Debug, Default, Deserialize, ToSchema)]
        #[schema(as = $schema::EditVariant)]
        pub struct EditVariant {
            #[serde(default)]
            pub $variant: EditBody,
        }

        impl From<EditVariant> for EditBody {
            fn from(body: EditVariant) -> Self {
                body.$variant
            }
        }

        /// Which variants to list.
        #[derive(Debug, Default, Deserialize, ToSchema)]
        #[schema(as = $schema::QueryVariants)]
        pub struct QueryVariants {
            pub $variant: Option<VariantFilter>,
            pub $artifact_refs: Option<Vec<RefBody>>,
            pub $variant_refs: Option<Vec<RefBody>>,
            pub include_archived: Option<bool>,
            pub windowing: Option<WindowingBody>,
        }

        /// Variants by their words or what they belong to.
        #[derive(Debug, Default, Deserialize, ToSchema)]
        #[schema(as = $schema::VariantFilter)]
        pub struct VariantFilter {
            pub $artifact_id: Option<Uuid>,
            /// The whole slug.
            pub slug: Option<String>,
            /// Any of these slugs.
            pub slugs: Option<Vec<String>>,
            /// Part of the slug or name.
            pub name: Option<String>,
            pub description: Option<String>,
            /// What the row shows.
            #[schema(value_type = Option<Object>)]
            pub flags: Option<Map<String, Value>>,
            /// What the row's tags contain.
            pub tags: Option<Value>,
        }

        impl From<QueryVariants> for HistoryQuery {
            fn from(body: QueryVariants) -> Self {
                let VariantFilter { $artifact_id: artifact, slug, slugs, name, description, flags, tags } =
                    body.$variant.unwrap_or_default();
                Self {
                    filter: FilterBody { slug, slugs, name, description, flags, tags }.into(),
                    artifact_refs: refs(body.$artifact_refs, artifact),
                    variant_refs: refs(body.$variant_refs, None),
                    include_archived: body.include_archived,
                    windowing: body.windowing.unwrap_or_default(),
                    ..Self::default()
                }
            }
        }

        /// A request to fork a variant.
        #[derive(Debug, Deserialize, ToSchema)]
        #[schema(as = $schema::ForkVariant)]
        pub struct ForkVariant {
            pub $variant: NewFork,
            /// The source.
            pub $variant_ref: RefBody,
            /// The last revision that is copied; the newest if it is left out.
            #[schema(value_type = Option<VersionedRef>)]
            pub $revision_ref: Option<::workflows::Reference>,
        }

        /// The variant that a fork makes.
        #[derive(Debug, Deserialize, ToSchema)]
        #[schema(as = $schema::NewFork)]
        pub struct NewFork {
            #[schema(value_type = crate::shapes::SlugText)]
            pub slug: String,
            #[schema(value_type = Option<crate::shapes::NameText>)]
            pub name: Option<String>,
            pub description: Option<String>,
            #[schema(value_type = Option<Object>)]
            pub flags: Option<Map<String, Value>>,
            pub tags: Option<Value>,
            #[schema(value_type = Option<Object>)]
            pub meta: Option<Map<String, Value>>,
        }

        impl From<ForkVariant> for ::workflows::Fork {
            fn from(body: ForkVariant) -> Self {
                let NewFork { slug, name, description, flags: _, tags, meta } = body.$variant;
                Self { source: body.$variant_ref.into(), pin: body.$revision_ref, slug, words: words(name, description, tags, meta) }
            }
        }

        /// A request to make the first revision of a variant.
        #[derive(Debug, Deserialize, ToSchema)]
        #[schema(as = $schema::CreateRevision)]
        pub struct CreateRevision {
            pub $revision: FirstRevision,
        }

        /// What the first revision of a variant shall be; it has no data. Its flags are seen in data.
        #[derive(Debug, Deserialize, ToSchema)]
        #[schema(as = $schema::FirstRevision)]
        pub struct FirstRevision {
            pub $variant_id: Uuid,
            pub $artifact_id: Option<Uuid>,
            #[schema(value_type = Option<crate::shapes::SlugText>)]
            pub slug: Option<String>,
            #[schema(value_type = Option<crate::shapes::NameText>)]
            pub name: Option<String>,
            pub description: Option<String>,
            #[schema(value_type = Option<Object>)]
            pub flags: Option<Map<String, Value>>,
            pub tags: Option<Value>,
            #[schema(value_type = Option<Object>)]
            pub meta: Option<Map<String, Value>>,
        }

        impl From<CreateRevision> for ::workflows::FirstRevision {
            fn from(body: CreateRevision) -> Self {
                let FirstRevision { $variant_id: variant, $artifact_id: artifact, slug, name, description, flags: _, tags, meta } =
                    body.$revision;
                let artifact = artifact.map(Into::into);
                Self { variant: variant.into(), artifact, slug, words: words(name, description, tags, meta) }
            }
        }

        /// A request to change the words of a revision.
        #[derive(Debug, Default, Deserialize, ToSchema)]
        #[schema(as = $schema::EditRevision)]
        pub struct EditRevision {
            #[serde(default)]
            pub $revision: EditBody,
        }

        impl From<EditRevision> for EditBody {
            fn from(body: EditRevision) -> Self {
                body.$revision
            }
        }

        /// A request to commit a revision.
        #[derive(Debug, Deserialize, ToSchema)]
        #[schema(as = $schema::CommitRevision)]
        pub struct CommitRevision {
            pub $revision: NewRevision,
        }

        /// What a new revision shall be: `data`, or `delta` over the newest data. Its flags are seen in its data.
        #[derive(Debug, Deserialize, ToSchema)]
        #[schema(as = $schema::NewRevision)]
        pub struct NewRevision {
            pub $variant_id: Uuid,
            pub $artifact_id: Option<Uuid>,
            /// The name by which it can be found; one is made if it is left out.
            #[schema(value_type = Option<crate::shapes::SlugText>)]
            pub slug: Option<String>,
            #[schema(value_type = Option<crate::shapes::NameText>)]
            pub name: Option<String>,
            pub description: Option<String>,
            #[schema(value_type = Option<Object>)]
            pub flags: Option<Map<String, Value>>,
            pub tags: Option<Value>,
            #[schema(value_type = Option<Object>)]
            pub meta: Option<Map<String, Value>>,
            #[schema(value_type = Option<Object>)]
            pub data: Option<Value>,
            pub delta: Option<DeltaBody>,
            /// The revision that you saw last; if there is a newer one, the answer is 409.
            pub base_revision_id: Option<Uuid>,
            pub message: Option<String>,
        }

        impl From<CommitRevision> for CommitRequest {
            fn from(body: CommitRevision) -> Self {
                let NewRevision { $variant_id: variant, $artifact_id: artifact, slug, data, delta, base_revision_id, message, .. } =
                    body.$revision;
                let words = words(body.$revision.name, body.$revision.description, body.$revision.tags, body.$revision.meta);
                Self {
                    variant: variant.into(),
                    artifact: artifact.map(Into::into),
                    slug,
                    words,
                    data,
                    delta,
                    base: base_revision_id,
                    message,
                }
            }
        }

        /// Which revisions to list.
        #[derive(Debug, Default, Deserialize, ToSchema)]
        #[schema(as = $schema::QueryRevisions)]
        pub struct QueryRevisions {
            pub $revision: Option<RevisionFilter>,
            pub $artifact_refs: Option<Vec<RefBody>>,
            pub $variant_refs: Option<Vec<RefBody>>,
            pub $revision_refs: Option<Vec<RefBody>>,
            pub include_archived: Option<bool>,
            pub windowing: Option<WindowingBody>,
        }

        /// Revisions by their words or what they belong to.
        #[derive(Debug, Default, Deserialize, ToSchema)]
        #[schema(as = $schema::RevisionFilter)]
        pub struct RevisionFilter {
            pub $artifact_id: Option<Uuid>,
            pub $variant_id: Option<Uuid>,
            /// The whole slug.
            pub slug: Option<String>,
            /// Any of these slugs.
            pub slugs: Option<Vec<String>>,
            /// Part of the slug or name.
            pub name: Option<String>,
            pub description: Option<String>,
            /// What the row shows.
            #[schema(value_type = Option<Object>)]
            pub flags: Option<Map<String, Value>>,
            /// What the row's tags contain.
            pub tags: Option<Value>,
            /// Part of the message.
            pub message: Option<String>,
            /// Who committed it.
            pub author: Option<Uuid>,
            pub authors: Option<Vec<Uuid>>,
            /// When it was committed.
            pub date: Option<String>,
            pub dates: Option<Vec<String>>,
        }

        impl From<QueryRevisions> for HistoryQuery {
            fn from(body: QueryRevisions) -> Self {
                let filter = body.$revision.unwrap_or_default();
                let RevisionFilter { slug, slugs, name, description, flags, tags, message, author, authors, date, dates, .. } = filter;
                Self {
                    filter: FilterBody { slug, slugs, name, description, flags, tags }.into(),
                    message,
                    authors: author.into_iter().chain(authors.unwrap_or_default()).collect(),
                    dates: date.into_iter().chain(dates.unwrap_or_default()).collect(),
                    versions: Vec::new(),
                    artifact_refs: refs(body.$artifact_refs, filter.$artifact_id),
                    variant_refs: refs(body.$variant_refs, filter.$variant_id),
                    revision_refs: refs(body.$revision_refs, None),
                    include_archived: body.include_archived,
                    windowing: body.windowing.unwrap_or_default(),
                }
            }
        }

        /// Whose history to read; the two names mean the same.
        #[derive(Debug, Deserialize, ToSchema)]
        #[schema(as = $schema::LogRevisions)]
        pub struct LogRevisions {
            pub $revisions: Option<LogStart>,
            pub $revision: Option<LogStart>,
        }

        /// Where a history begins and how far back it goes.
        #[derive(Debug, Default, Deserialize, ToSchema)]
        #[schema(as = $schema::LogStart)]
        pub struct LogStart {
            /// Its default variant.
            pub $artifact_id: Option<Uuid>,
            pub $variant_id: Option<Uuid>,
            /// This revision and those before it.
            pub $revision_id: Option<Uuid>,
            /// 100 by default, 500 at most.
            pub depth: Option<i64>,
        }

        impl From<LogRevisions> for LogRequest {
            fn from(body: LogRevisions) -> Self {
                let start = body.$revision.or(body.$revisions).unwrap_or_default();
                let LogStart { $artifact_id: artifact, $variant_id: variant, $revision_id: revision, depth } = start;
                Self { artifact, variant, revision, depth }
            }
        }

        /// Which revision to read.
        #[derive(Debug, Default, Deserialize, ToSchema)]
        #[schema(as = $schema::RetrieveRevision)]
        pub struct RetrieveRevision {
            /// The key of a deployment; `{slug}.revision` if it is left out.
            pub key: Option<String>,
            /// Put embeds in place.
            pub resolve: Option<bool>,
            #[serde(flatten)]
            #[schema(value_type = $references)]
            pub references: Map<String, Value>,
        }

        impl From<RetrieveRevision> for RetrieveRequest {
            fn from(body: RetrieveRevision) -> Self {
                Self { key: body.key, resolve: body.resolve.unwrap_or(false), references: body.references }
            }
        }

        /// A revision to resolve: one that references name, or data given inline.
        #[derive(Debug, Default, Deserialize, ToSchema)]
        #[schema(as = $schema::ResolveRevision)]
        pub struct ResolveRevision {
            #[schema(value_type = Option<Object>)]
            pub $revision: Option<Map<String, Value>>,
            pub key: Option<String>,
            /// 10 by default, 20 at most.
            #[schema(maximum = 20)]
            pub max_depth: Option<usize>,
            /// 100 by default, 500 at most.
            #[schema(maximum = 500)]
            pub max_embeds: Option<usize>,
            /// `exception` by default.
            #[schema(value_type = Option<crate::shapes::EmbedWord>)]
            pub error_policy: Option<::workflows::embed::ErrorPolicy>,
            #[serde(flatten)]
            #[schema(value_type = $references)]
            pub references: Map<String, Value>,
        }

        impl From<ResolveRevision> for ResolveRequest {
            fn from(body: ResolveRevision) -> Self {
                let ResolveRevision { $revision: given, key, max_depth, max_embeds, error_policy, references } = body;
                Self { given, references, key, max_depth, max_embeds, error_policy }
            }
        }
    };
}

pub(crate) use requests;
