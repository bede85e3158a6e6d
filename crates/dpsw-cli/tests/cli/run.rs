//! A process under test: it starts with its signals reset, no wait for it is endless, and it ends with its owner.

use std::io::Read;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, Once};
use std::time::{Duration, Instant};

/// How long a process may run. When it is over the process is killed, so that reading from it ends too.
const RUN_MAX: Duration = Duration::from_secs(300);
/// How long to wait for what should come at once.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A running process and its pipes.
pub(crate) struct Run {
    pub(crate) stdin: Option<ChildStdin>,
    pub(crate) stdout: Option<ChildStdout>,
    pub(crate) stderr: Option<ChildStderr>,
    child: Arc<Mutex<Child>>,
    /// Goes with the run, which tells the watch to end.
    _watched: Sender<()>,
}

impl Run {
    /// Starts a process with its output in pipes.
    pub(crate) fn start(command: &mut Command) -> Self {
        Self::try_start(command).expect("it starts")
    }

    pub(crate) fn try_start(command: &mut Command) -> std::io::Result<Self> {
        catch_interrupts();
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let child = Arc::new(Mutex::new(child));
        Ok(Self { stdin, stdout, stderr, _watched: watch(&child), child })
    }

    /// Sends a signal as a person at the terminal would.
    pub(crate) fn signal(&self, name: &str) {
        let id = self.child.lock().expect("not poisoned").id().to_string();
        assert!(Command::new("kill").args([name, &id]).status().expect("kill runs").success());
    }

    /// The exit code.
    #[track_caller]
    pub(crate) fn code(&mut self) -> Option<i32> {
        self.status().code()
    }

    /// All that it prints, and how it ends.
    #[track_caller]
    pub(crate) fn output(mut self) -> Output {
        drop(self.stdin.take());
        let stderr = self.stderr.take();
        let stderr = std::thread::spawn(move || all(stderr));
        let stdout = all(self.stdout.take());
        Output { stdout, stderr: stderr.join().expect("it reads"), status: self.status() }
    }

    #[track_caller]
    fn status(&mut self) -> ExitStatus {
        let mut status = None;
        wait_until("the run ends", || {
            status = self.child.lock().expect("not poisoned").try_wait().expect("a process");
            status.is_some()
        });
        status.expect("it was waited for")
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        end(&self.child);
    }
}

/// Kills and buries a process, unless it has ended.
fn end(child: &Mutex<Child>) {
    if let Ok(mut child) = child.lock() {
        let _ = child.kill();
        let _ = child.wait();
    }
}

fn watch(child: &Arc<Mutex<Child>>) -> Sender<()> {
    let (watched, gone) = channel();
    let child = Arc::clone(child);
    std::thread::spawn(move || {
        if gone.recv_timeout(RUN_MAX) == Err(RecvTimeoutError::Timeout) {
            end(&child);
        }
    });
    watched
}

fn all(pipe: Option<impl Read>) -> Vec<u8> {
    let mut bytes = Vec::new();
    pipe.expect("a pipe").read_to_end(&mut bytes).expect("it reads");
    bytes
}

/// In the background of a script SIGINT is ignored, and programs inherit that. What is caught here instead starts with its
/// default in them.
fn catch_interrupts() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| ctrlc::set_handler(|| std::process::exit(130)).expect("interrupts can be caught"));
}

/// Waits until something is true; fails after a minute.
#[track_caller]
pub(crate) fn wait_until(what: &str, mut is_true: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is_true() {
        assert!(started.elapsed() < PATIENCE, "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
