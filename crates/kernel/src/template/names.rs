//! What an expression refers to: variables with their parts, filters and tests. Expressions assign nothing, so every name is one of these.

use super::source::bare;

const KEYWORDS: [&str; 13] = ["and", "or", "not", "in", "is", "if", "else", "true", "false", "none", "True", "False", "None"];

/// The names in one expression.
#[derive(Debug, Default)]
pub(super) struct Names {
    pub(super) paths: Vec<Path>,
    pub(super) filters: Vec<String>,
    pub(super) tests: Vec<String>,
}

/// A variable and the parts of it that are named: `["inputs", "title"]` for `inputs.title` and `inputs["title"]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Path {
    pub(super) parts: Vec<String>,
    /// Whether the expression says what happens if it is missing.
    pub(super) may_be_missing: bool,
}

#[derive(Debug, PartialEq)]
enum Token<'a> {
    Word(&'a str),
    /// The inside of a quoted text.
    Text(&'a str),
    Sign(char),
}

/// Reads the names of an expression that can be compiled.
pub(super) fn read(source: &str) -> Names {
    let tokens = tokens(source);
    let mut names = Names::default();
    let mut at = 0;
    while at < tokens.len() {
        let Token::Word(word) = tokens[at] else {
            at += 1;
            continue;
        };
        let is_test = matches!(tokens[..at], [.., Token::Word("is")] | [.., Token::Word("is"), Token::Word("not")]);
        let before = at.checked_sub(1).map(|before| &tokens[before]);
        at += 1;
        match before {
            Some(Token::Sign('.')) => {}
            Some(Token::Sign('|')) => names.filters.push(word.to_owned()),
            _ if is_test && word != "not" => names.tests.push(word.to_owned()),
            _ if KEYWORDS.contains(&word) || word.starts_with(|first: char| first.is_ascii_digit()) => {}
            // The name of an argument, as in `round(precision=2)`.
            _ if matches!(tokens[at..], [Token::Sign('='), ref next, ..] if *next != Token::Sign('=')) => {}
            _ => {
                let mut parts = vec![word.to_owned()];
                at += follow(&tokens[at..], &mut parts);
                let may_be_missing = matches!(tokens[at..], [Token::Sign('|'), Token::Word("default" | "d"), ..] | [Token::Word("is"), ..]);
                names.paths.push(Path { parts, may_be_missing });
            }
        }
    }
    names
}

/// Adds the parts that follow a variable; the number of tokens that they are.
fn follow(tokens: &[Token<'_>], parts: &mut Vec<String>) -> usize {
    let mut at = 0;
    loop {
        match tokens[at..] {
            [Token::Sign('.'), Token::Word(part), ..] => {
                parts.push(part.to_owned());
                at += 2;
            }
            [Token::Sign('['), Token::Text(part), Token::Sign(']'), ..] if !part.contains('\\') => {
                parts.push(part.to_owned());
                at += 3;
            }
            _ => return at,
        }
    }
}

fn tokens(source: &str) -> Vec<Token<'_>> {
    let is_word = |char: char| char.is_alphanumeric() || char == '_';
    let mut tokens = Vec::new();
    let mut bare = bare(source).peekable();
    let mut end = 0;
    while let Some((start, char)) = bare.next() {
        if let Some(text) = quoted(&source[end..start]) {
            tokens.push(Token::Text(text));
        }
        end = start + char.len_utf8();
        if is_word(char) {
            while let Some((at, char)) = bare.next_if(|&(at, char)| at == end && is_word(char)) {
                end = at + char.len_utf8();
            }
            tokens.push(Token::Word(&source[start..end]));
        } else if !char.is_whitespace() {
            tokens.push(Token::Sign(char));
        }
    }
    tokens.extend(quoted(&source[end..]).map(Token::Text));
    tokens
}

/// The inside of a text with its quotes.
fn quoted(text: &str) -> Option<&str> {
    let quote = text.chars().next().filter(|first| matches!(first, '"' | '\''))?;
    text.strip_prefix(quote)?.strip_suffix(quote)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(source: &str) -> Vec<(String, bool)> {
        read(source).paths.into_iter().map(|path| (path.parts.join("."), path.may_be_missing)).collect()
    }

    #[test]
    fn variables_are_found_with_their_parts() {
        for (source, expected) in [
            ("inputs.title", &[("inputs.title", false)][..]),
            ("inputs[\"title\"].x['y'][0].z", &[("inputs.title.x.y", false)]),
            ("steps.a.result.0.name", &[("steps.a.result.0.name", false)]),
            ("a.b | default('c.d') ~ e", &[("a.b", true), ("e", false)]),
            ("a is defined and a.b is not none and not c", &[("a", true), ("a.b", true), ("c", false)]),
            ("x.if if y == 'z' else none", &[("x.if", false), ("y", false)]),
            ("n | round(precision=2) + 1.5", &[("n", false)]),
            ("{'a': b, 'c': [d, 'e']}['a']", &[("b", false), ("d", false)]),
            ("a in b and 'x' in ['y']", &[("a", false), ("b", false)]),
            ("'it\\'s' ~ q", &[("q", false)]),
            ("ü.ö", &[("ü.ö", false)]),
        ] {
            let expected: Vec<_> = expected.iter().map(|(path, missing)| ((*path).to_owned(), *missing)).collect();
            assert_eq!(paths(source), expected, "{source}");
        }
    }

    #[test]
    fn filters_and_tests_are_no_variables() {
        let names = read("a|lower | join(', ') is not string or b is odd");
        assert_eq!(
            (names.filters, names.tests),
            (vec!["lower".to_owned(), "join".to_owned()], vec!["string".to_owned(), "odd".to_owned()])
        );
        assert_eq!(paths("a|lower is string"), [("a".to_owned(), false)]);
    }
}
