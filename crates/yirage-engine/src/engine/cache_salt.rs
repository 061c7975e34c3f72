//! What distinguishes cached beginnings: the request's salt, and the length that keys were rotated for.

use crate::limits::MAX_SALT_BYTES;
use crate::scheduler::AdmissionError;

/// Before the salts of requests whose keys are rotated as the model was made.
const PLAIN: u8 = 0;
/// Before the length that keys were rotated for.
const ROTATED: u8 = 1;

/// The cache's salt for a request's `salt`. Keys that were rotated for another length are not this request's. Nothing that
/// a request can say equals what another one gets; a request that says nothing of a plain model has the empty one.
///
/// # Errors
/// [`AdmissionError::SaltTooLong`].
pub(super) fn cache_salt(salt: &[u8], rotated_for: Option<u32>) -> Result<Vec<u8>, AdmissionError> {
    if salt.len() > MAX_SALT_BYTES {
        return Err(AdmissionError::SaltTooLong { bytes: salt.len(), most: MAX_SALT_BYTES });
    }
    Ok(match rotated_for {
        None if salt.is_empty() => Vec::new(),
        None => [&[PLAIN], salt].concat(),
        Some(length) => [&[ROTATED], &length.to_le_bytes()[..], salt].concat(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::MAX_CACHE_SALT_BYTES;

    #[test]
    fn no_two_requests_meet_by_what_they_say() {
        let length = 3u32.to_le_bytes();
        let said = [vec![], vec![0], vec![1], length.to_vec(), [&[1], &length[..]].concat()];
        let of = |rotated| said.iter().map(move |salt| cache_salt(salt, rotated).unwrap());
        let mut salts: Vec<Vec<u8>> = of(None).chain(of(Some(3))).chain(of(Some(4))).collect();
        let all = salts.len();
        salts.sort();
        salts.dedup();
        assert_eq!(salts.len(), all);
        assert_eq!(cache_salt(&[], None), Ok(Vec::new()));
    }

    #[test]
    fn the_longest_salt_is_one_that_the_scheduler_takes() {
        assert_eq!(cache_salt(&[7; MAX_SALT_BYTES], Some(9)).unwrap().len(), MAX_CACHE_SALT_BYTES);
        let refused = AdmissionError::SaltTooLong { bytes: MAX_SALT_BYTES + 1, most: MAX_SALT_BYTES };
        assert_eq!(cache_salt(&[7; MAX_SALT_BYTES + 1], None), Err(refused));
    }
}
