#include "elements.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace {

double f16(uint16_t bits) {
    int exponent = bits >> 10 & 31, mantissa = bits & 1023;
    double value = exponent == 31 ? (mantissa ? NAN : INFINITY)
                   : exponent     ? std::ldexp(1024 + mantissa, exponent - 25)
                                  : std::ldexp(mantissa, -24);
    return bits >> 15 ? -value : value;
}
// To the nearest, ties to even: of a number of so many bits behind the point, the least of which is 2^least.
double nearest(double x, int bits, int least) {
    if (!std::isfinite(x) || x == 0) return x;
    int exponent;
    std::frexp(x, &exponent);
    double unit = std::ldexp(1.0, std::max(exponent - bits, least));
    return std::nearbyint(x / unit) * unit;
}
uint16_t to_f16(double x) {
    uint16_t sign = std::signbit(x) ? 0x8000 : 0;
    if (std::isnan(x)) return 0x7e00;
    x = std::fabs(nearest(x, 11, -24));
    if (x >= 65520 || std::isinf(x)) return sign | 0x7c00;
    if (x < std::ldexp(1.0, -14)) return sign | uint16_t(std::ldexp(x, 24));
    int exponent;
    double mantissa = std::frexp(x, &exponent);
    return sign | uint16_t((exponent + 14) << 10) | (uint16_t(std::ldexp(mantissa, 11)) & 1023);
}
uint16_t to_bf16(double x) {
    float single = float(x);
    uint32_t bits;
    memcpy(&bits, &single, 4);
    if (std::isnan(x)) return 0x7fc0;
    return uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

double read(const uint8_t *at, int32_t type) {
    uint16_t half;
    uint32_t word;
    float single;
    int32_t whole;
    switch (type) {
        case kF32: return memcpy(&single, at, 4), single;
        case kI32: return memcpy(&whole, at, 4), whole;
        case kF16: return memcpy(&half, at, 2), f16(half);
        case kBF16: return memcpy(&half, at, 2), word = uint32_t(half) << 16, memcpy(&single, &word, 4), single;
        default: return *at != 0;
    }
}
void write(uint8_t *at, int32_t type, double x) {
    float single = float(x);
    int32_t whole = std::isnan(x) ? 0 : int32_t(x);
    uint16_t half = type == kF16 ? to_f16(x) : to_bf16(x);
    switch (type) {
        case kF32: memcpy(at, &single, 4); break;
        case kI32: memcpy(at, &whole, 4); break;
        case kF16:
        case kBF16: memcpy(at, &half, 2); break;
        default: *at = x != 0;
    }
}

// Calls `each` with the place of every element.
template <typename Each>
void walk(const std::vector<int64_t> &dims, const std::vector<int64_t> &strides, int64_t offset, Each each) {
    std::vector<int64_t> at(dims.size(), 0);
    for (int64_t place = offset;;) {
        each(place);
        size_t axis = dims.size();
        for (; axis > 0; axis--) {
            place += strides[axis - 1];
            if (++at[axis - 1] < dims[axis - 1]) break;
            place -= dims[axis - 1] * strides[axis - 1];
            at[axis - 1] = 0;
        }
        if (axis == 0) return;
    }
}

uint8_t *memory(Device &device, const Shaped &tensor) {
    int64_t last = tensor.offset;
    for (size_t i = 0; i < tensor.dims.size(); i++) last += (tensor.dims[i] - 1) * tensor.strides[i];
    return device.memory(tensor.data, (last + 1) * element_bytes(tensor.type));
}

}  // namespace

bool is_float(int32_t type) { return type == kF32 || type == kF16 || type == kBF16; }

std::vector<int64_t> spread(const std::vector<int64_t> &a, const std::vector<int64_t> &b) {
    std::vector<int64_t> both(std::max(a.size(), b.size()), 1);
    for (size_t i = 0; i < both.size(); i++) {
        int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1, y = i < b.size() ? b[b.size() - 1 - i] : 1;
        if (x != y && x != 1 && y != 1) return {};
        both[both.size() - 1 - i] = x == 1 ? y : x;
    }
    return both;
}

bool load(Device &device, const Shaped &tensor, const std::vector<int64_t> &dims, std::vector<double> &elements) {
    const uint8_t *bytes = memory(device, tensor);
    if (!bytes) return false;
    std::vector<int64_t> strides(dims.size(), 0);
    size_t before = dims.size() - tensor.dims.size();
    for (size_t i = 0; i < tensor.dims.size(); i++)
        strides[before + i] = tensor.dims[i] == 1 ? 0 : tensor.strides[i];
    elements.clear();
    uint64_t size = element_bytes(tensor.type);
    walk(dims, strides, tensor.offset, [&](int64_t at) { elements.push_back(read(bytes + at * size, tensor.type)); });
    return true;
}
bool load(Device &device, const Shaped &tensor, std::vector<double> &elements) {
    return load(device, tensor, tensor.dims, elements);
}
bool store(Device &device, const Shaped &tensor, const std::vector<double> &elements) {
    uint8_t *bytes = memory(device, tensor);
    if (!bytes) return false;
    uint64_t size = element_bytes(tensor.type), next = 0;
    walk(tensor.dims, tensor.strides, tensor.offset,
         [&](int64_t at) { write(bytes + at * size, tensor.type, elements[next++]); });
    return true;
}

bool products_fit(const Shaped &a, const Shaped &b, const Shaped &out, size_t rank) {
    if (a.dims.size() != rank || b.dims.size() != rank || out.dims.size() != rank) return false;
    size_t r = rank - 2;
    bool fit = a.dims[r + 1] == b.dims[r] && out.dims[r] == a.dims[r] && out.dims[r + 1] == b.dims[r + 1];
    for (size_t i = 0; i < r; i++) fit = fit && a.dims[i] == b.dims[i] && a.dims[i] == out.dims[i];
    return fit;
}
bool products(Device &device, const Shaped &a, const Shaped &b, const Shaped &out) {
    std::vector<double> left, right, sums(out.elements(), 0);
    if (!load(device, a, left) || !load(device, b, right)) return false;
    size_t rank = out.dims.size();
    int64_t m = out.dims[rank - 2], n = out.dims[rank - 1], k = a.dims[rank - 1], count = out.elements() / (m * n);
    for (int64_t c = 0; c < count; c++)
        for (int64_t i = 0; i < m; i++)
            for (int64_t l = 0; l < k; l++) {
                double factor = left[(c * m + i) * k + l];
                for (int64_t j = 0; j < n; j++) sums[(c * m + i) * n + j] += factor * right[(c * k + l) * n + j];
            }
    return store(device, out, sums);
}
