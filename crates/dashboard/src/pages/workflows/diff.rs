//! The difference between two texts, line by line.

/// Beyond this many pairs of lines the middle is shown as replaced as a whole; it is still correct, only longer.
const MOST_PAIRS: usize = 4_000_000;
/// Lines that stay in sight around a change.
const AROUND: usize = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sign {
    Same,
    Removed,
    Added,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) sign: Sign,
    pub(super) text: String,
}

impl Line {
    pub(super) fn is_added(&self) -> bool {
        self.sign == Sign::Added
    }

    pub(super) fn is_removed(&self) -> bool {
        self.sign == Sign::Removed
    }
}

/// Lines that are shown, or folded because nothing changed near them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) is_folded: bool,
    pub(super) lines: Vec<Line>,
}

/// What has to go and what has to come to make the new text of the old one.
pub(super) fn lines(old: &str, new: &str) -> Vec<Line> {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let start = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
    let most = old.len().min(new.len()) - start;
    let end = old.iter().rev().zip(new.iter().rev()).take(most).take_while(|(old, new)| old == new).count();
    let (old_end, new_end) = (old.len() - end, new.len() - end);

    let mut all = Vec::with_capacity(old.len() + new.len());
    all.extend(signed(Sign::Same, &old[..start]));
    middle(&old[start..old_end], &new[start..new_end], &mut all);
    all.extend(signed(Sign::Same, &old[old_end..]));
    all
}

fn signed<'a>(sign: Sign, lines: &'a [&'a str]) -> impl Iterator<Item = Line> + 'a {
    lines.iter().map(move |line| Line { sign, text: (*line).to_owned() })
}

fn middle(old: &[&str], new: &[&str], all: &mut Vec<Line>) {
    if old.len().saturating_mul(new.len()) > MOST_PAIRS {
        all.extend(signed(Sign::Removed, old));
        all.extend(signed(Sign::Added, new));
        return;
    }
    let common = common_lengths(old, new);
    let width = new.len() + 1;
    let (mut i, mut j) = (0, 0);
    while i < old.len() && j < new.len() {
        if old[i] == new[j] {
            all.extend(signed(Sign::Same, &old[i..=i]));
            (i, j) = (i + 1, j + 1);
        } else if common[(i + 1) * width + j] >= common[i * width + j + 1] {
            all.extend(signed(Sign::Removed, &old[i..=i]));
            i += 1;
        } else {
            all.extend(signed(Sign::Added, &new[j..=j]));
            j += 1;
        }
    }
    all.extend(signed(Sign::Removed, &old[i..]));
    all.extend(signed(Sign::Added, &new[j..]));
}

/// How many lines the rests from each pair of places on have in common, row by row.
fn common_lengths(old: &[&str], new: &[&str]) -> Vec<u32> {
    let width = new.len() + 1;
    let mut common = vec![0; (old.len() + 1) * width];
    for i in (0..old.len()).rev() {
        for j in (0..new.len()).rev() {
            common[i * width + j] = if old[i] == new[j] {
                common[(i + 1) * width + j + 1] + 1
            } else {
                common[(i + 1) * width + j].max(common[i * width + j + 1])
            };
        }
    }
    common
}

/// Folds what is far from every change.
pub(super) fn parts(lines: Vec<Line>) -> Vec<Part> {
    let mut near = vec![false; lines.len()];
    for (at, _) in lines.iter().enumerate().filter(|(_, line)| line.sign != Sign::Same) {
        let last = (at + AROUND).min(lines.len() - 1);
        near[at.saturating_sub(AROUND)..=last].fill(true);
    }
    let mut parts: Vec<Part> = Vec::new();
    for (line, is_near) in lines.into_iter().zip(near) {
        match parts.last_mut() {
            Some(part) if part.is_folded != is_near => part.lines.push(line),
            _ => parts.push(Part { is_folded: !is_near, lines: vec![line] }),
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(lines: &[Line]) -> String {
        let sign = |line: &Line| match line.sign {
            Sign::Same => ' ',
            Sign::Removed => '-',
            Sign::Added => '+',
        };
        lines.iter().map(|line| format!("{}{}\n", sign(line), line.text)).collect()
    }

    #[test]
    fn what_stays_is_kept_together() {
        assert_eq!(shown(&lines("a\nb\nc\nd\ne", "a\nx\nc\ne\nf")), " a\n-b\n+x\n c\n-d\n e\n+f\n");
        assert_eq!(shown(&lines("a\na\nb", "a\nb")), " a\n-a\n b\n");
    }

    #[test]
    fn empty_texts_are_all_one_sign() {
        assert_eq!(shown(&lines("", "a\nb")), "+a\n+b\n");
        assert_eq!(shown(&lines("a", "")), "-a\n");
        assert_eq!(shown(&lines("a\nb", "a\nb")), " a\n b\n");
    }

    #[test]
    fn both_texts_can_be_read_from_it() {
        let (old, new) = ("1\n2\n3\n4\n3\n2\n9\n", "0\n2\n4\n4\n3\n1\n2\n9\n");
        let all = lines(old, new);
        let side =
            |left_out: Sign| -> String { all.iter().filter(|line| line.sign != left_out).map(|line| format!("{}\n", line.text)).collect() };
        assert_eq!((side(Sign::Added), side(Sign::Removed)), (old.to_owned(), new.to_owned()));
    }

    #[test]
    fn too_much_is_replaced_as_a_whole() {
        let old: String = (0..2100).map(|n| format!("old {n}\n")).collect();
        let new: String = (0..2100).map(|n| format!("new {n}\n")).collect();
        let all = lines(&old, &new);
        assert_eq!((all.len(), all[0].sign, all[2100].sign), (4200, Sign::Removed, Sign::Added));
    }

    #[test]
    fn only_what_is_far_from_a_change_is_folded() {
        let old: String = (0..20).map(|n| format!("{n}\n")).collect();
        let parts = parts(lines(&old, &old.replace("\n10\n", "\nten\n")));
        let sizes: Vec<(bool, usize)> = parts.iter().map(|part| (part.is_folded, part.lines.len())).collect();
        assert_eq!(sizes, [(true, 7), (false, 8), (true, 6)]);
    }
}
