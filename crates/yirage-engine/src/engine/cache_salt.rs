//! What distinguishes cached beginnings: the request's salt, the length that keys were rotated for, adapters, and the round
//! of tokens that stand for rows of embeddings.

use crate::limits::MAX_SALT_BYTES;
use crate::scheduler::AdmissionError;

/// Before the salts of requests whose keys are rotated as the model was made.
const PLAIN: u8 = 0;
/// Before the length that keys were rotated for.
const ROTATED: u8 = 1;
/// Before the adapters that made keys and values, and all of the above.
const ADAPTED: u8 = 2;
/// Before the round of tokens that stand for rows, where it is not the first, and all of the above.
const ROUND: u8 = 3;

/// The cache's salt for a request's `salt`. Keys that were rotated for another length are not this request's, nor are those
/// of other adapters, which `adapted` names, than its own; tokens that stand for rows stand for others in another `round`.
/// Nothing that a request can say equals what another one gets; a request that says nothing of a plain model has the empty
/// one.
///
/// # Errors
/// [`AdmissionError::SaltTooLong`].
pub(super) fn cache_salt(
    salt: &[u8],
    rotated_for: Option<u32>,
    adapted: &[u8],
    round: u32,
) -> Result<Vec<u8>, AdmissionError> {
    if salt.len() > MAX_SALT_BYTES {
        return Err(AdmissionError::SaltTooLong { bytes: salt.len(), most: MAX_SALT_BYTES });
    }
    let plain = match rotated_for {
        None if salt.is_empty() => Vec::new(),
        None => [&[PLAIN], salt].concat(),
        Some(length) => [&[ROTATED], &length.to_le_bytes()[..], salt].concat(),
    };
    // There are at most as many adapters as two bytes count.
    let bytes = (adapted.len() as u16).to_le_bytes();
    let made = if adapted.is_empty() { plain } else { [&[ADAPTED], &bytes[..], adapted, &plain].concat() };
    Ok(if round == 0 { made } else { [&[ROUND], &round.to_le_bytes()[..], &made].concat() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::{MAX_ADAPTERS, MAX_CACHE_SALT_BYTES};

    #[test]
    fn no_two_requests_meet_by_what_they_say() {
        let length = 3u32.to_le_bytes();
        let said = [
            vec![],
            vec![0],
            vec![1],
            vec![2],
            vec![3],
            length.to_vec(),
            [&[1], &length[..]].concat(),
            vec![2, 1, 0, 7],
            [&[3], &length[..]].concat(),
            [&[3], &length[..], &[2, 1, 0, 7]].concat(),
        ];
        let adapters: [&[u8]; 5] = [&[], &[7], &[7, 0], &[3], &length];
        let mut salts = Vec::new();
        for salt in &said {
            for rotated in [None, Some(3), Some(4)] {
                for adapted in adapters {
                    salts.extend([0, 1, 3].map(|round| cache_salt(salt, rotated, adapted, round).unwrap()));
                }
            }
        }
        let all = salts.len();
        salts.sort();
        salts.dedup();
        assert_eq!(salts.len(), all);
        assert_eq!(cache_salt(&[], None, &[], 0), Ok(Vec::new()));
    }

    #[test]
    fn the_longest_salt_is_one_that_the_scheduler_takes() {
        let adapted = [1; 20 * MAX_ADAPTERS];
        assert_eq!(cache_salt(&[7; MAX_SALT_BYTES], Some(9), &adapted, 1).unwrap().len(), MAX_CACHE_SALT_BYTES);
        let refused = AdmissionError::SaltTooLong { bytes: MAX_SALT_BYTES + 1, most: MAX_SALT_BYTES };
        assert_eq!(cache_salt(&[7; MAX_SALT_BYTES + 1], None, &[], 0), Err(refused));
    }
}
