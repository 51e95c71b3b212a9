//! What templates may use that anybody may write. Nothing here makes much out of little: fuel counts steps and not bytes.

use std::fmt::Write as _;
use std::{fmt, io};

use minijinja::value::Value as Jinja;
use minijinja::{Environment, Error as JinjaError, ErrorKind, State, UndefinedBehavior, filters, tests};

use super::names::Names;
use super::source::bare;
use super::{base64, base64url, text_filter};
use crate::suggest::did_you_mean;

/// The most bytes that the expressions of one document may make, and any filter on the way.
pub(super) const MAX_OUTPUT: usize = 4 << 20;
/// The most bytes of one expression.
const MAX_SOURCE: usize = 4096;
/// How often one expression may make a new text or list out of others.
const MAX_COPIES: usize = 32;

/// Without loops and variables, a short expression with few of these operators cannot make much.
pub(super) fn check(source: &str) -> Result<(), String> {
    if source.len() > MAX_SOURCE {
        return Err(format!("an expression may have {MAX_SOURCE} bytes"));
    }
    if bare(source).any(|(_, char)| char == '*') {
        return Err("`*` is not known here".to_owned());
    }
    if bare(source).filter(|(_, char)| matches!(char, '+' | '~' | '|' | ':')).count() > MAX_COPIES {
        return Err(format!("an expression may hold {MAX_COPIES} of `+`, `~`, `|` and `:`"));
    }
    Ok(())
}

/// The filters and tests there are.
#[derive(Debug, Default)]
pub(super) struct Known {
    filters: Vec<&'static str>,
    tests: Vec<&'static str>,
}

impl Known {
    /// Refuses a filter or test that there is not.
    pub(super) fn check(&self, names: &Names) -> Result<(), String> {
        for (kind, used, known) in [("filter", &names.filters, &self.filters), ("test", &names.tests, &self.tests)] {
            if let Some(unknown) = used.iter().find(|name| !known.contains(&name.as_str())) {
                let near = did_you_mean(unknown, known.iter().copied());
                return Err(format!("there is no {kind} `{unknown}`; there are: {}.{near}", known.join(", ")));
            }
        }
        Ok(())
    }
}

/// Adds what there is; the names of it.
pub(super) fn register(env: &mut Environment<'static>) -> Known {
    let mut known = Known::default();
    macro_rules! filter {
        ($name:literal, $filter:expr) => {
            env.add_filter($name, $filter);
            known.filters.push($name);
        };
    }
    macro_rules! test {
        ($name:literal, $test:expr) => {
            env.add_test($name, $test);
            known.tests.push($name);
        };
    }
    filter!("base64", |value: Jinja| short(base64(&value)));
    filter!("base64url", |value: Jinja| short(base64url(&value)));
    filter!("lower", |value: Jinja| short(text_filter(&value, str::to_lowercase)));
    filter!("upper", |value: Jinja| short(text_filter(&value, str::to_uppercase)));
    filter!("trim", |value: Jinja| short(text_filter(&value, |text| text.trim().to_owned())));
    filter!("string", |state: &State, value: Jinja| present(state, &value).and_then(|()| made(|out| write!(out, "{value}").is_ok())));
    filter!("tojson", |state: &State, value: Jinja| present(state, &value)
        .and_then(|()| made(|out| serde_json::to_writer(out, &value).is_ok())));
    filter!("join", join);
    filter!("replace", replace);
    filter!("default", filters::default);
    filter!("d", filters::default);
    filter!("length", filters::length);
    filter!("count", filters::length);
    filter!("first", filters::first);
    filter!("last", filters::last);
    filter!("min", filters::min);
    filter!("max", filters::max);
    filter!("int", filters::int);
    filter!("float", filters::float);
    filter!("bool", filters::bool);
    filter!("abs", filters::abs);
    filter!("round", filters::round);
    test!("defined", tests::is_defined);
    test!("undefined", tests::is_undefined);
    test!("none", tests::is_none);
    test!("string", tests::is_string);
    test!("number", tests::is_number);
    test!("boolean", tests::is_boolean);
    test!("sequence", tests::is_sequence);
    test!("mapping", tests::is_mapping);
    test!("in", tests::is_in);
    known
}

fn join(state: &State, list: Jinja, separator: Option<String>) -> Result<Jinja, JinjaError> {
    present(state, &list)?;
    let separator = separator.unwrap_or_default();
    let mut items = list.try_iter()?.enumerate();
    made(|out| items.all(|(index, item)| (index == 0 || out.write_str(&separator).is_ok()) && write!(out, "{item}").is_ok()))
}

fn replace(value: Jinja, from: String, to: String) -> Result<Jinja, JinjaError> {
    let Some(text) = value.as_str().filter(|_| !from.is_empty()) else { return text_filter(&value, str::to_owned) };
    let mut parts = text.split(from.as_str()).enumerate();
    made(|out| parts.all(|(index, part)| (index == 0 || out.write_str(&to).is_ok()) && out.write_str(part).is_ok()))
}

/// These filters make a text of anything; in a strict engine not of what is missing.
fn present(state: &State, value: &Jinja) -> Result<(), JinjaError> {
    let is_strict = state.undefined_behavior() == UndefinedBehavior::Strict;
    if is_strict && value.is_undefined() { Err(ErrorKind::UndefinedError.into()) } else { Ok(()) }
}

fn short(text: Result<Jinja, JinjaError>) -> Result<Jinja, JinjaError> {
    text.and_then(|text| if text.as_str().is_some_and(|text| text.len() > MAX_OUTPUT) { Err(too_large()) } else { Ok(text) })
}

/// Text that is given up at the limit.
fn made(fill: impl FnOnce(&mut Bounded) -> bool) -> Result<Jinja, JinjaError> {
    let mut out = Bounded::new(MAX_OUTPUT);
    if fill(&mut out) { Ok(Jinja::from(out.into_text())) } else { Err(too_large()) }
}

fn too_large() -> JinjaError {
    JinjaError::new(ErrorKind::InvalidOperation, TOO_LARGE)
}

pub(super) const TOO_LARGE: &str = "this makes more than 4 MiB, or cannot be written";

/// Takes so many bytes and no more.
#[derive(Debug)]
pub(super) struct Bounded {
    bytes: Vec<u8>,
    left: usize,
}

impl Bounded {
    pub(super) fn new(limit: usize) -> Self {
        Self { bytes: Vec::new(), left: limit }
    }

    pub(super) fn left(&self) -> usize {
        self.left
    }

    pub(super) fn into_text(self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }

    fn take(&mut self, bytes: &[u8]) -> bool {
        let Some(left) = self.left.checked_sub(bytes.len()) else { return false };
        self.left = left;
        self.bytes.extend_from_slice(bytes);
        true
    }
}

impl fmt::Write for Bounded {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.take(text.as_bytes()) { Ok(()) } else { Err(fmt::Error) }
    }
}

impl io::Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.take(bytes) { Ok(bytes.len()) } else { Err(io::Error::other(TOO_LARGE)) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
