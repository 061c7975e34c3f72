//! Buffers: zeroed, aligned, counted, and refused with the numbers where no system has them.

use yirage_cpu_kernels::memory::{HUGE_FROM, HUGE_PAGE, HugeBuf, LINE, bytes_in_use};

#[test]
fn buffers_are_zeroed_aligned_and_counted() {
    for len in [0, 1, 63, 4096, HUGE_FROM - 1, HUGE_FROM, 3 * HUGE_PAGE + 5] {
        let before = bytes_in_use();
        let mut buf = HugeBuf::zeroed(len).unwrap();
        assert_eq!((buf.len(), buf.is_empty()), (len, len == 0));
        assert_eq!(buf.as_ptr() as usize % if len >= HUGE_FROM { HUGE_PAGE } else { LINE }, 0);
        assert!(buf.as_slice().iter().all(|b| *b == 0));
        buf.as_mut_slice().fill(7);
        assert!(bytes_in_use() >= len, "{before}");
    }
}

#[test]
fn an_absurd_size_is_refused_with_the_numbers() {
    let error = HugeBuf::zeroed(usize::MAX - 5).unwrap_err();
    assert_eq!(error.wanted, usize::MAX - 5);
    assert!(HugeBuf::zeroed(1 << 60).is_err());
}
