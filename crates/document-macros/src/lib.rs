//! The macros of `document`. They read tokens by hand, because a parser of all of Rust would take longer to build than they spare.

use std::str::FromStr;

use proc_macro::{Delimiter, Group, Ident, TokenStream, TokenTree};

/// Says where a handler answers, and what it takes and answers: `#[path(get, path = "/health", …)]`. What stands behind the path is
/// utoipa's, and only looked at with the feature `describe`.
#[proc_macro_attribute]
pub fn path(said: TokenStream, handler: TokenStream) -> TokenStream {
    let Some((visibility, name)) = signature(handler.clone()) else { return refuse("`path` stands above a function") };
    let Some((method, path)) = place(said.clone()) else { return refuse("say where it answers: `path(get, path = \"/health\")`") };
    let marker = marker(&name.to_string());
    let method = method.to_string().to_uppercase();
    let mut written = TokenStream::new();
    if cfg!(feature = "describe") {
        let mut described = parsed("utoipa::path");
        described.extend([group(Delimiter::Parenthesis, said)]);
        written.extend(parsed("#"));
        written.extend([group(Delimiter::Bracket, described)]);
    }
    written.extend(handler);
    written.extend(parsed("#[doc(hidden)] #[allow(non_camel_case_types, missing_debug_implementations)]"));
    written.extend(visibility);
    written.extend(parsed(&format!("struct {marker}; impl ::document::Place for {marker}")));
    let mut consts = parsed(&format!("const METHOD: &'static str = \"{method}\"; const PATH: &'static str ="));
    consts.extend(path);
    consts.extend(parsed(";"));
    written.extend([group(Delimiter::Brace, consts)]);
    written
}

/// An array of `route!(handler, place of the handler, utoipa's description of it)`, one for each handler.
#[proc_macro]
pub fn routes(handlers: TokenStream) -> TokenStream {
    let handlers: Vec<TokenTree> = handlers.into_iter().collect();
    let mut routes = TokenStream::new();
    for handler in handlers.split(|token| is_punct(token, ',')).filter(|handler| !handler.is_empty()) {
        let (Some(TokenTree::Ident(name)), leading) = (handler.last(), &handler[..handler.len() - 1]) else {
            return refuse("name handlers by their paths");
        };
        let beside = |name: &str| leading.iter().cloned().chain(parsed(name)).collect::<TokenStream>();
        let mut inner: TokenStream = handler.iter().cloned().collect();
        inner.extend(parsed(","));
        inner.extend(beside(&marker(&name.to_string())));
        inner.extend(parsed(","));
        inner.extend(beside(&format!("__path_{name}")));
        routes.extend(parsed("route!"));
        routes.extend([group(Delimiter::Parenthesis, inner)]);
        routes.extend(parsed(","));
    }
    group(Delimiter::Bracket, routes).into()
}

/// What a body looks like. Without the feature `describe`, nobody asks.
#[proc_macro_derive(ToSchema, attributes(schema))]
pub fn to_schema(_: TokenStream) -> TokenStream {
    TokenStream::new()
}

/// What a query string looks like. Without the feature `describe`, nobody asks.
#[proc_macro_derive(IntoParams, attributes(into_params, param))]
pub fn into_params(_: TokenStream) -> TokenStream {
    TokenStream::new()
}

/// The type that stands for the place of a handler.
fn marker(handler: &str) -> String {
    format!("__place_{handler}")
}

/// The visibility and the name of a function, behind its attributes.
fn signature(function: TokenStream) -> Option<(TokenStream, Ident)> {
    let mut tokens = function.into_iter().peekable();
    while tokens.next_if(|token| is_punct(token, '#')).is_some() {
        tokens.next();
    }
    let mut visibility = TokenStream::new();
    if let Some(public) = tokens.next_if(|token| token.to_string() == "pub") {
        visibility.extend([public]);
        visibility.extend(tokens.next_if(|token| matches!(token, TokenTree::Group(_))));
    }
    tokens.find(|token| token.to_string() == "fn")?;
    match tokens.next()? {
        TokenTree::Ident(name) => Some((visibility, name)),
        _ => None,
    }
}

/// The method, which stands first, and the expression behind `path =`.
fn place(said: TokenStream) -> Option<(Ident, TokenStream)> {
    let said: Vec<TokenTree> = said.into_iter().collect();
    let mut parts = said.split(|token| is_punct(token, ','));
    let Some([TokenTree::Ident(method)]) = parts.next() else { return None };
    let path = parts.find_map(|part| match part {
        [name, equals, path @ ..] if name.to_string() == "path" && is_punct(equals, '=') => Some(path.iter().cloned().collect()),
        _ => None,
    })?;
    Some((method.clone(), path))
}

fn is_punct(token: &TokenTree, mark: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == mark)
}

fn group(delimiter: Delimiter, inner: TokenStream) -> TokenTree {
    Group::new(delimiter, inner).into()
}

fn parsed(text: &str) -> TokenStream {
    TokenStream::from_str(text).expect("the text is Rust")
}

fn refuse(why: &str) -> TokenStream {
    parsed(&format!("compile_error!({why:?});"))
}
