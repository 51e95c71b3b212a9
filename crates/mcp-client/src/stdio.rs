//! A server as a child process: one for all calls, in a process group of its own, gone with the last who uses it.

use std::collections::BTreeMap;
use std::collections::VecDeque;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use calls::Progress;
use kernel::Scrubber;
use rustix::process::{Pid, Signal, kill_process_group};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::OnChange;
use crate::fault::ServerError;
use crate::pending::Pending;
use crate::reader::Reader;
use crate::session::Ground;
use crate::target::secrets_of;
use crate::wire::{self, Heard, MAX_MESSAGE};

/// How many messages may wait for a server that does not read.
const QUEUE: usize = 64;
/// How long a server may take to end by itself once its input is closed, and then once it is asked to.
const LEAVE: Duration = Duration::from_millis(1500);
const TERMINATE: Duration = Duration::from_millis(1500);
/// As much of a server's last words as people are shown.
const LAST_WORDS: usize = 300;
const MAX_LOG_LINE: usize = 2000;
/// What a child gets of our own environment; everything else could be a secret.
const KEPT: [&str; 2] = ["PATH", "HOME"];

/// What is started.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    pub(crate) command: String,
    pub(crate) args: Vec<String>,
    pub(crate) env: BTreeMap<String, SecretString>,
}

impl PartialEq for Program {
    fn eq(&self, other: &Self) -> bool {
        let env =
            |program: &Self| program.env.iter().map(|(name, value)| (name.clone(), value.expose_secret().to_owned())).collect::<Vec<_>>();
        self.command == other.command && self.args == other.args && env(self) == env(other)
    }
}

/// A running server. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Process {
    lines: mpsc::Sender<Vec<u8>>,
    pending: Arc<Pending>,
    _stop: DropGuard,
}

impl Process {
    /// Starts the server; the tasks of the ground hold what looks after it until it is gone for good.
    pub(crate) fn start(program: &Program, ground: &Ground, reader: Reader, on_change: OnChange) -> Result<Self, ServerError> {
        let mut command = Command::new(&program.command);
        command.args(&program.args).env_clear().current_dir("/").process_group(0).kill_on_drop(true);
        command.envs(KEPT.into_iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
        command.envs(program.env.iter().map(|(name, value)| (name, value.expose_secret())));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| ServerError::NotStarted(format!("`{}`: {error}", program.command)))?;
        let (Some(stdin), Some(stdout), Some(stderr)) = (child.stdin.take(), child.stdout.take(), child.stderr.take()) else {
            return Err(ServerError::NotStarted("it has no input and output".to_owned()));
        };
        let (stop, tasks) = (ground.stop.child_token(), &ground.tasks);
        let (lines, queue) = mpsc::channel(QUEUE);
        let pending = Arc::new(Pending::default());
        let words = LastWords::new(&program.env);
        let ended = CancellationToken::new();
        tasks.spawn(listen_to_errors(stderr, words.clone(), ended.clone(), child.id()));
        let keeper = Keeper { pending: pending.clone(), replies: lines.clone(), on_change, reader, words, ended };
        tasks.spawn(keeper.keep(child, stdin, BufReader::with_capacity(64 << 10, stdout), queue, stop.clone()));
        Ok(Self { lines, pending, _stop: stop.drop_guard() })
    }

    /// Sends a request and waits for its answer. Whoever stops waiting cancels it.
    pub(crate) async fn request(&self, id: u64, message: &Value, progress: Progress) -> Result<Value, ServerError> {
        let answer = self.pending.add(id, progress)?;
        let _waiting = Waiting { process: self, id };
        self.send(message).await?;
        answer.await.unwrap_or_else(|_| Err(ServerError::Gone("it ended".to_owned())))
    }

    pub(crate) async fn send(&self, message: &Value) -> Result<(), ServerError> {
        self.lines.send(line(message)).await.map_err(|_| ServerError::Gone("it ended".to_owned()))
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.pending.has_ended()
    }
}

/// A request that is taken back when nobody waits for it any more.
struct Waiting<'a> {
    process: &'a Process,
    id: u64,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if self.process.pending.remove(self.id) {
            // A server that does not even read this will not hear of it either way.
            let _ = self.process.lines.try_send(line(&wire::cancelled(self.id)));
        }
    }
}

fn line(message: &Value) -> Vec<u8> {
    let mut line = message.to_string().into_bytes();
    line.push(b'\n');
    line
}

/// Looks after one child from its start until nothing of it is left.
struct Keeper {
    pending: Arc<Pending>,
    replies: mpsc::Sender<Vec<u8>>,
    on_change: OnChange,
    reader: Reader,
    words: LastWords,
    ended: CancellationToken,
}

impl Keeper {
    async fn keep(
        self,
        mut child: Child,
        stdin: ChildStdin,
        stdout: impl AsyncBufReadExt + Unpin,
        queue: mpsc::Receiver<Vec<u8>>,
        stop: CancellationToken,
    ) {
        let group = child.id();
        // Both ends of the child are let go after this, which is how it learns that it shall end.
        tokio::select! {
            () = stop.cancelled() => {}
            () = self.read(stdout) => {}
            () = write(stdin, queue) => {}
        }
        let status = end(&mut child, group).await;
        self.ended.cancel();
        self.pending.end(&self.words.explain(status));
    }

    async fn read(&self, mut stdout: impl AsyncBufReadExt + Unpin) {
        loop {
            match next_line(&mut stdout).await {
                Ok(Line::Whole(line)) => {
                    let (bytes, ends) = (line.len(), Ends::of(&line));
                    match self.reader.parse(line).await {
                        Ok(message) => self.hear(wire::read(message)),
                        Err(fault @ ServerError::TooMuch(_)) => self.unread(&ends, fault),
                        // Some servers print a greeting first.
                        Err(_) => tracing::debug!(bytes, "an MCP server printed something that is no message"),
                    }
                }
                Ok(Line::TooLong(ends)) => self.unread(&ends, ServerError::TooLarge(MAX_MESSAGE)),
                Ok(Line::End) | Err(_) => return,
            }
        }
    }

    /// An answer that is not read: whoever waits for it is told, or everybody where it does not say whose it is.
    fn unread(&self, ends: &Ends, fault: ServerError) {
        match wire::id_of_long(&ends.head, &ends.tail) {
            Some(id) => self.pending.settle(id, Err(fault)),
            None => self.pending.fail_all(&fault),
        }
    }

    fn hear(&self, heard: Heard) {
        match heard {
            Heard::Answer { id, result } => self.pending.settle(id, result),
            Heard::Progress { token, step } => self.pending.progress(token, step),
            Heard::ToolsChanged => self.on_change.tell(),
            // A server that asks faster than it reads gets no answer.
            Heard::Question { id, method } => drop(self.replies.try_send(line(&wire::answer(id, &method)))),
            Heard::Other => {}
        }
    }
}

async fn write(mut stdin: ChildStdin, mut queue: mpsc::Receiver<Vec<u8>>) {
    while let Some(line) = queue.recv().await {
        if stdin.write_all(&line).await.is_err() || stdin.flush().await.is_err() {
            return;
        }
    }
}

/// Sees to it that the child and everything it started end, and reaps it.
async fn end(child: &mut Child, group: Option<u32>) -> Option<ExitStatus> {
    let group = group.and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
    let signal = |signal: Signal| group.map(|group| kill_process_group(group, signal));
    let mut status = timeout(LEAVE, child.wait()).await;
    if status.is_err() {
        signal(Signal::TERM);
        status = timeout(TERMINATE, child.wait()).await;
    }
    // What it started itself goes with it, also when it ended by itself.
    signal(Signal::KILL);
    match status {
        Ok(status) => status.ok(),
        Err(_) => child.wait().await.ok(),
    }
}

enum Line {
    Whole(Vec<u8>),
    TooLong(Ends),
    End,
}

/// The first and the last bytes of a line.
struct Ends {
    head: Vec<u8>,
    tail: Vec<u8>,
}

impl Ends {
    const MOST: usize = 128;

    fn of(line: &[u8]) -> Self {
        let (head, tail) = (&line[..line.len().min(Self::MOST)], &line[line.len().saturating_sub(Self::MOST)..]);
        Self { head: head.to_vec(), tail: tail.to_vec() }
    }
}

/// The next line. Of one that is too long only the ends are kept.
async fn next_line(reader: &mut (impl AsyncBufReadExt + Unpin)) -> std::io::Result<Line> {
    let mut line = Vec::new();
    let mut long: Option<(Vec<u8>, VecDeque<u8>)> = None;
    loop {
        let piece = reader.fill_buf().await?;
        if piece.is_empty() {
            return Ok(Line::End);
        }
        let end = piece.iter().position(|&byte| byte == b'\n');
        let (piece, used) = end.map_or((piece, piece.len()), |end| (&piece[..end], end + 1));
        if long.is_none() && line.len() + piece.len() > MAX_MESSAGE {
            let tail = line[line.len().saturating_sub(Ends::MOST)..].iter().copied().collect();
            line.truncate(Ends::MOST);
            long = Some((std::mem::take(&mut line), tail));
        }
        match &mut long {
            Some((_, tail)) => {
                tail.extend(&piece[piece.len().saturating_sub(Ends::MOST)..]);
                tail.drain(..tail.len().saturating_sub(Ends::MOST));
            }
            None => line.extend_from_slice(piece),
        }
        reader.consume(used);
        if end.is_some() {
            return Ok(match long {
                Some((head, tail)) => Line::TooLong(Ends { head, tail: tail.into() }),
                None => Line::Whole(line),
            });
        }
    }
}

/// What the server printed last on its way out, without the secrets it was given.
#[derive(Clone, Debug)]
struct LastWords {
    text: Arc<Mutex<String>>,
    secrets: Arc<Scrubber>,
}

impl LastWords {
    fn new(env: &BTreeMap<String, SecretString>) -> Self {
        Self { text: Arc::default(), secrets: Arc::new(secrets_of(env.values().map(ExposeSecret::expose_secret))) }
    }

    fn hear(&self, line: &[u8], child: Option<u32>) {
        let line = String::from_utf8_lossy(&line[..line.len().min(MAX_LOG_LINE)]);
        let line = self.secrets.cut_text(&wire::bounded(&line, MAX_LOG_LINE));
        tracing::debug!(child, line, "an MCP server says");
        if !line.is_empty() {
            *self.text.lock().unwrap_or_else(PoisonError::into_inner) = wire::bounded(&line, LAST_WORDS);
        }
    }

    fn explain(&self, status: Option<ExitStatus>) -> String {
        let how = status.map_or_else(|| "it ended".to_owned(), |status| format!("it ended with {status}"));
        let words = self.text.lock().unwrap_or_else(PoisonError::into_inner);
        if words.is_empty() { how } else { format!("{how}; its last words: {words}") }
    }
}

async fn listen_to_errors(stderr: impl AsyncRead + Unpin, words: LastWords, ended: CancellationToken, child: Option<u32>) {
    let mut stderr = BufReader::new(stderr);
    let listening = async {
        loop {
            match next_line(&mut stderr).await {
                Ok(Line::Whole(line)) => words.hear(&line, child),
                Ok(Line::TooLong(ends)) => words.hear(&ends.head, child),
                Ok(Line::End) | Err(_) => return,
            }
        }
    };
    tokio::select! {
        () = ended.cancelled() => {}
        () = listening => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn lines(text: &[u8]) -> Vec<String> {
        let mut reader = BufReader::with_capacity(1000, text);
        let mut found = Vec::new();
        loop {
            match next_line(&mut reader).await.unwrap() {
                Line::Whole(line) => found.push(String::from_utf8(line).unwrap()),
                Line::TooLong(Ends { head, tail }) => found.push(format!("{}…{}", head.len(), String::from_utf8(tail).unwrap())),
                Line::End => return found,
            }
        }
    }

    #[tokio::test]
    async fn a_line_that_is_too_long_is_passed_over() {
        let mut text = b"one\n\n".to_vec();
        text.extend(vec![b'x'; MAX_MESSAGE + 5]);
        text.extend(b"the end\nthree\nnever ended");
        let found = lines(&text).await;
        assert_eq!((found[0].as_str(), found[1].as_str(), found[3].as_str()), ("one", "", "three"));
        assert!(found[2].starts_with("128…x") && found[2].ends_with("the end"), "{}", found[2]);
        assert_eq!(found.len(), 4);
    }

    #[test]
    fn last_words_hold_no_secrets() {
        let words = LastWords::new(&BTreeMap::from([("TOKEN".to_owned(), SecretString::from("s3cr3t-t0ken"))]));
        words.hear(b"bad token s3cr3t-t0ken\x07\n", None);
        assert_eq!(words.explain(None), "it ended; its last words: bad token \u{2026}");
    }
}
