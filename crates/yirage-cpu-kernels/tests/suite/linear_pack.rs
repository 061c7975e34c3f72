//! Packing and unpacking weights.

use crate::linear_support::*;
use yirage_cpu_kernels::isa::Isa;
use yirage_cpu_kernels::pack::{PackError, PackedMatrix};
use yirage_ir::Format;

#[test]
fn every_level_packs_the_same_and_unpacks_what_the_format_decodes_to() {
    let mut rng = Rng::new(1);
    for &format in Format::ALL {
        for &k in ks(format) {
            for rows in [1, 16, 17, 70, 131] {
                let bytes = weights(&mut rng, format, rows, k);
                let want = decoded(format, rows, k, &bytes);
                let m = packed(format, rows, k, &bytes);
                for isa in isas() {
                    let same = packed_at(isa, format, rows, k, &bytes);
                    assert!(same.packed_bytes() == m.packed_bytes(), "{format:?} {isa} {rows}x{k}: other bytes");
                    let mut got = vec![0f32; k];
                    for r in 0..rows {
                        m.unpack_row(isa, 0, r, &mut got);
                        assert_eq!(bits(&got), bits(&want[r * k..][..k]), "{format:?} {isa} {rows}x{k} row {r}");
                    }
                }
            }
        }
    }
}

#[test]
fn packing_adds_no_bytes_to_whole_panels() {
    for &format in Format::ALL {
        let m = PackedMatrix::new(format, 128, 512).unwrap();
        assert_eq!(m.bytes(), 128 * format.info().row_bytes(512), "{format:?}");
    }
}

#[test]
fn chunks_threads_and_stacks_pack_the_same() {
    let mut rng = Rng::new(2);
    let (format, rows, k, count) = (Format::Q8_0, 150, 96, 3);
    let row_bytes = format.info().row_bytes(k);
    let bytes = weights(&mut rng, format, rows * count, k);
    let stack = PackedMatrix::stacked(format, count, rows, k).unwrap();
    std::thread::scope(|s| {
        for matrix in 0..count {
            for (i, chunk) in bytes[matrix * rows * row_bytes..][..rows * row_bytes].chunks(48 * row_bytes).enumerate()
            {
                let stack = &stack;
                s.spawn(move || unsafe { stack.pack_rows(Isa::detect(), matrix, 48 * i, chunk).unwrap() });
            }
        }
    });
    let want = decoded(format, rows * count, k, &bytes);
    let mut got = vec![0f32; k];
    for matrix in 0..count {
        for r in 0..rows {
            stack.unpack_row(Isa::Scalar, matrix, r, &mut got);
            assert_eq!(got, want[(matrix * rows + r) * k..][..k]);
        }
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let part = PackedMatrix::new(Format::Q4_K, 16, 320).err().unwrap();
    assert!(matches!(part, PackError::PartBlock { block: 256, k: 320, .. }), "{part}");
    let huge = PackedMatrix::stacked(Format::F32, usize::MAX / 2, 64, 4096).err().unwrap();
    assert!(matches!(huge, PackError::TooLarge { .. }), "{huge}");
    let m = PackedMatrix::stacked(Format::Q8_0, 2, 40, 64).unwrap();
    let row = 68;
    for (matrix, first, bytes) in [(0, 8, row), (0, 32, 9 * row), (2, 0, row), (0, 0, row - 1), (1, 48, row)] {
        let error = unsafe { m.pack_rows(Isa::detect(), matrix, first, &vec![0; bytes]) }.err();
        assert!(matches!(error, Some(PackError::BadRows { .. })), "{matrix} {first} {bytes}: {error:?}");
    }
    assert!(unsafe { m.pack_rows(Isa::detect(), 1, 32, &vec![1; 8 * row]) }.is_ok());
    assert_eq!(PackedMatrix::new(Format::F32, 0, 7).unwrap().panels(), 0);
    assert_eq!(PackedMatrix::new(Format::F32, 5, 0).unwrap().bytes(), 0);
}
