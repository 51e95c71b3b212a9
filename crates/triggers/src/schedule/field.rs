//! The terms inside one field of a cron expression, as sets of bits.

/// The numbers and names that a field takes.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) name: &'static str,
    min: u8,
    /// The highest number that may be written.
    max: u8,
    /// The highest number that is a value of its own: Sunday is 0, and 7 is only another way to write it.
    top: u8,
    names: &'static [&'static str],
    takes: &'static str,
}

const MONTHS: &[&str] = &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const WEEKDAYS: &[&str] = &["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

pub(super) const MINUTE: Field = Field { name: "minute", min: 0, max: 59, top: 59, names: &[], takes: "0-59" };
pub(super) const HOUR: Field = Field { name: "hour", min: 0, max: 23, top: 23, names: &[], takes: "0-23" };
pub(super) const DAY: Field = Field { name: "day of month", min: 1, max: 31, top: 31, names: &[], takes: "1-31, `L`, `LW` or `15W`" };
pub(super) const MONTH: Field = Field { name: "month", min: 1, max: 12, top: 12, names: MONTHS, takes: "1-12 or jan-dec" };
pub(super) const WEEKDAY: Field =
    Field { name: "day of week", min: 0, max: 7, top: 6, names: WEEKDAYS, takes: "0-7, sun-sat, `L5` or `1#2`" };

impl Field {
    /// The terms of a list.
    pub(super) fn terms<'a>(&self, list: &'a str) -> Result<Vec<&'a str>, String> {
        list.split(',').map(|term| self.supported(term).map(|()| term)).collect()
    }

    fn supported(&self, term: &str) -> Result<(), String> {
        match term.as_bytes().first() {
            None => Err("a value is missing next to a comma".to_owned()),
            Some(b'r') => Err("random `R` is not supported; hint: choose a time, and set a jitter to spread the load".to_owned()),
            Some(b'h') => Err("hashed `H` is not supported; hint: choose a time, and set a jitter to spread the load".to_owned()),
            Some(b'?') => Err(format!("`?` can only stand alone, for the day of month or the day of week, not for the {}", self.name)),
            _ => Ok(()),
        }
    }

    /// The values of `*`, `5`, `1-5`, `22-2`, and of each of them with a step.
    pub(super) fn values(&self, term: &str) -> Result<u64, String> {
        let (span, step) = match term.split_once('/') {
            Some((span, step)) => (span, Some(parse_step(step)?)),
            None => (term, None),
        };
        let (low, high) = match span.split_once('-') {
            Some((low, high)) => (self.value(low)?, self.value(high)?),
            None if span == "*" => (self.min, self.top),
            None => {
                let low = self.value(span)?;
                (low, if step.is_some() { self.top } else { low })
            }
        };
        Ok(self.span(low, high).step_by(step.unwrap_or(1)).fold(0, |set, value| set | self.bit(value)))
    }

    /// One number or name.
    pub(super) fn value(&self, text: &str) -> Result<u8, String> {
        let refused = || format!("`{text}` is not one of {}", self.takes);
        if let Some(index) = self.names.iter().position(|name| *name == text) {
            return u8::try_from(index).map(|index| index + self.min).map_err(|_| refused());
        }
        let number = digits(text).ok_or_else(refused)?;
        u8::try_from(number).ok().filter(|value| (self.min..=self.max).contains(value)).ok_or_else(refused)
    }

    pub(super) fn bit(&self, value: u8) -> u64 {
        1 << if value > self.top { self.min } else { value }
    }

    /// All values from `low` to `high`, through the end of the field if they lie that way round.
    fn span(&self, low: u8, high: u8) -> Box<dyn Iterator<Item = u8>> {
        if low <= high { Box::new(low..=high) } else { Box::new((low..=self.top).chain(self.min..=high)) }
    }
}

fn parse_step(text: &str) -> Result<usize, String> {
    digits(text).filter(|step| *step > 0).ok_or_else(|| format!("`{text}` is not a step: it must be a whole number above 0"))
}

fn digits(text: &str) -> Option<usize> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}
