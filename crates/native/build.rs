//! Writes the manifests of `integrations/` as JSON, which a start reads in a tenth of the time that YAML takes.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::{env, fs};

use serde_json::Value;

fn main() -> Result<(), Box<dyn Error>> {
    let dir = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("../../integrations");
    println!("cargo::rerun-if-changed={}", dir.display());
    let mut paths = fs::read_dir(&dir)?.map(|entry| Ok(entry?.path())).collect::<Result<Vec<PathBuf>, std::io::Error>>()?;
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "yaml"));
    paths.sort();
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let mut list = String::from("&[\n");
    for path in paths {
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let manifest: Value = serde_saphyr::from_str(&fs::read_to_string(&path)?).map_err(|error| format!("{name}.yaml: {error}"))?;
        fs::write(out.join(format!("{name}.json")), manifest.to_string())?;
        list += &format!("    (\"{name}\", include_str!(concat!(env!(\"OUT_DIR\"), \"/{name}.json\"))),\n");
    }
    fs::write(out.join("manifests.rs"), list + "]\n")?;
    Ok(())
}
