//! Workflows and environments as Agenta's clients and tests expect them: the cases of the contract, for every family that has them.

use http::Method;
use serde_json::{Value, json};

use crate::support::{Database, Reply, Test, on_both};

async fn put(test: &Test, path: &str, body: Value) -> Reply {
    test.request(Method::PUT, path, Some(format!("ApiKey {}", test.owner)), Some(body)).await
}

fn id(row: &Value) -> &str {
    row["id"].as_str().unwrap()
}

/// One family under its names.
#[derive(Clone, Copy)]
struct Names<'a> {
    test: &'a Test,
    one: &'static str,
    many: &'static str,
}

impl Names<'_> {
    async fn post(&self, path: &str, body: Value) -> Reply {
        self.test.post(&format!("/{}{path}", self.many), body).await
    }

    /// A row of a level out of an answer.
    fn row(&self, mut answer: Value, level: &str) -> Value {
        assert_eq!(answer["count"], 1, "{answer:#}");
        answer[format!("{}{level}", self.one)].take()
    }

    fn rows(&self, answer: &Value, level: &str) -> Vec<Value> {
        let name = if level.is_empty() { self.many.to_owned() } else { format!("{}{level}s", self.one) };
        let rows = answer[name].as_array().unwrap_or_else(|| panic!("{answer:#}")).clone();
        assert_eq!(answer["count"], rows.len());
        rows
    }

    async fn artifact(&self, slug: &str) -> Value {
        self.row(self.post("/", json!({self.one: {"slug": slug}})).await.expect(200), "")
    }

    /// A variant with what it belongs to made first.
    async fn variant(&self, slug: &str) -> Value {
        let artifact = self.artifact(slug).await;
        let body = json!({format!("{}_variant", self.one): {format!("{}_id", self.one): artifact["id"], "slug": format!("{slug}-main")}});
        self.row(self.post("/variants/", body).await.expect(200), "_variant")
    }

    async fn first(&self, variant: &Value, fields: Value) -> Reply {
        let mut revision = json!({format!("{}_variant_id", self.one): variant["id"]});
        revision.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        self.post("/revisions/", json!({format!("{}_revision", self.one): revision})).await
    }

    async fn commit(&self, variant: &Value, fields: Value) -> Reply {
        let mut revision = json!({format!("{}_variant_id", self.one): variant["id"]});
        revision.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        self.post("/revisions/commit", json!({format!("{}_revision", self.one): revision})).await
    }

    async fn committed(&self, variant: &Value, fields: Value) -> Value {
        self.row(self.commit(variant, fields).await.expect(200), "_revision")
    }

    /// Retrieves by references whose names are given without the family's.
    async fn retrieve(&self, references: Value) -> Reply {
        let named = |name: &str| {
            if name.starts_with("environment") || name == "key" || name == "resolve" {
                name.to_owned()
            } else {
                format!("{}{name}", self.one)
            }
        };
        let body: Value = references
            .as_object()
            .unwrap()
            .iter()
            .map(|(name, value)| (named(name), value.clone()))
            .collect::<serde_json::Map<_, _>>()
            .into();
        self.post("/revisions/retrieve", body).await
    }

    async fn log(&self, fields: Value) -> Vec<Value> {
        let answer = self.post("/revisions/log", json!({format!("{}_revision", self.one): fields})).await.expect(200);
        self.rows(&answer, "_revision")
    }
}

fn families(test: &Test) -> [Names<'_>; 4] {
    [("workflow", "workflows"), ("environment", "environments"), ("application", "applications"), ("evaluator", "evaluators")]
        .map(|(one, many)| Names { test, one, many })
}

fn workflows(test: &Test) -> Names<'_> {
    families(test)[0]
}

/// Data that a family takes.
fn data(names: Names<'_>, mark: &str) -> Value {
    if names.one == "environment" { json!({"references": {mark: {}}}) } else { json!({"parameters": {"mark": mark}}) }
}

on_both! {
    async fn the_first_revision_of_a_variant_is_made_once(test: &Test) {
        for names in families(test) {
            let variant = names.variant(&format!("{}-a", names.one)).await;
            let artifact = variant[format!("{}_id", names.one)].clone();
            let words = json!({format!("{}_id", names.one): artifact, "slug": format!("{}-zero", names.one), "name": "Zero", "description": "d", "tags": {"t": 1}, "meta": {"m": 2}});
            let first = names.row(names.first(&variant, words.clone()).await.expect(200), "_revision");
            assert_eq!((&first["version"], &first["message"], first.get("data")), (&json!("0"), &json!("Initial revision"), None));
            for (name, value) in words.as_object().unwrap() {
                assert_eq!(first[name], *value, "{name}");
            }
            assert_eq!(first[format!("{}_slug", names.one)], format!("{}-a", names.one));
            assert_eq!(first[format!("{}_variant_slug", names.one)], variant["slug"]);
            assert!(first["date"].is_string() && first["author"] == first["created_by_id"] && first["updated_at"].is_string(), "{first:#}");
            assert_eq!(first.get("flags").is_none(), matches!(names.one, "workflow" | "environment"), "{first:#}");
            let again = names.first(&variant, json!({})).await.expect(409);
            assert_eq!((&again["code"], &again["detail"]["conflict"]["slug"]), (&json!("variant_has_revisions"), &variant["slug"]));
            names.post(&format!("/revisions/{}/archive", id(&first)), json!({})).await.expect(200);
            names.first(&variant, json!({})).await.expect(409);
            names.first(&json!({"id": uuid::Uuid::now_v7()}), json!({})).await.expect(404);
            let other = names.variant(&format!("{}-b", names.one)).await;
            names.first(&other, json!({format!("{}_id", names.one): artifact})).await.expect(400);
            names.first(&other, json!({"slug": format!("{}-zero", names.one)})).await.expect(409);
            assert_eq!(names.log(json!({format!("{}_variant_id", names.one): other["id"]})).await.len(), 0, "what was refused left nothing");
        }
    }

    async fn a_fork_copies_the_whole_line(test: &Test) {
        let [workflow, environment, ..] = families(test);
        for names in [workflow, environment] {
            let variant = names.variant("line").await;
            names.first(&variant, json!({})).await.expect(200);
            let one = names.committed(&variant, json!({"data": data(names, "one"), "message": "one", "name": "One", "tags": {"a": 1}, "meta": {"b": 2}, "slug": "copy-1"})).await;
            let two = names.committed(&variant, json!({"data": data(names, "two")})).await;
            let gone = names.committed(&variant, json!({"data": data(names, "gone")})).await;
            names.post(&format!("/revisions/{}/archive", id(&gone)), json!({})).await.expect(200);
            let (variant_ref, revision_ref, new) = (format!("{}_variant_ref", names.one), format!("{}_revision_ref", names.one), format!("{}_variant", names.one));
            let fork = |slug: &str, source: Value, pin: Value| names.post("/variants/fork", json!({&new: {"slug": slug, "name": "Fork", "tags": {"f": 1}}, &variant_ref: source, &revision_ref: pin}));
            let log = |variant: Value| async move { names.log(json!({format!("{}_variant_id", names.one): variant["id"]})).await };

            let whole = names.row(fork("whole", json!({"id": variant["id"]}), Value::Null).await.expect(200), "_variant");
            assert_eq!((&whole["name"], &whole["tags"]), (&json!("Fork"), &json!({"f": 1})));
            let copies = log(whole).await;
            assert_eq!(copies.iter().map(|row| row["version"].as_str().unwrap()).collect::<Vec<_>>(), ["2", "1", "0"]);
            for (copy, source) in [(&copies[1], &one), (&copies[0], &two)] {
                for member in ["data", "message", "name", "tags", "meta", "flags"] {
                    assert_eq!(copy.get(member), source.get(member), "{member}");
                }
                assert!(copy["id"] != source["id"] && copy["slug"] != source["slug"]);
            }
            for (slug, pin, length) in [("by-id", json!({"id": one["id"]}), 2), ("by-version", json!({"version": 1}), 2), ("by-slug", json!({"slug": "copy-1"}), 2), ("copy", json!({"version": "0"}), 1)] {
                let made = names.row(fork(slug, json!({"slug": "line-main"}), pin).await.expect(200), "_variant");
                assert_eq!(log(made).await.len(), length, "{slug}");
            }
            let taken = names.row(fork("copy-a", json!({"slug": "line-main"}), Value::Null).await.expect(200), "_variant");
            assert_eq!(log(taken).await.len(), 3);

            let empty = names.variant("empty").await;
            for (source, pin) in [
                (json!({"slug": "nobody"}), Value::Null),
                (json!({"id": uuid::Uuid::now_v7()}), Value::Null),
                (json!({"slug": "line-main"}), json!({"version": "9"})),
                (json!({"slug": "line-main"}), json!({"id": uuid::Uuid::now_v7()})),
                (json!({"id": empty["id"]}), json!({"id": one["id"]})),
                (json!({"id": empty["id"]}), Value::Null),
            ] {
                let detail = fork("never", source.clone(), pin.clone()).await.detail(400);
                assert!(detail.contains("variant"), "{source} {pin}: {detail}");
            }
            names.post("/variants/fork", json!({&new: {"slug": "x", "name": "x"}})).await.expect(422);
            names.post("/variants/fork", json!({&variant_ref: {"slug": "line-main"}})).await.expect(422);
            fork("whole", json!({"slug": "line-main"}), Value::Null).await.expect(409);
        }
    }

    async fn references_are_checked_in_order(test: &Test) {
        for names in families(test) {
            if matches!(names.one, "application" | "evaluator") {
                let detail = names.retrieve(json!({"_variant_ref": {"version": "1"}})).await.detail(400);
                assert!(detail.contains(&format!("{}_variant_ref", names.one)), "{detail}");
                names.retrieve(json!({})).await.expect(400);
                continue;
            }
            let variant = names.variant("refs").await;
            let zero = names.row(names.first(&variant, json!({})).await.expect(200), "_revision");
            let one = names.committed(&variant, json!({"data": data(names, "one"), "slug": "named"})).await;
            for (references, expected) in [
                (json!({"_revision_ref": {"id": one["id"]}}), &one),
                (json!({"_revision_ref": {"slug": "named"}}), &one),
                (json!({"_variant_ref": {"id": variant["id"]}, "_revision_ref": {"version": "0"}}), &zero),
                (json!({"_variant_ref": {"slug": variant["slug"]}, "_revision_ref": {"version": 0}}), &zero),
                (json!({"_variant_ref": {"slug": variant["slug"]}}), &one),
                (json!({"_ref": {"slug": "refs"}}), &one),
                (json!({"_ref": {"slug": "refs"}, "_revision_ref": {"version": "0"}}), &zero),
                (json!({"_ref": {"slug": "refs"}, "_variant_ref": {"id": variant["id"]}, "_revision_ref": {"id": one["id"], "slug": "named", "version": "1"}}), &one),
            ] {
                let found = names.retrieve(references.clone()).await.expect(200);
                assert_eq!(found["retrieval_info"]["references"].as_object().unwrap().len(), 3);
                assert!(found["retrieval_info"].get("selector").is_none());
                assert_eq!(names.row(found, "_revision")["id"], expected["id"], "{references}");
            }
            for (references, parts) in [
                (json!({"_variant_ref": {"version": "1"}}), vec!["_variant_ref"]),
                (json!({"_variant_ref": {"version": "1"}, "_ref": {"slug": "refs"}}), vec!["_variant_ref"]),
                (json!({"_revision_ref": {"version": "1"}}), vec!["version", "variant_ref"]),
                (json!({"_ref": {"slug": "unknown"}, "_revision_ref": {"id": one["id"]}}), vec!["_ref.slug", "does not match"]),
                (json!({"_ref": {"id": uuid::Uuid::now_v7()}, "_variant_ref": {"id": variant["id"]}}), vec!["_ref.id", "does not match"]),
                (json!({"_variant_ref": {"slug": "unknown"}, "_revision_ref": {"slug": "named"}}), vec!["_variant_ref.slug", "does not match"]),
                (json!({"_revision_ref": {"id": one["id"], "version": "0"}}), vec!["_revision_ref.version", "does not match"]),
                (json!({"_revision_ref": {"id": one["id"], "slug": "other"}}), vec!["_revision_ref.slug", "does not match"]),
            ] {
                let detail = names.retrieve(references.clone()).await.detail(400);
                assert!(parts.iter().all(|part| detail.contains(part)), "{references}: {detail}");
            }
            for nothing in [
                json!({"_ref": {"slug": "nobody"}}),
                json!({"_variant_ref": {"slug": "nobody"}}),
                json!({"_revision_ref": {"id": uuid::Uuid::now_v7()}}),
                json!({"_ref": {"slug": "refs"}, "_revision_ref": {"version": "9"}}),
                json!({"_ref": {"slug": "refs"}, "_revision_ref": {"version": "latest"}}),
            ] {
                assert_eq!(names.retrieve(nothing.clone()).await.expect(200), json!({"count": 0}), "{nothing}");
            }
            let empty = names.artifact("hollow").await;
            assert_eq!(names.retrieve(json!({"_ref": {"id": empty["id"]}})).await.expect(200), json!({"count": 0}));
            let resolved = names.post("/revisions/resolve", json!({format!("{}_ref", names.one): {"slug": "nobody"}})).await.expect(200);
            assert_eq!((&resolved["count"], &resolved["resolution_info"]["references_used"]), (&json!(0), &json!([])));
        }
    }

    async fn a_deployment_is_found_and_says_where(test: &Test) {
        for names in families(test) {
            if names.one == "environment" {
                continue;
            }
            let slug = format!("{}-app", names.one);
            let variant = names.variant(&slug).await;
            let zero = names.row(names.first(&variant, json!({})).await.expect(200), "_revision");
            let own = |level: &str| format!("{}{level}", names.one);
            let body = json!({own("_revision_ref"): {"id": zero["id"]}, "environment_ref": {"slug": "staging"}});
            let deployed = names.post("/revisions/deploy", body).await.expect(200);
            assert_eq!(names.row(deployed.clone(), "_revision")["id"], zero["id"]);
            let group = &deployed["environment_revision"]["data"]["references"][format!("{slug}.revision")];
            assert_eq!(group[own("_revision")]["id"], zero["id"], "{deployed:#}");
            let artifact = zero[own("_id")].clone();
            let environment = json!({"slug": "staging"});
            for references in [
                json!({"environment_ref": environment, "key": format!("{slug}.revision")}),
                json!({"environment_ref": environment, "_ref": {"slug": slug}}),
                json!({"environment_ref": environment, "_ref": {"id": artifact}}),
                json!({"environment_ref": environment, "_ref": {"slug": slug}, "_revision_ref": {"id": zero["id"]}}),
            ] {
                let found = names.retrieve(references.clone()).await.expect(200);
                let info = found["retrieval_info"].clone();
                assert_eq!(info["selector"], json!({"key": format!("{slug}.revision")}));
                assert_eq!(info["references"].as_object().unwrap().len(), 6, "{info:#}");
                assert_eq!((&info["references"]["environment"]["slug"], &info["references"][own("_revision")]["id"]), (&json!("staging"), &zero["id"]));
                assert!(info["references"]["environment_revision"]["version"].is_string() && info["references"]["environment_variant"]["id"].is_string());
                assert_eq!(names.row(found, "_revision")["id"], zero["id"], "{references}");
            }
            for (references, status) in [
                (json!({"key": "x"}), 400),
                (json!({"environment_ref": {"slug": "nowhere"}}), 400),
                (json!({"environment_ref": {"slug": "nowhere"}, "_variant_ref": {"slug": variant["slug"]}}), 400),
                (json!({"environment_ref": {"slug": "nowhere"}, "_ref": {"id": uuid::Uuid::now_v7()}}), 400),
                (json!({"environment_ref": {"slug": "nowhere"}, "_ref": {"slug": "nobody"}}), 404),
                (json!({"environment_ref": environment, "_ref": {"slug": "nobody"}}), 404),
                (json!({"environment_ref": environment, "key": "unknown"}), 404),
                (json!({"environment_ref": environment, "_ref": {"slug": slug}, "_revision_ref": {"id": uuid::Uuid::now_v7()}}), 400),
            ] {
                let reply = names.retrieve(references.clone()).await;
                assert_eq!(reply.status.as_u16(), status, "{references}: {}", reply.text);
            }
        }
    }

    async fn words_are_kept_shown_and_changed(test: &Test) {
        for names in families(test) {
            let slug = format!("{}-words", names.one);
            let variant = names.variant(&slug).await;
            assert_eq!(variant["name"], variant["slug"], "a variant is called by its slug");
            let revision = names.committed(&variant, json!({"data": data(names, "x"), "name": "R", "tags": {"r": 1}})).await;
            assert_eq!((&revision["name"], &revision["tags"]), (&json!("R"), &json!({"r": 1})));
            for (path, level, row) in [("/variants", "_variant", &variant), ("/revisions", "_revision", &revision)] {
                let at = format!("/{}{path}/{}", names.many, id(row));
                let body = |fields: Value| json!({format!("{}{level}", names.one): fields});
                let changed = put(test, &at, body(json!({"id": row["id"], "name": "New", "tags": {"n": 2}, "meta": {"k": 1}, "flags": {"is_snippet": true}}))).await.expect(200);
                let changed = names.row(changed, level);
                assert_eq!((&changed["name"], &changed["tags"], &changed["meta"]), (&json!("New"), &json!({"n": 2}), &json!({"k": 1})));
                assert_eq!((changed.get("flags"), &changed["slug"]), (row.get("flags"), &row["slug"]));
                assert!(changed["updated_by_id"].is_string());
                let changed = names.row(put(test, &at, body(json!({"description": "d"}))).await.expect(200), level);
                assert_eq!((&changed["name"], &changed["description"]), (&json!("New"), &json!("d")), "what is left out stays");
                assert_eq!(changed.get("data"), row.get("data"));
                put(test, &at, body(json!({"id": uuid::Uuid::now_v7(), "name": "x"}))).await.expect(400);
                put(test, &at, body(json!({"name": " "}))).await.expect(422);
                put(test, &format!("/{}{path}/{}", names.many, uuid::Uuid::now_v7()), body(json!({"name": "x"}))).await.expect(404);
            }
            let artifact = variant[format!("{}_id", names.one)].as_str().unwrap().to_owned();
            let archived = names.post(&format!("/{artifact}/archive"), json!({})).await.expect(200)[names.one].take();
            assert!(archived["deleted_at"].is_string() && archived["deleted_by_id"].is_string());
            put(test, &format!("/{}/{artifact}", names.many), json!({names.one: {"name": "x"}})).await.expect(404);
        }
    }

    async fn flags_are_roles_and_what_the_data_says(test: &Test) {
        let names = workflows(test);
        let made = |flags: Value| names.post("/", json!({"workflow": {"slug": format!("f{}", flags.to_string().len()), "flags": flags}}));
        assert_eq!(made(json!({"is_chat": true})).await.expect(200)["workflow"].get("flags"), None);
        let snippet = made(json!({"is_snippet": true, "other": 1})).await.expect(200)["workflow"].take();
        assert_eq!(snippet["flags"], json!({"is_application": false, "is_evaluator": false, "is_snippet": true}));
        made(json!({"is_snippet": 1})).await.expect(422);
        let changed = put(test, &format!("/workflows/{}", id(&snippet)), json!({"workflow": {"flags": {"is_evaluator": true}}})).await.expect(200);
        assert_eq!(changed["workflow"]["flags"], json!({"is_application": false, "is_evaluator": true, "is_snippet": true}));
        let variant = names.row(names.post("/variants/", json!({"workflow_variant": {"workflow_id": snippet["id"], "slug": "fv"}})).await.expect(200), "_variant");
        assert_eq!(variant["flags"], changed["workflow"]["flags"]);
        let revision = names.committed(&variant, json!({"data": {"uri": "agenta:custom:feedback:v0"}, "flags": {"is_custom": false}})).await;
        for (flag, expected) in [("is_snippet", true), ("is_evaluator", true), ("is_application", false), ("is_custom", true), ("is_managed", true), ("is_feedback", true), ("has_url", true), ("is_chat", false), ("has_handler", false), ("is_static", false)] {
            assert_eq!(revision["flags"][flag], expected, "{flag}");
        }
    }

    async fn queries_narrow_by_every_part(test: &Test) {
        let names = workflows(test);
        for (slug, flags, tags) in [("qa", json!({"is_application": true}), json!({"tag1": "a", "deep": {"x": [1, 2]}})), ("qb", json!({}), json!({"tag1": "b"}))] {
            let row = json!({"workflow": {"slug": slug, "name": format!("Name {slug}"), "description": format!("About {slug}"), "flags": flags, "tags": tags}});
            let made = names.row(names.post("/", row).await.expect(200), "");
            let body = json!({"workflow_variant": {"workflow_id": made["id"], "slug": format!("{slug}-v"), "tags": tags}});
            names.post("/variants/", body).await.expect(200);
        }
        let shown = json!({"is_application": true, "is_evaluator": false, "is_snippet": false, "is_static": true});
        for (path, member, level) in [("/query", "workflow", ""), ("/variants/query", "workflow_variant", "_variant"), ] {
            let count = |filter: Value| async move { names.rows(&names.post(path, json!({member: filter})).await.expect(200), level).len() };
            for (filter, expected) in [
                (json!({"tags": {"tag1": "a"}}), 1),
                (json!({"tags": {"tag1": "a", "deep": {"x": [2]}}}), 1),
                (json!({"tags": {"tag1": "nonexistent_value"}}), 0),
                (json!({"tags": {"tag1": "a"}, "flags": shown}), 1),
                (json!({"tags": {"tag1": "a"}, "flags": {"is_snippet": true}}), 0),
                (json!({"flags": {"is_application": true}}), 1),
                (json!({"flags": {"is_custom": true}}), 0),
                (json!({"flags": {"is_application": null}}), 2),
                (json!({"slugs": ["qa", "qb", "qa-v", "qb-v", "nobody"]}), 2),
                (json!({"slug": "nobody"}), 0),
                (json!({"tags": {}}), 2),
            ] {
                assert_eq!(count(filter.clone()).await, expected, "{path} {filter}");
            }
            names.post(path, json!({member: {"flags": {"is_aplication": true}}})).await.expect(422);
            names.post(path, json!({member: {"tags": {"a": [{"b": 1}]}}})).await.expect(422);
            names.post(path, json!({member: {"slugs": (0..200).map(|number| format!("s{number}")).collect::<Vec<_>>()}})).await.expect(422);
        }
        let found = names.post("/query", json!({"workflow": {"description": "ABOUT QA", "name": "name q"}})).await.expect(200);
        assert_eq!(names.rows(&found, "")[0]["slug"], "qa");
    }

    async fn revisions_are_found_by_what_they_say(test: &Test) {
        let names = workflows(test);
        let variant = names.variant("rq").await;
        let one = names.committed(&variant, json!({"data": {"uri": "agenta:custom:feedback:v0"}, "tags": {"marker": "m"}, "message": "First Light"})).await;
        let two = names.committed(&variant, json!({"data": {"uri": "agenta:builtin:chat:v0"}, "tags": {"marker": "m"}})).await;
        names.post(&format!("/revisions/{}/archive", id(&two)), json!({})).await.expect(200);
        let query = |filter: Value, more: Value| {
            let mut body = json!({"workflow_revision": filter});
            body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            async move { names.post("/revisions/query", body).await.expect(200) }
        };
        let marked = json!({"tags": {"marker": "m"}});
        assert_eq!(query(marked.clone(), json!({})).await["count"], 1);
        assert_eq!(query(marked.clone(), json!({"include_archived": true})).await["count"], 2);
        let mut next = Value::Null;
        for expected in [1, 1, 0] {
            let page = query(marked.clone(), json!({"include_archived": true, "windowing": {"limit": 1, "next": next}})).await;
            assert_eq!(page["count"], expected);
            next = page["workflow_revisions"][0]["id"].clone();
        }
        for (filter, expected) in [
            (json!({"tags": {"marker": "m"}, "flags": {"is_custom": true}}), 1),
            (json!({"tags": {"marker": "m"}, "flags": {"is_snippet": true}}), 0),
            (json!({"tags": {"marker": "m"}, "flags": {"is_snippet": false, "is_chat": false}}), 1),
            (json!({"message": "first"}), 1),
            (json!({"message": "second"}), 0),
            (json!({"author": one["author"], "date": one["date"]}), 1),
            (json!({"authors": [one["author"], uuid::Uuid::now_v7()]}), 1),
            (json!({"dates": [one["date"]], "slugs": [one["slug"], "x"]}), 1),
            (json!({"author": uuid::Uuid::now_v7()}), 0),
        ] {
            assert_eq!(query(filter.clone(), json!({})).await["count"], expected, "{filter}");
        }
        let ascending = query(json!({}), json!({"include_archived": true, "windowing": {"order": "ascending", "limit": 1}})).await;
        assert_eq!((&ascending["workflow_revisions"][0]["id"], &ascending["windowing"]["next"]), (&one["id"], &one["id"]));
        let rest = query(json!({}), json!({"include_archived": true, "windowing": {"order": "ascending", "next": one["id"]}})).await;
        assert_eq!(rest["workflow_revisions"][0]["id"], two["id"]);
        assert_eq!(query(json!({}), json!({"windowing": {"newest": "2000-01-01T00:00:00Z"}})).await["count"], 0);
        assert_eq!(query(json!({}), json!({"windowing": {"oldest": "2000-01-01T00:00:00Z"}})).await["count"], 1);
        names.post("/revisions/query", json!({"workflow_revision": {"date": "yesterday"}})).await.expect(422);
        // An archived variant takes its revisions along, and brings them back.
        names.post(&format!("/variants/{}/archive", id(&variant)), json!({})).await.expect(200);
        assert_eq!(query(marked.clone(), json!({})).await["count"], 0);
        names.post(&format!("/variants/{}/unarchive", id(&variant)), json!({})).await.expect(200);
        assert_eq!(query(marked, json!({})).await["count"], 2);
    }

    async fn filters_may_stand_in_the_query_string(test: &Test) {
        for names in families(test) {
            for slug in ["p", "q"] {
                let variant = names.variant(&format!("{}-{slug}", names.one)).await;
                names.committed(&variant, json!({"data": data(names, slug), "tags": {"at": slug}})).await;
            }
            let post = |path: String| test.request(Method::POST, format!("/{}{path}", names.many).leak(), Some(format!("ApiKey {}", test.owner)), None);
            let one = names.one;
            for (path, level, expected) in [
                ("/query?limit=1".to_owned(), "", 1),
                (format!("/query?{one}_slug={one}-p"), "", 1),
                (format!("/query?{one}_slugs={one}-p&{one}_slugs={one}-q"), "", 2),
                (format!("/query?name={one}-p&include_archived=true"), "", 1),
                (format!("/variants/query?{one}_slug={one}-p"), "_variant", 1),
                (format!("/variants/query?{one}_variant_slug={one}-q-main"), "_variant", 1),
                (format!("/revisions/query?{one}_variant_slug={one}-q-main"), "_revision", 1),
                (format!("/revisions/query?{one}_variant_slug={one}-q-main&{one}_revision_versions=0&{one}_revision_versions=7"), "_revision", 1),
                (format!("/revisions/query?{one}_revision_version=7"), "_revision", 0),
                ("/revisions/query?tags=%7B%22at%22%3A%22p%22%7D".to_owned(), "_revision", 1),
            ] {
                let found = post(path.clone()).await.expect(200);
                assert_eq!(names.rows(&found, level).len(), expected, "{path}: {found:#}");
            }
            for wrong in ["/query?limit=x", "/query?nme=x", "/revisions/query?flags=x"] {
                post(wrong.to_owned()).await.expect(422);
            }
            let body = names.post(&format!("/query?{one}_slug=nobody&limit=1"), json!({format!("{one}_refs"): [{"slug": format!("{one}-p")}]})).await.expect(200);
            assert_eq!(names.rows(&body, "").len(), 1, "the body wins");
        }
    }

    async fn environments_commit_what_they_are_told(test: &Test) {
        let names = families(test)[1];
        let variant = names.variant("env").await;
        for _ in 0..2 {
            let answer = names.commit(&variant, json!({"data": {"references": {}}})).await.expect(200);
            assert_eq!(answer["status"], "committed");
        }
        assert_eq!(names.log(json!({"environment_variant_id": variant["id"]})).await.len(), 2);
        names.commit(&variant, json!({})).await.expect(400);
        names.commit(&variant, json!({"data": {"references": {"note": {}}}})).await.expect(200);
        workflows(test).retrieve(json!({"environment_ref": {"slug": "env"}, "key": "note"})).await.expect(404);
        names.commit(&variant, json!({"data": {"references": {"note": {"nothing": {}}}}})).await.expect(422);
    }

    async fn what_is_archived_is_read_and_not_run(test: &Test) {
        let names = workflows(test);
        let base = names.variant("base").await;
        let one = names.committed(&base, json!({"data": {"kind": "echo", "parameters": {"greeting": "hello"}}, "slug": "base-v1"})).await;
        let outer = names.variant("outer").await;
        names.committed(&outer, json!({"data": {"kind": "echo", "parameters": {"say": "@ag.embed[@ag.references[workflow_revision.slug=base-v1], @ag.selector[path=parameters.greeting]]"}}})).await;
        names.post(&format!("/{}/archive", one["workflow_id"].as_str().unwrap()), json!({})).await.expect(200);
        let resolved = names.post("/revisions/resolve", json!({"workflow_ref": {"slug": "outer"}})).await.expect(200);
        assert_eq!(resolved["workflow_revision"]["data"]["parameters"]["say"], "hello");
        assert_eq!(names.row(names.retrieve(json!({"_ref": {"slug": "base"}})).await.expect(200), "_revision")["id"], one["id"]);
        for path in ["/revisions/deploy", "/invoke"] {
            let body = json!({"workflow_ref": {"slug": "base"}, "environment_ref": {"slug": "staging"}, "references": {"workflow": {"slug": "base"}}});
            let detail = names.post(path, body).await.detail(404);
            assert!(detail.contains("archived"), "{path}: {detail}");
        }
        names.commit(&base, json!({"data": {}})).await.expect(400);
        names.first(&base, json!({})).await.expect(400);
    }

    async fn embeds_name_revisions_as_people_do(test: &Test) {
        let names = workflows(test);
        let base = names.variant("lib").await;
        names.first(&base, json!({})).await.expect(200);
        names.committed(&base, json!({"data": {"parameters": {"system_prompt": "be kind", "obj": {"a": 1}}}, "slug": "lib-v1"})).await;
        let environments = families(test)[1];
        let environment = environments.variant("live").await;
        environments.committed(&environment, json!({"data": {"references": {"k": {"workflow_revision": {"slug": "lib-v1", "version": "2"}}}}, "slug": "live-0"})).await;
        let embed = |entity: &str, reference: Value, path: Value| json!({"@ag.embed": {"@ag.references": {entity: reference}, "@ag.selector": {"path": path}}});
        let resolve = |parameters: Value, more: Value| {
            let mut body = json!({"workflow_revision": {"data": {"parameters": parameters}}});
            body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            names.post("/revisions/resolve", body)
        };
        let prompt = json!("parameters.system_prompt");
        for (entity, reference) in [
            ("workflow_revision", json!({"slug": "lib-v1"})),
            ("workflow_revision", json!({"slug": "lib", "version": "1", "id": null})),
            ("application_revision", json!({"slug": "lib", "version": "1"})),
            ("workflow_revision", json!({"slug": "lib-main", "version": "1"})),
        ] {
            let reply = resolve(json!({"v": embed(entity, reference.clone(), prompt.clone()), "kept": 1}), json!({})).await;
            if reference["slug"] == "lib-main" {
                reply.expect(400);
                continue;
            }
            let resolved = reply.expect(200);
            assert_eq!(resolved["workflow_revision"]["data"]["parameters"], json!({"v": "be kind", "kept": 1}), "{reference}");
            let mut named = reference.as_object().unwrap().clone();
            named.retain(|_, value| !value.is_null());
            let info = json!({"references_used": [{entity: named}], "depth_reached": 1, "embeds_resolved": 1, "errors": []});
            assert_eq!(resolved["resolution_info"], info);
        }
        for (path, expected) in [(json!("references.k.workflow_revision.slug"), json!("lib-v1")), (json!("references.k.workflow_revision.version"), json!("2")), (Value::Null, json!({"references": {"k": {"workflow_revision": {"slug": "lib-v1", "version": "2"}}}}))] {
            let resolved = resolve(json!({"v": embed("environment_revision", json!({"slug": "live", "version": "0"}), path)}), json!({})).await.expect(200);
            assert_eq!(resolved["workflow_revision"]["data"]["parameters"]["v"], expected);
        }
        let wrong = embed("workflow_revision", json!({"slug": "lib-v1", "version": "0"}), prompt.clone());
        resolve(json!({"v": wrong}), json!({})).await.expect(400);
        let nobody = embed("workflow_revision", json!({"slug": "nobody", "version": "1"}), prompt.clone());
        resolve(json!({"v": nobody}), json!({})).await.expect(400);
        for (policy, holds) in [("placeholder", "<error:"), ("keep", "@ag.embed")] {
            let resolved = resolve(json!({"v": nobody}), json!({"error_policy": policy})).await.expect(200);
            assert!(resolved["workflow_revision"]["data"]["parameters"]["v"].to_string().contains(holds), "{resolved:#}");
            assert_eq!(resolved["resolution_info"]["errors"].as_array().unwrap().len(), 1);
        }
        let none = resolve(json!({"v": 1}), json!({})).await.expect(200);
        assert_eq!(none["resolution_info"], json!({"references_used": [], "depth_reached": 0, "embeds_resolved": 0, "errors": []}));

        // Object, then text, then object: three steps, and the path of the text leads through an object.
        let middle = names.variant("middle").await;
        names.committed(&middle, json!({"data": {"parameters": {"obj_config": embed("workflow_revision", json!({"slug": "lib-v1"}), Value::Null)}}, "slug": "middle-v1"})).await;
        let token = "see @ag.embed[@ag.references[workflow_revision.slug=middle-v1], @ag.selector[path=parameters.obj_config.parameters.system_prompt]]";
        let text = names.variant("text").await;
        names.committed(&text, json!({"data": {"parameters": {"line": token}}, "slug": "text-v1"})).await;
        let chain = resolve(json!({"v": embed("workflow_revision", json!({"slug": "text-v1"}), json!("parameters.line"))}), json!({})).await.expect(200);
        assert_eq!(chain["workflow_revision"]["data"]["parameters"]["v"], "see be kind");
        assert_eq!((&chain["resolution_info"]["embeds_resolved"], &chain["resolution_info"]["depth_reached"]), (&json!(3), &json!(3)));
        let retrieved = names.retrieve(json!({"_revision_ref": {"slug": "text-v1"}, "resolve": true})).await.expect(200);
        assert_eq!((&retrieved["workflow_revision"]["data"]["parameters"]["line"], &retrieved["resolution_info"]["embeds_resolved"]), (&json!("see be kind"), &json!(2)));
        names.commit(&text, json!({"data": {}, "slug": "text-v1"})).await.expect(409);
        names.commit(&text, json!({"data": {}, "slug": "no.dots"})).await.expect(422);
    }
}
