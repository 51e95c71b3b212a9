//! From the apps that an agent has to the apps it shall have: a difference of values.

use crate::Assignment;
use crate::wanted::Wanted;

/// One step from what is to what shall be.
#[derive(Debug)]
pub(crate) enum Step<'a> {
    Assign(&'a Wanted),
    /// The row is there, switched off.
    Reassign(&'a Assignment, &'a Wanted),
    /// The row stays on, with other settings.
    Adjust(&'a Assignment, &'a Wanted),
    Unassign(&'a Assignment),
}

impl Step<'_> {
    /// Whether it may open tools that the agent did not have.
    pub(crate) fn gives(&self) -> bool {
        match self {
            Self::Assign(_) | Self::Reassign(..) => true,
            Self::Adjust(row, want) => want.config.as_ref().is_some_and(|(config, _)| *config != row.config),
            Self::Unassign(_) => false,
        }
    }
}

/// What happens to apps that nobody named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Others {
    Keep,
    SwitchOff,
}

/// The steps, in the order of what is wanted; what is switched off comes last.
pub(crate) fn steps<'a>(current: &'a [Assignment], wanted: &'a [Wanted], others: Others) -> Vec<Step<'a>> {
    let mut steps = Vec::new();
    for want in wanted {
        match current.iter().find(|row| row.app == want.app) {
            None => steps.push(Step::Assign(want)),
            Some(row) if !row.is_active => steps.push(Step::Reassign(row, want)),
            Some(row) if want.differs(row) => steps.push(Step::Adjust(row, want)),
            Some(_) => {}
        }
    }
    if others == Others::SwitchOff {
        let unwanted = |row: &&Assignment| row.is_active && wanted.iter().all(|want| want.app != row.app);
        steps.extend(current.iter().filter(unwanted).map(Step::Unassign));
    }
    steps
}

#[cfg(test)]
mod tests {
    use kernel::{AgentId, Timestamp};
    use serde_json::Map;

    use super::*;
    use crate::{AppName, AppPolicy};

    fn row(app: &str, is_active: bool) -> Assignment {
        Assignment {
            id: 1,
            agent: AgentId::new(),
            app: AppName::of(app),
            is_active,
            priority: 0,
            config: Map::new(),
            policy: AppPolicy::default(),
            assigned_at: Timestamp::from_micros(0),
            assigned_by: String::new(),
        }
    }

    fn want(app: &str, priority: Option<i64>) -> Wanted {
        Wanted { app: AppName::of(app), priority, config: None, connect: None }
    }

    fn shown(current: &[Assignment], wanted: &[Wanted], others: Others) -> Vec<String> {
        let show = |step: &Step<'_>| match step {
            Step::Assign(want) => format!("+{}", want.app),
            Step::Reassign(row, _) => format!("^{}", row.app),
            Step::Adjust(row, _) => format!("~{}", row.app),
            Step::Unassign(row) => format!("-{}", row.app),
        };
        steps(current, wanted, others).iter().map(show).collect()
    }

    #[test]
    fn only_what_differs_is_done() {
        let current = [row("a", true), row("b", false), row("c", true), row("d", false)];
        let wanted = [want("a", None), want("b", None), want("new", None)];
        assert_eq!(shown(&current, &wanted, Others::SwitchOff), ["^B", "+NEW", "-C"]);
        assert_eq!(shown(&current, &wanted, Others::Keep), ["^B", "+NEW"]);
        assert_eq!(shown(&current, &[], Others::SwitchOff), ["-A", "-C"]);
        assert_eq!(shown(&current, &[want("a", Some(0)), want("c", Some(3))], Others::SwitchOff), ["~C"]);
    }
}
