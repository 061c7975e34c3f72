//! Answers of schemas, for validators that are not ours: each line of the input is a schema, each line of the output what
//! became of it. `tools/oracle/schemas.py` runs this.
//!
//! Arguments: how many answers of each schema, and how many bytes one has at most.
#![allow(clippy::print_stdout)] // what it is for

use serde_json::{Value, json};
use std::error::Error;
use std::io::BufRead;
use yirage_serve::{BodyVerdict, Walked, walk_form};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let count: u64 = arguments.next().map_or(Ok(100), |text| text.parse())?;
    let most: usize = arguments.next().map_or(Ok(2000), |text| text.parse())?;
    for line in std::io::stdin().lock().lines() {
        let schema: Value = serde_json::from_str(&line?)?;
        let body = json!({"guided_json": schema}).to_string();
        let (mut ended, mut cut, mut stuck) = (Vec::new(), 0, Vec::new());
        let said = match walk_form(body.as_bytes(), 0..count, most) {
            Err(BodyVerdict::Refused { status, error }) => {
                json!({"refused": error["error"]["message"], "status": status})
            }
            Err(BodyVerdict::Taken { .. }) => json!({}),
            Ok(answers) => {
                for answer in answers {
                    match answer {
                        Walked::Ended(text) => ended.push(String::from_utf8_lossy(&text).into_owned()),
                        Walked::Cut(_) => cut += 1,
                        Walked::Stuck(text) => stuck.push(String::from_utf8_lossy(&text).into_owned()),
                    }
                }
                json!({"answers": ended, "cut": cut, "stuck": stuck})
            }
        };
        println!("{said}");
    }
    Ok(())
}
