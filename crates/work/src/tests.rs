use std::pin::Pin;
use std::sync::Mutex;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use super::*;

/// Holds threads until it is dropped.
struct Gate {
    _open: mpsc::Sender<()>,
    closed: Arc<Mutex<mpsc::Receiver<()>>>,
}

impl Gate {
    fn new() -> Self {
        let (open, closed) = mpsc::channel();
        Self { _open: open, closed: Arc::new(Mutex::new(closed)) }
    }

    fn work(&self) -> impl FnOnce(&Budget) -> Result<(), WorkError> + Send + 'static {
        let gate = self.closed.clone();
        move |_| {
            let _ = gate.lock().unwrap().recv();
            Ok(())
        }
    }
}

async fn eventually(mut holds: impl FnMut() -> bool) {
    for _ in 0..500 {
        if holds() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("it did not happen");
}

#[tokio::test]
async fn small_work_is_done_where_it_is() {
    let here = std::thread::current().id();
    let thread = |_: &Budget| Ok::<_, WorkError>(std::thread::current().id());
    let (workers, project) = (Workers::new(2, 1), ProjectId::new());
    assert_eq!(workers.run(project, SMALL, thread).await.unwrap(), here);
    assert_ne!(workers.run(project, LARGE, thread).await.unwrap(), here);
}

/// Pieces of work that wait at the gate.
fn hold(workers: &Workers, project: ProjectId, gate: &Gate, count: usize) -> Vec<tokio::task::JoinHandle<Result<(), WorkError>>> {
    let begin = |_| {
        let (workers, work) = (workers.clone(), gate.work());
        tokio::spawn(async move { workers.run(project, LARGE, work).await })
    };
    (0..count).map(begin).collect()
}

#[tokio::test]
async fn a_project_has_its_share_and_no_more() {
    let (workers, busy, gate) = (Workers::new(4, 2), ProjectId::new(), Gate::new());
    let held = hold(&workers, busy, &gate, 6);
    eventually(|| workers.0.count(busy) == (2, 4)).await;
    assert_eq!(workers.run(ProjectId::new(), LARGE, |_| Ok::<_, WorkError>(7)).await, Ok(7), "others have the rest");
    drop(gate);
    for work in held {
        work.await.unwrap().unwrap();
    }
    eventually(|| workers.0.count(busy) == (0, 0)).await;
}

#[tokio::test]
async fn what_waits_is_bounded() {
    let (workers, busy, gate) = (Workers::new(2, 1), ProjectId::new(), Gate::new());
    let mut held = hold(&workers, busy, &gate, 1);
    eventually(|| workers.0.count(busy) == (1, 0)).await;
    held.extend(hold(&workers, busy, &gate, MAX_WAITING));
    eventually(|| workers.0.count(busy) == (1, MAX_WAITING)).await;
    assert_eq!(workers.run(busy, LARGE, |_| Ok::<(), WorkError>(())).await, Err(WorkError::Busy));
    assert_eq!(workers.run(ProjectId::new(), LARGE, |_| Ok::<(), WorkError>(())).await, Ok(()));
    held.iter().for_each(tokio::task::JoinHandle::abort);
    drop(gate);
    eventually(|| workers.0.count(busy) == (0, 0)).await;
}

#[tokio::test]
async fn work_that_nobody_waits_for_ends() {
    let (workers, project) = (Workers::new(2, 1), ProjectId::new());
    let (said, heard) = mpsc::channel();
    let endless = move |budget: &Budget| -> Result<(), WorkError> {
        loop {
            if let Err(why) = budget.look() {
                let _ = said.send(why);
                return Err(why.into());
            }
        }
    };
    let left = tokio::time::timeout(Duration::from_millis(50), workers.run(project, LARGE, endless)).await;
    assert!(left.is_err());
    eventually(|| workers.0.count(project) == (0, 0)).await;
    assert_eq!(heard.try_recv(), Ok(Exceeded::Abandoned));
}

#[tokio::test]
async fn a_panic_is_an_error_and_the_thread_goes_on() {
    let (workers, project) = (Workers::new(2, 1), ProjectId::new());
    for _ in 0..3 {
        let broken = workers.run(project, LARGE, |_| -> Result<(), WorkError> { panic!("on purpose") }).await;
        assert_eq!(broken, Err(WorkError::Broken));
    }
    assert_eq!(workers.run(project, LARGE, |_| Ok::<_, WorkError>(1)).await, Ok(1));
}

/// The longest that a task on the only async worker had to wait while `busy` was under way.
async fn longest_wait(busy: impl Future<Output = ()> + Send + 'static) -> Duration {
    let busy = tokio::spawn(busy);
    let mut longest = Duration::ZERO;
    while !busy.is_finished() {
        let before = Instant::now();
        tokio::time::sleep(Duration::from_millis(1)).await;
        longest = longest.max(before.elapsed());
    }
    busy.await.unwrap();
    longest
}

fn take_long() {
    std::thread::sleep(Duration::from_millis(600));
}

#[test]
fn large_tasks_and_work_in_place_keep_nobody_waiting() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    runtime.block_on(async {
        let waited = |busy| tokio::spawn(longest_wait(busy));
        let hosted = |size| {
            let workers = Workers::default();
            Box::pin(async move { workers.host(size, Box::pin(async { take_long() })).await }) as Pin<Box<dyn Future<Output = ()> + Send>>
        };
        let in_place = |size| Box::pin(async move { in_place(size, take_long) }) as Pin<Box<dyn Future<Output = ()> + Send>>;
        for task in [hosted(LARGE), in_place(LARGE)] {
            assert!(waited(task).await.unwrap() < Duration::from_millis(500));
        }
        for task in [hosted(SMALL), in_place(SMALL)] {
            assert!(waited(task).await.unwrap() >= Duration::from_millis(500), "what is small stays where it is");
        }
    });
}

#[tokio::test]
async fn a_large_task_ends_with_whoever_waits_for_it() {
    let (workers, ended) = (Workers::default(), Arc::new(AtomicBool::new(false)));
    let left = Waiting(ended.clone());
    let task = async move {
        let _left = left;
        std::future::pending::<()>().await;
    };
    assert!(tokio::time::timeout(Duration::from_millis(50), workers.host(LARGE, Box::pin(task))).await.is_err());
    eventually(|| ended.load(Ordering::Relaxed)).await;
}

#[tokio::test]
async fn a_panic_of_a_large_task_is_its_callers() {
    let task = tokio::spawn(async { Workers::default().host(LARGE, Box::pin(async { panic!("broken") })).await });
    assert!(task.await.unwrap_err().is_panic());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_task_goes_to_the_large_ones_and_back() {
    fn is_large() -> bool {
        std::thread::current().name() == Some("large-tasks")
    }
    let workers = Workers::default();
    let task = async {
        let mut seen = vec![is_large()];
        for _ in 0..2 {
            go_large().await;
            seen.push(is_large());
        }
        for _ in 0..2 {
            assert_eq!(go_back().await, is_large() != seen[seen.len() - 1]);
            seen.push(is_large());
        }
        seen
    };
    assert_eq!(workers.host(SMALL, Box::pin(task)).await, [false, true, true, false, false]);
    let task = async { (is_large(), go_back().await, is_large()) };
    assert_eq!(workers.host(LARGE, Box::pin(task)).await, (true, true, false));
    go_large().await;
    assert!(!is_large(), "what is not hosted stays where it is");
}
