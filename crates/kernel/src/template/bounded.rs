//! What templates may use that anybody may write. Nothing here makes much out of little: fuel counts steps and not bytes.

use std::fmt::Write as _;
use std::{fmt, io};

use minijinja::value::Value as Jinja;
use minijinja::{Environment, Error as JinjaError, ErrorKind, filters, tests};

use super::source::bare;
use super::{base64, base64url, text_filter};

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

pub(super) fn register(env: &mut Environment<'static>) {
    env.add_filter("base64", |value: Jinja| short(base64(&value)));
    env.add_filter("base64url", |value: Jinja| short(base64url(&value)));
    env.add_filter("lower", |value: Jinja| short(text_filter(&value, str::to_lowercase)));
    env.add_filter("upper", |value: Jinja| short(text_filter(&value, str::to_uppercase)));
    env.add_filter("trim", |value: Jinja| short(text_filter(&value, |text| text.trim().to_owned())));
    env.add_filter("string", |value: Jinja| made(|out| write!(out, "{value}").is_ok()));
    env.add_filter("tojson", |value: Jinja| made(|out| serde_json::to_writer(out, &value).is_ok()));
    env.add_filter("join", join);
    env.add_filter("replace", replace);
    env.add_filter("default", filters::default);
    env.add_filter("d", filters::default);
    env.add_filter("length", filters::length);
    env.add_filter("count", filters::length);
    env.add_filter("first", filters::first);
    env.add_filter("last", filters::last);
    env.add_filter("min", filters::min);
    env.add_filter("max", filters::max);
    env.add_filter("int", filters::int);
    env.add_filter("float", filters::float);
    env.add_filter("bool", filters::bool);
    env.add_filter("abs", filters::abs);
    env.add_filter("round", filters::round);
    env.add_test("defined", tests::is_defined);
    env.add_test("undefined", tests::is_undefined);
    env.add_test("none", tests::is_none);
    env.add_test("string", tests::is_string);
    env.add_test("number", tests::is_number);
    env.add_test("boolean", tests::is_boolean);
    env.add_test("sequence", tests::is_sequence);
    env.add_test("mapping", tests::is_mapping);
    env.add_test("in", tests::is_in);
}

fn join(list: Jinja, separator: Option<String>) -> Result<Jinja, JinjaError> {
    let separator = separator.unwrap_or_default();
    let mut items = list.try_iter()?.enumerate();
    made(|out| items.all(|(index, item)| (index == 0 || out.write_str(&separator).is_ok()) && write!(out, "{item}").is_ok()))
}

fn replace(value: Jinja, from: String, to: String) -> Result<Jinja, JinjaError> {
    let Some(text) = value.as_str().filter(|_| !from.is_empty()) else { return text_filter(&value, str::to_owned) };
    let mut parts = text.split(from.as_str()).enumerate();
    made(|out| parts.all(|(index, part)| (index == 0 || out.write_str(&to).is_ok()) && out.write_str(part).is_ok()))
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
