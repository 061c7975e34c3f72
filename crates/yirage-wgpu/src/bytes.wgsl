// Copies and fills at any byte: what the interface's own commands do for whole words alone.

struct Bytes {
    // Bytes before the first one, in either binding.
    into_first: u32,
    source_first: u32,
    count: u32,
    // What each byte becomes, four times.
    fill: u32,
}

@group(0) @binding(0) var<storage, read> bytes: Bytes;
@group(0) @binding(1) var<storage, read_write> into: array<u32>;
@group(0) @binding(2) var<storage, read_write> source: array<u32>;

// The bits of a word of `into` that change.
fn changed(word: u32) -> u32 {
    var mask = 0u;
    for (var b = 0u; b < 4u; b++) {
        let at = word * 4u + b;
        if (at >= bytes.into_first && at < bytes.into_first + bytes.count) {
            mask |= 0xffu << (8u * b);
        }
    }
    return mask;
}

fn put(word: u32, mask: u32, value: u32) {
    if (mask == 0xffffffffu) {
        into[word] = value;
    } else {
        into[word] = (into[word] & ~mask) | (value & mask);
    }
}

// The bytes that go into a word of `into`; those that do not change are anything.
fn gathered(word: u32, mask: u32) -> u32 {
    if (mask == 0xffffffffu) {
        let at = word * 4u - bytes.into_first + bytes.source_first;
        let shift = 8u * (at % 4u);
        let low = source[at / 4u] >> shift;
        if (shift == 0u) {
            return low;
        }
        return low | (source[at / 4u + 1u] << (32u - shift));
    }
    var value = 0u;
    for (var b = 0u; b < 4u; b++) {
        if (((mask >> (8u * b)) & 1u) != 0u) {
            let at = word * 4u + b - bytes.into_first + bytes.source_first;
            value |= ((source[at / 4u] >> (8u * (at % 4u))) & 0xffu) << (8u * b);
        }
    }
    return value;
}

@compute @workgroup_size(64)
fn copy_bytes(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let end = (bytes.into_first + bytes.count + 3u) / 4u;
    for (var word = bytes.into_first / 4u + id.x; word < end; word += groups.x * 64u) {
        let mask = changed(word);
        put(word, mask, gathered(word, mask));
    }
}

@compute @workgroup_size(64)
fn fill_bytes(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let end = (bytes.into_first + bytes.count + 3u) / 4u;
    for (var word = bytes.into_first / 4u + id.x; word < end; word += groups.x * 64u) {
        put(word, changed(word), bytes.fill);
    }
}
