//! What takes more than a second says that it goes on: on stderr, and only to a person.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

const AT_ONCE: Duration = Duration::from_secs(1);
const STEP: Duration = Duration::from_millis(100);
const FRAMES: [char; 10] = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];
const CLEAR: &str = "\r\x1b[K";

/// Waits for `work`; after a second a line says what is waited for and since when.
pub(in crate::commands) async fn during<T>(what: &str, work: impl Future<Output = T>) -> T {
    if !std::io::stderr().is_terminal() {
        return work.await;
    }
    let started = Instant::now();
    tokio::pin!(work);
    if let Ok(done) = tokio::time::timeout(AT_ONCE, &mut work).await {
        return done;
    }
    // Dropped with the future, so that nothing is left behind on the line.
    let _line = Line;
    let mut step = 0;
    loop {
        draw(&format!("{CLEAR}{} {what} ({} s)", FRAMES[step % FRAMES.len()], started.elapsed().as_secs()));
        if let Ok(done) = tokio::time::timeout(STEP, &mut work).await {
            return done;
        }
        step += 1;
    }
}

struct Line;

impl Drop for Line {
    fn drop(&mut self) {
        draw(CLEAR);
    }
}

fn draw(text: &str) {
    let mut stderr = std::io::stderr().lock();
    let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
}
