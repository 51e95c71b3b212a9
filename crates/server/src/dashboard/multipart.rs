//! Forms with a file. A file becomes a text, as a `data:` address, so that pages know one kind of field.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderMap;
use http::header::CONTENT_TYPE;

const KIND: &str = "multipart/form-data";

/// What stands between the parts, where the body is such a form.
pub(super) fn boundary(headers: &HeaderMap) -> Option<String> {
    let kind = headers.get(CONTENT_TYPE)?.to_str().ok()?;
    let (essence, parameters) = kind.split_once(';')?;
    if !essence.trim().eq_ignore_ascii_case(KIND) {
        return None;
    }
    let boundary = parameters.split(';').find_map(|parameter| parameter.trim().strip_prefix("boundary="))?.trim_matches('"');
    (!boundary.is_empty()).then(|| boundary.to_owned())
}

/// The fields of a form, or nothing where the body is none. A file that nobody chose is an empty text.
pub(super) fn fields(body: &[u8], boundary: &str) -> Option<Vec<(String, String)>> {
    let (opening, between) = (format!("--{boundary}"), format!("\r\n--{boundary}"));
    let mut rest = body.strip_prefix(opening.as_bytes())?;
    let mut found = Vec::new();
    while !rest.starts_with(b"--") {
        let (head, after) = cut(rest.strip_prefix(b"\r\n")?, b"\r\n\r\n")?;
        let (content, next) = cut(after, between.as_bytes())?;
        found.push(field(&String::from_utf8_lossy(head), content)?);
        rest = next;
    }
    Some(found)
}

fn cut<'a>(bytes: &'a [u8], end: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    let at = bytes.windows(end.len()).position(|window| window == end)?;
    Some((&bytes[..at], &bytes[at + end.len()..]))
}

fn field(head: &str, content: &[u8]) -> Option<(String, String)> {
    let header = |name: &str| {
        let mut lines = head.split("\r\n").filter_map(|line| line.split_once(':'));
        lines.find(|(key, _)| key.trim().eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
    };
    let disposition = header("content-disposition")?;
    let parameter = |name: &str| parameters(disposition).find_map(|(key, value)| (key == name).then_some(value));
    let name = parameter("name")?.to_owned();
    let value = match parameter("filename") {
        None => String::from_utf8_lossy(content).into_owned(),
        Some(_) if content.is_empty() => String::new(),
        Some(_) => {
            let kind = header("content-type").unwrap_or("application/octet-stream");
            format!("data:{kind};base64,{}", STANDARD.encode(content))
        }
    };
    Some((name, value))
}

/// The quoted parameters of a header. A browser writes a quote inside one as `%22`, and a semicolon as it is.
fn parameters(header: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut rest = header.split_once(';').map_or("", |(_, rest)| rest);
    std::iter::from_fn(move || {
        let (key, after) = rest.split_once("=\"")?;
        let (value, after) = after.split_once('"')?;
        rest = after.split_once(';').map_or("", |(_, rest)| rest);
        Some((key.trim(), value))
    })
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn a_file_becomes_a_text_beside_the_others() {
        let form = "--x\r\nContent-Disposition: form-data; name=\"csrf\"\r\n\r\ntoken\r\n\
                    --x\r\nContent-Disposition: form-data; name=\"logo\"; filename=\"a; b.png\"\r\nContent-Type: image/png\r\n\r\n\0\r\n-\r\n\
                    --x\r\ncontent-disposition: form-data; name=\"other\"; filename=\"\"\r\nContent-Type: application/octet-stream\r\n\r\n\r\n--x--\r\n";
        let read = fields(form.as_bytes(), "x").unwrap();
        let read: Vec<_> = read.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(read, [("csrf", "token"), ("logo", "data:image/png;base64,AA0KLQ=="), ("other", "")]);
    }

    #[test]
    fn what_is_no_such_form_has_no_fields() {
        for body in ["", "--x", "--x\r\n", "--x\r\nContent-Disposition: form-data\r\n\r\nv\r\n--x--", "--x\r\n\r\n\r\nv\r\n--x--", "--y--"]
        {
            assert_eq!(fields(body.as_bytes(), "x"), None, "{body:?}");
        }
        assert_eq!(fields(b"--x--", "x"), Some(Vec::new()));
    }

    #[test]
    fn the_boundary_is_named_by_the_kind_of_the_body() {
        let of = |kind: &'static str| boundary(&HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(kind))]));
        assert_eq!(of("multipart/form-data; boundary=----a").as_deref(), Some("----a"));
        assert_eq!(of("Multipart/Form-Data; charset=utf-8; boundary=\"b\"").as_deref(), Some("b"));
        assert_eq!((of("application/x-www-form-urlencoded"), of("multipart/form-data; boundary=")), (None, None));
    }
}
