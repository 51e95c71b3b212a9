//! Work that must come to its end whoever goes away.

use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::runtime::Handle;

/// A future that is polled where it is asked for, and goes on in a task of its own when whoever asked is gone. To make it a task from the
/// start would cost every call two changes of threads.
pub(crate) struct Outliving<F>(Option<Pin<Box<F>>>)
where
    F: Future<Output: Send> + Send + 'static;

impl<F> Outliving<F>
where
    F: Future<Output: Send> + Send + 'static,
{
    pub(crate) fn new(future: F) -> Self {
        Self(Some(Box::pin(future)))
    }
}

impl<F> Future for Outliving<F>
where
    F: Future<Output: Send> + Send + 'static,
{
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let Some(future) = &mut self.0 else { return Poll::Pending };
        let polled = future.as_mut().poll(context);
        if polled.is_ready() {
            self.0 = None;
        }
        polled
    }
}

impl<F> Drop for Outliving<F>
where
    F: Future<Output: Send> + Send + 'static,
{
    fn drop(&mut self) {
        if let (Some(rest), Ok(runtime), false) = (self.0.take(), Handle::try_current(), std::thread::panicking()) {
            drop(runtime.spawn(rest));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn it_answers_whoever_waits() {
        assert_eq!(Outliving::new(async { 7 }).await, 7);
    }

    #[tokio::test]
    async fn it_goes_on_without_them() {
        let (go_on, told) = oneshot::channel::<()>();
        let (done, is_done) = oneshot::channel();
        let work = Outliving::new(async move {
            told.await.unwrap();
            done.send(7).unwrap();
        });
        assert!(tokio::time::timeout(Duration::from_millis(1), work).await.is_err());
        go_on.send(()).unwrap();
        assert_eq!(is_done.await, Ok(7));
    }
}
