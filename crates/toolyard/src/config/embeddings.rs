//! The settings of an embeddings API.

use anyhow::bail;

use super::{Settings, web_address};

/// Which embeddings API to ask, where one is set.
pub(super) fn read(settings: Settings, sentence_model: bool) -> anyhow::Result<Option<::embeddings::Settings>> {
    let given = |text: Option<String>| text.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
    let (url, model) = (web_address("embeddings_url", settings.embeddings_url)?, given(settings.embeddings_model));
    let (url, model) = match (url, model) {
        (Some(url), Some(model)) => (url, model),
        (None, _) => return Ok(None),
        (Some(_), None) => bail!("`embeddings_url` needs `embeddings_model`, the model that the API is asked for"),
    };
    if !sentence_model {
        bail!("`embeddings_url` refines what the sentence model finds; set `sentence_model` to true, or leave it out");
    }
    Ok(Some(::embeddings::Settings { url, model, key: given(settings.embeddings_key).map(Into::into) }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(url: &str, model: &str, key: &str) -> Settings {
        let given = |text: &str| Some(text.to_owned());
        Settings { embeddings_url: given(url), embeddings_model: given(model), embeddings_key: given(key), ..Settings::default() }
    }

    #[test]
    fn an_address_needs_a_model() {
        let read = |settings, model| super::read(settings, model).map_err(|error| error.to_string());
        let all = read(settings("http://127.0.0.1:11434/v1", "nomic-embed-text", " k-secret "), true).unwrap().unwrap();
        assert_eq!((all.url.as_str(), all.model.as_str()), ("http://127.0.0.1:11434/v1", "nomic-embed-text"));
        assert!(!format!("{all:?}").contains("k-secret"));
        assert!(read(settings("https://api.example/v1", "m", ""), true).unwrap().unwrap().key.is_none());
        assert!(read(settings("", "m", "k"), true).unwrap().is_none());
        assert!(read(settings("https://api.example/v1", " ", ""), true).unwrap_err().contains("embeddings_model"));
        assert!(read(settings("ftp://api.example", "m", ""), true).unwrap_err().contains("embeddings_url"));
        assert!(read(settings("https://api.example/v1", "m", ""), false).unwrap_err().contains("sentence_model"));
    }
}
