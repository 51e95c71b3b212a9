//! Connections that ask nothing: a server with few files goes on answering.

use std::time::Duration;

use http::Method;
use tempfile::TempDir;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::process::Command;

use crate::binary::Server;

/// The same program in a shell that lets it open this many files.
fn with_files(command: &mut Command, files: u32) {
    let given = command.as_std();
    let mut limited = Command::new("sh");
    limited.arg("-c").arg(format!("ulimit -n {files} && exec \"$0\" \"$@\"")).arg(given.get_program()).args(given.get_args());
    limited.env_clear().envs(given.get_envs().filter_map(|(name, value)| Some((name, value?))));
    limited.current_dir(given.get_current_dir().unwrap());
    limited.stdin(std::process::Stdio::null()).stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::null());
    *command = limited;
    command.kill_on_drop(true);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn health_answers_among_400_half_open_connections() {
    for proxies in ["127.0.0.0/8", ""] {
        let dir = TempDir::new().unwrap();
        let server = Server::start(dir.path(), |command| {
            command.env("TOOLYARD_TRUSTED_PROXIES", proxies);
            with_files(command, 256);
        })
        .await;
        let address = server.url.trim_start_matches("http://").to_owned();
        let mut held = Vec::new();
        for number in 0..400 {
            let mut stream = TcpStream::connect(&address).await.unwrap();
            // Some say nothing, some begin a request, some begin HTTP/2.
            let beginning = [&b""[..], b"GET /health HTTP/1.1\r\nx:", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"][number % 3];
            let _ = stream.write_all(beginning).await;
            held.push(stream);
        }
        for path in ["/health", "/ready", "/tools/connections/query"] {
            let method = if path.starts_with("/tools") { Method::POST } else { Method::GET };
            let (status, body) = tokio::time::timeout(Duration::from_secs(5), server.send(method, path, None)).await.expect(path);
            assert_eq!(status, 200, "{path}: {body}");
        }
        drop(held);
        assert_eq!(server.terminate().await, 0);
    }
}
