//! The evidence for the documents of one index, and what each piece of it is worth.

use std::collections::HashMap;

use super::{
    confidence::{self, AnswerFeatures},
    dense::{Probe, larger, largest},
    document::Kind,
    index::{Change, Entry, Index},
    query::Query,
    rank::Reasons,
    score::{Collection, Evidence, WeightedTerm},
    verbs,
    view::View,
    weights::Weights,
};

/// A bound is never below what is rounded otherwise.
const ROUNDED: f32 = 1.0001;
/// Below this share of the nearest, meaning alone is no evidence.
const FAR: f32 = 0.3;

/// One of the indexes that are searched, with its evidence.
pub(super) struct Shard<'a> {
    pub(super) index: &'a Index,
    evidence: Evidence,
    /// Cosines, empty when this index has no vectors or the use case none.
    meaning: Vec<f32>,
    /// What a remote model says in place of `meaning`, on its scale; empty where there is none.
    remote: Vec<f32>,
    /// Per app how likely it is when none is named.
    prior: Vec<f32>,
}

/// What all documents are measured with.
pub(super) struct Scoring<'a> {
    pub(super) view: &'a View,
    pub(super) with_meaning: bool,
    weights: &'a Weights,
    /// The highest lexical score and the highest cosine of the search.
    most: f32,
    nearest: f32,
    /// What a word and a cosine add at most.
    per_word: f32,
    per_cosine: f32,
    /// The most that everything adds which is not quickly known.
    rest: f32,
    /// How often a project itself calls documents; the best few are looked up.
    called: Option<&'a HashMap<u64, f32>>,
}

impl<'a> Scoring<'a> {
    pub(super) fn new(shards: &[Shard<'_>], terms: &[WeightedTerm<'_>], view: &'a View, weights: &'a Weights) -> Self {
        // A long use case has several wishes and tells what to do them with, so nothing holds much of it.
        let enough = weights.enough * view.focus * view.focus * terms.iter().map(WeightedTerm::most).sum::<f32>();
        let most = shards.iter().map(|shard| largest(&shard.evidence.words)).fold(enough, larger).max(f32::MIN_POSITIVE);
        let nearest = shards.iter().map(|shard| largest(shard.nearness())).fold(0.0, larger).max(f32::MIN_POSITIVE);
        let rest = weights.name_cover + view.focus * (weights.verb + weights.event * view.event.abs());
        Self {
            view,
            with_meaning: shards.iter().any(|shard| !shard.meaning.is_empty()),
            weights,
            most,
            nearest,
            per_word: weights.lexical * ROUNDED / most,
            per_cosine: weights.dense * ROUNDED / nearest,
            rest,
            called: None,
        }
    }
}

impl<'a> Scoring<'a> {
    /// The same once the best documents were looked at closely, with what a project itself calls.
    pub(super) fn refined(
        self,
        shards: &[Shard<'_>],
        best: impl Iterator<Item = (usize, u32)>,
        called: Option<&'a HashMap<u64, f32>>,
    ) -> Self {
        let cosines = best.filter_map(|(at, entry)| shards[at].nearness().get(entry as usize).copied());
        Self { nearest: cosines.fold(0.0, f32::max).max(f32::MIN_POSITIVE), called, ..self }
    }

    /// How much it counts how likely an app is: less, the more clearly one is named.
    fn prior_share(&self) -> f32 {
        if self.view.names_app() { 1.0 - self.view.any_named } else { 1.0 }
    }

    /// How often a document is meant: by people, or by the project's own calls.
    fn usage(&self, entry: &Entry) -> f32 {
        let own = self.called.and_then(|called| called.get(&entry.id)).copied().unwrap_or_default();
        entry.usage.max(own)
    }
}

impl<'a> Shard<'a> {
    pub(super) fn all(
        indexes: &[&'a Index],
        terms: &[WeightedTerm<'_>],
        weights: &Weights,
        preferred: &[&str],
        probes: &[Probe],
    ) -> Vec<Self> {
        indexes.iter().map(|index| Self::new(index, terms, weights, preferred, probes)).collect()
    }

    fn new(index: &'a Index, terms: &[WeightedTerm<'_>], weights: &Weights, preferred: &[&str], probes: &[Probe]) -> Self {
        let meaning = match &index.meanings {
            Some(meanings) if !probes.is_empty() => meanings.nearest(probes),
            _ => Vec::new(),
        };
        let prior = index.apps.iter().map(|app| if preferred.contains(&app.key.as_str()) { 1.0 } else { app.prior }).collect();
        Self { index, evidence: Collection::evidence(index, terms, weights), meaning, remote: Vec::new(), prior }
    }

    /// How near in meaning each document is, as far as it decides the order.
    fn nearness(&self) -> &[f32] {
        if self.remote.is_empty() { &self.meaning } else { &self.remote }
    }

    /// Looks closely at what the given documents mean; what others mean no longer counts.
    pub(super) fn refine(shards: &mut [Self], documents: impl Iterator<Item = (usize, u32)>, probes: &[Probe]) {
        let exact: Vec<(usize, u32, f32)> = documents
            .filter_map(|(at, entry)| {
                let meanings = shards[at].index.meanings.as_ref().filter(|_| !probes.is_empty())?;
                Some((at, entry, meanings.exactly(entry, probes)))
            })
            .collect();
        for shard in shards.iter_mut() {
            shard.meaning.fill(0.0);
        }
        for (at, entry, cosine) in exact {
            shards[at].meaning[entry as usize] = cosine;
        }
    }

    /// Lets a remote model decide how near the given documents are in meaning, as far as it has vectors for them. Models differ in what
    /// they call near, so its cosines are brought to the scale of ours: their mean and their highest become the same.
    pub(super) fn compare_remotely(shards: &mut [Self], documents: impl Iterator<Item = (usize, u32)>, probe: &Probe) {
        let pairs: Vec<(usize, u32, f32, f32)> = documents
            .filter_map(|(at, entry)| {
                let remote = shards[at].index.remote.get()?.known(entry, probe)?;
                Some((at, entry, *shards[at].meaning.get(entry as usize)?, remote))
            })
            .collect();
        let (own_mean, own_most) = mean_and_most(pairs.iter().map(|pair| pair.2));
        let (mean, most) = mean_and_most(pairs.iter().map(|pair| pair.3));
        if most - mean <= f32::EPSILON {
            return;
        }
        for shard in shards.iter_mut() {
            shard.remote.clone_from(&shard.meaning);
        }
        for (at, entry, _, cosine) in pairs {
            shards[at].remote[entry as usize] = own_mean + (cosine - mean) * (own_most - own_mean) / (most - mean);
        }
    }

    /// What each app adds to the score of its documents.
    fn of_apps(&self, named: &[(u32, f32)], scale: &Scoring<'_>) -> Vec<f32> {
        let mut added: Vec<f32> = self.prior.iter().map(|prior| scale.weights.prior * prior * scale.prior_share()).collect();
        for (app, strength) in named {
            added[*app as usize] += scale.weights.app * strength * scale.view.focus;
        }
        added
    }

    /// The most that each document can score, in their order, by what is quickly known of it.
    pub(super) fn at_most(&self, named: &[(u32, f32)], scale: &Scoring<'_>) -> Vec<f32> {
        let (w, of_apps) = (scale.weights, self.of_apps(named, scale));
        let words = &self.evidence.words[..];
        // Where nothing is known of the meaning, words stand in for it.
        let (meaning, per_meaning) = match self.nearness() {
            [] => (words, w.dense * ROUNDED / scale.most),
            known => (known, scale.per_cosine),
        };
        let known = self.index.entries.iter().zip(words).zip(meaning);
        let quick = |((entry, words), meaning): ((&Entry, &f32), &f32)| {
            words * scale.per_word + larger(*meaning, 0.0) * per_meaning + of_apps[entry.app as usize] + w.usage * entry.usage + scale.rest
        };
        let mut bounds: Vec<f32> = known.map(quick).collect();
        bounds.iter_mut().zip(&self.evidence.example).for_each(|(bound, example)| *bound += w.example * example);
        bounds
    }

    /// The sum of all evidence for a document; nothing in common is zero.
    pub(super) fn score(&self, entry: u32, named: &[(u32, f32)], scale: &Scoring<'_>) -> f32 {
        self.evidence_for(entry as usize, named, scale).map_or(0.0, |reasons| reasons.sum())
    }

    /// The evidence for a document, and what says how sure it is.
    pub(super) fn reasons(
        &self,
        entry: u32,
        named: &[(u32, f32)],
        query: &Query,
        collection: &Collection<'_>,
        scale: &Scoring<'_>,
    ) -> Option<(Reasons, AnswerFeatures)> {
        let at = entry as usize;
        let reasons = self.evidence_for(at, named, scale)?;
        let own = &self.index.entries[at];
        let app = named.iter().filter(|(app, _)| *app == own.app).map(|n| n.1).fold(0.0, f32::max);
        let (coverage, object) = confidence::coverage(self.index, entry, query, app > 0.0, collection, scale.weights);
        let signs = AnswerFeatures {
            coverage,
            object,
            example: self.evidence.sure_example.get(at).copied().unwrap_or_default(),
            cosine: self.meaning.get(at).copied().unwrap_or_default().max(0.0),
            name: self.evidence.name[at].min(1.0),
            app,
            other_app: (scale.view.any_named - app).max(0.0),
            verb: if scale.view.asked.is_empty() { 0.0 } else { scale.view.agreement.of(own.intents) - 0.5 },
            score: reasons.sum(),
            ahead: 0.0,
            terms: query.terms.len().min(20),
        };
        Some((reasons, signs))
    }

    fn evidence_for(&self, at: usize, named: &[(u32, f32)], scale: &Scoring<'_>) -> Option<Reasons> {
        let Scoring { view, weights: w, most, nearest, .. } = scale;
        let words = self.evidence.words[at] / most;
        let meaning = self.nearness().get(at).map(|cosine| cosine.max(0.0) / nearest);
        let example = self.evidence.example.get(at).copied().unwrap_or_default();
        let entry = &self.index.entries[at];
        let app = named.iter().filter(|(app, _)| *app == entry.app).map(|n| n.1).fold(0.0, f32::max);
        if words <= 0.0 && example <= 0.0 && app <= 0.0 && meaning.is_none_or(|m| m < FAR) {
            return None;
        }
        let is_event = entry.kind == Kind::Event;
        let verb = if is_event { 0.0 } else { verb(view, entry, w) };
        let change = if view.only_finds && matches!(entry.change, Change::Likely | Change::Surely) { w.change } else { 0.0 };
        let direction = if is_event { view.event } else { -view.event };
        Some(Reasons {
            words: w.lexical * words,
            meaning: w.dense * meaning.unwrap_or(words * 0.8),
            example: w.example * example,
            name: w.name_cover * self.evidence.name[at].min(1.0),
            app: w.app * app * view.focus,
            verb: (verb - change) * view.focus,
            event: w.event * direction * view.focus,
            prior: w.prior * self.prior[entry.app as usize] * scale.prior_share(),
            usage: w.usage * scale.usage(entry) * view.focus,
            same_app: 0.0,
        })
    }
}

#[expect(clippy::cast_precision_loss, reason = "a count of documents")]
fn mean_and_most(values: impl Iterator<Item = f32>) -> (f32, f32) {
    let (sum, most, count) = values.fold((0.0, f32::MIN, 0_usize), |(sum, most, count), x| (sum + x, f32::max(most, x), count + 1));
    (sum / count.max(1) as f32, most)
}

/// The right verb helps, another verb hurts, and destruction that nobody asked for loses every tie.
fn verb(view: &View, entry: &Entry, w: &Weights) -> f32 {
    let unasked = if entry.destructive && !view.asked.has(verbs::Intent::Delete) { w.destructive } else { 0.0 };
    if view.asked.is_empty() || entry.intents.is_empty() {
        return -unasked;
    }
    let agreement = view.agreement.of(entry.intents);
    let fit = if agreement > 0.0 { w.verb * agreement } else { -w.wrong_verb };
    fit - unasked
}
