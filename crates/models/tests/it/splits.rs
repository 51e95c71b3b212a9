//! A stream says the same however the network cuts it, and cannot grow without end.

use models::{Api, StreamReader};
use proptest::prelude::*;
use serde_json::json;

use crate::support::{pieces, streamed};
use crate::{anthropic, chat, responses};

fn streams() -> [(Api, String); 3] {
    [(Api::OpenaiChat, chat::parallel()), (Api::OpenaiResponses, responses::parallel()), (Api::Anthropic, anthropic::parallel())]
}

#[test]
fn a_cut_at_any_byte_changes_nothing() {
    for (api, stream) in streams() {
        let expected = streamed(api, &stream).unwrap();
        for cut in 0..stream.len() {
            let (before, after) = stream.as_bytes().split_at(cut);
            assert_eq!(pieces(api, [before, after]).unwrap(), expected, "{api} cut at {cut}");
        }
        assert_eq!(pieces(api, stream.as_bytes().chunks(1)).unwrap(), expected, "{api} byte by byte");
        assert_eq!(streamed(api, &stream.replace("\r\n", "\n").replace('\n', "\r")).unwrap(), expected, "{api} with other ends of lines");
    }
}

#[test]
fn a_stream_that_stops_at_any_byte_is_an_error_or_whole() {
    for (api, stream) in streams() {
        let whole = streamed(api, &stream).unwrap().1;
        for cut in 0..stream.len() {
            // The count of tokens may come after the answer.
            if let Ok((_, mut reply)) = pieces(api, [&stream.as_bytes()[..cut]]) {
                reply.usage = whole.usage;
                assert_eq!(reply, whole, "{api} stopped at {cut}");
            }
        }
    }
}

proptest! {
    #[test]
    fn any_cuts_change_nothing(cuts in proptest::collection::vec(0_usize..4_000, 0..20)) {
        for (api, stream) in streams() {
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % stream.len()).collect();
            cuts.sort_unstable();
            cuts.push(stream.len());
            let mut from = 0;
            let cut = cuts.iter().map(|to| &stream.as_bytes()[std::mem::replace(&mut from, *to)..*to]);
            prop_assert_eq!(pieces(api, cut).unwrap(), streamed(api, &stream).unwrap());
        }
    }

    #[test]
    fn anything_is_read_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200), lines in "(data: [{}\\[\\]\":a-z0-9,]{0,30}\n{1,2}){0,8}") {
        for api in Api::ALL {
            drop(pieces(api, [bytes.as_slice()]));
            drop(pieces(api, [lines.as_bytes()]));
            drop(models::reply(api, 200, None, &bytes));
            drop(models::reply(api, 500, Some(&lines), &bytes));
        }
    }
}

#[test]
fn an_answer_without_end_is_refused() {
    let text = "x".repeat(1 << 20);
    let endless = [
        (Api::OpenaiChat, json!({"choices": [{"delta": {"content": text}}]})),
        (Api::OpenaiChat, json!({"choices": [{"delta": {"tool_calls": [{"index": 0, "function": {"arguments": text}}]}}]})),
        (Api::OpenaiResponses, json!({"type": "response.output_item.done", "item": {"type": "reasoning", "encrypted_content": text}})),
        (Api::Anthropic, json!({"type": "content_block_start", "index": 0, "content_block": {"type": "redacted_thinking", "data": text}})),
    ];
    for (api, event) in endless {
        let mut reader = StreamReader::new(api);
        let event = format!("data: {event}\n\n");
        let refused = (0..64).find_map(|_| reader.push(event.as_bytes()).err());
        assert!(refused.is_some(), "{api}");
    }
}

#[test]
fn calls_without_end_are_refused() {
    let mut reader = StreamReader::new(Api::OpenaiChat);
    let refused = (0..u64::MAX).find_map(|index| {
        let event = json!({"choices": [{"delta": {"tool_calls": [{"index": u64::MAX - index, "id": index.to_string()}]}}]});
        reader.push(format!("data: {event}\n\n").as_bytes()).err().map(|_| index)
    });
    assert_eq!(refused, Some(256));
}
