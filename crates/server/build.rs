//! Takes the white space between the tokens of `openapi.json` away, which is there for people.

use std::env;
use std::error::Error;
use std::fs;
use std::path::Path;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=openapi.json");
    let text = fs::read_to_string("openapi.json")?;
    let (mut in_string, mut is_escaped) = (false, false);
    let compact: String = text
        .chars()
        .filter(|letter| {
            if in_string {
                in_string = is_escaped || *letter != '"';
                is_escaped = !is_escaped && *letter == '\\';
                return true;
            }
            in_string = *letter == '"';
            !letter.is_ascii_whitespace()
        })
        .collect();
    fs::write(Path::new(&env::var("OUT_DIR")?).join("openapi.json"), compact)?;
    Ok(())
}
