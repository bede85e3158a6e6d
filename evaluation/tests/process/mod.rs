//! The program as its users start it.

use std::io::Read;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The longest run takes a minute on two busy cores.
const DEADLINE: Duration = Duration::from_secs(600);
const POLL: Duration = Duration::from_millis(2);

/// A process that ends by its deadline, and with its test.
pub(crate) struct Process {
    child: Child,
    outputs: Option<[JoinHandle<Vec<u8>>; 2]>,
    deadline: Instant,
}

impl Process {
    pub(crate) fn start(command: &mut Command) -> Self {
        let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        let stdout = drain(child.stdout.take().expect("a pipe"));
        let stderr = drain(child.stderr.take().expect("a pipe"));
        Self { child, outputs: Some([stdout, stderr]), deadline: Instant::now() + DEADLINE }
    }

    /// Returns as soon as something is true, or the process has ended.
    #[track_caller]
    pub(crate) fn wait_until(&mut self, is_true: impl Fn() -> bool) -> Option<ExitStatus> {
        loop {
            let ended = self.child.try_wait().expect("a process");
            if ended.is_some() || is_true() {
                return ended;
            }
            assert!(Instant::now() < self.deadline, "it has not ended after {} s", DEADLINE.as_secs());
            std::thread::sleep(POLL);
        }
    }

    #[cfg(unix)]
    pub(crate) fn interrupt(&self) {
        let id = self.child.id().to_string();
        let kill = Command::new("sh").args(["-c", "kill -INT \"$0\"", &id]).status();
        assert!(kill.expect("a shell").success(), "the process has ended");
    }

    #[track_caller]
    pub(crate) fn output(mut self) -> Output {
        let status = self.wait_until(|| false).expect("it has ended");
        let outputs = self.outputs.take().expect("outputs are taken once");
        let [stdout, stderr] = outputs.map(|output| output.join().expect("a pipe can be read"));
        Output { status, stdout, stderr }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Fails where it has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn drain(mut pipe: impl Read + Send + 'static) -> JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        pipe.read_to_end(&mut bytes).expect("a pipe can be read");
        bytes
    })
}
