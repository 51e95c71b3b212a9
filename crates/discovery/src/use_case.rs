//! One use case: what it asks for, what fits it, and what to say about that.

use catalog::Found;
use catalog::search::Kind;

use crate::merge::Choice;
use crate::next_step::{Addresses, NextStep};

/// Below this direction, a use case surely does something.
const SURELY_ACTS: f32 = -0.9;

/// A use case, and what fits it, best first.
pub(crate) struct UseCase<'a> {
    pub(crate) text: &'a str,
    pub(crate) intent: UseCaseIntent,
    pub(crate) choices: Vec<Choice>,
    /// Why none of the choices is the answer.
    pub(crate) doubt: Option<Doubt>,
    /// The event to subscribe to, where tools were asked for.
    pub(crate) trigger: Option<Found>,
    /// What the use case goes on with, in order.
    pub(crate) then: Vec<Found>,
    pub(crate) cron: Option<&'static str>,
    pub(crate) difficulty: Option<String>,
}

/// What a use case asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UseCaseIntent {
    /// Surely to do something.
    Act,
    /// Most likely to do something.
    MostlyAct,
    /// To do one thing when another happens.
    ActWhen,
    /// To be told when something happens.
    Wait,
}

impl UseCaseIntent {
    pub(crate) fn of(direction: f32) -> Self {
        match direction {
            direction if direction > 0.0 => Self::Wait,
            direction if direction < SURELY_ACTS => Self::Act,
            direction if direction < 0.0 => Self::MostlyAct,
            _ => Self::ActWhen,
        }
    }

    pub(crate) fn waits(self) -> bool {
        matches!(self, Self::ActWhen | Self::Wait)
    }
}

/// Why what fits best is not good enough to be the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Doubt {
    /// Nothing fits; what was found is only what is nearest.
    Nothing,
    /// The use case says too little to choose by.
    Vague,
    /// The use case names an app, and this is not of it.
    OtherApp,
}

impl UseCase<'_> {
    /// The same for its text wherever that is kept.
    pub(crate) fn under(self, text: &str) -> UseCase<'_> {
        let UseCase { intent, choices, doubt, trigger, then, cron, difficulty, .. } = self;
        UseCase { text, intent, choices, doubt, trigger, then, cron, difficulty }
    }

    pub(crate) fn found(&self) -> impl Iterator<Item = &Found> {
        self.choices.iter().map(|choice| &choice.found)
    }

    pub(crate) fn is_empty(&self) -> bool {
        (self.choices.is_empty() || self.doubt == Some(Doubt::Nothing)) && self.trigger.is_none()
    }

    /// The choice that is good enough to be the answer.
    pub(crate) fn answer(&self) -> Option<&Choice> {
        self.choices.first().filter(|_| self.doubt.is_none())
    }

    /// What the caller should know about how it was read.
    pub(crate) fn note(&self, kind: Kind, addresses: &dyn Addresses) -> Option<String> {
        let text = match (kind, self.doubt) {
            (_, Some(Doubt::Vague)) if self.choices.is_empty() => {
                "Nothing fits this use case. It is vague: say what to do, with what and in which app."
            }
            (_, Some(Doubt::Vague)) => {
                "This is too vague to choose by: say what to do, with what and in which app, such as `create an issue on GitHub`. \
                 The alternatives are what is nearest."
            }
            (Kind::Action, _) if self.trigger.is_some() => {
                let subscribe = addresses.address(NextStep::Subscribe);
                return Some(if self.answer().is_some() {
                    format!(
                        "This waits for an event and then acts: subscribe to the one in `trigger` with {subscribe}, and call the tool in \
                         what it runs."
                    )
                } else {
                    format!("This reads like an event: subscribe to the one in `trigger` with {subscribe}. Tools act, they do not wait.")
                });
            }
            (_, Some(Doubt::Nothing)) if !self.choices.is_empty() => {
                "Nothing fits this use case. The alternatives are only what is nearest."
            }
            _ if self.choices.is_empty() || self.doubt == Some(Doubt::Nothing) => "Nothing fits this use case.",
            (Kind::Action, _) if self.intent.waits() => {
                "This reads like an event, but no event here fits. Tools act, they do not wait; run one on a schedule instead."
            }
            (_, Some(Doubt::OtherApp)) => "The app that this names has nothing that clearly fits; the alternatives are from others.",
            (Kind::Event, None) if self.intent == UseCaseIntent::Act => {
                let find = addresses.address(NextStep::FindTools);
                return Some(format!("This reads like something to do, not to wait for; {find} finds tools."));
            }
            _ => return None,
        };
        Some(text.to_owned())
    }
}
