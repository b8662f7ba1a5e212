//! What both ends say to each other beside the link, one JSON value a line: nothing but messages crosses the link itself.

use serde::{Deserialize, Serialize};

pub(crate) use machmeter_loops::net::{END, Ended, MOST_BYTES, NUMBERS, Turns};

/// What the near end asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Order {
    /// Take part in turns until the message that ends them.
    Turns(Turns),
}

/// What the far end says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Answer {
    /// It waits for the first message.
    Ready,
    Ended(Ended),
    Cannot(String),
}
