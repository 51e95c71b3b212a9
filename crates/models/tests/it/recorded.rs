//! Streams that were recorded from the real API, as a package of its maker carries them. They are not ours to keep, so this runs only when
//! it is told where the package is: `ANTHROPIC_SDK=anthropic-2.8.0 cargo nextest run -p models --run-ignored only recorded`.

use std::path::Path;

use models::{Api, Stop};

use crate::support::{pieces, streamed};

#[test]
#[ignore = "needs the source package of Anthropic's SDK for Python in ANTHROPIC_SDK"]
fn reads_recorded_streams() {
    let package = std::env::var("ANTHROPIC_SDK").expect("ANTHROPIC_SDK names the unpacked package");
    let folder = Path::new(&package).join("tests/lib/streaming/fixtures");
    let mut read = 0;
    for file in std::fs::read_dir(&folder).expect("the package has streams").flatten() {
        let stream = std::fs::read_to_string(file.path()).unwrap();
        let (_, reply) = streamed(Api::Anthropic, &stream).unwrap_or_else(|error| panic!("{:?}: {error}", file.path()));
        let (_, cut) = pieces(Api::Anthropic, stream.as_bytes().chunks(7)).unwrap();
        assert_eq!(reply, cut);
        assert!(reply.usage.output > 0 || reply.stop == Stop::Refusal, "{:?}: {reply:?}", file.path());
        let name = file.file_name().to_string_lossy().into_owned();
        match name.as_str() {
            "basic_response.txt" => assert_eq!((reply.text.as_str(), reply.stop), ("Hello there!", Stop::End)),
            "tool_use_response.txt" => assert_eq!((reply.calls.len(), reply.stop), (1, Stop::ToolCalls)),
            "incomplete_partial_json_response.txt" => assert_eq!((reply.calls.len(), reply.stop), (1, Stop::Length)),
            "refusal_response.txt" => assert_eq!(reply.stop, Stop::Refusal),
            _ => {}
        }
        read += 1;
    }
    assert!(read >= 5, "only {read} streams in {}", folder.display());
}
