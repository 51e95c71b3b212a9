//! Headers that repeat what the body says, so that whoever stands in between need not read it. They must say the same.

use http::HeaderMap;
use mcp_wire::header;
use serde_json::{Map, Value};

use crate::{Request, RpcError};

/// Holds the standard headers of a request against its body.
pub(crate) fn check(headers: &HeaderMap, request: &Request) -> Result<(), RpcError> {
    same(headers, "Mcp-Method", Some(&Value::String(request.method.clone())))?;
    let named = match request.method.as_str() {
        "tools/call" | "prompts/get" => "name",
        "resources/read" => "uri",
        _ => return Ok(()),
    };
    same(headers, "Mcp-Name", request.params.get(named))
}

/// Holds the headers that a tool's schema asks for against the arguments.
pub(crate) fn check_arguments(headers: &HeaderMap, schema: &Value, arguments: &Map<String, Value>) -> Result<(), RpcError> {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return Ok(()) };
    for (name, property) in properties {
        let value = arguments.get(name).filter(|value| !value.is_null());
        if let Some(named) = property.get(header::ARGUMENT_KEYWORD).and_then(Value::as_str) {
            same(headers, &format!("Mcp-Param-{named}"), value)?;
        } else if property.get("properties").is_some() {
            check_arguments(headers, property, value.and_then(Value::as_object).unwrap_or(&Map::new()))?;
        }
    }
    Ok(())
}

fn same(headers: &HeaderMap, name: &str, body: Option<&Value>) -> Result<(), RpcError> {
    let mut values = headers.get_all(name).iter();
    let (header, more) = (values.next(), values.next());
    if more.is_some() {
        return Err(RpcError::Header(format!("{name} is there twice")));
    }
    let header = header.map(|value| header::decode(value).ok_or_else(|| RpcError::Header(format!("{name} cannot be read")))).transpose()?;
    match (header, body) {
        (None, None) => Ok(()),
        (None, Some(_)) => Err(RpcError::Header(format!("{name} is missing"))),
        (Some(_), None) => Err(RpcError::Header(format!("{name} is there, but the body has no such value"))),
        (Some(header), Some(body)) if says(&header, body) => Ok(()),
        (Some(_), Some(_)) => Err(RpcError::Header(format!("{name} does not say what the body says"))),
    }
}

fn says(header: &str, body: &Value) -> bool {
    match body {
        Value::String(text) => text == header,
        Value::Bool(flag) => header == if *flag { "true" } else { "false" },
        Value::Number(number) => header.parse::<f64>().ok() == number.as_f64(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    fn call(name: &str) -> Request {
        let params = json!({"name": name}).as_object().unwrap().clone();
        Request { id: json!(1), method: "tools/call".to_owned(), params }
    }

    #[test]
    fn method_and_name_are_repeated_exactly() {
        for (pairs, fits) in [
            (vec![("mcp-method", "tools/call"), ("mcp-name", " echo ")], true),
            (vec![("mcp-method", "tools/call"), ("mcp-name", "=?base64?ZWNobw==?=")], true),
            (vec![("mcp-method", "tools/call"), ("mcp-name", "=?base64?ZWNobw?=")], false),
            (vec![("mcp-method", "tools/call"), ("mcp-name", "Echo")], false),
            (vec![("mcp-method", "TOOLS/CALL"), ("mcp-name", "echo")], false),
            (vec![("mcp-method", "tools/call")], false),
            (vec![("mcp-name", "echo")], false),
        ] {
            assert_eq!(check(&headers(&pairs), &call("echo")).is_ok(), fits, "{pairs:?}");
        }
    }

    #[test]
    fn arguments_are_repeated_where_the_schema_says_so() {
        let schema = json!({"properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "deep": {"type": "object", "properties": {"count": {"type": "integer", "x-mcp-header": "Count"}}},
            "free": {"type": "string"},
        }});
        let fits = |pairs: &[(&'static str, &str)], arguments: Value| {
            check_arguments(&headers(pairs), &schema, arguments.as_object().unwrap()).is_ok()
        };
        assert!(fits(&[], json!({"free": "x", "region": null})));
        assert!(fits(&[("mcp-param-region", "eu"), ("mcp-param-count", "42.0")], json!({"region": "eu", "deep": {"count": 42}})));
        assert!(!fits(&[], json!({"region": "eu"})));
        assert!(!fits(&[("mcp-param-region", "us")], json!({"region": "eu"})));
        assert!(!fits(&[("mcp-param-region", "us")], json!({})));
    }
}
