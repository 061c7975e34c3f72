//! Any bytes as an array: what is read has as many bytes as its type. Shared by the fuzz target and the test that replays
//! its corpus.

use yirage_graph::{Npy, npy};
use yirage_ir::{DType, Dims, Type};

/// Reads the header, and the elements as every type, in both orders; what was read is written and read again.
pub(crate) fn run(data: &[u8]) {
    let Ok(array) = Npy::parse(data) else { return };
    let sizes = array.header().shape.iter().map(|&n| u32::try_from(n).ok()).collect::<Option<Vec<_>>>();
    let Some(sizes) = sizes else { return };
    for dtype in ["f32", "f16", "bf16", "i32", "u32", "bool", "q4_0"] {
        let Some(dtype) = DType::parse(dtype) else { continue };
        let ty = Type::new(dtype, sizes.iter().copied());
        if ty.check().is_err() {
            continue;
        }
        let Ok((memory, _)) = array.memory(&ty) else { continue };
        assert_eq!(memory.len(), ty.bytes(&Dims::default()));
        let written = npy::write(&ty, &memory).map(|(bytes, _)| bytes);
        let again = written.as_ref().map(|bytes| Npy::parse(bytes).and_then(|array| array.memory(&ty)));
        assert_eq!(again.map(|read| read.map(|(bytes, _)| bytes)), Ok(Ok(memory)));
        let next = |stride: &mut u32, n: &u32| {
            let now = *stride;
            *stride = stride.saturating_mul(*n);
            Some(now)
        };
        let column = Type { strides: Some(sizes.iter().scan(1, next).collect()), ..ty };
        if column.check().is_ok() {
            let read = array.memory(&column).map(|(memory, _)| memory.len());
            assert_eq!(read, Ok(column.storage_bytes(&Dims::default())));
        }
    }
}
