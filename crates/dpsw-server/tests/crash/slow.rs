//! Clients that send a byte now and then, more of them than there are places: others get in all the same.

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::client::connect;
use crate::others::{Others, SOURCE};
use crate::service::Home;

const SETTINGS: &str = "
[limits]
connections = 50
head_time = '500ms'
body_time = '500ms'
body = '1MiB'
unpacked_body = '1MiB'
memory = '16MiB'
";
/// Each of them comes again as soon as it is sent away.
const SLOW: usize = 100;

/// Sends this byte by byte until the other end has had enough, again and again.
fn crawl(address: &str, text: &str, is_over: &AtomicBool) {
    while !is_over.load(Ordering::SeqCst) {
        let Ok(mut stream) = connect(address) else { continue };
        for byte in text.as_bytes().chunks(1) {
            std::thread::sleep(Duration::from_millis(100));
            if stream.write_all(byte).is_err() || is_over.load(Ordering::SeqCst) {
                break;
            }
        }
    }
}

/// Whether it ends well or not, those who crawl end.
pub(crate) struct Over<'o>(pub(crate) &'o AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[test]
fn clients_that_send_a_byte_now_and_then_keep_nobody_out() {
    let home = Home::new(&format!("{SETTINGS}{SOURCE}"));
    let service = home.start();
    let heads = ["GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Slow: ", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"];
    let body = format!(
        "POST /v1/sources/others/events HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\n\
         Content-Length: 1000000\r\nAuthorization: Bearer {}\r\n\r\n",
        home.token_for(&["ingest"])
    );
    let mut others = Others::default();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let over = Over(&is_over);
        for number in 0..SLOW {
            let (address, text) = (&service.address, heads[number % 2].to_owned() + &"y".repeat(1000));
            let is_over = &is_over;
            scope.spawn(move || crawl(address, &text, is_over));
        }
        // Those who send a head at once, and then a body that takes its time.
        for _ in 0..SLOW / 5 {
            let (address, body, is_over) = (&service.address, &body, &is_over);
            scope.spawn(move || {
                while !is_over.load(Ordering::SeqCst) {
                    let Ok(mut stream) = connect(address) else { continue };
                    let _ = stream.write_all(body.as_bytes());
                    while stream.write_all(b"y").is_ok() && !is_over.load(Ordering::SeqCst) {
                        std::thread::sleep(Duration::from_millis(100));
                    }
                }
            });
        }
        for _ in 0..30 {
            others.insist(|| home.client(&service));
        }
        drop(over);
    });
    println!("{others:?}, {:?} bytes of memory", service.memory_max());
    others.check(|| home.client(&service));
}
