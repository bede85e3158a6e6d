//! A disk that takes no more, for the program itself.

use crate::client::Request;
use crate::others::{Others, SOURCE};
use crate::service::Home;

/// With a limit on the size of files the system refuses writes as a full disk does. What was acknowledged is there, batches are
/// refused with a reason, questions are answered, and with room again all goes on.
#[cfg(unix)]
#[test]
fn a_disk_that_takes_no_more_refuses_batches_and_loses_nothing() {
    let home = Home::new(SOURCE);
    let mut others = Others::default();
    let service = home.start();
    (0..50).for_each(|_| others.insist(|| home.client(&service)));
    service.kill();
    let len = std::fs::metadata(home.path().join("dpsw-data/dpsw.redb")).expect("a database").len();
    let service = home.start_with_files_up_to(len + (256 << 10));
    let mut client = home.client(&service);
    while others.refused < 20 {
        others.send(&mut client);
        assert!(others.acknowledged < 50_000, "the disk never fills up");
    }
    let ready = client.ask(Request::get("/readyz")).expect("it runs");
    assert_eq!(ready.status, 503, "{}", ready.text());
    let status = client.ask(Request::get("/v1/status")).expect("it runs").expect(200).text();
    assert!(status.contains("the storage refuses to take data"), "{status}");
    client.ask(Request::get("/v1/streams/counted/top")).expect("it runs").expect(200);
    service.kill();
    let service = home.start();
    (0..50).for_each(|_| others.insist(|| home.client(&service)));
    others.check(|| home.client(&service));
}
