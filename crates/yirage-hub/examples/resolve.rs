//! Where a model of the catalogue is on this machine, fetched if need be.
#![allow(clippy::print_stdout)] // that is its job

use yirage_hub::{Hub, HubEnv, HubError, ModelRef, NoProgress};

fn main() -> Result<(), HubError> {
    let hub = Hub::new(HubEnv::from_env());
    let model = hub.resolve(&ModelRef::parse("smollm2-135m-instruct")?, &NoProgress)?;
    println!("{} is at {}", model.name, model.path.display());
    Ok(())
}
