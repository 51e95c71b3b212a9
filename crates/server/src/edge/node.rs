//! A JSON body between its text and a type of ours. One reader serves all types, so that each is compiled once for bodies; it knows its
//! place, notes what nobody uses, and reads structs from objects only: serde also takes arrays for them, which no document of ours describes.

use std::borrow::Cow;
use std::cell::RefCell;
use std::fmt;

use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, EnumAccess, Error as _, IntoDeserializer, MapAccess, SeqAccess, Unexpected, VariantAccess,
    Visitor,
};
use serde_json::Error;

/// A value as it was written: with members in their order, also those that are there twice.
#[derive(Debug)]
pub(super) enum Node<'de> {
    Null,
    Bool(bool),
    Unsigned(u64),
    Signed(i64),
    Float(f64),
    Text(Cow<'de, str>),
    List(Vec<Node<'de>>),
    Object(Vec<(Cow<'de, str>, Node<'de>)>),
}

impl Node<'_> {
    fn unexpected(&self) -> Unexpected<'_> {
        match self {
            Self::Null => Unexpected::Unit,
            Self::Bool(value) => Unexpected::Bool(*value),
            Self::Unsigned(value) => Unexpected::Unsigned(*value),
            Self::Signed(value) => Unexpected::Signed(*value),
            Self::Float(value) => Unexpected::Float(*value),
            Self::Text(text) => Unexpected::Str(text),
            Self::List(_) => Unexpected::Seq,
            Self::Object(_) => Unexpected::Map,
        }
    }
}

struct NodeVisitor;

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = Node<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_unit<E>(self) -> Result<Node<'de>, E> {
        Ok(Node::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Node<'de>, E> {
        Ok(Node::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Node<'de>, E> {
        Ok(Node::Unsigned(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Node<'de>, E> {
        Ok(Node::Signed(value))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Node<'de>, E> {
        Ok(Node::Float(value))
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Node<'de>, E> {
        Ok(Node::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Node<'de>, E> {
        Ok(Node::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Node<'de>, A::Error> {
        let mut list = Vec::new();
        while let Some(element) = elements.next_element()? {
            list.push(element);
        }
        Ok(Node::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Node<'de>, A::Error> {
        let mut object = Vec::new();
        while let Some(name) = members.next_key_seed(Name)? {
            object.push((name, members.next_value()?));
        }
        Ok(Node::Object(object))
    }
}

/// The name of a member, borrowed where it is written without escapes.
struct Name;

impl<'de> DeserializeSeed<'de> for Name {
    type Value = Cow<'de, str>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Cow<'de, str>, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for Name {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Cow<'de, str>, E> {
        Ok(Cow::Borrowed(text))
    }

    fn visit_str<E>(self, text: &str) -> Result<Cow<'de, str>, E> {
        Ok(Cow::Owned(text.to_owned()))
    }
}

impl<'de> Deserialize<'de> for Node<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NodeVisitor)
    }
}

/// Where in a body something stands.
#[derive(Clone, Copy, Debug)]
pub(super) enum Place<'a> {
    Body,
    Member(&'a Place<'a>, &'a str),
    Element(&'a Place<'a>, usize),
}

/// One step to a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Member(String),
    Element(usize),
}

impl Place<'_> {
    fn steps(&self) -> Vec<Step> {
        let (mut steps, step) = match self {
            Self::Body => return Vec::new(),
            Self::Member(parent, name) => (parent.steps(), Step::Member((*name).to_owned())),
            Self::Element(parent, index) => (parent.steps(), Step::Element(*index)),
        };
        steps.push(step);
        steps
    }
}

/// What is found out while a body is read.
#[derive(Debug, Default)]
pub(super) struct Findings {
    /// Where the first thing stands that does not fit.
    wrong: RefCell<Option<Vec<Step>>>,
    unused: RefCell<Vec<Vec<Step>>>,
    /// As many places as are kept of what nobody uses.
    most: usize,
}

impl Findings {
    pub(super) fn up_to(most: usize) -> Self {
        Self { most, ..Self::default() }
    }

    pub(super) fn wrong(self) -> Vec<Step> {
        self.wrong.into_inner().unwrap_or_default()
    }

    pub(super) fn unused(self) -> Vec<Vec<Step>> {
        self.unused.into_inner()
    }

    fn at<T>(&self, place: &Place<'_>, read: Result<T, Error>) -> Result<T, Error> {
        if read.is_err() {
            self.wrong.borrow_mut().get_or_insert_with(|| place.steps());
        }
        read
    }
}

/// Reads a type from a node.
pub(super) struct Reader<'a, 'de> {
    pub(super) node: Node<'de>,
    pub(super) place: Place<'a>,
    pub(super) findings: &'a Findings,
}

/// The first whole number whose neighbours a double cannot tell apart.
const EXACT: f64 = 9_007_199_254_740_992.0;

impl<'de> Reader<'_, 'de> {
    fn visit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let Self { node, place, findings } = self;
        let read = match node {
            Node::Null => visitor.visit_unit(),
            Node::Bool(value) => visitor.visit_bool(value),
            Node::Unsigned(value) => visitor.visit_u64(value),
            Node::Signed(value) => visitor.visit_i64(value),
            Node::Float(value) => visitor.visit_f64(value),
            Node::Text(Cow::Borrowed(text)) => visitor.visit_borrowed_str(text),
            Node::Text(Cow::Owned(text)) => visitor.visit_string(text),
            Node::List(elements) => {
                let length = elements.len();
                let mut elements = Elements { rest: elements.into_iter().enumerate(), place: &place, findings };
                visitor.visit_seq(&mut elements).and_then(|read| match elements.rest.len() {
                    0 => Ok(read),
                    _ => Err(Error::invalid_length(length, &"fewer elements in array")),
                })
            }
            Node::Object(members) => visitor.visit_map(Members { rest: members.into_iter(), value: None, place: &place, findings }),
        };
        findings.at(&place, read)
    }

    /// Reads a whole number, also where it is written with a fraction of zero: to JSON Schema `10.0` is an integer.
    #[expect(clippy::cast_possible_truncation, reason = "it is whole, and small enough to be exact")]
    fn visit_whole<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value, Error> {
        if let Node::Float(value) = self.node
            && value.fract() == 0.0
            && value.abs() < EXACT
        {
            self.node = Node::Signed(value as i64);
        }
        if matches!(self.node, Node::Unsigned(_) | Node::Signed(_) | Node::Float(_)) { self.visit(visitor) } else { self.refuse(&visitor) }
    }

    fn refuse<T>(&self, expected: &dyn serde::de::Expected) -> Result<T, Error> {
        self.findings.at(&self.place, Err(Error::invalid_type(self.node.unexpected(), expected)))
    }
}

/// What serde asks for is the only kind that is taken; some types would also take others, which no document of ours describes.
macro_rules! kinds {
    ($($method:ident($($also:ty),*): $kind:pat,)*) => {$(
        fn $method<V: Visitor<'de>>(self, $(_: $also,)* visitor: V) -> Result<V::Value, Error> {
            if matches!(self.node, $kind) { self.visit(visitor) } else { self.refuse(&visitor) }
        }
    )*};
}

macro_rules! whole {
    ($($method:ident)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            self.visit_whole(visitor)
        }
    )*};
}

impl<'de> Deserializer<'de> for Reader<'_, 'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.visit(visitor)
    }

    kinds! {
        deserialize_unit(): Node::Null,
        deserialize_unit_struct(&'static str): Node::Null,
        deserialize_bool(): Node::Bool(_),
        deserialize_i128(): Node::Unsigned(_) | Node::Signed(_),
        deserialize_u128(): Node::Unsigned(_) | Node::Signed(_),
        deserialize_f32(): Node::Unsigned(_) | Node::Signed(_) | Node::Float(_),
        deserialize_f64(): Node::Unsigned(_) | Node::Signed(_) | Node::Float(_),
        deserialize_char(): Node::Text(_),
        deserialize_str(): Node::Text(_),
        deserialize_string(): Node::Text(_),
        deserialize_identifier(): Node::Text(_),
        deserialize_bytes(): Node::Text(_) | Node::List(_),
        deserialize_byte_buf(): Node::Text(_) | Node::List(_),
        deserialize_seq(): Node::List(_),
        deserialize_tuple(usize): Node::List(_),
        deserialize_tuple_struct(&'static str, usize): Node::List(_),
        deserialize_map(): Node::Object(_),
        deserialize_struct(&'static str, &'static [&'static str]): Node::Object(_),
    }

    whole! {
        deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if matches!(self.node, Node::Null) { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(self, _: &'static str, _: &'static [&'static str], visitor: V) -> Result<V::Value, Error> {
        let Self { node, place, findings } = self;
        let (name, data) = match node {
            Node::Text(name) => (name, None),
            Node::Object(mut members) if members.len() == 1 => {
                let (name, data) = members.remove(0);
                (name, Some(data))
            }
            Node::Object(_) => return findings.at(&place, Err(Error::invalid_value(Unexpected::Map, &"map with a single key"))),
            other => return findings.at(&place, Err(Error::invalid_type(other.unexpected(), &"string or map"))),
        };
        let read = visitor.visit_enum(Variant { name, data, place, findings });
        findings.at(&place, read)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let mut unused = self.findings.unused.borrow_mut();
        if unused.len() < self.findings.most {
            unused.push(self.place.steps());
        }
        visitor.visit_unit()
    }
}

struct Elements<'a, 'de> {
    rest: std::iter::Enumerate<std::vec::IntoIter<Node<'de>>>,
    place: &'a Place<'a>,
    findings: &'a Findings,
}

impl<'de> SeqAccess<'de> for &mut Elements<'_, 'de> {
    type Error = Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, Error> {
        let Some((index, node)) = self.rest.next() else { return Ok(None) };
        seed.deserialize(Reader { node, place: Place::Element(self.place, index), findings: self.findings }).map(Some)
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.rest.len())
    }
}

struct Members<'a, 'de> {
    rest: std::vec::IntoIter<(Cow<'de, str>, Node<'de>)>,
    value: Option<(Cow<'de, str>, Node<'de>)>,
    place: &'a Place<'a>,
    findings: &'a Findings,
}

impl<'de> MapAccess<'de> for Members<'_, 'de> {
    type Error = Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, Error> {
        let Some((name, node)) = self.rest.next() else { return Ok(None) };
        let place = Place::Member(self.place, &name);
        let read = match &name {
            Cow::Borrowed(text) => seed.deserialize(serde::de::value::BorrowedStrDeserializer::new(text)),
            Cow::Owned(text) => seed.deserialize(text.as_str().into_deserializer()),
        };
        let key = self.findings.at(&place, read)?;
        self.value = Some((name, node));
        Ok(Some(key))
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Error> {
        let (name, node) = self.value.take().ok_or_else(|| Error::custom("a value without its name"))?;
        seed.deserialize(Reader { node, place: Place::Member(self.place, &name), findings: self.findings })
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.rest.len())
    }
}

/// A variant of an enum: its name, and what it holds.
struct Variant<'a, 'de> {
    name: Cow<'de, str>,
    data: Option<Node<'de>>,
    place: Place<'a>,
    findings: &'a Findings,
}

impl<'a, 'de> EnumAccess<'de> for Variant<'a, 'de> {
    type Error = Error;
    type Variant = VariantData<'a, 'de>;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, VariantData<'a, 'de>), Error> {
        let Self { name, data, place, findings } = self;
        let name = seed.deserialize(IntoDeserializer::<Error>::into_deserializer(&*name))?;
        Ok((name, VariantData(data.map(|node| Reader { node, place, findings }))))
    }
}

struct VariantData<'a, 'de>(Option<Reader<'a, 'de>>);

impl<'a, 'de> VariantData<'a, 'de> {
    fn held(self, expected: &str) -> Result<Reader<'a, 'de>, Error> {
        self.0.ok_or_else(|| Error::invalid_type(Unexpected::UnitVariant, &expected))
    }
}

impl<'de> VariantAccess<'de> for VariantData<'_, 'de> {
    type Error = Error;

    fn unit_variant(self) -> Result<(), Error> {
        self.0.map_or(Ok(()), <()>::deserialize)
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, Error> {
        seed.deserialize(self.held("newtype variant")?)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Error> {
        let held = self.held("tuple variant")?;
        if matches!(held.node, Node::List(_)) { held.visit(visitor) } else { held.refuse(&"tuple variant") }
    }

    fn struct_variant<V: Visitor<'de>>(self, _: &'static [&'static str], visitor: V) -> Result<V::Value, Error> {
        let held = self.held("struct variant")?;
        if matches!(held.node, Node::Object(_)) { held.visit(visitor) } else { held.refuse(&visitor) }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::{Value, json};

    use super::*;

    #[derive(Debug, serde::Deserialize, PartialEq)]
    struct Inner {
        a: i64,
        b: Option<String>,
    }

    #[derive(Debug, serde::Deserialize, PartialEq)]
    #[serde(rename_all = "snake_case")]
    enum Choice {
        None,
        One(Inner),
        Named { a: i64 },
        Pair(i64, i64),
    }

    #[derive(Debug, serde::Deserialize)]
    struct Outer {
        inner: Inner,
        list: Vec<Inner>,
        map: BTreeMap<String, Inner>,
        choice: Choice,
        pair: (i64, i64),
        free: Value,
    }

    #[derive(Debug, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Closed {
        #[serde(default)]
        known: u8,
    }

    /// Why something does not fit, and where.
    type Wrong = (String, Vec<Step>);

    /// What is read, or why not and where; and what nobody used.
    fn read_text<T: for<'de> Deserialize<'de>>(text: &str) -> (Result<T, Wrong>, Vec<Vec<Step>>) {
        let findings = Findings::up_to(3);
        let node = serde_json::from_str(text).unwrap();
        match T::deserialize(Reader { node, place: Place::Body, findings: &findings }) {
            Ok(value) => (Ok(value), findings.unused()),
            Err(error) => (Err((error.to_string(), findings.wrong())), Vec::new()),
        }
    }

    fn read<T: for<'de> Deserialize<'de>>(value: &Value) -> Result<T, Wrong> {
        read_text(&value.to_string()).0
    }

    fn member(name: &str) -> Step {
        Step::Member(name.to_owned())
    }

    fn whole() -> Value {
        let inner = json!({"a": 1, "b": "x"});
        json!({"inner": inner, "list": [inner], "map": {"k": inner}, "choice": {"one": inner}, "pair": [1, 2], "free": [1, [2]]})
    }

    #[test]
    fn a_body_becomes_a_type() {
        let outer = read::<Outer>(&whole()).unwrap();
        let inner = Inner { a: 1, b: Some("x".to_owned()) };
        assert_eq!((outer.list.as_slice(), &outer.map["k"], &outer.inner), (std::slice::from_ref(&inner), &inner, &inner));
        assert_eq!((outer.choice, outer.pair, outer.free), (Choice::One(inner), (1, 2), json!([1, [2]])));
        for (value, choice) in [
            (json!("none"), Choice::None),
            (json!({"none": null}), Choice::None),
            (json!({"named": {"a": 2}}), Choice::Named { a: 2 }),
            (json!({"pair": [1, 2]}), Choice::Pair(1, 2)),
        ] {
            assert_eq!(read::<Choice>(&value).unwrap(), choice);
        }
    }

    #[test]
    fn free_json_stays_as_it_is() {
        let value = json!({"a": [null, true, -1, 1, u64::MAX, 1.5, 10.0, "x\n\"", "é"], "b": {"c": {}, "d": []}});
        let text = value.to_string();
        assert_eq!(read_text::<Value>(&text).0.unwrap().to_string(), text);
    }

    #[test]
    fn a_whole_number_may_have_a_fraction_of_zero() {
        for (value, a) in [(json!(10.0), 10), (json!(-3.0), -3), (json!(1e3), 1000), (json!(7), 7)] {
            assert_eq!(read::<Inner>(&json!({"a": value})).unwrap().a, a);
        }
        for value in [json!(10.5), json!(1e300), json!("10"), json!(true), json!(null)] {
            assert!(read::<Inner>(&json!({"a": value})).is_err(), "{value}");
        }
        assert_eq!(read::<Value>(&json!({"a": 10.0})).unwrap(), json!({"a": 10.0}), "what is free stays as it is");
    }

    #[test]
    fn an_array_is_no_object_at_any_depth() {
        for place in ["/inner", "/list/0", "/map/k", "/choice/one"] {
            let mut value = whole();
            *value.pointer_mut(place).unwrap() = json!([1, "x"]);
            let (error, _) = read::<Outer>(&value).unwrap_err();
            assert!(error.starts_with("invalid type: sequence, expected struct Inner"), "{place}: {error}");
        }
        assert!(read::<Inner>(&json!([1, "x"])).is_err());
        assert!(read::<Choice>(&json!({"named": [1]})).is_err());
        assert!(read::<(i64, i64)>(&json!([1, 2, 3])).is_err());
    }

    #[test]
    fn a_kind_that_serde_would_take_as_well_is_refused() {
        #[derive(Debug, serde::Deserialize)]
        #[serde(tag = "kind", rename_all = "snake_case")]
        enum Tagged {
            First {},
        }
        assert!(matches!(read::<Tagged>(&json!({"kind": "first"})).unwrap(), Tagged::First {}));
        assert!(read::<Tagged>(&json!({"kind": 0})).is_err(), "a variant has a name, not a number");
        assert!(read::<serde_json::Map<String, Value>>(&json!(null)).is_err(), "nothing is no object");
        assert!(read::<Vec<i64>>(&json!({"0": 1})).is_err());
        assert!(read::<String>(&json!(1)).is_err());
        assert_eq!(read::<Option<Vec<i64>>>(&json!(null)).unwrap(), None);
    }

    #[test]
    fn what_does_not_fit_is_told_with_its_place() {
        let mut value = whole();
        value["list"] = json!([{"a": 1}, {"a": "x"}]);
        let (error, place) = read::<Outer>(&value).unwrap_err();
        assert_eq!(error, "invalid type: string \"x\", expected i64");
        assert_eq!(place, [member("list"), Step::Element(1), member("a")]);
        value["list"] = json!([{}]);
        let (error, place) = read::<Outer>(&value).unwrap_err();
        assert_eq!((error.as_str(), place), ("missing field `a`", vec![member("list"), Step::Element(0)]));
        assert_eq!(read::<Closed>(&json!({"known": 7})).unwrap().known, 7);
        let (error, place) = read::<Closed>(&json!({"nown": 1})).unwrap_err();
        assert_eq!((error.as_str(), place), ("unknown field `nown`, expected `known`", vec![member("nown")]));
        let (error, _) = read::<Closed>(&json!({"known": null})).unwrap_err();
        assert_eq!(error, "invalid type: null, expected u8");
        let (error, _) = read_text::<Closed>(r#"{"known": 1, "known": 2}"#).0.unwrap_err();
        assert_eq!(error, "duplicate field `known`");
    }

    #[test]
    fn what_nobody_uses_is_noted_up_to_a_number() {
        let (read, unused) = read_text::<Vec<Inner>>(r#"[{"a": 1, "x": 1, "b": null}, {"y": [], "a": 2}]"#);
        assert_eq!(read.unwrap().len(), 2);
        assert_eq!(unused, [vec![Step::Element(0), member("x")], vec![Step::Element(1), member("y")]]);
        assert_eq!(read_text::<Inner>(r#"{"a": 1, "p": 1, "q": 2, "r": 3, "s": 4}"#).1.len(), 3);
    }
}
