//! Why a row gives no token, and how that is written into three words.

/// Why a row gives no token.
#[derive(Clone, Copy, Debug)]
pub enum SampleFault {
    /// A logit is NaN or +infinity as given.
    InputLogit {
        /// The first such token.
        token: u32,
        /// Its logit.
        value: f32,
    },
    /// A logit is NaN or +infinity after bias and penalties.
    Adjusted {
        /// The first such token.
        token: u32,
        /// Its logit.
        value: f32,
    },
    /// Every token is masked or has the logit -infinity; or there is no such row.
    Nothing,
}

impl SampleFault {
    /// The words of a row of the output `fault`: which fault (0 is none), the token, the bits of its logit.
    pub fn words(fault: Option<SampleFault>) -> [i32; 3] {
        let at = |kind: i32, token: u32, value: f32| [kind, token as i32, value.to_bits() as i32];
        match fault {
            None => [0; 3],
            Some(SampleFault::InputLogit { token, value }) => at(1, token, value),
            Some(SampleFault::Adjusted { token, value }) => at(2, token, value),
            Some(SampleFault::Nothing) => [3, 0, 0],
        }
    }

    /// The inverse of [`SampleFault::words`].
    pub fn parse(words: [i32; 3]) -> Option<SampleFault> {
        let (token, value) = (words[1] as u32, f32::from_bits(words[2] as u32));
        match words[0] {
            0 => None,
            1 => Some(SampleFault::InputLogit { token, value }),
            2 => Some(SampleFault::Adjusted { token, value }),
            _ => Some(SampleFault::Nothing),
        }
    }
}
