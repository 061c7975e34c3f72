//! `yirage route`: one address for several servers.

use crate::console::Console;
use crate::failure::CliFailure;
use crate::options::Layers;
use crate::settings::{address, seconds};
use serde_json::json;
use std::time::Duration;
use yirage_route::{ReplicaAddress, RouteOptions, RouteServer};

/// Runs the command.
///
/// # Errors
/// Whatever is wrong with the options or the servers' addresses; an address that cannot be listened to.
pub(crate) fn run(layers: &Layers, console: &Console, servers: &[String]) -> Result<(), CliFailure> {
    let usage = |error: yirage_route::RouteError| CliFailure::Usage(error.to_string());
    let replicas = servers.iter().map(|given| ReplicaAddress::parse(given).map_err(usage));
    let expected = "a number of seconds from 0.01 to 3600";
    let health = layers.number::<f64>("health-time", expected, |s| (0.01..=3600.0).contains(s))?.unwrap_or(2.0);
    let options = RouteOptions {
        address: address(layers)?,
        replicas: replicas.collect::<Result<_, _>>()?,
        health_time: Duration::from_secs_f64(health),
        affinity_slack: layers.number("affinity-slack", "a whole number of requests", |_| true)?.unwrap_or(4),
        drain_time: seconds(layers, "drain-time")?.unwrap_or(Duration::from_secs(30)),
    };
    if !options.address.ip().is_loopback() && !layers.switch("insecure")? {
        return Err(CliFailure::Usage(format!(
            "{}: {} is open to other machines, and a router checks no keys; give --insecure where all servers behind it check theirs, \
             or others keep strangers away",
            layers.label("host"),
            options.address
        )));
    }
    let names: Vec<String> = options.replicas.iter().map(ToString::to_string).collect();
    let router = RouteServer::bind(options).map_err(usage)?;
    let address = format!("http://{}", router.address());
    match console.json {
        true => console.value(&json!({"address": address, "replicas": names}))?,
        false => console.line(&format!("listening at {address}"))?,
    }
    let cut = router.run().map_err(|error| CliFailure::Other(error.to_string()))?;
    if cut > 0 {
        console.note(&format!("{cut} requests were cut off at the deadline"));
    }
    Ok(())
}
