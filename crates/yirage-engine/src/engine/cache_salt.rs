//! What distinguishes cached beginnings: the request's salt, the length that keys were rotated for, and adapters.

use crate::limits::MAX_SALT_BYTES;
use crate::scheduler::AdmissionError;

/// Before the salts of requests whose keys are rotated as the model was made.
const PLAIN: u8 = 0;
/// Before the length that keys were rotated for.
const ROTATED: u8 = 1;
/// Before the adapters that made keys and values.
const ADAPTED: u8 = 2;

/// The cache's salt for a request's `salt`. Keys that were rotated for another length are not this request's, nor are those
/// of other adapters, which `adapted` names, than its own. Nothing that a request can say equals what another one gets; a request that says nothing of a plain model has the empty one.
///
/// # Errors
/// [`AdmissionError::SaltTooLong`].
pub(super) fn cache_salt(salt: &[u8], rotated_for: Option<u32>, adapted: &[u8]) -> Result<Vec<u8>, AdmissionError> {
    if salt.len() > MAX_SALT_BYTES {
        return Err(AdmissionError::SaltTooLong { bytes: salt.len(), most: MAX_SALT_BYTES });
    }
    let plain = match rotated_for {
        None if salt.is_empty() => Vec::new(),
        None => [&[PLAIN], salt].concat(),
        Some(length) => [&[ROTATED], &length.to_le_bytes()[..], salt].concat(),
    };
    if adapted.is_empty() {
        return Ok(plain);
    }
    // There are at most as many as two bytes count.
    let bytes = (adapted.len() as u16).to_le_bytes();
    Ok([&[ADAPTED], &bytes[..], adapted, &plain].concat())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::{MAX_ADAPTERS, MAX_CACHE_SALT_BYTES};

    #[test]
    fn no_two_requests_meet_by_what_they_say() {
        let length = 3u32.to_le_bytes();
        let said = [vec![], vec![0], vec![1], length.to_vec(), [&[1], &length[..]].concat(), vec![2, 1, 0, 7]];
        let adapters: [&[u8]; 3] = [&[], &[7], &[7, 0]];
        let of = |rotated| {
            said.iter().flat_map(move |salt| adapters.map(|adapted| cache_salt(salt, rotated, adapted).unwrap()))
        };
        let mut salts: Vec<Vec<u8>> = of(None).chain(of(Some(3))).chain(of(Some(4))).collect();
        let all = salts.len();
        salts.sort();
        salts.dedup();
        assert_eq!(salts.len(), all);
        assert_eq!(cache_salt(&[], None, &[]), Ok(Vec::new()));
    }

    #[test]
    fn the_longest_salt_is_one_that_the_scheduler_takes() {
        let adapted = [1; 20 * MAX_ADAPTERS];
        assert_eq!(cache_salt(&[7; MAX_SALT_BYTES], Some(9), &adapted).unwrap().len(), MAX_CACHE_SALT_BYTES);
        let refused = AdmissionError::SaltTooLong { bytes: MAX_SALT_BYTES + 1, most: MAX_SALT_BYTES };
        assert_eq!(cache_salt(&[7; MAX_SALT_BYTES + 1], None, &[]), Err(refused));
    }
}
