//! The program in a folder of its own: started, killed, and never left behind.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::client::Client;
use crate::random::Random;

/// A folder with settings, a key, a token that may do everything, and all that the program keeps and logs.
pub(crate) struct Home {
    folder: tempfile::TempDir,
    pub(crate) token: String,
}

/// The program, until it is dropped.
pub(crate) struct Service {
    child: Child,
    /// Where it listens.
    pub(crate) address: String,
}

impl Home {
    /// A folder with these settings.
    pub(crate) fn new(settings: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("dpsw.toml"), settings).expect("a file");
        let mut home = Self { folder, token: String::new() };
        // Tokens can be made before the first start, in a folder that is there.
        let data = home.path().join(
            settings
                .lines()
                .find_map(|line| line.strip_prefix("data = "))
                .map_or("dpsw-data", |name| name.trim_matches(['"', '\''])),
        );
        DirBuilder::new().mode(0o700).create(data).expect("a folder");
        home.token = home.token_for(&["admin", "ingest", "query"]);
        home
    }

    /// A new token with these roles.
    pub(crate) fn token_for(&self, roles: &[&str]) -> String {
        let roles = roles.iter().flat_map(|role| ["--role", role]);
        let made = self.program().args(["token", "create"]).args(roles).output().expect("the program runs");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        String::from_utf8_lossy(&made.stdout).trim().to_owned()
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    fn log_path(&self) -> PathBuf {
        self.path().join("log")
    }

    /// All that the program said on stderr in all its lives.
    pub(crate) fn log(&self) -> String {
        String::from_utf8_lossy(&fs::read(self.log_path()).expect("a log")).into_owned()
    }

    fn program(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_dpsw-server"));
        command.current_dir(self.path()).env_remove("DPSW_KEY").args(["--config", "dpsw.toml"]);
        command
    }

    fn spawn(&self) -> Child {
        self.spawned(self.program())
    }

    fn spawned(&self, mut command: Command) -> Child {
        let log: File =
            OpenOptions::new().create(true).append(true).open(self.log_path()).expect("room for a log");
        command.args(["--address", "127.0.0.1:0"]).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log);
        command.spawn().expect("the program runs")
    }

    /// Starts the program, and returns when it listens.
    pub(crate) fn start(&self) -> Service {
        self.started(self.spawn())
    }

    /// Starts it where no file can grow beyond so many bytes; the system then refuses as if the disk were full.
    pub(crate) fn start_with_files_up_to(&self, bytes: u64) -> Service {
        self.start_after(&format!("ulimit -f {}; trap '' XFSZ", bytes / 512))
    }

    /// Starts it with so many bytes of address space. Threads share two arenas, as each new one takes 64 MiB of it.
    pub(crate) fn start_with_memory(&self, bytes: u64) -> Service {
        self.start_after(&format!("ulimit -v {}; export MALLOC_ARENA_MAX=2", bytes / 1024))
    }

    /// Starts it from a shell that has done this.
    fn start_after(&self, setup: &str) -> Service {
        let mut command = Command::new("sh");
        let limited = format!("{setup}; exec \"$0\" \"$@\"");
        let program = self.program();
        command.args(["-c", &limited]).arg(program.get_program()).args(program.get_args());
        command.current_dir(self.path()).env_remove("DPSW_KEY");
        self.started(self.spawned(command))
    }

    fn started(&self, child: Child) -> Service {
        let mut service = Service { child, address: String::new() };
        let lines = BufReader::new(service.child.stdout.take().expect("piped")).lines();
        let mut lines = lines.map_while(Result::ok);
        let address =
            lines.find_map(|line| line.split_once("listens on http://").map(|(_, at)| at.to_owned()));
        service.address = address.unwrap_or_else(|| panic!("it does not start:\n{}", self.log()));
        service
    }

    /// Starts the program and kills it after so long, wherever it is by then.
    pub(crate) fn start_in_vain(&self, random: &mut Random) {
        let service = Service { child: self.spawn(), address: String::new() };
        std::thread::sleep(Duration::from_millis(random.below(60)));
        service.kill();
    }

    pub(crate) fn client(&self, service: &Service) -> Client {
        Client::new(&service.address, &self.token)
    }
}

impl Service {
    /// Kills it, as the system does that has no more memory: it learns nothing of it.
    pub(crate) fn kill(self) {
        drop(self);
    }
}

impl Service {
    /// The most memory that it ever had, in bytes, where the system says so.
    pub(crate) fn memory_max(&self) -> Option<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
        line.trim().strip_suffix(" kB")?.parse::<u64>().ok().map(|kib| 1024 * kib)
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
