//! Reads structs from objects only. serde also reads them from arrays, one member after the other, which no document of ours describes.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, EnumAccess, MapAccess, SeqAccess, VariantAccess, Visitor};

/// A part of serde's reading, at whatever depth.
pub(super) struct Objects<T>(pub(super) T);

macro_rules! forward {
    ($($method:ident)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
            self.0.$method(Objects(visitor))
        }
    )*};
}

macro_rules! whole {
    ($($method:ident)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
            self.0.$method(Whole(visitor))
        }
    )*};
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Objects<D> {
    type Error = D::Error;

    forward! {
        deserialize_any deserialize_bool deserialize_i128 deserialize_u128 deserialize_f32 deserialize_f64
        deserialize_char deserialize_str deserialize_string deserialize_bytes deserialize_byte_buf deserialize_option
        deserialize_unit deserialize_seq deserialize_map deserialize_identifier deserialize_ignored_any
    }

    whole! {
        deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64
    }

    fn deserialize_struct<V: Visitor<'de>>(self, _: &'static str, _: &'static [&'static str], visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_map(Objects(visitor))
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(self, name: &'static str, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_unit_struct(name, Objects(visitor))
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, name: &'static str, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_newtype_struct(name, Objects(visitor))
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, length: usize, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_tuple(length, Objects(visitor))
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(self, name: &'static str, length: usize, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_tuple_struct(name, length, Objects(visitor))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_enum(name, variants, Objects(visitor))
    }

    fn is_human_readable(&self) -> bool {
        self.0.is_human_readable()
    }
}

macro_rules! visit {
    ($($method:ident: $kind:ty,)*) => {$(
        fn $method<E: serde::de::Error>(self, value: $kind) -> Result<V::Value, E> {
            self.0.$method(value)
        }
    )*};
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Objects<V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.expecting(f)
    }

    visit! {
        visit_bool: bool, visit_i8: i8, visit_i16: i16, visit_i32: i32, visit_i64: i64, visit_i128: i128,
        visit_u8: u8, visit_u16: u16, visit_u32: u32, visit_u64: u64, visit_u128: u128, visit_f32: f32, visit_f64: f64,
        visit_char: char, visit_str: &str, visit_borrowed_str: &'de str, visit_string: String,
        visit_bytes: &[u8], visit_borrowed_bytes: &'de [u8], visit_byte_buf: Vec<u8>,
    }

    fn visit_none<E: serde::de::Error>(self) -> Result<V::Value, E> {
        self.0.visit_none()
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<V::Value, E> {
        self.0.visit_unit()
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<V::Value, D::Error> {
        self.0.visit_some(Objects(deserializer))
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<V::Value, D::Error> {
        self.0.visit_newtype_struct(Objects(deserializer))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, elements: A) -> Result<V::Value, A::Error> {
        self.0.visit_seq(Objects(elements))
    }

    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<V::Value, A::Error> {
        self.0.visit_map(Objects(members))
    }

    fn visit_enum<A: EnumAccess<'de>>(self, data: A) -> Result<V::Value, A::Error> {
        self.0.visit_enum(Objects(data))
    }
}

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for Objects<A> {
    type Error = A::Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, A::Error> {
        self.0.next_element_seed(Objects(seed))
    }

    fn size_hint(&self) -> Option<usize> {
        self.0.size_hint()
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Objects<A> {
    type Error = A::Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, A::Error> {
        self.0.next_key_seed(Objects(seed))
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        self.0.next_value_seed(Objects(seed))
    }

    fn size_hint(&self) -> Option<usize> {
        self.0.size_hint()
    }
}

impl<'de, A: EnumAccess<'de>> EnumAccess<'de> for Objects<A> {
    type Error = A::Error;
    type Variant = Objects<A::Variant>;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Self::Variant), A::Error> {
        self.0.variant_seed(Objects(seed)).map(|(name, data)| (name, Objects(data)))
    }
}

impl<'de, A: VariantAccess<'de>> VariantAccess<'de> for Objects<A> {
    type Error = A::Error;

    fn unit_variant(self) -> Result<(), A::Error> {
        self.0.unit_variant()
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, A::Error> {
        self.0.newtype_variant_seed(Objects(seed))
    }

    fn tuple_variant<V: Visitor<'de>>(self, length: usize, visitor: V) -> Result<V::Value, A::Error> {
        self.0.tuple_variant(length, Objects(visitor))
    }

    fn struct_variant<V: Visitor<'de>>(self, _: &'static [&'static str], visitor: V) -> Result<V::Value, A::Error> {
        self.0.newtype_variant_seed(Members(visitor))
    }
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for Objects<S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<S::Value, D::Error> {
        self.0.deserialize(Objects(deserializer))
    }
}

/// Reads a whole number, also where it is written with a fraction of zero: to JSON Schema `10.0` is an integer.
struct Whole<V>(V);

/// The first whole number whose neighbours a double cannot tell apart.
const EXACT: f64 = 9_007_199_254_740_992.0;

impl<'de, V: Visitor<'de>> Visitor<'de> for Whole<V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.expecting(f)
    }

    visit! { visit_bool: bool, visit_i64: i64, visit_u64: u64, visit_str: &str, visit_borrowed_str: &'de str, visit_string: String, }

    #[expect(clippy::cast_possible_truncation, reason = "it is whole, and small enough to be exact")]
    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<V::Value, E> {
        if value.fract() == 0.0 && value.abs() < EXACT { self.0.visit_i64(value as i64) } else { self.0.visit_f64(value) }
    }
}

/// The members of an enum's variant.
struct Members<V>(V);

impl<'de, V: Visitor<'de>> DeserializeSeed<'de> for Members<V> {
    type Value = V::Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<V::Value, D::Error> {
        deserializer.deserialize_map(Objects(self.0))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;
    use serde_json::{Value, json};

    use super::*;

    #[derive(Debug, Deserialize, PartialEq)]
    struct Inner {
        a: i64,
        b: Option<String>,
    }

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(rename_all = "snake_case")]
    enum Choice {
        None,
        One(Inner),
        Named { a: i64 },
        Pair(i64, i64),
    }

    #[derive(Debug, Deserialize)]
    struct Outer {
        inner: Inner,
        list: Vec<Inner>,
        map: BTreeMap<String, Inner>,
        choice: Choice,
        pair: (i64, i64),
        free: Value,
    }

    fn read<T: for<'de> Deserialize<'de>>(value: &Value) -> Result<T, String> {
        let text = value.to_string();
        let mut reader = serde_json::Deserializer::from_str(&text);
        T::deserialize(Objects(&mut reader)).map_err(|error| error.to_string())
    }

    fn whole() -> Value {
        let inner = json!({"a": 1, "b": "x"});
        json!({"inner": inner, "list": [inner], "map": {"k": inner}, "choice": {"one": inner}, "pair": [1, 2], "free": [1, [2]]})
    }

    #[test]
    fn objects_read_as_they_always_did() {
        let outer = read::<Outer>(&whole()).unwrap();
        let inner = Inner { a: 1, b: Some("x".to_owned()) };
        assert_eq!((outer.list.as_slice(), &outer.map["k"], &outer.inner), (std::slice::from_ref(&inner), &inner, &inner));
        assert_eq!((outer.choice, outer.pair, outer.free), (Choice::One(inner), (1, 2), json!([1, [2]])));
        for (value, choice) in [
            (json!("none"), Choice::None),
            (json!({"named": {"a": 2}}), Choice::Named { a: 2 }),
            (json!({"pair": [1, 2]}), Choice::Pair(1, 2)),
        ] {
            assert_eq!(read::<Choice>(&value).unwrap(), choice);
        }
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
            let error = read::<Outer>(&value).unwrap_err();
            assert!(error.starts_with("invalid type: sequence, expected struct Inner"), "{place}: {error}");
        }
        assert!(read::<Inner>(&json!([1, "x"])).is_err());
        assert!(read::<Choice>(&json!({"named": [1]})).is_err());
    }
}
