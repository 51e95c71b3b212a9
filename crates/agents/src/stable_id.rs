//! Stable tool ids: a number for an app's name that every client can compute for itself.

use std::fmt;

/// The id of an app, from −2147483648 to −1, so that it never meets the id of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StableToolId(i32);

impl StableToolId {
    /// The id of a name as it is written. The units are those of UTF-16, as browsers count them.
    pub fn of(name: &str) -> Self {
        Self::of_units(name.encode_utf16().map(u32::from))
    }

    fn of_units(units: impl Iterator<Item = u32>) -> Self {
        let hash = units.fold(0_u32, |hash, unit| hash.wrapping_mul(31).wrapping_add(unit)).cast_signed();
        // The negative side is the larger one: `i32::MIN` has no positive twin.
        Self(match hash {
            0 => -1,
            positive if positive > 0 => -positive,
            negative => negative,
        })
    }

    /// The id with this number, if there can be one.
    pub fn from_number(number: i64) -> Option<Self> {
        i32::try_from(number).ok().filter(|number| *number < 0).map(Self)
    }

    pub fn number(self) -> i32 {
        self.0
    }
}

impl fmt::Display for StableToolId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ids_are_the_contracts_own() {
        for (name, id) in [
            ("GITHUB", -2_102_661_091),
            ("github", -1_245_635_613),
            ("SLACK", -78_980_976),
            ("GMAIL", -67_928_702),
            ("GOOGLECALENDAR", -1_971_981_193),
            ("JIRA", -2_277_294),
            ("NOTION", -1_986_360_235),
            ("LINEAR", -2_049_342_683),
            ("GOOGLEDRIVE", -1_822_804_689),
            ("COMPOSIO_SEARCH", -204_166_926),
            ("MICROSOFT_TEAMS", -1_544_920_347),
            ("CAFÉ", -2_060_833),
            ("日本", -835_047),
            ("", -1),
            ("\u{1}", -1),
            ("polygenelubricants", i32::MIN),
            ("AO", -2094),
            ("B0", -2094),
            ("😀", -1_772_899),
        ] {
            assert_eq!(StableToolId::of(name).number(), id, "{name}");
        }
    }

    #[test]
    fn only_negative_numbers_of_32_bits_are_ids() {
        for (number, fits) in [(0, false), (1, false), (-1, true), (i64::from(i32::MIN), true), (i64::from(i32::MIN) - 1, false)] {
            assert_eq!(StableToolId::from_number(number).is_some(), fits, "{number}");
        }
    }

    /// Text within the Basic Multilingual Plane.
    fn basic() -> impl Strategy<Value = String> {
        let units = prop_oneof![0_u32..0x80, 0_u32..0xD800, 0xE000_u32..0x1_0000];
        proptest::collection::vec(units, 0..40).prop_map(|units| units.into_iter().filter_map(char::from_u32).collect())
    }

    proptest! {
        #[test]
        fn code_points_and_utf_16_units_agree(name in basic()) {
            prop_assert_eq!(StableToolId::of(&name), StableToolId::of_units(name.chars().map(u32::from)));
        }

        #[test]
        fn every_id_is_negative(name in ".{0,40}") {
            prop_assert!(StableToolId::of(&name).number() < 0);
        }
    }
}
