-- Vectors that an embeddings API made of sentences of the catalog, by the hash of what was asked. They belong to no project: the same
-- sentence has the same vector for everybody.
create table sentence_vectors (
    hash bytea primary key,
    vector bytea not null,
    used_at bigint not null
);

create index sentence_vectors_used on sentence_vectors (used_at);
